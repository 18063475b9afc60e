//! A released expansion of the log likelihood, and models that see only what it leaves
//! over (docs/proofs/anchors.md).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Predictor, Slopes};
use crate::data::{LabelKind, Offset};
use crate::math::{exponential_difference, remainder_difference};
use crate::model::{
    Forms, GradientFunction, Lower, Model, ModelError, Prior, RowFunction, Score, Surrogate,
};

/// What a profile tells rows apart by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// Their whitened norms; rows count by their weights.
    #[default]
    Norms,
    /// The norms of their gradients before these are clipped, and the signs of their scores.
    Gradients,
}

/// Public coordinates `u = Lᵀ(θ − θ*)` in which an anchor is released, with the bound that
/// rows are clipped to in them: `‖L⁻¹x‖ ≤ row_bound`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// L.
    pub factor: Lower,
    /// Bound b on ‖L⁻¹x‖, of a network's rows on ‖L⁻¹∇f‖.
    pub row_bound: f64,
}

impl Metric {
    /// Plain coordinates: L = I, rows of norm at most `row_norm`.
    pub fn identity(d: usize, row_norm: f64) -> Self {
        Metric {
            factor: Lower::identity(d),
            row_bound: row_norm,
        }
    }

    /// Number of parameters d.
    pub fn dim(&self) -> usize {
        self.factor.dim()
    }

    /// Checks that L is invertible and the bound positive.
    pub fn is_valid(&self) -> bool {
        self.factor.is_valid() && self.row_bound > 0.0 && self.row_bound.is_finite()
    }
}

/// A released second-order expansion of the log likelihood at θ*:
/// `Q̃(θ) = g·u − ½ uᵀCu`, `u = Lᵀ(θ − θ*)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// θ*, public.
    pub at: Vec<f64>,
    /// The coordinates u.
    pub metric: Metric,
    /// g: the gradient `L⁻¹ Σ κ∇ℓ_i(θ*)` plus noise, d values.
    pub gradient: Vec<f64>,
    /// C: `L⁻¹ (Σ −κ∇²ℓ_i(θ*)) L⁻ᵀ` plus noise, d×d, symmetric.
    pub curvature: Vec<f64>,
    /// Standard deviation of the noise in each coordinate of g.
    pub gradient_sd: f64,
    /// The same for the diagonal of C; off-diagonal entries have `1/√2` of it.
    pub curvature_sd: f64,
    /// Centre m of the ellipsoid, in the coordinates u.
    pub centre: Vec<f64>,
    /// The target is restricted to the public ellipsoid ‖u − m‖ ≤ radius.
    pub radius: f64,
    /// Covariance of what the releases' noise leaves unknown of the centre, in the coordinates u:
    /// d×d, symmetric. Empty without noise, of networks, and in files of before there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<f64>,
    /// What its releases say of how hard the table was.
    #[serde(default)]
    pub doubts: Doubts,
    /// For priors whose scales are sampled: what the rows say without any prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
}

/// A Gaussian log likelihood `pull·u − ½ uᵀ(precision)u` with the releases' noise in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// d×d, symmetric.
    pub precision: Vec<f64>,
    /// d values.
    pub pull: Vec<f64>,
}

/// How hard a table was for its anchor: of released values alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doubts {
    /// Directions in which the curvature is lost in its noise.
    pub lost: usize,
    /// Share of the information that is lost as rows far out are weighted down, or clipped.
    pub weighted_down: f64,
    /// Mean square of the last step over three times what noise makes it: the path had not settled
    /// where that is well above 1.
    pub unsettled: f64,
    /// Columns of the model whose values mostly lie within 0.1 of zero.
    #[serde(default)]
    pub narrow: usize,
    /// What labels farther out than their law expects may shift means by as their scores are
    /// clipped, posterior sds, the square root of the mean square over coefficients.
    #[serde(default)]
    pub clipped: f64,
    /// Share of what rows say of pooled levels that lies in levels lost in noise, where the
    /// likelihood is not quadratic: other coefficients are told as if those were alike.
    #[serde(default)]
    pub alike: f64,
}

impl Alone {
    fn is_valid(&self, d: usize) -> bool {
        let usable = |values: &[f64], n| values.len() == n && values.iter().all(|v| v.is_finite());
        usable(&self.precision, d * d) && usable(&self.pull, d)
    }
}

impl Anchor {
    /// Whether the arrays fit d parameters and hold numbers.
    pub fn is_valid(&self, d: usize) -> bool {
        self.metric.is_valid()
            && self.metric.dim() == d
            && self.at.len() == d
            && self.gradient.len() == d
            && self.curvature.len() == d * d
            && self.centre.len() == d
            && (self.spread.is_empty() || self.spread.len() == d * d)
            && self.radius > 0.0
            && self.alone.as_ref().is_none_or(|a| a.is_valid(d))
            && [
                &self.at,
                &self.gradient,
                &self.curvature,
                &self.centre,
                &self.spread,
            ]
            .iter()
            .all(|a| a.iter().all(|v| v.is_finite()))
    }

