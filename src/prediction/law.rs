//! The laws that labels follow: mean, distribution function and draws of each, in units of the
//! label as models read it (a binary label is 0 or 1 here).

use rand::{Rng, RngExt};
use rand_distr::{Beta, Distribution, Exp1, Gamma, Poisson, StandardNormal, StudentT};
use statrs::function::beta::checked_beta_reg;
use statrs::function::gamma::{checked_gamma_lr, checked_gamma_ur, gamma};

use super::numeric::Numeric;
use crate::math::normal;

/// The law of a label, given its row and one draw of the parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelLaw {
    /// 0 or 1.
    Binary {
        /// Probability of 1.
        chance: f64,
    },
    /// 0, 1, … with these probabilities.
    Classes(Vec<f64>),
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// Student's t.
    StudentT {
        /// Centre.
        at: f64,
        /// Scale.
        scale: f64,
        /// Degrees of freedom.
        freedom: f64,
    },
    /// A label whose logarithm is normal.
    LogNormal {
        /// Mean of the logarithm.
        at: f64,
        /// Its standard deviation.
        sd: f64,
    },
    /// Gamma.
    Gamma {
        /// Mean.
        mean: f64,
        /// Shape.
        shape: f64,
    },
    /// Poisson.
    Poisson {
        /// Mean.
        mean: f64,
    },
    /// Negative binomial of variance mean + mean²/shape.
    NegativeBinomial {
        /// Mean.
        mean: f64,
        /// Shape.
        shape: f64,
    },
    /// Beta; the first parameters are mean·precision and rest·precision.
    Beta {
        /// Mean.
        mean: f64,
        /// 1 − mean.
        rest: f64,
        /// Precision.
        precision: f64,
    },
    /// Weibull: times of events; censoring is no part of it.
    Weibull {
        /// Scale.
        scale: f64,
        /// Shape.
        shape: f64,
    },
    /// Asymmetric Laplace with its kink rounded off: (at − y)/width is the log odds of a beta law's
    /// variable with parameters share·width/scale and (1 − share)·width/scale.
    Quantile {
        /// The declared quantile, up to the rounding.
        at: f64,
        /// Which quantile.
        share: f64,
        /// How wide the kink is.
        width: f64,
        /// Scale.
        scale: f64,
    },
    /// Of an expression, by numbers.
    Numeric(Numeric),
}

impl LabelLaw {
    /// What is predicted: the mean (of a binary label its probability); of a quantile regression
    /// the quantile. NaN where there is none: of classes, of Student's t law with ν ≤ 1.
    pub fn expected(&self) -> f64 {
        match self {
            LabelLaw::Binary { chance } => *chance,
            LabelLaw::Classes(_) => f64::NAN,
            LabelLaw::Normal { mean, .. }
            | LabelLaw::Gamma { mean, .. }
            | LabelLaw::Poisson { mean }
            | LabelLaw::NegativeBinomial { mean, .. }
            | LabelLaw::Beta { mean, .. } => *mean,
            LabelLaw::StudentT { at, freedom, .. } if *freedom > 1.0 => *at,
            LabelLaw::StudentT { .. } => f64::NAN,
            LabelLaw::LogNormal { at, sd } => (at + 0.5 * sd * sd).exp(),
            LabelLaw::Weibull { scale, shape } => scale * gamma(1.0 + 1.0 / shape),
            LabelLaw::Quantile { at, .. } => *at,
            LabelLaw::Numeric(numeric) => numeric.mean(),
        }
    }

    /// Whether labels are whole numbers.
    pub fn is_whole(&self) -> bool {
        match self {
            LabelLaw::Binary { .. }
            | LabelLaw::Classes(_)
            | LabelLaw::Poisson { .. }
            | LabelLaw::NegativeBinomial { .. } => true,
            LabelLaw::Numeric(numeric) => numeric.is_whole(),
            _ => false,
        }
    }

    /// Least label that can be.
    pub fn least(&self) -> f64 {
        match self {
            LabelLaw::Normal { .. } | LabelLaw::StudentT { .. } | LabelLaw::Quantile { .. } => {
                f64::NEG_INFINITY
            }
            LabelLaw::Numeric(numeric) => numeric.ends().0,
            _ => 0.0,
        }
    }

    /// Largest label that can be.
    pub fn most(&self) -> f64 {
        match self {
            LabelLaw::Binary { .. } | LabelLaw::Beta { .. } => 1.0,
            LabelLaw::Classes(chances) => chances.len() as f64 - 1.0,
            LabelLaw::Numeric(numeric) => numeric.ends().1,
            _ => f64::INFINITY,
        }
    }

