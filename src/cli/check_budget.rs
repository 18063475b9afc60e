//! The part of `dpmc check` that a budget decides: what steps cost, and how many there will be.

use super::ledger::{NO_DRAW, Need};
use super::{CliError, afford, ledger};
use crate::config::Plan;
use crate::data::Population;
use crate::model::{Density, Model, Prior, Support};
use crate::privacy::{Budget, Measure};
use crate::sampler::Sampler;

/// From so many steps on that a budget affords, their number is of no interest.
const MORE_THAN_ANYONE_MAKES: f64 = 1e9;
/// Nor is it where the run asks for no more than this share of them.
const NEXT_TO_NOTHING: f64 = 1e-3;

pub(super) fn print(
    plan: &Plan,
    sampler: &Sampler,
    model: &dyn Model,
    rows: Population,
    budget: Budget,
) -> Result<(), CliError> {
    let measure = plan.measure(sampler, model, rows, budget)?;
    let symbol = measure.symbol();
    let start = plan.start_cost(model, budget, measure)?;
    if start > 0.0 {
        println!("start      {symbol} {start:.4} for the start");
    }
    let (cost, whole) = afford::affordable(plan, sampler, model, rows, budget, measure)?;
    // The conversion gives zero where delta alone pays for the step.
    let alone = match measure.epsilon(cost, budget.delta()) {
        0.0 => String::new(),
        epsilon => format!(" (epsilon {epsilon:.2e} alone)"),
    };
    println!(
        "budget     ({}, {:e})-DP = {symbol} {:.4}; a typical step costs {symbol} {cost:.3e}{alone}",
        budget.epsilon(),
        budget.delta(),
        measure.limit(budget)
    );
    if measure != Measure::Zcdp {
        println!("           counted by a {}", measure.filter());
    }
    let length = plan.length()?;
    let chains = plan.chains() as f64;
    let (warmup, total) = (
        length.warmup as f64 * chains,
        (length.iterations as f64 + length.warmup as f64) * chains,
    );
    let mut need = Need {
        once: start + afford::anchor_rho(sampler),
        step: cost,
        warmup,
        guessed: afford::is_guess(sampler),
    };
    if let Sampler::Variational(_) = sampler {
        // Its first draw is the dear one.
        need = Need {
            once: start + cost * total,
            step: 0.0,
            ..need
        };
    }
    let (mut left, mut steps) = (plan.room(budget, measure)?, whole);
    if let Some((path, spent)) = ledger::spent(plan, rows.rows, budget, measure)? {
        left -= spent;
        println!(
            "ledger     {}: {symbol} {:.4e} spent, {symbol} {:.4e} left",
            path.display(),
            spent,
            left.max(0.0)
        );
        let first = Need {
            warmup: 0.0,
            ..need
        };
        first.check(plan, &path, left, measure)?;
        steps = whole.min((left - start - afford::anchor_rho(sampler)) / cost);
    }
    if steps >= MORE_THAN_ANYONE_MAKES && total <= NEXT_TO_NOTHING * steps {
        println!(
            "           steps cost next to nothing: it affords far more than the {total:.0} that the run asks for"
        );
    } else {
        let early = match total > steps {
            true => ": it will end early",
            false => "",
        };
        println!("           affords about {steps:.0} steps; the run asks for {total:.0}{early}");
    }
    print_doubts(plan, sampler, need.guessed);
    if need.ends_in_warmup(left) {
        let guess = if need.guessed { " (by this guess)" } else { "" };
        println!("warning: {NO_DRAW}{guess}");
    }
    Ok(())
}

/// Why steps may cost more or less than was said.
fn print_doubts(plan: &Plan, sampler: &Sampler, guessed: bool) {
    if guessed {
        let count = plan.config.data.label.as_ref().and_then(|l| l.count);
        let driver = count.map_or(String::new(), |count| {
            format!("; it grows with the declared largest count (data.label.count = {count})")
        });
        println!(
            "           a guess before the anchor is known: what a step costs follows where it comes to lie{driver}"
        );
    }
    let adapts = match sampler {
        Sampler::Walk(walk) => walk.adaptation.is_active(),
        Sampler::Hamiltonian(s) => s.settings().warmup.is_active(),
        _ => false,
    };
    if adapts {
        println!(
            "           at the first step's size; adaptation may make steps dearer, or cheaper"
        );
    }
}

/// A prior in words.
pub(super) fn prior(prior: &Prior) -> String {
    let density = match &prior.density {
        Density::Flat => "flat".into(),
        Density::Normal { mean, sd } => format!("normal, mean {}, sd {}", span(mean), span(sd)),
        Density::Laplace { scale } => format!("Laplace, scale {}", span(scale)),
    };
    match &prior.support {
        Support::Unbounded => density,
        Support::Box(bounds) => format!("{density}, inside |theta| ≤ {}", span(bounds)),
    }
}

/// One number where all are the same.
fn span(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match low == high {
        true => format!("{low}"),
        false => format!("{low} to {high}"),
    }
}
