//! What is made of a run's draws: predictions, effects, comparisons, made-up labels.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use dpmc::prediction::{self, Change, NewRows, Posterior, PublicTable, Wanted, Words};
use dpmc_cli::CliError;

use crate::errors::guarded;
use crate::table::Table;

/// What messages call a table of new rows.
const NEW: &str = "the new table";

fn posterior(directory: &std::path::Path, draws: Option<usize>) -> Result<Posterior, CliError> {
    let wanted = draws.map_or(Wanted::Usual, Wanted::AtMost);
    Ok(Posterior::read(directory, wanted)?)
}

fn bytes<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    PyBytes::new(py, &bytes)
}

/// Names of columns, float64 values of each, and notes: a prediction for each row.
type Predicted<'py> = (Vec<String>, Vec<Bound<'py, PyBytes>>, Vec<String>);

/// `dpmc predict` of a table in memory.
#[pyfunction]
pub fn predict<'py>(
    py: Python<'py>,
    directory: PathBuf,
    table: &Table,
    level: f64,
    draws: Option<usize>,
) -> PyResult<Predicted<'py>> {
    let frame = table.frame.clone();
    let found = guarded(py, false, move || {
        let posterior = posterior(&directory, draws)?;
        let rows = NewRows::of_frame(&posterior.plan, &frame, NEW, false)?;
        Ok(prediction::predict(&posterior, &rows, level)?)
    })?;
    let (names, columns): (Vec<String>, Vec<Vec<f64>>) = found.columns.0.into_iter().unzip();
    let columns = columns.iter().map(|values| bytes(py, values)).collect();
    Ok((names, columns, found.notes))
}

/// Changes of columns: numbers that are added, values that are set, pairs of values.
type Changes = (
    Vec<(String, f64)>,
    Vec<(String, String)>,
    Vec<(String, String, String)>,
);

/// `dpmc effects` of a table in memory, as JSON.
#[pyfunction]
pub fn effects(
    py: Python<'_>,
    directory: PathBuf,
    table: &Table,
    changes: Changes,
    level: f64,
    draws: Option<usize>,
) -> PyResult<String> {
    let frame = table.frame.clone();
    let (shift, set, contrast) = changes;
    let shift = shift
        .into_iter()
        .map(|(column, by)| Change::Shift { column, by });
    let set = set
        .into_iter()
        .map(|(column, to)| Change::Set { column, to });
    let contrast = contrast
        .into_iter()
        .map(|(column, from, to)| Change::Contrast { column, from, to });
    let changes: Vec<Change> = shift.chain(set).chain(contrast).collect();
    guarded(py, false, move || {
        let posterior = posterior(&directory, draws)?;
        let table = PublicTable::of_frame(&frame);
        let found = prediction::effects(&posterior, &table, &changes, level)?;
        serde_json::to_string(&found).map_err(|e| CliError::Failure(e.to_string()))
    })
}

/// `dpmc compare` of a table in memory with labels, or of the one in `[test]`, as JSON.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    directory: PathBuf,
    table: Option<&Table>,
    draws: Option<usize>,
) -> PyResult<String> {
    let frame = table.map(|table| table.frame.clone());
    guarded(py, false, move || {
        let posterior = posterior(&directory, draws)?;
        let rows = match frame {
            Some(frame) => NewRows::of_frame(&posterior.plan, &frame, NEW, true)?,
            None => prediction::test_table(&posterior.plan, None)?,
        };
        let found = prediction::compare(&posterior, &rows)?;
        serde_json::to_string(&found).map_err(|e| CliError::Failure(e.to_string()))
    })
}

/// Made-up labels: float64 values of each set (of a binary label 0 and 1), and the names of the
/// two classes where the label has names.
type MadeUp<'py> = (Vec<Bound<'py, PyBytes>>, Option<Vec<String>>);

/// `dpmc synthesize` of a table in memory.
#[pyfunction]
pub fn synthesize<'py>(
    py: Python<'py>,
    directory: PathBuf,
    table: &Table,
    sets: usize,
    seed: u64,
) -> PyResult<MadeUp<'py>> {
    let frame = table.frame.clone();
    let (made, words) = guarded(py, false, move || {
        let posterior = Posterior::read(&directory, Wanted::All)?;
        let words = Words::new(&posterior.plan)?;
        let rows = NewRows::of_frame(&posterior.plan, &frame, NEW, false)?;
        let made = prediction::synthetic_labels(&posterior, &rows, sets, seed)?;
        Ok((made, words))
    })?;
    let in_units =
        |labels: &Vec<f64>| -> Vec<f64> { labels.iter().map(|y| words.number(*y)).collect() };
    let made = made.iter().map(|labels| bytes(py, &in_units(labels)));
    Ok((made.collect(), words.names()))
}

/// `dpmc validate`, as JSON.
#[pyfunction]
pub fn validate(py: Python<'_>, directory: PathBuf) -> PyResult<String> {
    guarded(py, false, move || {
        let report = dpmc::run::validate(&directory)?;
        serde_json::to_string(&report).map_err(|e| CliError::Failure(e.to_string()))
    })
}
