//! `dpmc validate`: a priced score of a run's draws on a protected held-out table.

use super::CliError;
use super::answers::print_json;
use super::args::ValidateArguments;
use dpmc::run::validate;

pub(super) fn run(a: &ValidateArguments) -> Result<(), CliError> {
    let report = validate(&a.directory)?;
    if a.json {
        return print_json(&report);
    }
    for line in report.lines() {
        println!("{line}");
    }
    Ok(())
}
