//! `dpmc sample`: one run from its files to its directory.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rand::{TryRng, rngs::SysRng};

use super::CliError;
use super::args::SampleArguments;
use super::ledger::{self, Need};
use super::records::Records;
use super::{afford, check, pace, signals, summary};
use dpmc::config::{DrawsName, Plan, RunSection};
use dpmc::data::Dataset;
use dpmc::engine::EngineSetup;
use dpmc::model::Model;
use dpmc::output::{self, RunDirectory};
use dpmc::posterior_run::{PosteriorRun, RunState, Status};
use dpmc::privacy::{Curator, Ledger, Measure};
use dpmc::sampler::{Chains, Family, Sampler};

/// Why published DP-Fast MH is not private.
const FAST_MH_AS_PUBLISHED: &str = "dp-fast-mh as published (Zhang & Zhang 2023, Algorithm 2) is not private, whatever its epsilon: without noise a Metropolis rejection is possible on one data set and impossible on its neighbour; 6Kp*epsilon fails for an epsilon above 3 an occurrence; batch sizes and noise scales follow the rows. Nor is it exact: the test B < K is not reversible. The sound form is dp-fast-mh";

/// What published DP-SGLD does.
const LI_AS_PUBLISHED: &str = "as published (Li 2019, Algorithm 1, the gradient's sign turned), dp-sgld injects half of the noise that leaves the posterior invariant and samples its square: standard deviations are too small by a factor of sqrt(2) (dp-sghmc has no listing there). The paper's claims of epsilon rest on constants that it does not give; this certificate charges what the mechanism does";

/// Draws are published when this many wait in memory, if not before.
const PUBLISH_DRAWS: usize = 1 << 16;
/// The progress line is renewed this often, however slow a step is.
const SHOW_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run(a: &SampleArguments) -> Result<(), CliError> {
    if let Some(directory) = &a.resume {
        RunDirectory::can_resume(directory)?;
    }
    let mut plan = read_plan(a)?;
    if a.resume.is_some() {
        check::only_length_and_engine(&a.overrides)?;
    }
    check::merge(&mut plan, &a.overrides)?;
    ledger::take_terms(&mut plan, a.resume.as_deref())?;
    plan.check_declarations()?;
    let stop = signals::stop_flag()?;

    // Everything that bad input can stop comes before the directory is made.
    let mut parts = load(&plan)?;
    if plan.budget()?.is_some() {
        plan.state_measure(parts.measure);
    }
    let test = parts.test.take();
    let (mut directory, saved) = match &a.resume {
        Some(path) => {
            let (directory, state) = RunDirectory::resume(path)?;
            (directory, Some(state))
        }
        None => (RunDirectory::create(&out_directory(a, &plan))?, None),
    };
    if saved.as_ref().is_some_and(|s| s.free)
        && let Sampler::Walk(walk) = &mut parts.sampler
    {
        // It goes on as it began, whatever this length would have planned.
        walk.draw_freely();
        parts.typical = 0.0;
    }
    let every = pace::iterations_a_part(
        &parts.sampler,
        &*parts.model,
        parts.data.population(),
        plan.chains(),
        plan.length()?,
    );
    let records = Records::of(&plan).made();
    let assembled = assemble(&plan, parts, directory.path(), saved.as_ref())
        .and_then(|run| recorded(run, &plan, &records, a.quiet));
    let mut run = match assembled {
        Ok(run) => run.stopping_by(stop),
        Err(e) => {
            if saved.is_none() {
                directory.discard();
            }
            return Err(e);
        }
    };
    directory.begin(&mut run)?;
    // After the state, which must not fall behind what is remembered of its legs.
    records.write(&run, directory.path())?;
    if let Err(e) = advance(&mut run, &mut directory, every, a.quiet) {
        // What stopped it may keep the ledger from being written too.
        let _ = directory.settle(&mut run);
        return Err(e);
    }
    let finished = directory.finish(&mut run);
    // Where this fails the whole budget stays counted, as it was at the start.
    let _ = records.write(&run, directory.path());
    finished?;
    if !a.quiet {
        let mut report = output::summarize_directory(directory.path())?;
        summary::add_test_scores(&mut report, directory.path(), &plan, test.as_ref())?;
        summary::add_noise_of_moments(&mut report, directory.path(), &plan)?;
        summary::print(&report);
        println!("draws and certificate: {}", directory.path().display());
    }
    match run.status() {
        Status::Failed(what) => Err(CliError::Failure(what.clone())),
        _ => Ok(()),
    }
}

