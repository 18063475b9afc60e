//! Why a run cannot begin.

use crate::config::ConfigError;
use crate::output::OutputError;
use crate::privacy::{CuratorError, LedgerFileError};

/// Why a run cannot begin. Nothing was charged.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run file, or the table that it names.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The run's directory.
    #[error(transparent)]
    Output(OutputError),
    /// The ledger file.
    #[error(transparent)]
    Ledger(#[from] LedgerFileError),
    /// The engine, or what does not fit together.
    #[error(transparent)]
    Curator(#[from] CuratorError),
    /// The ledger has too little left for a first draw.
    #[error("{0}")]
    Spent(String),
    /// The saved state does not fit.
    #[error("{0}")]
    State(String),
    /// A failure that no input is at fault for.
    #[error("{0}")]
    Failed(String),
    /// The system gives no random bytes.
    #[error("no random seed: {0}")]
    NoSeed(String),
}
