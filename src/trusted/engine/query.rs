//! What the curator asks an engine, prepared once for all engines.

use serde::{Deserialize, Serialize};

use super::{EngineError, Grid};
use crate::model::{Model, RowFunction};

/// One chain's exact answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::trusted) struct RatioSum {
    /// `Σ clip(r_i)` in grid steps.
    pub steps: i64,
    /// Rows whose ratio reached the clip bound (a private quantity like any other).
    pub saturated: u64,
}

/// Log-ratio query for C chains. Every pair is evaluated from the lexicographically
/// smaller of θ, θ' and negated where it was swapped, so ratios are odd to the bit.
#[derive(Serialize, Deserialize)]
pub(in crate::trusted) struct RatioQuery {
    function: RowFunction,
    features: usize,
    labelled: bool,
    /// Per chain K offsets and the row function's constants, f32.
    offsets: Vec<f32>,
    /// Per chain K×d weights, f32; a network's θ and Δθ.
    weights: Vec<f32>,
    /// Per chain κ/γ times the model's unit: row function → grid steps.
    scales: Vec<f32>,
    grids: Vec<Grid>,
    signs: Vec<i32>,
}

impl RatioQuery {
    /// `thetas`, `proposals`: C rows of d values; `clip_bounds`: C values, nats.
    ///
    /// # Errors
    /// [`EngineError::Query`] where these do not fit together or the model, and
    /// [`EngineError::ClipRange`].
    pub fn new(
        model: &dyn Model,
        thetas: &[&[f64]],
        proposals: &[&[f64]],
        clip_bounds: &[f64],
    ) -> Result<Self, EngineError> {
        let (chains, d) = (thetas.len(), model.dim());
        let fits = proposals.len() == chains
            && clip_bounds.len() == chains
            && thetas.iter().chain(proposals).all(|t| t.len() == d);
        if !fits {
            return Err(EngineError::Query(format!(
                "a query needs as many starts as ends and clip bounds, and {d} parameters in each; it has {chains}, {} and {}",
                proposals.len(),
                clip_bounds.len()
            )));
        }
        let function = model.row_function();
        let mut query = RatioQuery {
            function,
            features: model.width(),
            labelled: model.labelled(),
            offsets: Vec::with_capacity(thetas.len() * function.offsets()),
            weights: Vec::with_capacity(thetas.len() * function.weights(model.width())),
            scales: Vec::with_capacity(thetas.len()),
            grids: Vec::with_capacity(thetas.len()),
            signs: Vec::with_capacity(thetas.len()),
        };
        for ((theta, proposal), &clip) in thetas.iter().zip(proposals).zip(clip_bounds) {
            let swap = theta.partial_cmp(proposal) == Some(std::cmp::Ordering::Greater);
            let (low, high) = if swap {
                (proposal, theta)
            } else {
                (theta, proposal)
            };
            let forms = model.forms(low, high);
            if forms.offsets.len() != function.offsets()
                || forms.weights.len() != function.weights(query.features)
            {
                return Err(EngineError::Query(format!(
                    "model '{}' gave forms of the wrong size",
                    model.name()
                )));
            }
            let grid = Grid::new(clip)?;
            query
                .offsets
                .extend(forms.offsets.iter().map(|&v| v as f32));
            query
                .weights
                .extend(forms.weights.iter().map(|&v| v as f32));
            let unit = model.tempering() * model.unit();
            query
                .scales
                .push((unit * f64::powi(2.0, -grid.exponent())) as f32);
            query.grids.push(grid);
            query.signs.push(if swap { -1 } else { 1 });
        }
        Ok(query)
    }

    /// Refuses a query that does not fit the rows: sums are exact only over rows of the
    /// width and kind that the model was checked for.
    pub fn check(&self, data_features: usize, labelled: bool) -> Result<(), EngineError> {
        if self.features != data_features || self.labelled && !labelled {
            return Err(EngineError::Query(
                "the model does not fit the rows it is asked about".into(),
            ));
        }
        Ok(())
    }

    /// Number of chains C.
    pub fn chains(&self) -> usize {
        self.grids.len()
    }

    pub fn features(&self) -> usize {
        self.features
    }

    pub fn function(&self) -> RowFunction {
        self.function
    }

    pub fn grid(&self, chain: usize) -> Grid {
        self.grids[chain]
    }

    /// +1, or −1 where the engine's raw answer is to be negated.
    pub fn sign(&self, chain: usize) -> i32 {
        self.signs[chain]
    }

    pub fn scale(&self, chain: usize) -> f32 {
        self.scales[chain]
    }

    /// Offset of a form, or past them a constant of the row function.
    pub fn offset(&self, chain: usize, form: usize) -> f32 {
        self.offsets[chain * self.function.offsets() + form]
    }

    /// The row function's constants of one chain.
    pub fn constants(&self, chain: usize) -> &[f32] {
        let (forms, offsets) = (self.function.forms(), self.function.offsets());
        &self.offsets[chain * offsets + forms..(chain + 1) * offsets]
    }

    /// All weights of one chain.
    pub fn weights_of(&self, chain: usize) -> &[f32] {
        let count = self.function.weights(self.features);
        &self.weights[chain * count..(chain + 1) * count]
    }

    pub fn weight(&self, chain: usize, form: usize, feature: usize) -> f32 {
        self.weights[(chain * self.function.forms() + form) * self.features + feature]
    }
}
