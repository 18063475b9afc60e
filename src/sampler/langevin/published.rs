//! DP-SGLD and DP-SGHMC in the settings of Li 2019 ("On connecting stochastic gradient MCMC
//! and differential privacy"), for comparison.
//!
//! Algorithm 1 moves θ by `−η_t((1/N)∇log p(θ) + (1/τ)Σ clip_L(∇log p(x_i|θ))) + N(0, η_t/N)`
//! on Poisson batches of τ rows on average. Printed as a descent of the log posterior, it runs
//! away from it; here the gradient's sign is turned, and nothing else. Its drift is
//! `(a/2)∇ log posterior` with `a = 2η/N`, where N(0, a) would leave the posterior invariant:
//! with N(0, η/N) = N(0, a/2) it samples the **square** of the posterior, half its variance.

use serde::{Deserialize, Serialize};

use super::{Dynamics, GradientSettings, Schedule, StochasticGradient};
use crate::model::Prior;
use crate::privacy::Batch;
use crate::sampler::SettingError;

/// Settings of Li 2019, in the paper's own units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiSettings {
    /// L, bound on a row's gradient.
    pub clip: f64,
    /// η_t, step on the **mean** log posterior.
    pub eta: Schedule,
    /// τ, rows of a batch on average; N for all rows.
    pub batch: f64,
    /// N, rows, public.
    pub rows: u64,
}

impl StochasticGradient {
    /// DP-SGLD to the letter of Algorithm 1 but for the gradient's sign: noise `τ/√(η_t N)` on
    /// the batch's gradient sum (the paper's multiplier is that over L), `√2` too little.
    ///
    /// # Errors
    /// As [`StochasticGradient::new`].
    pub fn published_dp_sgld(
        prior: Prior,
        d: usize,
        settings: LiSettings,
    ) -> Result<Self, SettingError> {
        let mut sampler = settings.sampler(prior, d, Dynamics::Sgld, 2.0)?;
        sampler.temperature = 0.5;
        Ok(sampler)
    }

    /// DP-SGHMC in the same units: Chen 2014's update `v ← (1 − friction) v + (η/N)(∇log p +
    /// (N/τ)Σ clip_L(∇)) + N(0, 2·friction·η/N)`. The paper gives no listing of it; this noise
    /// leaves the posterior invariant.
    ///
    /// # Errors
    /// As [`StochasticGradient::new`].
    pub fn published_dp_sghmc(
        prior: Prior,
        d: usize,
        settings: LiSettings,
        friction: f64,
    ) -> Result<Self, SettingError> {
        settings.sampler(prior, d, Dynamics::Sghmc { friction }, 1.0)
    }
}

impl LiSettings {
    /// Our sampler whose step is `factor · η_t/N`.
    fn sampler(
        self,
        prior: Prior,
        d: usize,
        dynamics: Dynamics,
        factor: f64,
    ) -> Result<StochasticGradient, SettingError> {
        let rows = self.rows as f64;
        if !(self.batch > 0.0 && self.batch <= rows) {
            return Err(SettingError::new(
                "sampler.gradient.rate",
                format!(
                    "a batch must lie in (0, {rows}], the number of rows, not {}",
                    self.batch
                ),
            ));
        }
        let batch = if self.batch < rows {
            Batch::Poisson {
                rate: self.batch / rows,
            }
        } else {
            Batch::All
        };
        let gradients = GradientSettings {
            clip: Some(self.clip),
            batch,
            extra_noise: 0.0,
        };
        let schedule = self.eta.times(factor / rows);
        StochasticGradient::new(prior, d, dynamics, schedule, gradients)
    }
}
