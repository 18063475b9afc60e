//! Noise on exact gradient sums, coordinate by coordinate on their integer grid, and the
//! Poisson sample of rows that they may be over.

use super::discrete_gaussian::discrete_gaussian;
use super::secret::Secret;
use super::secret_rng::SecretRng;
use crate::engine::GradientSum;

/// A sampling rate in units of 2^-64, rounded down, so that its coins are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trusted::privacy) struct SampleRate(u64);

impl SampleRate {
    /// Of q ∈ (0, 1); `None` outside, or where nothing is left of it.
    pub fn new(rate: f64) -> Option<Self> {
        let units = rate * f64::powi(2.0, 64);
        (rate < 1.0 && units >= 1.0).then_some(SampleRate(units as u64))
    }

    /// The rate that the coins have.
    pub fn value(self) -> f64 {
        self.0 as f64 * f64::powi(2.0, -64)
    }
}

/// Lists each of `rows` row numbers with probability `rate`, independently: 64 coins at a time,
/// whose bits are compared with the rate's from the top until all differ.
pub(in crate::trusted::privacy) fn draw_poisson_rows(
    rng: &mut SecretRng,
    rows: usize,
    rate: SampleRate,
    listed: &mut Vec<u64>,
) {
    listed.clear();
    for start in (0..rows as u64).step_by(64) {
        let mut open = u64::MAX;
        let mut taken = 0u64;
        for bit in (0..64).rev() {
            let coins = rng.bits64();
            if rate.0 >> bit & 1 == 1 {
                // A coin of 0 here lies under the rate.
                taken |= open & !coins;
                open &= coins;
            } else {
                open &= !coins;
            }
            if open == 0 {
                break;
            }
        }
        while taken != 0 {
            let row = start + u64::from(taken.trailing_zeros());
            if row < rows as u64 {
                listed.push(row);
            }
            taken &= taken - 1;
        }
    }
}

/// The noisy sums, grid steps; `variance` in squared grid steps, 0 releases exactly (not
/// private).
///
/// Privacy: independent discrete Gaussians on the integers. On all rows substitution moves
/// the sums by Δ in L2, Δ²/(2σ²)-zCDP (Canonne, Kamath & Steinke 2020, Theorem 4, composed
/// over coordinates); on a Poisson sample see `docs/proofs/accounting.md`.
pub(in crate::trusted::privacy) fn noisy_gradient(
    rng: &mut SecretRng,
    sum: Secret<GradientSum>,
    variance: u128,
) -> Vec<f64> {
    let steps = sum.open().steps;
    steps
        .into_iter()
        .map(|s| {
            let noise = if variance == 0 {
                0
            } else {
                discrete_gaussian(rng, variance)
            };
            (i128::from(s) + noise) as f64
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row's frequency, each pair's, and the batch size's variance within 6 standard
    /// errors (some 70 comparisons: false alarm 1.4e-7).
    #[test]
    fn rows_are_drawn_independently_at_the_rate() {
        let mut rng = SecretRng::from_seed(11, 0);
        for rate in [0.5, 0.01, 0.9, 0.123_456_7] {
            let q = SampleRate::new(rate).unwrap();
            assert!(q.value() <= rate && q.value() > rate * (1.0 - 1e-15));
            let (rows, rounds) = (67usize, 40_000u32);
            let mut counts = vec![0u32; rows];
            let (mut both, mut squares) = (0u32, 0.0);
            let mut listed = Vec::new();
            for _ in 0..rounds {
                draw_poisson_rows(&mut rng, rows, q, &mut listed);
                assert!(listed.is_sorted_by(|a, b| a < b));
                listed.iter().for_each(|&i| counts[i as usize] += 1);
                both += u32::from(listed.contains(&3) && listed.contains(&64));
                squares += (listed.len() as f64 - rate * rows as f64).powi(2);
            }
            let n = f64::from(rounds);
            let close = |count: u32, p: f64| {
                (f64::from(count) - n * p).abs() < 6.0 * (n * p * (1.0 - p)).sqrt().max(3.0)
            };
            assert!(counts.iter().all(|c| close(*c, rate)), "{rate}: {counts:?}");
            assert!(close(both, rate * rate), "{rate}: {both}");
            let variance = rows as f64 * rate * (1.0 - rate);
            // The fourth moment of a binomial is under 3V² + V.
            let error = 6.0 * ((2.0 + 1.0 / variance) / n).sqrt();
            assert!((squares / n / variance - 1.0).abs() < error, "{rate}");
        }
        assert!(SampleRate::new(1.0).is_none() && SampleRate::new(0.0).is_none());
        assert!(SampleRate::new(f64::NAN).is_none() && SampleRate::new(1e-30).is_none());
    }
}
