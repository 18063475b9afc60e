//! Every error the command can end with, and its exit code.

use dpmc::config::ConfigError;
use dpmc::engine::EngineError;
use dpmc::output::OutputError;
use dpmc::prediction::PredictionError;
use dpmc::privacy::{CuratorError, LedgerFileError};
use dpmc::run::RunError;

/// An error with an exit code: 2 where the input is at fault, 1 for a failure.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The run file, or the table that it names.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A run's directory.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A ledger file.
    #[error(transparent)]
    Ledger(#[from] LedgerFileError),
    /// The engine, or what does not fit together.
    #[error(transparent)]
    Curator(#[from] CuratorError),
    /// The ledger has too little left for a first draw.
    #[error("{0}")]
    Spent(String),
    /// Other input that is at fault.
    #[error("{0}")]
    Input(String),
    /// A failure that no input is at fault for.
    #[error("{0}")]
    Failure(String),
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Config(e) => CliError::Config(e),
            RunError::Ledger(e) => CliError::Ledger(e),
            RunError::Curator(e) => CliError::Curator(e),
            RunError::Spent(what) => CliError::Spent(what),
            RunError::State(what) => CliError::Input(what),
            RunError::Output(e) => CliError::Output(e),
            RunError::NoSeed(_) | RunError::Failed(_) => CliError::Failure(error.to_string()),
        }
    }
}

impl From<PredictionError> for CliError {
    fn from(error: PredictionError) -> Self {
        match error {
            PredictionError::Config(e) => CliError::Config(e),
            PredictionError::Output(e) => CliError::Output(e),
            PredictionError::Input(what) => CliError::Input(what),
        }
    }
}

impl CliError {
    /// The command's exit code.
    pub fn code(&self) -> u8 {
        if self.is_input() { 2 } else { 1 }
    }

    /// Whether what the caller gave is at fault.
    pub fn is_input(&self) -> bool {
        match self {
            CliError::Config(_) | CliError::Ledger(_) | CliError::Spent(_) | CliError::Input(_) => {
                true
            }
            CliError::Output(e) => e.is_input(),
            CliError::Curator(CuratorError::Mismatch(_)) => true,
            CliError::Curator(CuratorError::Engine(
                EngineError::NoAdapter { .. } | EngineError::NotBuilt | EngineError::CpuOnly,
            )) => true,
            CliError::Curator(_) | CliError::Failure(_) => false,
        }
    }
}
