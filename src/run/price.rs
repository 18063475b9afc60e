//! What a run costs, and how many typical steps a budget holds.

use super::{Outlay, Prepared};
use crate::config::{ConfigError, Plan};
use crate::data::Population;
use crate::model::Model;
use crate::posterior_run::RunState;
use crate::privacy::{Acceptance, Budget, Curator, Estimator, Measure, largest_batch_clip};
use crate::sampler::{ClipNorm, ClipRule, RandomWalk, Sampler};

/// Fixed batches are not smaller.
const LEAST_BATCH: f64 = 11.0;

/// What a run costs, from public numbers; amounts are nats of the ledger's measure.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    /// The budget.
    pub budget: Budget,
    /// What the ledger counts.
    pub measure: Measure,
    /// What the run's releases may take of the budget.
    pub limit: f64,
    /// Of a private start.
    pub start: f64,
    /// Of an anchor, ρ.
    pub anchor: f64,
    /// Of a typical step of one chain; 0 where draws are free.
    pub step: f64,
    /// Such steps of all chains that the budget holds; infinite where draws are free.
    pub steps: f64,
    /// Steps of all chains that the run asks for, warm-up included.
    pub asked: f64,
    /// Those of warm-up alone.
    pub warmup: f64,
    /// To the first draw that is kept, warm-up not included.
    thin: f64,
    chains: f64,
    /// The first draw of a fit is the dear one: the fit is made then.
    fits: bool,
    /// What a step costs follows where the anchor comes to lie.
    pub is_a_guess: bool,
}

impl Price {
    pub(super) fn of(prepared: &Prepared, budget: Budget) -> Result<Self, ConfigError> {
        let (plan, sampler, model) = (&prepared.plan, &prepared.sampler, &*prepared.model);
        let rows = prepared.population();
        let measure = plan.measure(sampler, model, rows, budget)?;
        let limit = plan.limit(budget, measure)?;
        let start = plan.start_cost(model, budget, measure)?;
        let allowance = Allowance {
            budget,
            measure,
            left: limit - start,
        };
        if start > 0.0 && allowance.left <= 0.0 {
            return Err(too_dear_a_start(plan, measure, start, limit));
        }
        let (step, steps) = affordable(plan, sampler, model, rows, allowance)?;
        let (length, chains) = (plan.length()?, plan.chains() as f64);
        let price = Price {
            budget,
            measure,
            limit,
            start,
            anchor: sampler.anchor_rho(),
            step,
            steps,
            asked: (length.iterations as f64 + length.warmup as f64) * chains,
            warmup: length.warmup as f64 * chains,
            // A paced run makes all iterations, whatever it may spend.
            thin: match sampler.walk().is_some_and(RandomWalk::is_paced) {
                true => 0.0,
                false => length.thin as f64 * chains,
            },
            chains,
            fits: matches!(sampler, Sampler::Variational(_)),
            is_a_guess: sampler.cost_is_a_guess() && sampler.walk().is_none_or(RandomWalk::decides),
        };
        price.outlay(None).check_thin(plan, limit)?;
        Ok(price)
    }

    /// What is to be paid before the first draw; less where `saved` has some of it behind it.
    pub fn outlay(&self, saved: Option<&RunState>) -> Outlay {
        let free = saved.is_some_and(|s| s.free);
        let anchored = saved.is_some_and(|s| s.anchor.is_some());
        let started = saved.is_some_and(|s| s.iteration > 0 || s.is_started() && !self.fits);
        let fit = if self.fits {
            self.step * self.asked
        } else {
            0.0
        };
        let made = saved.map_or(0.0, |s| s.iteration as f64) * self.chains;
        let once = if started { 0.0 } else { self.start + fit };
        Outlay {
            once: once + if anchored { 0.0 } else { self.anchor },
            step: if self.fits || free { 0.0 } else { self.step },
            warmup: (self.warmup - made).max(0.0),
            thin: if saved.is_some() { 0.0 } else { self.thin },
            chains: self.chains,
            guessed: self.is_a_guess,
        }
    }
}

/// What is left for steps of a budget.
#[derive(Clone, Copy)]
struct Allowance {
    budget: Budget,
    measure: Measure,
    /// Nats of the measure.
    left: f64,
}

fn too_dear_a_start(plan: &Plan, measure: Measure, start: f64, limit: f64) -> ConfigError {
    let symbol = measure.symbol();
    plan.refuse(
        "run.start",
        format!(
            "costs {symbol} {start:.3e}, which leaves nothing of the budget ({symbol} {limit:.3e}); give it a smaller epsilon (dpvi) or box (ops), or the run a larger budget"
        ),
    )
}

