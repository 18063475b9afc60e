//! One block of coefficients and its prior.

use rand_distr::{Distribution, Gamma, StandardNormal};

use super::horseshoe::{kernel, mean_precision};
use super::log_concave::{draw, integral};
use super::scale::{ScaleLaw, mixed};
use crate::model::ModelError;

/// Sums of squares count no less: the density is infinite where all coefficients are 0.
const LEAST_SQUARE: f64 = 1e-60;
/// The working prior of a horseshoe's coefficients is so many times as wide as its scale.
const HORSESHOE_WIDTH: f64 = 10.0;
/// Rounds of a slice sampler's interval.
const SLICE_ROUNDS: usize = 200;

/// Some coefficients, by their numbers among all parameters, and their prior.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Which coefficients.
    pub members: Vec<usize>,
    /// Their prior.
    pub law: BlockLaw,
}

/// The prior of a block's coefficients b.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockLaw {
    /// Independent, N(mean_i, sd_i²).
    Normal {
        /// Means, one a member.
        mean: Vec<f64>,
        /// Standard deviations, one a member.
        sd: Vec<f64>,
    },
    /// Independent Student's t.
    StudentT {
        /// Degrees of freedom.
        degrees: f64,
        /// Centres, one a member.
        mean: Vec<f64>,
        /// Scales, one a member.
        scale: Vec<f64>,
    },
    /// N(0, τ²) with one τ for all members: partial pooling.
    Shared {
        /// What τ is called.
        name: String,
        /// The prior of τ.
        scale: ScaleLaw,
    },
    /// N(0, τ²λ_i²) with half-Cauchy λ_i, and τ half-Cauchy of this scale.
    Horseshoe {
        /// What τ is called.
        name: String,
        /// In units of the coefficients.
        scale: f64,
    },
}

impl BlockLaw {
    /// Whether coefficients are pooled, or have a prior that is normal and fixed.
    pub(crate) fn is_pooled(&self) -> bool {
        matches!(self, BlockLaw::Normal { .. } | BlockLaw::Shared { .. })
    }
}

impl Block {
    pub(super) fn validate(&self) -> Result<(), ModelError> {
        let n = self.members.len();
        let fits = |values: &[f64], key: &str, positive: bool| {
            let usable = |v: &&f64| v.is_finite() && (!positive || **v > 0.0);
            match values.len() == n && values.iter().all(|v| usable(&v)) {
                true => Ok(()),
                false => {
                    let kind = if positive { "positive" } else { "finite" };
                    let what = format!("needs {n} {kind} numbers, or one for all");
                    Err(ModelError::new(&format!("model.prior.{key}"), what))
                }
            }
        };
        match &self.law {
            BlockLaw::Normal { mean, sd } => {
                fits(mean, "mean", false)?;
                fits(sd, "sd", true)
            }
            BlockLaw::StudentT {
                degrees,
                mean,
                scale,
            } => {
                fits(mean, "mean", false)?;
                fits(scale, "scale", true)?;
                fits(&vec![*degrees; n], "degrees", true)
            }
            BlockLaw::Shared { scale, .. } if !scale.is_valid() => Err(ModelError::new(
                "model.hierarchy",
                "scale and degrees must be positive numbers",
            )),
            BlockLaw::Shared { .. } => Ok(()),
            BlockLaw::Horseshoe { scale, .. } => fits(&vec![*scale; n], "scale", true),
        }
    }

    /// What its sampled standard deviation is called, where it has one.
    pub fn name(&self) -> Option<&str> {
        match &self.law {
            BlockLaw::Shared { name, .. } | BlockLaw::Horseshoe { name, .. } => Some(name),
            BlockLaw::Normal { .. } | BlockLaw::StudentT { .. } => None,
        }
    }

