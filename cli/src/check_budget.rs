//! The part of `dpmc check` that a budget decides: what steps cost, how many there will be, and
//! what to expect of them.

use serde::Serialize;

use super::CliError;
use super::check_report::Report;
use dpmc::config::{DECISIONS_A_DRAW, Forecast, Plan};
use dpmc::data::Population;
use dpmc::model::{Block, BlockLaw, Density, Predictor, Prior, Support};
use dpmc::privacy::{Budget, Measure};
use dpmc::run::{NO_DRAW, Outlay, Prepared, Price, price_of_decision};
use dpmc::sampler::{AnchorSettings, Family, RandomWalk, Sampler};

/// What a budget holds; amounts are in the ledger's measure, nats.
#[derive(Debug, Serialize)]
pub(super) struct BudgetReport {
    pub epsilon: f64,
    pub delta: f64,
    /// `rho`, `mu^2/2` or `D_order`: what the ledger counts.
    pub symbol: String,
    /// The ledger's filter, in words.
    pub filter: String,
    /// The whole budget.
    pub limit: f64,
    /// Of a private start.
    pub start_cost: f64,
    /// Of a typical step; absent where draws are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_cost: Option<f64>,
    /// Epsilon of such a step alone; absent where delta alone pays for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_epsilon: Option<f64>,
    /// What decisions would cost, where there are none and draws are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_draws: Option<Decisions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerReport>,
    /// Steps of all chains that the budget, or what its ledger has left, holds; absent where draws
    /// are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_affordable: Option<f64>,
    /// Steps of all chains, warm-up included, that the run asks for.
    pub steps_asked: f64,
    /// Where they do not all fit, whether as many decisions as do are spread over the run.
    pub decisions_are_spread: bool,
    /// … or it ends.
    pub ends_early: bool,
    /// What a step costs follows where the anchor comes to lie.
    pub step_is_a_guess: bool,
    /// The declared largest count, with which such a guess grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_count: Option<u32>,
    /// The key under which it is declared.
    #[serde(skip)]
    pub label_key: String,
    /// Whether adaptation changes what steps cost.
    pub adapts: bool,
}

/// A shared ledger that exists.
#[derive(Debug, Serialize)]
pub(super) struct LedgerReport {
    pub path: String,
    pub spent: f64,
    pub left: f64,
}

/// Why an anchored run makes no decisions.
#[derive(Debug, Serialize)]
#[serde(tag = "decisions", rename_all = "snake_case")]
pub(super) enum Decisions {
    /// The algorithm has none, or none for this model or table.
    NeverMade,
    /// A quadratic log likelihood leaves nothing to decide.
    NothingToDecide,
    /// rho of one, and of as many as the effective draws of `[run] ess` take.
    TooDear {
        rho_each: f64,
        count: f64,
        rho: f64,
        /// The whole budget's.
        budget_rho: f64,
    },
    /// No mechanism holds them.
    Unpriced,
}

/// Adds budget, forecast and what is to be said of them.
pub(super) fn fill(
    report: &mut Report,
    prepared: &Prepared,
    price: &Price,
) -> Result<(), CliError> {
    let Prepared { plan, sampler, .. } = prepared;
    let (budget, measure, start) = (price.budget, price.measure, price.start);
    let rows = prepared.population();
    let free = sampler.walk().filter(|walk| !walk.decides());
    let (cost, total) = (price.step, price.asked);
    let outlay = price.outlay(None);
    let (mut left, mut steps, mut shared) = (price.limit, price.steps, None);
    if let Some((path, spent)) = plan.spent_of_ledger(rows.rows, budget, measure)? {
        left -= spent;
        let first = Outlay {
            warmup: 0.0,
            ..outlay
        };
        first.check(plan, &path, left, measure)?;
        if free.is_none() {
            steps = steps.min((left - start - price.anchor) / cost);
        }
        shared = Some(LedgerReport {
            path: path.display().to_string(),
            spent,
            left: left.max(0.0),
        });
    }
    let paced = sampler.walk().is_some_and(RandomWalk::is_paced);
    let epsilon = measure.epsilon(cost, budget.delta());
    let (label_key, label) = plan.declared_label()?.unzip();
    report.budget = Some(BudgetReport {
        epsilon: budget.epsilon(),
        delta: budget.delta(),
        symbol: measure.symbol(),
        filter: measure.filter(),
        limit: measure.limit(budget),
        start_cost: start,
        step_cost: free.is_none().then_some(cost),
        step_epsilon: (free.is_none() && epsilon > 0.0).then_some(epsilon),
        free_draws: match free {
            Some(walk) => Some(decisions(plan, walk, rows, budget)?),
            None => None,
        },
        ledger: shared,
        steps_affordable: free.is_none().then_some(steps),
        steps_asked: total,
        decisions_are_spread: total > steps && paced,
        ends_early: total > steps && !paced,
        step_is_a_guess: price.is_a_guess,
        label_count: label.and_then(|l| l.count),
        label_key: label_key.unwrap_or_default(),
        adapts: free.is_none() && adapts(sampler),
    });
    report.forecast = plan.forecast(sampler, &*prepared.model, (budget, measure), steps)?;
    report
        .notes
        .extend(report.forecast.as_ref().and_then(note_on_prior));
    if outlay.ends_in_warmup(left) {
        let guess = if price.is_a_guess {
            " (by this guess)"
        } else {
            ""
        };
        report.warnings.push(format!("{NO_DRAW}{guess}"));
    }
    Ok(())
}

