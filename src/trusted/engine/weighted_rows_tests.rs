//! Rows beyond the row bound of an anchor: their weights in expansion and remainders alike.

use std::sync::Arc;

use super::EngineChoice;
use super::row_weights_tests::with_shares;
use crate::data::{Dataset, LabelKind};
use crate::model::{Anchor, Anchored, Lower, Metric, Model, Prior, Regression, Slopes};
use crate::privacy::{AnchorNoise, Curator, Releases};
use crate::synthetic;

/// A row's weight ω, written out: the share of its length that the row bound leaves, for Poisson
/// rows at most W share²/w. A row that has a part of the largest weight is shorter by its `root`.
fn weight(slopes: &Slopes, metric: &Metric, at: &[f64], row: &[f64], root: f64) -> f64 {
    let share = share(metric, row, root);
    let eta: f64 = row.iter().zip(at).map(|(x, t)| x * t).sum();
    match slopes.score {
        crate::model::Score::Poisson => {
            share.min(slopes.largest_weight * share * share / eta.exp())
        }
        _ => share,
    }
}

/// The share of a row's length that the row bound leaves.
fn share(metric: &Metric, row: &[f64], root: f64) -> f64 {
    let mut z = row.to_vec();
    metric.factor.solve(&mut z);
    let length = root * z.iter().map(|v| v * v).sum::<f64>().sqrt();
    (metric.row_bound / length).min(1.0)
}

/// Where rows are longer than the row bound, the exact expansion and the remainders together are
/// the log likelihood in which each row counts with its weight ω: to the rounding of rows to the
/// grid, 2^-14 of b each. Remainders that take the row as it is, or a curvature that is weighted
/// twice, are off by tenths. Where rows have weights of their own, so they have there.
#[test]
fn expansion_and_remainders_are_the_weighted_log_likelihood() {
    let number = LabelKind::Number {
        low: -4.0,
        high: 4.0,
    };
    let at = [0.4, -0.3, 0.2];
    let (theta, end) = ([0.7, -0.9, 0.1], [0.1, 0.2, -0.4]);
    let metric = |row_bound| Metric {
        factor: Lower::new(vec![4.0, 0.0, 0.0, 0.5, 3.0, 0.0, -0.3, 0.2, 5.0]).unwrap(),
        row_bound,
    };
    let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    let prior = || Prior::normal(3, 2.0);
    let sets: Vec<(Dataset, Arc<dyn Model>)> = vec![
        {
            let set = synthetic::logistic(600, &at, 4).unwrap();
            let model = Regression::logistic(&names, set.row_norm(), prior(), 0.6).unwrap();
            (set, Arc::new(model))
        },
        {
            let set = synthetic::linear(600, &at, 0.5, 4.0, 4).unwrap();
            let norm = set.row_norm();
            let model = crate::model::Regression::linear(&names, 0.25, number, norm, prior(), 0.6);
            (set, Arc::new(model.unwrap()))
        },
        {
            let set = synthetic::poisson(600, &at, 8, 4).unwrap();
            let (kind, norm) = (LabelKind::Count { max: 8 }, set.row_norm());
            let model = crate::model::Regression::poisson(&names, kind, norm, prior(), 0.6);
            (set, Arc::new(model.unwrap()))
        },
    ];
    let parts = [[1.0, 1.0], [0.25, 1.0], [1.0, 0.0625]];
    let each = |(set, model): &(Dataset, Arc<dyn Model>)| {
        parts.map(|own| (with_shares_of(set, own), model.clone(), own))
    };
    for (set, model, own) in sets.iter().flat_map(each) {
        let slopes = model.slopes().unwrap();
        let metric = metric(if own == [1.0; 2] { 0.33 } else { 0.2 });
        let (rows, labels) = (set.public_rows(), set.labels().to_vec());
        let mut open = Curator::not_private(set, model.clone(), EngineChoice::Cpu, 1).unwrap();
        let released = open
            .anchor(&at, &metric, AnchorNoise::expansion(0.0, 0.0))
            .unwrap();
        let anchor = Anchor {
            at: at.to_vec(),
            metric: metric.clone(),
            gradient: released.gradient,
            curvature: released.curvature,
            gradient_sd: 0.0,
            curvature_sd: 0.0,
            centre: vec![0.0; 3],
            radius: 1e3,
            spread: Vec::new(),
            doubts: Default::default(),
            alone: None,
        };
        let quadratic = anchor.log_density(&end) - anchor.log_density(&theta);
        let anchored = Anchored::new(model.clone(), anchor).unwrap();
        let (mut expected, mut left, mut long) = (0.0, 0.0, 0);
        for (i, (row, y)) in rows.chunks(3).zip(&labels).enumerate() {
            let row: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
            let part = own[i % 2];
            let root = f64::sqrt(part);
            let omega = weight(&slopes, &metric, &at, &row, root);
            long += usize::from(omega < 1.0);
            let y64 = f64::from(*y);
            expected += part * omega * model.log_ratio(&row, y64, &theta, &end);
            if slopes.clips_residuals {
                // The score is clipped with the row, and not multiplied by ω.
                let dot = |t: &[f64]| -> f64 { row.iter().zip(t).map(|(x, t)| x * t).sum() };
                let (eta, by) = (dot(&at), dot(&end) - dot(&theta));
                let share = share(&metric, &row, root);
                let (score, weight) = slopes.score.slopes(eta, y64);
                let (kept, most) = match slopes.score {
                    crate::model::Score::Logistic => {
                        let p = 1.0 / (1.0 + (-eta).exp());
                        ((share / p.max(1.0 - p)).min(1.0), 1.0 / share)
                    }
                    _ => (
                        (slopes.largest_weight / weight).min(1.0),
                        slopes.largest_score / root,
                    ),
                };
                let clipped = share * (kept * score / share).clamp(-most, most);
                let kappa = part * model.tempering() * model.unit();
                expected += kappa * (clipped - omega * score) * by;
            }
            if slopes.score == crate::model::Score::Linear {
                // Of a shortened row the curvature is the share's square, not the share.
                let dot = |t: &[f64]| -> f64 {
                    let gaps = t.iter().zip(&at).map(|(t, a)| t - a);
                    row.iter().zip(gaps).map(|(x, g)| x * g).sum()
                };
                let squares = dot(&end).powi(2) - dot(&theta).powi(2);
                expected += part * 0.6 / 0.25 * 0.5 * (omega - omega * omega) * squares;
            }
            left += anchored.log_ratio(&row, f64::from(*y), &theta, &end);
        }
        // The engine's remainders are those, weights and all.
        open.set_anchor((**anchored.anchor()).clone()).unwrap();
        let clip = if own == [1.0; 2] { 1e3 } else { 20.0 };
        let sum = open.exact_log_ratios(&[&theta], &[&end], &[clip]).unwrap()[0].0;
        if own == [1.0; 2] {
            assert!((sum - left).abs() < 0.3, "{}: {sum} {left}", model.name());
        } else {
            // (Rows by themselves do not know what they weigh.)
            left = sum;
        }
        let got = quadratic + left;
        println!(
            "{}: {got:.4} for {expected:.4}, {long} long rows",
            model.name()
        );
        assert!((100..590).contains(&long), "{}: {long}", model.name());
        assert!(
            (got - expected).abs() < 2e-3 * expected.abs().max(1.0),
            "{}: {got} for {expected}",
            model.name()
        );
    }
}

