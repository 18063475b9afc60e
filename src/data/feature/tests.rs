//! Tests of features: what cells become, what is refused, and that no cell is quoted.

use super::*;
use proptest::prelude::*;

fn feature(kind: FeatureKind) -> Feature {
    Feature {
        column: Some("c".into()),
        kind,
        missing: None,
    }
}

proptest! {
    #[test]
    fn scaled_values_stay_in_the_unit_interval(v in -1e12f64..1e12, low in -1e6f64..1e6, width in 1e-3f64..1e6) {
        let f = feature(FeatureKind::Scale { low, high: low + width });
        let mut out = Vec::new();
        f.push(Cell::Number(v), &mut out).map_err(TestCaseError::fail)?;
        prop_assert!(out[0].abs() <= 1.0);
    }

    #[test]
    fn one_hot_always_sums_to_one(text in ".*") {
        let f = feature(FeatureKind::OneHot { levels: vec!["a".into(), "b".into()], strict: false, reference: None });
        let mut out = Vec::new();
        f.push(Cell::Text(&text), &mut out).map_err(TestCaseError::fail)?;
        prop_assert_eq!(out.len(), f.names().len());
        prop_assert_eq!(out.iter().sum::<f32>(), 1.0);
    }

    #[test]
    fn errors_never_quote_the_cell(text in "[a-z]{12,20}") {
        let f = feature(FeatureKind::Scale { low: 0.0, high: 1.0 });
        let message = f.push(Cell::Text(&text), &mut Vec::new()).unwrap_err();
        prop_assert!(!message.contains(&text));
    }
}

#[test]
fn missing_is_mapped_only_when_declared() {
    let mut f = feature(FeatureKind::Scale {
        low: 0.0,
        high: 2.0,
    });
    assert!(f.push(Cell::Text("?"), &mut Vec::new()).is_err());
    f.missing = Some(2.0);
    let mut out = Vec::new();
    assert!(f.push(Cell::Text("?"), &mut out).is_ok());
    assert_eq!(out, [1.0]);
}

#[test]
fn an_indicator_takes_no_missing_cell_for_an_answer() {
    let one_of = |levels: &[&str], missing| Feature {
        missing,
        ..feature(FeatureKind::Indicator(Condition::OneOf(
            levels.iter().map(|l| l.to_string()).collect(),
        )))
    };
    let value = |f: &Feature, cell: Cell<'_>| {
        let mut out = Vec::new();
        f.push(cell, &mut out).map(|()| out[0])
    };
    let (empty, absent) = (Cell::Text(" "), Cell::Number(f64::NAN));
    for cell in [empty, absent, Cell::Text("NA"), Cell::Missing] {
        let message = value(&one_of(&["a"], None), cell).unwrap_err();
        assert!(message.contains("missing = 0") && !message.contains("NA"));
        assert_eq!(value(&one_of(&["a"], Some(0.0)), cell), Ok(0.0));
        assert_eq!(value(&one_of(&["a"], Some(1.0)), cell), Ok(1.0));
    }
    assert_eq!(value(&one_of(&["a"], Some(1.0)), Cell::Text("b")), Ok(0.0));
    for cell in [empty, absent, Cell::Missing] {
        assert_eq!(value(&one_of(&["a", ""], Some(0.0)), cell), Ok(1.0));
    }
    assert_eq!(value(&one_of(&["NA"], None), Cell::Text("NA")), Ok(1.0));
    assert!(value(&one_of(&[""], None), Cell::Text("NA")).is_err());
    assert!(one_of(&["a"], Some(0.5)).validate().is_err());
}

#[test]
fn a_value_for_missing_cells_lies_inside_the_bounds() {
    for kind in [
        FeatureKind::Scale {
            low: 18.0,
            high: 99.0,
        },
        FeatureKind::Clamp {
            low: 18.0,
            high: 99.0,
        },
    ] {
        for (missing, fine) in [
            (18.0, true),
            (99.0, true),
            (1000.0, false),
            (17.9, false),
            (f64::NAN, false),
        ] {
            let mut f = feature(kind.clone());
            f.missing = Some(missing);
            assert_eq!(f.validate().is_ok(), fine, "{missing}");
        }
    }
}

#[test]
fn an_infinite_cell_is_refused() {
    let f = feature(FeatureKind::Clamp {
        low: 0.0,
        high: 2.0,
    });
    assert!(f.push(Cell::Text("inf"), &mut Vec::new()).is_err());
    assert!(f.push(Cell::Number(f64::NAN), &mut Vec::new()).is_err());
}

#[test]
fn a_reference_level_has_no_feature() {
    let one_hot = |strict, reference: &str| {
        feature(FeatureKind::OneHot {
            levels: vec!["a".into(), "b".into()],
            strict,
            reference: Some(reference.into()),
        })
    };
    let values = |f: &Feature, text: &str| {
        let mut out = Vec::new();
        f.push(Cell::Text(text), &mut out).map(|()| out)
    };
    let (open, strict) = (one_hot(false, "a"), one_hot(true, "b"));
    assert!(open.validate().is_ok() && strict.validate().is_ok());
    assert_eq!(open.names(), ["c=b", "c=other"]);
    assert_eq!(values(&open, "a"), Ok(vec![0.0, 0.0]));
    assert_eq!(values(&open, "b"), Ok(vec![1.0, 0.0]));
    assert_eq!(values(&open, "z"), Ok(vec![0.0, 1.0]));
    assert_eq!(strict.names(), ["c=a"]);
    assert_eq!(values(&strict, "a"), Ok(vec![1.0]));
    assert_eq!(values(&strict, "b"), Ok(vec![0.0]));
    assert!(values(&strict, "z").is_err());
    assert_eq!((open.max_square(), strict.max_square()), (1.0, 1.0));
    // It must be a level, and not the only thing there is.
    assert!(one_hot(false, "other").validate().is_err());
    let alone = |strict| {
        feature(FeatureKind::OneHot {
            levels: vec!["a".into()],
            strict,
            reference: Some("a".into()),
        })
    };
    assert!(alone(true).validate().is_err() && alone(false).validate().is_ok());
}
