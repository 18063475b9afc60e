//! Priors ([`Prior`]), also in blocks of coefficients, some with a standard deviation of their own
//! that is not known and is sampled with the rest: levels that share one (hierarchies), and the
//! horseshoe.
//!
//! A chain moves over the coefficients alone. What is unknown of the standard deviations is
//! integrated out of the prior's density, in one dimension, and each kept draw of the coefficients
//! gets a draw of them from their law given the coefficients, which is exact. Rows depend on the
//! coefficients alone, so all of this is public: functions of numbers.

mod block;
mod horseshoe;
mod log_concave;
mod prior;
mod scale;

pub(crate) use block::Stretch;
pub use block::{Block, BlockLaw};
pub use prior::{Density, Prior, Support, Surrogate};
pub use scale::ScaleLaw;

use crate::model::ModelError;

/// The prior of d parameters, in blocks that are independent of each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// Each parameter belongs to one of them.
    pub blocks: Vec<Block>,
}

impl Blocks {
    /// Checks that each of `d` parameters has one prior with usable numbers.
    ///
    /// # Errors
    /// [`ModelError`] naming the key.
    pub fn validate(&self, d: usize) -> Result<(), ModelError> {
        let mut count = vec![0; d];
        for block in &self.blocks {
            for &j in &block.members {
                match count.get_mut(j) {
                    Some(n) => *n += 1,
                    None => return Err(unfit(d)),
                }
            }
            block.validate()?;
        }
        match count.iter().all(|n| *n == 1) {
            true => Ok(()),
            false => Err(unfit(d)),
        }
    }

    /// Log density up to a constant, nats; finite, and above all others where the coefficients of a
    /// block are all but zero.
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        self.blocks.iter().map(|b| b.log_density(theta)).sum()
    }

    /// Gradient of the log density, and for each coefficient what its precision is on average given
    /// the coefficients: no less than minus the Hessian's diagonal, and positive.
    pub fn slopes(&self, theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut gradient = vec![0.0; theta.len()];
        let mut precision = vec![0.0; theta.len()];
        for block in &self.blocks {
            block.add_slopes(theta, &mut gradient, &mut precision);
        }
        (gradient, precision)
    }

    /// One draw of d coefficients, from draws of the standard deviations.
    pub fn draw(&self, rng: &mut impl rand::Rng) -> Vec<f64> {
        let d = self.blocks.iter().map(|b| b.members.len()).sum();
        let mut theta = vec![0.0; d];
        for block in &self.blocks {
            block.draw(&mut theta, rng);
        }
        theta
    }

    /// Means and standard deviations of the independent normal prior that an anchor is looked for
    /// with: a sampled standard deviation at its prior's scale, a horseshoe at ten times that.
    pub fn working(&self, d: usize) -> (Vec<f64>, Vec<f64>) {
        let (mut mean, mut sd) = (vec![0.0; d], vec![1.0; d]);
        for block in &self.blocks {
            for (i, &j) in block.members.iter().enumerate() {
                let (m, s) = block.working(i);
                if j < d {
                    (mean[j], sd[j]) = (m, s);
                }
            }
        }
        (mean, sd)
    }

    /// What the sampled standard deviations are called, in the order of [`Blocks::scales`].
    pub fn names(&self) -> Vec<String> {
        let named = self.blocks.iter().filter_map(Block::name);
        named.map(String::from).collect()
    }

    /// One exact draw of the sampled standard deviations given the coefficients.
    pub fn scales(&self, theta: &[f64], rng: &mut impl rand::Rng) -> Vec<f64> {
        let draws = self.blocks.iter().filter_map(|b| b.draw_scale(theta, rng));
        draws.collect()
    }

    /// A start away from zero, where densities of blocks with a sampled standard deviation are all
    /// but infinite and no chain leaves: their coefficients at plus and minus the working prior's.
    pub fn usual_start(&self, mut start: Vec<f64>) -> Vec<f64> {
        for block in self.blocks.iter().filter(|b| b.name().is_some()) {
            for (i, &j) in block.members.iter().enumerate() {
                let (mean, sd) = block.working(i);
                if let Some(s) = start.get_mut(j) {
                    *s = if i % 2 == 0 { mean + sd } else { mean - sd };
                }
            }
        }
        start
    }
}

fn unfit(d: usize) -> ModelError {
    ModelError::new(
        "model.prior",
        format!("each of {d} parameters needs one prior"),
    )
}

#[cfg(test)]
mod tests;
