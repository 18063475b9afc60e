//! Bayesian linear regression with known noise variance: `y ~ N(x·θ, s²)`.

use super::{
    Forms, GradientFunction, Model, ModelError, Prior, RowFunction, Score, Slopes, check_tempering,
    radius, wrong_label,
};
use crate::data::LabelKind;

/// Bayesian linear regression on the features of a table with a numeric label.
#[derive(Clone, Debug)]
pub struct Linear {
    parameters: Vec<String>,
    variance: f64,
    label: LabelKind,
    row_norm: f64,
    prior: Prior,
    tempering: f64,
}

impl Linear {
    /// `features`: feature names (one coefficient each); `variance`: s² of the noise, in the
    /// label's units squared; `label`: a declared [`LabelKind::Number`]; `row_norm`: the
    /// declared bound B on ‖x‖; `tempering`: κ ∈ (0, 1].
    ///
    /// # Errors
    /// [`ModelError`] for another label, a bad variance, prior or κ.
    pub fn new(
        features: &[String],
        variance: f64,
        label: LabelKind,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let LabelKind::Number { .. } = label else {
            let needs = "a numeric label: declare clamp = [low, high] or scale = [low, high]";
            return Err(wrong_label("linear", needs, label));
        };
        if !(1e-30..=1e30).contains(&variance) {
            return Err(ModelError::new(
                "model.variance",
                format!("must be positive (1e-30 to 1e30), not {variance}"),
            ));
        }
        prior.validate(features.len())?;
        check_tempering(tempering)?;
        Ok(Linear {
            parameters: features.to_vec(),
            variance,
            label,
            row_norm,
            prior,
            tempering,
        })
    }
}

impl Model for Linear {
    fn name(&self) -> &'static str {
        "linear"
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
    fn label(&self) -> Option<LabelKind> {
        Some(self.label)
    }
    fn tempering(&self) -> f64 {
        self.tempering
    }
    /// 1/s².
    fn unit(&self) -> f64 {
        1.0 / self.variance
    }
    fn slopes(&self) -> Option<Slopes> {
        Some(Slopes::linear(self.label, self.variance))
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// `|d/dη log p| = |y − η|/s² ≤ (|y| + BR)/s²` over a box of radius R; unbounded without one.
    fn ratio_rate(&self) -> Option<f64> {
        let radius = radius(&self.prior.support)?;
        let slope = (self.label.bound() + self.row_norm * radius) / self.variance;
        Some(self.tempering * slope * self.row_norm)
    }
    /// `|r_i| ≤ κ|x·Δθ| (|y| + ‖x‖R)/s²`, and the last factor falls with ‖x‖.
    fn ratio_scales_with_row(&self) -> bool {
        true
    }
    fn row_function(&self) -> RowFunction {
        RowFunction::Linear
    }
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let step = proposal.iter().zip(theta).map(|(p, t)| p - t);
        Forms {
            offsets: vec![0.0; 2],
            weights: theta.iter().copied().chain(step).collect(),
        }
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let log_density = |t: &[f64]| -> f64 {
            let eta: f64 = row.iter().zip(t).map(|(x, t)| x * t).sum();
            -(label - eta).powi(2) / (2.0 * self.variance)
        };
        self.tempering * (log_density(proposal) - log_density(theta))
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Score(Score::Linear)
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        Forms {
            offsets: Vec::new(),
            weights: theta.to_vec(),
        }
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        let eta: f64 = row.iter().zip(theta).map(|(x, t)| x * t).sum();
        let score = self.tempering * (label - eta) / self.variance;
        row.iter().map(|x| score * x).collect()
    }
}
