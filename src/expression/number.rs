//! What an expression is computed in: f64 on the host, f32 in vectorised loops over rows.

use super::graph::{Binary, Unary};
use super::special;
use crate::math::single;

/// A number that expressions are computed in. No operation fails or stops; outside of a function's
/// range the answer is a number or NaN.
pub(crate) trait Number: Copy {
    fn of(value: f64) -> Self;
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
    /// `self · by + more`, in one rounding where that is the faster way.
    fn fused(self, by: Self, more: Self) -> Self;
    fn exp(self) -> Self;
    fn exp_m1(self) -> Self;
    fn ln(self) -> Self;
    fn ln_1p(self) -> Self;
    fn sqrt(self) -> Self;
    fn softplus(self) -> Self;
    fn softplus_change(self, delta: Self) -> Self;
    fn ln_normal_cdf(self) -> Self;
    fn mills(self) -> Self;
    /// `positive` where this is, else `otherwise`.
    fn choose(self, positive: Self, otherwise: Self) -> Self;

    #[inline(always)]
    fn apply(self, function: Unary) -> Self {
        match function {
            Unary::Negate => Self::of(0.0).subtract(self),
            Unary::Exp => self.exp(),
            Unary::ExpM1 => self.exp_m1(),
            Unary::Log => self.ln(),
            Unary::Log1p => self.ln_1p(),
            Unary::Sqrt => self.sqrt(),
            Unary::Softplus => self.softplus(),
            Unary::Sigmoid => {
                let odds = Self::of(0.0).subtract(self).exp();
                Self::of(1.0).divide(Self::of(1.0).add(odds))
            }
            Unary::LogGamma => special::ln_gamma(self),
            Unary::Digamma => special::digamma(self),
            Unary::Trigamma => special::trigamma(self),
            Unary::LogNormalCdf => self.ln_normal_cdf(),
            Unary::Mills => self.mills(),
        }
    }

    #[inline(always)]
    fn combine(self, operation: Binary, other: Self) -> Self {
        match operation {
            Binary::Add => self.add(other),
            Binary::Subtract => self.subtract(other),
            Binary::Multiply => self.multiply(other),
            Binary::Divide => self.divide(other),
            Binary::SoftplusChange => self.softplus_change(other),
            Binary::LogGammaChange => special::ln_gamma_change(self, other),
            Binary::LogNormalCdfChange => special::ln_normal_cdf_change(self, other),
        }
    }
}

impl Number for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        self - other
    }
    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        self * other
    }
    #[inline(always)]
    fn divide(self, other: Self) -> Self {
        self / other
    }
    #[inline(always)]
    fn fused(self, by: Self, more: Self) -> Self {
        self * by + more
    }
    fn exp(self) -> Self {
        f64::exp(self)
    }
    fn exp_m1(self) -> Self {
        f64::exp_m1(self)
    }
    fn ln(self) -> Self {
        f64::ln(self)
    }
    fn ln_1p(self) -> Self {
        f64::ln_1p(self)
    }
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    fn softplus(self) -> Self {
        crate::math::softplus(self)
    }
    fn softplus_change(self, delta: Self) -> Self {
        crate::math::softplus_difference(self, delta)
    }
    fn ln_normal_cdf(self) -> Self {
        special::ln_normal_cdf(self)
    }
    fn mills(self) -> Self {
        special::mills(self)
    }
    fn choose(self, positive: Self, otherwise: Self) -> Self {
        if self > 0.0 { positive } else { otherwise }
    }
}

/// An f32 whose functions have no branches, so that loops over rows vectorise; FMA: with fused
/// operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fast<const FMA: bool>(pub f32);

impl<const FMA: bool> From<f32> for Fast<FMA> {
    #[inline(always)]
    fn from(value: f32) -> Self {
        Fast(value)
    }
}

impl<const FMA: bool> From<Fast<FMA>> for f32 {
    #[inline(always)]
    fn from(value: Fast<FMA>) -> Self {
        value.0
    }
}

impl<const FMA: bool> Number for Fast<FMA> {
    #[inline(always)]
    fn of(value: f64) -> Self {
        Fast(value as f32)
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Fast(self.0 + other.0)
    }
    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        Fast(self.0 - other.0)
    }
    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        Fast(self.0 * other.0)
    }
    #[inline(always)]
    fn divide(self, other: Self) -> Self {
        Fast(self.0 / other.0)
    }
    #[inline(always)]
    fn fused(self, by: Self, more: Self) -> Self {
        Fast(single::multiply_add::<FMA>(self.0, by.0, more.0))
    }
    #[inline(always)]
    fn exp(self) -> Self {
        Fast(single::exp::<FMA>(self.0))
    }
    #[inline(always)]
    fn exp_m1(self) -> Self {
        Fast(single::exp_m1::<FMA>(single::clamp(self.0, -87.0, 87.0)))
    }
    #[inline(always)]
    fn ln(self) -> Self {
        Fast(single::ln::<FMA>(self.0))
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        // −1 itself has no logarithm.
        let inside = if self.0 > -0.999_999_9 {
            self.0
        } else {
            -0.999_999_9
        };
        Fast(single::ln_1p::<FMA>(inside))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Fast(self.0.sqrt())
    }
    #[inline(always)]
    fn softplus(self) -> Self {
        let size = single::ln_1p::<FMA>(single::exp::<FMA>(-self.0.abs()));
        Fast(if self.0 > 0.0 { self.0 } else { 0.0 } + size)
    }
    #[inline(always)]
    fn softplus_change(self, delta: Self) -> Self {
        Fast(single::softplus_difference::<FMA>(self.0, delta.0))
    }
    #[inline(always)]
    fn ln_normal_cdf(self) -> Self {
        let (log_share, square) = ln_scaled_erfc::<FMA>(self.0);
        let low = log_share - square;
        let high = single::ln_1p::<FMA>(-single::exp::<FMA>(low));
        Fast(if self.0 > 0.0 { high } else { low })
    }
    #[inline(always)]
    fn mills(self) -> Self {
        // φ/Φ with e^−u²/2 cancelled on the left.
        const PEAK: f32 = 0.398_942_3;
        let (log_share, square) = ln_scaled_erfc::<FMA>(self.0);
        let high =
            PEAK * single::exp::<FMA>(-square) / (1.0 - single::exp::<FMA>(log_share - square));
        let low = PEAK * single::exp::<FMA>(-log_share);
        Fast(if self.0 > 0.0 { high } else { low })
    }
    #[inline(always)]
    fn choose(self, positive: Self, otherwise: Self) -> Self {
        if self.0 > 0.0 { positive } else { otherwise }
    }
}

/// `(log(½ erfc(z) e^{z²}), z²)` at z = |u|/√2, to 1.2e-7 (Press et al. 2007, section 6.2.2).
#[inline(always)]
fn ln_scaled_erfc<const FMA: bool>(u: f32) -> (f32, f32) {
    const SERIES: [f32; 9] = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_9,
        -1.135_204,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_7,
    ];
    let z = u.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let mut sum = 0.0;
    for a in SERIES {
        sum = single::multiply_add::<FMA>(sum, t, a);
    }
    let polynomial = single::multiply_add::<FMA>(sum, t, -1.265_512_2);
    (polynomial + single::ln::<FMA>(0.5 * t), 0.5 * u * u)
}
