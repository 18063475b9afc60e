//! Arguments of the command.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use super::answer_args::{
    ANSWERS_HELP, CompareArguments, EffectsArguments, PRIOR_HELP, PredictArguments, PriorArguments,
    SYNTHESIZE_HELP, SynthesizeArguments,
};
use dpmc::engine::EngineChoice;

const PRIVACY_HELP: &str = "\
What the guarantee is not: it covers what a run publishes, not how long its steps take \
(side channels). Settings tuned by looking at the data (bounds, clip, lambda, tau, steps, a \
start from a non-private fit) void it. Runs on one data set add up: share a ledger with \
--ledger. A person with k rows has k times the epsilon, and more delta. Private runs are recorded by the path of \
their table in your data folder, without any cell, so that the next one can say what they add up \
to; the environment variable DPMC_RECORDS names another folder, or is 'off'.";

/// Ends the help of the command and of each of its own.
const EXIT_CODES: &str = "\
Exit codes: 0 where it worked (a run that spent its budget or was interrupted keeps its draws), 1 \
for a failure, 2 for bad input, of which nothing was done or charged. What went wrong is said on \
standard error.";

const AUDIT_HELP: &str = "\
A run makes T steps (the same move; or steps that follow gradients) on each of two neighbouring data sets of the audit's own \
making, through the same curator as a private run; no table is read. Of anchored-barker each release of \
an anchor is attacked too: gradient, curvature (of rows within and beyond the row bound), profiles of row norms and \
of gradients, moments. `held-out` is the score of a held-out table that `dpmc validate` releases. Half of the runs choose \
an event, the other half bound its probabilities (Clopper-Pearson). A bound above the claim \
refutes it (but for 1 - C); a bound below proves nothing.";

const VALIDATE_HELP: &str = "\
The held-out rows are protected by a budget and a ledger of their own, which [validate] in the run file \
names. Each call charges that ledger and then releases the mean log score of the rows (and the accuracy \
for binary labels) with noise. Runs to be compared name the same ledger. `dpmc check` says how much noise \
to expect before anything is paid.";

/// The command with its help: exit codes stand at the end of each.
pub(super) fn command() -> clap::Command {
    Arguments::command().mut_subcommands(|command| {
        let help = match command.get_after_long_help() {
            Some(help) => format!("{help}\n\n{EXIT_CODES}"),
            None => EXIT_CODES.into(),
        };
        command.after_long_help(help)
    })
}

/// Bayesian posterior sampling over sensitive tables under differential privacy.
#[derive(Debug, Parser)]
#[command(name = "dpmc", version, about, after_long_help = EXIT_CODES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a run file from a table's header: at a terminal it asks for bounds and levels, else they
    /// are left for you to declare
    Init(InitArguments),
    /// Say what a run file would do: cost of a step, steps the budget affords, noise to expect,
    /// memory
    Check(CheckArguments),
    /// Draw from the posterior
    #[command(after_long_help = PRIVACY_HELP)]
    Sample(SampleArguments),
    /// Summarise a run directory: moments, quantiles, ESS, R-hat, privacy spent
    Summary(SummaryArguments),
    /// Write a run as one page for a browser or a printer: guarantee, cost, results, warnings
    Report(ReportArguments),
    /// Predict the labels of new public rows: means, probabilities and intervals
    #[command(after_long_help = ANSWERS_HELP)]
    Predict(PredictArguments),
    /// Average effects of a change of one column on the expected label, over public rows
    #[command(after_long_help = ANSWERS_HELP)]
    Effects(EffectsArguments),
    /// Make up labels for public features: several tables, one posterior draw each
    #[command(after_long_help = SYNTHESIZE_HELP)]
    Synthesize(SynthesizeArguments),
    /// Set public labels beside what the draws predict: a predictive check
    #[command(after_long_help = ANSWERS_HELP)]
    Compare(CompareArguments),
    /// Say what the prior of a run file predicts, before any run; no private row is read
    #[command(after_long_help = PRIOR_HELP)]
    Prior(PriorArguments),
    /// Score a run's draws on a protected held-out table, at a price: the [validate] section
    #[command(after_long_help = VALIDATE_HELP)]
    Validate(ValidateArguments),
    /// Delete the tables that `--cache` has kept in a folder
    Forget(ForgetArguments),
    /// List the GPU adapters that the gpu engine could use
    Devices(JsonArguments),
    /// What a sequence of privacy events costs, by every accountant that applies
    Account(AccountArguments),
    /// The smallest noise (or most steps) with which a sequence meets a budget
    Calibrate(CalibrateArguments),
    /// Attack a sampler on worst-case data: a lower bound on epsilon beside the claim
    #[command(after_long_help = AUDIT_HELP)]
    Audit(AuditArguments),
    /// Measure this machine: read bandwidth, passes as a share of it, sampler rates
    Bench(BenchArguments),
    /// Print completions for a shell: `source <(dpmc completions bash)`
    Completions(CompletionsArguments),
    /// Write a manual page for this command and each of its own, dpmc.1, dpmc-sample.1, …
    Man(ManArguments),
}

