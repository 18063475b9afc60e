//! Released moments of the rows as a stand-in for (nearly) the whole log likelihood: the second
//! kind of anchor (docs/anchors.md).
//!
//! Where a row's log likelihood is a polynomial in the row, or close to one at every θ, the sum over
//! rows needs only the sums of the powers. They are released once; rows are then asked for
//! what the polynomial misses.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chebyshev::{Series, evaluate, softplus_series};
use super::{
    Anchor, Forms, GradientFunction, LabelKind, Model, ModelError, Prior, RowFunction, Surrogate,
};

/// Weights of successive Chebyshev moments in a release fall by this factor: the log
/// likelihood's own coefficients fall faster, so that high moments may be the noisier ones.
const FALL: f64 = 0.6;
/// Highest degree.
pub const MOST_MOMENTS: usize = 30;
/// Smallest clip bound of a remainder, nats: what is nothing by theory still gets this, 2^-24, and
/// its price, which a ledger's sum does not lose.
const LEAST: f64 = 1.0 / (1u64 << 24) as f64;
/// Errors of f32 arithmetic in a remainder, as a share of the terms that cancel in it.
const ROUNDING: f64 = 1.0 / (1u64 << 18) as f64;

/// How a model's log likelihood depends on the row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MomentForm {
    /// Affine in the row but for terms without θ: its mean says all.
    Affine,
    /// `xθ₁/σ² − θ₁²/2σ² + softplus(θ₂(x − θ₁ − θ₂/2)/σ²)` of one column, σ² given.
    Mixture {
        /// σ².
        variance: f64,
    },
}

/// Which moments are released, of rows with norm at most `bound`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MomentBasis {
    /// 1: the columns' own sums. K > 1: `Σ T_k(x/B)`, k = 1 … K, of the one column.
    pub degree: usize,
    /// Columns of a row.
    pub features: usize,
    /// B.
    pub bound: f64,
}

impl MomentBasis {
    /// Checks that these moments exist.
    pub fn is_valid(&self) -> bool {
        let shape = match self.degree {
            0 => false,
            1 => self.features > 0,
            k => self.features == 1 && k <= MOST_MOMENTS,
        };
        shape && self.bound > 0.0 && self.bound.is_finite()
    }

    /// Number of moments m.
    pub fn len(&self) -> usize {
        match self.degree {
            1 => self.features,
            k => k,
        }
    }

    /// Never, where it is valid.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Weight w_k of each moment in the release.
    pub fn weight(&self, moment: usize) -> f64 {
        match self.degree {
            1 => 1.0,
            _ => FALL.powi(moment as i32),
        }
    }

    /// A bound R on the L2 norm of a row's weighted moments: 1 for the row itself over B,
    /// `√(Σ w_k²)` for Chebyshev polynomials, which are at most 1.
    pub fn radius(&self) -> f64 {
        match self.degree {
            1 => 1.0,
            k => (0..k).map(|k| FALL.powi(2 * k as i32)).sum::<f64>().sqrt(),
        }
    }

    /// A row's weighted moments, m values; the row beyond ±B counts as at its end.
    pub(crate) fn of_row(&self, row: &[f64], out: &mut [f64]) {
        if self.degree == 1 {
            for (o, x) in out.iter_mut().zip(row) {
                *o = x / self.bound;
            }
            return;
        }
        let t = (row.first().copied().unwrap_or(0.0) / self.bound).clamp(-1.0, 1.0);
        let (mut before, mut now) = (1.0, t);
        for (k, o) in out.iter_mut().enumerate() {
            *o = self.weight(k) * now;
            (before, now) = (now, 2.0 * t * now - before);
        }
    }
}

/// Released moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// What they are.
    pub basis: MomentBasis,
    /// Rows N, public: the moment of order 0.
    pub rows: f64,
    /// `Σ_i x_ij/B`, or `Σ_i T_k(x_i/B)`, plus noise; m values.
    pub sums: Vec<f64>,
    /// Standard deviation of the noise in each.
    pub sds: Vec<f64>,
}

impl Moments {
    /// Whether the arrays fit together and hold numbers.
    pub fn is_valid(&self) -> bool {
        self.basis.is_valid()
            && self.sums.len() == self.basis.len()
            && self.sds.len() == self.basis.len()
            && self.rows >= 1.0
            && self.sums.iter().all(|v| v.is_finite())
            && self.sds.iter().all(|v| *v >= 0.0 && v.is_finite())
    }
}

/// What an anchored run releases before its first step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnchorRelease {
    /// Gradient and curvature at a point.
    Expansion(Anchor),
    /// Moments of the rows.
    Moments(Moments),
}

impl From<Anchor> for AnchorRelease {
    fn from(anchor: Anchor) -> Self {
        AnchorRelease::Expansion(anchor)
    }
}

impl From<Moments> for AnchorRelease {
    fn from(moments: Moments) -> Self {
        AnchorRelease::Moments(moments)
    }
}

/// What a row's log likelihood is made of: `Σ_k a_k m_k(x)`, k ≤ K, and the rest.
struct Expanded {
    /// a_0 of the constant, then one a moment.
    inside: Vec<f64>,
    /// Coefficients of what moments beyond the basis would hold.
    beyond: Vec<f64>,
    /// Bound on what both leave out.
    tail: f64,
}

