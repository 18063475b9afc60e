//! The banana (Räisä 2021, section 6): `x ~ N((θ₁, θ₂ + aθ₁²), diag(s₁, s₂))`, whose posterior
//! follows a parabola.

use crate::model::{
    Forms, GradientFunction, Model, ModelError, Prior, RowFunction, Support, check_tempering,
};

/// The banana of two numeric columns.
#[derive(Clone, Debug)]
pub struct Banana {
    parameters: Vec<String>,
    curvature: f64,
    variances: [f64; 2],
    /// The bound on `|r|/‖Δθ‖`, κ included.
    rate: Option<f64>,
    prior: Prior,
    tempering: f64,
}

/// Largest singular value of [[a, b], [0, d]].
fn spectral_norm(a: f64, b: f64, d: f64) -> f64 {
    let (sum, det) = (a * a + b * b + d * d, a * d);
    (0.5 * (sum + (sum * sum - 4.0 * det * det).max(0.0).sqrt())).sqrt()
}

impl Banana {
    /// `curvature`: a; `variances`: s₁ and s₂, in the columns' units squared; `row_norm`: the
    /// declared bound on ‖x‖; `tempering`: κ > 0.
    ///
    /// # Errors
    /// [`ModelError`] for a bad curvature, variance, prior or κ.
    pub fn new(
        curvature: f64,
        variances: [f64; 2],
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        if !curvature.is_finite() {
            return Err(ModelError::new(
                "model.curvature",
                format!("must be a finite number, not {curvature}"),
            ));
        }
        if let Some(v) = variances.iter().find(|v| !(**v > 0.0 && v.is_finite())) {
            return Err(ModelError::new(
                "model.variances",
                format!("must be positive, not {v}"),
            ));
        }
        prior.validate(2)?;
        check_tempering(tempering)?;
        let rate = match &prior.support {
            Support::Unbounded => None,
            Support::Box(b) => {
                let largest = gradient_bound(curvature, variances, row_norm, [b[0], b[1]]);
                Some(tempering * largest).filter(|r| r.is_finite())
            }
        };
        Ok(Banana {
            parameters: vec!["theta1".into(), "theta2".into()],
            curvature,
            variances,
            rate,
            prior,
            tempering,
        })
    }

    /// `m = θ₂ + aθ₁²`, the second column's mean.
    fn second_mean(&self, theta: &[f64]) -> f64 {
        theta[1] + self.curvature * theta[0] * theta[0]
    }
}

/// A bound on the gradient's norm over a box. With `u = x₁ − θ₁`, `t = x₂ − m` the gradient is
/// `A(u, t)`, `A = [[1/s₁, 2aθ₁/s₂], [0, 1/s₂]]`: at most ‖A‖ times a bound on ‖(u, t)‖, and
/// coordinate by coordinate at most its value for the largest |u|, |t|, |θ₁|.
fn gradient_bound(a: f64, [s1, s2]: [f64; 2], row_norm: f64, [b1, b2]: [f64; 2]) -> f64 {
    let (bend, mean) = (2.0 * a.abs() * b1 / s2, b2 + a.abs() * b1 * b1);
    let (u, t) = (row_norm + b1, row_norm + mean);
    let by_coordinate = (u / s1 + bend * t).hypot(t / s2);
    let by_norm = spectral_norm(1.0 / s1, bend, 1.0 / s2) * (row_norm + b1.hypot(mean));
    // Covers the rounding of the few operations above.
    by_coordinate.min(by_norm) * (1.0 + 1e-12)
}

impl Model for Banana {
    fn name(&self) -> &'static str {
        "banana"
    }
    fn parameters(&self) -> &[String] {
        &self.parameters
    }
    fn features(&self) -> usize {
        2
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
        RowFunction::Affine
    }
    /// `Δθ₁(x₁ − (θ₁+θ₁')/2)/s₁ + Δm(x₂ − (m+m')/2)/s₂`, affine in x, with
    /// `Δm = Δθ₂ + aΔθ₁(θ₁+θ₁')`.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let [s1, s2] = self.variances;
        let sum = theta[0] + proposal[0];
        let step = proposal[0] - theta[0];
        let bend = proposal[1] - theta[1] + self.curvature * step * sum;
        let means = self.second_mean(theta) + self.second_mean(proposal);
        Forms {
            offsets: vec![-step * sum / (2.0 * s1) - bend * means / (2.0 * s2)],
            weights: vec![step / s1, bend / s2],
        }
    }
    fn log_ratio(&self, row: &[f64], _label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let log_density = |t: &[f64]| {
            let (u, v) = (row[0] - t[0], row[1] - self.second_mean(t));
            -u * u / (2.0 * self.variances[0]) - v * v / (2.0 * self.variances[1])
        };
        self.tempering * (log_density(proposal) - log_density(theta))
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Affine
    }
    /// `(u/s₁ + 2aθ₁t/s₂, t/s₂)`, u = x₁ − θ₁, t = x₂ − m.
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        let [s1, s2] = self.variances;
        let mean = self.second_mean(theta);
        let bend = 2.0 * self.curvature * theta[0] / s2;
        Forms {
            offsets: vec![-theta[0] / s1 - bend * mean, -mean / s2],
            weights: vec![1.0 / s1, bend, 0.0, 1.0 / s2],
        }
    }
    fn gradient(&self, row: &[f64], _label: f64, theta: &[f64]) -> Vec<f64> {
        let (u, t) = (row[0] - theta[0], row[1] - self.second_mean(theta));
        let second = self.tempering * t / self.variances[1];
        let first = self.tempering * u / self.variances[0];
        vec![first + 2.0 * self.curvature * theta[0] * second, second]
    }
}
