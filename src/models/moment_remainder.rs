//! Rows seen through what released moments miss of them.

use std::sync::Arc;

use super::moments::{MomentAnchor, MomentForm, log_odds};
use crate::data::LabelKind;
use crate::math::chebyshev::evaluate;
use crate::model::{Forms, GradientFunction, Model, Prior, RowFunction, Surrogate};

/// A model whose rows are asked for what the moments miss; the moments' part of the log
/// likelihood belongs to the (public) prior.
#[derive(Debug)]
pub struct MomentRemainder {
    anchor: Arc<MomentAnchor>,
    prior: Prior,
}

impl MomentRemainder {
    /// The anchor's model seen from it.
    pub fn new(anchor: MomentAnchor) -> Self {
        let anchor = Arc::new(anchor);
        let prior = Prior {
            anchor: Some(Surrogate::Moments(anchor.clone())),
            ..anchor.model.prior().clone()
        };
        MomentRemainder { anchor, prior }
    }

    fn inner(&self) -> &dyn Model {
        &*self.anchor.model
    }

    /// Change of the softplus' coefficients up to the basis' degree.
    fn change(&self, variance: f64, theta: &[f64], proposal: &[f64]) -> Vec<f64> {
        let basis = &self.anchor.moments.basis;
        let (a, b) = (
            log_odds(theta, variance, basis.bound).coefficients,
            log_odds(proposal, variance, basis.bound).coefficients,
        );
        a.iter()
            .zip(b)
            .take(basis.degree + 1)
            .map(|(a, b)| b - a)
            .collect()
    }
}

impl Model for MomentRemainder {
    fn name(&self) -> &'static str {
        self.inner().name()
    }
    fn parameters(&self) -> &[String] {
        self.inner().parameters()
    }
    fn features(&self) -> usize {
        self.inner().features()
    }
    fn labelled(&self) -> bool {
        self.inner().labelled()
    }
    fn label(&self) -> Option<LabelKind> {
        self.inner().label()
    }
    fn tempering(&self) -> f64 {
        self.inner().tempering()
    }
    fn unit(&self) -> f64 {
        self.inner().unit()
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// None: see [`MomentAnchor::clip`].
    fn ratio_rate(&self) -> Option<f64> {
        None
    }
    fn row_function(&self) -> RowFunction {
        match self.anchor.form {
            MomentForm::Affine => RowFunction::Affine,
            MomentForm::Mixture { .. } => RowFunction::MixtureRemainder {
                degree: self.anchor.moments.basis.degree,
            },
        }
    }
    /// Affine models: nothing. The mixture: `u = (x/B, log odds, their change)`, then the
    /// changes of a_0 … a_K.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        match self.anchor.form {
            MomentForm::Affine => Forms {
                offsets: vec![0.0],
                weights: vec![0.0; self.features()],
            },
            MomentForm::Mixture { variance } => {
                let Forms {
                    mut offsets,
                    mut weights,
                } = self.inner().forms(theta, proposal);
                (offsets[0], weights[0]) = (0.0, 1.0 / self.anchor.moments.basis.bound);
                offsets.extend(self.change(variance, theta, proposal));
                Forms { offsets, weights }
            }
        }
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let MomentForm::Mixture { variance } = self.anchor.form else {
            return 0.0;
        };
        let forms = self.forms(theta, proposal);
        let t = row[0] * forms.weights[0];
        let whole = self.inner().log_ratio(row, label, theta, proposal);
        // The part of the ratio that is linear in x belongs to the moments exactly.
        let [a, b] = [theta[0], proposal[0]];
        let linear = (b - a) * (row[0] - 0.5 * (a + b)) / variance;
        whole - self.tempering() * (linear + evaluate(&forms.offsets[3..], t))
    }
    /// Of the whole row, not of its remainder.
    fn gradient_function(&self) -> GradientFunction {
        self.inner().gradient_function()
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        self.inner().gradient_forms(theta)
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        self.inner().gradient(row, label, theta)
    }
}
