//! Samplers on rows' remainders at a released anchor (docs/proofs/anchors.md): how the anchor is
//! found, and moves around it.

mod algebra;
mod beside_levels;
mod boxed;
mod centre;
mod columns;
mod curves;
mod denoise;
mod drawn;
mod independent;
mod levels;
mod location;
mod moments;
mod moves;
mod norms;
mod path;
mod pooled;
mod reference;
mod refresh;
mod residuals;
mod scales;
#[cfg(test)]
mod scales_tests;
mod secant;
mod structure;
mod tilt;
mod totals;
mod walk;
mod warm_start;

pub use moments::{MomentSettings, typical_moment_clip};
pub use moves::{AnchoredMoves, AnchoredProposal};
pub(crate) use path::LEAST_ANCHOR;
pub(in crate::sampler) use refresh::WarmupMean;
pub use structure::{Curve, Level, Structure, Sum};
pub(in crate::sampler) use walk::AnchoredWalk;
pub use walk::{AnchorSettings, AnchoredSettings, Decisions};
pub use warm_start::{AnchorSplit, Anchoring};