#[derive(Debug, Args)]
pub(super) struct ValidateArguments {
    /// The run directory
    pub directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ForgetArguments {
    /// The folder that --cache named
    pub directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// The table: CSV (.csv, .csv.gz, .tsv), Parquet or NPY; a folder of such files, or a pattern
    /// in quotes. The first line of a CSV is written into the run file, which is public: it must
    /// hold names, not a row
    pub data: PathBuf,
    /// The character between the cells of a CSV, such as ';' (a comma, or a tab in .tsv)
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<String>,
    /// Where to write the run file (standard output without it)
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Ask for bounds and levels column by column, as is done at a terminal; questions go to
    /// standard error
    #[arg(long, conflicts_with = "no_interactive")]
    pub interactive: bool,
    /// Ask nothing at a terminal either, as scripts want it
    #[arg(long)]
    pub no_interactive: bool,
    /// Print JSON: the columns and the run file's text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct AccountArguments {
    /// JSON file: {"neighbours": "substitution", "add-remove" or "zero-out", "events": [{"kind": …}]}, or a
    /// run's certificate.json, whose events are that run's alone
    pub events: PathBuf,
    /// Ask for ε at this δ
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    #[arg(required_unless_present = "epsilon", conflicts_with = "epsilon")]
    pub delta: Option<f64>,
    /// Ask for δ at this ε
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub epsilon: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CalibrateArguments {
    /// JSON file as for `account`; the value to be solved for is where the search starts
    pub events: PathBuf,
    /// Budget ε
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub epsilon: f64,
    /// Budget δ
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub delta: f64,
    /// sigma, eta, epsilon, rate, batch or count; INDEX.NAME where several events have it
    #[arg(long, value_name = "NAME")]
    pub solve: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// The run file
    pub run: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

/// Flags that override the run file.
#[derive(Debug, Default, Args)]
pub struct Overrides {
    /// Table to read instead of the run file's: a file, a folder or a pattern in quotes
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// mh, tuna-mh, barker, poisson-barker, anchored-barker, dp-laplace, dp-penalty, dp-barker,
    /// dp-fast-mh, dp-fast-mh-full, dp-barker-subsampled, hmc, dp-hmc, barker-hmc, sgld, dp-sgld,
    /// sghmc, dp-sghmc, sgnht, dp-sgnht, sgd, dp-sgd, adam, dp-adam, dpvi or ops
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// dp-sgld or dp-sghmc to the letter of their paper
    #[arg(long)]
    pub as_published: bool,
    /// Budget ε (with --delta)
    #[arg(
        long,
        value_name = "E",
        allow_hyphen_values = true,
        conflicts_with = "not_private"
    )]
    pub epsilon: Option<f64>,
    /// Budget δ (with --epsilon)
    #[arg(
        long,
        value_name = "D",
        allow_hyphen_values = true,
        conflicts_with = "not_private"
    )]
    pub delta: Option<f64>,
    /// Run without privacy: the draws may reveal any row
    #[arg(long)]
    pub not_private: bool,
    /// Ledger file shared by all runs on this data set, where the run file names none; its budget
    /// is cumulative, and the run's where neither run file nor flags name one
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Chains; their costs add up (1 in a private run, 4 otherwise)
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    pub chains: Option<usize>,
    /// Iterations of each chain after warm-up
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub iterations: Option<u64>,
    /// Engine
    #[arg(long, value_enum)]
    pub engine: Option<EngineArgument>,
    /// Fix the published streams (starts, proposals); without privacy, all of them (a resumed run
    /// goes on with coins of its own). The secret coins of a private run are always fresh
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Memory that the table's rows may take, such as 8G or 500M (what is available): rows that
    /// take more lie in files beside the table, which end with the run, or in those of --cache
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Keep rows that take more memory than they may in this folder, for later runs too: copies of
    /// the rows, which their owner alone may read, until `dpmc forget DIR` deletes them
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