/// The run file; with `--resume` alone, the directory's own.
fn read_plan(a: &SampleArguments) -> Result<Plan, CliError> {
    match (&a.run, &a.resume) {
        (Some(run), None) => Ok(Plan::read(run)?),
        (None, Some(directory)) => Ok(Plan::read(&directory.join("run.toml"))?),
        (Some(run), Some(directory)) => {
            let (given, saved) = (Plan::read(run)?, Plan::read(&directory.join("run.toml"))?);
            // Length and engine may change by flag; all else was part of what was paid for.
            let comparable = |plan: &Plan| {
                let mut plan = plan.clone();
                let defaults = RunSection::default();
                plan.config.run.iterations = defaults.iterations;
                plan.config.run.engine = defaults.engine;
                // Chosen where the given file states none.
                if !given.states_measure() {
                    (plan.config.privacy.filter, plan.config.privacy.order) = (None, None);
                }
                plan.resolved()
            };
            if comparable(&given)? != comparable(&saved)? {
                return Err(CliError::Input(format!(
                    "{}: differs from {}/run.toml, which includes the flags the run was started with; resume with --resume alone",
                    run.display(),
                    directory.display()
                )));
            }
            Ok(saved)
        }
        (None, None) => Err(CliError::Input("give a run file".into())),
    }
}

fn out_directory(a: &SampleArguments, plan: &Plan) -> PathBuf {
    a.out.clone().unwrap_or_else(|| {
        let stem = a.run.as_deref().and_then(Path::file_stem);
        let stem = stem.map_or_else(|| plan.dataset_name(), |s| s.to_string_lossy().into_owned());
        PathBuf::from(format!("{stem}-run"))
    })
}

/// What a run is made of, before it has a directory.
struct Parts {
    data: Dataset,
    model: Arc<dyn Model>,
    sampler: Sampler,
    /// What puts the chains at their start.
    start: Option<Sampler>,
    starts: Vec<Vec<f64>>,
    public_seed: [u8; 32],
    warnings: Vec<String>,
    /// The public held-out table.
    test: Option<Dataset>,
    /// What the ledger counts.
    measure: Measure,
    /// Cost of a typical step in that; 0 without privacy.
    typical: f64,
    /// What comes on top before the first step alone: a private start, or a fit.
    start_cost: f64,
}

fn load(plan: &Plan) -> Result<Parts, CliError> {
    let data = plan.load_data()?;
    let rows = data.rows();
    let model = plan.model(&data)?;
    let population = data.population();
    let sampler = plan.sampler(&*model, population, data.row_norm())?;
    plan.check_range(&sampler, &*model, population)?;
    let start = plan.warm_start(&*model)?;
    let (mut measure, mut typical, mut start_cost) = (Measure::Zcdp, 0.0, 0.0);
    if let Some(budget) = plan.budget()? {
        measure = plan.measure(&sampler, &*model, population, budget)?;
        typical = afford::affordable(plan, &sampler, &*model, population, budget, measure)?.0;
        start_cost = plan.start_cost(&*model, budget, measure)?;
        if let Sampler::Variational(_) = &sampler {
            // Its first draw is the dear one: the fit is made then.
            let length = plan.length()?;
            let draws = length.iterations.saturating_add(length.warmup) as f64;
            start_cost += typical * draws * plan.chains() as f64;
            typical = 0.0;
        }
    }
    let public_seed = public_seed(plan.config.run.seed)?;
    Ok(Parts {
        starts: plan.starts(&*model, public_seed)?,
        start,
        data,
        model,
        sampler,
        public_seed,
        warnings: warnings(plan, rows)?,
        test: plan.load_test()?,
        measure,
        typical,
        start_cost,
    })
}

/// What the certificate must say, and a reader of `dpmc check` too: of public numbers alone.
pub(super) fn warnings(plan: &Plan, rows: usize) -> Result<Vec<String>, CliError> {
    let mut warnings = Vec::new();
    if let Some(budget) = plan.budget()?
        && budget.delta() > 1.0 / rows as f64
    {
        warnings.push(format!(
            "delta {:e} exceeds 1/rows: it permits publishing some rows outright",
            budget.delta()
        ));
    }
    if plan.config.sampler.as_published {
        warnings.push(match plan.family()? {
            Family::Decisions(_) => FAST_MH_AS_PUBLISHED.into(),
            _ => LI_AS_PUBLISHED.into(),
        });
    }
    Ok(warnings)
}

