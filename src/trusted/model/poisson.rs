//! Poisson regression with a log link: `y ~ Poisson(e^{x·θ})`.

use super::{
    Forms, GradientFunction, Model, ModelError, Prior, RowFunction, Score, Slopes, check_tempering,
    radius, wrong_label,
};
use crate::data::LabelKind;

/// Bayesian Poisson regression on the features of a table of counts. Counts are clamped to
/// their declared bound; the likelihood is the plain Poisson's.
#[derive(Clone, Debug)]
pub struct Poisson {
    parameters: Vec<String>,
    label: LabelKind,
    row_norm: f64,
    prior: Prior,
    tempering: f64,
}

impl Poisson {
    /// `features`: feature names (one coefficient each); `label`: a declared
    /// [`LabelKind::Count`]; `row_norm`: the declared bound B on ‖x‖; `tempering`: κ ∈ (0, 1].
    ///
    /// # Errors
    /// [`ModelError`] for another label, a bad prior or κ.
    pub fn new(
        features: &[String],
        label: LabelKind,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let LabelKind::Count { .. } = label else {
            return Err(wrong_label("poisson", "counts: declare count = max", label));
        };
        prior.validate(features.len())?;
        check_tempering(tempering)?;
        Ok(Poisson {
            parameters: features.to_vec(),
            label,
            row_norm,
            prior,
            tempering,
        })
    }
}

impl Model for Poisson {
    fn name(&self) -> &'static str {
        "poisson"
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
    fn slopes(&self) -> Option<Slopes> {
        let largest = radius(&self.prior.support).map(|r| self.row_norm * r);
        Some(Slopes::poisson(self.label.bound(), largest))
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// `|d/dη log p| = |y − e^η| ≤ max(y, e^{BR})` over a box of radius R, both being
    /// positive; unbounded without a box, or where e^{BR} is beyond any number.
    fn ratio_rate(&self) -> Option<f64> {
        let largest = (self.row_norm * radius(&self.prior.support)?).exp();
        let rate = self.tempering * self.label.bound().max(largest) * self.row_norm;
        rate.is_finite().then_some(rate)
    }
    /// `|r_i| ≤ κ|x·Δθ| max(y, e^{‖x‖R})`, and the last factor falls with ‖x‖.
    fn ratio_scales_with_row(&self) -> bool {
        true
    }
    fn row_function(&self) -> RowFunction {
        RowFunction::Poisson
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
            label * eta - eta.exp()
        };
        self.tempering * (log_density(proposal) - log_density(theta))
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Score(Score::Poisson)
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        Forms {
            offsets: Vec::new(),
            weights: theta.to_vec(),
        }
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        let eta: f64 = row.iter().zip(theta).map(|(x, t)| x * t).sum();
        let score = self.tempering * (label - eta.exp());
        row.iter().map(|x| score * x).collect()
    }
}