    fn values<'a>(&'a self, theta: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let value = |j: &usize| theta.get(*j).copied().unwrap_or(0.0);
        self.members.iter().map(value)
    }

    /// Log density of (b, t = log τ) as a function of t, up to what does not depend on it: concave.
    fn of_scale<'a>(&'a self, theta: &'a [f64]) -> impl Fn(f64) -> f64 + 'a {
        let n = self.members.len() as f64;
        let squares: Vec<f64> = self.values(theta).map(|b| b * b).collect();
        let sum = squares.iter().sum::<f64>().max(LEAST_SQUARE);
        move |t: f64| {
            let half = 0.5 * (-2.0 * t).exp();
            match &self.law {
                BlockLaw::Horseshoe { scale, .. } => {
                    let own = |b: &f64| kernel(b.max(LEAST_SQUARE) * half).ln();
                    let coefficients: f64 = squares.iter().map(own).sum();
                    ScaleLaw::half_cauchy(*scale).log_density(t) - n * t + coefficients
                }
                BlockLaw::Shared { scale, .. } => scale.log_density(t) - n * t - sum * half,
                // No τ.
                BlockLaw::Normal { .. } | BlockLaw::StudentT { .. } => 0.0,
            }
        }
    }

    /// Where to look for a mode of that: τ as large as the coefficients.
    fn about(&self, theta: &[f64]) -> f64 {
        let sum = self.values(theta).map(|b| b * b).sum::<f64>();
        0.5 * (sum.max(LEAST_SQUARE) / self.members.len().max(1) as f64).ln()
    }

    pub(super) fn log_density(&self, theta: &[f64]) -> f64 {
        match &self.law {
            BlockLaw::Normal { mean, sd } => {
                let each = self.values(theta).zip(mean.iter().zip(sd));
                each.map(|(b, (m, s))| -0.5 * ((b - m) / s).powi(2)).sum()
            }
            BlockLaw::StudentT {
                degrees,
                mean,
                scale,
            } => {
                let each = self.values(theta).zip(mean.iter().zip(scale));
                let logs = each.map(|(b, (m, s))| (((b - m) / s).powi(2) / degrees).ln_1p());
                -0.5 * (degrees + 1.0) * logs.sum::<f64>()
            }
            _ => integral(&self.of_scale(theta), self.about(theta), |_| 0.0).0,
        }
    }

    pub(super) fn add_slopes(&self, theta: &[f64], gradient: &mut [f64], precision: &mut [f64]) {
        let log = self.of_scale(theta);
        let shared = match self.law {
            BlockLaw::Shared { .. } => integral(&log, self.about(theta), |t| (-2.0 * t).exp()).1,
            _ => 0.0,
        };
        for (i, &j) in self.members.iter().enumerate() {
            let Some(&b) = theta.get(j) else { continue };
            let (mean, weight) = match &self.law {
                BlockLaw::Normal { mean, sd } => (mean[i], sd[i].powi(-2)),
                BlockLaw::StudentT {
                    degrees,
                    mean,
                    scale,
                } => {
                    let square = degrees * scale[i].powi(2) + (b - mean[i]).powi(2);
                    (mean[i], (degrees + 1.0) / square)
                }
                BlockLaw::Shared { .. } => (0.0, shared),
                BlockLaw::Horseshoe { .. } => {
                    let own = |t: f64| {
                        let inverse = (-2.0 * t).exp();
                        inverse * mean_precision(0.5 * inverse * (b * b).max(LEAST_SQUARE))
                    };
                    (0.0, integral(&log, self.about(theta), own).1)
                }
            };
            gradient[j] += (mean - b) * weight;
            precision[j] += weight;
        }
    }

    pub(super) fn draw(&self, theta: &mut [f64], rng: &mut impl rand::Rng) {
        let tau = match &self.law {
            BlockLaw::Shared { scale, .. } => scale.draw(rng),
            BlockLaw::Horseshoe { scale, .. } => ScaleLaw::half_cauchy(*scale).draw(rng),
            BlockLaw::Normal { .. } | BlockLaw::StudentT { .. } => 1.0,
        };
        for (i, &j) in self.members.iter().enumerate() {
            let z: f64 = StandardNormal.sample(rng);
            let value = match &self.law {
                BlockLaw::Normal { mean, sd } => mean[i] + sd[i] * z,
                BlockLaw::StudentT {
                    degrees,
                    mean,
                    scale,
                } => mean[i] + scale[i] * z / mixed(*degrees, rng),
                BlockLaw::Shared { .. } => tau * z,
                BlockLaw::Horseshoe { .. } => tau * z * ScaleLaw::half_cauchy(1.0).draw(rng),
            };
            if let Some(at) = theta.get_mut(j) {
                *at = value;
            }
        }
    }

    /// Mean and standard deviation of member `i` in the working prior.
    pub(super) fn working(&self, i: usize) -> (f64, f64) {
        match &self.law {
            BlockLaw::Normal { mean, sd } => (mean[i], sd[i]),
            BlockLaw::StudentT { mean, scale, .. } => (mean[i], scale[i]),
            BlockLaw::Shared { scale, .. } => (0.0, scale.scale()),
            BlockLaw::Horseshoe { scale, .. } => (0.0, HORSESHOE_WIDTH * scale),
        }
    }

    /// A draw of τ given the coefficients, where it is sampled.
    pub(super) fn draw_scale(&self, theta: &[f64], rng: &mut impl rand::Rng) -> Option<f64> {
        self.name()?;
        Some(draw(&self.of_scale(theta), self.about(theta), rng).exp())
    }

    /// A draw of all standard deviations given the coefficients: prior precisions of the members,
    /// and the τ among what they are made of.
    fn draw_precisions(&self, theta: &[f64], rng: &mut impl rand::Rng) -> (Vec<f64>, f64) {
        let tau = self.draw_scale(theta, rng).unwrap_or(1.0);
        let each = self.values(theta).enumerate();
        let precisions = each.map(|(i, b)| match &self.law {
            BlockLaw::Normal { sd, .. } => sd[i].powi(-2),
            BlockLaw::StudentT {
                degrees,
                mean,
                scale,
            } => {
                let rate = 0.5 * (degrees * scale[i].powi(2) + (b - mean[i]).powi(2));
                let law = Gamma::new(0.5 * (degrees + 1.0), 1.0 / rate);
                law.map_or(1.0 / rate, |law| law.sample(rng))
            }
            BlockLaw::Shared { .. } => tau.powi(-2),
            BlockLaw::Horseshoe { .. } => {
                // λ given b: as a τ of one coefficient.
                let half = 0.5 * (b / tau).powi(2).max(LEAST_SQUARE);
                let unit = ScaleLaw::half_cauchy(1.0);
                let log = |t: f64| unit.log_density(t) - t - half * (-2.0 * t).exp();
                let lambda = draw(&log, 0.5 * (2.0 * half).ln(), rng).exp();
                (tau * lambda).powi(-2)
            }
        });
        (precisions.collect(), tau)
    }
}

