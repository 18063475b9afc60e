//! What a row tells, in f64: regressions and the models that the papers sample, and scores and
//! weights of regressions with the public bounds that anchors clip them to (`slopes`).
//! All of that lies outside of the trusted part, for the engines clip what comes out. One answer is
//! trusted all the same: `ops` pays for its draw by `Model::ratio_rate` as a true bound, since a
//! chain of clipped ratios has another posterior (docs/proofs/guarantee.md). Whoever reads the
//! trusted part reads those functions too.

mod anchor;
mod banana;
mod gaussian_mean;
mod layered;
mod mixture;
mod mlp;
mod moment_remainder;
mod moments;
mod network_anchor;
mod regression;
mod slopes;

pub use anchor::{Alone, Anchor, Anchored, Doubts, Metric, Profile, check_anchorable};
pub use banana::Banana;
pub use gaussian_mean::GaussianMean;
pub use layered::Layered;
pub use mixture::Mixture;
pub use mlp::{Mlp, NetworkShape};
pub use moment_remainder::MomentRemainder;
pub(crate) use moments::FLAT_CLIP;
pub use moments::{MomentAnchor, MomentForm, moment_form, remainder_bound};
pub use regression::Regression;
pub(crate) use slopes::label_range;
pub use slopes::{Influence, Joint, Predictor, Slopes};
