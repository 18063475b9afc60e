//! `dpmc reproduce`: the papers' figures, run again.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use super::CliError;
use super::args::ReproduceArguments;
use crate::reproduce::{Effort, FIGURES, Figure, ReproduceError};

impl From<ReproduceError> for CliError {
    fn from(error: ReproduceError) -> Self {
        match error {
            ReproduceError::Unknown { .. } | ReproduceError::NoData(_) => {
                CliError::Input(error.to_string())
            }
            ReproduceError::Config(e) => e.into(),
            ReproduceError::Curator(e) => e.into(),
            other => CliError::Failure(other.to_string()),
        }
    }
}

pub(super) fn run(a: &ReproduceArguments) -> Result<(), CliError> {
    let Some(name) = a.figure.as_deref().filter(|name| *name != "list") else {
        return list();
    };
    let figure = Figure::find(name)?;
    let effort = Effort {
        quick: a.quick,
        data: a.data.clone(),
    };
    let out = a
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("reproduce").join(figure.name));
    let start = Instant::now();
    let drawing = figure.draw(&effort)?;
    drawing.write(&out, figure.name)?;
    let mut text = format!("{}\n\n{}\n\n", drawing.chart.title, drawing.chart.note);
    if a.quick {
        text += "--quick: far too few rows and iterations; these numbers mean nothing.\n\n";
    }
    text += &format!("{}\n", drawing.table);
    for note in &drawing.notes {
        text += &format!("{note}\n");
    }
    text += &format!(
        "\n{} in {:.1} s: {name}.svg, {name}.png, numbers.csv\n",
        out.display(),
        start.elapsed().as_secs_f64(),
        name = figure.name
    );
    print(&text)
}

fn list() -> Result<(), CliError> {
    let width = FIGURES.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for figure in FIGURES {
        text += &format!("{:width$}  {}\n", figure.name, figure.shows);
    }
    print(&format!(
        "{text}\nDraw one with `dpmc reproduce FIGURE`; it leaves a picture and its numbers.\n"
    ))
}

/// To standard output, whose reader may leave early.
fn print(text: &str) -> Result<(), CliError> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::Failure(format!("cannot print: {e}")))
        }
        _ => Ok(()),
    }
}
