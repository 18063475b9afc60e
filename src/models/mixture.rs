//! Two-component Gaussian mixture with tied means:
//! `x ~ ½N(θ₁, σ²) + ½N(θ₁+θ₂, σ²)` (Heikkilä 2019, section 5; Zhang & Zhang 2023, section 5).

use crate::model::{
    Forms, GradientFunction, Model, ModelError, MomentForm, Prior, RowFunction, Support,
    check_tempering,
};

/// The two-component mixture of one numeric column.
#[derive(Clone, Debug)]
pub struct Mixture {
    parameters: Vec<String>,
    variance: f64,
    /// The bound on `|r|/‖Δθ‖`, κ included.
    rate: Option<f64>,
    prior: Prior,
    tempering: f64,
}

/// A bound on the gradient's norm for `|a₁| ≤ first`, `|a₂| ≤ second`, where
/// `a₁ = (x−θ₁)/σ²`, `a₂ = (x−θ₁−θ₂)/σ²`.
///
/// The gradient is `(γ₁a₁ + γ₂a₂, γ₂a₂)` with `γ₂ = σ(v(a₁²−a₂²)/2)`, v = σ²: a far
/// component has little weight. Its norm is at most `√((γ₁u+γ₂t)² + (γ₂t)²)` with
/// u = |a₁|, t = |a₂|. The maximum is bracketed cell by cell: on a cell γ₂ is largest at
/// (u₁, t₀) and γ₁ at (u₀, t₁), so the value below bounds every point of it.
fn gradient_bound(first: f64, second: f64, variance: f64) -> f64 {
    const CELLS: usize = 512;
    let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
    let (du, dt) = (first / CELLS as f64, second / CELLS as f64);
    let mut largest = 0.0f64;
    for i in 0..CELLS {
        let (u0, u1) = (i as f64 * du, (i + 1) as f64 * du);
        for j in 0..CELLS {
            let (t0, t1) = (j as f64 * dt, (j + 1) as f64 * dt);
            let gamma2 = sigma(0.5 * variance * (u1 * u1 - t0 * t0));
            let gamma1 = sigma(0.5 * variance * (t1 * t1 - u0 * u0));
            let sum = (gamma1 * u1 + gamma2 * t1).min(u1.max(t1));
            let part = gamma2 * t1;
            largest = largest.max(sum * sum + part * part);
        }
    }
    // Covers the rounding of the few operations above.
    largest.sqrt() * (1.0 + 1e-12)
}

impl Mixture {
    /// `variance`: σ² of each component; `row_norm`: the declared bound on |x|.
    ///
    /// # Errors
    /// [`ModelError`] for a bad variance, prior or κ.
    pub fn new(
        variance: f64,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        if !(variance > 0.0 && variance.is_finite()) {
            return Err(ModelError::new(
                "model.variance",
                format!("must be positive, not {variance}"),
            ));
        }
        prior.validate(2)?;
        check_tempering(tempering)?;
        let rate = match &prior.support {
            Support::Unbounded => None,
            Support::Box(b) => {
                let first = (row_norm + b[0]) / variance;
                let second = (row_norm + b[0] + b[1]) / variance;
                Some(tempering * gradient_bound(first, second, variance))
            }
        };
        Ok(Mixture {
            parameters: vec!["theta1".into(), "theta2".into()],
            variance,
            rate,
            prior,
            tempering,
        })
    }
}

impl Model for Mixture {
    fn name(&self) -> &'static str {
        "mixture"
    }
    fn parameters(&self) -> &[String] {
        &self.parameters
    }
    fn features(&self) -> usize {
        1
    }
    fn labelled(&self) -> bool {
        false
    }
    fn tempering(&self) -> f64 {
        self.tempering
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// See `gradient_bound`; bounded over a box, unbounded without one.
    fn ratio_rate(&self) -> Option<f64> {
        self.rate
    }
    fn row_function(&self) -> RowFunction {
        RowFunction::Mixture
    }
    fn moment_form(&self) -> Option<MomentForm> {
        let variance = self.variance;
        Some(MomentForm::Mixture { variance })
    }
    /// `u₀ = [(x−θ₁)² − (x−θ₁')²]/2σ²`; `s = θ₂(x − θ₁ − θ₂/2)/σ²` the log odds of
    /// component 2 at θ, `u₁ = s`, `u₂ = s' − s`.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let v = self.variance;
        let (t1, t2, p1, p2) = (theta[0], theta[1], proposal[0], proposal[1]);
        let odds = |t1: f64, t2: f64| (t2 / v, -t2 * (t1 + 0.5 * t2) / v);
        let ((w, o), (w_new, o_new)) = (odds(t1, t2), odds(p1, p2));
        Forms {
            offsets: vec![-(p1 - t1) * (t1 + p1) / (2.0 * v), o, o_new - o],
            weights: vec![(p1 - t1) / v, w, w_new - w],
        }
    }
    fn log_ratio(&self, row: &[f64], _label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let log_density = |t: &[f64]| {
            let a = -(row[0] - t[0]).powi(2) / (2.0 * self.variance);
            let b = -(row[0] - t[0] - t[1]).powi(2) / (2.0 * self.variance);
            a.max(b) + (-(a - b).abs()).exp().ln_1p()
        };
        self.tempering * (log_density(proposal) - log_density(theta))
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Mixture
    }
    /// `a₁ = (x−θ₁)/σ²`, `a₂ = (x−θ₁−θ₂)/σ²`, the log odds as in `forms`.
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        let (v, t1, t2) = (self.variance, theta[0], theta[1]);
        Forms {
            offsets: vec![-t1 / v, -(t1 + t2) / v, -t2 * (t1 + 0.5 * t2) / v],
            weights: vec![1.0 / v, 1.0 / v, t2 / v],
        }
    }
    fn gradient(&self, row: &[f64], _label: f64, theta: &[f64]) -> Vec<f64> {
        let first = row[0] - theta[0];
        let second = first - theta[1];
        let odds = (first * first - second * second) / (2.0 * self.variance);
        let share = 1.0 / (1.0 + (-odds).exp());
        let unit = self.tempering / self.variance;
        vec![
            unit * (first + share * (second - first)),
            unit * share * second,
        ]
    }
}