/// What decisions would cost a run that makes none.
fn decisions(
    plan: &Plan,
    walk: &RandomWalk,
    rows: Population,
    budget: Budget,
) -> Result<Decisions, CliError> {
    let expansion = match &walk.anchoring {
        Some(AnchorSettings::Expansion(settings)) => Some(settings.anchoring.slopes),
        _ => None,
    };
    let joint = expansion.is_some_and(|slopes| matches!(slopes.predictor, Predictor::Joint(_)));
    if joint || plan.config.data.unit.is_some() || plan.family()? == Family::Laplace {
        return Ok(Decisions::NeverMade);
    }
    if !walk.has_remainders() {
        return Ok(Decisions::NothingToDecide);
    }
    let Some(rho_each) = price_of_decision(walk, rows, budget) else {
        return Ok(Decisions::Unpriced);
    };
    let length = plan.length()?;
    let asked = (length.iterations as f64 + length.warmup as f64) * plan.chains() as f64;
    let count = (DECISIONS_A_DRAW * plan.config.run.ess).min(asked);
    Ok(Decisions::TooDear {
        rho_each,
        count,
        rho: count * rho_each,
        budget_rho: Measure::Zcdp.limit(budget),
    })
}

/// Whether adaptation changes what steps cost.
fn adapts(sampler: &Sampler) -> bool {
    match sampler {
        Sampler::Walk(walk) => walk.adaptation.is_active(),
        Sampler::Hamiltonian(s) => s.settings().warmup.is_active(),
        _ => false,
    }
}

/// A budget whose releases tell less than the prior does.
fn note_on_prior(forecast: &Forecast) -> Option<String> {
    forecast.prior_is_as_near.then(|| {
        "the noise of this budget is expected to be wider than the prior itself: the draws will be about the prior's; a larger epsilon, more rows or fewer features would tell more".into()
    })
}

/// A prior in words.
pub(super) fn prior(prior: &Prior) -> String {
    let density = match &prior.density {
        Density::Flat => "flat".into(),
        Density::Normal { mean, sd } => format!("normal, mean {}, sd {}", span(mean), span(sd)),
        Density::Laplace { scale } => format!("Laplace, scale {}", span(scale)),
        Density::Blocks(blocks) => {
            let each = blocks.blocks.iter().map(block);
            each.collect::<Vec<String>>().join("; ")
        }
    };
    match &prior.support {
        Support::Unbounded => density,
        Support::Box(bounds) => format!("{density}, inside |theta| ≤ {}", span(bounds)),
    }
}

/// A block of a prior in words.
fn block(block: &Block) -> String {
    let law = match &block.law {
        BlockLaw::Normal { mean, sd } => format!("normal, mean {}, sd {}", span(mean), span(sd)),
        BlockLaw::StudentT {
            degrees,
            mean,
            scale,
        } => format!(
            "Student-t, {degrees} degrees of freedom, mean {}, scale {}",
            span(mean),
            span(scale)
        ),
        BlockLaw::Shared { name, .. } => format!("normal, mean 0, sd {name}"),
        BlockLaw::Horseshoe { name, scale } => {
            format!("horseshoe, {name} half-Cauchy of scale {scale}")
        }
    };
    match block.members.len() {
        1 => format!("1 parameter {law}"),
        n => format!("{n} parameters {law}"),
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
