//! Models: what a row says about θ, and what is known about it in public.
//!
//! All models but the network see a row only through a few affine forms `u_k = o_k + w_k·x`,
//! whose coefficients the host computes in f64 from (θ, θ'); a scalar row function of
//! the forms gives the log-likelihood ratio. The row function exists three times: the
//! f64 oracle in `src/models`, f32 lanes in `engine/cpu`, WGSL in `shaders/model`.

use serde::{Deserialize, Serialize};

use crate::data::{LabelKind, Offset};
use crate::expression::{Law, Location};
use crate::models::{MomentForm, NetworkShape, Slopes};
use crate::network::Network;

mod moment_basis;

pub use crate::math::{Lower, exponential_difference, remainder_difference, softplus_difference};
pub use crate::priors::{Density, Prior, Support, Surrogate};
pub use moment_basis::{AnchorRelease, MOST_MOMENTS, MomentBasis, Moments};

/// What is wrong with a model's declaration.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {what}")]
pub struct ModelError {
    /// Key of the run file at fault.
    pub key: String,
    /// What is wrong and what to do next.
    pub what: String,
}

impl ModelError {
    /// `key`: the key at fault.
    pub fn new(key: &str, what: impl Into<String>) -> Self {
        ModelError {
            key: key.into(),
            what: what.into(),
        }
    }
}

/// Which scalar function of the forms gives a row's untempered log ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RowFunction {
    /// `u = (x·θ, x·Δθ)`, label y = ±1: `softplus(−y u₀) − softplus(−y(u₀+u₁))`.
    Logistic,
    /// `u = (log ratio)`: already the answer.
    Affine,
    /// `u = (log ratio of component 1, log odds s, their change)`:
    /// `u₀ + softplus(u₁+u₂) − softplus(u₁)`.
    Mixture,
    /// `u = (x·θ*, x·v, x·Δθ)`: minus the change of softplus's third-order remainder at u₀
    /// from u₁ to u₁+u₂.
    LogisticRemainder,
    /// `u = (x·θ*, x·v, x·Δθ)`: minus e^{u₀} times the change of e^t's third-order remainder
    /// from u₁ to u₁+u₂.
    PoissonRemainder,
    /// `u = (x·θ, x·Δθ)`, label y a number: `u₁(y − u₀ − u₁/2)`.
    Linear,
    /// `u = (x·θ, x·Δθ)`, label y a count: `y u₁ − e^{u₀}(e^{u₁} − 1)`.
    Poisson,
    /// `u = (x·β, x·Δβ)` and constants (φ, Δφ): the change of a declared log likelihood.
    Declared(Law),
    /// `u = (x·θ*, x·v, x·Δθ)`, the largest weight W and the distance from u₀ up to which a GPU takes
    /// an integral and not a difference: what the expansion of a declared one at u₀ leaves of its
    /// change from u₀ + u₁ to u₀ + u₁ + u₂.
    DeclaredRemainder(Law),
    /// `u = (t = x/B, log odds s, their change)` and constants b_0 … b_K:
    /// `softplus(u₁+u₂) − softplus(u₁) − Σ b_k T_k(t)`.
    MixtureRemainder {
        /// K.
        degree: usize,
    },
    /// A network, which sees the whole row: weights θ, then Δθ.
    Network(NetworkShape),
    /// A network of layers: weights θ, then θ'.
    Layers(Network),
    /// What a network of one output leaves over its expansion at θ*: weights θ*, θ − θ*, Δθ.
    NetworkRemainder(NetworkShape),
}

impl RowFunction {
    /// Whether a row's answer is multiplied by its weight at an anchor.
    pub(in crate::trusted) fn is_weighted(self) -> bool {
        matches!(
            self,
            RowFunction::LogisticRemainder
                | RowFunction::PoissonRemainder
                | RowFunction::DeclaredRemainder(_)
                | RowFunction::NetworkRemainder(_)
        )
    }

    /// Number K of affine forms; 0 where the row function sees the row itself.
    pub fn forms(self) -> usize {
        match self {
            RowFunction::Network(_) | RowFunction::Layers(_) | RowFunction::NetworkRemainder(_) => {
                0
            }
            RowFunction::Affine => 1,
            RowFunction::Logistic
            | RowFunction::Linear
            | RowFunction::Poisson
            | RowFunction::Declared(_) => 2,
            RowFunction::Mixture
            | RowFunction::LogisticRemainder
            | RowFunction::MixtureRemainder { .. }
            | RowFunction::DeclaredRemainder(_)
            | RowFunction::PoissonRemainder => 3,
        }
    }

