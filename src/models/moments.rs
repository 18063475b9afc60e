//! Released moments of the rows as a stand-in for (nearly) the whole log likelihood: the second
//! kind of anchor (docs/proofs/anchors.md).
//!
//! Where a row's log likelihood is a polynomial in the row, or close to one at every θ, the sum
//! over rows needs only the sums of the powers. They are released once; rows are then asked for
//! what the polynomial misses.

use std::sync::Arc;

use crate::math::chebyshev::{Series, softplus_series};
use crate::model::{Model, ModelError, MomentBasis, Moments};

/// Smallest clip bound of a remainder, nats: what is nothing by theory still gets this, 2^-24,
/// which is large enough for every acceptance rule and a ledger's sum, and next to free (η = 1.2e-7
/// on all rows).
pub(crate) const FLAT_CLIP: f64 = 1.0 / (1u64 << 24) as f64;
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
    pub(super) model: Arc<dyn Model>,
    pub(super) form: MomentForm,
    pub(super) moments: Moments,
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
        return FLAT_CLIP;
    }
    let at = |v: &[f64], k: usize| v.get(k).copied().unwrap_or(0.0);
    let beyond: f64 = (0..n)
        .map(|k| (at(&a.beyond, k) - at(&b.beyond, k)).abs())
        .sum();
    let inside = a.inside.iter().zip(&b.inside);
    let cancels: f64 = inside.map(|(a, b)| (a - b).abs()).sum();
    let bound = kappa * (beyond + (a.tail + b.tail) + ROUNDING * (cancels + beyond));
    // NaN stays: such a move is not made.
    if bound < FLAT_CLIP { FLAT_CLIP } else { bound }
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
pub(super) fn log_odds(theta: &[f64], variance: f64, bound: f64) -> Series {
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