/// Opens ledger and engine and puts the run together.
fn assemble(
    plan: &Plan,
    parts: Parts,
    directory: &Path,
    saved: Option<&RunState>,
) -> Result<PosteriorRun, CliError> {
    let (data, model) = (parts.data, parts.model);
    let engine = EngineSetup {
        choice: plan.config.run.engine,
        listed_rows: plan.family()?.reads_listed_rows(),
        chains: plan.chains(),
    };
    let curator = match plan.budget()? {
        Some(budget) => {
            let shared = ledger::shared(plan);
            let covers_one = shared.is_none();
            let path = shared.unwrap_or_else(|| directory.join("ledger.json"));
            let name = plan.dataset_name();
            let mut ledger = Ledger::open(&path, &name, data.rows(), budget, parts.measure)?;
            ledger.covers_one_run(covers_one);
            let room = plan.room(budget, parts.measure)?;
            let left = (room - ledger.spent()).max(0.0);
            // A resumed run has its anchor, start or fit already.
            let anchored = saved.is_some_and(|s| s.anchor.is_some());
            let anchor = if anchored {
                0.0
            } else {
                afford::anchor_rho(&parts.sampler)
            };
            // A sampler that is itself a fit has made it only once there are draws.
            let fits = matches!(parts.sampler, Sampler::Variational(_));
            let started = saved.is_some_and(|s| s.iteration > 0 || s.is_started() && !fits);
            let start = if started { 0.0 } else { parts.start_cost };
            let made = saved.map_or(0, |s| s.iteration);
            let warmup = plan.length()?.warmup.saturating_sub(made);
            let need = Need {
                once: start + anchor,
                step: parts.typical,
                warmup: warmup as f64 * plan.chains() as f64,
                guessed: afford::is_guess(&parts.sampler),
            };
            need.check(plan, &path, left, parts.measure)?;
            // The seed fixes the public streams alone, so run.toml may hold it: secret coins
            // are always fresh.
            Curator::private(data, model, engine, ledger, None)?
        }
        None => {
            let seed = plan.config.run.seed.unwrap_or_else(rand::random);
            Curator::not_private(data, model, engine, seed)?.into_curator()
        }
    };
    let chains = Chains::new(&parts.starts, parts.public_seed);
    let length = plan.length()?;
    let resolved = plan.resolved()?;
    let warnings = parts.warnings;
    let mut run = PosteriorRun::new(curator, parts.sampler, chains, length, resolved, warnings)
        .starting_by(parts.start);
    if plan.config.run.draws == DrawsName::Chain {
        run = run.keeping_chain_draws();
    }
    if let Some(state) = saved {
        run.resume(state).map_err(CliError::Input)?;
    }
    Ok(run)
}

/// A private run that agrees with what is remembered of it, and says what it adds up to.
fn recorded(
    mut run: PosteriorRun,
    plan: &Plan,
    records: &Records,
    quiet: bool,
) -> Result<PosteriorRun, CliError> {
    let Some(ledger) = run.curator().ledger() else {
        return Ok(run);
    };
    records.check(ledger, run.leg())?;
    let sum = records.sum(ledger.budget(), Some(ledger.id()));
    if !quiet {
        if ledger.is_new() {
            match ledger::shared(plan) {
                Some(path) => println!("new ledger: {}", path.display()),
                None => println!("new ledger: the run's own"),
            }
        }
        if let Some(sum) = &sum {
            println!("warning: {sum}");
        }
    }
    run.recorded(records.note(), sum);
    Ok(run)
}

fn public_seed(seed: Option<u64>) -> Result<[u8; 32], CliError> {
    let mut bytes = [0u8; 32];
    match seed {
        Some(seed) => bytes[..8].copy_from_slice(&seed.to_le_bytes()),
        None => SysRng
            .try_fill_bytes(&mut bytes)
            .map_err(|e| CliError::Failure(format!("no random seed: {e}")))?,
    }
    Ok(bytes)
}

fn advance(
    run: &mut PosteriorRun,
    directory: &mut RunDirectory,
    every: u64,
    quiet: bool,
) -> Result<(), CliError> {
    let bar = progress_bar(run, quiet);
    let mut shown = Instant::now();
    loop {
        let dear = run.pays_once();
        if *run.step() != Status::Running {
            break;
        }
        let (done, _) = run.progress();
        if dear || done.is_multiple_of(every) || run.pending() >= PUBLISH_DRAWS {
            directory.publish(run)?;
        }
        if let Some(bar) = &bar
            && shown.elapsed() >= SHOW_EVERY
        {
            shown = Instant::now();
            bar.set_position(done);
            bar.set_message(message(run));
        }
    }
    if let Some(bar) = bar {
        bar.set_position(run.progress().0);
        bar.finish_and_clear();
    }
    Ok(())
}

/// Acceptance and ε: both released. Nothing else of a run is shown.
fn message(run: &PosteriorRun) -> String {
    let privacy = run.curator().ledger().map_or_else(
        || "NOT private".into(),
        |l| format!("ε {:.3} of {}", l.epsilon_spent(), l.budget().epsilon()),
    );
    format!("acceptance {:.3}, {privacy}", run.acceptance())
}

fn progress_bar(run: &PosteriorRun, quiet: bool) -> Option<ProgressBar> {
    if quiet || !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::new(run.progress().1);
    let style = ProgressStyle::with_template(
        "{elapsed} {bar:30} {human_pos}/{human_len} ({per_sec}) {msg}",
    );
    if let Ok(style) = style {
        bar.set_style(style);
    }
    Some(bar)
}
