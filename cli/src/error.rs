//! Every error the command can end with, and its exit code.

use dpmc::config::ConfigError;
use dpmc::engine::EngineError;
use dpmc::output::OutputError;
use dpmc::privacy::{CuratorError, LedgerFileError};
use dpmc::run::RunError;

/// An error with an exit code: 2 where the input is at fault, 1 for a failure.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Ledger(#[from] LedgerFileError),
    #[error(transparent)]
    Curator(#[from] CuratorError),
    #[error("{0}")]
    Input(String),
    #[error("{0}")]
    Failure(String),
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Config(e) => CliError::Config(e),
            RunError::Ledger(e) => CliError::Ledger(e),
            RunError::Curator(e) => CliError::Curator(e),
            RunError::Spent(what) | RunError::State(what) => CliError::Input(what),
            RunError::NoSeed(_) => CliError::Failure(error.to_string()),
        }
    }
}

impl CliError {
    pub fn code(&self) -> u8 {
        let input = match self {
            CliError::Config(_) | CliError::Ledger(_) | CliError::Input(_) => true,
            CliError::Output(e) => e.is_input(),
            CliError::Curator(CuratorError::Mismatch(_)) => true,
            CliError::Curator(CuratorError::Engine(
                EngineError::NoAdapter { .. } | EngineError::NotBuilt | EngineError::CpuOnly,
            )) => true,
            CliError::Curator(_) | CliError::Failure(_) => false,
        };
        if input { 2 } else { 1 }
    }
}
