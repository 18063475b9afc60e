//! What this machine lets a process have. No row is seen from here.

mod build;
mod memory;
mod threads;

/// Which of several ranks on this machine a process is, from 0; not set where it is alone.
#[cfg(any(feature = "gpu", feature = "mpi"))]
pub(crate) static PLACE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();

pub(crate) use build::{build, sha256};
pub use memory::available_memory;
pub use threads::start as start_threads;
