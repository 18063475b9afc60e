//! The posterior without privacy: mode and Laplace covariance by Newton's method, then mean
//! and standard deviations by a long chain on the exact posterior (elliptical slice sampling,
//! Murray, Adams & MacKay 2010, around the Laplace approximation moved to its third-order
//! mean). A chain, and not the third-order mean itself, because posteriors of rare levels and
//! of separated directions are skewed beyond any expansion.
//!
//! The mean is that of one Newton step from each draw, θ + P⁻¹∇log π(θ): the gradient has mean
//! zero under the posterior, so this has the same mean, and next to no variance where the
//! posterior is nearly Gaussian.

use dpmc::diagnostics::{ess_mean, mean, sd};
use rand::RngExt;

use super::chance::{generator, normals};
use super::glm::{Model, Problem};
use super::matrix;

/// Draws dropped at the start of the chain.
const WARMUP: usize = 100;
/// Draws kept for predictions.
const PREDICTING: usize = 200;

pub struct Reference {
    pub mode: Vec<f64>,
    /// Lower factor of minus the Hessian at the mode.
    pub factor: Vec<f64>,
    pub mean: Vec<f64>,
    pub sd: Vec<f64>,
    /// Largest Monte-Carlo error of a mean, in posterior sds.
    pub mean_error: f64,
    /// Root mean square of mean − mode, in posterior sds.
    pub skew: f64,
    /// Some draws, for predictions.
    pub draws: Vec<Vec<f64>>,
}

/// The posterior of `problem`, by `length` draws.
pub fn reference(problem: &Problem<'_>, length: usize, name: &str) -> Result<Reference, String> {
    let d = problem.design.d;
    let mode = problem.mode(&vec![0.0; d]).ok_or("no posterior mode")?;
    let precision = problem.sums(&mode, true).curvature;
    let factor = matrix::cholesky(&precision, d).ok_or("a posterior mode without curvature")?;
    let covariance = matrix::inverse(&factor, d);
    let centre = third_order_mean(problem, &mode, &factor, &covariance);
    let chain = slice_chain(problem, &centre, &factor, length, name);

    let column = |of: &dyn Fn(&Vec<f64>) -> Vec<f64>| -> Vec<Vec<f64>> {
        let values: Vec<Vec<f64>> = chain.iter().map(of).collect();
        (0..d)
            .map(|j| values.iter().map(|v| v[j]).collect())
            .collect()
    };
    let plain = column(&|theta| theta.clone());
    let stepped = column(&|theta| {
        let gradient = problem.sums(theta, false).gradient;
        let step = matrix::solve(&factor, &gradient);
        theta.iter().zip(step).map(|(t, s)| t + s).collect()
    });
    let error = |values: &[f64]| sd(values) / ess_mean(&[values.to_vec()]).max(1.0).sqrt();
    let sds: Vec<f64> = match problem.model {
        // The Laplace approximation is the posterior.
        Model::Linear { .. } => (0..d).map(|j| covariance[j * d + j].sqrt()).collect(),
        _ => plain.iter().map(|c| sd(c)).collect(),
    };
    let mut means = Vec::with_capacity(d);
    let mut mean_error = 0.0f64;
    for j in 0..d {
        // Far from Gaussian the Newton step may add more than it takes away.
        let [a, b] = [&plain[j], &stepped[j]].map(|c| (error(c), mean(c)));
        let best = if b.0 <= a.0 { b } else { a };
        mean_error = mean_error.max(best.0 / sds[j]);
        means.push(best.1);
    }
    let gaps = (0..d).map(|j| ((means[j] - mode[j]) / sds[j]).powi(2));
    Ok(Reference {
        skew: (gaps.sum::<f64>() / d as f64).sqrt(),
        draws: thinned(&chain, PREDICTING),
        mean: means,
        sd: sds,
        mean_error,
        mode,
        factor,
    })
}

/// Mode − ½ P⁻¹ Σ w'(η) x xᵀP⁻¹x: the mean to third order, and the whole mode where that
/// leads away.
fn third_order_mean(
    problem: &Problem<'_>,
    mode: &[f64],
    factor: &[f64],
    covariance: &[f64],
) -> Vec<f64> {
    let d = mode.len();
    let sums = problem.design.sums(mode, false, |i, eta| {
        let x = problem.design.row(i);
        let mut leverage = 0.0;
        for &(j, v) in x {
            let line = &covariance[j as usize * d..][..d];
            let along: f64 = x
                .iter()
                .map(|&(k, u)| line[k as usize] * f64::from(u))
                .sum();
            leverage += f64::from(v) * along;
        }
        [0.0, problem.model.third(eta) * leverage, 0.0]
    });
    let step = matrix::solve(factor, &sums.gradient);
    let moved: Vec<f64> = mode.iter().zip(step).map(|(m, s)| m - 0.5 * s).collect();
    if problem.value(&moved) > problem.value(mode) - d as f64 {
        moved
    } else {
        mode.to_vec()
    }
}

/// Elliptical slice sampling: the posterior as a Gaussian at `centre` times what it misses.
fn slice_chain(
    problem: &Problem<'_>,
    centre: &[f64],
    factor: &[f64],
    length: usize,
    name: &str,
) -> Vec<Vec<f64>> {
    let d = centre.len();
    let mut rng = generator(&["reference", name], 0);
    let theta_of = |u: &[f64]| -> Vec<f64> {
        let mut shift = u.to_vec();
        matrix::solve_upper(factor, &mut shift);
        centre.iter().zip(shift).map(|(c, s)| c + s).collect()
    };
    let missed = |u: &[f64]| problem.value(&theta_of(u)) + 0.5 * matrix::dot(u, u);
    let mut u = vec![0.0; d];
    let mut here = missed(&u);
    let mut draws = Vec::with_capacity(length);
    for i in 0..WARMUP + length {
        let other = normals(d, &mut rng);
        let level = here + rng.random::<f64>().max(1e-300).ln();
        let mut angle = rng.random::<f64>() * std::f64::consts::TAU;
        let (mut low, mut high) = (angle - std::f64::consts::TAU, angle);
        // The bracket shrinks onto u, which is above the level: it ends.
        while high - low > 1e-9 {
            let (sin, cos) = angle.sin_cos();
            let next: Vec<f64> = u
                .iter()
                .zip(&other)
                .map(|(a, b)| a * cos + b * sin)
                .collect();
            let there = missed(&next);
            if there > level {
                (u, here) = (next, there);
                break;
            }
            if angle < 0.0 {
                low = angle;
            } else {
                high = angle;
            }
            angle = low + rng.random::<f64>() * (high - low);
        }
        if i >= WARMUP {
            draws.push(theta_of(&u));
        }
    }
    draws
}

/// At most `most` draws, evenly spaced.
pub fn thinned(draws: &[Vec<f64>], most: usize) -> Vec<Vec<f64>> {
    let stride = draws.len().div_ceil(most).max(1);
    draws.iter().step_by(stride).cloned().collect()
}
