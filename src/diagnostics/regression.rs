//! Posterior predictives of linear and Poisson regressions, and the scores that judge them on
//! held-out rows.

use rayon::prelude::*;

use crate::expression::Law;
use crate::math::log_factorial;

use super::mean;

/// Posterior predictive mean of every row of a linear regression: the mean over draws of x·θ.
///
/// `rows` holds N rows of d covariates one after the other, d being the length of the first draw.
/// No draws or d = 0 give an empty result, a draw of another length NaN; a last row that is not
/// whole is left out.
pub fn linear_predictive(draws: &[Vec<f64>], rows: &[f32]) -> Vec<f64> {
    by_row(draws, rows, |_, etas| mean(etas))
}

/// Root of the mean square difference. NaN without labels or with a different number of means.
pub fn root_mean_square_error(means: &[f64], labels: &[f64]) -> f64 {
    if means.len() != labels.len() {
        return f64::NAN;
    }
    let pairs = means.iter().zip(labels);
    let squares: Vec<f64> = pairs.map(|(m, y)| (m - y) * (m - y)).collect();
    mean(&squares).sqrt()
}

/// Mean negative log density, nats, of labels under a linear regression's posterior predictive,
/// `mean over draws of N(y; x·θ, variance)`: the logarithmic score of Gneiting and Raftery (2007),
/// "Strictly proper scoring rules", section 4.1, with its sign turned. NaN where numbers of rows
/// and labels differ, or there are none.
pub fn linear_log_loss(draws: &[Vec<f64>], variance: f64, rows: &[f32], labels: &[f64]) -> f64 {
    let constant = 0.5 * (2.0 * std::f64::consts::PI * variance).ln();
    log_loss_by_row(draws, rows, labels, |y, eta, _| {
        -(y - eta) * (y - eta) / (2.0 * variance) - constant
    })
}

/// The same under a Poisson regression's posterior predictive,
/// `mean over draws of Poisson(y; exp(x·θ))`; labels are counts.
pub fn poisson_log_loss(draws: &[Vec<f64>], rows: &[f32], labels: &[f64]) -> f64 {
    log_loss_by_row(draws, rows, labels, |y, eta, _| {
        y * eta - eta.exp() - log_factorial(y)
    })
}

/// The same under a declared likelihood, whose draws end with its shared parameters; it is a log
/// density where the expression has its constants.
pub fn declared_log_loss(draws: &[Vec<f64>], law: Law, rows: &[f32], labels: &[f64]) -> f64 {
    let shared = law.shared().len();
    if draws.iter().any(|theta| theta.len() <= shared) {
        return f64::NAN;
    }
    let parts = draws
        .iter()
        .map(|theta| theta.split_at(theta.len() - shared));
    let (coefficients, shared): (Vec<Vec<f64>>, Vec<&[f64]>) = parts
        .map(|(coefficients, shared)| (coefficients.to_vec(), shared))
        .unzip();
    log_loss_by_row(&coefficients, rows, labels, |y, eta, k| {
        law.log_likelihood(y, eta, shared[k])
    })
}

fn log_loss_by_row(
    draws: &[Vec<f64>],
    rows: &[f32],
    labels: &[f64],
    log_density: impl Fn(f64, f64, usize) -> f64 + Sync,
) -> f64 {
    let losses = by_row(draws, rows, |i, etas| {
        let Some(&y) = labels.get(i) else {
            return f64::NAN;
        };
        let each = etas.iter().enumerate();
        let logs: Vec<f64> = each.map(|(k, eta)| log_density(y, *eta, k)).collect();
        -log_mean_exp(&logs)
    });
    if losses.len() != labels.len() {
        return f64::NAN;
    }
    mean(&losses)
}

