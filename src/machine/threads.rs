//! Threads for sums over rows: as many as the system lets the process have.

use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread::{Builder, available_parallelism};

/// Starts rayon's threads, once, where nobody has. Left to itself, rayon panics where a limit on
/// processes, threads or address space refuses one. `alone`: this thread is the only one that
/// will ever ask for sums, and may make them itself where no other is to be had.
///
/// # Errors
/// A message where there are none.
pub fn start(alone: bool) -> Result<(), String> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    STARTED.get_or_init(|| begin(alone)).clone()
}

fn begin(alone: bool) -> Result<(), String> {
    let stated = std::env::var("RAYON_NUM_THREADS").ok();
    let stated = stated.and_then(|n| n.parse().ok()).filter(|n| *n > 0);
    let wanted = stated.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    // Rayon has one try only, so it asks for no more than there are.
    let builder = match at_hand(wanted) {
        n if n == wanted => rayon::ThreadPoolBuilder::new().num_threads(n),
        // One is left to whoever else needs one.
        n if n > 2 => rayon::ThreadPoolBuilder::new().num_threads(n - 1),
        _ if alone => rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .use_current_thread(),
        _ => rayon::ThreadPoolBuilder::new().num_threads(1),
    };
    match builder.build_global() {
        Ok(()) => Ok(()),
        // The program around this library has threads of its own.
        Err(e) if std::error::Error::source(&e).is_none() => Ok(()),
        Err(e) => Err(format!(
            "threads cannot be started: {e}; raise the limit on processes (ulimit -u) or on address space (ulimit -v), or set RAYON_NUM_THREADS=1"
        )),
    }
}

/// How many of `wanted` threads can be had at once.
fn at_hand(wanted: usize) -> usize {
    let mut waiting = Vec::new();
    for _ in 0..wanted {
        let (release, released) = channel::<()>();
        match Builder::new().spawn(move || released.recv().is_err()) {
            Ok(thread) => waiting.push((release, thread)),
            Err(_) => break,
        }
    }
    let count = waiting.len();
    for (release, thread) in waiting {
        drop(release);
        let _ = thread.join();
    }
    count
}
