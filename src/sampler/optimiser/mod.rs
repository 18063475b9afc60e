//! Stochastic gradient descent and Adam on released gradients (Abadi 2016, Algorithm 1; Kingma & Ba
//! 2015): public post-processing that ends at a point. They are what posterior samplers are
//! compared with, and draw from nothing.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use super::adam::Adam;
use super::{Chains, OptimiserName, Schedule, SettingError, StepInfo};
use crate::model::Prior;
use crate::privacy::{GradientNoise, Halt, MOST_STEPS, Releases};

/// Weight of the past in Adam's mean of squares (Kingma & Ba 2015).
const DECAY: f64 = 0.999;

/// A θ beyond this in any coordinate is not gone to.
const FARTHEST: f64 = 1e100;

/// Climbs the mean log posterior `(log p(θ) + Σ log p(x_i|θ))/N`, N the public number of rows, on
/// θ/s: by steps `a_t` along its gradient (`sgd`), or along what Adam makes of it (`adam`).
#[derive(Clone, Debug)]
pub struct Optimiser {
    prior: Arc<Prior>,
    rule: OptimiserName,
    schedule: Schedule,
    noise: GradientNoise,
    /// N.
    rows: f64,
    /// Public scale s of every parameter.
    scale: Vec<f64>,
    state: OptimiserState,
}

/// What `state.json` keeps of it: all of it public.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OptimiserState {
    /// Adam's moments of every chain; empty before the first step, and for `sgd`.
    moments: Vec<Adam>,
    /// Steps made.
    iteration: u64,
}

impl Optimiser {
    /// `rows`: N; `scale`: s, d positive values; `noise`: how each step's gradient is released.
    ///
    /// # Errors
    /// [`SettingError`] for a bounded support or a number out of range.
    pub fn new(
        prior: Prior,
        rule: OptimiserName,
        schedule: Schedule,
        noise: GradientNoise,
        rows: usize,
        scale: Vec<f64>,
    ) -> Result<Self, SettingError> {
        prior.validate(scale.len())?;
        if prior.is_bounded() {
            return Err(SettingError::new(
                "model.box",
                "optimisers need an unbounded support: remove it",
            ));
        }
        schedule.validate()?;
        if !scale.iter().all(|s| *s > 0.0 && s.is_finite()) {
            return Err(SettingError::new("sampler.scale", "must be positive"));
        }
        Ok(Optimiser {
            prior: Arc::new(prior),
            rule,
            schedule,
            noise,
            rows: rows.max(1) as f64,
            scale,
            state: OptimiserState::default(),
        })
    }

    /// How each step's gradient is released.
    pub fn noise(&self) -> GradientNoise {
        self.noise
    }

    /// Step of the first iteration.
    pub fn first_step(&self) -> f64 {
        self.schedule.at(1)
    }

    /// Moves every chain by one step. One whose next θ would be no usable number stays.
    ///
    /// # Errors
    /// [`Halt`]; nothing has moved then.
    pub fn step(
        &mut self,
        chains: &mut Chains,
        releases: &mut dyn Releases,
    ) -> Result<StepInfo, Halt> {
        let d = self.scale.len();
        let usable = |theta: ArrayView1<'_, f64>| theta.iter().all(|v| v.abs() <= FARTHEST);
        if chains.thetas.ncols() != d || !chains.thetas.rows().into_iter().all(usable) {
            return Err(Halt::Refused(format!(
                "an optimiser needs chains of {d} usable numbers"
            )));
        }
        let released = releases.gradients(chains.thetas.view(), self.noise)?;
        if released.dim() != chains.thetas.dim() {
            return Err(Halt::Failed("gradients of another shape".into()));
        }
        if self.rule == OptimiserName::Adam && self.state.moments.is_empty() {
            self.state.moments = vec![Adam::new(d); chains.len()];
        }
        let t = self.state.iteration + 1;
        let a = self.schedule.at(t);
        for (c, released) in released.rows().into_iter().enumerate() {
            let theta = chains.thetas.row(c).to_vec();
            let slopes = self.prior.slopes(&theta).0;
            let sums = released.iter().zip(slopes).zip(&self.scale);
            let gradient: Vec<f64> = sums
                .map(|((ours, prior), s)| s * (ours + prior) / self.rows)
                .collect();
            let direction = match self.state.moments.get_mut(c) {
                Some(adam) => adam.step(&gradient, DECAY),
                None => gradient,
            };
            let moves = theta.iter().zip(direction).zip(&self.scale);
            let next: Vec<f64> = moves.map(|((t, v), s)| t + s * a * v).collect();
            let next = ArrayView1::from(&next);
            if usable(next) {
                chains.thetas.row_mut(c).assign(&next);
            }
            chains.accepted[c] += 1;
        }
        self.state.iteration = t;
        // Nothing is decided.
        Ok(StepInfo {
            accepted: vec![true; chains.len()],
        })
    }

    /// The public state.
    pub fn state(&self) -> OptimiserState {
        self.state.clone()
    }

    /// Restores the public state of so many chains.
    ///
    /// # Errors
    /// A message naming the field that is damaged or of another dimension.
    pub fn restore(&mut self, state: &OptimiserState, chains: usize) -> Result<(), String> {
        let d = self.scale.len();
        let moments = match self.rule == OptimiserName::Adam && state.iteration > 0 {
            true => chains,
            false => 0,
        };
        if state.moments.len() != moments || !state.moments.iter().all(|m| m.fits(d)) {
            return Err(format!(
                "'moments' is not one of {moments} chains and {d} parameters"
            ));
        }
        if state.iteration > MOST_STEPS {
            return Err("'iteration' is damaged".into());
        }
        self.state = state.clone();
        Ok(())
    }
}
