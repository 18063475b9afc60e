//! Private mechanisms: the only code that opens a [`Secret`], and the only holder of
//! the secret generator. Everything that leaves this folder is a released decision.

mod alias;
mod bernoulli_exp;
mod coin;
mod decide;
mod discrete_gaussian;
mod expansion;
mod fixed_batch;
mod gradient;
mod poisson;
mod secret;
mod secret_rng;
mod shares;
mod weights;

#[cfg(test)]
mod shares_tests;

pub(super) use coin::LOGIT_ERROR;
pub(super) use decide::{
    barker, draw_rows, full_batch, metropolis, noisy_barker, penalty, poisson_estimate, recycle,
};
pub(super) use discrete_gaussian::{MAX_ANCHOR_VARIANCE, MAX_VARIANCE, noise_for_benchmarks};
pub(super) use expansion::{AnchorVariances, expansion, moments, noisy_sums};
pub(super) use fixed_batch::{BatchNoise, draw_subset, subsampled_barker};
pub(super) use gradient::{SampleRate, draw_poisson_rows, noisy_gradient};
pub(super) use poisson::{DRAW_DELTA, PoissonSampler};
pub(super) use secret::Secret;
pub(super) use secret_rng::SecretRng;
pub(super) use shares::{Drawn, RowShares};
pub(super) use weights::poisson_weights;
