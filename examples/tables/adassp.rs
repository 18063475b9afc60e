//! AdaSSP (Wang 2018, algorithm 2) for linear regression: sums XᵀX and Xᵀy with Gaussian noise,
//! and a ridge adapted to a noisy smallest eigenvalue. Here for neighbours by substitution, its
//! three Gaussian mechanisms of equal μ priced exactly together, where the paper splits ε and δ
//! in three (which costs more, and its constants are for adding or removing a row).

use std::time::Instant;

use super::chance::{gaussian_mu, generator, normal};
use super::glm::{Model, Problem};
use super::matrix;
use super::outcome::Outcome;

/// The paper's ϱ: the chance that noise exceeds what the ridge is set for.
const RHO: f64 = 0.05;

pub fn applies(model: Model) -> bool {
    matches!(model, Model::Linear { .. })
}

pub fn run(
    problem: &Problem<'_>,
    (epsilon, delta): (f64, f64),
    seed: u64,
) -> Result<Outcome, String> {
    let start = Instant::now();
    let d = problem.design.d;
    let mu = gaussian_mu(epsilon, delta) / 3f64.sqrt();
    let square = problem.row_norm.powi(2);
    let most = problem.label[0].abs().max(problem.label[1].abs());
    let mut rng = generator(&["adassp"], seed);
    let sums = problem
        .design
        .sums(&vec![0.0; d], true, |i, _| [0.0, problem.y[i], 1.0]);

    // Two positive semi-definite rows: the smallest eigenvalue moves by at most B².
    let sd = square / mu;
    let smallest = matrix::smallest_eigenvalue(&sums.curvature, d) + sd * normal(&mut rng)
        - sd * (6.0 / delta).ln().sqrt();
    // ‖xxᵀ − x'x'ᵀ‖ ≤ √2 B², each coordinate of a triangle with noise of its own.
    let sd = 2f64.sqrt() * square / mu;
    let dims = d as f64;
    let ridge = sd * (dims * (2.0 * dims * dims / RHO).ln()).sqrt() - smallest.max(0.0);
    let mut noisy = sums.curvature.clone();
    for i in 0..d {
        for j in 0..=i {
            let value = noisy[i * d + j] + sd * normal(&mut rng);
            (noisy[i * d + j], noisy[j * d + i]) = (value, value);
        }
    }
    let sd = 2.0 * problem.row_norm * most / mu;
    let right: Vec<f64> = sums
        .gradient
        .iter()
        .map(|g| g + sd * normal(&mut rng))
        .collect();
    let l = matrix::cholesky(&matrix::with_ridge(&noisy, d, ridge.max(0.0)), d)
        .ok_or("the noisy XᵀX has no inverse")?;
    let theta = matrix::solve(&l, &right);
    Ok(Outcome::estimate(theta, start.elapsed().as_secs_f64()))
}
