//! `dpmc check`: what a run file would do, before anything is spent.

use super::args::{CheckArguments, Overrides};
use super::{CliError, afford, check_budget, ledger, sample};
use crate::config::Plan;
use crate::data::{self, Population};
use crate::output;
use crate::privacy::{Acceptance, Batch, Estimator, GradientNoise};
use crate::sampler::{Algorithm, AnchorSettings, RandomWalk, Sampler};

pub(super) fn run(a: &CheckArguments) -> Result<(), CliError> {
    let mut plan = Plan::read(&a.run)?;
    merge(&mut plan, &a.overrides)?;
    ledger::take_terms(&mut plan, None)?;
    plan.check_declarations()?;
    let data = plan.load_data()?;
    plan.load_test()?;
    let model = plan.model(&data)?;
    let population = data.population();
    let sampler = plan.sampler(&*model, population, data.row_norm())?;
    plan.check_range(&sampler, &*model, population)?;
    let (rows, bytes) = (data.rows(), data.bytes());
    println!(
        "table      {} rows (public), {} features, row norm ≤ {:.4}",
        rows,
        data.features().len(),
        data.row_norm()
    );
    print_bounds(population);
    println!(
        "model      {} with {} parameters, tempering {}",
        model.name(),
        model.dim(),
        model.tempering()
    );
    println!("prior      {}", check_budget::prior(model.prior()));
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
        plan.family()?.name()
    );
    match &sampler {
        Sampler::Walk(walk) if matches!(walk.estimator, Estimator::PublishedFastMh(_)) => {
            println!("clip       each row's own bound, as published");
        }
        Sampler::Walk(walk) => {
            print_clip(walk.typical_clip(model.dim()));
            if walk.typical_clip(model.dim()).is_some() {
                print_batches(walk, model.dim(), population);
            }
        }
        Sampler::Hamiltonian(s) => {
            print_clip(s.typical_clip(model.dim()));
            let per_step = format!("{} a step", s.leapfrog_steps() + 1);
            print_gradients(s.settings().gradient, rows, &per_step);
        }
        Sampler::StochasticGradient(s) => {
            println!("step       {:.4e} at first", s.first_step());
            print_gradients(s.noise_of_step(1), rows, "1 a step");
        }
        Sampler::PosteriorDraws(s) => {
            println!(
                "draws      each the end of {} secret steps",
                s.request().steps
            );
        }
        Sampler::Variational(s) => {
            print_gradients(s.noise(), rows, &format!("{} in all", s.gradients()));
        }
    }
    if let Some(budget) = plan.budget()? {
        print_anchor(afford::anchor(&sampler));
        check_budget::print(&plan, &sampler, &*model, population, budget)?;
    } else {
        println!("budget     none: NOT private");
    }
    for warning in sample::warnings(&plan, rows)? {
        println!("warning: {warning}");
    }
    for note in plan.notes_on_features()? {
        println!("note: {note}");
    }
    let private = plan.budget()?.is_some();
    if let Some(note) = output::note_on_sampler(&sampler, private) {
        println!("note: {note}");
    }
    Ok(())
}

/// How far rows reach, where they have bounds of their own.
fn print_bounds(population: Population) {
    if population != Population::from(population.rows) {
        println!(
            "bounds     public, of every row: {:.4} of the row norm on average, {:.4} at most",
            population.total / population.rows as f64,
            population.largest
        );
    }
}

fn print_clip(typical: Option<f64>) {
    match typical {
        Some(clip) => println!("clip       c = {clip:.3e} nats for a typical move"),
        None => println!("clip       none (widened until nothing is clipped)"),
    }
}

/// What an anchored run releases first.
fn print_anchor(anchor: Option<&AnchorSettings>) {
    match anchor {
        Some(AnchorSettings::Expansion(s)) => {
            if let Some(split) = s.anchoring.split {
                println!(
                    "anchor     rho {:.4} for the warm start, {:.4} for the gradient, {:.4} for the curvature",
                    split.start, split.gradient, split.curvature
                );
                if split.refresh > 0.0 {
                    println!(
                        "           rho {:.4} for a second one after warm-up",
                        split.refresh
                    );
                }
            }
        }
        Some(AnchorSettings::Moments(s)) => {
            if let Some(rho) = s.rho {
                println!(
                    "anchor     rho {rho:.4} for moments up to degree {}",
                    s.degree
                );
            }
        }
        None => {}
    }
}

/// How gradients are clipped and noised, and the rows that they read.
fn print_gradients(noise: GradientNoise, rows: usize, count: &str) {
    let Some(clip) = noise.clip else {
        println!("gradients  {count}, not clipped");
        return;
    };
    println!(
        "gradients  {count}, clipped at {clip:.4e}, noise sd {:.3e} on the sum ({:.3} of its sensitivity)",
        noise.sigma,
        noise.sigma / (2.0 * clip)
    );
    if let Batch::Poisson { rate } = noise.batch {
        let read = rate * rows as f64;
        println!("minibatch  expects {read:.0} of {rows} rows a step");
    }
}

/// Rows that a typical step reads, and how moves divide over the branches of DP-Fast MH.
fn print_batches(sampler: &RandomWalk, d: usize, population: Population) {
    let clips = sampler.typical_clips(d);
    let rows = population.rows;
    let (mut read, mut counts) = (0.0, [0u32; 4]);
    for &clip in &clips {
        let big = population.total * clip;
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
    if read < 0.5 {
        println!("minibatch  expects no row at most steps: {read:.0e} of {rows} rows a step");
    } else if read < rows as f64 {
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
        config.privacy.filter = None;
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
