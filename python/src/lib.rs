//! What the Python package asks of the library and the command: no mathematics, no printing.
//! `dpmc/_dpmc.pyi` has the signatures as Python sees them.

mod answers;
mod columns;
mod errors;
mod job;
mod plan;
mod table;

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use dpmc::engine;
use dpmc::output;
use dpmc::privacy::Ledger;
use dpmc::privacy::audit::Settings;
use dpmc_cli::{CliError, ask};

use errors::{guarded, raise};
use plan::Plan;
use table::Table;

/// A JSON text of a value, for `json.loads`.
fn json(value: &serde_json::Value) -> String {
    value.to_string()
}

/// What a run would do, as JSON.
#[pyfunction]
#[pyo3(signature = (plan, table=None))]
fn check(py: Python<'_>, plan: &Plan, table: Option<&Table>) -> PyResult<String> {
    let available = dpmc::machine::available_memory();
    let (settings, frame) = (plan.plan.clone(), table.map(|t| t.frame.clone()));
    guarded(py, plan.imaginary, move || {
        let mut settings = settings;
        settings.take_terms(None)?;
        let prepared = job::prepared(settings, frame)?;
        Ok(json(&ask::check(&prepared, available)?))
    })
}

/// A run's summary, as JSON.
#[pyfunction]
fn summary(py: Python<'_>, directory: PathBuf) -> PyResult<String> {
    guarded(py, false, move || Ok(json(&ask::summary(&directory)?)))
}

/// Writes a run's page.
#[pyfunction]
fn report(py: Python<'_>, directory: PathBuf, out: PathBuf) -> PyResult<()> {
    guarded(py, false, move || ask::report(&directory, &out))
}

/// Draws a run's marginal posteriors as SVG.
#[pyfunction]
fn plot(py: Python<'_>, directory: PathBuf, out: PathBuf) -> PyResult<()> {
    guarded(py, false, move || ask::plot(&directory, &out))
}

/// `dpmc account`, as JSON.
#[pyfunction]
fn account(
    py: Python<'_>,
    events: String,
    delta: Option<f64>,
    epsilon: Option<f64>,
) -> PyResult<String> {
    guarded(py, false, move || {
        Ok(json(&ask::account(events, delta, epsilon)?))
    })
}

/// `dpmc calibrate`, as JSON.
#[pyfunction]
fn calibrate(
    py: Python<'_>,
    events: String,
    epsilon: f64,
    delta: f64,
    solve: String,
) -> PyResult<String> {
    guarded(py, false, move || {
        Ok(json(&ask::calibrate(events, epsilon, delta, &solve)?))
    })
}

/// `dpmc audit`, as JSON.
#[pyfunction]
fn audit(
    py: Python<'_>,
    algorithm: String,
    steps: Option<u32>,
    trials: Option<u64>,
    delta: Option<f64>,
    seed: Option<u64>,
) -> PyResult<String> {
    let usual = Settings::default();
    let settings = Settings {
        steps,
        trials: trials.unwrap_or(usual.trials),
        delta: delta.unwrap_or(usual.delta),
        seed,
        ..usual
    };
    guarded(py, false, move || {
        Ok(json(&ask::audit(&algorithm, &settings)?))
    })
}

/// `dpmc init`: a run file's text.
#[pyfunction]
fn init(py: Python<'_>, table: PathBuf, delimiter: Option<String>) -> PyResult<String> {
    guarded(py, false, move || ask::init(&table, delimiter.as_deref()))
}

/// The same for a table in memory, of its columns' names.
#[pyfunction]
fn init_of_columns(columns: Vec<String>) -> String {
    ask::init_of_columns(&columns)
}

