//! The `dpmc` command: arguments → run configuration → run. No mathematics. See `dpmc --help`.
//! What other programs need of it to do the same (the Python package) is [`Session`] and [`ask`].

// Before the modules, which see them in place of std's: those panic on a closed pipe.
macro_rules! print {
    ($($text:tt)*) => { $crate::out::write(format_args!($($text)*)) };
}
macro_rules! println {
    () => { print!("\n") };
    ($($text:tt)*) => { $crate::out::write(format_args!("{}\n", format_args!($($text)*))) };
}

mod account;
mod answer_args;
mod answers;
mod args;
pub mod ask;
mod audit;
mod bench;
mod check;
mod check_budget;
mod check_print;
mod check_report;
mod compare;
mod devices;
mod effects;
mod error;
mod forget;
mod init;
mod init_questions;
mod out;
mod pages;
mod panics;
mod predict;
mod prior;
mod ranks;
mod records;
mod report;
mod sample;
mod session;
mod signals;
mod summary;
mod synthesize;
mod validate;

use std::io::Write;
use std::process::ExitCode;

use clap::FromArgMatches;

use args::{Arguments, Command};
pub use args::{EngineArgument, Overrides, bytes};
pub use check::merge;
pub use error::CliError;
pub use panics::name_the_place_alone;
pub use session::{Session, Target};

/// Runs the command line of this process; exit code 0, 1 (a failure) or 2 (bad input).
pub fn main() -> ExitCode {
    // Mesa's device-select layer asks for a Wayland display on machines that have none, and
    // libwayland then complains on standard error that this variable is not set. Nothing can
    // be, or be made, under /dev/null: the search ends in silence, and finds nobody's socket.
    #[cfg(all(target_os = "linux", feature = "gpu"))]
    if std::env::var_os("XDG_RUNTIME_DIR").is_none_or(|v| v.is_empty()) {
        // SAFETY: no other thread exists yet that could read the environment meanwhile.
        unsafe { std::env::set_var("XDG_RUNTIME_DIR", "/dev/null") };
    }
    run()
}

fn run() -> ExitCode {
    let arguments = Arguments::from_arg_matches(&args::command().get_matches());
    let arguments = arguments.unwrap_or_else(|e| e.exit());
    panics::name_the_place_alone();
    dpmc::data::silence_damaged_files();
    signals::survive_file_limit();
    let result = dpmc::machine::start_threads(true).map_err(CliError::Failure);
    let result = result.and_then(|()| match arguments.command {
        Command::Init(a) => init::run(&a),
        Command::Check(a) => check::run(&a),
        Command::Sample(a) => sample::run(&a),
        Command::Summary(a) => summary::run(&a),
        Command::Report(a) => report::run(&a),
        Command::Predict(a) => predict::run(&a),
        Command::Effects(a) => effects::run(&a),
        Command::Synthesize(a) => synthesize::run(&a),
        Command::Compare(a) => compare::run(&a),
        Command::Prior(a) => prior::run(&a),
        Command::Validate(a) => validate::run(&a),
        Command::Forget(a) => forget::run(&a),
        Command::Devices(a) => devices::run(&a),
        Command::Account(a) => account::account(&a),
        Command::Calibrate(a) => account::calibrate(&a),
        Command::Audit(a) => audit::run(&a),
        Command::Bench(a) => bench::run(&a),
        Command::Completions(a) => pages::completions(&a),
        Command::Man(a) => pages::manual(&a),
    });
    match result.and_then(|()| out::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "dpmc: {e}");
            ExitCode::from(e.code())
        }
    }
}
