//! `dpmc sample`: one run from its files to its directory.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::CliError;
use super::args::SampleArguments;
use super::records::Records;
use super::{check, signals, summary};
use dpmc::config::{Plan, RunSection};
use dpmc::output::{self, RunDirectory};
use dpmc::posterior_run::{PosteriorRun, Status};
use dpmc::run::{Coins, Place, prepare};

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
    plan.take_terms(a.resume.as_ref().map(|d| d.join("ledger.json")))?;
    let stop = signals::stop_flag()?;

    // Everything that bad input can stop comes before the directory is made.
    let mut prepared = prepare(plan)?;
    prepared.price()?;
    let (plan, test) = (prepared.plan.clone(), prepared.test.take());
    let (mut directory, saved) = match &a.resume {
        Some(path) => {
            let (directory, state) = RunDirectory::resume(path)?;
            (directory, Some(state))
        }
        None => (RunDirectory::create(&out_directory(a, &plan))?, None),
    };
    if let Some(saved) = &saved {
        prepared = prepared.resuming(saved);
    }
    let every = prepared.iterations_a_part()?;
    let records = Records::of(&plan).made();
    let begun = prepared
        .begin(
            Place::Directory(directory.path()),
            Coins::Fresh,
            saved.as_ref(),
        )
        .map_err(CliError::from)
        .and_then(|run| recorded(run, &plan, &records, a.quiet));
    let mut run = match begun {
        Ok(run) => run.stopping_by(stop),
        Err(e) => {
            if saved.is_none() {
                directory.discard();
            }
            return Err(e);
        }
    };
    directory.begin(&mut run)?;
    // After the state, which must not fall behind what is remembered of its sessions.
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
    records.check(ledger, run.session())?;
    let sum = records.sum(ledger.budget(), Some(ledger.id()));
    if !quiet {
        if ledger.is_new() {
            match plan.shared_ledger() {
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

fn advance(
    run: &mut PosteriorRun,
    directory: &mut RunDirectory,
    every: u64,
    quiet: bool,
) -> Result<(), CliError> {
    let bar = progress_bar(run, quiet);
    let mut shown = Instant::now();
    loop {
        let pays_once = run.pays_once();
        if *run.step() != Status::Running {
            break;
        }
        let (done, _) = run.progress();
        if pays_once || done.is_multiple_of(every) || run.pending() >= PUBLISH_DRAWS {
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
