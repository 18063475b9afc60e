//! Standard output that may close early (`dpmc summary run | head -1`): what nobody reads is
//! dropped in silence, and the command goes on to its own end and exit code.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

use super::CliError;

/// Why nothing more is written: `None` where the reader is gone.
static CLOSED: OnceLock<Option<String>> = OnceLock::new();

/// Writes to standard output, where std's `print!` would panic.
pub(super) fn write(text: Arguments<'_>) {
    if CLOSED.get().is_some() {
        return;
    }
    if let Err(e) = std::io::stdout().lock().write_fmt(text) {
        close(&e);
    }
}

fn close(e: &std::io::Error) {
    let gone = e.kind() == ErrorKind::BrokenPipe;
    let _ = CLOSED.set((!gone).then(|| e.to_string()));
}

/// Writes what is left; an error where output was lost although somebody reads it.
pub(super) fn finish() -> Result<(), CliError> {
    if let Err(e) = std::io::stdout().lock().flush() {
        close(&e);
    }
    match CLOSED.get() {
        Some(Some(what)) => Err(CliError::Failure(format!("standard output: {what}"))),
        _ => Ok(()),
    }
}
