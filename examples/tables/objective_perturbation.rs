//! Objective perturbation with Gaussian noise (Kifer, Smith & Thakurta 2012, algorithm 1), for
//! logistic regression: the mode of log posterior − b·θ, b normal, with the ridge raised to
//! what the proof needs. Stated there for neighbours by adding or removing a row; by
//! substitution a gradient moves by twice as much, and the determinants' ratio by no more than
//! before (one row's curvature over another's). The mode is released as it is computed, as the
//! paper does; an exact minimiser is assumed.

use std::time::Instant;

use super::chance::{generator, normals};
use super::glm::{Model, Problem};
use super::outcome::Outcome;

#[derive(Clone, Copy, PartialEq)]
pub enum Neighbours {
    AddRemove,
    Substitution,
}

pub fn applies(model: Model) -> bool {
    model == Model::Logistic
}

pub fn run(
    problem: &Problem<'_>,
    neighbours: Neighbours,
    (epsilon, delta): (f64, f64),
    seed: u64,
) -> Result<Outcome, String> {
    let start = Instant::now();
    let b = problem.row_norm;
    let moves = match neighbours {
        Neighbours::AddRemove => b,
        Neighbours::Substitution => 2.0 * b,
    };
    let scale = moves * (8.0 * (2.0 / delta).ln() + 4.0 * epsilon).sqrt() / epsilon;
    // A logistic row's curvature is at most B²/4.
    let ridge = problem.precision.max(b * b / 4.0 / (epsilon / 2.0));
    let mut rng = generator(&["objective perturbation"], seed);
    let tilt: Vec<f64> = normals(problem.design.d, &mut rng)
        .into_iter()
        .map(|z| scale * z)
        .collect();
    let ridged = Problem {
        precision: ridge,
        ..*problem
    };
    let theta = ridged.mode(&tilt).ok_or("no minimiser was found")?;
    Ok(Outcome::estimate(theta, start.elapsed().as_secs_f64()))
}
