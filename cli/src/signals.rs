//! Signals that end a run as its caller wishes: what was drawn is published and the ledger settled.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts;
use signal_hook::flag;

use super::CliError;

/// A flag that Ctrl-C sets, and what batch systems, service managers, containers and a terminal
/// that closes send: SIGTERM and SIGHUP.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stopping() {
        flag::register(signal, stop.clone())
            .map_err(|e| CliError::Failure(format!("signal {signal} cannot be awaited: {e}")))?;
    }
    Ok(stop)
}

#[cfg(unix)]
fn stopping() -> Vec<i32> {
    let mut signals = vec![consts::SIGINT, consts::SIGTERM];
    // `nohup dpmc …` is to go on when its terminal closes.
    if !is_ignored(consts::SIGHUP) {
        signals.push(consts::SIGHUP);
    }
    signals
}

#[cfg(not(unix))]
fn stopping() -> Vec<i32> {
    vec![consts::SIGINT, consts::SIGTERM]
}

/// Whether whoever started this process had it ignore the signal; known on Linux.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A write beyond the limit on a file's size (`ulimit -f`) fails, where the system would end the
/// process.
pub(super) fn survive_file_limit() {
    // Nobody asks the flag: that there is a handler is what makes the write return. Without one
    // the process ends as it did.
    #[cfg(unix)]
    let _ = flag::register(consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
