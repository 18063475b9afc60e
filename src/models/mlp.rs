//! A Bayesian neural network: one hidden layer of tanh units; a Bernoulli head for a binary
//! label, a softmax head for classes.
//!
//! Parameters, in order: W₁ (hidden × features), b₁, W₂ (outputs × hidden), b₂, row-major.

use serde::{Deserialize, Serialize};

use crate::data::LabelKind;
use crate::math::softplus;
use crate::model::{
    Forms, GradientFunction, Model, ModelError, Prior, RowFunction, Slopes, check_tempering,
};

/// Widths of a network with one hidden layer. One output is the log odds of the label +1;
/// several are the log weights of as many classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NetworkShape {
    /// Features F of a row.
    pub features: usize,
    /// Hidden units H.
    pub hidden: usize,
    /// Outputs K.
    pub outputs: usize,
}

/// A network's parameters, or as many numbers of another use, layer by layer.
pub(crate) struct Layers<'a, T> {
    /// W₁, H rows of F.
    pub first: &'a [T],
    /// b₁, H values.
    pub first_bias: &'a [T],
    /// W₂, K rows of H.
    pub second: &'a [T],
    /// b₂, K values.
    pub second_bias: &'a [T],
}

/// Most parameters of a network; gradients have at most as many coordinates.
const MOST: usize = 1 << 18;

impl NetworkShape {
    /// Number of parameters `d = (F + 1)H + (H + 1)K`.
    pub fn parameters(self) -> usize {
        (self.features + 1) * self.hidden + (self.hidden + 1) * self.outputs
    }

    /// Cuts d values into layers.
    pub(crate) fn layers<T>(self, theta: &[T]) -> Layers<'_, T> {
        let (first, rest) = theta.split_at(self.features * self.hidden);
        let (first_bias, rest) = rest.split_at(self.hidden);
        let (second, second_bias) = rest.split_at(self.hidden * self.outputs);
        Layers {
            first,
            first_bias,
            second,
            second_bias,
        }
    }

    /// `(a, o)`: hidden activations and outputs of one row.
    fn forward(self, theta: &[f64], row: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let l = self.layers(theta);
        let dot = |w: &[f64], v: &[f64]| -> f64 { w.iter().zip(v).map(|(w, v)| w * v).sum() };
        let hidden: Vec<f64> = (0..self.hidden)
            .map(|h| (l.first_bias[h] + dot(&l.first[h * self.features..], row)).tanh())
            .collect();
        let outputs = (0..self.outputs)
            .map(|k| l.second_bias[k] + dot(&l.second[k * self.hidden..], &hidden))
            .collect();
        (hidden, outputs)
    }

    /// `log p(y | o)`.
    fn log_density(self, outputs: &[f64], label: f64) -> f64 {
        if self.outputs == 1 {
            return -softplus(-label * outputs[0]);
        }
        let top = outputs.iter().fold(f64::NEG_INFINITY, |m, o| m.max(*o));
        let sum: f64 = outputs.iter().map(|o| (o - top).exp()).sum();
        outputs[label as usize] - top - sum.ln()
    }

    /// What the head says of one row: the probability of the label +1, or of every class.
    pub(crate) fn probabilities(self, theta: &[f64], row: &[f64]) -> Vec<f64> {
        let (_, outputs) = self.forward(theta, row);
        if self.outputs == 1 {
            return vec![self.log_density(&outputs, 1.0).exp()];
        }
        (0..self.outputs)
            .map(|k| self.log_density(&outputs, k as f64).exp())
            .collect()
    }

    /// `∂ log p(y | o) / ∂o`.
    fn errors(self, outputs: &[f64], label: f64) -> Vec<f64> {
        if self.outputs == 1 {
            return vec![label / (1.0 + (label * outputs[0]).exp())];
        }
        let top = outputs.iter().fold(f64::NEG_INFINITY, |m, o| m.max(*o));
        let sum: f64 = outputs.iter().map(|o| (o - top).exp()).sum();
        let hit = |k: usize| f64::from(u8::from(k == label as usize));
        let share = |o: &f64| (o - top).exp() / sum;
        (0..self.outputs)
            .map(|k| hit(k) - share(&outputs[k]))
            .collect()
    }
}

/// A Bayesian multi-layer perceptron on the features of a labelled table.
#[derive(Clone, Debug)]
pub struct Mlp {
    parameters: Vec<String>,
    shape: NetworkShape,
    label: LabelKind,
    prior: Prior,
    tempering: f64,
}

