//! Gradient queries: what the curator asks an engine about Σ clip(∇_i), prepared once for
//! all engines.
//!
//! Why a row's part is bounded (docs/proofs/guarantee.md, "Gradients"): a row gives
//! `q = round(t·v)`, v its gradient or, where that is a score times the row, the row. With
//! `limit = (bound − ⌈√d⌉)(1 − m)`, `m = (d + 16)·2^-23`, an engine takes t so that
//! `|t|·fl(‖v‖) ≤ limit`, where fl(‖v‖) ≥ ‖v‖(1 − m/2): a sum of d squares in f32, in any
//! order, loses at most (d + 1)·2^-23 of itself, and its root half of that. So ‖t·v‖ < bound − √d,
//! and rounding each coordinate to an integer adds less than √d: `Σ q_j² ≤ bound²`, whatever the
//! gradient was.

use serde::{Deserialize, Serialize};

use super::{EngineError, Grid};
use crate::model::{GradientFunction, Model};

/// Largest |t|: keeps what underflows in ‖v‖² under the slack.
pub(in crate::trusted) const LARGEST_FACTOR: f32 = (1u64 << 60) as f32;

/// Which rows a gradient sum is over.
#[derive(Clone, Copy, Debug)]
pub(in crate::trusted) enum Rows<'a> {
    /// All.
    All,
    /// Global row numbers, one list a chain.
    Listed(&'a [Vec<u64>]),
}

/// One chain's exact answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::trusted) struct GradientSum {
    /// `Σ clip(∇_i)`, d values in grid steps.
    pub steps: Vec<i64>,
    /// Rows whose gradient was scaled down (a private quantity like any other).
    pub clipped: u64,
}

/// Gradient query for C chains.
#[derive(Serialize, Deserialize)]
pub(in crate::trusted) struct GradientQuery {
    function: GradientFunction,
    features: usize,
    dim: usize,
    labelled: bool,
    /// Per chain K offsets, then K×features weights, f32.
    offsets: Vec<f32>,
    weights: Vec<f32>,
    scale: f32,
    grid: Grid,
    limit: f32,
    chains: usize,
}

impl GradientQuery {
    /// `thetas`: C rows of d values; `clip`: the bound b_g on a row's tempered gradient in L2,
    /// nats a unit of θ.
    ///
    /// # Errors
    /// [`EngineError::Query`] where shapes do not fit the model, and
    /// [`EngineError::ClipRange`].
    pub fn new(model: &dyn Model, thetas: &[&[f64]], clip: f64) -> Result<Self, EngineError> {
        let (d, features) = (model.dim(), model.width());
        let function = model.gradient_function();
        let grid = Grid::new(clip)?;
        let mut query = GradientQuery {
            function,
            features,
            dim: d,
            labelled: model.labelled(),
            offsets: Vec::new(),
            weights: Vec::new(),
            scale: (model.tempering() * model.unit() * f64::powi(2.0, -grid.exponent())) as f32,
            grid,
            limit: limit(grid, d)?,
            chains: thetas.len(),
        };
        for theta in thetas {
            let forms = model.gradient_forms(theta);
            let forms_fit = theta.len() == d
                && forms.offsets.len() == function.offsets(d)
                && forms.weights.len() == function.weights(d, features);
            if !forms_fit {
                return Err(EngineError::Query(format!(
                    "a gradient of model '{}' needs {d} parameters a chain",
                    model.name()
                )));
            }
            query
                .offsets
                .extend(forms.offsets.iter().map(|&v| v as f32));
            query
                .weights
                .extend(forms.weights.iter().map(|&v| v as f32));
        }
        Ok(query)
    }

    /// Refuses a query that does not fit the rows.
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
        self.chains
    }

    /// Number of parameters d.
    pub fn dim(&self) -> usize {
        self.dim
    }

    pub fn features(&self) -> usize {
        self.features
    }

    pub fn function(&self) -> GradientFunction {
        self.function
    }

    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// κ/γ times the model's unit: gradient function → grid steps.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Largest |t|·fl(‖v‖), see above.
    pub fn limit(&self) -> f32 {
        self.limit
    }

    /// Largest t²·Σ v_j², whatever [`GradientQuery::limit`] says.
    #[cfg(feature = "gpu")]
    pub fn reach(&self) -> f32 {
        let limit = limit(self.grid, self.dim).unwrap_or(0.0);
        limit * limit
    }

    /// The same query with another limit: a planted float clip that does not clip.
    #[cfg(all(test, feature = "gpu"))]
    pub fn with_limit(mut self, limit: f32) -> Self {
        self.limit = limit;
        self
    }

    /// Offsets of one chain.
    pub fn offsets(&self, chain: usize) -> &[f32] {
        let k = self.function.offsets(self.dim);
        &self.offsets[chain * k..(chain + 1) * k]
    }

    /// Weights of one chain.
    pub fn weights(&self, chain: usize) -> &[f32] {
        let k = self.function.weights(self.dim, self.features);
        &self.weights[chain * k..(chain + 1) * k]
    }
}

/// The limit for d coordinates, in f32 and rounded down.
fn limit(grid: Grid, d: usize) -> Result<f32, EngineError> {
    let margin = (d as f64 + 16.0) * f64::powi(2.0, -23);
    let root = (d as f64).sqrt().ceil();
    // Beyond this the margin would be felt; no model here is as large.
    if d > 1 << 18 {
        return Err(EngineError::Query(format!(
            "gradients have at most {} coordinates, not {d}",
            1 << 18
        )));
    }
    let limit = (f64::from(grid.bound()) - root) * (1.0 - margin);
    Ok((limit * (1.0 - f64::powi(2.0, -22))) as f32)
}
