//! What a typical step costs, and how many of them a budget holds.

use super::CliError;
use dpmc::config::{ConfigError, Plan};
use dpmc::data::Population;
use dpmc::model::Model;
use dpmc::privacy::{Acceptance, Budget, Curator, Estimator, Measure};
use dpmc::sampler::{AnchorSettings, Decisions, RandomWalk, Sampler};

/// The largest step, to one per cent, of which one typical move fits the budget; λ may
/// depend on the step, so the cost is asked for and not scaled.
fn fitting_step(
    rows: Population,
    clips: &[f64],
    sampler: &RandomWalk,
    budget: Budget,
    measure: Measure,
) -> f64 {
    let most = 0.995 * measure.limit(budget);
    let mut share = 1.0;
    for _ in 0..20_000 {
        share *= 0.99;
        let shorter: Vec<f64> = clips.iter().map(|c| share * c).collect();
        match mean_cost(rows, &shorter, sampler, budget, measure) {
            Ok(Some((cost, _))) if cost <= most => break,
            Ok(_) => {}
            Err(_) => return 0.0,
        }
    }
    share * sampler.step
}

/// Mean cost of moves with these clip bounds in the ledger's measure, and mean δ of their
/// coins; `None` where the sampler is not private.
fn mean_cost(
    rows: Population,
    clips: &[f64],
    sampler: &RandomWalk,
    budget: Budget,
    measure: Measure,
) -> Result<Option<(f64, f64)>, String> {
    let (mut cost, mut coins) = (0.0, 0.0);
    for &clip in clips {
        let (estimator, acceptance) = sampler.rule(clip);
        let event = Curator::cost(rows, clip, estimator, acceptance).map_err(|e| e.to_string())?;
        let Some((key, draws)) = event else {
            return Ok(None);
        };
        let price = measure.price(key, budget)?;
        cost += price.cost.nats();
        coins += draws + price.tail;
    }
    let n = clips.len().max(1) as f64;
    Ok(Some((cost / n, coins / n)))
}

/// What an anchored run releases before its first step.
pub(super) fn anchor(sampler: &Sampler) -> Option<&AnchorSettings> {
    sampler.walk()?.anchoring.as_ref()
}

/// Whether what a step costs follows released values of an anchor: remainders whose clip
/// depends on where, and in which metric, the expansion comes to lie.
pub(super) fn is_guess(sampler: &Sampler) -> bool {
    match anchor(sampler) {
        Some(AnchorSettings::Expansion(s)) => !s.anchoring.slopes.is_quadratic(),
        _ => false,
    }
}

/// Whether there is anything to decide about moves around its anchor.
pub(super) fn has_remainders(walk: &RandomWalk) -> bool {
    match &walk.anchoring {
        Some(AnchorSettings::Expansion(s)) => !s.anchoring.slopes.is_quadratic(),
        _ => true,
    }
}

/// Whether a run makes as many decisions as fit and spreads them, instead of ending early.
pub(super) fn is_paced(walk: &RandomWalk) -> bool {
    match &walk.anchoring {
        Some(AnchorSettings::Expansion(s)) => matches!(s.decisions, Decisions::Paced { .. }),
        _ => false,
    }
}

/// ρ of a decision on a typical move around its anchor, nats; `None` where it has none.
pub(super) fn price_of_decision(
    walk: &RandomWalk,
    rows: Population,
    budget: Budget,
) -> Option<f64> {
    let clip = walk.anchoring.as_ref()?.typical_clip();
    let (cost, _) = mean_cost(rows, &[clip], walk, budget, Measure::Zcdp).ok()??;
    Some(cost)
}

/// Its ρ; 0 for others.
pub(super) fn anchor_rho(sampler: &Sampler) -> f64 {
    anchor(sampler).and_then(AnchorSettings::rho).unwrap_or(0.0)
}

/// Cost of a typical step in the ledger's measure and the number of such steps that the
/// budget holds: 0 and infinity where draws are free. A budget too small for one is an error that
/// says which step would fit.
pub(super) fn affordable(
    plan: &Plan,
    sampler: &Sampler,
    model: &dyn Model,
    rows: Population,
    budget: Budget,
    measure: Measure,
) -> Result<(f64, f64), CliError> {
    let whole = plan.room(budget, measure)?;
    let start = plan.start_cost(model, budget, measure)?;
    if start > 0.0 && start >= whole {
        let symbol = measure.symbol();
        return Err(plan
            .refuse(
                "run.start",
                format!(
                    "costs {symbol} {start:.3e}, which leaves nothing of the budget ({symbol} {whole:.3e}); give it a smaller epsilon (dpvi) or box (ops), or the run a larger budget"
                ),
            )
            .into());
    }
    let limit = whole - start - anchor_rho(sampler);
    match sampler.walk() {
        // Its draws are free.
        Some(walk) if !walk.decides() => Ok((0.0, f64::INFINITY)),
        Some(walk) => affordable_moves(plan, walk, model, rows, (budget, measure, limit)),
        None => affordable_gradients(plan, sampler, model, rows, (budget, measure, limit)),
    }
}

