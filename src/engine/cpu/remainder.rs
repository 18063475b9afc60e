//! f32 form of softplus's third-order remainder, without branches or cancellation.
//!
//! With G(s) = σ(a+s) − σ(a) − ws, the remainder's slope, the answer is ∫ G over
//! [t, t+δ]: four Gauss–Legendre points, whose error for |δ| ≤ 3/2 is under 1e-7 (the
//! nearest poles of G are π away), and the difference itself for longer moves, where
//! little cancels. Twins: `model::remainder_difference` (f64 oracle), `shaders/remainder.wgsl`.

use super::lanes::{exp, is_nan, multiply_add, softplus_difference};

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
    let s = if s > 60.0 { 60.0 } else { s };
    let s = if s < -60.0 { -60.0 } else { s };
    let (a, e) = exponentials::<FMA>(s);
    w * (a - s * p * e) / multiply_add::<FMA>(p, e, 1.0)
}

/// `ρ(a, t+δ) − ρ(a, t)`, the change of the remainder.
#[inline(always)]
pub(super) fn remainder_difference<const FMA: bool>(a: f32, t: f32, delta: f32) -> f32 {
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

    #[test]
    fn special_values() {
        for (a, t, d) in [
            (f32::NAN, 0.1, 0.1),
            (0.0, f32::NAN, 0.1),
            (0.0, 0.1, f32::NAN),
        ] {
            assert!(remainder_difference::<true>(a, t, d).is_nan());
        }
        assert_eq!(remainder_difference::<true>(0.3, 0.2, 0.0), 0.0);
        assert!(remainder_difference::<true>(0.3, 500.0, 0.1).is_finite());
        assert!(remainder_difference::<true>(-90.0, 0.5, 0.1).abs() < 1e-6);
    }
}
