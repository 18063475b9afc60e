//! Gradients: each form against the oracle, the clip as a fact about integers, same bits.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::cpu::{CpuEngine, InstructionSet};
use super::test_cases::{self, Case, layered, networks_and_declared};
use super::{Engine, GradientQuery, GradientSum, Rows};
use crate::data::{Dataset, LabelKind};
use crate::model::{Layered, Mlp, Model, Prior, Regression};
use crate::network::{Layer, Network, Volume};

/// How far a coordinate of an unclipped row may lie from the f64 oracle: relative to the
/// largest coordinate of the row, f32's rounding through a few operations; the same of what a
/// regression's label is subtracted from; half a grid step.
pub(super) fn tolerance(largest: f64, predicted: f64) -> f64 {
    0.51 + 4e-6 * largest + 2e-6 * predicted
}

/// Every model but the anchored one, whose gradient is another model's.
pub(super) fn cases() -> Vec<Case> {
    let all = test_cases::cases()
        .into_iter()
        .chain(networks_and_declared());
    all.filter(|c| c.model.prior().anchor.is_none()).collect()
}

pub(super) fn thetas(d: usize, chains: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    (0..chains)
        .map(|_| (0..d).map(|_| 4.0 * rng.random::<f64>() - 2.0).collect())
        .collect()
}

pub(super) fn query(model: &dyn Model, thetas: &[Vec<f64>], clip: f64) -> GradientQuery {
    let thetas: Vec<&[f64]> = thetas.iter().map(Vec::as_slice).collect();
    GradientQuery::new(model, &thetas, clip).unwrap()
}

/// The gradient of each row alone.
fn each_row(engine: &mut dyn Engine, q: &GradientQuery, rows: usize) -> Vec<GradientSum> {
    (0..rows as u64)
        .flat_map(|i| {
            let lists = vec![vec![i]; q.chains()];
            engine.gradient_sums(q, Rows::Listed(&lists)).unwrap()
        })
        .collect()
}

pub(super) fn label(data: &Dataset, i: usize) -> f64 {
    data.labels().get(i).map_or(0.0, |y| f64::from(*y))
}

/// Unclipped rows match the oracle, clipped ones its direction at the clip's length.
#[test]
fn rows_match_the_oracle() {
    for set in InstructionSet::available() {
        for case in cases() {
            let (data, model) = (&case.data, &*case.model);
            let mut engine = CpuEngine::with(data.clone(), set, 64);
            let points = thetas(model.dim(), 3, 5);
            let mut row = vec![0.0; data.width()];
            for clip in [1e-3, 0.05, 0.6, 30.0] {
                let q = query(model, &points, clip);
                let d = model.dim() as f64;
                let bound = f64::from(q.grid().bound());
                let shorter = (d + 16.0) * f64::powi(2.0, -23) + (d.sqrt() + 1.0) / bound + 2e-6;
                let mut clipped = 0;
                for i in 0..100 {
                    data.copy_row(i, &mut row);
                    let lists = vec![vec![i as u64]; 3];
                    let sums = engine.gradient_sums(&q, Rows::Listed(&lists)).unwrap();
                    for (theta, sum) in points.iter().zip(sums) {
                        let exact = model.gradient(&row, label(data, i), theta);
                        let norm = exact.iter().map(|g| g * g).sum::<f64>().sqrt();
                        let shrink = (q.grid().clip_bound() / norm).min(1.0);
                        let unit = shrink / q.grid().step();
                        let largest = exact.iter().fold(0.0f64, |m, g| m.max(g.abs())) * unit;
                        // Of a row with the label 0: the prediction alone.
                        let bare = model.gradient(&row, 0.0, theta);
                        let predicted = bare.iter().fold(0.0f64, |m, g| m.max(g.abs())) * unit;
                        clipped += sum.clipped;
                        let over = norm / q.grid().clip_bound();
                        if !(0.999..1.001).contains(&over) {
                            assert_eq!(sum.clipped, u64::from(over > 1.0), "{}", model.name());
                        }
                        for (g, s) in exact.iter().zip(&sum.steps) {
                            // A clipped row is shorter by the limit's margin.
                            let error = (g * unit - *s as f64).abs();
                            let margin = if sum.clipped > 0 {
                                shorter * largest + 1.0
                            } else {
                                0.0
                            };
                            assert!(
                                error <= tolerance(largest, predicted) + margin,
                                "{} {set:?} row {i} clip {clip}: {} for {}",
                                model.name(),
                                s,
                                g * unit
                            );
                        }
                    }
                }
                assert!(clip > 0.002 || clipped >= 30);
            }
        }
    }
}