/// The same for samplers on gradients.
fn affordable_gradients(
    plan: &Plan,
    sampler: &Sampler,
    model: &dyn Model,
    rows: Population,
    (budget, measure, limit): (Budget, Measure, f64),
) -> Result<(f64, f64), CliError> {
    let length = plan.length()?;
    let planned = length.iterations.saturating_add(length.warmup);
    let step = sampler
        .step_cost(rows, model, (planned, plan.chains()))
        .map_err(|halt| plan.refuse("sampler.gradient", halt.to_string()))?;
    let mut cost = 0.0;
    for (key, count) in &step.events {
        let price = measure
            .price(*key, budget)
            .map_err(|e| plan.refuse_measure(measure, &e))?;
        cost += price.cost.nats() * count;
    }
    let steps = limit / cost;
    let needed = match sampler {
        // The fit is made whole or not at all; its rounding may take a part in 10^4.
        Sampler::Variational(_) => planned as f64 * plan.chains() as f64 * (1.0 - 1e-4),
        _ => 1.0,
    };
    if steps.is_nan() || steps < needed {
        let symbol = measure.symbol();
        let remedy = match sampler {
            Sampler::Hamiltonian(_) => {
                "fewer leapfrog steps, a larger gradient.tau or a larger tau"
            }
            Sampler::StochasticGradient(_) => "a smaller step, gradient clip or rate",
            Sampler::PosteriorDraws(_) => "a smaller box or tempering",
            _ => "fewer steps, or a larger gradient.tau",
        };
        return Err(plan
            .refuse(
                "privacy.epsilon",
                format!(
                    "the budget ({symbol} {limit:.3e}) is too small for a single step ({symbol} {cost:.3e}); it takes {remedy}, or a larger budget"
                ),
            )
            .into());
    }
    let by_coins = match step.coins {
        0.0 => f64::INFINITY,
        coins => budget.coin_delta() / coins,
    };
    Ok((cost, steps.min(by_coins)))
}

fn affordable_moves(
    plan: &Plan,
    sampler: &RandomWalk,
    model: &dyn Model,
    rows: Population,
    (budget, measure, limit): (Budget, Measure, f64),
) -> Result<(f64, f64), CliError> {
    let clips = sampler.typical_clips(model.dim());
    if clips.is_empty() {
        return Err(ConfigError::general("a private run needs a clip bound").into());
    }
    let refuse = |key: &str, what: String| CliError::from(plan.refuse(key, what));
    let Some((cost, coins)) = mean_cost(rows, &clips, sampler, budget, measure)
        .map_err(|e| plan.refuse_measure(measure, &e))?
    else {
        return Err(refuse(
            "sampler.algorithm",
            "is not private; use --not-private".into(),
        ));
    };
    let steps = limit / cost;
    if steps.is_nan() || steps < 1.0 {
        let symbol = measure.symbol();
        let remedy = match (sampler.estimator, sampler.acceptance) {
            (Estimator::FixedBatch { .. }, _) => {
                "its cost falls with batch and rows alone: a smaller batch would fit, or a larger budget".into()
            }
            (_, Acceptance::Penalty { tau }) => {
                format!("a tau of {:.3} would fit", 1.001 * tau / steps.sqrt())
            }
            _ => format!(
                "a proposal step of {:.3e} instead of {:.3e} would fit",
                fitting_step(rows, &clips, sampler, budget, measure),
                sampler.step
            ),
        };
        return Err(refuse(
            "privacy.epsilon",
            format!(
                "the budget ({symbol} {limit:.3e}) is too small for a single step ({symbol} {cost:.3e}); {remedy}"
            ),
        ));
    }
    // Secret Poisson draws are right to 2^-100; at a huge ε even that costs too much δ.
    let by_coins = budget.coin_delta() / coins;
    if by_coins < 1.0 {
        return Err(refuse(
            "privacy.epsilon",
            format!(
                "at epsilon {} a Poisson minibatch cannot be paid for from delta; use barker (all rows) or a smaller epsilon",
                budget.epsilon()
            ),
        ));
    }
    Ok((cost, steps.min(by_coins)))
}
