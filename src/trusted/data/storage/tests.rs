//! Tests of the grids: what they hold exactly, how far rounding goes, and that a row that is
//! rounded stays in its ball.

use super::*;
use crate::data::{Dataset, Feature, FeatureKind, Form, Number, OneHot};
use proptest::prelude::*;

fn number(low: f64, high: f64, form: Form) -> Feature {
    Feature {
        column: Some("a".into()),
        kind: FeatureKind::Number(Number::new(low, high, None, form)),
        missing: None,
    }
}

fn kept(low: f64, high: f64) -> Column {
    number(low, high, Form::Kept).columns()[0]
}

fn scaled(low: f64, high: f64) -> Column {
    number(low, high, Form::Scaled).columns()[0]
}

fn rounded(column: Column, norm: f64, value: f32) -> f32 {
    let grid = column.grid(norm);
    grid.value(grid.integer(f64::from(value), false))
}

/// Columns as declarations make them, and some at the ends of what can be declared.
fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::UNIT,
        kept(0.0, 100.0),
        kept(-2.3, 1.0),
        kept(0.0, 0.3),
        kept(0.0, 32_767.0),
        kept(-40_000.0, 7.0),
        kept(-1e18, 1e18),
        kept(0.0, 1e-12),
        scaled(0.0, 100.0),
        scaled(17.0, 90.0),
        scaled(0.0, 32_767.0),
        scaled(0.0, 1e9),
        scaled(0.0, 1.0).times(scaled(0.0, 7.0)),
    ];
    columns.extend((1..300).map(|k| kept(0.0, f64::from(k) * 0.37)));
    columns.extend((1..300).map(|k| scaled(0.0, f64::from(k))));
    columns
}

#[test]
fn zero_one_and_whole_numbers_are_held() {
    for column in columns() {
        for norm in [1e30, 3.0, 1.0] {
            assert_eq!(rounded(column, norm, 0.0), 0.0);
            if column.bound.min(norm) >= 1.0 && column.bound <= 32_767.0 {
                assert_eq!(rounded(column, norm, 1.0), 1.0, "{column:?} {norm}");
                assert_eq!(rounded(column, norm, -1.0), -1.0, "{column:?} {norm}");
            }
        }
    }
    for high in [1.0, 2.0, 9.0, 100.0, 255.0, 4_096.0, 20_000.0, 32_767.0] {
        for v in 0..=high as i32 {
            let v = v as f32;
            assert_eq!(rounded(kept(-3.0, high), 1e30, v), v, "{high}");
        }
    }
}

/// A whole number between whole bounds, mapped onto [−1, 1], stays what it is in f32.
#[test]
fn whole_numbers_stay_exact_when_scaled() {
    let ends = [
        (0.0, 100.0),
        (17.0, 90.0),
        (0.0, 255.0),
        (-1_000.0, 1_000.0),
    ];
    for (low, high) in ends {
        let feature = number(low, high, Form::Scaled);
        for v in low as i32..=high as i32 {
            let exact = 2.0 * ((f64::from(v) - low) / (high - low)) - 1.0;
            let got = f64::from(rounded(feature.columns()[0], 1e30, exact as f32));
            let f32s = f64::from(f32::EPSILON) * exact.abs();
            assert!((got - exact).abs() <= f32s, "{v} of [{low}, {high}]");
        }
    }
}

#[test]
fn columns_follow_the_features() {
    let one_hot = Feature {
        column: Some("b".into()),
        kind: FeatureKind::OneHot(OneHot {
            levels: vec!["x".into(), "y".into()],
            ..OneHot::default()
        }),
        missing: None,
    };
    let features = [
        number(0.0, 9.0, Form::Kept),
        number(0.0, 9.0, Form::Polynomial(4)),
        number(0.0, 9.0, Form::Spline(vec![2.0, 5.0])),
        one_hot,
    ];
    for feature in features {
        assert_eq!(feature.columns().len(), feature.names().len());
    }
    assert_eq!(kept(-3.0, 2.0).bound, 3.0);
    assert_eq!(scaled(0.0, 100.0).times(Column::UNIT).parts, 50.0);
}

