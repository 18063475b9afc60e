//! The only door to the data: what is asked of rows is charged to a ledger before it
//! is computed, and leaves only as a released decision.

mod certificate;
mod conversion;
mod curator;
mod event;
mod ledger;
mod ledger_file;
pub(crate) mod mechanism;
mod releases;

pub(crate) use certificate::RunFacts;
pub use certificate::{Certificate, EventCount};
pub use conversion::{delta_of_rho, epsilon_of_rho, epsilon_of_rho_classic, rho_of_budget};
pub use curator::{Curator, CuratorError, OpenCurator};
pub use event::{Event, EventKey, charged_eta};
pub use ledger::{Budget, BudgetError, Ledger, Refusal, Rho, Voucher};
pub use ledger_file::LedgerFileError;
pub(crate) use ledger_file::{replace_durably, sync_folder};
pub use releases::{Acceptance, Estimator, Halt, Lambda, Moves, Releases};
