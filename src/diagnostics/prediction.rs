//! Posterior predictive probabilities of a logistic regression and the scores
//! that judge them on held-out rows.

use rayon::prelude::*;

use super::mean;

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
