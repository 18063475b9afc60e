//! Tests of numbers as features: exact values of every form, bounds of any value, refusals.

use super::*;
use crate::data::Cell;
use crate::data::{Feature, FeatureKind};
use proptest::prelude::*;

fn values(number: &Number, x: f64) -> Vec<f32> {
    let mut out = Vec::new();
    number.push(x, &mut out);
    out
}

fn standardized(mean: f64, sd: f64) -> Form {
    Form::Standardized { mean, sd }
}

#[test]
fn every_form_has_these_values() {
    use Transform::{Asinh, Log, Log1p, Sqrt};
    let number = |low, high, transform: Option<Transform>, form: Form| {
        let number = Number::new(low, high, transform, form);
        assert_eq!(number.check(), Ok(()));
        number
    };
    let plain = number(18.0, 100.0, None, Form::Scaled);
    let log = number(1.0, 100.0, Some(Log), Form::Scaled);
    let log1p = number(0.0, 3.0, Some(Log1p), Form::Scaled);
    let sqrt = number(0.0, 16.0, Some(Sqrt), Form::Scaled);
    let asinh = number(-10.0, 10.0, Some(Asinh), Form::Scaled);
    let half = (10f64.asinh() / 2.0).sinh();
    let kept = number(0.0, 9.0, Some(Sqrt), Form::Kept);
    let sds = number(20.0, 90.0, None, standardized(50.0, 10.0));
    let logs = number(1.0, 100.0, Some(Log), standardized(10f64.ln(), 2.0));
    let curve = number(0.0, 4.0, None, Form::Polynomial(3));
    let bent = number(0.0, 10.0, None, Form::Spline(vec![5.0]));
    let log_bent = number(1.0, 100.0, Some(Log), Form::Spline(vec![10.0]));
    let bend = [2.0 / 3.0, 1.0 / 6.0];
    let cases: [(&Number, f64, &[f64]); 28] = [
        (&plain, 59.0, &[0.0]),
        (&plain, 18.0, &[-1.0]),
        (&plain, 1e300, &[1.0]),
        (&log, 1.0, &[-1.0]),
        (&log, 10.0, &[0.0]),
        (&log, 1000.0, &[1.0]),
        (&log, -5.0, &[-1.0]),
        (&log1p, 1.0, &[0.0]),
        (&log1p, -7.0, &[-1.0]),
        (&sqrt, 1.0, &[-0.5]),
        (&sqrt, 4.0, &[0.0]),
        (&sqrt, -4.0, &[-1.0]),
        (&asinh, 0.0, &[0.0]),
        (&asinh, half, &[0.5]),
        (&asinh, -1e308, &[-1.0]),
        (&kept, 4.0, &[2.0]),
        (&kept, 1e9, &[3.0]),
        (&sds, 60.0, &[1.0]),
        (&sds, 1e9, &[4.0]),
        (&sds, -1e9, &[-3.0]),
        (&logs, 10.0, &[0.0]),
        (&logs, 100.0, &[10f64.ln() / 2.0]),
        (&curve, 3.0, &[0.5, -0.125, -0.4375]),
        (&curve, 0.0, &[-1.0, 1.0, -1.0]),
        (&bent, 5.0, &bend),
        (&bent, -1.0, &[0.0, 0.0]),
        (&bent, 11.0, &[0.0, 1.0]),
        (&log_bent, 10.0, &bend),
    ];
    for (number, x, want) in cases {
        let found = values(number, x);
        assert_eq!(found.len(), want.len(), "{number:?} at {x}");
        for (found, want) in found.iter().zip(want) {
            let off = (f64::from(*found) - want).abs();
            assert!(off < 2e-7, "{number:?} at {x}: {found} for {want}");
        }
    }
    for (number, square) in [
        (&log, 1.0),
        (&kept, 9.0),
        (&sds, 16.0),
        (&curve, 3.0),
        (&bent, 1.0),
    ] {
        assert_eq!(number.max_square(), square, "{number:?}");
    }
    assert_eq!(log.names("x"), ["log(x)"]);
    assert_eq!(curve.names("x"), ["x", "x^2", "x^3"]);
    assert_eq!(log_bent.names("x"), ["log(x)~s1", "log(x)~s2"]);
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Kept),
        Just(Form::Scaled),
        (-1e3f64..1e3, 1e-3f64..1e3).prop_map(|(mean, sd)| standardized(mean, sd)),
        (2u32..=10).prop_map(Form::Polynomial),
        // Shares of the range until the bounds are known.
        prop::collection::btree_set(1u32..100, 1..8)
            .prop_map(|knots| Form::Spline(knots.into_iter().map(f64::from).collect())),
    ]
}

fn any_number() -> impl Strategy<Value = Number> {
    let transform = prop::option::of(prop_oneof![
        Just(Transform::Log),
        Just(Transform::Log1p),
        Just(Transform::Sqrt),
        Just(Transform::Asinh),
    ]);
    (1e-6f64..1e6, 1e-3f64..1e6, any::<bool>(), transform, form()).prop_map(
        |(low, width, below, transform, form)| {
            let free = matches!(transform, None | Some(Transform::Asinh));
            let low = if below && free { -low } else { low };
            let form = match form {
                Form::Spline(shares) => {
                    let knot = |share: &f64| low + width * share / 100.0;
                    Form::Spline(shares.iter().map(knot).collect())
                }
                other => other,
            };
            Number::new(low, low + width, transform, form)
        },
    )
}