    /// About where its labels lie and how far they spread: where a search may begin.
    pub(super) fn about(&self) -> (f64, f64) {
        match self {
            LabelLaw::Normal { mean, sd } => (*mean, *sd),
            LabelLaw::StudentT { at, scale, .. } => (*at, *scale),
            LabelLaw::LogNormal { at, sd } => (at.exp(), (at + 0.5 * sd * sd).exp() * sd.min(1.0)),
            LabelLaw::Quantile {
                at, width, scale, ..
            } => (*at, width.max(*scale)),
            LabelLaw::Weibull { scale, .. } => (*scale, *scale),
            LabelLaw::Poisson { mean } => (*mean, mean.sqrt() + 1.0),
            LabelLaw::Gamma { mean, shape } => (*mean, mean / shape.sqrt()),
            LabelLaw::NegativeBinomial { mean, shape } => {
                (*mean, (mean + mean * mean / shape).sqrt() + 1.0)
            }
            LabelLaw::Numeric(numeric) => {
                let (low, high) = numeric.ends();
                (numeric.mean(), 0.1 * (high - low))
            }
            _ => (0.5, 0.5),
        }
    }

    /// Probability of a label of at most y; NaN where the parameters are no law's (a scale that
    /// overflowed).
    pub fn below(&self, y: f64) -> f64 {
        if y < self.least() {
            return 0.0;
        }
        if y >= self.most() {
            return 1.0;
        }
        match self {
            LabelLaw::Binary { chance } => 1.0 - chance,
            LabelLaw::Classes(chances) => chances.iter().take(y as usize + 1).sum(),
            LabelLaw::Normal { mean, sd } => normal::below((y - mean) / sd),
            LabelLaw::StudentT { at, scale, freedom } => {
                let t = (y - at) / scale;
                let tail = 0.5 * beta_below(0.5 * freedom, 0.5, freedom / (freedom + t * t));
                if t > 0.0 { 1.0 - tail } else { tail }
            }
            LabelLaw::LogNormal { at, sd } => normal::below((y.ln() - at) / sd),
            LabelLaw::Gamma { mean, shape } => {
                if y > 0.0 {
                    gamma_below(*shape, y * (shape / mean))
                } else {
                    0.0
                }
            }
            LabelLaw::Poisson { mean: 0.0 } => 1.0,
            LabelLaw::Poisson { mean } => gamma_above(y.floor() + 1.0, *mean),
            LabelLaw::NegativeBinomial { mean, shape } => {
                beta_below(*shape, y.floor() + 1.0, shape / (shape + mean))
            }
            LabelLaw::Beta {
                mean,
                rest,
                precision,
            } => beta_below(mean * precision, rest * precision, y),
            LabelLaw::Weibull { scale, shape } => -(-(y / scale).powf(*shape)).exp_m1(),
            LabelLaw::Quantile {
                at,
                share,
                width,
                scale,
            } => {
                // The label falls where the log odds rise.
                let u = (at - y) / width;
                let (a, b) = (share * width / scale, (1.0 - share) * width / scale);
                if u > 0.0 {
                    beta_below(b, a, odds(-u))
                } else {
                    1.0 - beta_below(a, b, odds(u))
                }
            }
            LabelLaw::Numeric(numeric) => numeric.below(y),
        }
    }

    /// Probability of a label under y.
    pub fn under(&self, y: f64) -> f64 {
        match self.is_whole() {
            true => self.below(y.ceil() - 1.0),
            false => self.below(y),
        }
    }

