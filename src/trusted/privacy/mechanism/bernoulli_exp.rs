//! Exact Bernoulli(e^−x) for rational x ≥ 0: a 64-bit comparison decides at once
//! unless the uniform falls within 2^-40 of the threshold; then big integers decide.

use num_bigint::BigUint;

use super::secret_rng::SecretRng;

/// Relative error assumed of f64 `exp` and of the caller's f64 `x`, absolute on x:
/// generous by a factor above 500 for x ≤ 64.
const SLACK: f64 = 1.0 / (1u64 << 40) as f64;

/// One draw of Bernoulli(e^−x).
///
/// `x`: f64 within 2^-45 (absolute for x ≤ 1, relative above) of the exact rational
/// `exact()` = numerator / denominator. The answer depends on the rational alone.
pub(super) fn bernoulli_exp(
    rng: &mut SecretRng,
    x: f64,
    exact: impl FnOnce() -> (BigUint, BigUint),
) -> bool {
    let u = rng.bits64();
    // Above x = 44 the relative slack no longer covers 2^-64 steps: let integers decide.
    let p = (-x).exp() * 18_446_744_073_709_551_616.0; // 2^64
    let margin = p * SLACK * (1.0 + x) + 2.0;
    let value = u as f64;
    // `u as f64` rounds by at most 2^11 near 2^64, which the next line covers.
    let margin = margin + value * f64::EPSILON;
    if value + 1.0 < p - margin {
        return true;
    }
    if value > p + margin {
        return false;
    }
    let (numerator, denominator) = exact();
    refine(rng, u, &numerator, &denominator)
}

/// Compares U ∈ [u, u+1)·2^-64 with e^−(n/d) at growing precision until it is decided.
fn refine(rng: &mut SecretRng, u: u64, numerator: &BigUint, denominator: &BigUint) -> bool {
    let mut uniform = BigUint::from(u);
    let mut bits = 64usize;
    loop {
        for _ in 0..2 {
            uniform = (uniform << 64u32) + BigUint::from(rng.bits64());
            bits += 64;
        }
        let (low, high) = exp_negative(numerator, denominator, bits + 64);
        let (low, high) = (low >> 64u32, (high >> 64u32) + 1u32);
        if uniform < low {
            return true;
        }
        if uniform >= high {
            return false;
        }
    }
}

/// Bounds on e^−(n/d)·2^bits. Halves x until it is under 1/2, sums Taylor terms with
/// directed rounding, squares back; each squaring at most doubles the width.
pub(super) fn exp_negative(
    numerator: &BigUint,
    denominator: &BigUint,
    bits: usize,
) -> (BigUint, BigUint) {
    let whole = (numerator / denominator).bits() as usize + 1;
    let guard = 2 * whole + 32;
    let precision = bits + guard;
    let one = BigUint::from(1u32) << precision;
    // x / 2^whole in fixed point, rounded down and up.
    let scaled = (numerator << precision) / (denominator << whole);
    let series = |x: &BigUint, up: bool| -> BigUint {
        // e^x by positive terms, then inverted: no cancellation.
        let (mut term, mut sum, mut k) = (one.clone(), one.clone(), 1u32);
        while term > BigUint::from(0u32) {
            term = ((&term * x) >> precision) / k;
            if up {
                term += 1u32;
                if term == BigUint::from(1u32) {
                    // The tail after a vanishing term is under two steps.
                    return sum + 4u32;
                }
            }
            sum += &term;
            k += 1;
        }
        sum
    };
    let upper = series(&(&scaled + 1u32), true);
    let lower = series(&scaled, false);
    let square = BigUint::from(1u32) << (2 * precision);
    let mut low = &square / upper;
    let mut high = &square / lower + 1u32;
    for _ in 0..whole {
        low = (&low * &low) >> precision;
        high = ((&high * &high) >> precision) + 1u32;
    }
    (low >> guard, (high >> guard) + 1u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_bounds_bracket_the_exponential() {
        for (n, d) in [(0u32, 1u32), (1, 3), (1, 1), (7, 2), (40, 1), (1, 1000)] {
            let (low, high) = exp_negative(&BigUint::from(n), &BigUint::from(d), 128);
            let p = (-f64::from(n) / f64::from(d)).exp();
            let scale = f64::powi(2.0, 128);
            let to_f64 = |v: &BigUint| -> f64 {
                v.to_u64_digits()
                    .iter()
                    .rev()
                    .fold(0.0, |a, &w| a * f64::powi(2.0, 64) + w as f64)
                    / scale
            };
            assert!(low <= high);
            assert!((to_f64(&low) - p).abs() <= 1e-14 * p + 1e-36, "{n}/{d}");
            assert!(&high - &low < BigUint::from(1u64 << 20), "{n}/{d}");
        }
    }

    #[test]
    fn refinement_decides_by_the_rational() {
        let mut rng = SecretRng::from_seed(1, 0);
        // e^-1 = 0.3678794…: uniforms well on either side.
        let one = BigUint::from(1u32);
        let below = (0.367_879_4 * 18_446_744_073_709_551_616.0) as u64;
        let above = (0.367_879_5 * 18_446_744_073_709_551_616.0) as u64;
        assert!(refine(&mut rng, below, &one, &one));
        assert!(!refine(&mut rng, above, &one, &one));
    }
}