    /// `u = Lᵀ(θ − θ*)`.
    pub fn coordinates(&self, theta: &[f64]) -> Vec<f64> {
        let v: Vec<f64> = theta.iter().zip(&self.at).map(|(t, a)| t - a).collect();
        self.metric.factor.transposed_times(&v)
    }

    /// θ of the coordinates u.
    pub fn theta(&self, u: &[f64]) -> Vec<f64> {
        let v = self.metric.factor.solve_transposed(u);
        v.iter().zip(&self.at).map(|(v, a)| a + v).collect()
    }

    /// Whether θ lies in the ellipsoid.
    pub fn contains(&self, theta: &[f64]) -> bool {
        let u = self.coordinates(theta);
        let gaps = u.iter().zip(&self.centre).map(|(u, m)| (u - m) * (u - m));
        gaps.sum::<f64>() <= self.radius * self.radius
    }

    /// Q̃(θ), nats.
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        let u = self.coordinates(theta);
        let d = u.len();
        let mut value = 0.0;
        for i in 0..d {
            let row = &self.curvature[i * d..(i + 1) * d];
            let cu: f64 = row.iter().zip(&u).map(|(c, u)| c * u).sum();
            value += u[i] * (self.gradient[i] - 0.5 * cu);
        }
        value
    }
}

/// A model whose rows are asked for their third-order remainders only; the expansion
/// itself is part of the (public) prior.
#[derive(Debug)]
pub struct Anchored {
    inner: Arc<dyn Model>,
    anchor: Arc<Anchor>,
    remainder: RowFunction,
    prior: Prior,
}

impl Anchored {
    /// `inner` seen from `anchor`.
    ///
    /// # Errors
    /// [`ModelError`] where the model has no known remainder or the anchor does not fit it.
    pub fn new(inner: Arc<dyn Model>, anchor: Anchor) -> Result<Self, ModelError> {
        check_anchorable(&*inner)?;
        let quadratic = inner.slopes().is_some_and(|s| s.is_quadratic());
        let remainder = match inner.slopes().map(|s| (s.predictor, s.score)) {
            Some((Predictor::Network(shape), _)) => RowFunction::NetworkRemainder(shape),
            // Nobody decides about what is left over.
            Some((Predictor::Joint(_), _)) => RowFunction::Affine,
            Some((_, Score::Logistic)) => RowFunction::LogisticRemainder,
            Some((_, Score::Poisson)) => RowFunction::PoissonRemainder,
            Some((_, Score::Declared(law))) if !quadratic => RowFunction::DeclaredRemainder(law),
            // Nothing is left over a quadratic.
            Some((_, Score::Linear | Score::Declared(_))) | None => RowFunction::Affine,
        };
        if !anchor.is_valid(inner.dim()) || !inner.prior().contains(&anchor.at) {
            return Err(ModelError::new(
                "sampler.anchor",
                "the anchor does not fit the model or lies outside its support; start elsewhere",
            ));
        }
        let anchor = Arc::new(anchor);
        let prior = Prior {
            anchor: Some(Surrogate::Expansion(anchor.clone())),
            ..inner.prior().clone()
        };
        Ok(Anchored {
            inner,
            anchor,
            remainder,
            prior,
        })
    }

    /// A row's weight ω at the anchor, and how much of its curvature's weight the expansion lacks,
    /// over ω: see [`Slopes::influence`].
    fn row_weight(&self, row: &[f64]) -> (f64, f64) {
        let (Some(slopes), at) = (self.inner.slopes(), &self.anchor.at) else {
            return (1.0, 0.0);
        };
        let mut z = row[..self.features()].to_vec();
        let eta = match slopes.predictor {
            Predictor::Linear => dot(row, &self.weights(at, 1.0)),
            Predictor::Joint(_) => return (1.0, 0.0),
            Predictor::Network(shape) => {
                z = vec![0.0; at.len()];
                shape.slope(at, row, &mut z)
            }
        };
        self.anchor.metric.factor.solve(&mut z);
        let norm = z.iter().map(|v| v * v).sum::<f64>().sqrt();
        let share = (self.anchor.metric.row_bound / norm).min(1.0);
        let weight = slopes.score.slopes(eta, 0.0).1;
        let influence = slopes.influence(share, weight);
        let omega = influence.omega;
        let kept = influence.weight * share * share / omega;
        (
            omega,
            if share < 1.0 {
                (weight - kept).max(0.0)
            } else {
                0.0
            },
        )
    }

    /// The weights of a row's stored values: of its features as given, and of its offset.
    fn weights(&self, of_features: &[f64], of_offset: f64) -> Vec<f64> {
        let offset = self.offset().map(|_| of_offset);
        of_features.iter().copied().chain(offset).collect()
    }

    /// The anchor.
    pub fn anchor(&self) -> &Arc<Anchor> {
        &self.anchor
    }
}

fn dot(row: &[f64], weights: &[f64]) -> f64 {
    row.iter().zip(weights).map(|(x, w)| x * w).sum()
}

/// Most parameters of an anchored model: every thread sums d²/2 products, and Newton steps
/// factor d × d matrices.
const MOST_PARAMETERS: usize = 4096;
/// The same of a network, whose rows are as many products long as it has parameters.
const MOST_OF_NETWORK: usize = 1000;

