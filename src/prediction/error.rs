//! What can go wrong between draws and answers.

use crate::config::ConfigError;
use crate::output::OutputError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PredictionError {
    /// The run file, or the public table by its declarations.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The run directory, or a file that cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Other input that is at fault.
    #[error("{0}")]
    Input(String),
}
