//! DP-GD: full-batch gradient descent with momentum on rows' clipped gradients with Gaussian
//! noise, the last half of its steps averaged. Neighbours by substitution; all steps together
//! are one Gaussian mechanism, priced exactly (Dong, Roth & Su 2022), which is a little kinder
//! than zCDP.
//!
//! Its settings follow a public rule: gradients clipped at B times a bound on the score that few
//! rows reach (1, two residual sds, √MAX of a count; tighter clips were biased by several sds on
//! Adult), steps of 1/(wB²), wB² a row's largest curvature, momentum 0.9, and as many steps as
//! make the noise of a direction without curvature a quarter, but 50 to 500.

use std::time::Instant;

use super::chance::{gaussian_mu, generator, normal};
use super::glm::{Model, Problem};
use super::outcome::Outcome;

/// Largest sd that noise may leave in a direction without curvature.
const DRIFT: f64 = 0.25;
const MOMENTUM: f64 = 0.9;

pub fn run(problem: &Problem<'_>, (epsilon, delta): (f64, f64), seed: u64) -> Outcome {
    let start = Instant::now();
    let (d, rows) = (problem.design.d, problem.design.rows() as f64);
    let mu = gaussian_mu(epsilon, delta);
    let (weight, most_score) = match problem.model {
        Model::Logistic => (0.25, 1.0),
        Model::Linear { variance } => (1.0 / variance, 2.0 / variance.sqrt()),
        Model::Poisson => (2.0, problem.label[1].sqrt()),
    };
    let clip = most_score * problem.row_norm;
    let step = 1.0 / (weight * problem.row_norm.powi(2) * rows);
    // T steps of noise √T·2·clip/μ each drift by √T such steps, and momentum lengthens them.
    let drift = step / (1.0 - MOMENTUM) * 2.0 * clip / mu;
    let steps = (DRIFT / drift).clamp(50.0, 500.0) as usize;
    let noise = (steps as f64).sqrt() * 2.0 * clip / mu;
    let norms: Vec<f64> = (0..problem.design.rows())
        .map(|i| problem.design.norm(i))
        .collect();
    let mut rng = generator(&["gradient descent"], seed);
    let mut average = vec![0.0; d];
    let (mut theta, mut speed) = (average.clone(), average.clone());
    for t in 0..steps {
        let sums = problem.design.sums(&theta, false, |i, eta| {
            let score = problem.model.score(eta.min(30.0), problem.y[i]);
            let most = clip / norms[i].max(1e-12);
            [0.0, score.clamp(-most, most), 0.0]
        });
        for ((at, speed), gradient) in theta.iter_mut().zip(&mut speed).zip(&sums.gradient) {
            let slope = gradient + noise * normal(&mut rng) - problem.precision * *at;
            *speed = MOMENTUM * *speed + step * slope;
            *at += *speed;
        }
        if t >= steps / 2 {
            let share = 1.0 / (steps - steps / 2) as f64;
            average
                .iter_mut()
                .zip(&theta)
                .for_each(|(a, v)| *a += share * v);
        }
    }
    Outcome::estimate(average, start.elapsed().as_secs_f64())
}
