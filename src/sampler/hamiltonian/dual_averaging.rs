//! Step size by dual averaging (Hoffman & Gelman 2014, section 3.2) on released decisions.

use serde::{Deserialize, Serialize};

use crate::privacy::MOST_STEPS;

/// γ, t₀ and κ. The paper's γ = 0.05 is for acceptance probabilities; they are private here,
/// and single decisions are ten times noisier.
const SHRINKAGE: f64 = 0.5;
const DELAY: f64 = 10.0;
const DECAY: f64 = 0.75;

/// State of dual averaging of a log step size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DualAveraging {
    /// Point that iterates shrink to: the log of the step it started with. Not ten times
    /// that as in the paper: here every step that is tried is paid for.
    centre: f64,
    /// Running mean of target minus acceptance.
    shortfall: f64,
    averaged_log: f64,
    count: u64,
}

impl DualAveraging {
    /// Starts at this step.
    pub(super) fn new(step: f64) -> Self {
        DualAveraging {
            centre: step.ln(),
            shortfall: 0.0,
            averaged_log: step.ln(),
            count: 0,
        }
    }

    /// Takes in a share of accepted moves; the step to try next.
    pub(super) fn update(&mut self, target: f64, accepted: f64) -> f64 {
        self.count += 1;
        let t = self.count as f64;
        let weight = 1.0 / (t + DELAY);
        self.shortfall = (1.0 - weight) * self.shortfall + weight * (target - accepted);
        // Within e^±12 of the start: a target out of reach must not run to 0 or infinity.
        let log = self.centre - (t.sqrt() / SHRINKAGE * self.shortfall).clamp(-12.0, 12.0);
        let share = t.powf(-DECAY);
        self.averaged_log = share * log + (1.0 - share) * self.averaged_log;
        log.exp()
    }

    /// The step to keep.
    pub(super) fn averaged(&self) -> f64 {
        self.averaged_log.exp()
    }

    /// Whether it holds numbers that can be gone on from.
    pub(super) fn is_consistent(&self) -> bool {
        let fine = |log: f64| log.abs() < 600.0;
        fine(self.centre)
            && fine(self.averaged_log)
            && self.shortfall.abs() <= 1.0
            && self.count <= MOST_STEPS
    }
}
