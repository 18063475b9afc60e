//! Tests of products: their names, values and bounds, read from a table and row by row.

use super::*;
use crate::data::{
    Cell, Condition, FeatureKind, Form, Number, OneHot, Source, Storage, Transform, load,
};
use proptest::prelude::*;

fn feature(column: &str, kind: FeatureKind) -> Feature {
    Feature {
        column: Some(column.into()),
        kind,
        missing: None,
    }
}

fn levels(levels: &[&str], strict: bool, reference: Option<&str>) -> FeatureKind {
    FeatureKind::OneHot(OneHot {
        levels: levels.iter().map(|l| l.to_string()).collect(),
        strict,
        reference: reference.map(String::from),
        ..OneHot::default()
    })
}

fn number(low: f64, high: f64, transform: Option<Transform>, form: Form) -> FeatureKind {
    FeatureKind::Number(Number::new(low, high, transform, form))
}

fn features() -> Vec<Feature> {
    vec![
        Feature {
            column: None,
            kind: FeatureKind::Intercept,
            missing: None,
        },
        feature("age", number(0.0, 4.0, None, Form::Polynomial(2))),
        feature("age", FeatureKind::Indicator(Condition::Above(3.0))),
        feature("sex", levels(&["f", "m"], true, None)),
        feature("town", levels(&["u", "v"], false, Some("u"))),
        feature("pay", number(0.0, 9.0, Some(Transform::Sqrt), Form::Kept)),
        feature("bmi", number(0.0, 10.0, None, Form::Spline(vec![4.0, 5.0]))),
    ]
}

fn source(interactions: &[&[&str]]) -> Source {
    let features = features();
    let resolve = |parts: &&[&str]| {
        let parts: Vec<String> = parts.iter().map(|p| p.to_string()).collect();
        Interaction::new(&features, &parts).unwrap()
    };
    let interactions = interactions.iter().map(resolve).collect();
    Source {
        path: "t.csv".into(),
        label_file: None,
        features,
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
    }
}

const ALL: [&[&str]; 7] = [
    &["sex", "town"],
    &["age", "sex"],
    &["age>3", "pay"],
    &["sqrt(pay)", "age^2"],
    &["sex=f", "town", "bmi"],
    &["pay", "bmi"],
    &["age", "age>3"],
];

#[test]
fn products_are_named_valued_and_bounded() {
    let source = source(&ALL);
    let main = 1 + 2 + 1 + 2 + 2 + 1 + 3;
    let names = source.names();
    assert_eq!(
        names[main..main + 12],
        [
            "sex=f:town=v",
            "sex=f:town=other",
            "sex=m:town=v",
            "sex=m:town=other",
            "age:sex=f",
            "age:sex=m",
            "age^2:sex=f",
            "age^2:sex=m",
            "age>3:sqrt(pay)",
            "sqrt(pay):age^2",
            "sex=f:town=v:bmi~s1",
            "sex=f:town=v:bmi~s2",
        ]
    );
    assert_eq!(names.last().unwrap(), "age^2:age>3");
    let flags: Vec<&String> = names
        .iter()
        .zip(source.flags())
        .filter_map(|(name, flag)| flag.then_some(name))
        .collect();
    let mut want = vec![
        "intercept",
        "age>3",
        "sex=f",
        "sex=m",
        "town=v",
        "town=other",
    ];
    want.extend(names[main..main + 4].iter().map(String::as_str));
    assert_eq!(flags, want);
    let squares: Vec<f64> = source
        .interactions
        .iter()
        .map(Interaction::max_square)
        .collect();
    assert_eq!(squares, [1.0, 2.0, 9.0, 9.0, 1.0, 9.0, 2.0]);
    // 1 + 2 + 1 + 1 + 1 + 9 + 1 and the products.
    assert_eq!(source.norm_bound(), 49f64.sqrt());

    let folder = tempfile::tempdir().unwrap();
    let mut source = source;
    source.path = folder.path().join("t.csv");
    let table = "age,sex,town,pay,bmi\n3,f,v,4,10\n4,m,x,100,-3\n";
    std::fs::write(&source.path, table).unwrap();
    let set = load(&source).unwrap();
    let rows = set.as_public().rows();
    let want = [
        1.0, 0.5, -0.125, 0.0, 1.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 1.0,
    ];
    assert_eq!(rows[..main], want);
    let products = [
        1.0, 0.0, 0.0, 0.0, // sex:town
        0.5, 0.0, -0.125, 0.0, // age:sex
        0.0, -0.25, // age>3:pay, pay:age^2
        0.0, 0.0, 1.0, 0.0, 0.0, 0.0, // sex=f:town:bmi
        0.0, 0.0, 2.0, // pay:bmi
        0.0, 0.0, // age:age>3
    ];
    assert_eq!(rows[main..names.len()], products);
    // The second row is at its upper bounds: age, sex=m, town=other, pay; 9 of 16 and 16 of 33.
    let second: f64 = rows[names.len()..]
        .iter()
        .map(|v| f64::from(*v).powi(2))
        .sum();
    assert_eq!(
        second,
        (1.0 + 2.0 + 1.0 + 1.0 + 1.0 + 9.0) + (1.0 + 2.0 + 9.0 + 9.0 + 2.0)
    );
}