/// A run's draws: names, chains, draws of each, and float64 values by name, chain, draw.
#[pyfunction]
fn draws(
    py: Python<'_>,
    directory: PathBuf,
) -> PyResult<(Vec<String>, usize, usize, Bound<'_, PyBytes>)> {
    let table = guarded(py, false, move || Ok(output::read_draws(&directory)?))?;
    let (chains, length) = (table.chains.len(), table.len());
    let mut bytes = Vec::with_capacity(8 * table.parameters.len() * chains * length);
    for j in 0..table.parameters.len() {
        for chain in &table.chains {
            let values = chain[j].iter().take(length);
            bytes.extend(values.flat_map(|v| v.to_ne_bytes()));
        }
    }
    Ok((table.parameters, chains, length, PyBytes::new(py, &bytes)))
}

/// The features of a table by a run's declarations, and its offset: names, and float32 values row
/// by row. The rows are the caller's own.
#[pyfunction]
fn features<'py>(
    py: Python<'py>,
    plan: &Plan,
    table: &Table,
) -> PyResult<(Vec<String>, Bound<'py, PyBytes>)> {
    let (settings, frame) = (plan.plan.clone(), table.frame.clone());
    let (names, rows) = guarded(py, plan.imaginary, move || {
        let rows = settings.load_features(&frame)?;
        let public = rows.as_public();
        let mut names = public.features().to_vec();
        names.extend((public.width() > names.len()).then(|| "offset".to_string()));
        Ok((names, public.rows()))
    })?;
    let bytes: Vec<u8> = rows.iter().flat_map(|v| v.to_ne_bytes()).collect();
    Ok((names, PyBytes::new(py, &bytes)))
}

/// What a ledger file says of itself: ε and δ of its budget and what it counts; `None` where there
/// is no file.
#[pyfunction]
fn ledger(py: Python<'_>, path: PathBuf) -> PyResult<Option<(f64, f64, String)>> {
    guarded(py, false, move || {
        let budget = Ledger::budget_of(&path)?;
        let measure = Ledger::measure_of(&path)?;
        let both = budget.zip(measure);
        Ok(both.map(|(b, m)| (b.epsilon(), b.delta(), m.filter().to_string())))
    })
}

/// GPU adapters, as JSON.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<String> {
    guarded(py, false, || {
        serde_json::to_string(&engine::devices()).map_err(|e| CliError::Failure(e.to_string()))
    })
}

#[pymodule]
fn _dpmc(m: &Bound<'_, PyModule>) -> PyResult<()> {
    dpmc_cli::name_the_place_alone();
    dpmc::data::silence_damaged_files();
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<Plan>()?;
    m.add_class::<Table>()?;
    m.add_function(wrap_pyfunction!(check, m)?)?;
    m.add_function(wrap_pyfunction!(job::sample, m)?)?;
    m.add_function(wrap_pyfunction!(summary, m)?)?;
    m.add_function(wrap_pyfunction!(report, m)?)?;
    m.add_function(wrap_pyfunction!(plot, m)?)?;
    m.add_function(wrap_pyfunction!(account, m)?)?;
    m.add_function(wrap_pyfunction!(calibrate, m)?)?;
    m.add_function(wrap_pyfunction!(audit, m)?)?;
    m.add_function(wrap_pyfunction!(init, m)?)?;
    m.add_function(wrap_pyfunction!(init_of_columns, m)?)?;
    m.add_function(wrap_pyfunction!(draws, m)?)?;
    m.add_function(wrap_pyfunction!(features, m)?)?;
    m.add_function(wrap_pyfunction!(answers::predict, m)?)?;
    m.add_function(wrap_pyfunction!(answers::effects, m)?)?;
    m.add_function(wrap_pyfunction!(answers::compare, m)?)?;
    m.add_function(wrap_pyfunction!(answers::synthesize, m)?)?;
    m.add_function(wrap_pyfunction!(answers::validate, m)?)?;
    m.add_function(wrap_pyfunction!(ledger, m)?)?;
    m.add_function(wrap_pyfunction!(devices, m)?)?;
    // Used by tests alone: a panic whose words hold a number must not be heard.
    m.add_function(wrap_pyfunction!(errors::panic_for_tests, m)?)?;
    Ok(())
}

/// An error that is not the library's.
fn input(py: Python<'_>, what: impl Into<String>) -> PyErr {
    raise(py, &CliError::Input(what.into()), false)
}
