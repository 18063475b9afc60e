//! Why a figure could not be made.

use dpmc::config::ConfigError;
use dpmc::data::DataError;
use dpmc::diagnostics::DiagnosticError;
use dpmc::privacy::accountant::SequenceError;
use dpmc::privacy::{BudgetError, CuratorError, Halt};

/// Why a figure could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// No figure of that name.
    #[error("there is no figure '{name}'; {hint}`dpmc-lab reproduce list` shows them")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, if one is near.
        hint: String,
    },
    /// A data file that is missing.
    #[error(
        "{0} is missing; run from the root of the repository, or give the folder with --data DIR"
    )]
    NoData(String),
    /// A method's settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The curator.
    #[error(transparent)]
    Curator(#[from] CuratorError),
    /// A step.
    #[error(transparent)]
    Halt(#[from] Halt),
    /// A diagnostic.
    #[error(transparent)]
    Diagnostic(#[from] DiagnosticError),
    /// An accountant's question.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// A budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl ReproduceError {
    /// Whether the input is at fault, not the run.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            ReproduceError::Unknown { .. }
                | ReproduceError::NoData(_)
                | ReproduceError::Config(_)
                | ReproduceError::Curator(dpmc::privacy::CuratorError::Mismatch(_))
        )
    }
}
