//! Why a charge was not made.

use super::accountant::Measure;
use super::ledger_error::LedgerFileError;
use super::releases::Halt;

/// A charge that does not fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// What the step would have cost, in the ledger's measure.
    pub cost: f64,
    /// What is left, in the same.
    pub left: f64,
    /// The measure.
    pub measure: Measure,
}

/// Why a charge was not made.
#[derive(Debug)]
pub(super) enum ChargeError {
    Spent(Refusal),
    /// The measure cannot count an event.
    Unpriced(String),
    File(LedgerFileError),
}

impl From<ChargeError> for Halt {
    fn from(e: ChargeError) -> Self {
        match e {
            ChargeError::Spent(refusal) => Halt::BudgetSpent(refusal),
            ChargeError::Unpriced(what) => Halt::Refused(what),
            ChargeError::File(e) => Halt::Failed(e.to_string()),
        }
    }
}