/// Sums are of the rows, for any block, thread count, chain group and listing.
#[test]
fn sums_are_the_rows_sums_bit_for_bit() {
    for set in InstructionSet::available() {
        for case in cases() {
            let (data, model) = (&case.data, &*case.model);
            let points = thetas(model.dim(), 5, 6);
            let q = query(model, &points, 0.3);
            let mut engine = CpuEngine::with(data.clone(), set, 4096);
            let rows = each_row(&mut engine, &q, data.rows());
            let mut expected = vec![GradientSum::default(); 5];
            for (c, sum) in expected.iter_mut().enumerate() {
                sum.steps = vec![0; model.dim()];
                for row in rows.iter().skip(c).step_by(5) {
                    sum.steps
                        .iter_mut()
                        .zip(&row.steps)
                        .for_each(|(a, b)| *a += b);
                    sum.clipped += row.clipped;
                }
            }
            for block in [16, 48, 4096] {
                let mut engine = CpuEngine::with(data.clone(), set, block);
                assert_eq!(engine.gradient_sums(&q, Rows::All).unwrap(), expected);
            }
            let backwards: Vec<u64> = (0..data.rows() as u64).rev().collect();
            let lists = vec![backwards; 5];
            let listed = engine.gradient_sums(&q, Rows::Listed(&lists)).unwrap();
            assert_eq!(listed, expected);
            let none = engine
                .gradient_sums(&q, Rows::Listed(&vec![vec![]; 5]))
                .unwrap();
            assert!(
                none.iter()
                    .all(|s| s.steps.iter().all(|v| *v == 0) && s.clipped == 0)
            );
            let one = engine.gradient_sums(&q, Rows::Listed(&[vec![]]));
            assert!(one.is_err(), "lists for every chain");
        }
    }
}

/// Adversarial rows: one large coordinate and many tiny ones, all equal, axis-aligned,
/// at scales where f32 loses the small ones.
pub(super) fn adversarial(d: usize) -> Vec<Vec<f32>> {
    let tiny = |e: f32| {
        let mut row = vec![e; d];
        row[0] = 1.0;
        row
    };
    let mut rows: Vec<Vec<f32>> = [2f32.powi(-12), 2f32.powi(-13), 1e-3, 1e-7, 0.3, 1.0]
        .iter()
        .map(|e| tiny(e * (1.0 - f32::EPSILON)))
        .collect();
    rows.push(vec![1e-30; d]);
    rows.push(vec![0.0; d]);
    let mut rng = ChaCha12Rng::seed_from_u64(d as u64);
    for _ in 0..24 {
        rows.push((0..d).map(|_| rng.random::<f32>() - 0.5).collect());
    }
    rows
}

/// `Σ q_j² ≤ bound²` in integers; the share of the bound that it reaches.
pub(super) fn assert_in_ball(q: &GradientQuery, sum: &GradientSum, what: &str) -> f64 {
    let bound = i128::from(q.grid().bound());
    let square: i128 = sum.steps.iter().map(|s| i128::from(*s).pow(2)).sum();
    assert!(square <= bound * bound, "{what}: {square}");
    square as f64 / (bound * bound) as f64
}

/// `Σ q_j² ≤ bound²` in integers for every row, whatever its gradient, and met to 1e-4.
#[test]
fn no_row_leaves_the_ball() {
    for d in [1usize, 2, 33, 34, 35, 1_000, 100_000] {
        let names: Vec<String> = (0..d).map(|j| format!("x{j}")).collect();
        let mut builder = Dataset::builder(names.clone(), true, 1e4).unwrap();
        let rows = adversarial(d);
        for (i, row) in rows.iter().enumerate() {
            builder.push(row, Some(i % 2 == 0)).unwrap();
        }
        let data = Arc::new(builder.finish().unwrap());
        let model = Regression::logistic(&names, 1e4, Prior::normal(d, 1.0), 1.0).unwrap();
        for set in InstructionSet::available() {
            let mut engine = CpuEngine::with(data.clone(), set, 16);
            let mut largest = 0.0f64;
            for clip in [0.999_999, 0.5, 0.3, 1e-4, 1e-20, 3e5] {
                let q = query(&model, &[vec![0.0; d]], clip);
                for sum in each_row(&mut engine, &q, rows.len()) {
                    let what = format!("d {d} clip {clip} {set:?}");
                    largest = largest.max(assert_in_ball(&q, &sum, &what));
                }
            }
            let slack = 2e-4 + 3e-6 * (d as f64).sqrt() + 1e-6 * d as f64;
            assert!(
                largest > 1.0 - slack,
                "d {d} {set:?}: never near the edge, {largest}"
            );
        }
    }
}

