//! Hamiltonian samplers on released gradients: `hmc`, `dp-hmc` (Räisä 2021) and `barker-hmc`
//! (docs/proofs/hmc.md). A step draws momenta, follows L leapfrog steps and asks for one
//! decision. `docs/proofs/hmc.md` says why noisy, clipped and wrong gradients leave the target as
//! it is.

mod chees;
mod dual_averaging;
mod halton;
#[cfg(test)]
mod known_density;
mod leapfrog;
#[cfg(test)]
mod leapfrog_tests;
mod mass;
mod settings;
#[cfg(test)]
mod tests;
mod warmup;
#[cfg(test)]
mod warmup_tests;

pub use mass::Mass;
pub use settings::HamiltonianSettings;
pub use warmup::HamiltonianWarmup;

use std::sync::Arc;

use ndarray::{Array2, ArrayView1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use self::chees::Trajectories;
use self::halton::jitter;
use self::leapfrog::Leapfrog;
use self::settings::SMALLEST_CLIP;
use self::warmup::{MOST_LEAPFROG_STEPS, Tuned, Tuner};
use super::proposal::ClipNorm;
use super::{Chains, SettingError, StepInfo};
use crate::model::Prior;
use crate::privacy::{Halt, MOST_STEPS, Moves, Releases};

/// Moves longer than this in the metric of the mass are divergent.
const LONGEST_MOVE: f64 = (1u64 << 40) as f64;
/// Log ratio that no rule accepts, and finite: −∞ would be decided free of charge.
const HOPELESS: f64 = -1e300;

/// A Hamiltonian sampler.
#[derive(Clone, Debug)]
pub struct Hamiltonian {
    prior: Arc<Prior>,
    settings: HamiltonianSettings,
    tuned: Tuned,
    tuner: Tuner,
    /// Of the jitter sequence; drawn at the first step.
    shift: Option<f64>,
    iteration: u64,
    divergent: u64,
}

/// What `state.json` keeps of it: all of it public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HamiltonianState {
    #[serde(flatten)]
    tuned: Tuned,
    tuner: Tuner,
    shift: Option<f64>,
    iteration: u64,
    divergent: u64,
}

