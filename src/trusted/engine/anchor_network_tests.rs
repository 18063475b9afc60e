//! Anchors of a network: sums against central differences, and sensitivities that are facts
//! about integers whatever a row's gradient is.

use std::sync::Arc;

use super::cpu::CpuEngine;
use super::{AnchorParts, AnchorQuery, AnchorSums, Engine};
use crate::data::{Dataset, LabelKind};
use crate::model::{Lower, Metric, Mlp, Model, NetworkShape, Prior, Slopes};
use crate::synthetic;

const SHAPE: NetworkShape = NetworkShape {
    features: 2,
    hidden: 2,
    outputs: 1,
};
/// Parameters of it.
const D: usize = 9;

fn point() -> Vec<f64> {
    (0..D).map(|j| (1.9 * j as f64 + 0.4).sin()).collect()
}

/// Plain coordinates, and others that mix and scale.
fn metrics(bound: f64) -> [Metric; 2] {
    let mut entries = vec![0.0; D * D];
    for i in 0..D {
        for j in 0..=i {
            entries[i * D + j] = match i == j {
                true => 1.0 + 0.3 * i as f64,
                false => 0.2 * ((i * 3 + j) as f64).sin(),
            };
        }
    }
    let whitened = Metric {
        factor: Lower::new(entries).unwrap(),
        row_bound: bound,
    };
    [Metric::identity(D, bound), whitened]
}

fn ask(data: &Arc<Dataset>, at: &[f64], metric: &Metric) -> AnchorSums {
    let query = AnchorQuery {
        at,
        metric,
        slopes: Slopes::network(SHAPE),
        parts: AnchorParts::EXPANSION,
    };
    CpuEngine::new(data.clone()).anchor_sums(&query).unwrap()
}

/// Gradient `Σ s J` and curvature `Σ w J Jᵀ` in f64, straight from the head's probability: J by
/// central differences of the log odds, s and w by differences of the log density in them.
#[test]
fn sums_are_gradient_and_gauss_newton_matrix() {
    let data = Arc::new(synthetic::logistic(1_003, &[1.5, -1.0], 4).unwrap());
    let at = point();
    let odds = |t: &[f64], row: &[f64]| {
        let p = SHAPE.probabilities(t, row)[0];
        (p / (1.0 - p)).ln()
    };
    let rows: Vec<f64> = data.public_rows().iter().map(|v| f64::from(*v)).collect();
    for metric in metrics(SHAPE.slope_norm(&at, data.row_norm())) {
        let (mut gradient, mut curvature) = (vec![0.0; D], vec![0.0; D * D]);
        for (row, y) in rows.chunks(2).zip(data.labels()) {
            let log_density = |f: f64| -(-f64::from(*y) * f).exp().ln_1p();
            let (f, h) = (odds(&at, row), 1e-4);
            let score = (log_density(f + h) - log_density(f - h)) / (2.0 * h);
            let weight =
                -(log_density(f + h) - 2.0 * log_density(f) + log_density(f - h)) / (h * h);
            let mut z: Vec<f64> = (0..D)
                .map(|j| {
                    let moved = |h: f64| {
                        let mut t = at.clone();
                        t[j] += h;
                        odds(&t, row)
                    };
                    (moved(1e-5) - moved(-1e-5)) / 2e-5
                })
                .collect();
            metric.factor.solve(&mut z);
            for i in 0..D {
                gradient[i] += score * z[i];
                for j in 0..D {
                    curvature[i * D + j] += weight * z[i] * z[j];
                }
            }
        }
        let sums = ask(&data, &at, &metric);
        let slopes = Slopes::network(SHAPE);
        // 1,003 rows off by b·2^-21 each, of either sign.
        let unit = AnchorSums::gradient_unit(metric.row_bound, &slopes);
        for (exact, sum) in gradient.iter().zip(&sums.gradient) {
            assert!((*sum as f64 * unit - exact).abs() < 1e-3, "{exact}");
        }
        // Off by b²·2^-15 each, of either sign.
        let unit = AnchorSums::curvature_unit(metric.row_bound, &slopes);
        let mut triangle = sums.curvature.iter();
        for i in 0..D {
            for j in 0..=i {
                let (sum, exact) = (*triangle.next().unwrap() as f64, curvature[i * D + j]);
                assert!((sum * unit - exact).abs() < 0.06, "{i} {j}: {exact}");
            }
        }
        // Not all small: an error of 1 % would be seen.
        assert!(gradient.iter().any(|g| g.abs() > 4.0));
        assert!(curvature.iter().any(|c| c.abs() > 20.0));
    }
}

