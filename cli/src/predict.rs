//! `dpmc predict`: what a run's draws say of new public rows.

use super::CliError;
use super::answer_args::PredictArguments;
use super::answers::{posterior, print_json, say};
use dpmc::data::header;
use dpmc::prediction::{self, NewRows, Posterior};

pub(super) fn run(a: &PredictArguments) -> Result<(), CliError> {
    let posterior = posterior(&a.directory, a.how.draws)?;
    let rows = NewRows::read(&posterior.plan, &a.table, false)?;
    let mut found = prediction::predict(&posterior, &rows, a.how.intervals)?;
    found.notes.extend(note_on_label(&posterior, a));
    if let Some(out) = &a.out {
        prediction::write_columns(&found.columns, out)?;
    }
    match (&a.out, a.how.json) {
        (_, true) => print_json(&found)?,
        (None, false) => print!("{}", found.columns.csv()),
        (Some(out), false) => println!(
            "{} rows, {:.0} % intervals, {} draws: {}",
            rows.rows(),
            100.0 * found.level,
            found.draws,
            out.display()
        ),
    }
    say(&found.notes);
    Ok(())
}

/// The table may hold labels; nothing reads them.
fn note_on_label(posterior: &Posterior, a: &PredictArguments) -> Option<String> {
    let plan = &posterior.plan;
    let column = plan.label().ok()??.column?;
    let names = header(&a.table, plan.public_text().ok()?).ok()?;
    names.contains(&column).then(|| {
        format!(
            "column '{column}' of the table is the label and was not read; `dpmc compare` sets it beside predictions"
        )
    })
}
