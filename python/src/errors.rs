//! Errors as Python's exceptions, and what keeps a panic from saying what it saw.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

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
    let (process, started) = STARTED.get_or_init(|| (now, dpmc::engine::start_threads(false)));
    if *process != now {
        return Err(new(py, "Error", FORKED, None));
    }
    started
        .clone()
        .map_err(|what| new(py, "Error", &what, None))
}

/// Runs `work` without Python's lock, its errors and panics as exceptions.
pub fn guarded<T: Send>(
    py: Python<'_>,
    imaginary: bool,
    work: impl FnOnce() -> Result<T, CliError> + Send,
) -> PyResult<T> {
    threads(py)?;
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    result
        .map_err(|_| defect(py))?
        .map_err(|e| raise(py, &e, imaginary))
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
