//! Accountants: what a sequence of events costs, with bounds from both sides.
//!
//! Every answer says which accountant gave it and how tight it is. For a sequence that was
//! **fixed in advance** the smallest upper bound of all of them holds. Where later events
//! depended on earlier answers (fully adaptive composition) only the answers marked
//! `adaptive` hold: a zCDP filter's. `docs/proofs/accounting.md` has the proofs.
//!
//! ```
//! use dpmc::privacy::{Event, Neighbours};
//! use dpmc::privacy::accountant::{Question, Sequence, account};
//!
//! let sgd = Event::PoissonGaussian { rate: 0.01, sensitivity: 1.0, sigma: 1.0 };
//! let sequence = Sequence::new(Neighbours::AddRemove, vec![(sgd, 10_000)])?;
//! let answer = account(&sequence, Question::Epsilon { delta: 1e-5 });
//! assert!(answer.lower <= 6.1877 && 6.1877 <= answer.upper && answer.upper < 6.2);
//! # Ok::<(), dpmc::privacy::accountant::SequenceError>(())
//! ```

mod budget;
mod calibrate;
mod compose;
mod conversion;
#[cfg(test)]
mod direction_tests;
mod event_key;
pub(super) mod flow;
#[cfg(test)]
mod flow_tests;
mod gaussian;
pub(super) mod gaussian_dp;
mod gaussian_filter;
mod grid;
mod kept;
mod measure;
mod orders;
mod pair;
#[cfg(test)]
mod pair_tests;
mod pld;
mod quadrature;
mod renyi;
mod rho;
mod rules;
mod sequence;
#[cfg(test)]
mod tests;
mod tilt;
mod window;

pub use budget::{Budget, BudgetError};
pub use calibrate::{CalibrationError, Solution, calibrate};
use conversion::largest;
pub use conversion::{delta_of_rho, epsilon_of_rho, epsilon_of_rho_classic, rho_of_budget};
pub use event_key::{Alone, EventKey, charged_eta};
pub(super) use gaussian::{delta as gaussian_delta, epsilon as gaussian_epsilon};
pub(crate) use measure::best_order;
pub(in crate::trusted) use measure::tightest_order;
pub use measure::{Measure, Price};
pub use orders::divergence;
pub(in crate::trusted) use orders::multiplicity_tail;
pub use rho::Rho;
pub use rules::account_without_losses;
pub use rules::{Account, Answer, Question, account, account_within};
pub use sequence::{Sequence, SequenceError};
