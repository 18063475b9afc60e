//! Saving and restoring stochastic-gradient samplers.

use super::{StochasticGradient, StochasticGradientState};
use crate::privacy::MOST_STEPS;

impl StochasticGradient {
    /// The public state.
    pub fn state(&self) -> StochasticGradientState {
        self.state.clone()
    }

    /// Restores the public state.
    ///
    /// # Errors
    /// A message naming the field that is damaged or of another dimension.
    pub fn restore(&mut self, state: &StochasticGradientState) -> Result<(), String> {
        let d = self.state.second_moment.len();
        let started = self.dynamics.has_momentum() && state.iteration > 0;
        let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        let momenta = state.momenta.iter().all(|p| p.len() == d && finite(p));
        if !momenta || state.momenta.is_empty() == started {
            return Err(format!("'momenta' is not one of {d} parameters"));
        }
        if state.thermostats.len() != state.momenta.len() || !finite(&state.thermostats) {
            return Err("'thermostats' is damaged".into());
        }
        if state.second_moment.len() != d || !finite(&state.second_moment) {
            return Err(format!("'second_moment' is not one of {d} parameters"));
        }
        if state.iteration > MOST_STEPS {
            return Err("'iteration' is damaged".into());
        }
        self.state = state.clone();
        Ok(())
    }
}