/// A number of bytes, in units of 2^10, 2^20, …: `8G`, `500M`.
///
/// # Errors
/// How to write one.
pub fn bytes(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let number = upper.trim_end_matches('B').trim_end_matches('I');
    let shift = match number.chars().last() {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        _ => 0,
    };
    let digits = number.trim_end_matches(['K', 'M', 'G', 'T']).trim();
    let value = digits.parse::<f64>().ok().filter(|v| *v > 0.0);
    let value = value
        .map(|v| v * f64::from(shift).exp2())
        .filter(|v| *v < 1e18);
    value
        .map(|v| v as u64)
        .ok_or_else(|| "write a number of bytes, such as 8G or 500M".into())
}

/// Where sums over rows are made.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EngineArgument {
    /// The faster one, by a pass over the rows on each.
    Auto,
    /// This machine's processors.
    Cpu,
    /// A GPU.
    Gpu,
}

impl From<EngineArgument> for EngineChoice {
    fn from(engine: EngineArgument) -> Self {
        match engine {
            EngineArgument::Auto => EngineChoice::Auto,
            EngineArgument::Cpu => EngineChoice::Cpu,
            EngineArgument::Gpu => EngineChoice::Gpu,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct SampleArguments {
    /// The run file (optional with --resume)
    #[arg(required_unless_present = "resume")]
    pub run: Option<PathBuf>,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Run directory to make (default: the run file's name with -run)
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Run directory to go on with
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
    /// Print the summary as JSON when the run ends; remarks go to standard error
    #[arg(long)]
    pub json: bool,
    /// With --json: all events of the certificate, of which it else shows the first 20
    #[arg(long, requires = "json")]
    pub events: bool,
}

#[derive(Debug, Args)]
pub(super) struct SummaryArguments {
    /// The run directory
    pub directory: PathBuf,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
    /// With --json: all events of the certificate, of which it else shows the first 20
    #[arg(long, requires = "json")]
    pub events: bool,
    /// Also draw the marginal posteriors to this file, .svg or .png: densities of up to twelve
    /// parameters, intervals of more
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// The run directory
    pub directory: PathBuf,
    /// The page; one that exists is replaced
    #[arg(long, value_name = "FILE.html", default_value = "report.html")]
    pub out: PathBuf,
    /// Print JSON: the page that was written
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// bash, elvish, fish, powershell or zsh
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// The folder to write to
    pub directory: PathBuf,
    /// Print JSON: the pages that were written
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct AuditArguments {
    /// barker, poisson-barker, anchored-barker, dp-penalty, dp-barker, dp-fast-mh,
    /// dp-barker-subsampled, dp-hmc, barker-hmc, dp-sgld, dp-sghmc, dp-sgnht, dp-sgd, dp-adam or dpvi
    #[arg(long, value_name = "NAME")]
    pub algorithm: String,
    /// Follow the paper to the letter (dp-fast-mh)
    #[arg(long)]
    pub as_published: bool,
    /// Attack rows with public bounds of their own, the widest and a narrow one
    /// (poisson-barker, dp-fast-mh)
    #[arg(long, conflicts_with = "as_published")]
    pub row_bounds: bool,
    /// Steps of a run (default: what shows most of the algorithm's worst case)
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub steps: Option<u32>,
    /// Runs on each of the two data sets (500000; 50000 on the gpu engine)
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    pub trials: Option<u64>,
    /// δ at which ε is bounded (1e-5)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub delta: Option<f64>,
    /// Probability with which the bound holds (0.999)
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    pub confidence: Option<f64>,
    /// Engine
    #[arg(long, value_enum, default_value = "cpu")]
    pub engine: AuditEngine,
    /// Fix every coin of the audit
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum AuditEngine {
    Cpu,
    Gpu,
}

impl From<AuditEngine> for EngineChoice {
    fn from(engine: AuditEngine) -> Self {
        match engine {
            AuditEngine::Cpu => EngineChoice::Cpu,
            AuditEngine::Gpu => EngineChoice::Gpu,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct BenchArguments {
    /// Machine-readable
    #[arg(long)]
    pub json: bool,

    /// The engine to measure; both without this
    #[arg(long, value_enum)]
    pub engine: Option<EngineArgument>,

    /// Rows of 50 features on the GPU, instead of as many as take a gigabyte
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rows: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct JsonArguments {
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
