//! `dpmc check`: what a run file would do, before anything is spent.

use super::CliError;
use super::args::{CheckArguments, Overrides};
use crate::config::{ConfigError, Plan};
use crate::data;
use crate::model::Model;
use crate::privacy::{Acceptance, Budget, Curator, Estimator, Measure};
use crate::sampler::{Algorithm, AnchorSplit, RandomWalk};

pub(super) fn run(a: &CheckArguments) -> Result<(), CliError> {
    let mut plan = Plan::read(&a.run)?;
    merge(&mut plan, &a.overrides)?;
    plan.check_declarations()?;
    let data = plan.load_data()?;
    plan.load_test()?;
    let model = plan.model(&data)?;
    let sampler = plan.sampler(&*model, data.rows(), data.row_norm())?;
    plan.check_range(&sampler, &*model, data.rows())?;
    let (rows, bytes) = (data.rows(), data.bytes());
    println!(
        "table      {} rows (public), {} features, row norm ≤ {:.4}",
        rows,
        data.features().len(),
        data.row_norm()
    );
    println!(
        "model      {} with {} parameters, tempering {}",
        model.name(),
        model.dim(),
        model.tempering()
    );
    println!(
        "memory     {:.1} MiB of rows{}",
        bytes as f64 / f64::from(1 << 20),
        data::available_memory()
            .map(|m| format!(", {} MiB available", m >> 20))
            .unwrap_or_default()
    );
    let length = plan.length()?;
    println!(
        "run        {} × ({} warm-up + {} iterations), algorithm {}",
        plan.chains(),
        length.warmup,
        length.iterations,
        plan.combination()?.name()
    );
    if matches!(sampler.estimator, Estimator::PublishedFastMh(_)) {
        println!("clip       each row's own bound, as published");
        return Ok(());
    }
    let Some(typical) = sampler.typical_clip(model.dim()) else {
        println!("clip       none (widened until nothing is clipped)");
        return Ok(());
    };
    println!("clip       c = {typical:.3e} nats for a typical move");
    print_batches(&sampler, model.dim(), rows);
    if let Some(budget) = plan.budget()? {
        if let Some(split) = anchor_split(&sampler) {
            println!(
                "anchor     rho {:.4} for the warm start, {:.4} for the gradient, {:.4} for the curvature",
                split.start, split.gradient, split.curvature
            );
        }
        let measure = plan.measure(&sampler, &*model, rows, budget)?;
        let symbol = measure.symbol();
        let (cost, steps) = affordable(&plan, &sampler, &*model, rows, budget, measure)?;
        let total = (length.iterations as f64 + length.warmup as f64) * plan.chains() as f64;
        println!(
            "budget     ({}, {:e})-DP = {symbol} {:.4}; a typical step costs {symbol} {cost:.3e} (epsilon {:.2e} alone)",
            budget.epsilon(),
            budget.delta(),
            measure.limit(budget),
            measure.epsilon(cost, budget.delta())
        );
        if measure.is_renyi() {
            println!("           counted by a {}", measure.filter());
        }
        println!(
            "           affords about {steps:.0} steps; the run asks for {total:.0}{}",
            if total > steps {
                ": it will end early"
            } else {
                ""
            }
        );
    } else {
        println!("budget     none: NOT private");
    }
    Ok(())
}

/// Rows that a typical step reads, and how moves divide over the branches of DP-Fast MH.
fn print_batches(sampler: &RandomWalk, d: usize, rows: usize) {
    let clips = sampler.typical_clips(d);
    let (mut read, mut counts) = (0.0, [0u32; 4]);
    for &clip in &clips {
        let big = rows as f64 * clip;
        let (estimator, acceptance) = sampler.rule(clip);
        read += match estimator {
            Estimator::Poisson { lambda } => lambda.value(big) + big,
            Estimator::FixedBatch { batch } => batch as f64,
            _ => rows as f64,
        };
        let all = usize::from(estimator == Estimator::FullBatch);
        counts[2 * all + usize::from(acceptance != Acceptance::Barker)] += 1;
    }
    let read = read / clips.len() as f64;
    if read < rows as f64 {
        println!("minibatch  expects {read:.0} of {rows} rows a step");
    }
    if sampler.fast_mh.is_some() {
        let share = counts.map(|n| 100.0 * f64::from(n) / clips.len() as f64);
        println!(
            "branches   about {:.0} % of moves on a minibatch without noise, {:.0} % with; {:.0} % on all rows without, {:.0} % with",
            share[0], share[1], share[2], share[3]
        );
    }
}

