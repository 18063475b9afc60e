//! f32 row functions, written without branches so that a loop over lanes vectorises.
//!
//! Twins: `shaders/model/*.wgsl`, and in f64 the models' own.

use crate::data::TILE;
use crate::math::single::ROUND;
pub(super) use crate::math::single::{
    clamp, exp, exp_m1, is_nan, ln, ln_1p, multiply_add, softplus_difference,
};

/// Values of one quantity for the 16 rows of a tile.
pub(super) type Lanes = [f32; TILE];

/// `yδ − e^η(e^δ − 1)`, both exponents cut at ±87.
#[inline(always)]
pub(super) fn poisson_ratio<const FMA: bool>(y: f32, eta: f32, delta: f32) -> f32 {
    let growth = exp::<FMA>(eta) * exp_m1::<FMA>(clamp(delta, -87.0, 87.0));
    // As in `softplus_difference`.
    if is_nan(eta) | is_nan(delta) {
        f32::NAN
    } else {
        y * delta - growth
    }
}

/// `Σ a_k T_k(t)` (Clenshaw).
#[inline(always)]
pub(super) fn chebyshev<const FMA: bool>(series: &[f32], t: f32) -> f32 {
    let (mut b1, mut b2) = (0.0f32, 0.0f32);
    for &a in series.iter().skip(1).rev() {
        (b1, b2) = (multiply_add::<FMA>(2.0 * t, b1, a - b2), b1);
    }
    multiply_add::<FMA>(t, b1, series.first().copied().unwrap_or(0.0) - b2)
}

/// `(tanh z, 1 − tanh² z)`, each to a few ulp.
#[inline(always)]
pub(super) fn tanh<const FMA: bool>(z: f32) -> (f32, f32) {
    let e = exp_m1::<FMA>(clamp(2.0 * z.abs(), 0.0, 80.0));
    let u = 1.0 / (e + 2.0);
    let slope = 4.0 * ((e + 1.0) * u) * u;
    if is_nan(z) {
        (f32::NAN, f32::NAN)
    } else {
        ((e * u).copysign(z), slope)
    }
}

/// `(tanh z, tanh(z + δ) − tanh z)`, the change as `(1 − t²)τ/(1 + tτ)` with t = tanh z,
/// τ = tanh δ where δ is small, as the plain difference where it is not.
#[inline(always)]
pub(super) fn tanh_change<const FMA: bool>(z: f32, delta: f32) -> (f32, f32) {
    let (t, slope) = tanh::<FMA>(z);
    let small = delta.abs() <= 0.5;
    let (other, _) = tanh::<FMA>(if small { delta } else { z + delta });
    let near = slope * other / (1.0 + t * other);
    (t, if small { near } else { other - t })
}

/// A row's ratio in grid steps: nearest, ties to even, NaN → 0, clamped as an integer.
#[inline(always)]
pub(super) fn quantize(steps: f32, bound: i32) -> i32 {
    let finite = clamp(steps, -1_048_577.0, 1_048_577.0);
    let rounded = ((finite + ROUND).to_bits() as i32).wrapping_sub(0x4b40_0000);
    let rounded = if is_nan(steps) { 0 } else { rounded };
    let rounded = if rounded > bound { bound } else { rounded };
    if rounded < -bound { -bound } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each exponential to a few ulp; their arguments are given in f32.
        #[test]
        fn poisson_ratio_is_accurate(y in 0u8..50, a in -20f32..20.0, log in -20f32..3.0, up in any::<bool>()) {
            let d = if up { log.exp() } else { -log.exp() };
            let y = f32::from(y);
            let growth = f64::from(a).exp() * f64::from(d).exp_m1();
            let exact = f64::from(y) * f64::from(d) - growth;
            for ours in [poisson_ratio::<true>(y, a, d), poisson_ratio::<false>(y, a, d)] {
                let allowed = 2e-6 * growth.abs() + 2e-7 * f64::from((y * d).abs());
                prop_assert!((f64::from(ours) - exact).abs() <= allowed, "{y} {a} {d}: {ours} for {exact}");
            }
        }

        #[test]
        fn tanh_changes_are_accurate(z in -12f32..12.0, log in -20f32..3.0, up in any::<bool>()) {
            let d = if up { log.exp() } else { -log.exp() };
            let (a, b) = (f64::from(z), f64::from(d));
            let exact = b.sinh() / (a.cosh() * (a + b).cosh());
            let slope = 1.0 / (a.cosh() * a.cosh());
            for (t, s, change) in [
                (tanh::<true>(z).0, tanh::<true>(z).1, tanh_change::<true>(z, d).1),
                (tanh::<false>(z).0, tanh::<false>(z).1, tanh_change::<false>(z, d).1),
            ] {
                prop_assert!((f64::from(t) - a.tanh()).abs() <= 3e-7 * a.tanh().abs());
                prop_assert!((f64::from(s) - slope).abs() <= 4e-6 * slope);
                let rounding = if d.abs() > 0.5 { 3e-7 } else { 0.0 };
                let error = (f64::from(change) - exact).abs();
                prop_assert!(error <= 6e-6 * exact.abs() + rounding, "{z} {d}: {change} for {exact}");
            }
        }

        #[test]
        fn quantize_matches_the_oracle(steps in -3e6f32..3e6, bound in 524_289i32..1_048_576) {
            let oracle = (steps.round_ties_even() as i32).clamp(-bound, bound);
            prop_assert_eq!(quantize(steps, bound), oracle);
        }
    }

    #[test]
    fn special_values_stay_within_the_bound() {
        let nan = f32::NAN;
        assert_eq!(quantize(nan, 600_000), 0);
        assert_eq!(quantize(-nan, 600_000), 0);
        assert_eq!(quantize(f32::INFINITY, 600_000), 600_000);
        assert_eq!(quantize(f32::NEG_INFINITY, 600_000), -600_000);
        assert!(poisson_ratio::<true>(2.0, nan, 1.0).is_nan());
        assert!(poisson_ratio::<true>(2.0, 1.0, nan).is_nan());
    }
}
