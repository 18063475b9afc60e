//! Warm-up of Hamiltonian samplers: step size, mass and trajectory length learned from released
//! draws, momenta and decisions alone, and frozen afterwards, so that the kernel that samples
//! is exact.

use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};

use super::chees::{Trajectories, TrajectoryLength};
use super::dual_averaging::DualAveraging;
use super::mass::Mass;
use crate::math::cholesky;
use crate::model::Lower;
use crate::privacy::Acceptance;
use crate::sampler::Adapt;
use crate::sampler::SettingError;
use crate::sampler::windows::Windows;

/// More leapfrog steps than any sensible trajectory has.
pub(super) const MOST_LEAPFROG_STEPS: u32 = 1 << 20;

/// What warm-up learns, and from how many steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HamiltonianWarmup {
    /// Step size and mass; `Diagonal` and `Full` are of the mass, which becomes the inverse of
    /// the draws' covariance.
    pub adapt: Adapt,
    /// Wanted share of accepted moves, in (0, 1).
    pub target: f64,
    /// Steps to learn over.
    pub steps: u64,
    /// Whether the number of leapfrog steps follows the ChEES criterion (Hoffman, Radul &
    /// Sountsov 2021). That needs two chains or more; with one it stays as it is. The number of
    /// gradients that a step releases, hence its cost, then follows released values.
    pub adapt_length: bool,
    /// Most leapfrog steps it may take.
    pub most_leapfrog_steps: u32,
}

impl HamiltonianWarmup {
    /// No warm-up.
    pub fn none() -> Self {
        HamiltonianWarmup {
            adapt: Adapt::None,
            target: 0.65,
            steps: 0,
            adapt_length: false,
            most_leapfrog_steps: MOST_LEAPFROG_STEPS,
        }
    }

    /// Share of accepted moves to aim at by default: 0.65 for Metropolis (Beskos et al. 2013)
    /// and the penalty; 0.35 for Barker's rule, which takes half of the moves that change
    /// nothing.
    pub fn default_target(acceptance: Acceptance) -> f64 {
        match acceptance {
            Acceptance::Metropolis | Acceptance::Penalty { .. } => 0.65,
            Acceptance::Barker | Acceptance::NoisyBarker { .. } => 0.35,
        }
    }

    /// Checks target and limits.
    ///
    /// # Errors
    /// [`SettingError`] naming the key.
    pub fn validate(&self) -> Result<(), SettingError> {
        if !(self.target > 0.0 && self.target < 1.0) {
            return Err(SettingError::new(
                "sampler.target_acceptance",
                format!("must lie between 0 and 1, not {}", self.target),
            ));
        }
        if !(1..=MOST_LEAPFROG_STEPS).contains(&self.most_leapfrog_steps) {
            return Err(SettingError::new(
                "sampler.leapfrog_steps",
                format!("must lie between 1 and {MOST_LEAPFROG_STEPS}"),
            ));
        }
        Ok(())
    }

    /// Whether anything is learned at all.
    pub fn is_active(&self) -> bool {
        self.steps > 0 && (self.adapt != Adapt::None || self.adapt_length)
    }

    /// Whether the mass comes to fit the posterior.
    pub(super) fn fits_mass(&self) -> bool {
        self.steps > 0 && matches!(self.adapt, Adapt::Diagonal | Adapt::Full)
    }
}

/// What is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Tuned {
    /// η, in units of θ·√M.
    pub step: f64,
    /// L.
    pub leapfrog_steps: u32,
    /// M.
    pub mass: Mass,
}

/// Running state of warm-up; all of it follows from released values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Tuner {
    step: DualAveraging,
    windows: Windows,
    length: TrajectoryLength,
}

impl Tuner {
    /// Starts from these; d parameters.
    pub(super) fn new(warmup: &HamiltonianWarmup, start: &Tuned, d: usize) -> Self {
        Tuner {
            step: DualAveraging::new(start.step),
            windows: Windows::new(warmup.steps, d),
            length: TrajectoryLength::new(start.step * f64::from(start.leapfrog_steps)),
        }
    }

