//! Mathematics that knows nothing of rows, samplers or privacy.

pub(crate) mod chebyshev;
mod correction;
mod factorial;
mod lower;
mod matrix;
pub mod normal;
pub(crate) mod remainder;
pub(crate) mod single;
pub(crate) mod single_remainder;
mod softplus;
mod spline;

pub use correction::{Component, Correction};
pub use factorial::log_factorial;
pub use lower::Lower;
pub use matrix::{cholesky, inverse};
pub use remainder::{exponential_difference, remainder_difference};
pub use softplus::{softplus, softplus_difference};
pub(crate) use spline::Spline;
