//! `dpmc completions` and `dpmc man`: what shells and readers of manuals know of the command, from
//! its own arguments.

use super::CliError;
use super::answers::print_json;
use super::args::{CompletionsArguments, ManArguments, command};

pub(super) fn completions(a: &CompletionsArguments) -> Result<(), CliError> {
    let mut text = Vec::new();
    clap_complete::generate(a.shell, &mut command(), "dpmc", &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    Ok(())
}

/// A page for the command and one for each of its own.
pub(super) fn manual(a: &ManArguments) -> Result<(), CliError> {
    let fail = |e: std::io::Error| CliError::Input(format!("{}: {e}", a.directory.display()));
    std::fs::create_dir_all(&a.directory).map_err(fail)?;
    let command = command().disable_help_subcommand(true);
    let names = command
        .get_subcommands()
        .map(|c| format!("dpmc-{}.1", c.get_name()));
    let pages: Vec<_> = std::iter::once("dpmc.1".into())
        .chain(names)
        .map(|name| a.directory.join(name))
        .collect();
    clap_mangen::generate_to(command, &a.directory).map_err(fail)?;
    if a.json {
        let pages: Vec<String> = pages
            .iter()
            .map(|page| page.display().to_string())
            .collect();
        return print_json(&serde_json::json!({ "pages": pages }));
    }
    println!("wrote {}", a.directory.display());
    Ok(())
}
