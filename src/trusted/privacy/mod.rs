//! The only door to the data: what is asked of rows is charged to a ledger before it
//! is computed, and leaves only as a released decision.
//!
//! The door has no side entrance. None of the following compiles; each has a twin that
//! differs in one word and does.
//!
//! A cell of a data set:
//! ```compile_fail
//! fn peek(data: &dpmc::data::Dataset) -> usize { data.tiles().len() }
//! ```
//! ```
//! fn peek(data: &dpmc::data::Dataset) -> usize { data.features().len() }
//! ```
//! The engine, which answers exactly:
//! ```compile_fail
//! use dpmc::engine::Engine;
//! ```
//! ```
//! use dpmc::engine::EngineInfo;
//! ```
//! The secret generator, or a sealed value:
//! ```compile_fail
//! use dpmc::privacy::mechanism;
//! ```
//! ```
//! use dpmc::privacy::Releases;
//! ```
//! A private curator's ledger, to be written to:
//! ```compile_fail
//! fn cheat(curator: &mut dpmc::privacy::Curator) { let _ = curator.ledger_mut(); }
//! ```
//! ```
//! fn cheat(curator: &mut dpmc::privacy::Curator) { let _ = curator.ledger(); }
//! ```
//! Draws without their certificate:
//! ```compile_fail
//! fn take(run: &mut dpmc::posterior_run::PosteriorRun) -> usize { run.draws.len() }
//! ```
//! ```
//! fn take(run: &mut dpmc::posterior_run::PosteriorRun) -> usize { run.pending() }
//! ```

pub mod accountant;
pub mod audit;
mod certificate;
mod charge_error;
mod curator;
mod event;
#[cfg(test)]
mod filter_tests;
#[cfg(test)]
mod gaussian_filter_tests;
mod held_out;
mod ledger;
mod ledger_error;
mod ledger_file;
mod ledger_history;
mod ledger_view;
mod mechanism;
mod releases;

pub use crate::math::{Component, Correction};
pub(crate) use accountant::best_order;
pub use accountant::{Budget, BudgetError, Measure, Price, Rho};
pub use accountant::{EventKey, charged_eta};
pub use accountant::{delta_of_rho, epsilon_of_rho, epsilon_of_rho_classic, rho_of_budget};
pub(crate) use certificate::RunFacts;
pub use certificate::{Certificate, EventCount};
pub use charge_error::Refusal;
pub use curator::{Curator, CuratorError, OpenCurator};
pub(crate) use curator::{largest_batch_clip, unscaled};
pub use event::{Event, EventError, Form, Neighbours};
pub use held_out::{HeldOut, HeldOutScore, ScoreRequest};
pub use ledger::{Ledger, PaidRun};
pub use ledger_error::LedgerFileError;
pub use ledger_file::replace_durably;
pub(crate) use ledger_file::sync_folder;
pub(crate) use releases::MOST_STEPS;
pub use releases::{
    Acceptance, AnchorNoise, Batch, DrawRequest, Estimator, Expansion, FastMhSettings,
    GradientNoise, Halt, Lambda, MomentNoise, Moves, Releases, profile_thresholds,
};

/// Sum of `n` exact discrete Gaussians of the given variance (grid steps²) from a fixed
/// seed: noise that never hides anything, for benchmarks.
pub(crate) fn noise_for_benchmarks(n: u64, variance: u128) -> i128 {
    mechanism::noise_for_benchmarks(n, variance)
}
