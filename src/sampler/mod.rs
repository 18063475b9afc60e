//! Samplers: public post-processing. They propose, integrate and adapt, and see
//! neither a row, an exact sum nor the secret generator.

mod adam;
mod adaptation;
mod anchored;
mod anchored_walk;
mod anchoring;
pub mod catalog;
mod chains;
mod combination;
mod dpvi;
mod dynamics;
mod fast_mh;
#[cfg(test)]
mod known_gradients;
mod langevin;
mod langevin_published;
#[cfg(test)]
mod langevin_simulations;
mod langevin_state;
#[cfg(test)]
mod langevin_tests;
mod proposal;
mod random_walk;
mod schedule;

pub use adaptation::{Adapt, Adaptation};
pub use anchored::{AnchoredMoves, AnchoredProposal};
pub use anchored_walk::AnchoredSettings;
pub use anchoring::{AnchorSplit, Anchoring};
pub use catalog::Algorithm;
pub(crate) use chains::stream;
pub use chains::{Chains, ChainsState, PublicRng};
pub use combination::{AcceptanceName, Combination, EstimatorName};
pub use dpvi::{Dpvi, VariationalPosterior, gradient_sigma};
pub use dynamics::Dynamics;
pub use fast_mh::FastMh;
pub use langevin::{GradientSettings, StochasticGradient, StochasticGradientState};
pub use langevin_published::LiSettings;
pub use proposal::{ClipNorm, ClipRule, Preconditioner};
pub use random_walk::{RandomWalk, SamplerState, StepInfo};
pub use schedule::Schedule;
