//! `dpmc completions` and `dpmc man`: what shells and readers of manuals know of the command, from
//! its own arguments.

use clap::CommandFactory;

use super::CliError;
use super::args::{Arguments, CompletionsArguments, ManArguments};

pub(super) fn completions(a: &CompletionsArguments) -> Result<(), CliError> {
    let mut text = Vec::new();
    clap_complete::generate(a.shell, &mut Arguments::command(), "dpmc", &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    Ok(())
}

/// A page for the command and one for each of its own.
pub(super) fn manual(a: &ManArguments) -> Result<(), CliError> {
    let fail = |e: std::io::Error| CliError::Input(format!("{}: {e}", a.directory.display()));
    std::fs::create_dir_all(&a.directory).map_err(fail)?;
    let command = Arguments::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, &a.directory).map_err(fail)?;
    println!("wrote {}", a.directory.display());
    Ok(())
}
