//! DP-Fast MH (Zhang & Zhang 2023, Algorithm 2) to the letter, where it adds no noise: kept
//! here, on made-up ratios, because its claim is false. No sampler of data can reach it.
//!
//! B ~ Poisson(λ + C‖θ'−θ‖). Where B < K a minibatch is drawn and thinned as in TunaMH and has
//! sensitivity `Δ₁ = 2 log(1 + C‖θ'−θ‖/λ)`; otherwise all rows are read, `Δ₂ = 2 max c_i‖θ'−θ‖`.
//! Where `Δ₁ ≤ εC/(6K max c_i)`, or `Δ₂ ≤ ε`, no noise is added ("privacy for free") and the
//! move is accepted with probability `min(1, e^{R̂ + h})`. (Read literally the penalty of the
//! noise stays when there is none; nothing would move then.) c_i is the same public number for
//! every row, which is kinder than the paper's, computed from private rows.
//!
//! Why it is not private: on flat rows R̂ = 0, and no move with h = 0 is ever rejected. With
//! one row of ratio −c the move is rejected with probability 1 − e^−c, whatever K, λ and the
//! batch: `E e^R̂ = e^R` exactly, and R̂ ≤ 0.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Poisson};

use super::AuditError;
use super::bound::Histogram;

/// Claimed for one step.
pub(super) const EPSILON: f64 = 0.05;
/// Rows N.
const ROWS: usize = 10_000;
/// λ.
const LAMBDA: f64 = 300.0;
/// Bound on a row's |log ratio|, c_i‖θ'−θ‖.
const CLIP: f64 = 0.003;
/// K.
const CAP: f64 = 400.0;

/// The algorithm on flat rows, the last of which is not flat on D'.
pub(super) struct FastMh {
    rng: ChaCha20Rng,
    batch: Poisson<f64>,
}

impl FastMh {
    /// Coins from `seed`, or from the operating system.
    ///
    /// # Errors
    /// [`AuditError`] where the batch has no law.
    pub fn worst_case(seed: Option<u64>) -> Result<Self, AuditError> {
        let batch = Poisson::new(LAMBDA + ROWS as f64 * CLIP)
            .map_err(|e| AuditError::setting("algorithm", e.to_string()))?;
        let seed = seed.unwrap_or_else(rand::random);
        Ok(FastMh {
            rng: ChaCha20Rng::seed_from_u64(seed),
            batch,
        })
    }

    /// `runs` runs of `steps` moves with public part h, on D or D'.
    pub fn repeat(&mut self, neighbour: bool, h: f64, steps: u32, runs: u64) -> Histogram {
        let last = if neighbour { -CLIP } else { 0.0 };
        let mut histogram = Histogram::new(steps);
        for _ in 0..runs {
            histogram.add((0..steps).map(|_| u32::from(self.accepts(last, h))).sum());
        }
        histogram
    }

    /// One step; `last`: log ratio of the last row, the others' being 0.
    fn accepts(&mut self, last: f64, h: f64) -> bool {
        let size = self.batch.sample(&mut self.rng);
        // Δ₁ and Δ₂ are within the limits under which no noise is added: see the tests.
        let estimate = if size < CAP {
            self.minibatch(size as u64, last)
        } else {
            last
        };
        let log_ratio = estimate + h;
        self.rng.random::<f64>() < log_ratio.exp()
    }

    /// R̂ of a minibatch (TunaMH, Zhang 2020, Algorithm 1).
    fn minibatch(&mut self, size: u64, last: f64) -> f64 {
        let rate = LAMBDA / ROWS as f64;
        let mut sum = 0.0;
        for _ in 0..size {
            let row = self.rng.random_range(0..ROWS);
            let ratio = if row + 1 == ROWS { last } else { 0.0 };
            let keep = (rate + 0.5 * (CLIP - ratio)) / (rate + CLIP);
            if self.rng.random::<f64>() < keep {
                sum += 2.0 * (ratio / (2.0 * rate + CLIP)).atanh();
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_branch_adds_noise() {
        let (rows, big) = (ROWS as f64, ROWS as f64 * CLIP);
        let first = 2.0 * (big / LAMBDA).ln_1p();
        assert!(first <= EPSILON * rows / (6.0 * CAP), "{first}");
        const { assert!(2.0 * CLIP <= EPSILON) };
    }

    /// Rejected never on D, and with probability 1 − e^−c on D': 6 standard errors (2e-9).
    #[test]
    fn a_rejection_is_impossible_on_flat_rows_alone() {
        let n = 100_000;
        let mut runs = FastMh::worst_case(Some(1)).unwrap();
        let rejected = |h: Histogram| h.seen(0);
        assert_eq!(rejected(runs.repeat(false, 0.0, 1, n)), 0);
        let expected = n as f64 * -(-CLIP).exp_m1();
        let seen = rejected(runs.repeat(true, 0.0, 1, n)) as f64;
        assert!(
            (seen - expected).abs() < 6.0 * expected.sqrt(),
            "{seen} {expected}"
        );
    }
}
