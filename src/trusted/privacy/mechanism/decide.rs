//! From sealed sums to released accept/reject decisions.

use super::coin::{barker_coin, fixed_point, fixed_point_f64};
use super::discrete_gaussian::discrete_gaussian;
use super::poisson::PoissonSampler;
use super::secret::Secret;
use super::secret_rng::SecretRng;
use super::shares::{Drawn, RowShares};
use crate::engine::{Grid, RatioSum};
use crate::math::Correction;

/// An estimate of the log ratio R of one chain, sealed, in fixed point.
pub(in crate::trusted::privacy) type SealedRatio = Secret<i128>;

/// Accept with probability σ(R + h) (docs/proofs/guarantee.md).
///
/// Privacy: substituting one row moves R by at most the sensitivity 2c of its grid, so
/// the bit is (2c)-bounded range.
pub(in crate::trusted::privacy) fn barker(
    rng: &mut SecretRng,
    ratio: SealedRatio,
    public: f64,
) -> bool {
    let logit = ratio.open().saturating_add(fixed_point_f64(public));
    barker_coin(rng, logit)
}

/// Metropolis acceptance min(1, exp(R + h)). **Not private.**
pub(in crate::trusted::privacy) fn metropolis(
    rng: &mut SecretRng,
    ratio: SealedRatio,
    public: f64,
) -> bool {
    let log_ratio = ratio.open().saturating_add(fixed_point_f64(public)) as f64
        * f64::powi(2.0, -super::coin::LOGIT_BITS);
    below_exp(rng, log_ratio)
}

/// Metropolis with penalty: min(1, exp(R + h + ξ − σ²/2)), ξ a discrete Gaussian on the
/// grid with σ² = `variance_steps`·γ (docs/proofs/guarantee.md).
///
/// Privacy: the noisy sum is released; all that follows is post-processing.
pub(in crate::trusted::privacy) fn penalty(
    rng: &mut SecretRng,
    sum: Secret<RatioSum>,
    grid: Grid,
    variance_steps: u64,
    public: f64,
) -> bool {
    // σ²/γ² = variance_steps/γ, an integer for γ = 2^−k.
    let variance = u128::from(variance_steps) << (-grid.exponent()).max(0);
    let noisy = i128::from(sum.open().steps) + discrete_gaussian(rng, variance);
    let log_ratio = noisy as f64 * grid.step() + public - variance_steps as f64 * grid.step() / 2.0;
    below_exp(rng, log_ratio)
}

/// Barker's test with Gaussian noise: accept iff R + h + ξ + V_cor > 0, ξ a discrete
/// Gaussian of `variance` squared grid steps (Heikkilä 2019, eq. 9).
///
/// Privacy: the noisy sum is released; all that follows is post-processing.
pub(in crate::trusted::privacy) fn noisy_barker(
    rng: &mut SecretRng,
    sum: Secret<RatioSum>,
    grid: Grid,
    variance: u128,
    correction: &Correction,
    public: f64,
) -> bool {
    let noisy = i128::from(sum.open().steps) + discrete_gaussian(rng, variance);
    noisy as f64 * grid.step() + public + correction.draw(|| rng.bits64()) > 0.0
}

fn below_exp(rng: &mut SecretRng, log_ratio: f64) -> bool {
    // One uniform a decision, so that the stream does not depend on the outcome.
    let u = (rng.bits64() >> 11) as f64 * f64::powi(2.0, -53);
    log_ratio >= 0.0 || u < log_ratio.exp()
}

/// R of a full-batch sum, in fixed point.
pub(in crate::trusted::privacy) fn full_batch(sum: Secret<RatioSum>, grid: Grid) -> SealedRatio {
    Secret::seal(fixed_point(sum.open().steps, grid.exponent()))
}

/// Draws `B ~ Poisson(rate)` row numbers with replacement into `listed`: uniformly, or in
/// proportion to the rows' public bounds. The list stays inside the curator: neither B nor the rows
/// may be released.
pub(in crate::trusted::privacy) fn draw_rows(
    rng: &mut SecretRng,
    poisson: &PoissonSampler,
    rate: f64,
    (rows, shares): (usize, Option<&RowShares>),
    listed: &mut Vec<u64>,
) {
    let count = poisson.draw(rng, rate);
    listed.clear();
    match shares {
        None => listed.extend((0..count).map(|_| rng.below(rows as u64))),
        Some(shares) => listed.extend((0..count).map(|_| shares.draw(rng))),
    }
}

/// Gives a used buffer back, emptied.
pub(in crate::trusted::privacy) fn recycle(steps: Secret<Vec<i32>>) -> Vec<i32> {
    let mut buffer = steps.open();
    buffer.clear();
    buffer
}