/// The largest step, to one per cent, of which one typical move fits the budget; λ may
/// depend on the step, so the cost is asked for and not scaled.
fn fitting_step(
    rows: Population,
    clips: &[f64],
    sampler: &RandomWalk,
    Allowance {
        budget, measure, ..
    }: Allowance,
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

/// Of batches of fixed size by which a step fits the budget, one next to `batch`. Smaller ones hide
/// better which rows they hold; larger ones have a divergence at the high orders that a small
/// budget takes.
fn fitting_batch(
    plan: &Plan,
    sampler: &RandomWalk,
    batch: usize,
    model: &dyn Model,
    rows: Population,
    budget: Budget,
) -> Option<usize> {
    let fits = |&batch: &usize| {
        let mut walk = sampler.clone();
        let clip = largest_batch_clip(batch, rows.rows);
        walk.estimator = Estimator::FixedBatch { batch };
        walk.clip = Some(ClipRule {
            rate: clip,
            norm: ClipNorm::Constant,
        });
        let other = Sampler::Walk(Box::new(walk.clone()));
        let measure = plan.measure(&other, model, rows, budget).ok()?;
        let left =
            plan.limit(budget, measure).ok()? - plan.start_cost(model, budget, measure).ok()?;
        let (cost, _) = mean_cost(rows, &[clip], &walk, budget, measure).ok()??;
        (left >= cost).then_some(batch)
    };
    let mut batches: Vec<usize> = (0..)
        .map(|i| (LEAST_BATCH * f64::powi(1.25, i)) as usize)
        .take_while(|b| *b < rows.rows)
        .chain([rows.rows])
        .collect();
    let distance = |b: &usize| (*b as f64 / batch as f64).ln().abs();
    batches.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    batches.iter().find_map(fits)
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

/// ρ of a decision on a typical move around its anchor, nats; `None` where it has none.
pub fn price_of_decision(walk: &RandomWalk, rows: Population, budget: Budget) -> Option<f64> {
    let clip = walk.anchoring.as_ref()?.typical_clip();
    let (cost, _) = mean_cost(rows, &[clip], walk, budget, Measure::Zcdp).ok()??;
    Some(cost)
}

/// Cost of a typical step in the ledger's measure and the number of such steps that the
/// budget holds: 0 and infinity where draws are free. A budget too small for one is an error that
/// says which step would fit.
fn affordable(
    plan: &Plan,
    sampler: &Sampler,
    model: &dyn Model,
    rows: Population,
    mut allowance: Allowance,
) -> Result<(f64, f64), ConfigError> {
    allowance.left -= sampler.anchor_rho();
    match sampler.walk() {
        // Its draws are free.
        Some(walk) if !walk.decides() => Ok((0.0, f64::INFINITY)),
        Some(walk) => affordable_moves(plan, walk, model, rows, allowance),
        None => affordable_gradients(plan, sampler, model, rows, allowance),
    }
}

/// The same for samplers on gradients.
fn affordable_gradients(
    plan: &Plan,
    sampler: &Sampler,
    model: &dyn Model,
    rows: Population,
    allowance: Allowance,
) -> Result<(f64, f64), ConfigError> {
    let Allowance {
        budget,
        measure,
        left: limit,
    } = allowance;
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
            Sampler::Optimiser(_) => "a larger gradient.tau or a smaller rate",
            Sampler::PosteriorDraws(_) => "a smaller box or tempering",
            _ => "fewer steps, or a larger gradient.tau",
        };
        return Err(plan.refuse(
            "privacy.epsilon",
            format!(
                "the budget ({symbol} {limit:.3e}) is too small for a single step ({symbol} {cost:.3e}); it takes {remedy}, or a larger budget"
            ),
        ));
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
    allowance: Allowance,
) -> Result<(f64, f64), ConfigError> {
    let Allowance {
        budget,
        measure,
        left: limit,
    } = allowance;
    let clips = sampler.typical_clips(model.dim());
    if clips.is_empty() {
        return Err(ConfigError::general("a private run needs a clip bound"));
    }
    let refuse = |key: &str, what: String| plan.refuse(key, what);
    let dearest = sampler.fast_mh.map(|fast| fast.dearest_minibatches());
    // A move that no ledger could be charged for would end the run.
    for clip in dearest.unwrap_or_default() {
        if let Err(what) = mean_cost(rows, &[clip], sampler, budget, measure) {
            return Err(match plan.states_measure() {
                true => plan.refuse_measure(measure, &what),
                false => refuse(
                    "sampler.step_epsilon",
                    "at no order of a Rényi filter can this budget be charged for every minibatch that a move may draw; it takes a smaller step_epsilon or batch_cap, a larger lambda, or dp-fast-mh-full, which draws none".into(),
                ),
            });
        }
    }
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
            (Estimator::FixedBatch { batch }, _) => {
                match fitting_batch(plan, sampler, batch, model, rows, budget) {
                    Some(fits) => format!("a batch of {fits} instead of {batch} would fit"),
                    None => format!(
                        "no batch of these {} rows makes it fit; it takes a larger budget, or another algorithm",
                        rows.rows
                    ),
                }
            }
            (_, Acceptance::Penalty { tau }) => {
                format!("a tau of {:.3} would fit", 1.001 * tau / steps.sqrt())
            }
            _ => format!(
                "a proposal step of {:.3e} instead of {:.3e} would fit",
                fitting_step(rows, &clips, sampler, allowance),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare;

    const RUN: &str = "[data]\nfile = \"t.csv\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\"]\nclamp = [-1, 1]\n[model]\nkind = \"logistic\"\nprior = { kind = \"normal\", sd = 1.0 }\n[sampler]\nSAMPLER\n[run]\niterations = 20000\nLENGTH\n[privacy]\nepsilon = EPSILON\ndelta = 1e-6\n";

    /// What the run costs, or why it is refused.
    fn price(sampler: &str, length: &str, epsilon: f64) -> Result<Price, String> {
        let folder = tempfile::tempdir().unwrap();
        let table: String = (0..600)
            .map(|i| format!("{},{}\n", i % 3 - 1, i % 2))
            .collect();
        std::fs::write(folder.path().join("t.csv"), format!("a,y\n{table}")).unwrap();
        let text = RUN
            .replace("SAMPLER", sampler)
            .replace("LENGTH", length)
            .replace("EPSILON", &epsilon.to_string());
        let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
        let price = prepare(plan).and_then(|prepared| prepared.price());
        price.map(Option::unwrap).map_err(|e| e.to_string())
    }

    /// The number after the last `words` of a message.
    fn number(message: &str, words: &str) -> String {
        let after = message.rsplit(words).next().unwrap();
        after.split([' ', ';']).next().unwrap().to_string()
    }

    #[test]
    fn thinning_that_keeps_no_draw_is_refused_before_anything_is_charged() {
        let barker = "algorithm = \"barker\"\nstep = 0.003";
        for rest in ["", "warmup = 1000\nchains = 2\n"] {
            let refused = |thin: &str| price(barker, &format!("{rest}thin = {thin}"), 1.0).err();
            let message = refused("19000").unwrap();
            assert!(message.contains("run.thin"), "{message}");
            let most = number(&message, "at most ");
            assert_eq!(refused(&most), None);
            let more = most.parse::<u64>().unwrap() + 1;
            assert!(refused(&more.to_string()).is_some());
        }
        // Its decisions are spread over all iterations.
        assert!(price("algorithm = \"anchored-barker\"", "thin = 20000", 1.0).is_ok());
    }

    /// A message's batch fits; where there is none, none is named.
    #[test]
    fn a_batch_that_is_told_to_fit_does() {
        let of = |batch: &str, epsilon| {
            let sampler = format!("algorithm = \"dp-barker-subsampled\"\nbatch = {batch}");
            price(&sampler, "", epsilon)
        };
        for (batch, epsilon) in [("60", 1.0), ("11", 3.0)] {
            let message = of(batch, epsilon).unwrap_err();
            let fits = number(&message, "a batch of ");
            assert!(of(&fits, epsilon).is_ok(), "{message}");
        }
        let message = of("60", 0.01).unwrap_err();
        assert!(message.contains("no batch of these 600 rows"), "{message}");
    }

    /// Moves that draw a minibatch may be rare: no typical one here does.
    #[test]
    fn a_minibatch_that_cannot_be_charged_is_refused_before_anything_is() {
        let of = |settings: &str, epsilon| {
            let sampler = format!("algorithm = \"dp-fast-mh\"\n{settings}");
            price(&sampler, "", epsilon).err()
        };
        let message = of("step = 30.0", 300.0).unwrap();
        assert!(
            message.contains("privacy.epsilon: at epsilon 300"),
            "{message}"
        );
        let most: f64 = number(&message, "at most ").parse().unwrap();
        assert!((20.0..60.0).contains(&most));
        assert_eq!(of("step = 30.0", most), None);
        for settings in [
            "step = 30.0\nlambda = 0.001\nstep_epsilon = 20.0",
            "step = 0.5\nlambda = 0.001\nstep_epsilon = 23.0\nstep_delta = 0.3",
        ] {
            let message = of(settings, 20.0).unwrap();
            assert!(
                message.contains("sampler.step_epsilon: at no order"),
                "{message}"
            );
        }
    }
}
