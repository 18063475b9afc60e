//! A study that anyone can run: how far `dpmc` and its peers are from the posterior without
//! privacy, on tables unlike each other.
//!
//!     cargo run --release --example tables -- --help
//!
//! For every table, ε and repeat a run file with nothing but the declarations goes through the
//! library as `dpmc sample` and `dpmc summary` would take it; beside it stand objective
//! perturbation, DP-GD, AdaSSP and, where it is installed, diffprivlib, and the yardstick, which
//! no method can be. Everything is seeded. `README.md` in this folder says how to export the
//! tables that are not in the repository.

mod adassp;
mod adult;
mod arguments;
mod chance;
mod diffprivlib;
mod glm;
mod gradient_descent;
mod made_up;
mod markdown;
mod matrix;
mod objective_perturbation;
mod outcome;
mod picture;
mod private_run;
mod reference;
mod report;
mod score;
mod suite;
mod table;
mod trials;
mod yardstick;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use arguments::Arguments;
use report::Report;
use table::Table;

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(|a| a.map_or(Ok(()), study)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn study(a: Arguments) -> Result<(), String> {
    if !a.from.is_empty() {
        let reports = report::read_json(&a.from)?;
        reports.iter().for_each(report::print);
        return write(&reports, &a);
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    report::print_legend(a.repeats as usize);
    let mut reports = Vec::new();
    for name in &a.tables {
        let table = match load(name, a.suite.as_deref())? {
            Ok(table) => table,
            Err(skipped) => {
                println!("\n{skipped}");
                continue;
            }
        };
        let start = Instant::now();
        let report = trials::on_table(&table, &a, folder.path())?;
        eprintln!("{name}: {:.0} s", start.elapsed().as_secs_f64());
        report::print(&report);
        reports.push(report);
        // After each table: a long study may be stopped.
        write(&reports, &a)?;
    }
    Ok(())
}

/// Into the files that were asked for.
fn write(reports: &[Report], a: &Arguments) -> Result<(), String> {
    if let Some(path) = &a.json {
        report::write_json(reports, path)?;
    }
    if let Some(path) = &a.plot {
        picture::write(reports, path)?;
    }
    if let Some(path) = &a.markdown {
        markdown::write(reports, path)?;
    }
    Ok(())
}

/// A table, or why it is left out.
fn load(name: &str, suite: Option<&Path>) -> Result<Result<Table, String>, String> {
    if name.starts_with("adult") {
        return adult::table(name).map(Ok);
    }
    if let Some(table) = made_up::table(name) {
        return Ok(Ok(table));
    }
    Ok(match suite {
        Some(folder) => suite::table(name, folder).map_err(|e| format!("{name}: left out: {e}")),
        None => Err(format!(
            "{name}: left out: give --suite DIR (examples/tables/README.md says how to make it)"
        )),
    })
}
