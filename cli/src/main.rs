//! The `dpmc` command. See `dpmc --help`.

fn main() -> std::process::ExitCode {
    dpmc_cli::main()
}
