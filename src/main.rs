//! The `dpmc` command. See `dpmc --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    dpmc::cli::main()
}