/// A step of a Gibbs sampler on a Gaussian log likelihood a·θ − ½θᵀKθ, seen from one block.
pub(crate) struct Stretch {
    /// Σ_j b_j (a − Kθ)_j + bᵀKb: how the log likelihood changes to first order as b is stretched.
    pub slope: f64,
    /// bᵀKb over the block.
    pub curvature: f64,
}

impl Block {
    /// New standard deviations of the block given the coefficients: their precisions, and what the
    /// coefficients are multiplied by. τ is drawn given b, and once more given b/τ and the
    /// likelihood, which mixes where the first does not: where the data say little of b, or τ is
    /// near 0 (interweaving: Yu & Meng 2011).
    pub(crate) fn interweave(
        &self,
        theta: &[f64],
        stretch: &Stretch,
        rng: &mut impl rand::Rng,
    ) -> (Vec<f64>, f64) {
        let (precisions, tau) = self.draw_precisions(theta, rng);
        let law = match &self.law {
            BlockLaw::Shared { scale, .. } => *scale,
            BlockLaw::Horseshoe { scale, .. } => ScaleLaw::half_cauchy(*scale),
            BlockLaw::Normal { .. } | BlockLaw::StudentT { .. } => return (precisions, 1.0),
        };
        // With b/τ held, coefficients are b·r, r = e^(t − log τ).
        let start = tau.ln();
        let log = |t: f64| {
            let r = (t - start).exp();
            law.log_density(t) + r * (stretch.slope - 0.5 * r * stretch.curvature)
        };
        let ratio = (slice(&log, start, rng) - start).exp();
        let precisions = precisions.into_iter().map(|p| p / (ratio * ratio));
        (precisions.collect(), ratio)
    }
}

/// One step of a slice sampler (Neal 2003), stepping out and shrinking back.
fn slice(log: &impl Fn(f64) -> f64, at: f64, rng: &mut impl rand::Rng) -> f64 {
    use rand::RngExt;
    let coin: f64 = rng.random();
    let level = log(at) + (1.0 - coin).ln();
    let unit: f64 = rng.random();
    let (mut low, mut high) = (at - unit, at + 1.0 - unit);
    for _ in 0..SLICE_ROUNDS {
        if log(low) <= level {
            break;
        }
        low -= 1.0;
    }
    for _ in 0..SLICE_ROUNDS {
        if log(high) <= level {
            break;
        }
        high += 1.0;
    }
    for _ in 0..SLICE_ROUNDS {
        let unit: f64 = rng.random();
        let next = low + unit * (high - low);
        if log(next) > level {
            return next;
        }
        match next < at {
            true => low = next,
            false => high = next,
        }
    }
    at
}
