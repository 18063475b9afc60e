//! DP-Fast MH to the letter (Zhang & Zhang 2023, Algorithm 2), for comparison on real rows
//! without privacy. **Not private**; mathematics, section 12, says why.

use rand_distr::StandardNormal;
use rand_distr::weighted::WeightedAliasIndex;

use super::secret::Secret;
use super::secret_rng::SecretRng;
use crate::engine::{Grid, RatioSum};

/// The rows' own bounds `c_i` of `|r_i|/‖θ'−θ‖`, which the algorithm takes from the rows.
pub(in crate::trusted::privacy) struct RowRates {
    /// `c_i`.
    each: Vec<f64>,
    /// `C = Σ c_i`.
    pub total: f64,
    /// `max c_i`.
    pub largest: f64,
    table: WeightedAliasIndex<f64>,
}

impl RowRates {
    /// # Errors
    /// A message where no row has a positive finite rate.
    pub fn new(each: Vec<f64>) -> Result<Self, String> {
        let table = WeightedAliasIndex::new(each.clone())
            .map_err(|e| format!("rows cannot be drawn by their bounds: {e}"))?;
        Ok(RowRates {
            total: each.iter().sum(),
            largest: each.iter().copied().fold(0.0, f64::max),
            each,
            table,
        })
    }

    /// Draws `count` rows, row i with probability `c_i/C`, from the alias table.
    pub fn draw(&self, rng: &mut SecretRng, count: u64, listed: &mut Vec<u64>) {
        listed.clear();
        listed.extend((0..count).map(|_| rng.sample::<usize>(&self.table) as u64));
    }

    /// TunaMH's estimate from the drawn rows (Zhang 2020, Algorithm 1), nats. `length` is
    /// ‖θ'−θ‖, `steps` the rows' ratios on `grid`.
    pub fn estimate(
        &self,
        rng: &mut SecretRng,
        rows: &[u64],
        steps: &Secret<Vec<i32>>,
        grid: Grid,
        lambda: f64,
        length: f64,
    ) -> Secret<f64> {
        let big = self.total * length;
        let mut sum = 0.0;
        for (&row, &q) in rows.iter().zip(steps.peek()) {
            let rate = self.each.get(row as usize).copied().unwrap_or(0.0);
            let bound = rate * length;
            // The grid's rounding may pass the row's own bound.
            let ratio = (f64::from(q) * grid.step()).clamp(-bound, bound);
            let keep =
                (lambda * rate + self.total * 0.5 * (bound - ratio)) / (rate * (lambda + big));
            if rng.uniform() < keep {
                sum += 2.0 * (self.total * ratio / (rate * (big + 2.0 * lambda))).atanh();
            }
        }
        Secret::seal(sum)
    }
}

/// R of all rows, nats.
pub(in crate::trusted::privacy) fn all_rows(sum: Secret<RatioSum>, grid: Grid) -> Secret<f64> {
    Secret::seal(sum.open().steps as f64 * grid.step())
}

/// Metropolis with Gaussian noise of standard deviation `sd` and its penalty; with neither
/// where `sd` is 0. (Read literally the penalty would stay without noise.)
pub(in crate::trusted::privacy) fn published_metropolis(
    rng: &mut SecretRng,
    ratio: Secret<f64>,
    sd: f64,
    public: f64,
) -> bool {
    let noise = if sd > 0.0 {
        sd * rng.sample::<f64>(&StandardNormal) - 0.5 * sd * sd
    } else {
        0.0
    };
    let log_ratio = ratio.open() + public + noise;
    // One uniform a decision, so that the stream does not depend on the outcome.
    let u = rng.uniform();
    log_ratio >= 0.0 || u < log_ratio.exp()
}
