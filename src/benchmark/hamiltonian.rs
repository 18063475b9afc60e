//! A whole `dp-hmc` trajectory against the gradient passes that it is made of.

use crate::model::Model;
use crate::privacy::{Acceptance, Batch, CuratorError, Estimator, GradientNoise};
use crate::sampler::{
    ClipNorm, ClipRule, Hamiltonian, HamiltonianSettings, HamiltonianWarmup, Mass,
};

/// Leapfrog steps of the trajectory.
const LEAPFROG_STEPS: u32 = 10;

/// What a trajectory is called in reports.
pub(super) fn name() -> String {
    format!(
        "dp-hmc trajectory, {} gradients and 1 ratio",
        LEAPFROG_STEPS + 1
    )
}

/// A `dp-hmc` sampler of logistic regression, without adaptation.
pub(super) fn sampler(model: &dyn Model) -> Result<Hamiltonian, CuratorError> {
    let settings = HamiltonianSettings {
        estimator: Estimator::FullBatch,
        acceptance: Acceptance::Penalty { tau: 5.0 },
        clip: Some(ClipRule {
            rate: 0.5,
            norm: ClipNorm::Euclidean,
        }),
        largest_clip: 1e3,
        gradient: GradientNoise {
            clip: Some(1.0),
            batch: Batch::All,
            sigma: 10.0,
        },
        step: 1e-3,
        leapfrog_steps: LEAPFROG_STEPS,
        jitter: Some(HamiltonianSettings::JITTER),
        mass: Mass::Scalar(1.0),
        warmup: HamiltonianWarmup::none(),
    };
    Hamiltonian::new(model.prior().clone(), settings, model.dim())
        .map_err(|e| CuratorError::Mismatch(e.to_string()))
}
