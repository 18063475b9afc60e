//! Heikkilä's subsampled Barker test (Heikkilä 2019, section 4; docs/proofs/guarantee.md):
//! b rows drawn without replacement by secret coins, and exact discrete noise of a variance
//! that depends on them.

use std::collections::HashSet;

use super::discrete_gaussian::discrete_gaussian;
use super::secret::Secret;
use super::secret_rng::SecretRng;
use crate::engine::Grid;
use crate::math::Correction;

/// Draws `batch` ≤ `rows` distinct row numbers, every subset equally likely (Floyd's
/// algorithm; Bentley & Floyd 1987), with exact uniforms.
pub(in crate::trusted::privacy) fn draw_subset(
    rng: &mut SecretRng,
    rows: usize,
    batch: usize,
    listed: &mut Vec<u64>,
) {
    listed.clear();
    let mut taken = HashSet::with_capacity(batch);
    for last in rows.saturating_sub(batch) as u64..rows as u64 {
        let row = rng.below(last + 1);
        let row = if taken.insert(row) { row } else { last };
        taken.insert(row);
        listed.push(row);
    }
}

/// The noise of one test: what the public settings make of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::trusted::privacy) struct BatchNoise {
    /// C in squared steps of the grid γN/b, rounded down.
    pub total: u128,
    /// N/b.
    pub factor: f64,
}

/// Accept iff `R* + h + ξ + V_cor > 0`, `R* = (N/b) Σ r_i` over the batch, ξ a discrete
/// Gaussian of variance `C − s²` on the grid γN/b that R* lies on. In its squared steps s²,
/// the variance of R* with divisor b, is `Σq² − (Σq)²/b`.
///
/// Privacy: with `|r_i| ≤ √b/N` the noisy R* is charged (`docs/proofs/guarantee.md`); all that
/// follows is post-processing.
pub(in crate::trusted::privacy) fn subsampled_barker(
    rng: &mut SecretRng,
    steps: &Secret<Vec<i32>>,
    grid: Grid,
    noise: BatchNoise,
    correction: &Correction,
    public: f64,
) -> bool {
    let (sum, variance) = moments(steps.peek());
    // At least C − 1 > 0 where the clip is the one that was paid for.
    let left = noise.total.saturating_sub(variance).max(1);
    let noisy = (sum + discrete_gaussian(rng, left)) as f64;
    noisy * grid.step() * noise.factor + public + correction.draw(|| rng.bits64()) > 0.0
}

/// Σq, and `Σq² − (Σq)²/b` rounded up.
fn moments(steps: &[i32]) -> (i128, u128) {
    let batch = steps.len().max(1) as u128;
    let sum: i128 = steps.iter().map(|&q| i128::from(q)).sum();
    let squares: u128 = steps
        .iter()
        .map(|&q| u128::from(q.unsigned_abs()).pow(2))
        .sum();
    let scatter = batch * squares - sum.unsigned_abs().pow(2);
    (sum, scatter.div_ceil(batch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::normal::below;

    /// Every pair of five rows is drawn equally often: 10 cells, chi-square above 60 has
    /// probability under 2e-9.
    #[test]
    fn subsets_are_equally_likely_and_without_repeats() {
        let mut rng = SecretRng::from_seed(2, 0);
        let mut listed = Vec::new();
        let mut seen = std::collections::BTreeMap::new();
        let n = 100_000;
        for _ in 0..n {
            draw_subset(&mut rng, 5, 2, &mut listed);
            listed.sort_unstable();
            assert!(listed.len() == 2 && listed[0] < listed[1] && listed[1] < 5);
            *seen.entry(listed.clone()).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 10);
        let expected = f64::from(n) / 10.0;
        let chi: f64 = seen
            .values()
            .map(|&k| (f64::from(k) - expected).powi(2) / expected)
            .sum();
        assert!(chi < 60.0, "{chi}");
        draw_subset(&mut rng, 7, 7, &mut listed);
        listed.sort_unstable();
        assert_eq!(listed, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_variance_has_divisor_b_and_is_rounded_up() {
        assert_eq!(moments(&[3, -1, 4]), (6, 14));
        assert_eq!(moments(&[1, 0, 0]), (1, 1));
        assert_eq!(moments(&[5, 5, 5]), (15, 0));
    }

    /// Given its batch a test accepts with the probability of its formula, at batches of
    /// no, of some and of the largest variance, within 6 standard errors (2e-9). Noise of
    /// variance C for C − s² moves it by 5 of them at least.
    #[test]
    fn a_batch_is_accepted_with_the_stated_probability() {
        let mut rng = SecretRng::from_seed(12, 0);
        let (batch, rows) = (100usize, 1000usize);
        let grid = Grid::new((batch as f64).sqrt() / rows as f64 * (1.0 - 2e-6)).unwrap();
        let factor = rows as f64 / batch as f64;
        let unit = grid.step() * factor;
        let noise = BatchNoise {
            total: (2.0 / (unit * unit)) as u128,
            factor,
        };
        let correction = Correction::fit(2.0).unwrap();
        let n = 300_000;
        let bound = grid.bound();
        for (high, public) in [(100usize, 0.0), (50, 1.0), (50, -2.0), (80, -3.0)] {
            let q: Vec<i32> = (0..batch)
                .map(|i| if i < high { bound } else { -bound })
                .collect();
            let (sum, scatter) = moments(&q);
            let left = 2.0 - scatter as f64 * unit * unit;
            assert!((1.0 - 1e-5..=2.0).contains(&left), "{left}");
            let p: f64 = correction
                .components()
                .iter()
                .map(|c| {
                    let z = sum as f64 * unit + public;
                    let sd = (left + c.sd * c.sd).sqrt();
                    0.5 * c.weight * (below((z - c.mean) / sd) + below((z + c.mean) / sd))
                })
                .sum();
            let sealed = Secret::seal(q);
            let accepted = (0..n)
                .filter(|_| subsampled_barker(&mut rng, &sealed, grid, noise, &correction, public))
                .count();
            let rate = accepted as f64 / f64::from(n);
            let error = (p * (1.0 - p) / f64::from(n)).sqrt();
            assert!(
                (rate - p).abs() < 6.0 * error,
                "{public}: {rate} against {p}"
            );
        }
    }
}
