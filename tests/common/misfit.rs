//! For tests of refusals: a model that does not fit itself.

use std::sync::Arc;

use dpmc::model::{Forms, GradientFunction, Model, Prior, RowFunction};

/// A model whose forms do not fit its row function.
#[derive(Debug)]
pub struct Misfit(pub Arc<dyn Model>);

impl Model for Misfit {
    fn name(&self) -> &'static str {
        "misfit"
    }
    fn parameters(&self) -> &[String] {
        self.0.parameters()
    }
    fn features(&self) -> usize {
        self.0.features()
    }
    fn labelled(&self) -> bool {
        self.0.labelled()
    }
    fn tempering(&self) -> f64 {
        self.0.tempering()
    }
    fn prior(&self) -> &Prior {
        self.0.prior()
    }
    fn ratio_rate(&self) -> Option<f64> {
        self.0.ratio_rate()
    }
    fn row_function(&self) -> RowFunction {
        self.0.row_function()
    }
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let mut forms = self.0.forms(theta, proposal);
        forms.weights.pop();
        forms
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        self.0.log_ratio(row, label, theta, proposal)
    }
    fn gradient_function(&self) -> GradientFunction {
        self.0.gradient_function()
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        let mut forms = self.0.gradient_forms(theta);
        forms.weights.pop();
        forms
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        self.0.gradient(row, label, theta)
    }
}