impl Hamiltonian {
    /// A sampler for the given prior; d parameters.
    ///
    /// # Errors
    /// [`SettingError`] naming the setting.
    pub fn new(
        prior: Prior,
        settings: HamiltonianSettings,
        d: usize,
    ) -> Result<Self, SettingError> {
        if prior.anchor.is_some() {
            let what = "Hamiltonian samplers read whole rows: remove it";
            return Err(SettingError::new("sampler.anchor", what));
        }
        settings.validate(d)?;
        let s = &settings;
        let tuned = Tuned {
            step: s.step,
            leapfrog_steps: s.leapfrog_steps,
            mass: s.mass.clone(),
        };
        Ok(Hamiltonian {
            prior: Arc::new(prior),
            tuner: Tuner::new(&s.warmup, &tuned, d),
            tuned,
            settings,
            shift: None,
            iteration: 0,
            divergent: 0,
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &HamiltonianSettings {
        &self.settings
    }

    /// Step size η now, without jitter.
    pub fn step_size(&self) -> f64 {
        self.tuned.step
    }

    /// Leapfrog steps L now: the next step releases L + 1 gradients and one decision a chain.
    pub fn leapfrog_steps(&self) -> u32 {
        self.tuned.leapfrog_steps
    }

    /// Mass matrix now.
    pub fn mass(&self) -> &Mass {
        &self.tuned.mass
    }

    /// Divergent trajectories so far, all chains together: they left all bounds and were
    /// rejected. Follows released values, hence public.
    pub fn divergent(&self) -> u64 {
        self.divergent
    }

    /// Typical length of a move in the given norm; d parameters. A free flight, `Lη√d` in the
    /// metric of M, but where warm-up fits M to the posterior no more than `√(2d)`: two
    /// independent draws lie so far apart.
    pub fn typical_move(&self, norm: ClipNorm, d: usize) -> f64 {
        let flight = self.tuned.step * f64::from(self.tuned.leapfrog_steps);
        let fitted = self.settings.warmup.fits_mass();
        let time = if fitted {
            flight.min(std::f64::consts::SQRT_2)
        } else {
            flight
        };
        match norm {
            ClipNorm::Constant => 1.0,
            ClipNorm::Proposal => time * (d as f64).sqrt(),
            ClipNorm::Euclidean => time * self.tuned.mass.inverse_root_size(d),
        }
    }

    /// Clip bound of a typical move, nats; `None` without a clip.
    pub fn typical_clip(&self, d: usize) -> Option<f64> {
        let clip = self.settings.clip?;
        let typical = clip.rate * self.typical_move(clip.norm, d);
        Some(typical.clamp(SMALLEST_CLIP, self.settings.largest_clip))
    }

    /// Clip bound of a move, nats: symmetric in θ, θ' to the bit, and never zero. Infinite
    /// where the move is longer than the bounds on it allow.
    pub(super) fn clip(&self, theta: ArrayView1<'_, f64>, proposal: ArrayView1<'_, f64>) -> f64 {
        let gap: Vec<f64> = theta.iter().zip(proposal).map(|(t, p)| p - t).collect();
        let length = self.tuned.mass.norm(&gap);
        if length.is_nan() || length > LONGEST_MOVE {
            return f64::INFINITY;
        }
        let Some(rule) = self.settings.clip else {
            return SMALLEST_CLIP;
        };
        let size = match rule.norm {
            ClipNorm::Constant => 1.0,
            ClipNorm::Proposal => length,
            ClipNorm::Euclidean => gap.iter().map(|g| g * g).sum::<f64>().sqrt(),
        };
        let clip = (rule.rate * size).max(SMALLEST_CLIP);
        if clip <= self.settings.largest_clip {
            clip
        } else {
            f64::INFINITY
        }
    }

    /// Advances all chains by one step: L + 1 requests for gradients of every chain and one
    /// for decisions, whatever the trajectories do.
    ///
    /// # Errors
    /// [`Halt`]; the chains have not moved then.
    pub fn step(
        &mut self,
        chains: &mut Chains,
        releases: &mut dyn Releases,
    ) -> Result<StepInfo, Halt> {
        let (count, d) = chains.thetas.dim();
        if d != self.tuner.dim() {
            let known = self.tuner.dim();
            return Err(Halt::Refused(format!(
                "the sampler is one of {known} parameters, the chains have {d}"
            )));
        }
        let jitter = self.jitter(chains);
        let mut proposals = chains.thetas.clone();
        let mut momenta = Array2::zeros((count, d));
        for (mut p, rng) in momenta.rows_mut().into_iter().zip(&mut chains.rngs) {
            p.assign(&ArrayView1::from(&self.tuned.mass.draw(d, rng)));
        }
        let before = self.energies(&momenta);
        Leapfrog {
            prior: &self.prior,
            mass: &self.tuned.mass,
            noise: self.settings.gradient,
            step: self.tuned.step * jitter,
            steps: self.tuned.leapfrog_steps,
        }
        .run(&mut proposals, &mut momenta, releases)?;
        let after = self.energies(&momenta);

        let mut public = Vec::with_capacity(count);
        let mut clips = Vec::with_capacity(count);
        let mut divergent = 0;
        for c in 0..count {
            let kinetic = before[c] - after[c];
            let clip = self.clip(chains.thetas.row(c), proposals.row(c));
            if kinetic.is_finite() && clip.is_finite() {
                public.push(self.log_ratio(chains.thetas.row(c), proposals.row(c), kinetic));
                clips.push(clip);
            } else {
                // Decided at a standstill: no number that is not one gets any further.
                divergent += 1;
                proposals.row_mut(c).assign(&chains.thetas.row(c));
                public.push(HOPELESS);
                clips.push(self.clip(chains.thetas.row(c), chains.thetas.row(c)));
            }
        }
        let mut info = StepInfo {
            accepted: vec![false; count],
        };
        let moves = Moves {
            thetas: chains.thetas.view(),
            proposals: proposals.view(),
            public: &public,
            clip_bounds: self.settings.clip.is_some().then_some(&clips),
        };
        let (estimator, rule) = (self.settings.estimator, self.settings.acceptance);
        releases.decide(&moves, estimator, rule, &mut info.accepted)?;

        let from = self
            .settings
            .warmup
            .is_active()
            .then(|| chains.thetas.clone());
        for (c, _) in info.accepted.iter().enumerate().filter(|(_, a)| **a) {
            chains.thetas.row_mut(c).assign(&proposals.row(c));
            chains.accepted[c] += 1;
        }
        self.iteration += 1;
        self.divergent += divergent;
        if let Some(from) = from {
            let trajectories = Trajectories {
                from: &from,
                to: &proposals,
                momenta: &momenta,
                accepted: &info.accepted,
            };
            self.tuner.update(
                &self.settings.warmup,
                self.iteration,
                &trajectories,
                &chains.thetas,
                &mut self.tuned,
            );
        }
        Ok(info)
    }

    /// Public part h of the log acceptance ratio, nats: log prior ratio + K(p) − K(p').
    fn log_ratio(
        &self,
        theta: ArrayView1<'_, f64>,
        proposal: ArrayView1<'_, f64>,
        kinetic: f64,
    ) -> f64 {
        let log_prior = |t: ArrayView1<'_, f64>| self.prior.log_density(&t.to_vec());
        let landed = log_prior(proposal);
        // Outside the support nothing else may decide, not even −∞ − ∞.
        if landed == f64::NEG_INFINITY {
            return landed;
        }
        (landed - log_prior(theta) + kinetic).clamp(HOPELESS, -HOPELESS)
    }

    /// Kinetic energy of every chain, nats.
    fn energies(&self, momenta: &Array2<f64>) -> Vec<f64> {
        let mass = &self.tuned.mass;
        let rows = momenta.rows().into_iter();
        rows.map(|p| mass.kinetic(&p.to_vec())).collect()
    }

    /// This iteration's factor on η, from public coins.
    fn jitter(&mut self, chains: &mut Chains) -> f64 {
        let (Some(range), Some(rng)) = (self.settings.jitter, chains.rngs.first_mut()) else {
            return 1.0;
        };
        jitter(
            range,
            self.iteration,
            *self.shift.get_or_insert_with(|| rng.random()),
        )
    }

    /// The public state.
    pub fn state(&self) -> HamiltonianState {
        HamiltonianState {
            tuned: self.tuned.clone(),
            tuner: self.tuner.clone(),
            shift: self.shift,
            iteration: self.iteration,
            divergent: self.divergent,
        }
    }

    /// Restores the public state.
    ///
    /// # Errors
    /// A message naming the field that is damaged or of another dimension.
    pub fn restore(&mut self, state: &HamiltonianState) -> Result<(), String> {
        let d = self.tuner.dim();
        let mass = state.tuned.mass.validate(d);
        mass.map_err(|e| format!("'mass' {}", e.what))?;
        let damaged = |field: &str| Err(format!("'{field}' is damaged"));
        if !(state.tuned.step > 0.0 && state.tuned.step.is_finite()) {
            return damaged("step");
        }
        if !(1..=MOST_LEAPFROG_STEPS).contains(&state.tuned.leapfrog_steps) {
            return damaged("leapfrog_steps");
        }
        if state.shift.is_some_and(|s| !(0.0..1.0).contains(&s)) {
            return damaged("shift");
        }
        if state.iteration > MOST_STEPS {
            return damaged("iteration");
        }
        if state.divergent > MOST_STEPS {
            return damaged("divergent");
        }
        if !state.tuner.is_consistent(d) {
            return Err(format!("'tuner' is not one of {d} parameters, or damaged"));
        }
        self.tuned = state.tuned.clone();
        self.tuner = state.tuner.clone();
        self.shift = state.shift;
        self.iteration = state.iteration;
        self.divergent = state.divergent;
        Ok(())
    }
}
