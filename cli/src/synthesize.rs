//! `dpmc synthesize`: tables of public features with made-up labels.

use std::path::Path;

use serde::Serialize;

use super::CliError;
use super::answer_args::SynthesizeArguments;
use super::answers::{print_json, raw_table, say};
use dpmc::prediction::{NewRows, Posterior, Wanted, Words, synthetic_labels, synthetic_table};

/// What was written.
#[derive(Serialize)]
struct Written {
    label: String,
    rows: usize,
    sets: usize,
    files: Vec<String>,
    notes: Vec<String>,
}

pub(super) fn run(a: &SynthesizeArguments) -> Result<(), CliError> {
    let posterior = Posterior::read(&a.directory, Wanted::All)?;
    let words = Words::new(&posterior.plan)?;
    let table = raw_table(&posterior, &a.table)?;
    let rows = NewRows::read(&posterior.plan, &a.table, false)?;
    let seed = a.seed.unwrap_or_else(rand::random);
    let sets = synthetic_labels(&posterior, &rows, a.sets, seed)?;
    let tables = sets
        .iter()
        .map(|labels| synthetic_table(&words, &table, labels));
    // All of them, before anything is written.
    let tables: Vec<_> = tables.collect::<Result<_, _>>()?;
    empty_folder(&a.out)?;
    let mut files = Vec::new();
    for (k, table) in tables.iter().enumerate() {
        let path = a.out.join(format!("set-{}.csv", k + 1));
        let fail = |e: std::io::Error| {
            CliError::Failure(format!("{}: cannot be written: {e}", path.display()))
        };
        std::fs::write(&path, table.csv()).map_err(fail)?;
        files.push(path.display().to_string());
    }
    let written = Written {
        label: words.column().into(),
        rows: rows.rows(),
        sets: a.sets,
        files,
        notes: posterior.notes.clone(),
    };
    if a.json {
        return print_json(&written);
    }
    println!(
        "{} sets of {} rows with made-up labels in '{}': {}",
        written.sets,
        written.rows,
        written.label,
        a.out.display()
    );
    say(&written.notes);
    Ok(())
}

/// Makes a folder, or takes one that holds nothing.
fn empty_folder(path: &Path) -> Result<(), CliError> {
    let fail = |e: std::io::Error| CliError::Input(format!("{}: {e}", path.display()));
    std::fs::create_dir_all(path).map_err(fail)?;
    match std::fs::read_dir(path).map_err(fail)?.next() {
        None => Ok(()),
        Some(_) => Err(CliError::Input(format!(
            "{}: is not empty; choose another --out",
            path.display()
        ))),
    }
}
