//! What a run leaves behind: draws, certificate, state, summary, plots. Draws are
//! accepted only from a [`PosteriorRun`](crate::posterior_run::PosteriorRun), which
//! brings the certificate that covers them.

mod directory;
mod draws;
mod held_out;
mod noise;
mod notes;
mod parts;
#[cfg(feature = "plot")]
pub mod plot;
mod rounding;
mod summary;
mod validation;

pub use directory::{OutputError, RunDirectory};
pub use draws::{DrawTable, read_draws};
pub use held_out::{Predictive, test_scores};
pub use noise::AnchorNoise;
pub use notes::{POINT, note_on_sampler};
pub use rounding::{guarantee_number, rounded_up};
pub use summary::{NamedNoise, Point, RunSummary, more_spent_by_ledger, summarize_directory};
pub(crate) use validation::HeldOutReports;
pub use validation::{HeldOutReport, held_out_reports};
