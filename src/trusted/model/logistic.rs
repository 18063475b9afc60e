//! Bayesian logistic regression: `p(y = 1 | x, θ) = σ(x·θ)`.

use super::{
    Forms, GradientFunction, Model, ModelError, Prior, RowFunction, Score, Slopes, check_tempering,
    softplus_difference,
};

/// Bayesian logistic regression on the features of a labelled table.
#[derive(Clone, Debug)]
pub struct Logistic {
    parameters: Vec<String>,
    row_norm: f64,
    prior: Prior,
    tempering: f64,
}

impl Logistic {
    /// `features`: feature names (one coefficient each); `row_norm`: the declared bound B
    /// on ‖x‖; `tempering`: κ ∈ (0, 1].
    ///
    /// # Errors
    /// [`ModelError`] for a bad prior or κ.
    pub fn new(
        features: &[String],
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        prior.validate(features.len())?;
        check_tempering(tempering)?;
        Ok(Logistic {
            parameters: features.to_vec(),
            row_norm,
            prior,
            tempering,
        })
    }
}

impl Model for Logistic {
    fn name(&self) -> &'static str {
        "logistic"
    }
    fn parameters(&self) -> &[String] {
        &self.parameters
    }
    fn features(&self) -> usize {
        self.parameters.len()
    }
    fn labelled(&self) -> bool {
        true
    }
    fn tempering(&self) -> f64 {
        self.tempering
    }
    fn slopes(&self) -> Option<Slopes> {
        Some(Slopes::logistic())
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// `|d/dη log p| ≤ 1`, so `|r_i| ≤ κ ‖x‖ ‖Δθ‖ ≤ κB‖Δθ‖`.
    fn ratio_rate(&self) -> Option<f64> {
        Some(self.tempering * self.row_norm)
    }
    /// `|r_i| ≤ κ‖x‖‖Δθ‖`.
    fn ratio_scales_with_row(&self) -> bool {
        true
    }
    fn row_function(&self) -> RowFunction {
        RowFunction::Logistic
    }
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let step = proposal.iter().zip(theta).map(|(p, t)| p - t);
        Forms {
            offsets: vec![0.0; 2],
            weights: theta.iter().copied().chain(step).collect(),
        }
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let dot = |t: &[f64]| -> f64 { row.iter().zip(t).map(|(x, t)| x * t).sum() };
        let (eta, eta_new) = (dot(theta), dot(proposal));
        -self.tempering * softplus_difference(-label * eta, -label * (eta_new - eta))
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Score(Score::Logistic)
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        Forms {
            offsets: Vec::new(),
            weights: theta.to_vec(),
        }
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        let eta: f64 = row.iter().zip(theta).map(|(x, t)| x * t).sum();
        let score = self.tempering * label / (1.0 + (label * eta).exp());
        row.iter().map(|x| score * x).collect()
    }
}
