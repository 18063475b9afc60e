//! Tests of labels: what cells mean, what is refused, and that no cell is quoted.

use super::*;
use proptest::prelude::*;

fn label(values: LabelValues, missing: Option<f64>) -> Label {
    Label {
        column: Some("y".into()),
        values,
        missing,
        event: None,
    }
}

fn stored(label: &Label, cell: Cell<'_>) -> Result<f32, String> {
    label.kind().store(label.read(cell)?)
}

proptest! {
    #[test]
    fn numbers_stay_within_what_was_declared(v in -1e12f64..1e12, low in -1e6f64..1e6, width in 1e-3f64..1e6) {
        let high = low + width;
        let (clamp, scale) = (
            label(LabelValues::Clamp { low, high }, None),
            label(LabelValues::Scale { low, high }, None),
        );
        let y = stored(&clamp, Cell::Number(v)).map_err(TestCaseError::fail)?;
        // Narrower intervals near 1e6 may hold no f32.
        prop_assert!((low..=high).contains(&f64::from(y)) || width < 0.2);
        let y = stored(&scale, Cell::Number(v)).map_err(TestCaseError::fail)?;
        prop_assert!(y.abs() <= 1.0);
    }

    #[test]
    fn errors_never_quote_the_cell(text in "[a-z]{12,20}") {
        for values in [
            LabelValues::ZeroOne,
            LabelValues::Clamp { low: 0.0, high: 1.0 },
            LabelValues::Count { max: 9 },
            LabelValues::Classes { classes: 3 },
        ] {
            let message = stored(&label(values, None), Cell::Text(&text)).unwrap_err();
            prop_assert!(!message.contains(&text));
        }
    }
}

#[test]
fn each_kind_reads_its_cells() {
    let clamp = label(
        LabelValues::Clamp {
            low: -2.0,
            high: 3.0,
        },
        Some(1.5),
    );
    assert_eq!(stored(&clamp, Cell::Number(7.0)), Ok(3.0));
    assert_eq!(stored(&clamp, Cell::Text("-2.5")), Ok(-2.0));
    assert_eq!(stored(&clamp, Cell::Text("NA")), Ok(1.5));
    let scale = label(
        LabelValues::Scale {
            low: 0.0,
            high: 4.0,
        },
        None,
    );
    assert_eq!(stored(&scale, Cell::Number(3.0)), Ok(0.5));
    assert!(
        stored(&scale, Cell::Missing)
            .unwrap_err()
            .contains("missing")
    );
    let count = label(LabelValues::Count { max: 5 }, None);
    assert_eq!(stored(&count, Cell::Number(4.0)), Ok(4.0));
    assert_eq!(stored(&count, Cell::Number(1e30)), Ok(5.0));
    assert!(stored(&count, Cell::Number(0.5)).is_err());
    assert!(stored(&count, Cell::Number(-1.0)).is_err());
    let class = label(LabelValues::Classes { classes: 3 }, None);
    assert_eq!(stored(&class, Cell::Number(2.0)), Ok(2.0));
    assert!(stored(&class, Cell::Number(3.0)).is_err());
    assert!(stored(&class, Cell::Number(f64::NAN)).is_err());
}

