//! f32 forms of third-order remainders, softplus's and the exponential's, without branches or
//! cancellation.
//!
//! With G(s) = σ(a+s) − σ(a) − ws, the remainder's slope, the answer is ∫ G over
//! [t, t+δ]: four Gauss–Legendre points, whose error for |δ| ≤ 3/2 is under 1e-7 (the
//! nearest poles of G are π away), and the difference itself for longer moves, where
//! little cancels. The exponential's slope is e^a (e^s − 1 − s), which has no poles. Twins:
//! `model::{remainder_difference, exponential_difference}` (f64 oracles), `shaders/remainder.wgsl`.

use super::single::{exp, exp_m1, is_nan, multiply_add, softplus_difference};

/// Moves up to here are integrated.
const INTEGRATED: f32 = 1.5;
/// Slope arguments up to here use the series of `e^s − 1 − s`.
const SERIES: f32 = 0.5;

/// Nodes and weights of Gauss–Legendre on [0, 1].
const NODES: [(f32, f32); 4] = [
    (0.069_431_84, 0.173_927_42),
    (0.330_009_5, 0.326_072_58),
    (0.669_990_5, 0.326_072_58),
    (0.930_568_16, 0.173_927_42),
];

/// `(e^s − 1 − s, e^s − 1)`, |s| ≤ 60.
#[inline(always)]
fn exponentials<const FMA: bool>(s: f32) -> (f32, f32) {
    let mut p = 1.0 / 40_320.0;
    p = multiply_add::<FMA>(p, s, 1.0 / 5040.0);
    p = multiply_add::<FMA>(p, s, 1.0 / 720.0);
    p = multiply_add::<FMA>(p, s, 1.0 / 120.0);
    p = multiply_add::<FMA>(p, s, 1.0 / 24.0);
    p = multiply_add::<FMA>(p, s, 1.0 / 6.0);
    p = multiply_add::<FMA>(p, s, 0.5);
    let series = p * s * s;
    let direct = exp::<FMA>(s) - 1.0;
    if s.abs() <= SERIES {
        (series, series + s)
    } else {
        (direct - s, direct)
    }
}

/// `G(s) = w (A − s p E)/(1 + pE)`, E = e^s − 1, A = E − s.
#[inline(always)]
fn slope<const FMA: bool>(p: f32, w: f32, s: f32) -> f32 {
    let s = within(s, 60.0);
    let (a, e) = exponentials::<FMA>(s);
    w * (a - s * p * e) / multiply_add::<FMA>(p, e, 1.0)
}

/// x within ± `limit`; NaN stays.
#[inline(always)]
fn within(x: f32, limit: f32) -> f32 {
    let x = if x > limit { limit } else { x };
    if x < -limit { -limit } else { x }
}

/// `e^a [e^t(e^δ − 1) − δ − δ(t + δ/2)]`, the change of the exponential's remainder; exponents
/// are cut at ±60 (a at ±87).
#[inline(always)]
pub(crate) fn exponential_difference<const FMA: bool>(a: f32, t: f32, delta: f32) -> f32 {
    let mut sum = 0.0;
    for (node, weight) in NODES {
        let s = within(multiply_add::<FMA>(node, delta, t), 60.0);
        sum = multiply_add::<FMA>(weight, exponentials::<FMA>(s).0, sum);
    }
    let growth = exp::<FMA>(within(t, 60.0)) * exp_m1::<FMA>(within(delta, 60.0));
    let long = growth - delta * (1.0 + multiply_add::<FMA>(0.5, delta, t));
    let value = if delta.abs() <= INTEGRATED {
        sum * delta
    } else {
        long
    };
    if is_nan(a) | is_nan(t) | is_nan(delta) {
        f32::NAN
    } else {
        exp::<FMA>(a) * value
    }
}

/// `ρ(a, t+δ) − ρ(a, t)`, the change of the remainder.
#[inline(always)]
pub(crate) fn remainder_difference<const FMA: bool>(a: f32, t: f32, delta: f32) -> f32 {
    let p = 1.0 / (1.0 + exp::<FMA>(-a));
    let w = p / (1.0 + exp::<FMA>(a));
    let mut sum = 0.0;
    for (node, weight) in NODES {
        let s = multiply_add::<FMA>(node, delta, t);
        sum = multiply_add::<FMA>(weight, slope::<FMA>(p, w, s), sum);
    }
    let long = softplus_difference::<FMA>(a + t, delta)
        - delta * multiply_add::<FMA>(w, multiply_add::<FMA>(0.5, delta, t), p);
    let value = if delta.abs() <= INTEGRATED {
        sum * delta
    } else {
        long
    };
    if is_nan(a) | is_nan(t) | is_nan(delta) {
        f32::NAN
    } else {
        value
    }
}