/// As above for networks, whose gradients are quantised from their factors: small and large
/// weights, one feature to 1e5 parameters.
#[test]
fn no_row_of_a_network_leaves_the_ball() {
    let binary = LabelKind::Binary;
    let ten = LabelKind::Class { classes: 10 };
    for (features, hidden, label) in [
        (1usize, 1usize, binary),
        (33, 1, binary),
        (2, 300, binary),
        (20, 30, ten),
        (1_000, 98, ten),
    ] {
        let names: Vec<String> = (0..features).map(|j| format!("x{j}")).collect();
        let mut builder = Dataset::builder_with(names.clone(), Some(label), 1e25).unwrap();
        let mut rows = adversarial(features);
        rows.push(vec![3e20; features]);
        for (i, row) in rows.iter().enumerate() {
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
            let y = if label == binary {
                sign
            } else {
                (i % 10) as f64
            };
            builder.push_value(row, Some(y)).unwrap();
        }
        let data = Arc::new(builder.finish().unwrap());
        let d = Mlp::shape(features, hidden, label).unwrap().parameters();
        let model = Mlp::new(&names, hidden, label, Prior::normal(d, 1.0), 1.0).unwrap();
        let set = InstructionSet::detect();
        let mut engine = CpuEngine::with(data, set, 16);
        let mut largest = 0.0f64;
        for (size, clip) in [
            (1e-3, 0.3),
            (1.0, 1e-4),
            (1.0, 0.999_999),
            (1e12, 0.5),
            (1e-30, 1e-20),
        ] {
            let mut theta = thetas(d, 1, 3);
            theta[0].iter_mut().for_each(|t| *t *= size);
            let q = query(&model, &theta, clip);
            for sum in each_row(&mut engine, &q, rows.len()) {
                let what = format!("d {d} size {size} clip {clip}");
                largest = largest.max(assert_in_ball(&q, &sum, &what));
            }
        }
        let slack = 2e-4 + 3e-6 * (d as f64).sqrt() + 1e-6 * d as f64;
        assert!(
            largest > 1.0 - slack,
            "d {d}: never near the edge, {largest}"
        );
    }
}

/// θ that overflows f32, or is not finite, bounds every row all the same.
#[test]
fn wild_parameters_stay_within_the_ball() {
    for case in cases() {
        let (data, model) = (&case.data, &*case.model);
        let d = model.dim();
        for set in InstructionSet::available() {
            let mut engine = CpuEngine::with(data.clone(), set, 16);
            for value in [1e30, -1e38, 1e300, f64::INFINITY, f64::NAN] {
                let q = query(model, &[vec![value; d]], 0.7);
                let bound = i128::from(q.grid().bound());
                for sum in each_row(&mut engine, &q, 64) {
                    let square: i128 = sum.steps.iter().map(|s| i128::from(*s).pow(2)).sum();
                    assert!(square <= bound * bound, "{} {value}", model.name());
                }
            }
        }
    }
}

/// The oracle itself, against central differences of the log ratio.
#[test]
fn gradients_are_derivatives_of_log_ratios() {
    for case in cases() {
        let (data, model) = (&case.data, &*case.model);
        let mut row = vec![0.0; data.width()];
        for (i, theta) in thetas(model.dim(), 20, 9).iter().enumerate() {
            data.copy_row(i, &mut row);
            let y = label(data, i);
            let exact = model.gradient(&row, y, theta);
            for (j, g) in exact.iter().enumerate() {
                let (mut low, mut high) = (theta.clone(), theta.clone());
                low[j] -= 1e-4;
                high[j] += 1e-4;
                let slope = model.log_ratio(&row, y, &low, &high) / 2e-4;
                assert!(
                    (slope - g).abs() < 1e-6 * (1.0 + g.abs()),
                    "{}",
                    model.name()
                );
            }
        }
    }
}

/// As above for networks of layers, whose gradients are formed row by row: 1e5 parameters, and a
/// small one with a convolution and a pool.
#[test]
fn no_row_of_layers_leaves_the_ball() {
    let ten = LabelKind::Class { classes: 10 };
    let layers = [Layer::Dense { units: 98 }, Layer::Tanh];
    let wide = Network::new(Volume::flat(1000), &layers, 10).unwrap();
    let prior = Prior::normal(wide.parameters(), 1.0);
    let wide = Layered::new(wide, ten, prior, 1.0).unwrap();
    for model in [layered(ten, 1.0), wide] {
        let (d, features) = (model.dim(), model.features());
        let names: Vec<String> = (0..features).map(|j| format!("x{j}")).collect();
        let mut builder = Dataset::builder_with(names, Some(ten), 1e25).unwrap();
        let mut rows = adversarial(features);
        rows.push(vec![3e20; features]);
        for (i, row) in rows.iter().enumerate() {
            builder.push_value(row, Some((i % 10) as f64)).unwrap();
        }
        let data = Arc::new(builder.finish().unwrap());
        let mut engine = CpuEngine::with(data, InstructionSet::detect(), 16);
        let mut largest = 0.0f64;
        for (size, clip) in [(1.0, 1e-4), (1.0, 0.999_999), (1e12, 0.5), (1e-30, 1e-20)] {
            let mut theta = thetas(d, 1, 3);
            theta[0].iter_mut().for_each(|t| *t *= size);
            let q = query(&model, &theta, clip);
            for sum in each_row(&mut engine, &q, rows.len()) {
                let what = format!("d {d} size {size} clip {clip}");
                largest = largest.max(assert_in_ball(&q, &sum, &what));
            }
        }
        let slack = 2e-4 + 3e-6 * (d as f64).sqrt() + 1e-6 * d as f64;
        assert!(
            largest > 1.0 - slack,
            "d {d}: never near the edge, {largest}"
        );
    }
}
