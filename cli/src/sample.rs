//! `dpmc sample`: one run from its files to its directory.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::CliError;
use super::answers::print_json;
use super::args::SampleArguments;
use super::ranks::{self, Role};
use super::session::{Session, Target};
use super::{check, signals, summary};
use dpmc::config::{Plan, RunSection};
use dpmc::output::{self, RunDirectory};
use dpmc::posterior_run::{PosteriorRun, Status};
use dpmc::run::{prepare, prepare_over};

/// The progress line is renewed this often, however slow a step is.
const SHOW_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run(a: &SampleArguments) -> Result<(), CliError> {
    // Dropped after the run, whose rows others hold.
    let mut leader = match ranks::join()? {
        Role::Alone => None,
        Role::Leading(leader) => Some(leader),
        Role::Served => return Ok(()),
    };
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

    let mut prepared = match &mut leader {
        Some(leader) => prepare_over(plan, leader)?,
        None => prepare(plan)?,
    };
    let (plan, test) = (prepared.plan.clone(), prepared.test.take());
    let out = out_directory(a, &plan);
    let target = match &a.resume {
        Some(path) => Target::Resumed(path),
        None => Target::New(&out),
    };
    let mut session = Session::begin(prepared, target, stop)?;
    for remark in session.remarks() {
        match (a.quiet, a.json) {
            (true, _) => {}
            // Nobody may be there to read it.
            (false, true) => drop(writeln!(std::io::stderr(), "{remark}")),
            (false, false) => println!("{remark}"),
        }
    }
    advance(&mut session, a.quiet)?;
    session.finish()?;
    let directory = session.directory();
    if a.json || !a.quiet {
        let mut report = output::summarize_directory(directory)?;
        summary::add_test_scores(&mut report, directory, &plan, test.as_ref())?;
        summary::add_noise_of_moments(&mut report, directory, &plan)?;
        if a.json {
            let mut document = summary::document(&report, a.events)?;
            document["directory"] = directory.display().to_string().into();
            print_json(&document)?;
        } else {
            summary::print(&report);
            println!("draws and certificate: {}", directory.display());
        }
    }
    match session.run().status() {
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

fn advance(session: &mut Session, quiet: bool) -> Result<(), CliError> {
    let bar = progress_bar(session.run(), quiet);
    let mut shown = Instant::now();
    while session.step()? {
        if let Some(bar) = &bar
            && shown.elapsed() >= SHOW_EVERY
        {
            shown = Instant::now();
            bar.set_position(session.run().progress().0);
            bar.set_message(message(session.run()));
        }
    }
    if let Some(bar) = bar {
        bar.set_position(session.run().progress().0);
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
