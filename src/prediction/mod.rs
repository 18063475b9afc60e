//! From released draws to answers: predictions, synthetic labels, effects, comparisons with public
//! labels.
//!
//! All of it is post-processing of draws that a ledger paid for, and of tables whose rows their
//! owner declares public, so none of it costs privacy. Nothing here reads a run's private table:
//! one that is handed over as a public table is refused.

mod compare;
mod curve;
mod declarations;
mod draws;
mod effects;
mod error;
mod label;
mod law;
mod mixture;
mod new_rows;
mod numeric;
mod predict;
mod predictor;
mod prior;
mod public_table;
mod synthesize;
mod write;

pub use compare::{Calibration, Comparison, Coverage, compare, test_table};
pub use draws::{NUMERIC_DRAWS, Posterior, USUAL_DRAWS, Wanted};
pub use effects::{Change, Effect, Effects, effects};
pub use error::PredictionError;
pub use label::Words;
pub use law::LabelLaw;
pub use mixture::Mixture;
pub use new_rows::NewRows;
pub use numeric::Numeric;
pub use predict::{Predictions, predict};
pub use predictor::Predictor;
pub use prior::{PriorPredictive, made_up_rows, prior_predictive};
pub use public_table::{PublicTable, Value};
pub use synthesize::{synthetic_labels, synthetic_table};
pub use write::{Columns, write_columns};
