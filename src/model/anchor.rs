//! A released expansion of the log likelihood, and models that see only what it leaves
//! over (mathematics, section 4.1).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::remainder::{THIRD, remainder_difference};
use super::{Forms, Model, ModelError, Prior, RowFunction};

/// Public coordinates `u = Lᵀ(θ − θ*)` in which an anchor is released, with the bound that
/// rows are clipped to in them: `‖L⁻¹x‖ ≤ row_bound`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Lower triangular L, row-major d×d, with a positive diagonal.
    pub factor: Vec<f64>,
    /// Bound b on ‖L⁻¹x‖.
    pub row_bound: f64,
}

impl Metric {
    /// Plain coordinates: L = I, rows of norm at most `row_norm`.
    pub fn identity(d: usize, row_norm: f64) -> Self {
        let mut factor = vec![0.0; d * d];
        factor.iter_mut().step_by(d + 1).for_each(|v| *v = 1.0);
        Metric {
            factor,
            row_bound: row_norm,
        }
    }

    /// Number of parameters d.
    pub fn dim(&self) -> usize {
        self.factor.len().isqrt()
    }

    /// Checks that L is triangular and invertible and the bound positive.
    pub fn is_valid(&self) -> bool {
        let d = self.dim();
        let triangular = (0..d).all(|i| {
            let row = &self.factor[i * d..(i + 1) * d];
            row.iter().all(|v| v.is_finite())
                && row[i] > 0.0
                && row[i + 1..].iter().all(|v| *v == 0.0)
        });
        d > 0
            && d * d == self.factor.len()
            && triangular
            && self.row_bound > 0.0
            && self.row_bound.is_finite()
    }

    /// `Lᵀv`.
    pub fn whiten(&self, v: &[f64]) -> Vec<f64> {
        let d = self.dim();
        let mut u = vec![0.0; d];
        for (i, x) in v.iter().enumerate() {
            for (u, l) in u.iter_mut().zip(&self.factor[i * d..=i * d + i]) {
                *u += l * x;
            }
        }
        u
    }

    /// `L z`.
    pub fn unfold(&self, z: &[f64]) -> Vec<f64> {
        let d = self.dim();
        (0..d)
            .map(|i| (0..=i).map(|k| self.factor[i * d + k] * z[k]).sum())
            .collect()
    }

    /// Solves `Lᵀv = u` for v.
    pub fn back(&self, u: &[f64]) -> Vec<f64> {
        let d = self.dim();
        let mut v = u.to_vec();
        for i in (0..d).rev() {
            v[i] /= self.factor[i * d + i];
            for k in 0..i {
                v[k] -= self.factor[i * d + k] * v[i];
            }
        }
        v
    }

    /// Solves `L z = x` in place.
    pub fn solve(&self, x: &mut [f64]) {
        let d = self.dim();
        for i in 0..d {
            let row = &self.factor[i * d..=i * d + i];
            let sum: f64 = row[..i].iter().zip(x.iter()).map(|(l, z)| l * z).sum();
            x[i] = (x[i] - sum) / row[i];
        }
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
    /// The target is restricted to the public ellipsoid ‖u‖ ≤ radius.
    pub radius: f64,
}

impl Anchor {
    /// Whether the arrays fit d parameters and hold numbers.
    pub fn is_valid(&self, d: usize) -> bool {
        self.metric.is_valid()
            && self.metric.dim() == d
            && self.at.len() == d
            && self.gradient.len() == d
            && self.curvature.len() == d * d
            && self.radius > 0.0
            && [&self.at, &self.gradient, &self.curvature]
                .iter()
                .all(|a| a.iter().all(|v| v.is_finite()))
    }

    /// `u = Lᵀ(θ − θ*)`.
    pub fn coordinates(&self, theta: &[f64]) -> Vec<f64> {
        let v: Vec<f64> = theta.iter().zip(&self.at).map(|(t, a)| t - a).collect();
        self.metric.whiten(&v)
    }

    /// θ of the coordinates u.
    pub fn theta(&self, u: &[f64]) -> Vec<f64> {
        let v = self.metric.back(u);
        v.iter().zip(&self.at).map(|(v, a)| a + v).collect()
    }

