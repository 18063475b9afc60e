//! Gaussian DP of a sequence, fixed in advance or not: Σ μ²/2 of its noise, and of its
//! decisions, which cost the less the more of the sum is kept for what follows them
//! (`docs/proofs/guarantee.md`, "As Gaussian DP").

use super::gaussian_dp;
use super::rules::{Answer, Question, answer};
use super::sequence::Sequence;
use crate::privacy::event::Event;

/// Steps of σ from which on a lattice is as good as the line.
const FINE_LATTICE: f64 = 1024.0;
/// Reserves that are tried, over so many octaves below what the decisions cost alone.
const RESERVES: (i32, f64) = (160, 40.0);

pub(super) fn gaussian_dp(sequence: &Sequence, question: Question) -> Option<Answer> {
    let sum = half_mu_squared(sequence)? * (1.0 + 1e-12);
    Some(Answer {
        upper: match question {
            _ if sum == 0.0 => 0.0,
            Question::Epsilon { delta } => gaussian_dp::epsilon(sum, delta),
            Question::Delta { epsilon } => gaussian_dp::delta(sum, epsilon),
        },
        ..answer("Gaussian DP", true)
    })
}

/// μ²/2 of all events together, whatever their order; `None` where one has none.
fn half_mu_squared(sequence: &Sequence) -> Option<f64> {
    let (mut noise, mut decisions) = (0.0, Vec::new());
    for (event, count) in sequence.events() {
        let (rho, count) = (event.rho()?, *count as f64);
        match (*event, event.eta()) {
            (_, Some(eta)) => decisions.push((rho, eta, count)),
            (Event::DiscreteGaussian { sigma, step, .. }, _) => {
                let steps = sigma / step;
                if steps < FINE_LATTICE {
                    return None;
                }
                // Rounding at random makes it of a continuous one of variance σ² − 4 steps².
                noise += count * rho / (1.0 - 4.0 / (steps * steps));
            }
            _ => noise += count * rho,
        }
    }
    let with = |reserve: f64| -> f64 {
        let cost = |(rho, eta, count): &(f64, f64, f64)| {
            count * gaussian_dp::decision(*rho, *eta, reserve)
        };
        reserve + decisions.iter().map(cost).sum::<f64>()
    };
    let alone = with(0.0);
    let (tries, octaves) = RESERVES;
    let least = (0..tries)
        .map(|i| with(alone * f64::exp2(-octaves * f64::from(i) / f64::from(tries))))
        .fold(alone, f64::min);
    Some(noise + least)
}