/// `R̂ = Σ over kept of w_i` of the Poisson minibatch (docs/proofs/guarantee.md).
///
/// `drawn`: quantised ratios of the drawn rows; `lambda_per_row` = λ/N. Thinning keeps an
/// occurrence with probability `(λ/N + (c−r)/2)/(λ/N + c)`; `w = 2 artanh(r/(2λ/N + c))`.
/// Where rows have bounds `w_i` of their own, λ/Σw_i takes the place of λ/N, and r_i/w_i of r.
pub(in crate::trusted::privacy) fn poisson_estimate(
    rng: &mut SecretRng,
    drawn: &Drawn<'_>,
    grid: Grid,
    lambda_per_row: f64,
) -> SealedRatio {
    let thinning = Thinning::new(grid, lambda_per_row);
    let mut sum = 0i128;
    for q in drawn.ratios(grid) {
        if u128::from(rng.bits64()) < thinning.threshold(q) {
            sum += thinning.weight(q);
        }
    }
    Secret::seal(sum)
}

/// Which occurrences a Poisson minibatch keeps, and what they weigh.
pub(super) struct Thinning {
    /// Acceptance of a row with r = 0, and its slope, both scaled to 64-bit thresholds.
    base: f64,
    slope: f64,
    weight_scale: f64,
}

impl Thinning {
    pub(super) fn new(grid: Grid, lambda_per_row: f64) -> Self {
        let (a, c) = (lambda_per_row, grid.clip_bound());
        let step = grid.step();
        let scale = f64::powi(2.0, 64) / (a + c);
        Thinning {
            base: (a + c / 2.0) * scale,
            slope: -0.5 * step * scale,
            weight_scale: step / (2.0 * a + c),
        }
    }

    /// 2^64 times the probability of keeping an occurrence of ratio q, grid steps.
    pub(super) fn threshold(&self, q: f64) -> u128 {
        (self.base + self.slope * q) as u128
    }

    /// What it weighs, fixed point; on |q|, so that it is odd to the bit.
    pub(super) fn weight(&self, q: f64) -> i128 {
        let unit = f64::powi(2.0, super::coin::LOGIT_BITS);
        let weight = (2.0 * (q.abs() * self.weight_scale).atanh() * unit) as i128;
        if q < 0.0 { -weight } else { weight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts with the stated probability S′(R + h) at five places, within 6 standard errors
    /// (false alarm 1e-8): noise of half or twice the variance moves it by tens of them.
    #[test]
    fn noisy_barker_accepts_with_the_stated_probability() {
        let mut rng = SecretRng::from_seed(11, 0);
        let grid = Grid::new(0.25).unwrap();
        let correction = Correction::fit(2.0).unwrap();
        let variance = (2.0 / (grid.step() * grid.step())) as u128;
        let n = 200_000;
        for (steps, public) in [
            (0, 0.0),
            (0, 1.5),
            (0, -1.5),
            (1 << 18, 3.0),
            (-(1 << 18), -3.0),
        ] {
            let z = f64::from(steps) * grid.step() + public;
            let accepted = (0..n)
                .filter(|_| {
                    let sum = Secret::seal(RatioSum {
                        steps: i64::from(steps),
                        saturated: 0,
                    });
                    noisy_barker(&mut rng, sum, grid, variance, &correction, public)
                })
                .count();
            let rate = accepted as f64 / f64::from(n);
            let p = correction.noisy_cdf(z);
            let error = (p * (1.0 - p) / f64::from(n)).sqrt();
            assert!((rate - p).abs() < 6.0 * error, "{z}: {rate} against {p}");
        }
    }

    /// E exp(R̂) = exp(R) exactly (docs/proofs/guarantee.md): a missing factor of two in
    /// weight or thinning, or a flipped sign, moves the mean by tens of standard errors.
    #[test]
    fn poisson_estimate_is_unbiased_on_the_exponential_scale() {
        let mut rng = SecretRng::from_seed(9, 0);
        let sampler = super::super::poisson::PoissonSampler::new();
        let (rows, clip, lambda) = (40u64, 0.05, 3.0);
        let grid = Grid::new(clip).unwrap();
        let ratios: Vec<i32> = (0..rows)
            .map(|i| grid.quantize(clip * ((i as f64 * 0.37).sin())))
            .collect();
        let exact: f64 = ratios.iter().map(|&q| f64::from(q) * grid.step()).sum();
        let a = lambda / rows as f64;
        let n = 400_000;
        let (mut sum, mut square) = (0.0, 0.0);
        for _ in 0..n {
            let b = sampler.draw(&mut rng, rows as f64 * (a + grid.clip_bound()));
            let steps = (0..b).map(|_| ratios[rng.below(rows) as usize]).collect();
            let drawn = Drawn {
                steps: &Secret::seal(steps),
                rows: &[],
                shares: None,
            };
            let r = poisson_estimate(&mut rng, &drawn, grid, a).open();
            let e = (r as f64 * f64::powi(2.0, -60)).exp();
            sum += e;
            square += e * e;
        }
        let n = f64::from(n);
        let mean = sum / n;
        let error = ((square / n - mean * mean) / n).sqrt();
        assert!(
            (mean - exact.exp()).abs() < 5.5 * error,
            "{mean} against {}",
            exact.exp()
        );
        assert!(error < 0.005 * mean);
    }
}