impl Mlp {
    /// `features`: feature names; `hidden`: units of the hidden layer; `label`: binary, or
    /// classes; `tempering`: κ > 0. The prior has one law a parameter, in the order of
    /// the module's first lines.
    ///
    /// # Errors
    /// [`ModelError`] for another label, a width of zero or beyond 2^18 parameters, a bad
    /// prior or κ.
    pub fn new(
        features: &[String],
        hidden: usize,
        label: LabelKind,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let shape = Mlp::shape(features.len(), hidden, label)?;
        prior.validate(shape.parameters())?;
        check_tempering(tempering)?;
        let mut parameters = Vec::with_capacity(shape.parameters());
        for h in 0..hidden {
            parameters.extend(features.iter().map(|f| format!("w1[{h},{f}]")));
        }
        parameters.extend((0..hidden).map(|h| format!("b1[{h}]")));
        for k in 0..shape.outputs {
            parameters.extend((0..hidden).map(|h| format!("w2[{k},{h}]")));
        }
        parameters.extend((0..shape.outputs).map(|k| format!("b2[{k}]")));
        Ok(Mlp {
            parameters,
            shape,
            label,
            prior,
            tempering,
        })
    }

    /// Widths of the network for a label.
    ///
    /// # Errors
    /// [`ModelError`] for another label or a bad width.
    pub fn shape(
        features: usize,
        hidden: usize,
        label: LabelKind,
    ) -> Result<NetworkShape, ModelError> {
        let outputs = match label {
            LabelKind::Binary => 1,
            LabelKind::Class { classes } => classes as usize,
            _ => {
                let what = format!(
                    "model 'mlp' needs a binary label or classes = k, not {}",
                    label.describe()
                );
                return Err(ModelError::new("data.label", what));
            }
        };
        // Each width alone is small enough that their products overflow nothing.
        let fits = |w: usize| (1..=MOST).contains(&w);
        let shape = NetworkShape {
            features,
            hidden,
            outputs,
        };
        if fits(features) && fits(hidden) && fits(outputs) && shape.parameters() <= MOST {
            return Ok(shape);
        }
        Err(ModelError::new(
            "model.hidden",
            format!(
                "{hidden} hidden units for {features} features and {outputs} output(s): give 1 or more, for at most {MOST} parameters"
            ),
        ))
    }
}

impl Model for Mlp {
    fn name(&self) -> &'static str {
        "mlp"
    }
    fn parameters(&self) -> &[String] {
        &self.parameters
    }
    fn features(&self) -> usize {
        self.shape.features
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
    /// Of a Bernoulli head; K outputs would take K gradients a row.
    fn slopes(&self) -> Option<Slopes> {
        (self.shape.outputs == 1).then(|| Slopes::network(self.shape))
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// None: a move of one layer is felt through the other. Runs give a clip.
    fn ratio_rate(&self) -> Option<f64> {
        None
    }
    fn row_function(&self) -> RowFunction {
        RowFunction::Network(self.shape)
    }
    /// θ, then Δθ.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let step = proposal.iter().zip(theta).map(|(p, t)| p - t);
        Forms {
            offsets: Vec::new(),
            weights: theta.iter().copied().chain(step).collect(),
        }
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let log_density = |t: &[f64]| {
            let (_, outputs) = self.shape.forward(t, row);
            self.shape.log_density(&outputs, label)
        };
        self.tempering * (log_density(proposal) - log_density(theta))
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Network(self.shape)
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        Forms {
            offsets: Vec::new(),
            weights: theta.to_vec(),
        }
    }
    /// Back-propagation: `∂/∂W₂ = e aᵀ`, `∂/∂W₁ = (W₂ᵀe ∘ (1 − a²)) xᵀ`, e = ∂ log p/∂o.
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        let NetworkShape {
            hidden, outputs, ..
        } = self.shape;
        let second = self.shape.layers(theta).second;
        let (activations, out) = self.shape.forward(theta, row);
        let mut errors = self.shape.errors(&out, label);
        errors.iter_mut().for_each(|e| *e *= self.tempering);
        let back: Vec<f64> = (0..hidden)
            .map(|h| {
                let sum: f64 = (0..outputs)
                    .map(|k| second[k * hidden + h] * errors[k])
                    .sum();
                sum * (1.0 - activations[h] * activations[h])
            })
            .collect();
        let mut gradient = Vec::with_capacity(self.dim());
        for b in &back {
            gradient.extend(row.iter().map(|x| b * x));
        }
        gradient.extend(&back);
        for e in &errors {
            gradient.extend(activations.iter().map(|a| e * a));
        }
        gradient.extend(errors);
        gradient
    }
}
