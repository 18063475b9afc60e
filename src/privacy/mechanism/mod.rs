//! Private mechanisms: the only code that opens a [`Secret`], and the only holder of
//! the secret generator. Everything that leaves this folder is a released decision.

mod bernoulli_exp;
mod coin;
mod correction;
mod decide;
mod discrete_gaussian;
mod expansion;
mod poisson;
mod secret;
mod secret_rng;

pub(super) use coin::LOGIT_ERROR;
pub use correction::{Component, Correction};
pub(super) use decide::{
    SealedRatio, barker, draw_rows, full_batch, metropolis, noisy_barker, penalty,
    poisson_estimate, recycle,
};
pub(super) use discrete_gaussian::{MAX_VARIANCE, noise_for_benchmarks};
pub(super) use expansion::{AnchorVariances, expansion};
pub(super) use poisson::{DRAW_DELTA, PoissonSampler};
pub(super) use secret::Secret;
pub(super) use secret_rng::SecretRng;
