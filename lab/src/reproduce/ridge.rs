//! The older fit of V_cor: ridge regression on a grid (Seita, Pan, Chen & Canny 2017, "An
//! efficient minibatch acceptance test for Metropolis–Hastings", section 4.3), kept for the
//! comparison of Heikkilä 2019, supplement.
//!
//! V_cor sits on 2n+1 even places of [−V, V] with weights u; the logistic distribution
//! function v is matched at 4n+1 places of [−2V, 2V]: `u = argmin ‖Mu − v‖² + λ‖u‖²`,
//! `M_ij = Φ((y_i − x_j)/√C)`; negative weights are cut off and the rest is scaled to sum 1.
//! V = 10 is our reading. M is Toeplitz, so products with it are convolutions, and the normal
//! equations are solved by conjugate gradients.

use std::sync::Arc;

use dpmc::math::normal::below;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

/// Half of the range of V_cor.
const REACH: f64 = 10.0;
/// Relative residual at which the equations count as solved.
const SOLVED: f64 = 1e-9;
const MOST_ROUNDS: usize = 5_000;

/// V_cor on even places.
pub(super) struct RidgeFit {
    variance: f64,
    step: f64,
    /// Weights of −V, …, V.
    weights: Vec<f64>,
}

impl RidgeFit {
    /// Fits V_cor for Gaussian noise of the given variance; `n` ≥ 1, `lambda` > 0.
    pub fn new(variance: f64, n: usize, lambda: f64) -> Self {
        let step = REACH / n as f64;
        let matrix = Matrix::new(n, |t| below(t * step / variance.sqrt()));
        let target: Vec<f64> = (0..=4 * n)
            .map(|i| logistic((i as f64 - 2.0 * n as f64) * step))
            .collect();
        let mut weights = solve(&matrix, &matrix.transposed(&target), lambda);
        weights.iter_mut().for_each(|w| *w = w.max(0.0));
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        RidgeFit {
            variance,
            step,
            weights,
        }
    }

    /// Distribution function of `N(0, C) + V_cor`.
    pub fn noisy_cdf(&self, x: f64) -> f64 {
        let scale = 1.0 / self.variance.sqrt();
        self.places()
            .map(|(place, w)| w * below((x - place) * scale))
            .sum()
    }

    /// Distribution function of V_cor.
    pub fn cdf(&self, x: f64) -> f64 {
        let below = self.places().filter(|(place, _)| *place <= x);
        below.map(|(_, w)| w).sum()
    }

    fn places(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let held = self.weights.iter().enumerate().filter(|(_, w)| **w > 0.0);
        held.map(|(j, &w)| (j as f64 * self.step - REACH, w))
    }
}

/// The logistic distribution function.
pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The Toeplitz matrix `M_ij = f(i − j − n)`, 4n+1 rows and 2n+1 columns.
struct Matrix {
    n: usize,
    size: usize,
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
    spectrum: Vec<Complex<f64>>,
}

impl Matrix {
    fn new(n: usize, f: impl Fn(f64) -> f64) -> Self {
        let size = (6 * n + 2).next_power_of_two();
        let mut planner = FftPlanner::new();
        let (forward, inverse) = (
            planner.plan_fft_forward(size),
            planner.plan_fft_inverse(size),
        );
        // i − j runs from −2n to 4n, around the circle.
        let mut spectrum = vec![Complex::default(); size];
        for t in -(2 * n as i64)..=4 * n as i64 {
            let place = t.rem_euclid(size as i64) as usize;
            spectrum[place].re = f((t - n as i64) as f64);
        }
        forward.process(&mut spectrum);
        Matrix {
            n,
            size,
            forward,
            inverse,
            spectrum,
        }
    }

    /// `Mu`.
    fn times(&self, u: &[f64]) -> Vec<f64> {
        self.convolve(u, 4 * self.n + 1, |s| s)
    }

