//! Elementary functions in f32, written without branches so that a loop over lanes vectorises.
//!
//! Relative error of [`softplus_difference`] ≤ 2e-6 + |min(a, a+δ)|·2^-23 for |δ| ≤ 60
//! (tested; the second term is the rounding of a+δ, felt where the ratio is e^−|a|).

pub(crate) const ROUND: f32 = 12_582_912.0; // 1.5·2^23: adding it rounds to an integer
const LN2_HIGH: f32 = 0.693_145_75; // top bits of ln 2: n·LN2_HIGH is exact for |n| < 512
const LN2_LOW: f32 = 1.428_606_8e-6;

/// Fused multiply-add where the instruction set has it, two roundings elsewhere.
#[inline(always)]
pub(crate) fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `(e^f − 1, 2^n)` with `x = n ln 2 + f`, |f| ≤ 0.35; x within ±87.
#[inline(always)]
fn split_exp<const FMA: bool>(x: f32) -> (f32, f32) {
    let shifted = multiply_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let f = multiply_add::<FMA>(n, -LN2_LOW, multiply_add::<FMA>(n, -LN2_HIGH, x));
    // Taylor, degree 7: the remainder at 0.35 is 6e-9 relative.
    let mut p = 1.0 / 5040.0;
    p = multiply_add::<FMA>(p, f, 1.0 / 720.0);
    p = multiply_add::<FMA>(p, f, 1.0 / 120.0);
    p = multiply_add::<FMA>(p, f, 1.0 / 24.0);
    p = multiply_add::<FMA>(p, f, 1.0 / 6.0);
    p = multiply_add::<FMA>(p, f, 0.5);
    p = multiply_add::<FMA>(p * f, f, f);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    (p, power)
}

/// e^x, x clamped to ±87.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    let (p, power) = split_exp::<FMA>(clamp(x, -87.0, 87.0));
    multiply_add::<FMA>(p, power, power)
}

/// e^x − 1 for |x| ≤ 87.
#[inline(always)]
pub(crate) fn exp_m1<const FMA: bool>(x: f32) -> f32 {
    let (p, power) = split_exp::<FMA>(x);
    multiply_add::<FMA>(p, power, power - 1.0)
}

/// log(1 + x) for x ≥ −0.5 (up to 1e38): `n ln 2 + 2 artanh(f/(2+f))`.
#[inline(always)]
pub(crate) fn ln_1p<const FMA: bool>(x: f32) -> f32 {
    let u = 1.0 + x;
    // n such that u·2^-n lies in [0.75, 1.5).
    let n = (u.to_bits().wrapping_sub(0x3f40_0000) as i32) >> 23;
    let scale = f32::from_bits(((127 - n) as u32) << 23);
    // (1+x)·2^-n − 1 without the rounding of 1 + x.
    let f = multiply_add::<FMA>(x, scale, scale - 1.0);
    ln_reduced::<FMA>(n as f32, f)
}

/// log x for x > 0; below 1e-37 as there.
#[inline(always)]
pub(crate) fn ln<const FMA: bool>(x: f32) -> f32 {
    let x = if x < 1e-37 { 1e-37 } else { x };
    let n = (x.to_bits().wrapping_sub(0x3f40_0000) as i32) >> 23;
    let scale = f32::from_bits(((127 - n) as u32) << 23);
    ln_reduced::<FMA>(n as f32, x * scale - 1.0)
}

/// `n ln 2 + log(1 + f)`, |f| ≤ 1/2.
#[inline(always)]
fn ln_reduced<const FMA: bool>(n: f32, f: f32) -> f32 {
    let s = f / (2.0 + f);
    let s2 = s * s;
    let mut p = 1.0 / 11.0;
    p = multiply_add::<FMA>(p, s2, 1.0 / 9.0);
    p = multiply_add::<FMA>(p, s2, 1.0 / 7.0);
    p = multiply_add::<FMA>(p, s2, 0.2);
    p = multiply_add::<FMA>(p, s2, 1.0 / 3.0);
    let series = multiply_add::<FMA>(2.0 * s * s2, p, 2.0 * s);
    multiply_add::<FMA>(n, LN2_HIGH, multiply_add::<FMA>(n, LN2_LOW, series))
}

#[inline(always)]
pub(crate) fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x > low { x } else { low };
    if x < high { x } else { high }
}

