//! The noisy minibatch of DP-Fast MH (docs/proofs/guarantee.md): the weights of a Poisson
//! minibatch as integers on a grid of their own, so that exact discrete noise can hide them.

use super::secret::Secret;
use super::secret_rng::SecretRng;
use super::shares::Drawn;
use crate::engine::{Grid, RatioSum};

/// `Σ over kept of w_i` in steps of the grid `weights`, whose bound is W = log(1 + Λ/λ).
///
/// `drawn`: quantised ratios of the drawn rows on `grid`; `lambda_per_row` = λ/N, or λ/Σw_i
/// where rows have bounds `w_i` of their own, and r then stands for r_i/w_i. A row's
/// weight `2 artanh(r/(2λ/N + c))` is rounded, oddly in r, and the row's ratio defined back
/// from it, `r = (2λ/N + c) tanh(w/2)`; thinning with that r keeps the occurrence with
/// probability `(2λ/N + c) σ(−w)/(λ/N + c)`, and φ'/φ = e^w stays exact.
pub(in crate::trusted::privacy) fn poisson_weights(
    rng: &mut SecretRng,
    drawn: &Drawn<'_>,
    grid: Grid,
    lambda_per_row: f64,
    weights: Grid,
) -> Secret<RatioSum> {
    let width = 2.0 * lambda_per_row + grid.clip_bound();
    let scale = grid.step() / width;
    let keep = f64::powi(2.0, 64) * width / (lambda_per_row + grid.clip_bound());
    let mut sum = 0i64;
    for q in drawn.ratios(grid) {
        let size = weights.quantize(2.0 * (q.abs() * scale).atanh());
        let weight = if q < 0.0 { -size } else { size };
        let nats = f64::from(weight) * weights.step();
        let threshold = (keep / (1.0 + nats.exp())) as u128;
        if u128::from(rng.bits64()) < threshold {
            sum += i64::from(weight);
        }
    }
    Secret::seal(RatioSum {
        steps: sum,
        saturated: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::decide::penalty;
    use super::super::poisson::PoissonSampler;
    use super::*;

    const ROWS: u64 = 40;
    const CLIP: f64 = 0.05;
    const LAMBDA: f64 = 3.0;

    fn setting() -> (Grid, f64, Grid, Vec<i32>) {
        let grid = Grid::new(CLIP).unwrap();
        let a = LAMBDA / ROWS as f64;
        let weights = Grid::new((grid.clip_bound() / a).ln_1p()).unwrap();
        let ratio = |i: u64| grid.quantize(CLIP * (0.3 + (i as f64 * 0.37).sin()));
        (grid, a, weights, (0..ROWS).map(ratio).collect())
    }

    /// The rows' ratios as the rounded weights define them, summed, nats.
    fn defined(ratios: &[i32], grid: Grid, a: f64, weights: Grid) -> f64 {
        let width = 2.0 * a + grid.clip_bound();
        let one = |&q: &i32| {
            let w = weights.quantize(2.0 * (f64::from(q) * grid.step() / width).atanh());
            width * (0.5 * f64::from(w) * weights.step()).tanh()
        };
        ratios.iter().map(one).sum()
    }

    fn draw(rng: &mut SecretRng, sampler: &PoissonSampler, forward: bool) -> Secret<RatioSum> {
        let (grid, a, weights, ratios) = setting();
        let b = sampler.draw(rng, ROWS as f64 * (a + grid.clip_bound()));
        let sign = if forward { 1 } else { -1 };
        let steps: Vec<i32> = (0..b)
            .map(|_| sign * ratios[rng.below(ROWS) as usize])
            .collect();
        let drawn = Drawn {
            steps: &Secret::seal(steps),
            rows: &[],
            shares: None,
        };
        poisson_weights(rng, &drawn, grid, a, weights)
    }

    /// The rounding moves the sum of ratios by no more than the grid's own rounding does.
    #[test]
    fn the_redefined_ratios_are_the_ratios() {
        let (grid, a, weights, ratios) = setting();
        let exact: f64 = ratios.iter().map(|&q| f64::from(q) * grid.step()).sum();
        let error = (defined(&ratios, grid, a, weights) - exact).abs();
        assert!(error < ROWS as f64 * grid.step(), "{error}");
    }

    /// E exp(Σw) = exp(R) exactly, within 5.5 standard errors (4e-8): a missing factor of two
    /// in weight or thinning, or a flipped sign, moves the mean by tens of them.
    #[test]
    fn weights_are_unbiased_on_the_exponential_scale() {
        let (grid, a, weights, ratios) = setting();
        let exact = defined(&ratios, grid, a, weights).exp();
        let mut rng = SecretRng::from_seed(19, 0);
        let sampler = PoissonSampler::new();
        let n = 400_000;
        let (mut sum, mut square) = (0.0, 0.0);
        for _ in 0..n {
            let steps = draw(&mut rng, &sampler, true).open().steps;
            let e = (steps as f64 * weights.step()).exp();
            sum += e;
            square += e * e;
        }
        let mean = sum / f64::from(n);
        let error = ((square / f64::from(n) - mean * mean) / f64::from(n)).sqrt();
        assert!(
            (mean - exact).abs() < 5.5 * error,
            "{mean} against {exact} ± {error}"
        );
        assert!(error < 0.005 * mean);
    }

    /// Detailed balance between two states with noise and penalty: the flows π a(→) and
    /// π' a(←), π'/π = e^R, agree within 6 standard errors (2e-9). A penalty off by a factor
    /// of two moves their ratio by tens of them.
    #[test]
    fn noise_and_penalty_keep_detailed_balance() {
        let (grid, a, weights, ratios) = setting();
        let odds = defined(&ratios, grid, a, weights).exp();
        let mut rng = SecretRng::from_seed(23, 0);
        let sampler = PoissonSampler::new();
        let variance = (0.8 / weights.step()).ceil() as u64;
        let n = 400_000;
        let [forward, back] = [true, false].map(|forward| {
            let accepted = (0..n).filter(|_| {
                let sum = draw(&mut rng, &sampler, forward);
                penalty(&mut rng, sum, weights, variance, 0.0)
            });
            accepted.count() as f64
        });
        let ratio = forward / (odds * back);
        let error = (1.0 / forward + 1.0 / back).sqrt();
        assert!((ratio - 1.0).abs() < 6.0 * error, "{ratio} ± {error}");
        assert!(error < 0.01 && (odds - 1.0).abs() > 0.2);
    }
}