    /// Offsets of a query: one a form, then the constants of the row function.
    pub fn offsets(self) -> usize {
        self.forms()
            + match self {
                RowFunction::MixtureRemainder { degree } => degree + 1,
                RowFunction::Declared(law) => 2 * law.shared().len(),
                RowFunction::DeclaredRemainder(_) => 2,
                _ => 0,
            }
    }

    /// Weights of a query over rows of so many values.
    pub fn weights(self, features: usize) -> usize {
        match self {
            RowFunction::Network(shape) => 2 * shape.parameters(),
            RowFunction::Layers(network) => 2 * network.parameters(),
            RowFunction::NetworkRemainder(shape) => 3 * shape.parameters(),
            _ => self.forms() * features,
        }
    }

    /// The network whose rows these are, where they are a network's.
    pub fn network(self) -> Option<NetworkShape> {
        match self {
            RowFunction::Network(shape) | RowFunction::NetworkRemainder(shape) => Some(shape),
            _ => None,
        }
    }

    /// Whether it sees whole rows; others see affine forms of them.
    pub(in crate::trusted) fn sees_rows(self) -> bool {
        matches!(self, RowFunction::Layers(_)) || self.network().is_some()
    }

    /// Whether the GPU engine computes listed rows too, and not the CPU beside it.
    #[cfg(feature = "gpu")]
    pub(in crate::trusted) fn lists_on_gpu(self) -> bool {
        matches!(self, RowFunction::Layers(_))
    }

    /// The declared likelihood that it is of.
    pub fn law(self) -> Option<Law> {
        match self {
            RowFunction::Declared(law) | RowFunction::DeclaredRemainder(law) => Some(law),
            _ => None,
        }
    }

    /// Whether the GPU engine computes it.
    pub fn on_gpu(self) -> bool {
        match self {
            RowFunction::Network(_) | RowFunction::NetworkRemainder(_) => false,
            RowFunction::Declared(law) => law.has_shader(),
            RowFunction::DeclaredRemainder(law) => law.has_remainder_shader(),
            _ => true,
        }
    }
}

/// How the gradient of a row's untempered log likelihood is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GradientFunction {
    /// `s(x·θ, y)·x`: a generalised linear model.
    Score(Score),
    /// d affine forms of the row: the gradient itself.
    Affine,
    /// Forms `(a₁, a₂, s)`, a_k the two components' scores and s the log odds of the second:
    /// `(a₁ + σ(s)(a₂ − a₁), σ(s) a₂)`.
    Mixture,
    /// As a score, with the scores of the shared parameters φ behind; φ are the offsets.
    Declared(Law),
    /// Back-propagation through a network, whose weights are θ.
    Network(NetworkShape),
    /// The same through a network of layers.
    Layers(Network),
}

/// Derivative of a row's log likelihood in its linear predictor η.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Score {
    /// `y σ(−yη)`, y = ±1.
    Logistic,
    /// `y − η`.
    Linear,
    /// `y − e^η`.
    Poisson,
    /// Of a declared likelihood without shared parameters.
    Declared(Law),
}

impl GradientFunction {
    /// The declared likelihood that it is of.
    pub fn law(self) -> Option<Law> {
        match self {
            GradientFunction::Declared(law) | GradientFunction::Score(Score::Declared(law)) => {
                Some(law)
            }
            _ => None,
        }
    }

    /// Whether the GPU engine sums it over all rows, where its memory allows.
    #[cfg(feature = "gpu")]
    pub(in crate::trusted) fn on_gpu(self) -> bool {
        !self.sees_rows() && self.law().is_none_or(Law::has_shader)
    }

    /// Whether it sees whole rows; others see affine forms of them.
    pub fn sees_rows(self) -> bool {
        matches!(
            self,
            GradientFunction::Network(_) | GradientFunction::Layers(_)
        )
    }

    /// Offsets of a query for d parameters.
    pub fn offsets(self, d: usize) -> usize {
        match self {
            GradientFunction::Score(_)
            | GradientFunction::Network(_)
            | GradientFunction::Layers(_) => 0,
            GradientFunction::Affine => d,
            GradientFunction::Mixture => 3,
            GradientFunction::Declared(law) => law.shared().len(),
        }
    }

