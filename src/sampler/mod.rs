//! Samplers: public post-processing. They propose, integrate and adapt, and see
//! neither a row, an exact sum nor the secret generator.

mod adaptation;
mod anchored;
mod anchored_walk;
mod anchoring;
mod any;
pub mod catalog;
mod chains;
mod combination;
mod fast_mh;
mod proposal;
mod random_walk;

pub use adaptation::{Adapt, Adaptation};
pub use anchored::{AnchoredMoves, AnchoredProposal};
pub use anchored_walk::AnchoredSettings;
pub use anchoring::{AnchorSplit, Anchoring};
pub use any::{Sampler, SamplerState, StepCost};
pub use catalog::{Algorithm, DynamicsName, Family};
pub(crate) use chains::stream;
pub use chains::{Chains, ChainsState, PublicRng};
pub use combination::{AcceptanceName, Combination, EstimatorName};
pub use fast_mh::FastMh;
pub use proposal::{ClipNorm, ClipRule, Preconditioner};
pub use random_walk::{RandomWalk, RandomWalkState, StepInfo};
