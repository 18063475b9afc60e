//! One run in its directory, step by step: what comes before what, for the command and for other
//! programs. A charge is in the ledger before its look, and draws lie beside a certificate alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::CliError;
use super::records::Records;
use dpmc::output::RunDirectory;
use dpmc::posterior_run::{PosteriorRun, Status};
use dpmc::run::{Coins, Place, Prepared};

/// Draws are published when this many wait in memory, if not before.
const PUBLISH_DRAWS: usize = 1 << 16;

/// Where a run is to be written.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A directory to be made.
    New(&'a Path),
    /// That of an earlier run, which goes on.
    Resumed(&'a Path),
}

/// A run in its directory.
pub struct Session {
    run: PosteriorRun,
    directory: RunDirectory,
    records: Records,
    every: u64,
    remarks: Vec<String>,
}

impl Session {
    /// Makes or takes up the directory and opens ledger and engine; nothing is charged yet. The
    /// run ends once `stop` is set.
    ///
    /// # Errors
    /// [`CliError`]; a directory that was made is gone again.
    pub fn begin(
        prepared: Prepared,
        target: Target<'_>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, CliError> {
        // Everything that bad input can stop comes before the directory is made.
        let mut priced = prepared.priced()?;
        let plan = &priced.prepared().plan;
        let (shared, records) = (plan.shared_ledger(), Records::of(plan));
        let mut every = priced.prepared().iterations_a_part()?;
        let (mut directory, is_new) = match target {
            Target::Resumed(path) => {
                let (directory, state) = RunDirectory::resume(path)?;
                priced = priced.resuming(state)?;
                every = priced.prepared().iterations_a_part()?;
                (directory, false)
            }
            Target::New(path) => (RunDirectory::create(path)?, true),
        };
        let records = records.made();
        let begun = priced
            .begin(Place::Directory(directory.path()), Coins::Fresh)
            .map_err(CliError::from)
            .and_then(|run| recorded(run, shared, &records));
        let (mut run, remarks) = match begun {
            Ok((run, remarks)) => (run.stopping_by(stop), remarks),
            Err(e) => {
                if is_new {
                    directory.discard();
                }
                return Err(e);
            }
        };
        directory.begin(&mut run)?;
        // After the state, which must not fall behind what is remembered of its sessions.
        records.write(&run, directory.path())?;
        Ok(Session {
            run,
            directory,
            records,
            every,
            remarks,
        })
    }

    /// What is to be said before the first step: a new ledger, what budgets add up to.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The run.
    pub fn run(&self) -> &PosteriorRun {
        &self.run
    }

    /// The run's directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// One iteration of all chains, published where that is due; whether there are more.
    ///
    /// # Errors
    /// [`CliError`] where the directory cannot be written; the ledger is settled then.
    pub fn step(&mut self) -> Result<bool, CliError> {
        let pays_once = self.run.pays_once();
        if *self.run.step() != Status::Running {
            return Ok(false);
        }
        let (done, _) = self.run.progress();
        if !(pays_once || done.is_multiple_of(self.every) || self.run.pending() >= PUBLISH_DRAWS) {
            return Ok(true);
        }
        if let Err(e) = self.directory.publish(&mut self.run) {
            // What stopped it may keep the ledger from being written too.
            let _ = self.directory.settle(&mut self.run);
            self.directory.certify_spending(&self.run);
            return Err(e.into());
        }
        // After the state, as at the start. Where this fails an older record stands.
        let _ = self.records.write(&self.run, self.directory.path());
        Ok(true)
    }

    /// Ends the run: last draws, the settled ledger, the final certificate.
    ///
    /// # Errors
    /// [`CliError`] where they cannot be written.
    pub fn finish(&mut self) -> Result<(), CliError> {
        let finished = self.directory.finish(&mut self.run);
        // Where this fails the whole budget stays counted, as it was at the start.
        let _ = self.records.write(&self.run, self.directory.path());
        finished?;
        Ok(())
    }
}

/// A private run that agrees with what is remembered of it, and what it adds up to.
fn recorded(
    mut run: PosteriorRun,
    shared: Option<PathBuf>,
    records: &Records,
) -> Result<(PosteriorRun, Vec<String>), CliError> {
    let mut remarks = Vec::new();
    let Some(ledger) = run.curator().ledger() else {
        return Ok((run, remarks));
    };
    records.check(ledger, run.session())?;
    let sum = records.sum(ledger.budget(), ledger.measure(), Some(ledger.id()));
    if ledger.is_new() {
        remarks.push(match shared {
            Some(path) => format!("new ledger: {}", path.display()),
            None => "new ledger: the run's own".into(),
        });
    }
    remarks.extend(sum.as_ref().map(|sum| format!("warning: {sum}")));
    run.recorded(records.note(), sum);
    Ok((run, remarks))
}
