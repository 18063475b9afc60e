//! Warm-up: step size and preconditioner learned from released draws and decisions
//! alone, and frozen afterwards, so that the kernel that samples is exact.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::Preconditioner;
use super::windows::Windows;
use crate::math::cholesky;
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
    #[serde(flatten)]
    windows: Windows,
}

impl Adaptation {
    /// `target`: wanted acceptance rate; `warmup`: steps to adapt over; d parameters.
    pub fn new(adapt: Adapt, target: f64, warmup: u64, d: usize) -> Self {
        Adaptation {
            adapt,
            target,
            warmup,
            since: 0,
            windows: Windows::new(warmup, d),
        }
    }

    /// Whether anything is adapted at all.
    pub fn is_active(&self) -> bool {
        self.adapt != Adapt::None && self.warmup > 0
    }

    /// Number of parameters d.
    pub(super) fn dim(&self) -> usize {
        self.windows.dim()
    }

    /// Whether its arrays have the sizes that d parameters need, and counts that can grow.
    pub(super) fn is_consistent(&self, d: usize) -> bool {
        self.windows.is_consistent(d) && self.since <= MOST_STEPS
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
            self.windows.observe(thetas);
            if self.windows.ends_at(iteration) {
                self.end_window(iteration, step, preconditioner);
            }
        }
    }

    /// Installs the window's covariance.
    fn end_window(&mut self, iteration: u64, step: &mut f64, preconditioner: &mut Preconditioner) {
        let d = self.dim();
        let covariance = self.windows.covariance();
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
        self.windows.next(iteration, self.warmup);
    }
}