    /// A label; NaN where the parameters are no law's.
    pub fn draw(&self, rng: &mut impl Rng) -> f64 {
        let normal = |rng: &mut _| -> f64 { StandardNormal.sample(rng) };
        match self {
            LabelLaw::Binary { chance } => f64::from(u8::from(rng.random::<f64>() < *chance)),
            LabelLaw::Classes(chances) => {
                let mut left = rng.random::<f64>();
                let hit = chances.iter().position(|p| {
                    left -= p;
                    left < 0.0
                });
                hit.unwrap_or(chances.len().saturating_sub(1)) as f64
            }
            LabelLaw::Normal { mean, sd } => mean + sd * normal(rng),
            LabelLaw::StudentT { at, scale, freedom } => {
                let t = StudentT::new(*freedom).map(|law| law.sample(rng));
                at + scale * t.unwrap_or(f64::NAN)
            }
            LabelLaw::LogNormal { at, sd } => (at + sd * normal(rng)).exp(),
            LabelLaw::Gamma { mean, shape } => mean / shape * gamma_draw(*shape, rng),
            LabelLaw::Poisson { mean } => poisson_draw(*mean, rng),
            LabelLaw::NegativeBinomial { mean, shape } => {
                let rate = mean / shape * gamma_draw(*shape, rng);
                poisson_draw(rate, rng)
            }
            LabelLaw::Beta {
                mean,
                rest,
                precision,
            } => {
                let law = Beta::new(mean * precision, rest * precision);
                law.map_or(f64::NAN, |law| law.sample(rng))
            }
            LabelLaw::Weibull { scale, shape } => {
                let e: f64 = Exp1.sample(rng);
                scale * e.powf(1.0 / shape)
            }
            LabelLaw::Quantile {
                at,
                share,
                width,
                scale,
            } => {
                let (a, b) = (share * width / scale, (1.0 - share) * width / scale);
                at - width * (log_gamma_draw(a, rng) - log_gamma_draw(b, rng))
            }
            LabelLaw::Numeric(numeric) => numeric.quantile(rng.random::<f64>()),
        }
    }
}

/// σ(u).
pub(super) fn odds(u: f64) -> f64 {
    1.0 / (1.0 + (-u).exp())
}

/// Shapes beyond which the series of the gamma law would take too long, and of the beta law end
/// before they converge.
const LARGE_GAMMA: f64 = 1e6;
const LARGE_BETA: f64 = 2000.0;

/// Distribution function of the gamma law; of large shapes by the cube root of Wilson and Hilferty
/// (1931), whose error is under 1e-6 there.
fn gamma_below(shape: f64, x: f64) -> f64 {
    match shape > LARGE_GAMMA {
        true => normal::below(cube_root(shape, x)),
        false => checked_gamma_lr(shape, x).unwrap_or(f64::NAN),
    }
}

/// 1 − [`gamma_below`].
fn gamma_above(shape: f64, x: f64) -> f64 {
    match shape > LARGE_GAMMA {
        true => normal::above(cube_root(shape, x)),
        false => checked_gamma_ur(shape, x).unwrap_or(f64::NAN),
    }
}

fn cube_root(shape: f64, x: f64) -> f64 {
    3.0 * shape.sqrt() * ((x / shape).cbrt() - 1.0 + 1.0 / (9.0 * shape))
}

/// Distribution function of a beta law; of large shapes with an error under 1e-4. Where one is
/// large and the other is not it is the gamma law that it comes to (Wise 1950); where both are, it
/// is by cube roots (Paulson 1942).
fn beta_below(a: f64, b: f64, x: f64) -> f64 {
    if a.max(b) <= LARGE_BETA || x <= 0.0 || x >= 1.0 {
        return checked_beta_reg(a, b, x).unwrap_or(f64::NAN);
    }
    large_beta_below(a, b, x)
}

fn large_beta_below(a: f64, b: f64, x: f64) -> f64 {
    if b <= 0.03 * a {
        return gamma_above(b, -(a + 0.5 * (b - 1.0)) * x.ln());
    }
    if a <= 0.03 * b {
        return gamma_below(a, -(b + 0.5 * (a - 1.0)) * (-x).ln_1p());
    }
    let (one, other) = ((b * x).cbrt(), (a * (1.0 - x)).cbrt());
    let rise = one * (1.0 - 1.0 / (9.0 * b)) - other * (1.0 - 1.0 / (9.0 * a));
    normal::below(3.0 * rise / (one * one / b + other * other / a).sqrt())
}

fn gamma_draw(shape: f64, rng: &mut impl Rng) -> f64 {
    Gamma::new(shape, 1.0).map_or(f64::NAN, |law| law.sample(rng))
}

/// Logarithm of a gamma variable, also where that would underflow: Γ(a) is Γ(a + 1) U^(1/a).
fn log_gamma_draw(shape: f64, rng: &mut impl Rng) -> f64 {
    let e: f64 = Exp1.sample(rng);
    gamma_draw(shape + 1.0, rng).ln() - e / shape
}

fn poisson_draw(mean: f64, rng: &mut impl Rng) -> f64 {
    if mean == 0.0 {
        return 0.0;
    }
    Poisson::new(mean).map_or(f64::NAN, |law| law.sample(rng))
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