proptest! {
    #[test]
    fn rows_stay_within_the_implied_norm(age: f64, pay: f64, bmi in -2f64..12.0, sex in 0usize..2, town in 0usize..3) {
        prop_assume!(age.is_finite() && pay.is_finite());
        let source = source(&ALL);
        let mut row = Vec::new();
        for feature in &source.features {
            let cell = match feature.column.as_deref() {
                Some("age") => Cell::Number(age),
                Some("pay") => Cell::Number(pay),
                Some("bmi") => Cell::Number(bmi),
                Some("sex") => Cell::Text(["f", "m"][sex]),
                _ => Cell::Text(["u", "v", "w"][town]),
            };
            feature.push(cell, &mut row).map_err(TestCaseError::fail)?;
        }
        for interaction in &source.interactions {
            interaction.push(&mut row);
        }
        prop_assert_eq!(row.len(), source.names().len());
        let square: f64 = row.iter().map(|&v| f64::from(v).powi(2)).sum();
        prop_assert!(square.sqrt() <= source.norm_bound() * (1.0 + 1e-12));
    }
}

#[test]
fn what_cannot_be_multiplied_is_said() {
    let mut features = features();
    features.push(feature(
        "age",
        FeatureKind::Indicator(Condition::Above(1.0)),
    ));
    features.push(feature(
        "flag",
        FeatureKind::Indicator(Condition::Above(1.0)),
    ));
    features.push(feature(
        "flag",
        FeatureKind::Indicator(Condition::Above(2.0)),
    ));
    let wide: Vec<String> = (0..300).map(|i| i.to_string()).collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    features.push(feature("w1", levels(&wide, false, None)));
    features.push(feature("w2", levels(&wide, false, None)));
    let new = |parts: &[&str]| {
        let parts: Vec<String> = parts.iter().map(|p| p.to_string()).collect();
        Interaction::new(&features, &parts)
    };
    for (parts, says) in [
        (&["age"][..], "two or more"),
        (&[], "two or more"),
        (&["age", "age"], "the same feature"),
        (&["sex", "sex=f"], "one holds the other"),
        (&["age", "intercept"], "leave it out"),
        (
            &["age", "twon"],
            "'twon' is no column or feature of [[data.features]]; declare it there; the nearest is 'town'",
        ),
        (
            &["flag", "sex"],
            "several [[data.features]]; name one of what they make: flag>1, flag>2",
        ),
        (&["w1", "w2"], "more than 65536 columns"),
    ] {
        let what = new(parts).unwrap_err();
        assert!(what.contains(says), "{parts:?}: {what}");
    }
    // A curve is called by its column even where thresholds of it are features too.
    let product = new(&["age", "flag>2"]).unwrap();
    assert_eq!(product.max_square(), 2.0);
    assert!(product.equals(&new(&["flag>2", "age"]).unwrap()));
    assert!(!product.equals(&new(&["flag>2", "age>1"]).unwrap()));
}