/// A resumed run keeps data, model, algorithm, budget and ledger: its draws were made
/// and paid for under them.
pub(super) fn only_length_and_engine(o: &Overrides) -> Result<(), CliError> {
    let foreign = [
        ("--data", o.data.is_some()),
        ("--algorithm", o.algorithm.is_some()),
        ("--as-published", o.as_published),
        ("--epsilon", o.epsilon.is_some()),
        ("--delta", o.delta.is_some()),
        ("--not-private", o.not_private),
        ("--ledger", o.ledger.is_some()),
        ("--chains", o.chains.is_some()),
        ("--seed", o.seed.is_some()),
    ];
    match foreign.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(CliError::Input(format!(
            "{flag}: a resumed run keeps its settings; only --iterations, --engine and --quiet may change"
        ))),
    }
}

/// The largest step, to one per cent, of which one typical move fits the budget; λ may
/// depend on the step, so the cost is asked for and not scaled.
fn fitting_step(
    rows: usize,
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
    rows: usize,
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

/// Flags override the run file; what they set is refused by the flag's name.
pub(super) fn merge(plan: &mut Plan, o: &Overrides) -> Result<(), CliError> {
    for (given, key, flag) in [
        (o.data.is_some(), "data.file", "--data"),
        (o.algorithm.is_some(), "sampler.algorithm", "--algorithm"),
        (o.as_published, "sampler.as_published", "--as-published"),
        (o.epsilon.is_some(), "privacy.epsilon", "--epsilon"),
        (o.delta.is_some(), "privacy.delta", "--delta"),
        (o.not_private, "privacy.not_private", "--not-private"),
        (o.ledger.is_some(), "privacy.ledger", "--ledger"),
        (o.chains.is_some(), "run.chains", "--chains"),
        (o.iterations.is_some(), "run.iterations", "--iterations"),
        (o.seed.is_some(), "run.seed", "--seed"),
    ] {
        if given {
            plan.set_by_flag(key, flag);
        }
    }
    let absolute = |p: &std::path::Path| std::path::absolute(p).unwrap_or_else(|_| p.into());
    let name = plan.dataset_name();
    let config = &mut plan.config;
    if let Some(file) = &o.data {
        // The data set keeps its name: a ledger follows the name, not the file.
        config.data.name = Some(name);
        config.data.file = absolute(file);
    }
    if let Some(name) = &o.algorithm {
        let algorithm = Algorithm::parse(name).ok_or_else(|| {
            let names: Vec<&str> = Algorithm::ALL.iter().map(|a| a.name()).collect();
            CliError::Input(format!(
                "--algorithm: '{name}' is unknown; one of {}",
                names.join(", ")
            ))
        })?;
        // Settings of the run file's own sampler do not carry over to another.
        config.sampler.choose(algorithm);
    }
    config.sampler.as_published |= o.as_published;
    if o.not_private {
        (config.privacy.epsilon, config.privacy.delta) = (None, None);
        (config.privacy.ledger, config.privacy.order) = (None, None);
        config.privacy.not_private = true;
    }
    if o.epsilon.is_some() || o.delta.is_some() {
        config.privacy.not_private = false;
        config.privacy.epsilon = o.epsilon.or(config.privacy.epsilon);
        config.privacy.delta = o.delta.or(config.privacy.delta);
    }
    if let Some(ledger) = &o.ledger {
        config.privacy.ledger = Some(absolute(ledger));
    }
    config.run.chains = o.chains.or(config.run.chains);
    config.run.iterations = o.iterations.unwrap_or(config.run.iterations);
    config.run.seed = o.seed.or(config.run.seed);
    if let Some(engine) = o.engine {
        config.run.engine = engine.into();
    }
    Ok(())
}

/// What the anchor of an anchored run is to cost.
pub(super) fn anchor_split(sampler: &RandomWalk) -> Option<AnchorSplit> {
    sampler.anchoring.as_ref()?.anchoring.split
}

/// Cost of a typical step in the ledger's measure and the number of such steps that the
/// budget holds; a budget too small for one is an error that says which step would fit.
pub(super) fn affordable(
    plan: &Plan,
    sampler: &RandomWalk,
    model: &dyn Model,
    rows: usize,
    budget: Budget,
    measure: Measure,
) -> Result<(f64, f64), CliError> {
    let clips = sampler.typical_clips(model.dim());
    if clips.is_empty() {
        return Err(ConfigError::general("a private run needs a clip bound").into());
    }
    let refuse = |key: &str, what: String| CliError::from(plan.refuse(key, what));
    let Some((cost, coins)) = mean_cost(rows, &clips, sampler, budget, measure)
        .map_err(|e| refuse("privacy.order", e))?
    else {
        return Err(refuse(
            "sampler.algorithm",
            "is not private; use --not-private".into(),
        ));
    };
    // Found by bisection, so once.
    let limit = measure.limit(budget) - anchor_split(sampler).map_or(0.0, |s| s.rho());
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
