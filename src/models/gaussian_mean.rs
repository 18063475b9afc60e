//! Mean of a multivariate Gaussian with known covariance (Räisä 2021, section 6).

use crate::math::inverse;
use crate::model::{
    Forms, GradientFunction, Model, ModelError, Prior, RowFunction, Support, check_tempering,
};

/// `x ~ N(θ, Σ)` with Σ known.
#[derive(Clone, Debug)]
pub struct GaussianMean {
    parameters: Vec<String>,
    /// Σ⁻¹, row-major d×d.
    precision: Vec<f64>,
    /// Largest eigenvalue of Σ⁻¹ (bounded by its Frobenius norm).
    precision_norm: f64,
    row_norm: f64,
    prior: Prior,
    tempering: f64,
}

impl GaussianMean {
    /// `covariance`: Σ, row-major d×d; `row_norm`: the declared bound B on ‖x‖.
    ///
    /// # Errors
    /// [`ModelError`] where Σ is not symmetric positive definite, or for a bad prior or κ.
    pub fn new(
        features: &[String],
        covariance: &[f64],
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let d = features.len();
        prior.validate(d)?;
        check_tempering(tempering)?;
        let precision =
            inverse(covariance, d).map_err(|what| ModelError::new("model.covariance", what))?;
        Ok(GaussianMean {
            parameters: features.iter().map(|f| format!("mean[{f}]")).collect(),
            precision_norm: spectral_bound(&precision, d),
            precision,
            row_norm,
            prior,
            tempering,
        })
    }

    fn precision_times(&self, v: &[f64]) -> Vec<f64> {
        let d = v.len();
        (0..d)
            .map(|i| (0..d).map(|j| self.precision[i * d + j] * v[j]).sum())
            .collect()
    }
}

impl Model for GaussianMean {
    fn name(&self) -> &'static str {
        "gaussian-mean"
    }
    fn parameters(&self) -> &[String] {
        &self.parameters
    }
    fn features(&self) -> usize {
        self.parameters.len()
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
    /// `‖Σ⁻¹(x−m)‖ ≤ ‖Σ⁻¹‖ (B + R)` with m between θ and θ' in a box of radius R; the
    /// ratio is unbounded without a box.
    fn ratio_rate(&self) -> Option<f64> {
        match &self.prior.support {
            Support::Unbounded => None,
            Support::Box(bounds) => {
                let radius = bounds.iter().map(|b| b * b).sum::<f64>().sqrt();
                Some(self.tempering * self.precision_norm * (self.row_norm + radius))
            }
        }
    }
    fn row_function(&self) -> RowFunction {
        RowFunction::Affine
    }
    /// `(x − (θ+θ')/2)ᵀ Σ⁻¹ (θ'−θ)`, affine in x.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let step: Vec<f64> = proposal.iter().zip(theta).map(|(p, t)| p - t).collect();
        let weights = self.precision_times(&step);
        let offset: f64 = weights
            .iter()
            .zip(theta.iter().zip(proposal))
            .map(|(w, (t, p))| -0.5 * w * (t + p))
            .sum();
        Forms {
            offsets: vec![offset],
            weights,
        }
    }
    fn log_ratio(&self, row: &[f64], _label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let quadratic = |t: &[f64]| -> f64 {
            let v: Vec<f64> = row.iter().zip(t).map(|(x, t)| x - t).collect();
            let pv = self.precision_times(&v);
            -0.5 * v.iter().zip(&pv).map(|(a, b)| a * b).sum::<f64>()
        };
        self.tempering * (quadratic(proposal) - quadratic(theta))
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Affine
    }
    /// `Σ⁻¹x − Σ⁻¹θ`.
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        let offsets = self.precision_times(theta).iter().map(|v| -v).collect();
        Forms {
            offsets,
            weights: self.precision.clone(),
        }
    }
    fn gradient(&self, row: &[f64], _label: f64, theta: &[f64]) -> Vec<f64> {
        let gap: Vec<f64> = row.iter().zip(theta).map(|(x, t)| x - t).collect();
        let mut gradient = self.precision_times(&gap);
        gradient.iter_mut().for_each(|g| *g *= self.tempering);
        gradient
    }
}

/// An upper bound on the spectral norm: the smaller of the Frobenius and the row-sum norm.
fn spectral_bound(matrix: &[f64], d: usize) -> f64 {
    let frobenius = matrix.iter().map(|v| v * v).sum::<f64>().sqrt();
    let row_sum = (0..d)
        .map(|i| matrix[i * d..(i + 1) * d].iter().map(|v| v.abs()).sum())
        .fold(0.0, f64::max);
    frobenius.min(row_sum)
}
