//! The yardstick: what one noisy gradient at the mode costs when metric, mode and curvature
//! come for free and the whole budget is its own. No method can be built from it (it is given
//! what it would have to pay for); a method that comes near has wasted nothing on the way.
//! With rare levels a floored metric can beat it.

use rayon::prelude::*;

use super::chance::gaussian_mu;
use super::glm::{Model, Problem};
use super::matrix;
use super::reference::Reference;

/// Multiples of the rows' root mean square norm at which they are down-weighted.
const MULTIPLES: [f64; 8] = [0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];

/// The weighted mode of one clip and the sds of its noise at μ = 1, both in posterior sds.
struct Clip {
    bias: Vec<f64>,
    noise: Vec<f64>,
}

pub struct Yardstick {
    clips: Vec<Clip>,
}

impl Yardstick {
    pub fn new(problem: &Problem<'_>, reference: &Reference) -> Yardstick {
        let d = problem.design.d;
        let norms: Vec<f64> = (0..problem.design.rows())
            .into_par_iter()
            .map(|i| {
                let mut z = problem.design.dense(i);
                matrix::solve_lower(&reference.factor, &mut z);
                matrix::dot(&z, &z).sqrt()
            })
            .collect();
        let mean_square = norms.iter().map(|n| n * n).sum::<f64>() / norms.len() as f64;
        let mut clips = Vec::new();
        for bound in score_bounds(problem) {
            for multiple in MULTIPLES {
                let b = multiple * mean_square.sqrt();
                let clip = weighted_mode(problem, reference, (b, bound), &norms);
                clips.extend(clip.map(|(at, l)| {
                    // Row i of H⁻¹L is the noise of coefficient i.
                    let inverse = matrix::inverse(&l, d);
                    let noise = (0..d).map(|i| {
                        let row = &inverse[i * d..][..d];
                        let squares = (0..d).map(|k| {
                            let along: f64 =
                                (k..d).map(|m| row[m] * reference.factor[m * d + k]).sum();
                            along * along
                        });
                        2.0 * bound * b * squares.sum::<f64>().sqrt() / reference.sd[i]
                    });
                    let gaps = at.iter().zip(&reference.mode).zip(&reference.sd);
                    Clip {
                        bias: gaps.map(|((a, m), s)| (a - m) / s).collect(),
                        noise: noise.collect(),
                    }
                }));
            }
        }
        Yardstick { clips }
    }

    /// Root mean square error over coefficients at the best clip, in posterior sds.
    pub fn error(&self, epsilon: f64, delta: f64) -> f64 {
        let mu = gaussian_mu(epsilon, delta);
        let errors = self.clips.iter().map(|clip| {
            let pairs = clip.bias.iter().zip(&clip.noise);
            let squares: f64 = pairs.map(|(b, n)| b * b + (n / mu).powi(2)).sum();
            (squares / clip.bias.len() as f64).sqrt()
        });
        errors.fold(f64::INFINITY, f64::min)
    }
}

/// Bounds on a row's score that are tried: a logistic one is at most 1 as it is.
fn score_bounds(problem: &Problem<'_>) -> Vec<f64> {
    match problem.model {
        Model::Logistic => vec![1.0],
        Model::Linear { variance } => [1.0, 2.0, 3.0, 4.0].map(|sds| sds / variance.sqrt()).into(),
        Model::Poisson => {
            let most = problem.label[1];
            [0.5, 1.0, 2.0, 4.0]
                .map(|k| (k * most.sqrt()).min(most))
                .into()
        }
    }
}

/// The mode with rows weighted by min(1, (b/‖z‖)²) and scores cut off at the bound, with the
/// factor of its curvature.
fn weighted_mode(
    problem: &Problem<'_>,
    reference: &Reference,
    (b, bound): (f64, f64),
    norms: &[f64],
) -> Option<(Vec<f64>, Vec<f64>)> {
    let (d, y) = (problem.design.d, problem.y);
    let mut at = reference.mode.clone();
    let mut factor = reference.factor.clone();
    for _ in 0..40 {
        let sums = problem.design.sums(&at, true, |i, eta| {
            let weight = (b / norms[i]).powi(2).min(1.0);
            let score = problem.model.score(eta, y[i]);
            let cut = score.clamp(-bound, bound);
            // A score that is cut off has no slope.
            let slope = f64::from(u8::from(cut == score)) * problem.model.weight(eta);
            [0.0, weight * cut, weight * slope]
        });
        let curvature = matrix::with_ridge(&sums.curvature, d, problem.precision);
        factor = matrix::cholesky(&curvature, d)?;
        let slope: Vec<f64> = sums
            .gradient
            .iter()
            .zip(&at)
            .map(|(g, t)| g - problem.precision * t)
            .collect();
        let step = matrix::solve(&factor, &slope);
        at.iter_mut().zip(&step).for_each(|(t, s)| *t += s);
        if matrix::dot(&step, &slope) < 1e-8 {
            break;
        }
    }
    Some((at, factor))
}
