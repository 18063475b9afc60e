//! Bayesian generalised linear models: a row's likelihood is a function of its label and of its
//! linear predictor η = x·θ.

use super::{
    Forms, GradientFunction, Model, ModelError, Prior, RowFunction, Score, Slopes, check_tempering,
    radius, softplus_difference, wrong_label,
};
use crate::data::LabelKind;

/// The law of a label given η.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Likelihood {
    /// `p(y = 1) = σ(η)`.
    Logistic,
    /// `y ~ N(η, variance)`, the variance known.
    Linear { variance: f64 },
    /// `y ~ Poisson(e^η)`. Counts are clamped to their declared bound; the likelihood is the
    /// plain Poisson's.
    Poisson,
}

/// Bayesian regression on the features of a labelled table: a coefficient a feature.
#[derive(Clone, Debug)]
pub struct Regression {
    likelihood: Likelihood,
    parameters: Vec<String>,
    label: LabelKind,
    row_norm: f64,
    prior: Prior,
    tempering: f64,
}

impl Regression {
    /// Logistic regression. `features`: feature names (one coefficient each); `row_norm`: the
    /// declared bound B on ‖x‖; `tempering`: κ ∈ (0, 1].
    ///
    /// # Errors
    /// [`ModelError`] for a bad prior or κ.
    pub fn logistic(
        features: &[String],
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let label = LabelKind::Binary;
        Self::new(
            Likelihood::Logistic,
            features,
            label,
            row_norm,
            prior,
            tempering,
        )
    }

    /// Linear regression with known noise: `variance`: s² of it, in the label's units squared;
    /// `label`: a declared [`LabelKind::Number`]; else as [`Regression::logistic`].
    ///
    /// # Errors
    /// [`ModelError`] for another label, a bad variance, prior or κ.
    pub fn linear(
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
        let likelihood = Likelihood::Linear { variance };
        Self::new(likelihood, features, label, row_norm, prior, tempering)
    }

    /// Poisson regression with a log link: `label`: a declared [`LabelKind::Count`]; else as
    /// [`Regression::logistic`].
    ///
    /// # Errors
    /// [`ModelError`] for another label, a bad prior or κ.
    pub fn poisson(
        features: &[String],
        label: LabelKind,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let LabelKind::Count { .. } = label else {
            return Err(wrong_label("poisson", "counts: declare count = max", label));
        };
        Self::new(
            Likelihood::Poisson,
            features,
            label,
            row_norm,
            prior,
            tempering,
        )
    }

    fn new(
        likelihood: Likelihood,
        features: &[String],
        label: LabelKind,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        prior.validate(features.len())?;
        check_tempering(tempering)?;
        Ok(Regression {
            likelihood,
            parameters: features.to_vec(),
            label,
            row_norm,
            prior,
            tempering,
        })
    }

    /// A bound on `|d/dη log p|` over the support, if there is one: 1; `(|y| + BR)/s²` and
    /// `max(y, e^{BR})` over a box of radius R.
    fn score_bound(&self) -> Option<f64> {
        let reach = || radius(&self.prior.support).map(|r| self.row_norm * r);
        let bound = match self.likelihood {
            Likelihood::Logistic => 1.0,
            Likelihood::Linear { variance } => (self.label.bound() + reach()?) / variance,
            Likelihood::Poisson => self.label.bound().max(reach()?.exp()),
        };
        // e^{BR} may be beyond any number.
        bound.is_finite().then_some(bound)
    }
}

fn predictor(row: &[f64], theta: &[f64]) -> f64 {
    row.iter().zip(theta).map(|(x, t)| x * t).sum()
}

impl Model for Regression {
    fn name(&self) -> &'static str {
        match self.likelihood {
            Likelihood::Logistic => "logistic",
            Likelihood::Linear { .. } => "linear",
            Likelihood::Poisson => "poisson",
        }
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
    /// 1/s² of a linear one.
    fn unit(&self) -> f64 {
        match self.likelihood {
            Likelihood::Linear { variance } => 1.0 / variance,
            Likelihood::Logistic | Likelihood::Poisson => 1.0,
        }
    }
    fn slopes(&self) -> Option<Slopes> {
        Some(match self.likelihood {
            Likelihood::Logistic => Slopes::logistic(),
            Likelihood::Linear { variance } => Slopes::linear(self.label, variance),
            Likelihood::Poisson => {
                let largest = radius(&self.prior.support).map(|r| self.row_norm * r);
                Slopes::poisson(self.label.bound(), largest)
            }
        })
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// `|r_i| ≤ κ|x·Δθ| max |d/dη log p|`.
    fn ratio_rate(&self) -> Option<f64> {
        let rate = self.tempering * self.score_bound()? * self.row_norm;
        rate.is_finite().then_some(rate)
    }
    /// `|x·Δθ|` falls with ‖x‖, and so do the bounds of the score, with ‖x‖ in place of B.
    fn ratio_scales_with_row(&self) -> bool {
        true
    }
    fn row_function(&self) -> RowFunction {
        match self.likelihood {
            Likelihood::Logistic => RowFunction::Logistic,
            Likelihood::Linear { .. } => RowFunction::Linear,
            Likelihood::Poisson => RowFunction::Poisson,
        }
    }
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let step = proposal.iter().zip(theta).map(|(p, t)| p - t);
        Forms {
            offsets: vec![0.0; 2],
            weights: theta.iter().copied().chain(step).collect(),
        }
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let (a, b) = (predictor(row, theta), predictor(row, proposal));
        let ratio = match self.likelihood {
            Likelihood::Logistic => -softplus_difference(-label * a, -label * (b - a)),
            Likelihood::Linear { variance } => {
                ((label - a).powi(2) - (label - b).powi(2)) / (2.0 * variance)
            }
            Likelihood::Poisson => (label * b - b.exp()) - (label * a - a.exp()),
        };
        self.tempering * ratio
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Score(match self.likelihood {
            Likelihood::Logistic => Score::Logistic,
            Likelihood::Linear { .. } => Score::Linear,
            Likelihood::Poisson => Score::Poisson,
        })
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        Forms {
            offsets: Vec::new(),
            weights: theta.to_vec(),
        }
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        let eta = predictor(row, theta);
        let score = match self.likelihood {
            Likelihood::Logistic => label / (1.0 + (label * eta).exp()),
            Likelihood::Linear { variance } => (label - eta) / variance,
            Likelihood::Poisson => label - eta.exp(),
        };
        row.iter().map(|x| self.tempering * score * x).collect()
    }
}