    /// Whether θ lies in the ellipsoid.
    pub fn contains(&self, theta: &[f64]) -> bool {
        let u = self.coordinates(theta);
        u.iter().map(|v| v * v).sum::<f64>() <= self.radius * self.radius
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
    prior: Prior,
}

impl Anchored {
    /// `inner` seen from `anchor`.
    ///
    /// # Errors
    /// [`ModelError`] where the model has no known remainder or the anchor does not fit it.
    pub fn new(inner: Arc<dyn Model>, anchor: Anchor) -> Result<Self, ModelError> {
        check_anchorable(&*inner)?;
        if !anchor.is_valid(inner.dim()) || !inner.prior().contains(&anchor.at) {
            return Err(ModelError::new(
                "sampler.anchor",
                "the anchor does not fit the model or lies outside its support; start elsewhere",
            ));
        }
        let anchor = Arc::new(anchor);
        let prior = Prior {
            anchor: Some(anchor.clone()),
            ..inner.prior().clone()
        };
        Ok(Anchored {
            inner,
            anchor,
            prior,
        })
    }

    /// The anchor.
    pub fn anchor(&self) -> &Arc<Anchor> {
        &self.anchor
    }
}

/// Refuses models without a remainder form.
///
/// # Errors
/// [`ModelError`] saying which models have one.
pub fn check_anchorable(model: &dyn Model) -> Result<(), ModelError> {
    if model.row_function() == RowFunction::Logistic {
        return Ok(());
    }
    Err(ModelError::new(
        "sampler.algorithm",
        format!(
            "model '{}' has no anchored form: its rows' remainders are not known; logistic has, others use barker or poisson-barker",
            model.name()
        ),
    ))
}

/// The true bound of a row's remainder over `max(‖u‖,‖u'‖)² ‖u'−u‖` for rows with
/// ‖L⁻¹x‖ ≤ b: `κ (k₃/2) b³` (mathematics, section 4.1).
pub fn remainder_rate(tempering: f64, row_bound: f64) -> f64 {
    tempering * 0.5 * THIRD * row_bound.powi(3)
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
    fn labelled(&self) -> bool {
        self.inner.labelled()
    }
    fn tempering(&self) -> f64 {
        self.inner.tempering()
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// None: the remainder is not Lipschitz in θ' − θ alone.
    fn ratio_rate(&self) -> Option<f64> {
        None
    }
    fn row_function(&self) -> RowFunction {
        RowFunction::LogisticRemainder
    }
    /// `u = (x·θ*, x·(θ − θ*), x·(θ' − θ))`.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let at = &self.anchor.at;
        let offset = theta.iter().zip(at).map(|(t, a)| t - a);
        let step = proposal.iter().zip(theta).map(|(p, t)| p - t);
        Forms {
            offsets: vec![0.0; 3],
            weights: at.iter().copied().chain(offset).chain(step).collect(),
        }
    }
    fn log_ratio(&self, row: &[f64], _label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let dot = |t: &[f64]| -> f64 { row.iter().zip(t).map(|(x, t)| x * t).sum() };
        let forms = self.forms(theta, proposal);
        let d = row.len();
        let form = |k: usize| dot(&forms.weights[k * d..(k + 1) * d]);
        // The label's part of the log likelihood is linear and has no remainder.
        -self.tempering() * remainder_difference(form(0), form(1), form(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_undo_themselves() {
        let metric = Metric {
            factor: vec![2.0, 0.0, 0.0, -0.5, 1.5, 0.0, 0.3, 0.2, 0.7],
            row_bound: 1.0,
        };
        assert!(metric.is_valid());
        let v = [0.3, -1.2, 2.0];
        for (a, b) in metric.back(&metric.whiten(&v)).iter().zip(v) {
            assert!((a - b).abs() < 1e-14);
        }
        let mut x = metric.unfold(&v);
        metric.solve(&mut x);
        for (a, b) in x.iter().zip(v) {
            assert!((a - b).abs() < 1e-14);
        }
        // x·v = (L⁻¹x)·(Lᵀv).
        let x = [1.0, -2.0, 0.5];
        let mut z = x.to_vec();
        metric.solve(&mut z);
        let u = metric.whiten(&v);
        let direct: f64 = x.iter().zip(v).map(|(a, b)| a * b).sum();
        let whitened: f64 = z.iter().zip(&u).map(|(a, b)| a * b).sum();
        assert!((direct - whitened).abs() < 1e-14);
        let upper = Metric {
            factor: vec![1.0, 0.5, 0.0, 1.0],
            row_bound: 1.0,
        };
        assert!(!upper.is_valid());
    }
}