/// The same of a row of weight ω ≤ 1 at its anchor, whose released curvature was cut at `ω/4` of
/// what the quadratic has: `ω [ρ(a, t+δ) − ρ(a, t) + max(0, w − ω/4) δ(t + δ/2)]`.
#[inline(always)]
pub(crate) fn weighted_remainder_difference<const FMA: bool>(
    a: f32,
    t: f32,
    delta: f32,
    omega: f32,
) -> f32 {
    let p = 1.0 / (1.0 + exp::<FMA>(-a));
    let w = p / (1.0 + exp::<FMA>(a));
    let cut = w - 0.25 * omega;
    let cut = if cut > 0.0 && omega < 1.0 { cut } else { 0.0 };
    let quadratic = cut * delta * multiply_add::<FMA>(0.5, delta, t);
    omega * (remainder_difference::<FMA>(a, t, delta) + quadratic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;
    use proptest::prelude::*;

    /// Errors are measured against the third-order scale `max(|t|, |t+δ|)² |δ|`: 1e-6 of it
    /// where G is integrated; where it is not, the rounding of the terms that cancel.
    fn check<const FMA: bool>(a: f32, t: f32, delta: f32) -> Result<(), TestCaseError> {
        let (a64, t64, d64) = (f64::from(a), f64::from(t), f64::from(delta));
        let exact = model::remainder_difference(a64, t64, d64);
        let ours = f64::from(remainder_difference::<FMA>(a, t, delta));
        let reach = t64.abs().max((t64 + d64).abs());
        let scale = reach * reach * d64.abs();
        let tolerance = if delta.abs() <= INTEGRATED {
            // G's own size is at most 1 + |s|/4 far out, not s².
            2e-7 * scale.min((1.0 + reach) * d64.abs()) + 1e-12 * d64.abs()
        } else {
            3e-6 * d64.abs() * (1.0 + reach)
        };
        prop_assert!(
            (ours - exact).abs() <= tolerance,
            "a {a} t {t} d {delta}: {ours} against {exact}, tolerance {tolerance}"
        );
        Ok(())
    }

    proptest! {
        #[test]
        fn the_remainder_is_accurate(
            a in -20f32..20.0, t in -3f32..3.0, shrink in 0f32..8.0, log in -12f32..2.0, up in any::<bool>()
        ) {
            let delta = if up { log.exp() } else { -log.exp() };
            let t = t * (-shrink).exp();
            check::<true>(a, t, delta)?;
            check::<false>(a, t, delta)?;
        }
    }

    /// The same of the exponential, whose own size is e^a (1 + |s| + e^s) far out.
    fn check_exponential<const FMA: bool>(a: f32, t: f32, delta: f32) -> Result<(), TestCaseError> {
        let (a64, t64, d64) = (f64::from(a), f64::from(t), f64::from(delta));
        let exact = model::exponential_difference(a64, t64, d64);
        let ours = f64::from(exponential_difference::<FMA>(a, t, delta));
        let (reach, end) = (t64.abs().max((t64 + d64).abs()), t64.max(t64 + d64));
        let size = a64.exp() * d64.abs();
        let steep = end.max(0.0).exp();
        let tolerance = if delta.abs() <= INTEGRATED {
            // The rule's own error, (δ/2)^8 of e^s in the middle, is 2e-8 at |δ| = 3/2.
            size * (2e-6 * (reach * reach).min(1.0 + reach) * steep + 1e-12)
        } else {
            3e-6 * size * (1.0 + reach) * steep
        };
        prop_assert!(
            (ours - exact).abs() <= tolerance,
            "a {a} t {t} d {delta}: {ours} against {exact}, tolerance {tolerance}"
        );
        Ok(())
    }

    proptest! {
        #[test]
        fn the_exponentials_remainder_is_accurate(
            a in -20f32..20.0, t in -3f32..3.0, shrink in 0f32..8.0, log in -12f32..2.0, up in any::<bool>()
        ) {
            let delta = if up { log.exp() } else { -log.exp() };
            let t = t * (-shrink).exp();
            check_exponential::<true>(a, t, delta)?;
            check_exponential::<false>(a, t, delta)?;
        }
    }

    #[test]
    fn special_values() {
        for (a, t, d) in [
            (f32::NAN, 0.1, 0.1),
            (0.0, f32::NAN, 0.1),
            (0.0, 0.1, f32::NAN),
        ] {
            assert!(remainder_difference::<true>(a, t, d).is_nan());
            assert!(exponential_difference::<true>(a, t, d).is_nan());
        }
        assert_eq!(exponential_difference::<true>(0.3, 0.2, 0.0), 0.0);
        assert!(exponential_difference::<true>(-200.0, 0.5, 0.1).abs() < 1e-30);
        assert_eq!(remainder_difference::<true>(0.3, 0.2, 0.0), 0.0);
        assert!(remainder_difference::<true>(0.3, 500.0, 0.1).is_finite());
        assert!(remainder_difference::<true>(-90.0, 0.5, 0.1).abs() < 1e-6);
    }
}
