//! Models that are no regressions: what the papers sample. They say in f64 what a row tells and what
//! affine forms the engines make of it. Privacy rests on none of that, for the engines clip what comes
//! out, so they lie outside of the trusted part.

mod banana;
mod gaussian_mean;
mod layered;
mod mixture;
mod mlp;

pub use banana::Banana;
pub use gaussian_mean::GaussianMean;
pub use layered::Layered;
pub use mixture::Mixture;
pub use mlp::{Mlp, NetworkShape};
