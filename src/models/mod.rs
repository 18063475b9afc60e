//! Models that are no regressions: what the papers sample. They say in f64 what a row tells and
//! what affine forms the engines make of it. They lie outside of the trusted part, for the engines
//! clip what comes out. One answer is trusted all the same: `ops` pays for its draw by
//! `Model::ratio_rate` as a true bound, since a chain of clipped ratios has another posterior
//! (docs/proofs/guarantee.md). Whoever reads the trusted part reads those functions too.

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