#[test]
fn bad_declarations_are_refused() {
    for (values, missing) in [
        (
            LabelValues::Clamp {
                low: 1.0,
                high: 1.0,
            },
            None,
        ),
        (
            LabelValues::Scale {
                low: 1.0,
                high: f64::NAN,
            },
            None,
        ),
        (
            LabelValues::Clamp {
                low: 0.0,
                high: 1e30,
            },
            None,
        ),
        (
            LabelValues::Clamp {
                low: 0.0,
                high: 1.0,
            },
            Some(f64::INFINITY),
        ),
        (
            LabelValues::Clamp {
                low: 0.0,
                high: 9.0,
            },
            Some(9.5),
        ),
        (
            LabelValues::Scale {
                low: 0.0,
                high: 9.0,
            },
            Some(-1.0),
        ),
        (LabelValues::Count { max: 4 }, Some(5.0)),
        (LabelValues::Count { max: 4 }, Some(f64::NAN)),
        (LabelValues::Count { max: 0 }, None),
        (LabelValues::Count { max: 4 }, Some(0.5)),
        (LabelValues::Classes { classes: 1 }, None),
        (LabelValues::Classes { classes: 3 }, Some(3.0)),
        (LabelValues::Classes { classes: 3 }, Some(0.5)),
        (LabelValues::ZeroOne, Some(1.0)),
    ] {
        assert!(
            label(values.clone(), missing).validate().is_err(),
            "{values:?}"
        );
    }
    for values in [
        LabelValues::Count { max: 4 },
        LabelValues::Classes { classes: 3 },
    ] {
        let fine = label(values, Some(2.0));
        assert!(fine.validate().is_ok() && fine.reads_missing());
    }
}

#[test]
fn a_missing_binary_label_is_no_answer() {
    let named = |positive: &[&str], negative: &[&str]| {
        let texts = |levels: &[&str]| levels.iter().map(|l| l.to_string()).collect();
        let (positive, negative) = (texts(positive), texts(negative));
        label(LabelValues::Named { positive, negative }, None)
    };
    let empty = [Cell::Text(""), Cell::Number(f64::NAN), Cell::Missing];
    let missing = [Cell::Text("NA"), Cell::Text(" ?")]
        .into_iter()
        .chain(empty);
    for cell in missing {
        for l in [named(&["yes"], &[]), named(&["yes"], &["no"])] {
            let message = stored(&l, cell).unwrap_err();
            assert!(message.contains("is missing; list every negative"));
            assert!(!message.contains("NA") && !message.contains('?'));
        }
        let message = stored(&label(LabelValues::ZeroOne, None), cell).unwrap_err();
        assert!(message.contains("is missing; declare"), "{message}");
    }
    for cell in empty {
        assert_eq!(stored(&named(&["yes", ""], &[]), cell), Ok(1.0));
        assert_eq!(stored(&named(&["yes"], &["no", ""]), cell), Ok(-1.0));
    }
    assert!(stored(&named(&["yes"], &["no", ""]), Cell::Text("NA")).is_err());
    let code = Cell::Text("NA");
    assert_eq!(stored(&named(&["yes"], &["no", "NA"]), code), Ok(-1.0));
    assert_eq!(stored(&named(&["yes"], &[]), Cell::Text("no")), Ok(-1.0));
}

/// An event's cell is among the texts of either list; without `censored` all others mean that it
/// was not seen. What other programs write for 1 is 1.
#[test]
fn an_event_was_seen_or_not_or_is_refused() {
    let event = |censored: &[&str]| SeenEvent {
        column: "died".into(),
        seen: vec!["1".into()],
        censored: censored.iter().map(|t| t.to_string()).collect(),
    };
    let seen = |censored: &[&str], cell| Label::is_seen(&event(censored), cell);
    for censored in [&["0"][..], &[]] {
        for cell in [Cell::Text("1"), Cell::Text(" 1.0 "), Cell::Number(1.0)] {
            assert_eq!(seen(censored, cell), Ok(true));
        }
        for cell in [Cell::Text("0"), Cell::Text("0.0"), Cell::Number(0.0)] {
            assert_eq!(seen(censored, cell), Ok(false));
        }
        assert!(seen(censored, Cell::Missing).is_err() && seen(censored, Cell::Text("")).is_err());
    }
    for odd in ["True", "10", "1.00", "01", "2"] {
        assert_eq!(seen(&[], Cell::Text(odd)), Ok(false), "{odd}");
        let refused = seen(&["0"], Cell::Text(odd)).unwrap_err();
        assert!(
            refused.contains("'censored'") && !refused.contains(odd),
            "{refused}"
        );
    }
    assert_eq!(seen(&["0", ""], Cell::Missing), Ok(false));
}
