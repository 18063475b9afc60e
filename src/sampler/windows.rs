//! Covariance of released draws over doubling warm-up windows (Welford's recurrence).

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::privacy::MOST_STEPS;

/// Moments of the current window, and where it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Windows {
    count: u64,
    mean: Vec<f64>,
    /// Sum of outer products of deviations, row-major.
    scatter: Vec<f64>,
    window_end: u64,
}

impl Windows {
    /// `warmup`: steps to learn over; d parameters.
    pub(super) fn new(warmup: u64, d: usize) -> Self {
        Windows {
            count: 0,
            mean: vec![0.0; d],
            scatter: vec![0.0; d * d],
            window_end: (warmup / 8).max(20),
        }
    }

    /// Number of parameters d.
    pub(super) fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Whether its arrays have the sizes that d parameters need, and a count that can grow.
    pub(super) fn is_consistent(&self, d: usize) -> bool {
        self.mean.len() == d && self.scatter.len() == d * d && self.count <= MOST_STEPS
    }

    /// Whether the window ends with this step.
    pub(super) fn ends_at(&self, iteration: u64) -> bool {
        iteration >= self.window_end
    }

    /// Takes in one draw of every chain, C × d.
    pub(super) fn observe(&mut self, thetas: &Array2<f64>) {
        let d = self.mean.len();
        for theta in thetas.rows() {
            self.count += 1;
            let before: Vec<f64> = theta.iter().zip(&self.mean).map(|(t, m)| t - m).collect();
            for (m, b) in self.mean.iter_mut().zip(&before) {
                *m += b / self.count as f64;
            }
            let after: Vec<f64> = theta.iter().zip(&self.mean).map(|(t, m)| t - m).collect();
            for (row, b) in self.scatter.chunks_mut(d).zip(&before) {
                for (s, a) in row.iter_mut().zip(&after) {
                    *s += b * a;
                }
            }
        }
    }

    /// The window's covariance, d×d, shrunk towards its diagonal where the window is short (as
    /// many draws as d).
    pub(super) fn covariance(&self) -> Vec<f64> {
        let d = self.mean.len();
        let n = self.count as f64;
        let weight = n / (n + 10.0 * d as f64);
        let mut covariance: Vec<f64> = self.scatter.iter().map(|s| s / (n - 1.0)).collect();
        for i in 0..d {
            for j in 0..d {
                let (a, b) = (self.scatter[i * d + j], self.scatter[j * d + i]);
                if i != j {
                    covariance[i * d + j] = weight * 0.5 * (a + b) / (n - 1.0);
                }
            }
        }
        covariance
    }

    /// Starts the next window; windows double, the first ones forget the start.
    pub(super) fn next(&mut self, iteration: u64, warmup: u64) {
        self.count = 0;
        self.mean.fill(0.0);
        self.scatter.fill(0.0);
        // The last window ends early: the step still has to settle on its covariance. A
        // stub shorter than its predecessor would waste that one.
        let last = warmup - warmup / 5;
        let next = iteration.saturating_mul(2);
        self.window_end = if iteration >= last {
            u64::MAX
        } else if next.saturating_mul(2) > last {
            last
        } else {
            next
        };
    }
}
