//! Seita's deconvolution of the logistic law (Seita 2017, section 4.2): the correction as masses
//! on a grid, by ridge regression. For comparison figures; `Correction::fit` is closer.

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// Half width of the correction's grid, nats; the fit covers twice that.
const HALF_WIDTH: f64 = 10.0;
const MOST_ITERATIONS: usize = 2000;

/// `M_ij = F(y_i − x_j)`, F the Gaussian's distribution function, x on 2n+1 points of
/// [−10, 10], y on 4n+1 of [−20, 20]: a convolution, applied by FFT.
struct Smoothing {
    n: usize,
    kernel: Vec<Complex<f64>>,
    forward: Arc<dyn Fft<f64>>,
    back: Arc<dyn Fft<f64>>,
}

impl Smoothing {
    fn new(n: usize, variance: f64) -> Self {
        let length = (8 * n + 2).next_power_of_two();
        let mut planner = FftPlanner::new();
        let (forward, back) = (
            planner.plan_fft_forward(length),
            planner.plan_fft_inverse(length),
        );
        let mut kernel = vec![Complex::default(); length];
        let step = HALF_WIDTH / n as f64;
        for (m, value) in kernel.iter_mut().enumerate().take(6 * n + 1) {
            let x = (m as f64 - 3.0 * n as f64) * step;
            value.re = 0.5 * libm::erfc(-x / (2.0 * variance).sqrt());
        }
        forward.process(&mut kernel);
        Smoothing {
            n,
            kernel,
            forward,
            back,
        }
    }

    /// Circular convolution with the kernel, or correlation.
    fn apply(&self, values: &[f64], transposed: bool) -> Vec<f64> {
        let length = self.kernel.len();
        let mut buffer = vec![Complex::default(); length];
        for (to, &from) in buffer.iter_mut().zip(values) {
            to.re = from;
        }
        self.forward.process(&mut buffer);
        for (value, k) in buffer.iter_mut().zip(&self.kernel) {
            *value *= if transposed { k.conj() } else { *k };
        }
        self.back.process(&mut buffer);
        buffer.iter().map(|v| v.re / length as f64).collect()
    }

    /// `M u`, 4n+1 values.
    fn times(&self, masses: &[f64]) -> Vec<f64> {
        self.apply(masses, false)[2 * self.n..=6 * self.n].to_vec()
    }

    /// `Mᵀ r`, 2n+1 values.
    fn transposed(&self, residuals: &[f64]) -> Vec<f64> {
        let all = self.apply(residuals, true);
        let length = all.len();
        (0..=2 * self.n)
            .map(|j| all[(length + j - 2 * self.n) % length])
            .collect()
    }
}

/// Grid points and masses ≥ 0 of sum 1 that minimise `‖M u − S‖² + ridge‖u‖²`, S the logistic
/// law, negative masses set to zero and the rest scaled up, as Seita does.
pub(super) fn ridge_masses(variance: f64, n: usize, ridge: f64) -> Vec<(f64, f64)> {
    let smoothing = Smoothing::new(n, variance);
    let step = HALF_WIDTH / n as f64;
    let target: Vec<f64> = (0..=4 * n)
        .map(|i| (i as f64 - 2.0 * n as f64) * step)
        .map(|y| 1.0 / (1.0 + (-y).exp()))
        .collect();
    let masses = conjugate_gradients(&smoothing.transposed(&target), |u| {
        let mut product = smoothing.transposed(&smoothing.times(u));
        product.iter_mut().zip(u).for_each(|(p, u)| *p += ridge * u);
        product
    });
    let total: f64 = masses.iter().map(|m| m.max(0.0)).sum();
    masses
        .iter()
        .enumerate()
        .map(|(j, m)| ((j as f64 - n as f64) * step, m.max(0.0) / total))
        .collect()
}

/// Solves `A u = right` for a positive definite A (Hestenes & Stiefel 1952), to a relative
/// residual of 1e-12.
fn conjugate_gradients(right: &[f64], product: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let (mut solution, mut residual) = (vec![0.0; right.len()], right.to_vec());
    let mut direction = residual.clone();
    let mut size = dot(&residual, &residual);
    let enough = 1e-24 * size;
    for _ in 0..MOST_ITERATIONS {
        if size <= enough {
            break;
        }
        let image = product(&direction);
        let length = size / dot(&direction, &image);
        for ((u, r), (d, a)) in solution
            .iter_mut()
            .zip(&mut residual)
            .zip(direction.iter().zip(&image))
        {
            *u += length * d;
            *r -= length * a;
        }
        let next = dot(&residual, &residual);
        for (d, r) in direction.iter_mut().zip(&residual) {
            *d = r + next / size * *d;
        }
        size = next;
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The FFT products are the matrix's, and adjoint to each other.
    #[test]
    fn products_are_those_of_the_matrix() {
        let (n, variance) = (5, 1.3f64);
        let smoothing = Smoothing::new(n, variance);
        let step = HALF_WIDTH / n as f64;
        let u: Vec<f64> = (0..=2 * n).map(|j| (j as f64).sin()).collect();
        let r: Vec<f64> = (0..=4 * n).map(|i| (0.3 * i as f64).cos()).collect();
        let entry = |i: usize, j: usize| {
            let x = (i as f64 - 2.0 * n as f64) - (j as f64 - n as f64);
            0.5 * libm::erfc(-x * step / (2.0 * variance).sqrt())
        };
        for (i, value) in smoothing.times(&u).iter().enumerate() {
            let exact: f64 = (0..=2 * n).map(|j| entry(i, j) * u[j]).sum();
            assert!((value - exact).abs() < 1e-12, "{i}");
        }
        for (j, value) in smoothing.transposed(&r).iter().enumerate() {
            let exact: f64 = (0..=4 * n).map(|i| entry(i, j) * r[i]).sum();
            assert!((value - exact).abs() < 1e-12, "{j}");
        }
    }

    #[test]
    fn conjugate_gradients_solve() {
        let solved =
            conjugate_gradients(&[1.0, 2.0], |u| vec![4.0 * u[0] + u[1], u[0] + 3.0 * u[1]]);
        assert!((solved[0] - 1.0 / 11.0).abs() < 1e-12 && (solved[1] - 7.0 / 11.0).abs() < 1e-12);
    }
}
