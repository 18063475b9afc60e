//! Public settings of Hamiltonian samplers, and what is refused.

use super::mass::Mass;
use super::warmup::{HamiltonianWarmup, MOST_LEAPFROG_STEPS};
use crate::privacy::{Acceptance, Estimator, GradientNoise};
use crate::sampler::{ClipNorm, ClipRule, SettingError};

/// Clip bounds are never smaller, in nats: a trajectory that comes back to where it began is
/// decided and paid for like any other. Public; a larger bound than needed biases nothing.
pub(super) const SMALLEST_CLIP: f64 = 1.0 / (1u64 << 20) as f64;

/// Public settings of a Hamiltonian sampler.
#[derive(Clone, Debug, PartialEq)]
pub struct HamiltonianSettings {
    /// Estimator of the log-likelihood ratio.
    pub estimator: Estimator,
    /// Acceptance rule.
    pub acceptance: Acceptance,
    /// Public clip of the ratio; `None` only in non-private full-batch runs. The norm
    /// [`ClipNorm::Proposal`] is `‖M^½(θ'−θ)‖₂`.
    pub clip: Option<ClipRule>,
    /// Moves whose clip bound would be larger, in nats, are rejected as divergent: they would be
    /// dear or could not be decided at all. Symmetric in θ, θ', so the target stays.
    pub largest_clip: f64,
    /// How gradients are clipped and released.
    pub gradient: GradientNoise,
    /// Step size η, in units of θ·√M.
    pub step: f64,
    /// Leapfrog steps L of a trajectory: L + 1 gradients are released a chain and step.
    pub leapfrog_steps: u32,
    /// `[low, high]`: η is multiplied by `low + (high − low)u`, u from a randomised Halton
    /// sequence, one element an iteration for all chains; not at all without it.
    pub jitter: Option<[f64; 2]>,
    /// Mass matrix M.
    pub mass: Mass,
    /// Warm-up.
    pub warmup: HamiltonianWarmup,
}

impl HamiltonianSettings {
    /// A narrow jitter, which keeps the acceptance rate that the step size was tuned for. (Räisä
    /// 2021 jitters by 0 to 1.)
    pub const JITTER: [f64; 2] = [0.9, 1.1];

    /// Checks all of them for d parameters.
    ///
    /// # Errors
    /// [`SettingError`] naming the setting.
    pub fn validate(&self, d: usize) -> Result<(), SettingError> {
        let refuse = |key, what: String| Err(SettingError::new(key, what));
        if !(self.step > 1e-200 && self.step < 1e200) {
            return refuse(
                "sampler.step",
                format!("must lie between 1e-200 and 1e200, not {:e}", self.step),
            );
        }
        if !(1..=MOST_LEAPFROG_STEPS).contains(&self.leapfrog_steps) {
            let (given, most) = (self.leapfrog_steps, MOST_LEAPFROG_STEPS);
            return refuse(
                "sampler.leapfrog_steps",
                format!("must lie between 1 and {most}, not {given}"),
            );
        }
        if let Some([low, high]) = self.jitter
            && !(low >= 0.0 && low <= high && high > 0.0 && high <= 10.0)
        {
            return refuse(
                "sampler.jitter",
                format!("needs 0 <= low <= high <= 10 and high above 0, not [{low}, {high}]"),
            );
        }
        let largest = self.largest_clip;
        if !(largest > SMALLEST_CLIP && largest <= f64::powi(2.0, 80)) {
            return refuse(
                "sampler.clip",
                format!("must lie between 2^-20 and 2^80 nats, not {largest}"),
            );
        }
        if let Some(ClipRule { rate, norm }) = self.clip {
            if !(rate > 0.0 && rate.is_finite()) {
                return refuse("sampler.clip", format!("needs a positive rate, not {rate}"));
            }
            if norm == ClipNorm::Constant && rate > largest {
                return refuse(
                    "sampler.clip",
                    format!(
                        "is {largest} nats, under the constant clip {rate}: no move could be made; raise it"
                    ),
                );
            }
        }
        self.mass.validate(d)?;
        self.warmup.validate()
    }
}