/// The table where every other row has the first of two parts of the largest weight.
fn with_shares_of(set: &Dataset, own: [f64; 2]) -> Dataset {
    let share = |i: usize| (own != [1.0; 2]).then_some(own[i % 2]);
    with_shares(set, (0..set.rows()).map(|i| (i, share(i))), None)
}

/// A smaller bound on weights than the model's: rows beyond it count so much less, in gradient and
/// curvature alike, and noise falls with it. A larger one changes nothing.
#[test]
fn weights_may_be_clipped_below_their_models_bound() {
    let at = [0.9, -0.6, 0.4];
    let set = synthetic::poisson(500, &at, 200, 9).unwrap();
    let (rows, labels) = (set.public_rows(), set.labels().to_vec());
    let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    let (count, norm) = (LabelKind::Count { max: 200 }, set.row_norm());
    let model = Regression::poisson(&names, count, norm, Prior::normal(3, 2.0), 1.0);
    let model: Arc<dyn Model> = Arc::new(model.unwrap());
    let bound = model.slopes().unwrap().largest_weight;
    let metric = Metric::identity(3, norm);
    let mut open = Curator::not_private(set, model, EngineChoice::Cpu, 1).unwrap();
    let mut released = |tau: f64, largest_weight| {
        let noise = AnchorNoise {
            largest_weight,
            ..AnchorNoise::expansion(tau, tau)
        };
        open.anchor(&at, &metric, noise).unwrap()
    };
    let most = 1.1;
    let (mut gradient, mut curvature, mut heavy) = ([0.0; 3], [[0.0; 3]; 3], 0);
    for (row, y) in rows.chunks(3).zip(&labels) {
        let row: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
        let eta: f64 = row.iter().zip(&at).map(|(x, t)| x * t).sum();
        let kept = (most / eta.exp()).min(1.0);
        heavy += usize::from(kept < 1.0);
        for i in 0..3 {
            gradient[i] += kept * (f64::from(*y) - eta.exp()) * row[i];
            (0..3).for_each(|j| curvature[i][j] += kept * eta.exp() * row[i] * row[j]);
        }
    }
    assert!((50..450).contains(&heavy), "{heavy}");
    let light = released(0.0, Some(most));
    for i in 0..3 {
        assert!((light.gradient[i] - gradient[i]).abs() < 1e-3 * gradient[i].abs().max(1.0));
        for j in 0..3 {
            let gap = light.curvature[3 * i + j] - curvature[i][j];
            assert!(gap.abs() < 1e-3 * curvature[i][i], "{i} {j}: {gap}");
        }
    }
    let whole = released(0.0, None);
    for other in [
        released(0.0, Some(2.0 * bound)),
        released(0.0, Some(f64::NAN)),
    ] {
        assert_eq!(other.curvature, whole.curvature);
    }
    assert!(whole.curvature[0] > 1.2 * light.curvature[0]);
    let ratio = released(1.0, None).curvature_sd / released(1.0, Some(most)).curvature_sd;
    assert!((ratio / (bound / most) - 1.0).abs() < 1e-6, "{ratio}");
}