proptest! {
    /// Whatever a cell holds: an error, or finite columns within the declared square.
    #[test]
    fn columns_stay_within_their_bound(number in any_number(), any: f64, share in -0.5f64..1.5) {
        prop_assume!(number.check().is_ok());
        let [low, high] = number.bounds();
        let (square, width) = (number.max_square(), number.names("x").len());
        let inside = matches!(number.form(), Form::Scaled | Form::Polynomial(_) | Form::Spline(_));
        let f = Feature {
            column: Some("x".into()),
            kind: FeatureKind::Number(number),
            missing: None,
        };
        for x in [any, low + share * (high - low), low, high, -0.0, f64::MAX, f64::INFINITY, f64::NAN] {
            let mut out = Vec::new();
            let read = f.push(Cell::Number(x), &mut out);
            prop_assert_eq!(read.is_ok(), x.is_finite());
            if x.is_finite() {
                prop_assert_eq!(out.len(), width);
                prop_assert!(out.iter().all(|v| v.is_finite()));
                prop_assert!(!inside || out.iter().all(|v| v.abs() <= 1.0));
                let sum: f64 = out.iter().map(|&v| f64::from(v).powi(2)).sum();
                prop_assert!(sum <= square, "{sum} beyond {square}");
            }
        }
    }

    #[test]
    fn rounding_toward_zero_never_grows(v in any::<f64>()) {
        prop_assume!(v.is_finite() && v.abs() < 1e38);
        prop_assert!(f64::from(toward_zero(v)).abs() <= v.abs());
    }
}

#[test]
fn impossible_declarations_name_their_key() {
    let refused = |low, high, transform, form| {
        let number = Number::new(low, high, transform, form);
        number.check().unwrap_err()
    };
    let spline = |knots: &[f64]| Form::Spline(knots.to_vec());
    use Transform::{Asinh, Log, Log1p, Sqrt};
    for (low, high, transform, form, key, says) in [
        (
            0.0,
            9.0,
            Some(Log),
            Form::Scaled,
            "transform",
            "above 0; log1p takes 0, not 0",
        ),
        (
            -1.0,
            9.0,
            Some(Log1p),
            Form::Scaled,
            "transform",
            "above -1",
        ),
        (-0.5, 9.0, Some(Sqrt), Form::Kept, "transform", "0 or more"),
        (9.0, 0.0, Some(Log), Form::Scaled, "", "reversed"),
        (f64::NAN, 0.0, None, Form::Scaled, "", "finite"),
        (-1e308, 1e308, None, Form::Scaled, "", "too far apart"),
        (
            -1e308,
            1.7e308,
            Some(Asinh),
            Form::Scaled,
            "",
            "too far apart",
        ),
        (
            1e300,
            1e300f64.next_up(),
            Some(Log),
            Form::Scaled,
            "",
            "too close",
        ),
        (0.0, 1e19, None, Form::Kept, "", "use scale"),
        (0.0, 1.0, None, standardized(0.0, 1e-300), "", "use scale"),
        (
            0.0,
            1.0,
            None,
            standardized(0.0, 0.0),
            "standardize",
            "positive",
        ),
        (
            0.0,
            1.0,
            None,
            standardized(0.0, -1.0),
            "standardize",
            "positive",
        ),
        (
            0.0,
            1.0,
            None,
            standardized(f64::NAN, 1.0),
            "standardize",
            "finite mean",
        ),
        (
            0.0,
            1.0,
            None,
            Form::Polynomial(1),
            "polynomial",
            "between 2 and 10",
        ),
        (
            0.0,
            1.0,
            None,
            Form::Polynomial(u32::MAX),
            "polynomial",
            "between 2 and 10",
        ),
        (0.0, 1.0, None, spline(&[]), "spline", "1 to 50 knots"),
        (
            0.0,
            1.0,
            None,
            spline(&[0.5; 51]),
            "spline",
            "1 to 50 knots",
        ),
        (
            0.0,
            1.0,
            None,
            spline(&[0.0, 0.5]),
            "spline",
            "inside the bounds (0, 1)",
        ),
        (
            0.0,
            1.0,
            None,
            spline(&[f64::NAN]),
            "spline",
            "inside the bounds",
        ),
        (0.0, 1.0, None, spline(&[0.5, 0.5]), "spline", "increase"),
        (0.0, 1.0, None, spline(&[0.5, 0.2]), "spline", "increase"),
        (
            0.0,
            1.0,
            None,
            spline(&[0.5, 0.5 + 1e-9]),
            "spline",
            "closer together",
        ),
    ] {
        let (at, what) = refused(low, high, transform, form);
        assert_eq!(at, key, "{what}");
        assert!(what.contains(says), "{what}");
    }
}
