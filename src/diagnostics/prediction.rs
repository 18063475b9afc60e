//! Posterior predictive probabilities of a logistic regression and of a network, and the
//! scores that judge them on held-out rows.

use rayon::prelude::*;

use super::mean;
use crate::model::NetworkShape;
use crate::network::Network;

/// Posterior predictive probability of a positive label for every row: the mean
/// over draws θ of σ(x·θ), the Monte Carlo form of Gelman et al. (2013),
/// "Bayesian Data Analysis", 3rd edition, equation 1.4.
///
/// `rows` holds N rows of d covariates one after the other, d being the length
/// of the first draw; an intercept is a covariate of ones. No draws or d = 0
/// give an empty result. A draw of another length makes the result NaN, and a
/// last row that is not whole is left out.
pub fn logistic_predictive(draws: &[Vec<f64>], rows: &[f32]) -> Vec<f64> {
    let d = draws.first().map_or(0, Vec::len);
    if d == 0 {
        return Vec::new();
    }
    if draws.iter().any(|theta| theta.len() != d) {
        return vec![f64::NAN; rows.len() / d];
    }
    rows.par_chunks_exact(d)
        .map(|row| {
            let sum: f64 = draws.iter().map(|theta| sigma(dot(row, theta))).sum();
            sum / draws.len() as f64
        })
        .collect()
}

/// Posterior predictive of a network with one hidden layer: the mean over draws of what its
/// head says. With one output the probability of a positive label, one a row; with K outputs
/// the K class probabilities of every row, N × K row-major.
///
/// `rows` holds N rows of `shape.features` values one after the other; a last row that is
/// not whole is left out. No draws or features give an empty result, a draw of another length
/// than `shape.parameters()` NaN.
pub fn network_predictive(draws: &[Vec<f64>], shape: NetworkShape, rows: &[f32]) -> Vec<f64> {
    if draws.is_empty() || shape.features == 0 {
        return Vec::new();
    }
    if draws.iter().any(|theta| theta.len() != shape.parameters()) {
        return vec![f64::NAN; rows.len() / shape.features * shape.outputs];
    }
    let whole = rows.par_chunks_exact(shape.features);
    mean_of_heads(draws, whole, |theta, row| {
        let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
        shape.probabilities(theta, &row)
    })
}

/// The same of a network of layers.
pub fn layers_predictive(draws: &[Vec<f64>], network: Network, rows: &[f32]) -> Vec<f64> {
    /// Rows of one unit of work.
    const ROWS: usize = 64;
    let features = network.features();
    if draws.is_empty() {
        return Vec::new();
    }
    let rows = &rows[..rows.len() - rows.len() % features];
    if draws
        .iter()
        .any(|theta| theta.len() != network.parameters())
    {
        return vec![f64::NAN; rows.len() / features * network.outputs()];
    }
    let parts = rows.par_chunks(ROWS * features);
    mean_of_heads(draws, parts, |theta, rows| {
        network.probabilities(theta, rows)
    })
}

/// What a head says of each part of the rows, averaged over draws.
fn mean_of_heads<'a>(
    draws: &[Vec<f64>],
    parts: impl IndexedParallelIterator<Item = &'a [f32]>,
    says: impl Fn(&[f64], &[f32]) -> Vec<f64> + Sync,
) -> Vec<f64> {
    let mean = |part: &[f32]| {
        let mut means = says(&draws[0], part);
        for theta in &draws[1..] {
            let said = says(theta, part);
            means.iter_mut().zip(said).for_each(|(m, p)| *m += p);
        }
        means.into_iter().map(|m| m / draws.len() as f64)
    };
    parts.flat_map_iter(mean).collect()
}

