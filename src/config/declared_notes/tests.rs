//! Tests of notes: each fault of declarations has one, declarations without a fault have none.

use super::*;
use crate::data::{OneHot, Storage, Transform};

fn feature(column: &str, kind: FeatureKind) -> Feature {
    Feature {
        column: Some(column.into()),
        kind,
        missing: None,
    }
}

fn number(low: f64, high: f64, transform: Option<Transform>, form: Form) -> FeatureKind {
    FeatureKind::Number(Number::new(low, high, transform, form))
}

fn levels(reference: Option<&str>) -> FeatureKind {
    FeatureKind::OneHot(OneHot {
        levels: vec!["a".into(), "b".into(), "c".into()],
        reference: reference.map(String::from),
        ..OneHot::default()
    })
}

fn spline(knots: &[f64]) -> FeatureKind {
    number(18.0, 100.0, None, Form::Spline(knots.to_vec()))
}

fn one_of(levels: &[&str]) -> FeatureKind {
    let levels = levels.iter().map(|l| l.to_string()).collect();
    FeatureKind::Indicator(Condition::OneOf(levels))
}

/// Columns and what is declared of them.
type Declared = Vec<(&'static str, FeatureKind)>;

/// Notes on these features, beside an intercept or not.
fn notes(intercept: bool, features: &[(&str, FeatureKind)], products: &[&[&str]]) -> Vec<String> {
    let mut all = Vec::new();
    if intercept {
        all.push(Feature {
            column: None,
            kind: FeatureKind::Intercept,
            missing: None,
        });
    }
    all.extend(features.iter().map(|(c, k)| feature(c, k.clone())));
    let resolve = |parts: &&[&str]| {
        let parts: Vec<String> = parts.iter().map(|p| p.to_string()).collect();
        Interaction::new(&all, &parts).unwrap()
    };
    let interactions = products.iter().map(resolve).collect();
    let source = Source {
        path: "none.csv".into(),
        label_file: None,
        features: all,
        interactions,
        offset: None,
        label: None,
        row_norm: None,
        weights: None,
        bounds: None,
        unit: None,
        text: Default::default(),
        bad_cells: Default::default(),
        storage: Storage::F32,
        room: Default::default(),
    };
    source.notes()
}

#[test]
fn declarations_without_a_fault_have_no_note() {
    let age = ("age", FeatureKind::scale(18.0, 100.0));
    let log = |low, high, form| number(low, high, Some(Transform::Log), form);
    let above = |v| ("age", FeatureKind::Indicator(Condition::Above(v)));
    let sds = |mean, sd| Form::Standardized { mean, sd };
    let fine: [(bool, Declared); 12] = [
        (true, vec![age.clone()]),
        (false, vec![age.clone()]),
        (false, vec![("r", levels(None)), age.clone()]),
        (true, vec![("r", levels(Some("a"))), age.clone()]),
        (true, vec![("age", spline(&[30.0, 50.0, 70.0]))]),
        (true, vec![("age", spline(&[19.0, 20.0, 99.0]))]),
        (
            true,
            vec![("age", number(18.0, 100.0, None, Form::Polynomial(10)))],
        ),
        (true, vec![("pay", log(1.0, 1e6, Form::Polynomial(3)))]),
        (
            true,
            vec![
                ("pay", log(1.0, 1e6, Form::Kept)),
                ("age", FeatureKind::clamp(-1.0, 1.0)),
            ],
        ),
        // A threshold at and beyond the bounds, and two of them.
        (
            true,
            vec![age.clone(), above(65.0), above(80.0), above(100.0)],
        ),
        (true, vec![("x", number(20.0, 90.0, None, sds(50.0, 10.0)))]),
        (
            true,
            vec![
                ("pay", log(1.0, 1e6, Form::Scaled)),
                ("pay", FeatureKind::scale(1.0, 1e6)),
            ],
        ),
    ];
    for (intercept, features) in fine {
        let found = notes(intercept, &features, &[]);
        assert!(found.is_empty(), "{features:?}: {found:?}");
    }
    let both = [("r", levels(Some("a"))), ("t", levels(Some("b"))), age];
    let found = notes(
        true,
        &both,
        &[&["r", "t"], &["r", "age"], &["r", "t", "age"]],
    );
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn each_fault_has_a_note() {
    let age = ("age", FeatureKind::scale(18.0, 100.0));
    let sds = |mean, sd| Form::Standardized { mean, sd };
    let sqrt = Some(Transform::Sqrt);
    let faults: [(bool, Declared, &str); 14] = [
        (
            true,
            vec![("r", levels(None))],
            "each of intercept, r adds up to 1",
        ),
        (
            false,
            vec![("r", levels(None)), ("s", levels(None))],
            "each of r, s adds up to 1",
        ),
        (
            false,
            vec![("r", levels(Some("a")))],
            "what 'r' is counted from",
        ),
        (
            false,
            vec![("age", spline(&[50.0]))],
            "what 'age' is counted from",
        ),
        (
            true,
            vec![("year", FeatureKind::clamp(1900.0, 2020.0))],
            "'year' reaches 2020",
        ),
        (
            true,
            vec![("x", FeatureKind::clamp(9.0, 10.0))],
            "'x' hardly varies",
        ),
        (
            true,
            vec![("x", number(20.0, 600.0, None, sds(50.0, 10.0)))],
            "up to 55 sds",
        ),
        (
            true,
            vec![("x", number(20.0, 90.0, sqrt, sds(50.0, 10.0)))],
            "mean 50 of 'sqrt(x)' lies outside",
        ),
        (
            true,
            vec![age.clone(), ("age", spline(&[50.0]))],
            "'age~s2' is nearly a sum",
        ),
        (
            true,
            vec![
                ("x", FeatureKind::scale(100.0, 120.0)),
                ("x", number(100.0, 120.0, sqrt, Form::Scaled)),
            ],
            "'sqrt(x)' is nearly a sum",
        ),
        (
            true,
            vec![("r", levels(Some("a"))), ("r", one_of(&["b", "c"]))],
            "'r=(b|c)' is nearly a sum",
        ),
        (
            false,
            vec![("r", levels(None)), ("r", one_of(&["b", "c"]))],
            "'r=(b|c)' is nearly a sum",
        ),
        (
            true,
            vec![
                ("age", FeatureKind::Indicator(Condition::Above(65.0))),
                ("age", FeatureKind::Indicator(Condition::Below(65.0))),
            ],
            "'age<65' is nearly a sum",
        ),
        (
            true,
            vec![
                age.clone(),
                ("age", one_of(&["20", "30"])),
                ("age", number(18.0, 100.0, None, Form::Kept)),
            ],
            "nearly a sum",
        ),
    ];
    for (intercept, features, says) in faults {
        let found = notes(intercept, &features, &[]).join("\n");
        assert!(found.contains(says), "{features:?}: {found}");
    }
    let found = notes(false, &[("r", levels(None)), age.clone()], &[&["age", "r"]]);
    assert!(
        found.len() == 1 && found[0].contains("of age:r add up to those of age"),
        "{found:?}"
    );
    let three = [("r", levels(None)), age, ("t", levels(Some("a")))];
    let product: &[&str] = &["r", "age", "t"];
    assert!(notes(false, &three, &[product]).is_empty());
    let found = notes(false, &three, &[product, &["t", "age"]]);
    assert!(
        found.len() == 1 && found[0].contains("of r:age:t add up to those of age:t"),
        "{found:?}"
    );
}
