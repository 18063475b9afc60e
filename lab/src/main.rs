//! The laboratory: the papers' figures, run again. `cargo run --release -p dpmc-lab -- --help`.

mod pate;
mod plot;
mod published;
mod reproduce;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Parser, Subcommand};

use reproduce::{Effort, FIGURES, Figure, ReproduceError};

const REPRODUCE_HELP: &str = "\
A figure is our reading of what the paper's panel shows; the picture says what is plotted. \
Epsilon is in total, for everything a run released, not for a step. The data are made up, or (MNIST) \
public; secret coins have fixed seeds: no figure is a private release.";

/// Runs the papers of private MCMC again. Nothing here is a private release.
#[derive(Debug, Parser)]
#[command(name = "dpmc-lab", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a figure of the papers again: algorithms side by side, with what they really spend
    #[command(after_long_help = REPRODUCE_HELP)]
    Reproduce(ReproduceArguments),
}

#[derive(Debug, Args)]
struct ReproduceArguments {
    /// Name of the figure; without one, or with `list`, all are listed
    figure: Option<String>,
    /// Folder for the picture and the numbers (default: reproduce/FIGURE)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seconds instead of minutes; the numbers mean nothing then
    #[arg(long)]
    quick: bool,
    /// Folder with mnist79_train.parquet and mnist79_test.parquet; of li-table-mnist and
    /// li-table-fashion with train-images.idx3-ubyte.gz and the three files beside it
    #[arg(long, value_name = "DIR", default_value = "examples/data")]
    data: PathBuf,
    /// Folder of test images of another kind, as li-table-fashion's are to li-table-mnist: how
    /// unsure predictions are of them
    #[arg(long, value_name = "DIR")]
    other: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Command::Reproduce(a) = Arguments::parse().command;
    let result = dpmc::machine::start_threads(true)
        .map_err(ReproduceError::Failed)
        .and_then(|()| run(&a));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "dpmc-lab: {e}");
            ExitCode::from(if e.is_input() { 2 } else { 1 })
        }
    }
}

fn run(a: &ReproduceArguments) -> Result<(), ReproduceError> {
    let Some(name) = a.figure.as_deref().filter(|name| *name != "list") else {
        return list();
    };
    let figure = Figure::find(name)?;
    let effort = Effort {
        quick: a.quick,
        data: a.data.clone(),
        other: a.other.clone(),
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

fn list() -> Result<(), ReproduceError> {
    let width = FIGURES.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for figure in FIGURES {
        text += &format!("{:width$}  {}\n", figure.name, figure.shows);
    }
    print(&format!(
        "{text}\nDraw one with `dpmc-lab reproduce FIGURE`; it leaves a picture and its numbers.\n"
    ))
}

/// To standard output, whose reader may leave early.
fn print(text: &str) -> Result<(), ReproduceError> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(ReproduceError::Failed(format!("cannot print: {e}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Arguments::command().debug_assert();
    }
}
