//! Errors as Python's exceptions, and what keeps a panic from saying what it saw.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use pyo3::prelude::*;

use dpmc::config::ConfigError;
use dpmc_cli::CliError;

const PANICKED: &str = "a defect of dpmc, please report the line on standard error (what went wrong is not shown, for it could tell of a row)";
const FORKED: &str = "this process was forked from one that had run dpmc, whose threads stayed behind: start workers with multiprocessing's 'spawn' or 'forkserver', or fork before the first run";

/// The exception of an error. `imaginary`: the run file was made of a dict, so that its name and
/// lines would say nothing.
pub fn raise(py: Python<'_>, error: &CliError, imaginary: bool) -> PyErr {
    let (message, key) = match error {
        CliError::Config(e) => {
            let message = match e {
                ConfigError::At { what, .. } | ConfigError::File { what, .. } if imaginary => {
                    what.clone()
                }
                _ => e.to_string(),
            };
            (message, e.key().map(String::from))
        }
        CliError::Ledger(e) => (e.to_string(), Some("ledger".into())),
        CliError::Spent(what) => (what.clone(), Some("ledger".into())),
        _ => (error.to_string(), None),
    };
    let of_budget = key.as_deref().is_some_and(|key| {
        ["ledger", "privacy.", "epsilon=", "delta="]
            .iter()
            .any(|start| key.starts_with(start))
    });
    let class = match error {
        CliError::Ledger(_) | CliError::Spent(_) => "BudgetError",
        CliError::Config(_) if of_budget => "BudgetError",
        _ if error.is_input() => "InputError",
        _ => "Error",
    };
    new(py, class, &message, key.as_deref())
}

fn new(py: Python<'_>, class: &str, message: &str, key: Option<&str>) -> PyErr {
    let made = py
        .import("dpmc._errors")
        .and_then(|errors| errors.getattr(class)?.call1((message, key)));
    made.map_or_else(|e| e, PyErr::from_value)
}

/// A panic as an exception, whose words are not shown.
pub fn defect(py: Python<'_>) -> PyErr {
    new(py, "Error", PANICKED, None)
}

/// Starts the library's threads, once; refused in a child of a process that had them, where no
/// sum would ever end.
pub fn threads(py: Python<'_>) -> PyResult<()> {
    static STARTED: OnceLock<(u32, Result<(), String>)> = OnceLock::new();
    let now = std::process::id();
    let (process, started) = STARTED.get_or_init(|| (now, dpmc::machine::start_threads(false)));
    if *process != now {
        return Err(new(py, "Error", FORKED, None));
    }
    started
        .clone()
        .map_err(|what| new(py, "Error", &what, None))
}

/// Ctrl-C is looked for this often.
pub const LOOK_EVERY: Duration = Duration::from_millis(40);
/// Of threads: large enough for what the command does on its main one.
const STACK: usize = 8 << 20;

/// What a thread says in the end.
pub type Answer<T> = std::thread::Result<Result<T, CliError>>;

/// Runs `work` on a thread of its own.
pub fn spawned<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> PyResult<Receiver<Answer<T>>> {
    threads(py)?;
    let (tell, told) = channel();
    let run = move || {
        // Nobody may be there to hear it.
        let _ = tell.send(catch_unwind(AssertUnwindSafe(work)));
    };
    let thread = Builder::new().name("dpmc".into()).stack_size(STACK);
    thread.spawn(run).map_err(|e| {
        let what = format!("a thread cannot be started: {e}");
        new(py, "Error", &what, None)
    })?;
    Ok(told)
}

/// Runs `work`, which writes nothing that is kept half-written and charges nothing, without
/// Python's lock: its errors and panics are exceptions, and Ctrl-C leaves it to itself.
pub fn guarded<T: Send + 'static>(
    py: Python<'_>,
    imaginary: bool,
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> PyResult<T> {
    let mut told = spawned(py, work)?;
    loop {
        let (back, answer) = py.detach(move || {
            let answer = told.recv_timeout(LOOK_EVERY);
            (told, answer)
        });
        told = back;
        match answer {
            Ok(Ok(result)) => return result.map_err(|e| raise(py, &e, imaginary)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(defect(py)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
        }
    }
}

/// Panics with words that could be a cell's.
#[pyfunction]
pub fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
    guarded(py, false, || {
        let row = [0.5; 3];
        let index = std::hint::black_box(4711);
        match row[index] > 0.0 {
            true => Ok(()),
            false => Err(CliError::Input("unreachable".into())),
        }
    })
}