    /// Number of parameters d.
    pub(super) fn dim(&self) -> usize {
        self.windows.dim()
    }

    /// Whether it can be gone on from with d parameters.
    pub(super) fn is_consistent(&self, d: usize) -> bool {
        self.step.is_consistent() && self.length.is_consistent() && self.windows.is_consistent(d)
    }

    /// Learns from one released step (`iteration` counts from 1). `thetas` of the draws that
    /// came of it are in `drawn`, C × d.
    pub(super) fn update(
        &mut self,
        warmup: &HamiltonianWarmup,
        iteration: u64,
        trajectories: &Trajectories<'_>,
        drawn: &ndarray::Array2<f64>,
        tuned: &mut Tuned,
    ) {
        if !warmup.is_active() || iteration > warmup.steps {
            return;
        }
        let last = iteration == warmup.steps;
        if warmup.adapt != Adapt::None {
            let accepted = trajectories.accepted.iter().filter(|a| **a).count() as f64;
            let share = accepted / trajectories.accepted.len().max(1) as f64;
            tuned.step = self.step.update(warmup.target, share);
            if last {
                tuned.step = self.step.averaged();
            }
        }
        if warmup.adapt_length {
            let longest = tuned.step * f64::from(warmup.most_leapfrog_steps);
            self.length
                .update(trajectories, &tuned.mass, tuned.step, longest);
        }
        if matches!(warmup.adapt, Adapt::Diagonal | Adapt::Full) {
            self.windows.observe(drawn);
        }
        // Not at the very end: the step could not settle on another mass any more.
        if warmup.adapt != Adapt::None && self.windows.ends_at(iteration) && !last {
            self.end_window(warmup, iteration, tuned);
        }
        // One chain cannot estimate the criterion, so L must not follow the step either.
        if warmup.adapt_length && drawn.nrows() > 1 {
            let length = if last {
                self.length.averaged()
            } else {
                self.length.length()
            };
            tuned.leapfrog_steps = leapfrog_steps(length, tuned.step, warmup);
        }
    }

    /// Installs the inverse of the window's covariance as the mass; without one to learn, the
    /// step starts again from where it got to, so that a poor first guess no longer pulls.
    fn end_window(&mut self, warmup: &HamiltonianWarmup, iteration: u64, tuned: &mut Tuned) {
        let d = self.windows.dim();
        let covariance = self.windows.covariance();
        let learned = match warmup.adapt {
            Adapt::Full => cholesky(&covariance, d)
                .ok()
                .and_then(Lower::new)
                .and_then(|root| root.inverse_covariance())
                .map(Mass::Dense),
            Adapt::None | Adapt::Step => {
                tuned.step = self.step.averaged();
                self.step = DualAveraging::new(tuned.step);
                None
            }
            Adapt::Diagonal => Some(Mass::Diagonal(
                (0..d).map(|i| 1.0 / covariance[i * d + i]).collect(),
            )),
        };
        // Chains that never moved teach nothing; keep what there was.
        if let Some(mass) = learned.filter(|m| m.validate(d).is_ok()) {
            tuned.mass = mass;
            // The posterior is near N(·, I) in the units of the new mass: a stable step there
            // (Beskos et al. 2013), and no more than a quarter of a period at the fixed L.
            let stable = (d as f64).powf(-0.25);
            let quarter = FRAC_PI_2 / f64::from(tuned.leapfrog_steps.max(1));
            tuned.step = if warmup.adapt_length {
                stable
            } else {
                stable.min(quarter)
            };
            self.step = DualAveraging::new(tuned.step);
            self.length = TrajectoryLength::new(FRAC_PI_2);
        }
        self.windows.next(iteration, warmup.steps);
    }
}

/// `L = ⌈t/η⌉` within its limits.
fn leapfrog_steps(length: f64, step: f64, warmup: &HamiltonianWarmup) -> u32 {
    let most = warmup.most_leapfrog_steps;
    // Saturates at the limits of u32, also for what is not a number.
    ((length / step).ceil() as u32).clamp(1, most.max(1))
}
