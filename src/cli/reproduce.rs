//! `dpmc reproduce`: the papers' figures, run again.

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
        list();
        return Ok(());
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
    println!("{}\n", drawing.chart.title);
    println!("{}\n", drawing.chart.note);
    if a.quick {
        println!("--quick: far too few rows and iterations; these numbers mean nothing.\n");
    }
    println!("{}", drawing.table);
    for note in &drawing.notes {
        println!("{note}");
    }
    println!(
        "\n{} in {:.1} s: {name}.svg, {name}.png, numbers.csv",
        out.display(),
        start.elapsed().as_secs_f64(),
        name = figure.name
    );
    Ok(())
}

fn list() {
    let width = FIGURES.iter().map(|f| f.name.len()).max().unwrap_or(0);
    for figure in FIGURES {
        println!("{:width$}  {}", figure.name, figure.shows);
    }
    println!("\nDraw one with `dpmc reproduce FIGURE`; it leaves a picture and its numbers.");
}