    /// `Mᵀr`.
    fn transposed(&self, r: &[f64]) -> Vec<f64> {
        self.convolve(r, 2 * self.n + 1, |s| s.conj())
    }

    fn convolve(
        &self,
        values: &[f64],
        keep: usize,
        side: impl Fn(Complex<f64>) -> Complex<f64>,
    ) -> Vec<f64> {
        let mut work: Vec<Complex<f64>> = values.iter().map(|&v| Complex::new(v, 0.0)).collect();
        work.resize(self.size, Complex::default());
        self.forward.process(&mut work);
        for (w, s) in work.iter_mut().zip(&self.spectrum) {
            *w *= side(*s);
        }
        self.inverse.process(&mut work);
        let scale = 1.0 / self.size as f64;
        work[..keep].iter().map(|w| w.re * scale).collect()
    }
}

/// Conjugate gradients for `(MᵀM + λI)u = right`.
fn solve(matrix: &Matrix, right: &[f64], lambda: f64) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut u = vec![0.0; right.len()];
    let mut residual = right.to_vec();
    let mut direction = residual.clone();
    let mut size = dot(&residual, &residual);
    let goal = size * SOLVED * SOLVED;
    for _ in 0..MOST_ROUNDS {
        if size <= goal {
            break;
        }
        let mut image = matrix.transposed(&matrix.times(&direction));
        image
            .iter_mut()
            .zip(&direction)
            .for_each(|(i, d)| *i += lambda * d);
        let length = size / dot(&direction, &image);
        u.iter_mut()
            .zip(&direction)
            .for_each(|(u, d)| *u += length * d);
        residual
            .iter_mut()
            .zip(&image)
            .for_each(|(r, i)| *r -= length * i);
        let next = dot(&residual, &residual);
        let turn = next / size;
        size = next;
        direction
            .iter_mut()
            .zip(&residual)
            .for_each(|(d, r)| *d = r + turn * *d);
    }
    u
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_matrix() {
        let n = 5;
        let f = |t: f64| (0.3 * t).tanh() + 0.1 * t;
        let matrix = Matrix::new(n, f);
        let entry = |i: usize, j: usize| f(i as f64 - j as f64 - n as f64);
        let u: Vec<f64> = (0..=2 * n).map(|j| (j as f64).sin()).collect();
        let r: Vec<f64> = (0..=4 * n).map(|i| (i as f64).cos()).collect();
        for (i, found) in matrix.times(&u).into_iter().enumerate() {
            let expected: f64 = u.iter().enumerate().map(|(j, u)| entry(i, j) * u).sum();
            assert!((found - expected).abs() < 1e-12);
        }
        for (j, found) in matrix.transposed(&r).into_iter().enumerate() {
            let expected: f64 = r.iter().enumerate().map(|(i, r)| entry(i, j) * r).sum();
            assert!((found - expected).abs() < 1e-12);
        }
        let solution = solve(&matrix, &u, 0.5);
        let back = matrix.transposed(&matrix.times(&solution));
        for ((b, s), u) in back.iter().zip(&solution).zip(&u) {
            assert!((b + 0.5 * s - u).abs() < 1e-7);
        }
    }

    /// At C = 1 the fit is close to logistic, and V_cor has the variance that is missing.
    #[test]
    fn a_small_fit_is_a_distribution_that_completes_the_logistic() {
        let fit = RidgeFit::new(1.0, 200, 0.5);
        for x in [-4.0, -1.0, 0.0, 0.5, 3.0] {
            assert!((fit.noisy_cdf(x) - logistic(x)).abs() < 0.01, "{x}");
        }
        assert!((fit.cdf(10.1) - 1.0).abs() < 1e-12 && fit.cdf(-10.1) == 0.0);
        let variance: f64 = fit.places().map(|(x, w)| w * x * x).sum();
        let missing = std::f64::consts::PI.powi(2) / 3.0 - 1.0;
        assert!(
            (variance - missing).abs() < 0.15 * missing,
            "{variance} {missing}"
        );
    }
}
