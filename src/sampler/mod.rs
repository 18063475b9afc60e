//! Samplers: public post-processing. They propose, integrate and adapt, and see
//! neither a row, an exact sum nor the secret generator.

mod adam;
mod adaptation;
mod anchored;
mod anchored_walk;
mod anchoring;
mod any;
pub mod catalog;
mod chains;
mod chees;
mod combination;
mod dpvi;
mod dual_averaging;
mod dynamics;
mod fast_mh;
mod halton;
mod hamiltonian;
mod hamiltonian_settings;
#[cfg(test)]
mod hamiltonian_tests;
mod hamiltonian_warmup;
#[cfg(test)]
mod hamiltonian_warmup_tests;
#[cfg(test)]
mod known_density;
#[cfg(test)]
mod known_gradients;
mod langevin;
mod langevin_published;
#[cfg(test)]
mod langevin_simulations;
mod langevin_state;
#[cfg(test)]
mod langevin_tests;
mod leapfrog;
#[cfg(test)]
mod leapfrog_tests;
mod mass;
mod proposal;
mod random_walk;
mod schedule;
mod variational;
mod windows;

pub use adaptation::{Adapt, Adaptation};
pub use anchored::{AnchoredMoves, AnchoredProposal};
pub use anchored_walk::AnchoredSettings;
pub use anchoring::{AnchorSplit, Anchoring};
pub use any::{Sampler, SamplerState, StepCost};
pub use catalog::{Algorithm, DynamicsName, Family};
pub(crate) use chains::stream;
pub use chains::{Chains, ChainsState, PublicRng};
pub use combination::{AcceptanceName, Combination, EstimatorName};
pub use dpvi::{Dpvi, VariationalPosterior, gradient_sigma};
pub use dynamics::Dynamics;
pub use fast_mh::FastMh;
pub use hamiltonian::{Hamiltonian, HamiltonianState};
pub use hamiltonian_settings::{HamiltonianSettings, SettingError};
pub use hamiltonian_warmup::HamiltonianWarmup;
pub use langevin::{GradientSettings, StochasticGradient, StochasticGradientState};
pub use langevin_published::LiSettings;
pub use mass::Mass;
pub use proposal::{ClipNorm, ClipRule, Preconditioner};
pub use random_walk::{RandomWalk, RandomWalkState, StepInfo};
pub use schedule::Schedule;
pub use variational::{Variational, VariationalState};
