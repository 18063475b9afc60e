//! Arguments of what is made of a run's draws: predictions, effects, synthetic labels, checks.

use std::path::PathBuf;

use clap::Args;

pub(super) const ANSWERS_HELP: &str = "\
This is post-processing: it works on released draws and on a public table that you give, reads no \
private row and costs no privacy. The table of the run itself is refused. What is predicted for a \
row follows that row: do not give a table whose rows are not yours to publish.";

pub(super) const SYNTHESIZE_HELP: &str = "\
Each set takes one draw of the posterior and draws every label from the law of the model by it, so \
that sets differ by as much as the posterior is uncertain, the noise for privacy included. Estimates \
q from m sets, with variance u each, have the mean of q for their estimate and the variance \
(1 + 1/m) b - u: u is the mean of the sets' variances, b the variance between their estimates \
(Raghunathan, Reiter and Rubin 2003).

This is post-processing: it works on released draws and on a public table that you give, reads no \
private row and costs no privacy. The table of the run itself is refused.";

pub(super) const PRIOR_HELP: &str = "\
Parameters are drawn from the prior and labels from their law; the table that the run protects is \
not opened, so nothing is spent. Without --table rows are made up of what is declared: numbers \
evenly over their bounds, levels as often as each other.";

#[derive(Debug, Args)]
pub(super) struct PredictArguments {
    /// The run directory
    pub directory: PathBuf,
    /// Public rows, with the columns that the run file declares; a label column is not read
    #[arg(long, value_name = "FILE")]
    pub table: PathBuf,
    /// Where to write a line for each row, .csv or .parquet, replaced where it is there (standard
    /// output, as CSV, without it)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub how: How,
}

/// What all answers by draws take.
#[derive(Debug, Args)]
pub(super) struct How {
    /// Probability of intervals
    #[arg(
        long,
        value_name = "LEVEL",
        default_value_t = 0.9,
        allow_hyphen_values = true
    )]
    pub intervals: f64,
    /// Most draws to average over (500; 100 of a likelihood of your own)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub draws: Option<u32>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct EffectsArguments {
    /// The run directory
    pub directory: PathBuf,
    /// Public rows to average over, .csv, .tsv or .parquet
    #[arg(long, value_name = "FILE")]
    pub table: PathBuf,
    /// Add a number to a column, against rows as they are: age=10
    #[arg(long, value_name = "COLUMN=NUMBER")]
    pub shift: Vec<String>,
    /// Give a column one value in all rows, against rows as they are: smoker=no
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub set: Vec<String>,
    /// Give a column one value, against another: education=HS-grad:Masters
    #[arg(long, value_name = "COLUMN=FROM:TO")]
    pub contrast: Vec<String>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
pub(super) struct SynthesizeArguments {
    /// The run directory
    pub directory: PathBuf,
    /// Public features, .csv, .tsv or .parquet, without the label's column
    #[arg(long, value_name = "FILE")]
    pub table: PathBuf,
    /// Tables to make
    #[arg(long, value_name = "M", default_value_t = 5)]
    pub sets: usize,
    /// Folder for set-1.csv, set-2.csv, …; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Fix the labels' random numbers
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompareArguments {
    /// The run directory
    pub directory: PathBuf,
    /// A public table with labels (the run file's [test] table without it)
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Most draws to average over (500; 100 of a likelihood of your own)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub draws: Option<u32>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PriorArguments {
    /// The run file
    pub run: PathBuf,
    /// Public rows to predict for
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Draws of the parameters
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub draws: u32,
    /// Fix the random numbers
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}
