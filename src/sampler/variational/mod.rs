//! Variational inference as a sampler of its own Gaussian, and as what puts chains at a start
//! (Jälkö 2017; Heikkilä 2019, section 5).

mod fit;

pub use fit::{Dpvi, VariationalPosterior, gradient_sigma};

use std::sync::Arc;

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use super::{Chains, StepInfo};
use crate::model::Prior;
use crate::privacy::{GradientNoise, Halt, Releases};

/// Fits once, by released gradients, and draws independently ever after, at no cost.
#[derive(Clone, Debug)]
pub struct Variational {
    prior: Arc<Prior>,
    fit: Dpvi,
    noise: GradientNoise,
    state: VariationalState,
}

/// What `state.json` keeps of it: all of it public.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariationalState {
    /// The fitted Gaussian, once there is one.
    posterior: Option<VariationalPosterior>,
}

impl Variational {
    /// A fit from where the first chain starts.
    pub fn new(prior: Prior, fit: Dpvi, noise: GradientNoise) -> Self {
        Variational {
            prior: Arc::new(prior),
            fit,
            noise,
            state: VariationalState::default(),
        }
    }

    /// Gradients that the fit releases.
    pub fn gradients(&self) -> u64 {
        self.fit
            .steps
            .saturating_mul(self.fit.draws_per_step as u64)
    }

    /// How they are released.
    pub fn noise(&self) -> GradientNoise {
        self.noise
    }

    /// The fitted Gaussian, once there is one.
    pub fn posterior(&self) -> Option<&VariationalPosterior> {
        self.state.posterior.as_ref()
    }

    /// Puts every chain at an independent draw; the first time after the fit.
    ///
    /// # Errors
    /// [`Halt`]; what was spent stays charged.
    pub fn step(
        &mut self,
        chains: &mut Chains,
        releases: &mut dyn Releases,
    ) -> Result<StepInfo, Halt> {
        let posterior = match self.state.posterior.take() {
            Some(posterior) => posterior,
            None => {
                let start = chains.thetas.row(0).to_vec();
                let rng = &mut chains.rngs[0];
                self.fit
                    .run(&self.prior, &start, self.noise, releases, rng)?
            }
        };
        for (mut theta, rng) in chains.thetas.rows_mut().into_iter().zip(&mut chains.rngs) {
            theta.assign(&ArrayView1::from(&posterior.draw(rng)));
        }
        self.state.posterior = Some(posterior);
        chains.accepted.iter_mut().for_each(|a| *a += 1);
        Ok(StepInfo {
            accepted: vec![true; chains.len()],
        })
    }

    /// The public state.
    pub fn state(&self) -> VariationalState {
        self.state.clone()
    }

    /// Restores the public state, that of a fit that is `made` or not.
    ///
    /// # Errors
    /// A message where the Gaussian is missing, damaged or of another dimension than `d`. A fit
    /// that was paid for is not made and paid for again.
    pub fn restore(
        &mut self,
        state: &VariationalState,
        made: bool,
        d: usize,
    ) -> Result<(), String> {
        let fits = state.posterior.as_ref().map_or(!made, |p| {
            p.mean.len() == d
                && p.sd.len() == d
                && p.mean.iter().all(|m| m.is_finite())
                && p.sd.iter().all(|s| *s > 0.0 && s.is_finite())
        });
        if !fits {
            return Err(format!("'posterior' is not one of {d} parameters"));
        }
        self.state = state.clone();
        Ok(())
    }
}