/// `softplus(a+δ) − softplus(a)` = `sign(δ) log1p(σ(min(a, a+δ)) expm1(|δ|))`.
#[inline(always)]
pub(crate) fn softplus_difference<const FMA: bool>(a: f32, delta: f32) -> f32 {
    let b = a + delta;
    let low = if a < b { a } else { b };
    let size = clamp(delta.abs(), 0.0, 60.0);
    let odds = 1.0 + exp::<FMA>(-low);
    let value = ln_1p::<FMA>(exp_m1::<FMA>(size) / odds);
    // NaN in, NaN out: clamping must not turn a NaN row into a finite ratio.
    let value = if is_nan(delta) | is_nan(a) {
        f32::NAN
    } else {
        value
    };
    value.copysign(delta)
}

/// By the bits, as on the GPU.
#[inline(always)]
pub(crate) fn is_nan(x: f32) -> bool {
    (x.to_bits() & 0x7fff_ffff) > 0x7f80_0000
}

/// `yδ − e^η(e^δ − 1)`, both exponents cut at ±87.
#[inline(always)]
pub(crate) fn poisson_ratio<const FMA: bool>(y: f32, eta: f32, delta: f32) -> f32 {
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
pub(crate) fn chebyshev<const FMA: bool>(series: &[f32], t: f32) -> f32 {
    let (mut b1, mut b2) = (0.0f32, 0.0f32);
    for &a in series.iter().skip(1).rev() {
        (b1, b2) = (multiply_add::<FMA>(2.0 * t, b1, a - b2), b1);
    }
    multiply_add::<FMA>(t, b1, series.first().copied().unwrap_or(0.0) - b2)
}

/// `(tanh z, 1 − tanh² z)`, each to a few ulp.
#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(z: f32) -> (f32, f32) {
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
pub(crate) fn tanh_change<const FMA: bool>(z: f32, delta: f32) -> (f32, f32) {
    let (t, slope) = tanh::<FMA>(z);
    let small = delta.abs() <= 0.5;
    let (other, _) = tanh::<FMA>(if small { delta } else { z + delta });
    let near = slope * other / (1.0 + t * other);
    (t, if small { near } else { other - t })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math;
    use proptest::prelude::*;

    fn check<const FMA: bool>(a: f32, d: f32) -> Result<(), TestCaseError> {
        let exact = math::softplus_difference(f64::from(a), f64::from(d));
        let ours = f64::from(softplus_difference::<FMA>(a, d));
        let low = a.min(a + d).abs();
        let relative = 2e-6 + f64::from(low) * f64::powi(2.0, -23);
        // Where e^−low leaves f32 the value is under 1e-16|δ|: a grid step is 1e-6 of a clip
        // that is at least of the size of δ.
        let nothing = 1e-16 * f64::from(d.abs());
        prop_assert!(
            (ours - exact).abs() <= relative * exact.abs() + nothing,
            "a {a} d {d}: {ours} against {exact}"
        );
        Ok(())
    }

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
        fn softplus_difference_is_accurate(a in -40f32..40.0, log in -20f32..4.0, up in any::<bool>()) {
            let d = if up { log.exp() } else { -log.exp() };
            check::<true>(a, d)?;
            check::<false>(a, d)?;
        }

        #[test]
        fn logarithms_are_accurate(x in -0.5f32..50.0, log in -80f32..80.0) {
            let exact = f64::from(x).ln_1p();
            prop_assert!((f64::from(ln_1p::<true>(x)) - exact).abs() <= 3e-7 * exact.abs() + 1e-12);
            let v = log.exp();
            let exact = f64::from(v).ln();
            prop_assert!((f64::from(ln::<false>(v)) - exact).abs() <= 3e-7 * exact.abs() + 1e-12);
        }
    }

    #[test]
    fn no_number_stays_none() {
        let nan = f32::NAN;
        assert!(softplus_difference::<true>(nan, 1.0).is_nan());
        assert!(softplus_difference::<true>(1.0, nan).is_nan());
        assert_eq!(softplus_difference::<true>(0.3, 0.0), 0.0);
    }

    #[test]
    fn a_change_from_or_by_nan_is_nan() {
        assert!(poisson_ratio::<true>(2.0, f32::NAN, 1.0).is_nan());
        assert!(poisson_ratio::<true>(2.0, 1.0, f32::NAN).is_nan());
    }
}
