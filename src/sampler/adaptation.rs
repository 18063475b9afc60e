//! Warm-up: step size and preconditioner learned from released draws and decisions
//! alone, and frozen afterwards, so that the kernel that samples is exact.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::Preconditioner;
use crate::model::cholesky;
use crate::privacy::MOST_STEPS;

/// What warm-up adapts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adapt {
    /// Nothing.
    #[default]
    None,
    /// The step size.
    Step,
    /// Step size and a diagonal preconditioner.
    Diagonal,
    /// Step size and a full preconditioner.
    Full,
}

/// Running state of warm-up; all of it follows from released values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adaptation {
    adapt: Adapt,
    target: f64,
    warmup: u64,
    /// Steps since the gain was last restarted.
    since: u64,
    count: u64,
    mean: Vec<f64>,
    /// Sum of outer products of deviations, row-major.
    scatter: Vec<f64>,
    window_end: u64,
}

impl Adaptation {
    /// `target`: wanted acceptance rate; `warmup`: steps to adapt over; d parameters.
    pub fn new(adapt: Adapt, target: f64, warmup: u64, d: usize) -> Self {
        Adaptation {
            adapt,
            target,
            warmup,
            since: 0,
            count: 0,
            mean: vec![0.0; d],
            scatter: vec![0.0; d * d],
            window_end: (warmup / 8).max(20),
        }
    }

    /// Whether anything is adapted at all.
    pub fn is_active(&self) -> bool {
        self.adapt != Adapt::None && self.warmup > 0
    }

    /// Number of parameters d.
    pub(super) fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Whether its arrays have the sizes that d parameters need, and counts that can grow.
    pub(super) fn is_consistent(&self, d: usize) -> bool {
        let counts = self.since.max(self.count);
        self.mean.len() == d && self.scatter.len() == d * d && counts <= MOST_STEPS
    }

    /// Learns from one released step (`iteration` counts from 1).
    pub fn update(
        &mut self,
        iteration: u64,
        thetas: &Array2<f64>,
        acceptance: f64,
        step: &mut f64,
        preconditioner: &mut Preconditioner,
    ) {
        if !self.is_active() || iteration > self.warmup {
            return;
        }
        // Robbins–Monro on the log step; the gain restarts with each preconditioner.
        self.since += 1;
        let gain = (self.since as f64).powf(-0.6);
        *step *= (gain * (acceptance - self.target)).exp();
        if matches!(self.adapt, Adapt::Diagonal | Adapt::Full) {
            for theta in thetas.rows() {
                self.observe(theta.as_slice().unwrap_or(&[]));
            }
            if iteration >= self.window_end {
                self.end_window(iteration, step, preconditioner);
            }
        }
    }

    fn observe(&mut self, theta: &[f64]) {
        let d = self.mean.len();
        self.count += 1;
        let before: Vec<f64> = theta.iter().zip(&self.mean).map(|(t, m)| t - m).collect();
        for (m, b) in self.mean.iter_mut().zip(&before) {
            *m += b / self.count as f64;
        }
        let after = theta.iter().zip(&self.mean).map(|(t, m)| t - m);
        let after: Vec<f64> = after.collect();
        for (row, b) in self.scatter.chunks_mut(d).zip(&before) {
            for (s, a) in row.iter_mut().zip(&after) {
                *s += b * a;
            }
        }
    }

    /// Installs the window's covariance; windows double, the first ones forget the start.
    fn end_window(&mut self, iteration: u64, step: &mut f64, preconditioner: &mut Preconditioner) {
        let d = self.mean.len();
        let n = self.count as f64;
        // Shrunk towards its diagonal where the window is short (as many draws as d).
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
        let learned = match self.adapt {
            Adapt::Full => cholesky(&covariance, d).ok().map(Preconditioner::Full),
            _ => {
                let sds: Vec<f64> = (0..d).map(|i| covariance[i * d + i].sqrt()).collect();
                sds.iter()
                    .all(|s| *s > 0.0 && s.is_finite())
                    .then_some(Preconditioner::Diagonal(sds))
            }
        };
        // A chain that never moved teaches nothing; keep what there was.
        if let Some(learned) = learned {
            *preconditioner = learned;
            *step = 2.38 / (d as f64).sqrt();
            self.since = 0;
        }
        self.count = 0;
        self.mean.fill(0.0);
        self.scatter.fill(0.0);
        // The last window ends early: the step still has to settle on its covariance. A
        // stub shorter than its predecessor would waste that one.
        let last = self.warmup - self.warmup / 5;
        let next = iteration * 2;
        self.window_end = if iteration >= last {
            u64::MAX
        } else if next * 2 > last {
            last
        } else {
            next
        };
    }
}
