//! Mathematics that knows nothing of rows, samplers or privacy.

mod matrix;
pub mod normal;
pub(crate) mod single;

pub use matrix::{cholesky, inverse};
