//! The mass matrix of Hamiltonian samplers: momenta, kinetic energy and velocity.

use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::math::cholesky;
use crate::model::Lower;
use crate::sampler::PublicRng;
use crate::sampler::SettingError;

/// The public mass matrix M, d×d, in units of 1/θ²; best near the posterior's precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mass {
    /// m·I; `Scalar(1.0)` is the identity.
    Scalar(f64),
    /// A diagonal matrix, d values.
    Diagonal(Vec<f64>),
    /// A full matrix by its lower Cholesky factor K, M = KKᵀ.
    Dense(Lower),
}

impl Mass {
    /// From a symmetric positive definite matrix, d×d, row-major.
    ///
    /// # Errors
    /// [`SettingError`] naming `mass` and what is wrong with it.
    pub fn dense(matrix: &[f64], d: usize) -> Result<Self, SettingError> {
        let refuse = |what: String| SettingError::new("sampler.scale", what);
        let factor = cholesky(matrix, d).map_err(|e| refuse(format!("{e}; give a symmetric positive definite matrix of {d} × {d} values, such as the inverse of a public guess at the posterior's covariance")))?;
        Lower::new(factor)
            .map(Mass::Dense)
            .ok_or_else(|| refuse("is not positive definite to working precision".into()))
    }

    /// Checks that it is positive definite and of d parameters.
    ///
    /// # Errors
    /// [`SettingError`] naming `mass` and what is wrong with it.
    pub fn validate(&self, d: usize) -> Result<(), SettingError> {
        // Roots and inverses must be numbers too.
        let positive = |m: f64| m > 1e-200 && m < 1e200;
        let size = match self {
            Mass::Scalar(_) => d,
            Mass::Diagonal(m) => m.len(),
            Mass::Dense(factor) => factor.dim(),
        };
        let wrong = match self {
            Mass::Scalar(m) => Some(*m).filter(|m| !positive(*m)),
            Mass::Diagonal(m) => m.iter().copied().find(|m| !positive(*m)),
            Mass::Dense(factor) => {
                let mut diagonal = factor.entries().iter().step_by(factor.dim() + 1);
                let wrong = diagonal.find(|k| !positive(**k * **k)).copied();
                wrong.or((!factor.is_valid()).then_some(f64::NAN))
            }
        };
        if size != d {
            return Err(SettingError::new(
                "sampler.scale",
                format!("is a matrix of {size} parameters, the model has {d}"),
            ));
        }
        match wrong {
            Some(m) => Err(SettingError::new(
                "sampler.scale",
                format!("must be positive definite, between 1e-200 and 1e200; it has {m:e}"),
            )),
            None => Ok(()),
        }
    }

    /// Draws a momentum p ~ N(0, M).
    pub(super) fn draw(&self, d: usize, rng: &mut PublicRng) -> Vec<f64> {
        let mut z: Vec<f64> = (0..d).map(|_| StandardNormal.sample(rng)).collect();
        match self {
            Mass::Scalar(m) => z.iter_mut().for_each(|z| *z *= m.sqrt()),
            Mass::Diagonal(m) => z.iter_mut().zip(m).for_each(|(z, m)| *z *= m.sqrt()),
            Mass::Dense(factor) => z = factor.times(&z),
        }
        z
    }

    /// Kinetic energy `½ pᵀM⁻¹p`, nats.
    pub(super) fn kinetic(&self, p: &[f64]) -> f64 {
        let squares: f64 = match self {
            Mass::Scalar(m) => p.iter().map(|p| p * p / m).sum(),
            Mass::Diagonal(m) => p.iter().zip(m).map(|(p, m)| p * p / m).sum(),
            Mass::Dense(factor) => {
                let mut z = p.to_vec();
                factor.solve(&mut z);
                z.iter().map(|z| z * z).sum()
            }
        };
        0.5 * squares
    }

    /// Velocity `M⁻¹p`.
    pub(super) fn velocity(&self, p: &[f64]) -> Vec<f64> {
        match self {
            Mass::Scalar(m) => p.iter().map(|p| p / m).collect(),
            Mass::Diagonal(m) => p.iter().zip(m).map(|(p, m)| p / m).collect(),
            Mass::Dense(factor) => {
                let mut z = p.to_vec();
                factor.solve(&mut z);
                factor.solve_transposed(&z)
            }
        }
    }

    /// `‖M^½ v‖₂ = √(vᵀMv)`; v and −v give the same bits.
    pub(super) fn norm(&self, v: &[f64]) -> f64 {
        let squares: f64 = match self {
            Mass::Scalar(m) => v.iter().map(|v| m * v * v).sum(),
            Mass::Diagonal(m) => v.iter().zip(m).map(|(v, m)| m * v * v).sum(),
            Mass::Dense(factor) => factor.transposed_times(v).iter().map(|u| u * u).sum(),
        };
        squares.sqrt()
    }

