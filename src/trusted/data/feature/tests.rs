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

fn one_hot(
    levels: &[&str],
    groups: &[(&str, &[&str])],
    strict: bool,
    reference: Option<&str>,
) -> FeatureKind {
    let own = |texts: &[&str]| texts.iter().map(|t| t.to_string()).collect();
    FeatureKind::OneHot(OneHot {
        levels: own(levels),
        groups: groups
            .iter()
            .map(|(name, l)| (name.to_string(), own(l)))
            .collect(),
        strict,
        reference: reference.map(String::from),
    })
}

proptest! {
    #[test]
    fn scaled_values_stay_in_the_unit_interval(v in -1e12f64..1e12, low in -1e6f64..1e6, width in 1e-3f64..1e6) {
        let f = feature(FeatureKind::scale(low, low + width));
        let mut out = Vec::new();
        f.push(Cell::Number(v), &mut out).map_err(TestCaseError::fail)?;
        prop_assert!(out[0].abs() <= 1.0);
    }

    #[test]
    fn one_hot_always_sums_to_one(text in ".*") {
        let f = feature(one_hot(&["a", "b"], &[], false, None));
        let mut out = Vec::new();
        f.push(Cell::Text(&text), &mut out).map_err(TestCaseError::fail)?;
        prop_assert_eq!(out.len(), f.names().len());
        prop_assert_eq!(out.iter().sum::<f32>(), 1.0);
    }

    #[test]
    fn errors_never_quote_the_cell(text in "[a-z]{12,20}") {
        let f = feature(FeatureKind::scale(0.0, 1.0));
        let message = f.push(Cell::Text(&text), &mut Vec::new()).unwrap_err();
        prop_assert!(!message.contains(&text));
    }
}

#[test]
fn missing_is_mapped_only_when_declared() {
    let mut f = feature(FeatureKind::scale(0.0, 2.0));
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
        FeatureKind::scale(18.0, 99.0),
        FeatureKind::clamp(18.0, 99.0),
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
    let f = feature(FeatureKind::clamp(0.0, 2.0));
    assert!(f.push(Cell::Text("inf"), &mut Vec::new()).is_err());
    assert!(f.push(Cell::Number(f64::NAN), &mut Vec::new()).is_err());
}

/// What a cell of texts becomes.
fn values(f: &Feature, text: &str) -> Result<Vec<f32>, String> {
    let mut out = Vec::new();
    f.push(Cell::Text(text), &mut out).map(|()| out)
}

#[test]
fn a_reference_level_has_no_feature() {
    let of = |strict, reference| feature(one_hot(&["a", "b"], &[], strict, Some(reference)));
    let (open, strict) = (of(false, "a"), of(true, "b"));
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
    assert!(of(false, "other").validate().is_err());
    let alone = |strict| feature(one_hot(&["a"], &[], strict, Some("a")));
    assert!(alone(true).validate().is_err() && alone(false).validate().is_ok());
}

#[test]
fn levels_of_a_group_share_a_feature() {
    let groups = [("rare", &["x", "y", ""][..]), ("far", &["v"])];
    let f = feature(one_hot(&["a"], &groups, true, None));
    assert_eq!(f.check(), Ok(()));
    // Groups by their names, after the levels.
    assert_eq!(f.names(), ["c=a", "c=far", "c=rare"]);
    for (text, want) in [
        ("a", [1.0, 0.0, 0.0]),
        ("v", [0.0, 1.0, 0.0]),
        ("x", [0.0, 0.0, 1.0]),
        (" y ", [0.0, 0.0, 1.0]),
        ("", [0.0, 0.0, 1.0]),
    ] {
        assert_eq!(values(&f, text), Ok(want.to_vec()), "{text}");
    }
    assert!(values(&f, "rare").is_err());
    let f = feature(one_hot(&["a"], &groups, false, Some("rare")));
    assert_eq!(f.names(), ["c=a", "c=far", "c=other"]);
    assert_eq!(values(&f, "y"), Ok(vec![0.0, 0.0, 0.0]));
    assert_eq!(values(&f, "rare"), Ok(vec![0.0, 0.0, 1.0]));
}

#[test]
fn impossible_groups_name_their_key() {
    let check = |levels: &[&str], groups: &[(&str, &[&str])], strict, reference| {
        feature(one_hot(levels, groups, strict, reference)).check()
    };
    for (levels, groups, key, says) in [
        (
            &["a"][..],
            &[("g", &["a"][..])][..],
            "groups",
            "in one_hot and in group 'g'",
        ),
        (
            &["a"],
            &[("g", &["b"]), ("h", &["b"])],
            "groups",
            "in the groups 'g' and 'h'",
        ),
        (&["a"], &[("g", &["b", "b"])], "groups", "declared twice"),
        (&["a"], &[("g", &[])], "groups", "no level"),
        (&["a"], &[("a", &["b"])], "groups", "rename the group"),
        (&["a"], &[("other", &["b"])], "groups", "strict = true"),
        (&[], &[], "", "at least one level"),
    ] {
        let (at, what) = check(levels, groups, false, None).unwrap_err();
        assert_eq!(at, key, "{what}");
        assert!(what.contains(says), "{what}");
    }
    assert_eq!(check(&["a"], &[("other", &["b"])], true, None), Ok(()));
    assert_eq!(check(&[], &[("g", &["b"])], false, Some("g")), Ok(()));
    let (at, what) = check(&["a"], &[("g", &["b"])], false, Some("b")).unwrap_err();
    assert_eq!(at, "reference");
    assert!(what.contains("name the group"), "{what}");
}