/// Refuses models without a remainder form, or too large to sum their curvature.
///
/// # Errors
/// [`ModelError`] saying which models have one.
pub fn check_anchorable(model: &dyn Model) -> Result<(), ModelError> {
    let (d, network) = (model.dim(), model.row_function().network());
    let most = network.map_or(MOST_PARAMETERS, |_| MOST_OF_NETWORK);
    if d > most {
        return Err(ModelError::new(
            "sampler.algorithm",
            format!(
                "an anchor of model '{}' holds d² numbers: at most {most} parameters, not {d}; use barker or poisson-barker",
                model.name()
            ),
        ));
    }
    if model.slopes().is_some() {
        return Ok(());
    }
    let what = match network {
        Some(shape) => format!(
            "model '{}' has no anchored form for {} classes: a row's curvature would take as many gradients; declare a binary label, or use barker, poisson-barker or barker-hmc",
            model.name(),
            shape.outputs
        ),
        None => format!(
            "model '{}' has no anchored form: its rows' remainders are not known; regressions without parameters beside their coefficients have one (hold the others fixed in [model.constants]), and so have mlp with a binary label, mixture, gaussian-mean and banana; others use barker or poisson-barker",
            model.name()
        ),
    };
    Err(ModelError::new("sampler.algorithm", what))
}

impl Model for Anchored {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn parameters(&self) -> &[String] {
        self.inner.parameters()
    }
    fn features(&self) -> usize {
        self.inner.features()
    }
    fn offset(&self) -> Option<Offset> {
        self.inner.offset()
    }
    fn labelled(&self) -> bool {
        self.inner.labelled()
    }
    fn label(&self) -> Option<LabelKind> {
        self.inner.label()
    }
    fn tempering(&self) -> f64 {
        self.inner.tempering()
    }
    fn unit(&self) -> f64 {
        self.inner.unit()
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// None: the remainder is not Lipschitz in θ' − θ alone.
    fn ratio_rate(&self) -> Option<f64> {
        None
    }
    fn row_function(&self) -> RowFunction {
        self.remainder
    }
    /// `u = (x·θ*, x·(θ − θ*), x·(θ' − θ))`, of a network these points themselves; without
    /// remainders the one form that is zero.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        if self.remainder == RowFunction::Affine {
            return Forms {
                offsets: vec![0.0],
                weights: vec![0.0; self.width()],
            };
        }
        let at = &self.anchor.at;
        let moved: Vec<f64> = theta.iter().zip(at).map(|(t, a)| t - a).collect();
        let step: Vec<f64> = proposal.iter().zip(theta).map(|(p, t)| p - t).collect();
        let forms = [(&at[..], 1.0), (&moved, 0.0), (&step, 0.0)];
        let mut offsets = vec![0.0; self.remainder.forms()];
        if let RowFunction::DeclaredRemainder(_) = self.remainder {
            let slopes = self.inner.slopes();
            offsets.extend(slopes.iter().map(|s| s.largest_weight));
            // Half of the way on which a weight can change by its largest: no longer one is safe for
            // the few points that a GPU integrates the third derivative by.
            let near = |s: &Slopes| 0.5 * s.largest_weight / s.largest_third;
            offsets.extend(slopes.iter().map(near));
        }
        Forms {
            offsets,
            weights: forms.map(|(of, offset)| self.weights(of, offset)).concat(),
        }
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let (omega, cut) = self.row_weight(row);
        if let RowFunction::NetworkRemainder(shape) = self.remainder {
            let whole = self.inner.log_ratio(row, label, theta, proposal);
            let expanded = shape.expansion_change((row, label), &self.anchor.at, theta, proposal);
            return omega * (whole - self.tempering() * expanded);
        }
        if let RowFunction::DeclaredRemainder(law) = self.remainder {
            let forms = self.forms(theta, proposal);
            let most = omega * forms.offsets[3];
            let form = |k: usize| -> f64 { dot(row, &forms.weights[k * row.len()..]) };
            let rest = law.remainder(label, most, [form(0), form(1), form(2)]);
            return -self.tempering() * self.unit() * omega * rest;
        }
        // The label's part of the log likelihood is linear and has no remainder.
        let difference = match self.remainder {
            RowFunction::LogisticRemainder => remainder_difference,
            RowFunction::PoissonRemainder => exponential_difference,
            _ => return 0.0,
        };
        let forms = self.forms(theta, proposal);
        let d = row.len();
        let form = |k: usize| dot(row, &forms.weights[k * d..(k + 1) * d]);
        let quadratic = cut * form(2) * (form(1) + 0.5 * form(2));
        let rest = difference(form(0), form(1), form(2)) + quadratic;
        -self.tempering() * self.unit() * omega * rest
    }
    /// Of the whole row, not of its remainder.
    fn gradient_function(&self) -> GradientFunction {
        self.inner.gradient_function()
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        self.inner.gradient_forms(theta)
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        self.inner.gradient(row, label, theta)
    }
}