/// Share of rows whose class, from 0, has the largest of its `classes` probabilities (the first of
/// equal ones). `probabilities` is N × `classes` row-major. NaN without labels, with another number
/// of probabilities, or a class there is not.
pub fn class_accuracy(probabilities: &[f64], classes: usize, labels: &[usize]) -> f64 {
    class_score(probabilities, classes, labels, |row, label| {
        let best = (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
        f64::from(best == label)
    })
}

/// Mean negative log-likelihood of the classes, nats; probabilities are clamped as those of
/// [`log_loss`]. NaN where [`class_accuracy`] is.
pub fn class_log_loss(probabilities: &[f64], classes: usize, labels: &[usize]) -> f64 {
    class_score(probabilities, classes, labels, |row, label| {
        -row[label].clamp(1e-15, 1.0).ln()
    })
}

fn class_score(
    probabilities: &[f64],
    classes: usize,
    labels: &[usize],
    one: impl Fn(&[f64], usize) -> f64,
) -> f64 {
    let whole = classes > 0 && labels.len().checked_mul(classes) == Some(probabilities.len());
    if !whole || labels.iter().any(|&l| l >= classes) || probabilities.iter().any(|p| p.is_nan()) {
        return f64::NAN;
    }
    let rows = probabilities.chunks_exact(classes).zip(labels);
    let scores: Vec<f64> = rows.map(|(row, &label)| one(row, label)).collect();
    mean(&scores)
}

/// Share of labels that match "probability at least one half". NaN without
/// labels or with a different number of probabilities.
pub fn accuracy(probabilities: &[f64], labels: &[bool]) -> f64 {
    score(probabilities, labels, |p, label| {
        f64::from((p >= 0.5) == label)
    })
}

/// Mean negative log-likelihood of the labels (the logarithmic score of Gneiting
/// and Raftery 2007, "Strictly proper scoring rules", Section 4.1, with its
/// sign turned). Probabilities are clamped to [1e-15, 1 − 1e-15], so that one
/// certain error does not make it infinite. NaN where [`accuracy`] is.
pub fn log_loss(probabilities: &[f64], labels: &[bool]) -> f64 {
    score(probabilities, labels, |p, label| {
        let p = p.clamp(1e-15, 1.0 - 1e-15);
        // ln_1p keeps the digits of a small p.
        if label { -p.ln() } else { -(-p).ln_1p() }
    })
}

/// Mean of a score over pairs of probability and label. A probability that is
/// NaN makes it NaN, rather than count as a wrong answer.
fn score(probabilities: &[f64], labels: &[bool], one: impl Fn(f64, bool) -> f64) -> f64 {
    if probabilities.len() != labels.len() || probabilities.iter().any(|p| p.is_nan()) {
        return f64::NAN;
    }
    let scores: Vec<f64> = probabilities
        .iter()
        .zip(labels)
        .map(|(&p, &label)| one(p, label))
        .collect();
    mean(&scores)
}

fn dot(row: &[f32], theta: &[f64]) -> f64 {
    row.iter().zip(theta).map(|(&x, t)| f64::from(x) * t).sum()
}

/// The logistic function; exp overflows to infinity, which gives the limit 0.
fn sigma(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictive_averages_over_draws() {
        let draws = [vec![0.0, 1.0], vec![1.0, -1.0]];
        let rows = [1.0, 0.0, 1.0, 2.0];
        let p = logistic_predictive(&draws, &rows);
        let expected = [
            (sigma(0.0) + sigma(1.0)) / 2.0,
            (sigma(2.0) + sigma(-1.0)) / 2.0,
        ];
        assert_eq!(p.len(), 2);
        for (a, b) in p.iter().zip(expected) {
            assert!((a - b).abs() < 1e-15);
        }
        assert_eq!(logistic_predictive(&[vec![-1e4]], &[1.0]), [0.0]);
        assert_eq!(logistic_predictive(&[vec![1e4]], &[1.0]), [1.0]);
    }

    #[test]
    fn predictive_without_sensible_draws() {
        assert!(logistic_predictive(&[], &[1.0, 2.0]).is_empty());
        assert!(logistic_predictive(&[vec![]], &[1.0]).is_empty());
        let p = logistic_predictive(&[vec![1.0, 2.0], vec![1.0]], &[1.0, 2.0]);
        assert!(p.len() == 1 && p[0].is_nan());
    }

    /// Two units by hand: o = b₂ + Σ w₂ tanh(w₁·x + b₁), averaged over the draws after the head,
    /// not before.
    #[test]
    fn a_network_averages_what_its_head_says() {
        let shape = |outputs| NetworkShape {
            features: 1,
            hidden: 2,
            outputs,
        };
        let (a, b) = ((0.5f64 * 2.0 + 0.1).tanh(), (-2.0f64 + 0.2).tanh());
        let one = vec![0.5, -1.0, 0.1, 0.2, 3.0, 4.0, -0.3];
        let other = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0];
        let p = network_predictive(&[one.clone(), other], shape(1), &[2.0]);
        let expected = (sigma(3.0 * a + 4.0 * b - 0.3) + sigma(2.0)) / 2.0;
        assert!(p.len() == 1 && (p[0] - expected).abs() < 1e-12, "{p:?}");
        // Two classes whose log weights differ by that output.
        let classes = vec![0.5, -1.0, 0.1, 0.2, 1.0, 1.0, 4.0, 5.0, 0.0, -0.3];
        let p = network_predictive(&[classes], shape(2), &[2.0]);
        let expected = sigma(3.0 * a + 4.0 * b - 0.3);
        assert!((p[1] - expected).abs() < 1e-12 && (p[0] + p[1] - 1.0).abs() < 1e-12);
        assert!(network_predictive(&[], shape(1), &[2.0]).is_empty());
        assert!(network_predictive(&[vec![1.0]], shape(1), &[2.0])[0].is_nan());
    }

    #[test]
    fn class_scores() {
        let p = [0.7, 0.2, 0.1, 0.3, 0.3, 0.4];
        assert_eq!(class_accuracy(&p, 3, &[0, 2]), 1.0);
        assert_eq!(class_accuracy(&p, 3, &[1, 2]), 0.5);
        let expected = -(0.2_f64.ln() + 0.4_f64.ln()) / 2.0;
        assert!((class_log_loss(&p, 3, &[1, 2]) - expected).abs() < 1e-15);
        for bad in [
            class_accuracy(&p, 3, &[0]),
            class_accuracy(&p, 3, &[0, 3]),
            class_log_loss(&[f64::NAN, 1.0], 2, &[0]),
            class_log_loss(&[], 0, &[]),
        ] {
            assert!(bad.is_nan());
        }
    }

    #[test]
    fn scores() {
        let labels = [true, true, false, false];
        let p = [0.9, 0.4, 0.2, 0.5];
        assert_eq!(accuracy(&p, &labels), 0.5);
        let expected = -(0.9_f64.ln() + 0.4_f64.ln() + 0.8_f64.ln() + 0.5_f64.ln()) / 4.0;
        assert!((log_loss(&p, &labels) - expected).abs() < 1e-15);
        assert!((log_loss(&[0.0], &[true]) - 34.538_776).abs() < 1e-5);
        assert!((log_loss(&[1.0], &[false]) - 34.538_776).abs() < 0.01);
        for bad in [
            accuracy(&[], &[]),
            log_loss(&p, &[true]),
            accuracy(&[f64::NAN], &[true]),
        ] {
            assert!(bad.is_nan());
        }
    }
}
