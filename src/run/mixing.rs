//! Whether a chain goes anywhere by what a budget pays for, from public numbers alone.

use crate::config::{ConfigError, Plan};
use crate::data::Population;
use crate::math::normal;
use crate::model::Model;
use crate::privacy::{Acceptance, Estimator};
use crate::sampler::Sampler;

/// A penalty's noise that accepts fewer of the moves than these stops a chain.
const FEW: f64 = 0.01;
/// The standard deviation of a penalty's noise, nats, that accepts a third of moves to where the
/// posterior is as high.
const THIRD: f64 = 2.0;
/// Effective draws, at most, of a chain that hardly moves.
const HARDLY: f64 = 10.0;
/// Effective draws that a usual step of a random walk in one dimension is worth, at most. (Over the
/// dimension: Roberts & Rosenthal 2001 have 0.33 for Metropolis's rule; Barker's accepts half of that
/// where moves are short.)
const WORTH: f64 = 0.33;

/// What to say of a private run whose chains will hardly leave their start. Anchored runs have a
/// forecast of their own.
pub(super) fn warning(
    plan: &Plan,
    sampler: &Sampler,
    model: &dyn Model,
    (rows, row_norm): (Population, f64),
) -> Result<Option<String>, ConfigError> {
    if plan.budget()?.is_none() {
        return Ok(None);
    }
    let d = model.dim();
    let length = plan.length()?;
    let steps = (length.iterations as f64 + length.warmup as f64) * plan.chains() as f64;
    if let Some(sd) = sampler.penalty_noise(d)
        && 2.0 * normal::above(sd / 2.0) < FEW
    {
        // Noise is the root of how many decisions share the budget.
        let paid = steps * (THIRD / sd).powi(2);
        return Ok(Some(format!(
            "the noise of a decision has a standard deviation of {sd:.2e} nats in a typical move, so hardly a move can be accepted and the draws will stay at the start: where {steps:.0} decisions share the budget, about {paid:.0} could be paid for with noise that lets a third of the moves pass; an anchored sampler (anchored-barker) needs far less of it"
        )));
    }
    // A step that was given is meant.
    if plan.config.sampler.step.is_some() {
        return Ok(None);
    }
    // The share of a usual move, and the effective draws that a usual one is worth at most.
    let (share, worth) = match sampler {
        Sampler::Walk(s) if s.anchoring.is_none() => {
            let usual = plan.usual_step(model, rows, row_norm);
            (s.step / usual, WORTH / d as f64)
        }
        Sampler::Hamiltonian(s) => {
            let usual = plan.usual_trajectory(model, rows, row_norm);
            let of = s.settings();
            (of.step * f64::from(of.leapfrog_steps) / usual, 1.0)
        }
        _ => return Ok(None),
    };
    let worth = length.iterations as f64 * share * share * worth;
    let short = share < 1.0 && worth < HARDLY;
    Ok(short.then(|| {
        format!(
            "the budget shortens moves to {share:.2e} of their usual length, so that the chain will hardly leave its start: {} of them are worth {worth:.1e} independent draws at most; an anchored sampler (anchored-barker) goes farther by the same budget",
            length.iterations
        )
    }))
}

impl Sampler {
    /// Standard deviation of the noise of a penalty over all rows, in nats, in a typical move.
    fn penalty_noise(&self, d: usize) -> Option<f64> {
        let (estimator, acceptance, clip) = match self {
            Sampler::Walk(s) if s.anchoring.is_none() => {
                (s.estimator, s.acceptance, s.typical_clip(d)?)
            }
            Sampler::Hamiltonian(s) => {
                let of = s.settings();
                (of.estimator, of.acceptance, s.typical_clip(d)?)
            }
            _ => return None,
        };
        match (estimator, acceptance) {
            (Estimator::FullBatch, Acceptance::Penalty { tau }) => Some(2.0 * clip * tau),
            _ => None,
        }
    }
}