/// Log likelihood by released moments, a function of θ alone.
#[derive(Clone, Debug)]
pub struct MomentAnchor {
    model: Arc<dyn Model>,
    form: MomentForm,
    moments: Moments,
}

impl PartialEq for MomentAnchor {
    fn eq(&self, other: &Self) -> bool {
        self.model.name() == other.model.name() && self.moments == other.moments
    }
}

impl MomentAnchor {
    /// `model`: the rows' own.
    ///
    /// # Errors
    /// [`ModelError`] where the model has no moments or these do not fit it.
    pub fn new(model: Arc<dyn Model>, moments: Moments) -> Result<Self, ModelError> {
        let form = moment_form(&*model)?;
        if !moments.is_valid() || moments.basis.features != model.features() {
            return Err(ModelError::new(
                "sampler.anchor",
                "the moments do not fit the model or are damaged",
            ));
        }
        Ok(MomentAnchor {
            model,
            form,
            moments,
        })
    }

    /// The released moments.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// `κ Σ_k a_k(θ) M_k`, nats.
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        let a = self.expand(theta).inside;
        let sums = a[1..].iter().zip(&self.moments.sums);
        let value = a[0] * self.moments.rows + sums.map(|(a, s)| a * s).sum::<f64>();
        self.model.tempering() * value
    }

    /// κa_k(θ) of the m moments.
    pub fn slopes(&self, theta: &[f64]) -> Vec<f64> {
        let kappa = self.model.tempering();
        let inside = self.expand(theta).inside;
        inside[1..].iter().map(|a| kappa * a).collect()
    }

    /// See [`remainder_bound`].
    pub fn clip(&self, theta: &[f64], proposal: &[f64]) -> f64 {
        let expand = |theta: &[f64]| self.expand(theta);
        bound_change(self.model.tempering(), &expand(theta), &expand(proposal))
    }

    fn expand(&self, theta: &[f64]) -> Expanded {
        self.form.expand(&*self.model, &self.moments.basis, theta)
    }
}

/// A true bound on the change of a row's remainder, nats, κ included: public, symmetric to the
/// bit.
///
/// # Errors
/// [`ModelError`] where the model has no moments.
pub fn remainder_bound(
    model: &dyn Model,
    basis: &MomentBasis,
    theta: &[f64],
    proposal: &[f64],
) -> Result<f64, ModelError> {
    let form = moment_form(model)?;
    let (a, b) = (
        form.expand(model, basis, theta),
        form.expand(model, basis, proposal),
    );
    Ok(bound_change(model.tempering(), &a, &b))
}

fn bound_change(kappa: f64, a: &Expanded, b: &Expanded) -> f64 {
    let n = a.beyond.len().max(b.beyond.len());
    if n == 0 {
        return LEAST;
    }
    let at = |v: &[f64], k: usize| v.get(k).copied().unwrap_or(0.0);
    let beyond: f64 = (0..n)
        .map(|k| (at(&a.beyond, k) - at(&b.beyond, k)).abs())
        .sum();
    let inside = a.inside.iter().zip(&b.inside);
    let cancels: f64 = inside.map(|(a, b)| (a - b).abs()).sum();
    let bound = kappa * (beyond + (a.tail + b.tail) + ROUNDING * (cancels + beyond));
    // NaN stays: it never accepts.
    if bound < LEAST { LEAST } else { bound }
}

impl MomentForm {
    /// The log likelihood of a row at θ.
    fn expand(self, model: &dyn Model, basis: &MomentBasis, theta: &[f64]) -> Expanded {
        match self {
            MomentForm::Affine => {
                let origin = vec![0.0; theta.len()];
                let forms = model.forms(&origin, theta);
                let unit = model.unit();
                let inside = forms
                    .offsets
                    .iter()
                    .map(|o| unit * o)
                    .chain(forms.weights.iter().map(|w| unit * w * basis.bound));
                Expanded {
                    inside: inside.collect(),
                    beyond: Vec::new(),
                    tail: 0.0,
                }
            }
            MomentForm::Mixture { variance } => {
                let mut series = log_odds(theta, variance, basis.bound);
                series.coefficients[0] -= theta[0] * theta[0] / (2.0 * variance);
                series.coefficients[1] += basis.bound * theta[0] / variance;
                let beyond = series.coefficients.split_off(basis.degree + 1);
                Expanded {
                    inside: series.coefficients,
                    beyond,
                    tail: series.tail,
                }
            }
        }
    }
}

/// The mixture's softplus in t = x/B: `softplus(θ₂(Bt − θ₁ − θ₂/2)/σ²)`.
fn log_odds(theta: &[f64], variance: f64, bound: f64) -> Series {
    let alpha = theta[1] * bound / variance;
    let beta = -theta[1] * (theta[0] + 0.5 * theta[1]) / variance;
    softplus_series(alpha, beta)
}

/// How a model's rows are told by moments.
///
/// # Errors
/// [`ModelError`] naming the models that are.
pub fn moment_form(model: &dyn Model) -> Result<MomentForm, ModelError> {
    model.moment_form().ok_or_else(|| {
        ModelError::new(
            "sampler.algorithm",
            format!(
                "model '{}' has no anchored form; regressions have (expansions), gaussian-mean, banana and mixture have (moments), others use barker or poisson-barker",
                model.name()
            ),
        )
    })
}

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
