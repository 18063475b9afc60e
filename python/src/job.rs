//! A run on a thread of its own, while the caller's waits for it, for Ctrl-C and for progress.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use dpmc::config::Plan as Settings;
use dpmc::data::Frame;
use dpmc::output::RunDirectory;
use dpmc::posterior_run::Status;
use dpmc::run::{Prepared, prepare, prepare_frame};
use dpmc_cli::{CliError, Session, Target};

use crate::errors::{Answer, LOOK_EVERY, defect, raise, spawned};
use crate::plan::Plan;
use crate::table::Table;

/// Reads a run's table.
pub fn prepared(plan: Settings, frame: Option<Arc<Frame>>) -> Result<Prepared, CliError> {
    Ok(match frame {
        Some(frame) => prepare_frame(plan, &frame)?,
        None => prepare(plan)?,
    })
}

/// How far a run is: iterations, all of them, acceptance, ε so far (none without privacy). All of
/// it is released.
type Progress = (u64, u64, f64, Option<f64>);

enum Phase {
    /// The table is being read: nothing is written or charged.
    Loading,
    /// There is a directory, which will be whole.
    Begun(Progress),
    /// The caller left while the table was read: the run does not begin.
    Abandoned,
}

/// What both threads see.
struct Shared {
    phase: Mutex<Phase>,
    stop: Arc<AtomicBool>,
}

impl Shared {
    fn phase(&self) -> std::sync::MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the run; whether it had begun.
    fn end(&self) -> bool {
        self.stop.store(true, Ordering::SeqCst);
        let mut phase = self.phase();
        if matches!(*phase, Phase::Loading) {
            *phase = Phase::Abandoned;
        }
        matches!(*phase, Phase::Begun(_))
    }
}

/// Status and remarks of a run that ended.
type Ended = (String, Vec<String>);

fn work(
    mut plan: Settings,
    frame: Option<Arc<Frame>>,
    out: &Path,
    resume: bool,
    shared: &Shared,
) -> Result<Ended, CliError> {
    plan.take_terms(resume.then(|| out.join("ledger.json")))?;
    let prepared = prepared(plan, frame)?;
    let target = match resume {
        true => Target::Resumed(out),
        false => Target::New(out),
    };
    {
        let mut phase = shared.phase();
        if matches!(*phase, Phase::Abandoned) {
            return Err(CliError::Failure("abandoned".into()));
        }
        *phase = Phase::Begun((0, 0, 0.0, None));
    }
    let mut session = Session::begin(prepared, target, shared.stop.clone())?;
    let mut shown = Instant::now();
    while session.step()? {
        if shown.elapsed() >= LOOK_EVERY {
            shown = Instant::now();
            let run = session.run();
            let (done, all) = run.progress();
            let epsilon = run.curator().ledger().map(|l| l.epsilon_spent());
            *shared.phase() = Phase::Begun((done, all, run.acceptance(), epsilon));
        }
    }
    session.finish()?;
    match session.run().status() {
        Status::Failed(what) => Err(CliError::Failure(what.clone())),
        status => Ok((status.name().to_string(), session.remarks().to_vec())),
    }
}

/// Makes a run in the directory `out`, or goes on with the one there. Returns its status and
/// remarks. `progress` is called with iterations made and to make, acceptance and ε so far.
#[pyfunction]
#[pyo3(signature = (plan, out, *, table=None, resume=false, progress=None))]
pub fn sample(
    py: Python<'_>,
    plan: &Plan,
    out: PathBuf,
    table: Option<&Table>,
    resume: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Ended> {
    if resume {
        RunDirectory::can_resume(&out).map_err(|e| raise(py, &e.into(), false))?;
    }
    let shared = Arc::new(Shared {
        phase: Mutex::new(Phase::Loading),
        stop: Arc::new(AtomicBool::new(false)),
    });
    let (settings, frame) = (plan.plan.clone(), table.map(|t| t.frame.clone()));
    let theirs = shared.clone();
    let told = spawned(py, move || work(settings, frame, &out, resume, &theirs))?;
    let (answer, interrupted) = wait(py, told, &shared, progress.as_ref())?;
    let ended = answer
        .map_err(|_| defect(py))?
        .map_err(|e| raise(py, &e, plan.imaginary))?;
    match interrupted {
        Some(e) if !e.is_instance_of::<PyKeyboardInterrupt>(py) => Err(e),
        _ => Ok(ended),
    }
}

/// Waits for the run to end by itself or by the caller's wish. A wish while the table is read is
/// an error at once.
fn wait(
    py: Python<'_>,
    mut told: Receiver<Answer<Ended>>,
    shared: &Shared,
    progress: Option<&Py<PyAny>>,
) -> PyResult<(Answer<Ended>, Option<PyErr>)> {
    let mut wish = None;
    loop {
        let (back, answer) = py.detach(move || {
            let answer = told.recv_timeout(LOOK_EVERY);
            (told, answer)
        });
        told = back;
        match answer {
            Ok(answer) => return Ok((answer, wish)),
            Err(RecvTimeoutError::Disconnected) => return Err(defect(py)),
            Err(RecvTimeoutError::Timeout) if wish.is_some() => {}
            Err(RecvTimeoutError::Timeout) => {
                if let Err(e) = py.check_signals().and_then(|()| tell(py, shared, progress)) {
                    if !shared.end() {
                        return Err(e);
                    }
                    wish = Some(e);
                }
            }
        }
    }
}

fn tell(py: Python<'_>, shared: &Shared, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    let seen = match *shared.phase() {
        Phase::Begun(seen) if seen.1 > 0 => seen,
        _ => return Ok(()),
    };
    if let Some(progress) = progress {
        progress.call1(py, seen)?;
    }
    Ok(())
}
