//! Priors of a standard deviation τ, as densities of t = log τ.

use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// The prior of a standard deviation τ > 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleLaw {
    /// |N(0, scale²)|.
    HalfNormal {
        /// In units of the coefficients.
        scale: f64,
    },
    /// Student's t on the positive numbers; half-Cauchy with one degree of freedom (Gelman 2006).
    HalfStudentT {
        /// Degrees of freedom.
        degrees: f64,
        /// In units of the coefficients.
        scale: f64,
    },
}

impl ScaleLaw {
    /// The half-Cauchy law.
    pub fn half_cauchy(scale: f64) -> Self {
        ScaleLaw::HalfStudentT {
            degrees: 1.0,
            scale,
        }
    }

    /// Its scale.
    pub fn scale(&self) -> f64 {
        match *self {
            ScaleLaw::HalfNormal { scale } | ScaleLaw::HalfStudentT { scale, .. } => scale,
        }
    }

    /// Whether its numbers are positive and finite.
    pub fn is_valid(&self) -> bool {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        match *self {
            ScaleLaw::HalfNormal { scale } => positive(scale),
            ScaleLaw::HalfStudentT { degrees, scale } => positive(degrees) && positive(scale),
        }
    }

    /// Log density of t = log τ up to a constant, nats: the Jacobian τ is in it. Concave.
    pub(super) fn log_density(&self, t: f64) -> f64 {
        let square = |scale: f64| (2.0 * (t - scale.ln())).exp();
        match *self {
            ScaleLaw::HalfNormal { scale } => t - 0.5 * square(scale),
            ScaleLaw::HalfStudentT { degrees, scale } => {
                t - 0.5 * (degrees + 1.0) * (square(scale) / degrees).ln_1p()
            }
        }
    }

    /// One draw of τ.
    pub fn draw(&self, rng: &mut impl rand::Rng) -> f64 {
        let z: f64 = StandardNormal.sample(rng);
        match *self {
            ScaleLaw::HalfNormal { scale } => scale * z.abs(),
            ScaleLaw::HalfStudentT { degrees, scale } => scale * z.abs() / mixed(degrees, rng),
        }
    }
}

/// √(χ²/ν), which a standard normal number is divided by to be Student's t with ν degrees.
pub(super) fn mixed(degrees: f64, rng: &mut impl rand::Rng) -> f64 {
    match ChiSquared::new(degrees) {
        Ok(law) => (law.sample(rng) / degrees).sqrt().max(1e-150),
        // Degrees were validated.
        Err(_) => 1.0,
    }
}
