//! What the commands on a run's draws have in common.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::CliError;
use dpmc::prediction::{NewRows, Posterior, PublicTable, Wanted};

/// Some of a run's draws.
pub(super) fn posterior(directory: &Path, most: Option<u32>) -> Result<Posterior, CliError> {
    let wanted = most.map_or(Wanted::Usual, |n| Wanted::AtMost(n as usize));
    Ok(Posterior::read(directory, wanted)?)
}

/// A public table as it is written, which the declarations of the run have been found to read.
pub(super) fn raw_table(posterior: &Posterior, table: &Path) -> Result<PublicTable, CliError> {
    let plan = &posterior.plan;
    let rows = NewRows::read(plan, table, false)?.rows();
    let read = PublicTable::read(&plan.public_path(table)?, plan.public_text()?)?;
    if read.rows() != rows {
        return Err(CliError::Input(format!(
            "{}: its quotes can be read in two ways, as {rows} rows or as {}; write it without line breaks and stray quotes in cells",
            table.display(),
            read.rows()
        )));
    }
    Ok(read)
}

/// Prints JSON.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CliError::Failure(e.to_string()))?;
    println!("{text}");
    Ok(())
}

/// Says notes where they are not taken for results.
pub(super) fn say(notes: &[String]) {
    for note in notes {
        // Nobody may be there to read it.
        let _ = writeln!(std::io::stderr(), "note: {note}");
    }
}