/// No value is beyond the bound; each is its own nearest one, as its negative is; a step is as fine
/// as 16 bits allow, but where whole numbers ask for another.
#[test]
fn grids_fill_the_bounds() {
    for column in columns() {
        for norm in [1e30, 2.7] {
            let (grid, bound) = (column.grid(norm), column.bound.min(norm));
            for m in 0..=grid.most as i16 {
                assert_eq!(grid.value(-m), -grid.value(m));
                assert_eq!(grid.integer(f64::from(grid.value(m)), false), m);
            }
            let end = f64::from(grid.value(grid.most as i16));
            assert!(end <= bound * (1.0 + 1e-7), "{column:?} {norm}");
            assert!(end >= bound - f64::from(grid.step), "{column:?} {norm}");
            let share = f64::from(grid.step) * 32_767.0 / bound;
            assert!(share < 2.0, "{column:?} {norm}: {share}");
            let free = column.parts == 1.0 && (bound <= 10.0 || bound > 32_767.0);
            assert!(!free || share < 1.01, "{column:?} {norm}: {share}");
        }
    }
    assert!(f64::from(Column::UNIT.grid(1e30).step) < 1.0001 / 32_767.0);
}

proptest! {
    /// Within half a step of where it was; in the ball where it was in the ball.
    #[test]
    fn rows_stay_in_their_ball(
        raw in prop::collection::vec(-1f64..1.0, 1..40), far in 0.5f64..1.5, share in 0.01f64..1.0
    ) {
        let norm = raw.iter().map(|v| v * v).sum::<f64>().sqrt();
        let names = (0..raw.len()).map(|j| j.to_string()).collect();
        let row: Vec<f32> = raw.iter().map(|v| (v * far / norm) as f32).collect();
        let mut plain = Dataset::builder(names, false, 1.0).unwrap();
        for bound in [share, 1.0] {
            plain.push_bounded(&row, None, bound).unwrap();
        }
        let plain = plain.finish().unwrap();
        let before = plain.public_rows();
        let after = plain.in_16_bits();
        let (rows, d) = (after.public_rows(), row.len());
        // Bounds of rows are rounded up.
        let share = (share * f64::powi(2.0, 20)).ceil() * f64::powi(2.0, -20);
        for (i, most) in [share, 1.0].into_iter().enumerate() {
            let row = &rows[i * d..][..d];
            let norm = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            prop_assert!(norm <= most * (1.0 + 1.3e-7), "{norm} of {most}");
            let step = 1.0 / 32_767.0;
            for (a, b) in row.iter().zip(&before[i * d..]) {
                let error = f64::from((a - b).abs());
                // The last term is f32's.
                let allowed = if norm < most - step * d as f64 { 0.5 * step } else { step };
                prop_assert!(error <= allowed + 1e-7, "{a} for {b}");
            }
        }
    }
}

/// A table in 16 bits reads back as its rounded rows, however it was put together.
#[test]
fn rows_read_back_as_they_were_rounded() {
    let names = || vec!["a".into(), "b".into(), "c".into()];
    let columns = [Column::UNIT, kept(0.0, 50.0), scaled(0.0, 9.0)];
    let start = || {
        Dataset::builder(names(), true, 60.0)
            .unwrap()
            .on_grids(&columns)
    };
    let row = |i: usize| {
        let x = i as f32;
        [(x * 0.7).sin(), (i % 51) as f32 + 0.0005, (x * 0.3).cos()]
    };
    let (mut whole, mut blocks) = (start(), start());
    for size in [16usize, 7, 20] {
        let mut block = blocks.like();
        for _ in 0..size {
            let i = whole.rows();
            whole.push(&row(i), Some(i % 3 == 0)).unwrap();
            block.push(&row(i), Some(i % 3 == 0)).unwrap();
        }
        blocks.append(block);
    }
    let (whole, blocks) = (whole.finish().unwrap(), blocks.finish().unwrap());
    assert_eq!(whole.storage(), Storage::I16);
    // Three tiles and their labels.
    assert_eq!(whole.bytes(), 48 * (2 * 3 + 4));
    let rows = whole.public_rows();
    assert_eq!(rows, blocks.public_rows());
    assert_eq!(whole.labels(), blocks.labels());
    let mut read = [0.0f64; 3];
    let mut tile = vec![0.0; 3 * TILE];
    for i in 0..43 {
        whole.copy_row(i, &mut read);
        whole.gather(&[i as u64], &mut tile);
        for j in 0..3 {
            let expected = rounded(columns[j], 60.0, row(i)[j]);
            assert_eq!(rows[3 * i + j], expected);
            assert_eq!(read[j], f64::from(expected));
            assert_eq!(tile[j * TILE], expected);
        }
        assert_eq!(rows[3 * i + 1], (i % 51) as f32);
    }
}
