//! `dpmc` itself, by the path of its user: a run file, the table it names, the run to its end in
//! a run directory, and what `dpmc summary` makes of that directory. All that the study knows
//! of the library's samplers is in this file.

use std::path::Path;
use std::time::Instant;

use dpmc::config::Plan;
use dpmc::engine::EngineChoice;
use dpmc::output::{RunDirectory, read_draws, summarize_directory};
use dpmc::posterior_run::Status;
use dpmc::prediction::{Posterior, Wanted};
use dpmc::run::{Coins, Place, prepare};

use super::outcome::Outcome;
use super::table::Table;

/// Draws that predictions are averaged over.
const PREDICTING: usize = 200;

/// One run on the table whose rows lie in `folder` as `NAME.csv`.
///
/// # Errors
/// Why nothing was released.
pub fn run(
    table: &Table,
    folder: &Path,
    algorithm: &str,
    (epsilon, delta): (f64, f64),
    seed: u64,
) -> Result<Outcome, String> {
    let text = table.run_file(algorithm, epsilon, delta);
    let out = folder.join(format!("{}-{algorithm}-{epsilon}-{seed}-run", table.name));
    let (status, seconds) =
        sample(&folder.join("run.toml"), text, &out, seed).map_err(|e| e.to_string())?;
    let draws = read_draws(&out).map_err(|e| e.to_string())?;
    if draws.len() < 2 {
        let why = match status {
            Status::Failed(what) => what,
            other => format!("{} before the second draw", other.name()),
        };
        return Err(why);
    }
    let posterior = Posterior::read(&out, Wanted::AtMost(PREDICTING)).map_err(|e| e.to_string())?;
    let label = posterior.plan.label().map_err(|e| e.to_string())?;
    let label = label.ok_or("the run file has no label")?.kind();
    let summary = summarize_directory(&out).map_err(|e| e.to_string())?;
    let intervals = |of: fn(&dpmc::diagnostics::NoiseAware) -> [f64; 2]| {
        let rows = summary.noise_aware.as_ref()?;
        Some(rows.iter().map(|row| of(&row.noise)).collect())
    };
    let effective = summary.parameters.iter().map(|p| p.ess_bulk);
    // Best effort: the folder goes when the study ends.
    let _ = std::fs::remove_dir_all(&out);
    Ok(Outcome {
        mean: summary.parameters.iter().map(|p| p.mean).collect(),
        mean_intervals: intervals(|n| n.mean_interval),
        intervals: intervals(|n| n.interval),
        draws: posterior.of_labels(label).to_vec(),
        seconds,
        effective_draws: Some(effective.fold(f64::INFINITY, least)),
        status: match status {
            Status::Failed(what) => format!("failed: {what}"),
            other => other.name().into(),
        },
    })
}

/// `dpmc sample`, but for the secret coins: here they are seeded, so that a study can be
/// repeated, and nothing it prints is private.
fn sample(
    run_file: &Path,
    text: String,
    out: &Path,
    seed: u64,
) -> Result<(Status, f64), Box<dyn std::error::Error>> {
    let mut plan = Plan::parse(run_file, text)?;
    plan.config.run.seed = Some(seed);
    plan.config.run.engine = EngineChoice::Cpu;
    let prepared = prepare(plan)?;
    let start = Instant::now();
    let mut run = prepared.begin(Place::Memory, Coins::Seeded(seed))?;
    let mut directory = RunDirectory::create(out)?;
    directory.begin(&mut run)?;
    while *run.step() == Status::Running {}
    directory.finish(&mut run)?;
    Ok((run.status().clone(), start.elapsed().as_secs_f64()))
}

/// A chain that never moved has no ESS that could be counted: it is one draw.
fn least(a: f64, b: f64) -> f64 {
    a.min(if b.is_finite() { b } else { 1.0 })
}