    /// Euclidean length of the move `M^(-½) z` for ‖z‖ = √d, on average: `‖M^(-½)‖_F`.
    pub(super) fn inverse_root_size(&self, d: usize) -> f64 {
        match self {
            Mass::Scalar(m) => (d as f64 / m).sqrt(),
            Mass::Diagonal(m) => m.iter().map(|m| 1.0 / m).sum::<f64>().sqrt(),
            Mass::Dense(factor) => factor.inverse_norm(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::stream;

    const MATRIX: [f64; 4] = [2.0, 0.6, 0.6, 0.5];

    /// All three forms of one matrix agree; `dense` is checked against the matrix itself.
    #[test]
    fn forms_agree_with_the_matrix() {
        let dense = Mass::dense(&MATRIX, 2).unwrap();
        let v = [0.7, -1.3];
        let mv = [
            MATRIX[0] * v[0] + MATRIX[1] * v[1],
            MATRIX[2] * v[0] + MATRIX[3] * v[1],
        ];
        let vmv = v[0] * mv[0] + v[1] * mv[1];
        assert!((dense.norm(&v).powi(2) - vmv).abs() < 1e-14);
        // Of the momentum Mv the velocity is v and the energy vᵀMv/2.
        assert!((dense.kinetic(&mv) - vmv / 2.0).abs() < 1e-14);
        let back = dense.velocity(&mv);
        assert!((back[0] - v[0]).abs() < 1e-14 && (back[1] - v[1]).abs() < 1e-14);
        // trace M⁻¹ = trace M / det M.
        let trace = 2.5 / (2.0 * 0.5 - 0.36);
        assert!((dense.inverse_root_size(2).powi(2) - trace).abs() < 1e-12);
        let same = [
            (Mass::Scalar(3.0), Mass::Diagonal(vec![3.0; 2])),
            (
                Mass::Diagonal(vec![3.0, 0.5]),
                Mass::dense(&[3.0, 0.0, 0.0, 0.5], 2).unwrap(),
            ),
        ];
        for (a, b) in same {
            assert!((a.norm(&v) - b.norm(&v)).abs() < 1e-14);
            assert!((a.kinetic(&v) - b.kinetic(&v)).abs() < 1e-14);
            assert!((a.velocity(&v)[1] - b.velocity(&v)[1]).abs() < 1e-14);
            assert!((a.inverse_root_size(2) - b.inverse_root_size(2)).abs() < 1e-14);
            let (mut r, mut s) = (stream([1; 32], 0), stream([1; 32], 0));
            let (p, q) = (a.draw(2, &mut r), b.draw(2, &mut s));
            assert!((p[0] - q[0]).abs() < 1e-14 && (p[1] - q[1]).abs() < 1e-14);
        }
    }

    /// Covariance of 100,000 momenta against M; each of 3 entries 6 standard errors
    /// (sd of a product of Gaussians at most √2·max M), false alarm under 1e-8.
    #[test]
    fn momenta_have_covariance_m() {
        let dense = Mass::dense(&MATRIX, 2).unwrap();
        let mut rng = stream([2; 32], 0);
        let n = 100_000;
        let mut sums = [0.0; 3];
        for _ in 0..n {
            let p = dense.draw(2, &mut rng);
            sums[0] += p[0] * p[0];
            sums[1] += p[0] * p[1];
            sums[2] += p[1] * p[1];
        }
        for (sum, (m, var)) in sums.iter().zip([(2.0, 8.0), (0.6, 1.36), (0.5, 0.5)]) {
            let z = (sum / f64::from(n) - m) / (var / f64::from(n)).sqrt();
            assert!(z.abs() < 6.0, "{m}: {z}");
        }
    }

    #[test]
    fn only_positive_definite_matrices_of_the_right_size_are_taken() {
        assert!(Mass::dense(&[1.0, 2.0, 2.0, 1.0], 2).is_err());
        assert!(Mass::dense(&[1.0, 0.5, 0.0, 1.0], 2).is_err());
        assert!(Mass::dense(&[1.0], 2).is_err());
        assert!(Mass::Scalar(0.0).validate(2).is_err());
        assert!(Mass::Scalar(f64::NAN).validate(2).is_err());
        assert!(Mass::Diagonal(vec![1.0, -1.0]).validate(2).is_err());
        assert!(Mass::Diagonal(vec![1.0]).validate(2).is_err());
        assert!(Mass::Dense(Lower::identity(3)).validate(2).is_err());
        assert!(Mass::dense(&MATRIX, 2).unwrap().validate(2).is_ok());
        let said = Mass::Scalar(-1.0).validate(1).unwrap_err().to_string();
        assert!(said.starts_with("sampler.scale: must be positive definite"));
    }
}
