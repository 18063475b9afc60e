//! Samplers: public post-processing. They propose, integrate and adapt, and see
//! neither a row, an exact sum nor the secret generator.

mod adam;
mod adaptation;
mod anchored;
mod any;
pub mod catalog;
mod chains;
mod combination;
mod fast_mh;
mod hamiltonian;
mod langevin;
mod optimiser;
mod posterior_draws;
mod proposal;
mod random_walk;
mod setting_error;
mod variational;
mod windows;

pub use adaptation::{Adapt, Adaptation};
pub(crate) use anchored::LEAST_ANCHOR;
pub use anchored::{
    AnchorSettings, AnchorSplit, AnchoredMoves, AnchoredProposal, AnchoredSettings, Anchoring,
    Curve, Decisions, Level, MomentSettings, Structure, Sum, typical_moment_clip,
};
pub use any::{Sampler, SamplerState, StepCost};
pub use catalog::{Algorithm, DynamicsName, Family, OptimiserName};
pub(crate) use chains::stream;
pub use chains::{Chains, ChainsState, PublicRng};
pub use combination::{AcceptanceName, Combination, EstimatorName};
pub use fast_mh::FastMh;
pub use hamiltonian::{
    Hamiltonian, HamiltonianSettings, HamiltonianState, HamiltonianWarmup, Mass,
};
pub use langevin::{
    Dynamics, GradientSettings, LiSettings, Schedule, StochasticGradient, StochasticGradientState,
};
pub use optimiser::{Optimiser, OptimiserState};
pub use posterior_draws::PosteriorDraws;
pub use proposal::{ClipNorm, ClipRule, Preconditioner};
pub use random_walk::{RandomWalk, RandomWalkState, StepInfo};
pub use setting_error::SettingError;
pub use variational::{Dpvi, Variational, VariationalPosterior, VariationalState, gradient_sigma};