/// A number for every row, from its place and its x·θ under every draw.
fn by_row(draws: &[Vec<f64>], rows: &[f32], one: impl Fn(usize, &[f64]) -> f64 + Sync) -> Vec<f64> {
    let d = draws.first().map_or(0, Vec::len);
    if d == 0 {
        return Vec::new();
    }
    if draws.iter().any(|theta| theta.len() != d) {
        return vec![f64::NAN; rows.len() / d];
    }
    let predictor = |row: &[f32], theta: &[f64]| -> f64 {
        row.iter().zip(theta).map(|(&x, t)| f64::from(x) * t).sum()
    };
    rows.par_chunks_exact(d)
        .enumerate()
        .map(|(i, row)| {
            let etas: Vec<f64> = draws.iter().map(|theta| predictor(row, theta)).collect();
            one(i, &etas)
        })
        .collect()
}

/// `log mean exp`, without overflow.
fn log_mean_exp(logs: &[f64]) -> f64 {
    let top = logs.iter().fold(f64::NEG_INFINITY, |m, l| m.max(*l));
    if top == f64::NEG_INFINITY {
        return top;
    }
    let scaled: Vec<f64> = logs.iter().map(|l| (l - top).exp()).collect();
    top + mean(&scaled).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Densities are averaged over draws, not their logs, and means before they are squared.
    #[test]
    fn scores_by_hand() {
        let draws = [vec![0.5, 1.0], vec![1.0, -1.0]];
        let rows = [1.0f32, 0.0, 1.0, 2.0];
        let means = linear_predictive(&draws, &rows);
        assert_eq!(means, [0.75, 0.75]);
        let labels = [1.0, -1.0];
        let error = root_mean_square_error(&means, &labels);
        assert!((error - ((0.0625f64 + 3.0625) / 2.0).sqrt()).abs() < 1e-15);
        let density = |gap: f64| (-gap * gap / 0.5).exp() / (0.5 * std::f64::consts::PI).sqrt();
        let expected = -((0.5 * (density(0.5) + density(0.0))).ln()
            + (0.5 * (density(3.5) + density(0.0))).ln())
            / 2.0;
        let found = linear_log_loss(&draws, 0.25, &rows, &labels);
        assert!((found - expected).abs() < 1e-14, "{found} {expected}");

        let counts = [2.0, 0.0];
        let chance = |y: i32, eta: f64| {
            let rate = eta.exp();
            let ways = if y == 2 { 2.0 } else { 1.0 };
            rate.powi(y) * (-rate).exp() / ways
        };
        let expected = -((0.5 * (chance(2, 0.5) + chance(2, 1.0))).ln()
            + (0.5 * (chance(0, 2.5) + chance(0, -1.0))).ln())
            / 2.0;
        let found = poisson_log_loss(&draws, &rows, &counts);
        assert!((found - expected).abs() < 1e-14, "{found} {expected}");
    }

    /// Probabilities of all counts add up to one, on both sides of Stirling's series.
    #[test]
    fn poisson_probabilities_add_up() {
        for eta in [-1.0f64, 2.0, 4.2, 6.0] {
            let one = |y: u32| (-poisson_log_loss(&[vec![eta]], &[1.0], &[f64::from(y)])).exp();
            let total: f64 = (0..2000).map(one).sum();
            assert!((total - 1.0).abs() < 1e-12, "{eta}: {total}");
        }
        assert!((log_factorial(64.0) - log_factorial(63.0) - 64f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn what_is_far_off_or_not_there() {
        let loss = linear_log_loss(&[vec![0.0]], 1.0, &[1.0], &[1e3]);
        assert!((loss - 500_000.9).abs() < 0.1, "{loss}");
        assert_eq!(
            poisson_log_loss(&[vec![1e4]], &[1.0], &[1.0]),
            f64::INFINITY
        );
        for bad in [
            linear_log_loss(&[], 1.0, &[], &[]),
            linear_log_loss(&[vec![1.0]], 1.0, &[1.0], &[]),
            linear_log_loss(&[vec![1.0], vec![]], 1.0, &[1.0], &[1.0]),
            poisson_log_loss(&[vec![1.0]], &[1.0], &[1.0, 2.0]),
            root_mean_square_error(&[1.0], &[]),
            root_mean_square_error(&[], &[]),
        ] {
            assert!(bad.is_nan());
        }
    }
}
