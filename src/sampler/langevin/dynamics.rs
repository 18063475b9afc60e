//! The updates of stochastic-gradient samplers, in coordinates u = θ/s scaled by a public
//! s, and the noise that each needs on its gradient (docs/proofs/guarantee.md).
//!
//! Every update is written for a force `f = ∇_u log posterior + noise` whose noise has the
//! standard deviation that leaves the posterior invariant to leading order in the step: the
//! updates add none of their own, so that the noise that hides rows is the one that samples.

use serde::{Deserialize, Serialize};

use crate::sampler::SettingError;

/// What drives a stochastic-gradient sampler. `a` is the step of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dynamics {
    /// Stochastic-gradient Langevin dynamics (Welling & Teh 2011, equation 4):
    /// `u ← u + (a/2) f`, noise `2/√a`, which adds N(0, a). On a Gaussian of precision λ its
    /// variance is `1/(λ(1 − aλ/4))`: a bias of first order in a.
    Sgld,
    /// The same in coordinates learned from released gradients (Li 2016, equations 4 and 5):
    /// `G_j ∝ 1/(floor·max √V + √V_j)`, V a running mean of squared released gradients less
    /// the variance of their known noise. Unlike there, G is scaled to a largest entry of 1
    /// (else the noise of a step, and so its price, would follow the draws), is taken from
    /// past steps only (this step's noise must not shape its own metric) and stays as it is
    /// after `adapt` steps; from then on no correction term Γ is missing.
    PreconditionedSgld {
        /// Weight of the past in the running mean, in (0, 1).
        decay: f64,
        /// Smallest curvature taken seriously, relative to the largest `√V`; in (0, 1].
        floor: f64,
        /// Steps over which the metric is learned.
        adapt: u64,
    },
    /// Stochastic-gradient HMC (Chen 2014, equation 15; a is their η, the step squared):
    /// `p ← (1 − friction) p + √a f`, `u ← u + √a p`, noise `√(2·friction/a)`; `√a p` is
    /// their v. On a Gaussian its variance is `1/(λ(1 − aλ/(4 − 2·friction)))`.
    Sghmc {
        /// Share of the momentum lost in a step, in (0, 1].
        friction: f64,
    },
    /// Stochastic-gradient Nosé–Hoover thermostat (Ding 2014, algorithm 2; a is their h):
    /// `p' = (1 − ξa) p + a f`, `u ← u + a p'`, `ξ ← ξ + a(‖(p + p')/2‖²/d − 1)`, noise
    /// `√(2·diffusion/a)`. The thermostat reads the momentum halfway (they read p'): p' has
    /// mean square `1/(1 − ξa/2)` when θ is right, so theirs biases θ at first order in a,
    /// this one at second. It absorbs any further noise of constant variance.
    Sgnht {
        /// Diffusion A > 0, and the thermostat's first value.
        diffusion: f64,
    },
}

/// One chain's part of a step.
pub(super) struct Update<'a> {
    /// Step of this iteration.
    pub a: f64,
    /// Force on u with its noise, d values.
    pub force: &'a [f64],
    /// s, d values.
    pub scale: &'a [f64],
    /// θ, momentum and thermostat before and after.
    pub theta: &'a mut [f64],
    pub momentum: &'a mut [f64],
    pub thermostat: &'a mut f64,
}

impl Dynamics {
    /// Standard deviation of the noise that the force needs at step `a`, a unit of 1/u.
    pub(crate) fn force_noise(self, a: f64) -> f64 {
        match self {
            Dynamics::Sgld | Dynamics::PreconditionedSgld { .. } => 2.0 / a.sqrt(),
            Dynamics::Sghmc { friction } => (2.0 * friction / a).sqrt(),
            Dynamics::Sgnht { diffusion } => (2.0 * diffusion / a).sqrt(),
        }
    }

    /// Whether it carries momenta, N(0, 1) in each coordinate of u at stationarity.
    pub(super) fn has_momentum(self) -> bool {
        matches!(self, Dynamics::Sghmc { .. } | Dynamics::Sgnht { .. })
    }

    /// First value of the thermostat: the friction that balances the noise it knows of.
    pub(super) fn thermostat(self) -> f64 {
        match self {
            Dynamics::Sgnht { diffusion } => diffusion,
            _ => 0.0,
        }
    }

    /// Moves one chain.
    pub(super) fn advance(self, update: Update<'_>) {
        let Update {
            a,
            force,
            scale,
            theta,
            momentum,
            thermostat,
        } = update;
        let coordinates = theta.iter_mut().zip(scale).zip(force);
        match self {
            Dynamics::Sgld | Dynamics::PreconditionedSgld { .. } => {
                for ((t, s), f) in coordinates {
                    *t += s * (0.5 * a * f);
                }
            }
            Dynamics::Sghmc { friction } => {
                let root = a.sqrt();
                for (((t, s), f), p) in coordinates.zip(momentum) {
                    *p = (1.0 - friction) * *p + root * f;
                    *t += s * (root * *p);
                }
            }
            Dynamics::Sgnht { .. } => {
                let d = momentum.len().max(1) as f64;
                let mut square = 0.0;
                for (((t, s), f), p) in coordinates.zip(momentum) {
                    let before = *p;
                    *p = (1.0 - *thermostat * a) * before + a * f;
                    *t += s * (a * *p);
                    square += (0.5 * (before + *p)).powi(2);
                }
                *thermostat += a * (square / d - 1.0);
            }
        }
    }

    /// Checks its numbers.
    ///
    /// # Errors
    /// [`SettingError`] for one out of range.
    pub(super) fn validate(self) -> Result<(), SettingError> {
        let refuse = |key: &str, what: String| Err(SettingError::new(key, what));
        match self {
            Dynamics::Sgld => Ok(()),
            Dynamics::PreconditionedSgld { decay, floor, .. } => {
                if !(decay > 0.0 && decay < 1.0) {
                    return refuse(
                        "sampler.preconditioner",
                        format!("'decay' must lie in (0, 1), not {decay}"),
                    );
                }
                if !(floor > 0.0 && floor <= 1.0) {
                    return refuse(
                        "sampler.preconditioner",
                        format!("'floor' must lie in (0, 1], not {floor}"),
                    );
                }
                Ok(())
            }
            Dynamics::Sghmc { friction } => {
                if friction > 0.0 && friction <= 1.0 {
                    return Ok(());
                }
                refuse(
                    "sampler.friction",
                    format!("is the share of momentum lost in a step, in (0, 1], not {friction}"),
                )
            }
            Dynamics::Sgnht { diffusion } => {
                if diffusion > 0.0 && diffusion.is_finite() {
                    return Ok(());
                }
                refuse(
                    "sampler.diffusion",
                    format!("must be positive, not {diffusion}"),
                )
            }
        }
    }
}
