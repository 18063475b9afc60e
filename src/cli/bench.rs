//! `dpmc bench` (filled in below).
use super::CliError;
use super::args::JsonArguments;

pub(super) fn run(_a: &JsonArguments) -> Result<(), CliError> {
    Err(CliError::Failure("not built".into()))
}
