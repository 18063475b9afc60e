//! Public priors and supports, evaluated on the host in f64.

use std::sync::Arc;

use super::Blocks;
use crate::model::{Anchor, ModelError, MomentAnchor};

/// The public part of a target: an independent prior of every parameter, an optional
/// public support, and in anchored runs what was released of the log likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// Density family.
    pub density: Density,
    /// Parameters outside have density zero.
    pub support: Support,
    /// What was released of the log likelihood, and what it restricts θ to.
    pub anchor: Option<Surrogate>,
}

/// A log likelihood made of releases: what anchored rows are a remainder of.
#[derive(Clone, Debug, PartialEq)]
pub enum Surrogate {
    /// Second-order expansion at a point, on an ellipsoid.
    Expansion(Arc<Anchor>),
    /// Sums of moments of the rows.
    Moments(Arc<MomentAnchor>),
}

impl From<Anchor> for Surrogate {
    fn from(anchor: Anchor) -> Self {
        Surrogate::Expansion(Arc::new(anchor))
    }
}

impl Surrogate {
    fn contains(&self, theta: &[f64]) -> bool {
        match self {
            Surrogate::Expansion(a) => a.contains(theta),
            Surrogate::Moments(_) => true,
        }
    }

    fn log_density(&self, theta: &[f64]) -> f64 {
        match self {
            Surrogate::Expansion(a) => a.log_density(theta),
            Surrogate::Moments(m) => m.log_density(theta),
        }
    }
}

/// Density family of a prior.
#[derive(Clone, Debug, PartialEq)]
pub enum Density {
    /// Constant (improper without a bounded support).
    Flat,
    /// `N(mean_j, sd_j²)`.
    Normal {
        /// Means, one a parameter.
        mean: Vec<f64>,
        /// Standard deviations, one a parameter.
        sd: Vec<f64>,
    },
    /// Laplace with scale `scale_j` around zero.
    Laplace {
        /// Scales, one a parameter.
        scale: Vec<f64>,
    },
    /// Blocks of parameters, some with a standard deviation that is sampled too.
    Blocks(Arc<Blocks>),
}

/// Public set outside which the prior is zero.
#[derive(Clone, Debug, PartialEq)]
pub enum Support {
    /// All of R^d.
    Unbounded,
    /// `|θ_j| ≤ bound_j`.
    Box(Vec<f64>),
}

/// Log densities that overflow count as this.
const LOWEST: f64 = -1e300;

impl Prior {
    /// N(0, sd²) on every one of `d` parameters.
    pub fn normal(d: usize, sd: f64) -> Self {
        Prior {
            density: Density::Normal {
                mean: vec![0.0; d],
                sd: vec![sd; d],
            },
            support: Support::Unbounded,
            anchor: None,
        }
    }

    /// Flat inside the box `|θ_j| ≤ bound`.
    pub fn flat_box(d: usize, bound: f64) -> Self {
        Prior {
            density: Density::Flat,
            support: Support::Box(vec![bound; d]),
            anchor: None,
        }
    }

