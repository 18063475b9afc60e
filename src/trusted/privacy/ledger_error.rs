//! What can be wrong with a ledger file.

use std::path::PathBuf;

use super::accountant::Measure;

/// What can be wrong with a ledger file.
#[derive(Debug, thiserror::Error)]
pub enum LedgerFileError {
    /// Another run holds it.
    #[error("{}: the ledger is in use by another run; wait until it ends", .0.display())]
    Locked(PathBuf),
    /// It belongs to another data set.
    #[error("{}: the ledger is of data set '{found}' with {rows} rows (or units), not of '{asked}' with {asked_rows}; name the right ledger", path.display())]
    OtherDataSet {
        /// The file.
        path: PathBuf,
        /// Name in the file.
        found: String,
        /// Rows in the file.
        rows: usize,
        /// Name in the run file.
        asked: String,
        /// Rows of the table.
        asked_rows: usize,
    },
    /// Its budget differs from the run's.
    #[error("{}: the ledger's budget is epsilon {epsilon}, delta {delta:e}; a run that shares it must name the same budget", path.display())]
    OtherBudget {
        /// The file.
        path: PathBuf,
        /// ε in the file.
        epsilon: f64,
        /// δ in the file.
        delta: f64,
    },
    /// It counts another measure than the run.
    #[error("{}: the ledger is a {}, the run needs a {}; {}", path.display(), found.filter(), asked.filter(), remedy(*found))]
    OtherMeasure {
        /// The file.
        path: PathBuf,
        /// Measure in the file.
        found: Measure,
        /// Measure of the run.
        asked: Measure,
    },
    /// It is not what this run left there.
    #[error("{}: {what}; nothing more is spent from it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: &'static str,
    },
    /// It cannot be read or written, or is damaged.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// How a run can share a ledger of this measure.
fn remedy(found: Measure) -> String {
    match found {
        Measure::Zcdp => {
            "drop 'order' and 'filter' from [privacy] and choose a sampler whose steps have a rho, or use another ledger".into()
        }
        Measure::Gaussian => {
            "state filter = \"gaussian\" in [privacy], or use another ledger".into()
        }
        Measure::Renyi { order } => {
            format!("state order = {order} in [privacy], or use another ledger")
        }
    }
}
