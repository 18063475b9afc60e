//! Exact discrete Gaussian on the integers (Canonne, Kamath & Steinke 2020, Algorithms
//! 1–3): `Pr[ξ = k] ∝ exp(−k²/(2S))`, variance parameter S an integer.

use num_bigint::BigUint;

use super::bernoulli_exp::bernoulli_exp;
use super::secret_rng::SecretRng;

/// Largest S of decisions, moments and gradients: keeps |ξ|·t within i128 with room to spare.
pub(in crate::trusted::privacy) const MAX_VARIANCE: u128 = 1 << 100;
/// Largest S of an anchor's sums, whose units are fine and whose τ is large where ε is small: |ξ|·t
/// still fits a u128 up to 2^16 standard deviations, and is taken in floating point and big
/// integers beyond.
pub(in crate::trusted::privacy) const MAX_ANCHOR_VARIANCE: u128 = 1 << 112;

/// One draw; `1 ≤ variance ≤ MAX_ANCHOR_VARIANCE` in squared grid steps.
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
pub(in crate::trusted::privacy) fn noise_for_benchmarks(n: u64, variance: u128) -> i128 {
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

    /// Chi-square of counts against expectations, cells of under 20 taken together; an
    /// alarm has probability 1e-8 (the statistic's own law is close to its limit there).
    fn assert_fits(name: &str, cells: &[(f64, f64)]) {
        use statrs::distribution::{ChiSquared, ContinuousCDF};
        type Cells<'a> = Vec<&'a (f64, f64)>;
        let (large, small): (Cells, Cells) = cells.iter().partition(|c| c.1 >= 20.0);
        let rest: (f64, f64) = small.iter().fold((0.0, 0.0), |s, c| (s.0 + c.0, s.1 + c.1));
        let kept = large
            .iter()
            .copied()
            .chain((rest.1 >= 20.0).then_some(&rest));
        let chi: f64 = kept.map(|(seen, e)| (seen - e).powi(2) / e).sum();
        let freedom = large.len() as f64;
        let limit = ChiSquared::new(freedom).unwrap().inverse_cdf(1.0 - 1e-8);
        assert!(chi < limit, "{name}: {chi} > {limit}");
        // What is too rare for a cell must be rare.
        assert!(
            rest.0 < 20.0 + rest.1 + 8.0 * rest.1.sqrt(),
            "{name}: tails"
        );
    }

    /// From the smallest variance to scales where the proposal is nearly continuous:
    /// probabilities, sign, and residues (every integer is in the support).
    #[test]
    fn matches_exact_probabilities() {
        let mut rng = SecretRng::from_seed(7, 0);
        for variance in [1u128, 2, 3, 10, 97, 10_000, 1 << 20] {
            let draws: Vec<i128> = (0..200_000)
                .map(|_| discrete_gaussian(&mut rng, variance))
                .collect();
            let n = draws.len() as f64;
            let sd = (variance as f64).sqrt();
            let reach = (12.0 * sd) as i128 + 2;
            // 12 standard deviations: probability under 1e-26 for all draws together.
            assert!(
                draws.iter().all(|k| k.abs() <= reach),
                "variance {variance}"
            );
            let weight = |k: i128| (-((k * k) as f64) / (2.0 * variance as f64)).exp();
            let total: f64 = (-reach..=reach).map(weight).sum();

            let width = ((sd / 4.0) as i128).max(1);
            let cells = (2 * reach / width + 1) as usize;
            let cell = |k: i128| ((k + reach) / width) as usize;
            let mut table = vec![(0.0, 0.0); cells];
            (-reach..=reach).for_each(|k| table[cell(k)].1 += n * weight(k) / total);
            draws.iter().for_each(|&k| table[cell(k)].0 += 1.0);
            assert_fits(&format!("variance {variance}"), &table);

            let zero = n * weight(0) / total;
            let mut signs = [
                (0.0, 0.5 * (n - zero)),
                (0.0, zero),
                (0.0, 0.5 * (n - zero)),
            ];
            draws
                .iter()
                .for_each(|k| signs[(k.signum() + 1) as usize].0 += 1.0);
            assert_fits(&format!("signs at variance {variance}"), &signs);

            for modulus in [2i128, 3, 7] {
                let mut residues = vec![(0.0, 0.0); modulus as usize];
                for k in -reach..=reach {
                    residues[k.rem_euclid(modulus) as usize].1 += n * weight(k) / total;
                }
                for k in &draws {
                    residues[k.rem_euclid(modulus) as usize].0 += 1.0;
                }
                assert_fits(&format!("mod {modulus} at variance {variance}"), &residues);
            }
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
