//! Exact discrete Gaussian on the integers (Canonne, Kamath & Steinke 2020, Algorithms
//! 1–3): `Pr[ξ = k] ∝ exp(−k²/(2S))`, variance parameter S an integer.

use num_bigint::BigUint;

use super::bernoulli_exp::bernoulli_exp;
use super::secret_rng::SecretRng;

/// Largest S: keeps |ξ|·t within i128 with room to spare.
pub(in crate::privacy) const MAX_VARIANCE: u128 = 1 << 100;

/// One draw; `1 ≤ variance ≤ MAX_VARIANCE` in squared grid steps.
pub(super) fn discrete_gaussian(rng: &mut SecretRng, variance: u128) -> i128 {
    // t = ⌊√S⌋ + 1.
    let t = variance.isqrt() + 1;
    let (s, tf) = (variance as f64, t as f64);
    loop {
        let y = discrete_laplace(rng, t);
        // Accept with exp(−(|y| − S/t)²/(2S)) = exp(−(|y|t − S)²/(2St²)).
        let gap = y.unsigned_abs() as f64 * tf - s;
        // Cancellation near |y|t = S: take the difference in integers.
        let exact_gap = y
            .unsigned_abs()
            .checked_mul(t)
            .map(|p| p.abs_diff(variance));
        let gap = exact_gap.map_or(gap, |g| g as f64);
        let x = (gap / s.sqrt() / tf).powi(2) / 2.0;
        let accept = bernoulli_exp(rng, x, || {
            let product = BigUint::from(y.unsigned_abs()) * t;
            let v = BigUint::from(variance);
            let gap = if product >= v {
                product - &v
            } else {
                &v - product
            };
            (&gap * &gap, v * 2u32 * t * t)
        });
        if accept {
            return y;
        }
    }
}

/// Sum of `n` draws from a fixed seed: noise that never hides anything, for benchmarks.
pub(in crate::privacy) fn noise_for_benchmarks(n: u64, variance: u128) -> i128 {
    let mut rng = SecretRng::from_seed(1, 0);
    (0..n).map(|_| discrete_gaussian(&mut rng, variance)).sum()
}

/// Discrete Laplace of scale t: `Pr[y] ∝ exp(−|y|/t)`.
fn discrete_laplace(rng: &mut SecretRng, t: u128) -> i128 {
    loop {
        let u = below(rng, t);
        let x = u as f64 / t as f64;
        if !bernoulli_exp(rng, x, || (BigUint::from(u), BigUint::from(t))) {
            continue;
        }
        let mut v = 0u128;
        while bernoulli_exp(rng, 1.0, || (BigUint::from(1u32), BigUint::from(1u32))) {
            v += 1;
        }
        let magnitude = (u + t * v) as i128;
        let negative = rng.bits64() & 1 == 1;
        if negative && magnitude == 0 {
            continue;
        }
        return if negative { -magnitude } else { magnitude };
    }
}

/// Uniform on 0..n for n up to 2^127, exact.
fn below(rng: &mut SecretRng, n: u128) -> u128 {
    if let Ok(n) = u64::try_from(n) {
        return u128::from(rng.below(n));
    }
    let mask = u128::MAX >> n.leading_zeros();
    loop {
        let u = rng.bits128() & mask;
        if u < n {
            return u;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square against exact probabilities; with 26 cells the statistic exceeds 80
    /// with probability under 1e-7.
    #[test]
    fn matches_exact_probabilities_at_small_scale() {
        let mut rng = SecretRng::from_seed(7, 0);
        for variance in [1u128, 3, 10] {
            let draws = 200_000;
            let mut counts = std::collections::HashMap::new();
            for _ in 0..draws {
                *counts
                    .entry(discrete_gaussian(&mut rng, variance))
                    .or_insert(0u64) += 1;
            }
            let weight = |k: i128| (-(k * k) as f64 / (2.0 * variance as f64)).exp();
            let total: f64 = (-60..=60).map(weight).sum();
            let mut chi = 0.0;
            let mut rest = (draws as f64, draws as f64);
            for k in -12..=12 {
                let expected = draws as f64 * weight(k) / total;
                if expected < 10.0 {
                    continue;
                }
                let seen = *counts.get(&k).unwrap_or(&0) as f64;
                chi += (seen - expected).powi(2) / expected;
                rest.0 -= seen;
                rest.1 -= expected;
            }
            if rest.1 > 10.0 {
                chi += (rest.0 - rest.1).powi(2) / rest.1;
            }
            assert!(chi < 80.0, "variance {variance}: chi-square {chi}");
        }
    }

    /// Mean and variance at σ = 2^20 steps within 6 standard errors (1e-8).
    #[test]
    fn has_the_right_moments_at_large_scale() {
        let mut rng = SecretRng::from_seed(8, 0);
        let (n, variance) = (100_000, 1u128 << 40);
        let sd = f64::powi(2.0, 20);
        let (mut sum, mut square) = (0.0, 0.0);
        for _ in 0..n {
            let z = discrete_gaussian(&mut rng, variance) as f64 / sd;
            sum += z;
            square += z * z;
        }
        let n = f64::from(n);
        assert!((sum / n).abs() < 6.0 / n.sqrt());
        assert!((square / n - 1.0).abs() < 6.0 * (2.0 / n).sqrt());
    }
}