    /// Checks lengths and scales for dimension `d`.
    ///
    /// # Errors
    /// [`ModelError`] for a wrong length, or a zero, negative or non-finite scale.
    pub fn validate(&self, d: usize) -> Result<(), ModelError> {
        let positive = |key: &str, values: &[f64]| {
            if values.len() != d {
                return Err(ModelError::new(
                    key,
                    format!("{} values for {d} parameters", values.len()),
                ));
            }
            match values.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
                Some(v) => Err(ModelError::new(key, format!("must be positive, not {v}"))),
                None => Ok(()),
            }
        };
        match &self.density {
            Density::Flat => {}
            Density::Normal { mean, sd } => {
                positive("model.prior.sd", sd)?;
                if mean.len() != d || mean.iter().any(|m| !m.is_finite()) {
                    return Err(ModelError::new(
                        "model.prior.mean",
                        format!("needs {d} finite values"),
                    ));
                }
            }
            Density::Laplace { scale } => positive("model.prior.scale", scale)?,
            Density::Blocks(blocks) => blocks.validate(d)?,
        }
        match &self.support {
            Support::Unbounded => Ok(()),
            Support::Box(bounds) => positive("model.box", bounds),
        }
    }

    /// Whether θ lies in the support.
    pub fn contains(&self, theta: &[f64]) -> bool {
        self.supports(theta) && self.anchor.as_ref().is_none_or(|a| a.contains(theta))
    }

    /// Whether θ lies in the support that was declared, whatever the anchor restricts it to.
    pub fn supports(&self, theta: &[f64]) -> bool {
        match &self.support {
            Support::Unbounded => theta.iter().all(|t| t.is_finite()),
            Support::Box(bounds) => theta.iter().zip(bounds).all(|(t, b)| t.abs() <= *b),
        }
    }

    /// Whether what a run costs follows its draws: moves out of the support cost nothing, and
    /// the price of an anchored move depends on where it is made.
    pub fn is_bounded(&self) -> bool {
        self.support != Support::Unbounded || self.anchor.is_some()
    }

    /// Log density up to a constant, nats; −∞ outside the support and finite on it: where
    /// the support is unbounded, whether a move is charged must not follow θ.
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        if !self.contains(theta) {
            return f64::NEG_INFINITY;
        }
        let log: f64 = match &self.density {
            Density::Flat => 0.0,
            Density::Normal { mean, sd } => theta
                .iter()
                .zip(mean.iter().zip(sd))
                .map(|(t, (m, s))| -0.5 * ((t - m) / s).powi(2))
                .sum(),
            Density::Laplace { scale } => theta.iter().zip(scale).map(|(t, s)| -t.abs() / s).sum(),
            Density::Blocks(blocks) => blocks.log_density(theta),
        };
        let log = log + self.anchor.as_ref().map_or(0.0, |a| a.log_density(theta));
        log.max(LOWEST)
    }

    /// Gradient of the prior's own log density (no expansion), and minus the diagonal of its
    /// Hessian: where a warm start is to step.
    pub fn slopes(&self, theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        match &self.density {
            Density::Flat => (vec![0.0; theta.len()], vec![0.0; theta.len()]),
            Density::Normal { mean, sd } => theta
                .iter()
                .zip(mean.iter().zip(sd))
                .map(|(t, (m, s))| ((m - t) / (s * s), 1.0 / (s * s)))
                .unzip(),
            Density::Laplace { scale } => theta
                .iter()
                .zip(scale)
                .map(|(t, s)| (-t.signum() / s, 0.0))
                .unzip(),
            Density::Blocks(blocks) => blocks.slopes(theta),
        }
    }

    /// The blocks, where it is made of them.
    pub fn blocks(&self) -> Option<&Arc<Blocks>> {
        match &self.density {
            Density::Blocks(blocks) => Some(blocks),
            _ => None,
        }
    }

    /// What an anchor of d parameters is looked for with: of blocks their normal working prior, of
    /// a Laplace prior the normal one of its variance. (Its own curvature is 0, and where rows say
    /// nothing a run would know of no prior.)
    pub fn working(&self, d: usize) -> Prior {
        let density = match &self.density {
            Density::Laplace { scale } => Density::Normal {
                mean: vec![0.0; scale.len()],
                sd: scale.iter().map(|s| std::f64::consts::SQRT_2 * s).collect(),
            },
            Density::Blocks(blocks) => {
                let (mean, sd) = blocks.working(d);
                Density::Normal { mean, sd }
            }
            other => other.clone(),
        };
        Prior {
            density,
            ..self.clone()
        }
    }

    /// One draw inside the support, by rejection; `None` where the prior is improper
    /// or 10,000 draws all fell outside.
    pub fn draw(&self, rng: &mut impl rand::Rng) -> Option<Vec<f64>> {
        use rand::RngExt;
        use rand_distr::{Distribution, Exp1, StandardNormal};
        for _ in 0..10_000 {
            let theta: Vec<f64> = match (&self.density, &self.support) {
                (Density::Flat, Support::Unbounded) => return None,
                (Density::Flat, Support::Box(bounds)) => bounds
                    .iter()
                    .map(|b| b * (2.0 * rng.random::<f64>() - 1.0))
                    .collect(),
                (Density::Normal { mean, sd }, _) => mean
                    .iter()
                    .zip(sd)
                    .map(|(m, s)| {
                        let z: f64 = StandardNormal.sample(rng);
                        m + s * z
                    })
                    .collect(),
                (Density::Laplace { scale }, _) => scale
                    .iter()
                    .map(|s| {
                        let e: f64 = Exp1.sample(rng);
                        if rng.random::<bool>() { s * e } else { -s * e }
                    })
                    .collect(),
                (Density::Blocks(blocks), _) => blocks.draw(rng),
            };
            if self.contains(&theta) {
                return Some(theta);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_densities_are_finite_on_the_support() {
        let narrow = Prior::normal(2, 1e-200);
        let (near, far) = (
            narrow.log_density(&[1e-201, 0.0]),
            narrow.log_density(&[1.0, -2.0]),
        );
        assert!(near > -1.0 && far.is_finite() && far < near);
        let laplace = Prior {
            density: Density::Laplace {
                scale: vec![1e-300],
            },
            support: Support::Unbounded,
            anchor: None,
        };
        assert!(laplace.log_density(&[1e300]).is_finite());
        let boxed = Prior::flat_box(1, 1.0);
        assert_eq!(boxed.log_density(&[2.0]), f64::NEG_INFINITY);
    }
}