/// One row in the place of another, huge, tiny or at the edge, at weights that overflow or do not:
/// no sum moves by more than its sensitivity, and some nearly by all of it.
#[test]
fn no_row_moves_an_anchor_by_more_than_its_sensitivity() {
    let mut sets = Vec::new();
    for size in [3e38f32, -3e38, 1e20, 3.0, -3.0, 1e-40, 0.0] {
        for label in [true, false] {
            let names = ["a".to_string(), "b".to_string()];
            let mut set = Dataset::builder(names.to_vec(), true, 3.2e38).unwrap();
            for i in 1..20 {
                set.push(
                    &[(i as f32).sin(), (3.0 * i as f32).cos()],
                    Some(i % 3 == 0),
                )
                .unwrap();
            }
            set.push(&[size, 0.0], Some(label)).unwrap();
            sets.push(Arc::new(set.finish().unwrap()));
        }
    }
    let steep = |k: f64| -> Vec<f64> { point().iter().map(|v| v * k).collect() };
    // Units at ±1 and an output that leaves every label +1 a score of one: gradients that are each
    // other's opposite but for the intercept, which the last coordinates shrink.
    let mut sure = vec![0.0; D];
    (sure[0], sure[2], sure[8]) = (50.0, 50.0, -40.0);
    let mut narrow = vec![0.0; D * D];
    for i in 0..D {
        narrow[i * D + i] = if i == D - 1 { 1e3 } else { 1.0 };
    }
    let narrow = |bound| Metric {
        factor: Lower::new(narrow.clone()).unwrap(),
        row_bound: bound,
    };
    let (mut most, mut most_curved) = (0.0f64, 0.0f64);
    for at in [steep(1.0), steep(30.0), steep(1e300), sure] {
        for bound in [0.5, 3.0, 100.0] {
            for metric in metrics(bound).into_iter().chain([narrow(bound)]) {
                let sums: Vec<AnchorSums> = sets.iter().map(|d| ask(d, &at, &metric)).collect();
                for a in &sums {
                    for b in &sums {
                        let gap = |a: &i128, b: &i128| ((a - b) as f64).powi(2);
                        let g: f64 = a
                            .gradient
                            .iter()
                            .zip(&b.gradient)
                            .map(|(a, b)| gap(a, b))
                            .sum();
                        let (mut c, mut k) = (0.0, 0);
                        for i in 0..D {
                            for j in 0..=i {
                                let twice = if i == j { 1.0 } else { 2.0 };
                                c += twice * gap(&a.curvature[k], &b.curvature[k]);
                                k += 1;
                            }
                        }
                        most = most.max(g.sqrt() / AnchorSums::GRADIENT_SENSITIVITY);
                        most_curved =
                            most_curved.max(c / AnchorSums::CURVATURE_SENSITIVITY_SQUARED);
                    }
                }
            }
        }
    }
    assert!(most <= 1.0 && most > 0.9, "{most}");
    // Two rows of weight 1/4 and orthogonal gradients would meet it; these share an intercept.
    assert!(most_curved <= 1.0 && most_curved > 0.3, "{most_curved}");
}

/// Queries of another shape are refused, not indexed.
#[test]
fn networks_of_another_width_are_refused() {
    let data = Arc::new(synthetic::logistic(20, &[1.0, -1.0, 0.5], 4).unwrap());
    let mut engine = CpuEngine::new(data.clone());
    let at = point();
    for (outputs, features) in [(1, 2), (2, 3)] {
        let shape = NetworkShape {
            features,
            hidden: 2,
            outputs,
        };
        let query = AnchorQuery {
            at: &at,
            metric: &Metric::identity(D, 1.0),
            slopes: Slopes::network(shape),
            parts: AnchorParts::EXPANSION,
        };
        assert!(engine.anchor_sums(&query).is_err());
    }
    // And a head of several classes has no slopes to make one of.
    let names = ["a".to_string(), "b".to_string()];
    let classes = LabelKind::Class { classes: 3 };
    let d = Mlp::shape(2, 2, classes).unwrap().parameters();
    let model = Mlp::new(&names, 2, classes, Prior::normal(d, 1.0), 1.0).unwrap();
    assert!(model.slopes().is_none());
}
