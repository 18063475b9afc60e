//! Chebyshev series of the log odds' softplus on [−1, 1], with a rigorous bound on what they
//! leave out.

use std::f64::consts::PI;
use std::sync::LazyLock;

/// Numbers of nodes that are tried, in order.
const NODES: [usize; 4] = [32, 64, 128, 256];
/// A series this close is taken, nats a row.
const CLOSE: f64 = 1e-10;
/// Poles of softplus lie at odd multiples of πi; the ellipse keeps this far from them.
const STRIP: f64 = 0.9 * PI;

/// `p(t) = Σ a_k T_k(t)`, with `|f(t) − p(t)| ≤ tail` for t in [−1, 1].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// a_0 …
    pub coefficients: Vec<f64>,
    /// Bound on the error of the whole series.
    pub tail: f64,
}

/// `cos(kπ(j+½)/n)`, row k, column j; row 1 holds the nodes.
fn cosines(n: usize) -> &'static [f64] {
    static TABLES: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
        NODES
            .iter()
            .map(|&n| {
                let angle = |k: usize, j: usize| {
                    // Reduced exactly in integers first.
                    let turns = (k * (2 * j + 1)) % (4 * n);
                    PI * turns as f64 / (2 * n) as f64
                };
                (0..n * n).map(|i| angle(i / n, i % n).cos()).collect()
            })
            .collect()
    });
    let which = NODES.iter().position(|&m| m == n).unwrap_or(0);
    &TABLES[which]
}

/// The series of `t ↦ log(1 + e^{αt + β})`.
///
/// With ρ the sum of semi-axes of an ellipse with foci ±1 on which |f| ≤ M, the interpolant in n
/// Chebyshev nodes is within `4Mρ^{1−n}/(ρ−1)` (Trefethen, Approximation Theory and
/// Approximation Practice, theorem 8.2 and its aliasing formula). Here the ellipse keeps
/// `|α Im t| ≤ 0.9π`, where `|1 + e^w| ≥ sin(0.1π)`, so `M = |α|a + |β| + 5.1`, a the half axis.
/// For steep slopes `4|α|/(π(n−2))` is less.
pub(crate) fn softplus_series(alpha: f64, beta: f64) -> Series {
    let minor = (STRIP / alpha.abs()).min(4.0);
    let major = minor.hypot(1.0);
    let rho = major + minor;
    let size = alpha.abs() * major + beta.abs() + 5.1;
    let tail = |n: usize| {
        let analytic = 4.0 * size * rho.powi(1 - n as i32) / (rho - 1.0);
        // Of any slope: the derivative varies by |α| at most (theorem 7.2, ν = 1).
        analytic.min(4.0 * alpha.abs() / (PI * (n - 2) as f64))
    };
    let n = NODES.into_iter().find(|&n| tail(n) <= CLOSE).unwrap_or(256);
    let table = cosines(n);
    let values: Vec<f64> = table[n..2 * n]
        .iter()
        .map(|t| super::softplus(alpha * t + beta))
        .collect();
    let mut coefficients: Vec<f64> = table
        .chunks_exact(n)
        .map(|row| 2.0 / n as f64 * row.iter().zip(&values).map(|(c, v)| c * v).sum::<f64>())
        .collect();
    coefficients[0] *= 0.5;
    Series {
        coefficients,
        tail: tail(n),
    }
}

/// `Σ a_k T_k(t)` (Clenshaw).
pub(crate) fn evaluate(coefficients: &[f64], t: f64) -> f64 {
    let (mut b1, mut b2) = (0.0, 0.0);
    for a in coefficients.iter().skip(1).rev() {
        (b1, b2) = (a + 2.0 * t * b1 - b2, b1);
    }
    coefficients.first().copied().unwrap_or(0.0) + t * b1 - b2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::softplus;
    use proptest::prelude::*;

    proptest! {
        /// The stated bound holds on [−1, 1], far out too, where the series is no good.
        #[test]
        fn series_are_as_close_as_they_say(log in -4f64..12.0, up in any::<bool>(), share in -2f64..2.0, t in -1f64..=1.0) {
            let alpha = if up { log.exp() } else { -log.exp() };
            let beta = share * alpha;
            let series = softplus_series(alpha, beta);
            prop_assert!(series.tail <= 1e-10 || series.tail <= 0.006 * alpha.abs());
            let error = (evaluate(&series.coefficients, t) - softplus(alpha * t + beta)).abs();
            prop_assert!(error <= series.tail + 1e-12 * (1.0 + alpha.abs() + beta.abs()), "{error} over {}", series.tail);
        }
    }

    #[test]
    fn moderate_slopes_have_short_series() {
        for (alpha, n) in [(0.0, 32), (1.0, 32), (4.5, 64), (9.0, 128), (20.0, 256)] {
            let series = softplus_series(alpha, 0.3);
            assert_eq!(series.coefficients.len(), n, "{alpha}");
            assert!(series.tail <= 1e-10 || n == 256);
        }
        // A constant, and softplus' own first terms: log 2 + w/2 + w²/8.
        let flat = softplus_series(0.0, 1.0);
        assert!((flat.coefficients[0] - softplus(1.0)).abs() < 1e-15);
        let small = softplus_series(1e-3, 0.0);
        assert!((small.coefficients[1] - 5e-4).abs() < 1e-10);
        assert!((small.coefficients[2] - 1e-6 / 16.0).abs() < 1e-12);
    }
}
