//! What the command prints, as values: for programs that ask without a run of their own.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::{CliError, account, check, init, report, summary};
use dpmc::privacy::accountant;
use dpmc::privacy::audit::{self, Settings, Subject};
use dpmc::run::Prepared;

fn value(of: impl Serialize) -> Result<Value, CliError> {
    serde_json::to_value(of).map_err(|e| CliError::Failure(e.to_string()))
}

/// `dpmc check --json`. `available`: bytes of memory before the table was read, where known.
///
/// # Errors
/// [`CliError`] where the run would be refused.
pub fn check(prepared: &Prepared, available: Option<u64>) -> Result<Value, CliError> {
    value(check::outlook(prepared, available, |_| {})?)
}

/// `dpmc summary --json`, of a run's directory.
///
/// # Errors
/// [`CliError`] where it is none.
pub fn summary(directory: &Path) -> Result<Value, CliError> {
    value(summary::whole(directory)?)
}

/// `dpmc report`: writes the page of a run's directory to `out`.
///
/// # Errors
/// [`CliError`] where one cannot be read or the other not written.
pub fn report(directory: &Path, out: &Path) -> Result<(), CliError> {
    report::write(directory, out)
}

/// `dpmc summary --plot`: draws the marginal posteriors to the SVG or PNG file `out`.
///
/// # Errors
/// As [`report`].
pub fn plot(directory: &Path, out: &Path) -> Result<(), CliError> {
    summary::plot(directory, &summary::whole(directory)?, out)
}

/// `dpmc account --json` of a sequence of events (or a certificate) as JSON text.
///
/// # Errors
/// [`CliError`] naming what is wrong with it.
pub fn account(
    events: String,
    delta: Option<f64>,
    epsilon: Option<f64>,
) -> Result<Value, CliError> {
    let sequence = account::parse(events).map_err(CliError::Input)?;
    let question = account::question(delta, epsilon)?;
    let answer = accountant::account(&sequence, question);
    Ok(account::document(&sequence, question, &answer))
}

/// `dpmc calibrate --json`, of the same.
///
/// # Errors
/// [`CliError`] naming what is wrong, or that nothing meets the budget.
pub fn calibrate(events: String, epsilon: f64, delta: f64, solve: &str) -> Result<Value, CliError> {
    let sequence = account::parse(events).map_err(CliError::Input)?;
    let found = account::solve(&sequence, epsilon, delta, solve)?;
    Ok(account::solution(&sequence, delta, &found))
}

/// `dpmc audit --json`, of one of our own samplers.
///
/// # Errors
/// [`CliError`] naming the setting at fault.
pub fn audit(algorithm: &str, settings: &Settings) -> Result<Value, CliError> {
    let subject = Subject::parse(algorithm, false)?;
    value(audit::audit(subject, settings)?)
}

/// `dpmc init`: a run file for a table, of its header alone.
///
/// # Errors
/// [`CliError`] where the header cannot be read.
pub fn init(table: &Path, delimiter: Option<&str>) -> Result<String, CliError> {
    init::text(table, delimiter)
}

/// The same for a table in memory, of its columns' names.
pub fn init_of_columns(columns: &[String]) -> String {
    init::text_of_columns(columns)
}