    /// Weights of a query for d parameters and rows of so many values.
    pub fn weights(self, d: usize, features: usize) -> usize {
        match self {
            GradientFunction::Score(_) | GradientFunction::Declared(_) => features,
            GradientFunction::Affine => d * features,
            GradientFunction::Mixture => 3 * features,
            GradientFunction::Network(_) | GradientFunction::Layers(_) => d,
        }
    }
}

/// Affine forms of one (θ, θ') pair: K offsets and K×d weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forms {
    /// `o_k`, length K; then the row function's constants, if it has any.
    pub offsets: Vec<f64>,
    /// `w_k`, K rows of d values.
    pub weights: Vec<f64>,
}

/// A Bayesian model of independent rows with parameter θ ∈ R^d.
pub trait Model: Send + Sync + std::fmt::Debug {
    /// Name in run files and certificates.
    fn name(&self) -> &'static str;
    /// Parameter names, in order; their number is the dimension d.
    fn parameters(&self) -> &[String];
    /// Number of features a row must have.
    fn features(&self) -> usize;
    /// What rows must add to their linear predictor beside their features, if anything, with the
    /// bounds that the model was made for.
    fn offset(&self) -> Option<Offset> {
        None
    }
    /// Number of values of a row: its features, and behind them its offset.
    fn width(&self) -> usize {
        self.features() + usize::from(self.offset().is_some())
    }
    /// Whether rows must carry a label.
    fn labelled(&self) -> bool;
    /// The label that rows must carry, with the bounds that the model was made for.
    fn label(&self) -> Option<LabelKind> {
        self.labelled().then_some(LabelKind::Binary)
    }
    /// Likelihood tempering κ > 0: the power of a row, of the largest weight where rows have weights.
    fn tempering(&self) -> f64;
    /// What the row and gradient functions are to be multiplied by, beside κ: a constant of
    /// the model such as `1/σ²`.
    fn unit(&self) -> f64 {
        1.0
    }
    /// Score, weight and third derivative in a row's predictor, with public bounds: what it takes
    /// to be anchored.
    fn slopes(&self) -> Option<Slopes> {
        None
    }
    /// What tells where labels lie, of declared likelihoods of numbers and counts.
    fn location(&self) -> Option<Location> {
        None
    }
    /// Where chains start unless they are told otherwise, of declarations alone: a point of the
    /// support, the origin for most models.
    fn usual_start(&self) -> Vec<f64> {
        vec![0.0; self.dim()]
    }
    /// Prior density and support.
    fn prior(&self) -> &Prior;
    /// A true bound b on `|r_i| / ‖θ'−θ‖₂` over the support (κ included), if there is one.
    fn ratio_rate(&self) -> Option<f64>;
    /// Whether a row of norm `w·B`, w ≤ 1, has log ratios of at most w times that bound: the
    /// ratio vanishes at x = 0 and grows no slower than x. Rows may then have bounds of
    /// their own.
    fn ratio_scales_with_row(&self) -> bool {
        false
    }
    /// The row function that the engines run.
    fn row_function(&self) -> RowFunction;
    /// Coefficients of the forms for moving from `theta` to `proposal`.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms;
    /// f64 reference, straight from the density: `κ [log p(x|θ') − log p(x|θ)]`, nats,
    /// unclipped. `label` as stored, binary ±1 (ignored by models without labels).
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64;

    /// `log p(y|x, θ)` of a row's label, untempered, nats; none where the model has no such density.
    /// A held-out row is scored by it, and cut off whatever it is.
    fn log_density(&self, _row: &[f64], _label: f64, _theta: &[f64]) -> Option<f64> {
        None
    }

    /// How the engines make a row's gradient.
    fn gradient_function(&self) -> GradientFunction;
    /// Coefficients of the gradient's forms at `theta`.
    fn gradient_forms(&self, theta: &[f64]) -> Forms;
    /// f64 reference: `κ ∇ log p(x|θ)`, d values, unclipped.
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64>;

    /// How released moments tell its rows, where they do.
    fn moment_form(&self) -> Option<MomentForm> {
        (self.row_function() == RowFunction::Affine).then_some(MomentForm::Affine)
    }

    /// Dimension d of θ.
    fn dim(&self) -> usize {
        self.parameters().len()
    }
}

/// κ must be positive.
///
/// # Errors
/// [`ModelError`] otherwise.
pub fn check_tempering(kappa: f64) -> Result<(), ModelError> {
    if kappa > 0.0 && kappa.is_finite() {
        Ok(())
    } else {
        Err(ModelError::new(
            "model.tempering",
            format!("must be a positive number, not {kappa}"),
        ))
    }
}
