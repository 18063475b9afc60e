//! Saving and restoring stochastic-gradient samplers.

use super::{StochasticGradient, StochasticGradientState};
use crate::privacy::MOST_STEPS;

impl StochasticGradient {
    /// The public state.
    pub fn state(&self) -> StochasticGradientState {
        self.state.clone()
    }

    /// Restores the public state of so many chains.
    ///
    /// # Errors
    /// A message naming the field that is damaged or of another dimension.
    pub fn restore(
        &mut self,
        state: &StochasticGradientState,
        chains: usize,
    ) -> Result<(), String> {
        let d = self.state.second_moment.len();
        let started = self.dynamics.has_momentum() && state.iteration > 0;
        let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        let momenta = state.momenta.iter().all(|p| p.len() == d && finite(p));
        let expected = if started { chains } else { 0 };
        if !momenta || state.momenta.len() != expected {
            return Err(format!(
                "'momenta' is not one of {expected} chains and {d} parameters"
            ));
        }
        if state.thermostats.len() != state.momenta.len() || !finite(&state.thermostats) {
            return Err("'thermostats' is damaged".into());
        }
        let square = |v: &f64| *v >= 0.0 && v.is_finite();
        if state.second_moment.len() != d || !state.second_moment.iter().all(square) {
            return Err(format!("'second_moment' is not one of {d} parameters"));
        }
        if state.iteration > MOST_STEPS {
            return Err("'iteration' is damaged".into());
        }
        self.state = state.clone();
        Ok(())
    }
}
