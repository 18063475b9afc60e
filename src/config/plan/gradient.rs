//! The keys of samplers on gradients: Hamiltonian, stochastic-gradient and variational ones.

use super::Plan;
use super::scale::is_network;
use crate::config::ConfigError;
use crate::config::schema::{GradientSection, JitterEntry, SamplerSection};
use crate::data::Population;
use crate::math::inverse;
use crate::model::Model;
use crate::privacy::{Acceptance, Batch, Curator, Estimator, GradientNoise};
use crate::sampler::{
    ClipNorm, ClipRule, Combination, Dpvi, Hamiltonian, HamiltonianSettings, HamiltonianWarmup,
    Mass, Variational, gradient_sigma,
};

/// Clip of a network's row gradients without a key, nats a unit of its weights (Abadi 2016 and those
/// after them: 0.1 to 4).
const NETWORK_CLIP: f64 = 1.0;
/// L without a key.
const LEAPFROG_STEPS: u32 = 10;
/// Length of a trajectory without a step, for parameters of unit scale: a quarter turn.
const TRAJECTORY: f64 = std::f64::consts::FRAC_PI_2;
/// Steps of a variational fit. The more, the farther a fit goes and the better it averages; the
/// budget is divided among them at no loss.
pub(super) const FIT_STEPS: u64 = 2000;
/// No fit makes more.
const MOST_FIT_STEPS: u64 = 1 << 32;
/// Adam's first step: with the number above, a fit goes up to 100 scales.
pub(super) const FIT_STEP: f64 = 0.1;
/// Points of a fit's step.
pub(super) const FIT_DRAWS: usize = 1;
/// A Barker decision dearer than so many typical clips is not made.
const LARGEST_CLIPS: f64 = 20.0;
/// Share of the budget that Barker decisions after trajectories of default steps may take.
const DECISIONS: f64 = 0.3;
/// Least share of the budget that goes to gradients.
const LEAST_GRADIENTS: f64 = 0.1;
/// Dearer moves than this many nats are not made.
const LARGEST_CLIP: f64 = (1u64 << 20) as f64;

/// The largest clip bound whose penalty can be drawn: its variance (2cτ)² stays under 2^62 grid
/// steps, each of at least 2^-20 c.
fn largest_penalty_clip(tau: f64) -> f64 {
    (0.999 * f64::powi(2.0, 40) / (tau * tau)).min(LARGEST_CLIP)
}

impl Plan {
    /// A Hamiltonian sampler.
    pub(super) fn hamiltonian(
        &self,
        s: &SamplerSection,
        chosen: Combination,
        model: &dyn Model,
        (rows, row_norm): (Population, f64),
    ) -> Result<Hamiltonian, ConfigError> {
        let d = model.dim();
        let length = self.length()?;
        let leapfrog_steps = s.leapfrog_steps.unwrap_or(LEAPFROG_STEPS);
        let trajectory = self.usual_trajectory(model, rows, row_norm);
        let usual = trajectory / f64::from(leapfrog_steps.max(1));
        let step = s.step.unwrap_or(usual);
        let estimator = self.estimator(s, chosen, (model, rows))?;
        let acceptance = self.acceptance(s, chosen, model)?;
        let mut settings = HamiltonianSettings {
            estimator,
            acceptance,
            clip: self.clip(s, chosen, model, rows.rows)?,
            largest_clip: LARGEST_CLIP,
            gradient: GradientNoise {
                clip: None,
                batch: Batch::All,
                sigma: 0.0,
            },
            step,
            leapfrog_steps,
            jitter: match s.jitter.unwrap_or(JitterEntry::Switch(true)) {
                JitterEntry::Switch(on) => on.then_some(HamiltonianSettings::JITTER),
                JitterEntry::Range(range) => Some(range),
            },
            mass: self.mass(s, d)?,
            warmup: HamiltonianWarmup {
                adapt: s.adapt,
                target: self.target(s, HamiltonianWarmup::default_target(acceptance))?,
                steps: length.warmup,
                adapt_length: s.adapt_length.unwrap_or(false),
                ..HamiltonianWarmup::none()
            },
        };
        let build = |settings: &HamiltonianSettings| {
            Hamiltonian::new(model.prior().clone(), settings.clone(), d)
                .map_err(|e| self.refuse(&e.key, e.what))
        };
        let typical = build(&settings)?.typical_clip(d);
        let share = match (s.step, typical) {
            (None, Some(clip)) => {
                let rule = (settings.estimator, settings.acceptance);
                self.affordable_share(&[clip], rule, (model, rows), DECISIONS)?
            }
            _ => 1.0,
        };
        settings.step *= share;
        let typical = build(&settings)?.typical_clip(d);
        // Without privacy no move is dear, and from a far start all are long.
        if let (Acceptance::Barker, Some(clip)) = (acceptance, typical)
            && self.budget()?.is_some()
        {
            settings.largest_clip = settings.largest_clip.min(LARGEST_CLIPS * clip);
        }
        if let (Estimator::FullBatch, Acceptance::Penalty { tau }) = (estimator, acceptance) {
            settings.largest_clip = largest_penalty_clip(tau);
            self.check_penalty(&settings, typical, tau)?;
        }
        settings.gradient = self.leapfrog_noise(s, model, rows, &settings, typical)?;
        build(&settings)
    }

    /// The length of a trajectory that no budget shortens.
    pub fn usual_trajectory(&self, model: &dyn Model, rows: Population, row_norm: f64) -> f64 {
        TRAJECTORY * self.usual_unit(model, rows, row_norm)
    }

    /// Refuses noise so large that it cannot be drawn for a typical move: without those, a run
    /// would pay for a chain that stands.
    fn check_penalty(
        &self,
        settings: &HamiltonianSettings,
        typical: Option<f64>,
        tau: f64,
    ) -> Result<(), ConfigError> {
        let most = settings.largest_clip;
        // (A constant clip has a refusal of its own.)
        let follows = |rule: ClipRule| rule.norm != ClipNorm::Constant;
        let clip = match typical {
            Some(clip) if clip > most && settings.clip.is_some_and(follows) => clip,
            _ => return Ok(()),
        };
        Err(self.refuse(
            "sampler.step",
            format!(
                "the decisions' noise, tau = {tau:.3e}, can be drawn for moves of clip bound {most:.3e} nats at most, and a typical one has {clip:.3e}: a step of {:.3e} instead of {:.3e} would fit, or a larger epsilon or fewer iterations",
                0.999 * settings.step * most / clip,
                settings.step
            ),
        ))
    }

    /// Clip and noise of a trajectory's gradients: as given, or what decisions leave of the
    /// budget.
    fn leapfrog_noise(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
        rows: Population,
        settings: &HamiltonianSettings,
        typical_clip: Option<f64>,
    ) -> Result<GradientNoise, ConfigError> {
        let section = s.gradient.clone().unwrap_or_default();
        self.only_tau(&section, "a trajectory")?;
        let budget = self.budget()?;
        let clip = self.gradient_clip(&section, model, "sampler.gradient", budget.is_some())?;
        let length = self.length()?;
        let steps = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        let gradients = steps * (f64::from(settings.leapfrog_steps) + 1.0);
        let sigma = match (clip, section.tau, budget) {
            (Some(clip), Some(tau), _) => 2.0 * clip * self.tau_within(tau)?,
            (None, Some(_), _) => {
                return Err(self.tau_without_clip());
            }
            (Some(clip), None, Some(budget)) => {
                let (rho, measure) = self.left_for_steps(model, budget)?;
                let key = typical_clip
                    .map(|c| Curator::cost(rows, c, settings.estimator, settings.acceptance));
                let decision = match key {
                    Some(Ok(Some((key, _)))) => self.price_of(key, measure, budget),
                    _ => 0.0,
                };
                // Barker's decisions cost what the moves make them cost: a third of room.
                let room = match settings.acceptance {
                    Acceptance::Penalty { .. } => 1.0,
                    _ => 1.33,
                };
                let left = (rho - room * decision * steps).max(LEAST_GRADIENTS * rho);
                gradient_sigma(clip, left / gradients) * (1.0 + 2e-5)
            }
            (_, None, _) => 0.0,
        };
        Ok(GradientNoise {
            clip,
            batch: Batch::All,
            sigma,
        })
    }

    fn tau_without_clip(&self) -> ConfigError {
        self.refuse(
            "sampler.gradient.tau",
            "is noise in units of the clip; give 'clip' beside it",
        )
    }

    /// Refuses the keys of stochastic gradients elsewhere.
    fn only_tau(&self, section: &GradientSection, who: &str) -> Result<(), ConfigError> {
        for (key, given) in [
            ("rate", section.rate.is_some()),
            ("extra_tau", section.extra_tau.is_some()),
        ] {
            if given {
                return Err(self.refuse(
                    &format!("sampler.gradient.{key}"),
                    format!(
                        "belongs to stochastic gradients; {who} follows all rows, with noise 'tau'"
                    ),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn tau_within(&self, tau: f64) -> Result<f64, ConfigError> {
        if tau > 0.0 && tau.is_finite() {
            return Ok(tau);
        }
        Err(self.refuse(
            "sampler.gradient.tau",
            format!("must be positive, not {tau}"),
        ))
    }

    /// The bound on a row's gradient, or on a unit's; `None` without privacy where none is given.
    pub(super) fn gradient_clip(
        &self,
        section: &GradientSection,
        model: &dyn Model,
        key: &str,
        private: bool,
    ) -> Result<Option<f64>, ConfigError> {
        let clip = match (section.clip, section.share, self.ratio_rate(model)) {
            (Some(_), Some(_), _) => {
                return Err(self.refuse(
                    &format!("{key}.share"),
                    "contradicts 'clip'; keep one of the two",
                ));
            }
            (Some(clip), None, _) => clip,
            (None, share, Some(bound)) => share.unwrap_or(1.0) * bound,
            (None, None, None) if private && is_network(model) => NETWORK_CLIP,
            (None, Some(_), None) => {
                return Err(self.refuse(
                    &format!("{key}.share"),
                    format!(
                        "model '{}' has no bound on its gradients here; give 'clip'",
                        self.model_name(model)
                    ),
                ));
            }
            (None, None, None) if private => {
                return Err(self.refuse(
                    if key.starts_with("run") {
                        key
                    } else {
                        "sampler"
                    },
                    format!(
                        "model '{}' has no bound on its gradients here; give {key}.clip",
                        self.model_name(model)
                    ),
                ));
            }
            (None, None, None) => return Ok(None),
        };
        if clip > 0.0 && clip.is_finite() {
            return Ok(Some(clip));
        }
        let (name, given) = match section.share {
            Some(share) => ("share", share),
            None => ("clip", clip),
        };
        Err(self.refuse(
            &format!("{key}.{name}"),
            format!("must be positive, not {given}"),
        ))
    }

    /// The mass that fits parameters of the declared scale or covariance.
    fn mass(&self, s: &SamplerSection, d: usize) -> Result<Mass, ConfigError> {
        match (&s.scale, &s.covariance) {
            (None, None) => Ok(Mass::Scalar(1.0)),
            (Some(_), None) => Ok(Mass::Diagonal(
                self.scale(s, d)?.iter().map(|v| 1.0 / (v * v)).collect(),
            )),
            (None, Some(rows)) => {
                let flat = self.matrix("sampler.covariance", rows, d)?;
                let precision =
                    inverse(&flat, d).map_err(|what| self.refuse("sampler.covariance", what))?;
                Mass::dense(&precision, d).map_err(|e| self.refuse("sampler.covariance", e.what))
            }
            _ => Err(self.refuse("sampler.covariance", "contradicts 'scale'; keep one")),
        }
    }

    /// `scale`, one positive number a parameter; 1 without it.
    pub(super) fn scale(&self, s: &SamplerSection, d: usize) -> Result<Vec<f64>, ConfigError> {
        let values = s.scale.as_ref().map_or(vec![1.0; d], |v| v.expand(d));
        self.check_scale("sampler.scale", &values, d)?;
        Ok(values)
    }

    /// Checks d scales: positive, and such that no step of theirs overflows.
    pub(super) fn check_scale(
        &self,
        key: &str,
        values: &[f64],
        d: usize,
    ) -> Result<(), ConfigError> {
        if values.len() == d && values.iter().all(|v| (1e-200..=1e200).contains(v)) {
            return Ok(());
        }
        Err(self.refuse(
            key,
            format!("'scale' needs a positive number (1e-200 to 1e200), or {d} of them"),
        ))
    }

    /// DPVI as a sampler: all of the budget in one fit.
    pub(super) fn variational(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
    ) -> Result<Variational, ConfigError> {
        let section = s.gradient.clone().unwrap_or_default();
        self.only_tau(&section, "a fit")?;
        let budget = self.budget()?;
        let clip = self.gradient_clip(&section, model, "sampler.gradient", budget.is_some())?;
        let fit = Dpvi {
            steps: s.steps.unwrap_or(FIT_STEPS),
            learning_rate: s.step.unwrap_or(FIT_STEP),
            draws_per_step: FIT_DRAWS,
            scale: Some(self.scale(s, model.dim())?),
        };
        self.check_fit(&fit, model, ("sampler.steps", "sampler.step"))?;
        let releases = fit.steps as f64 * fit.draws_per_step as f64;
        let sigma = match (clip, section.tau, budget) {
            (Some(clip), Some(tau), _) => 2.0 * clip * self.tau_within(tau)?,
            (None, Some(_), _) => return Err(self.tau_without_clip()),
            (Some(clip), None, Some(budget)) => {
                let (rho, _) = self.left_for_steps(model, budget)?;
                gradient_sigma(clip, rho / releases) * (1.0 + 2e-5)
            }
            _ => 0.0,
        };
        let noise = GradientNoise {
            clip,
            batch: Batch::All,
            sigma,
        };
        Ok(Variational::new(model.prior().clone(), fit, noise))
    }

    pub(super) fn check_fit(
        &self,
        fit: &Dpvi,
        model: &dyn Model,
        (steps, step): (&str, &str),
    ) -> Result<(), ConfigError> {
        if !(1..=MOST_FIT_STEPS).contains(&fit.steps) {
            return Err(self.refuse(
                steps,
                format!(
                    "'steps' must lie between 1 and {MOST_FIT_STEPS}, not {}",
                    fit.steps
                ),
            ));
        }
        if !(fit.learning_rate > 0.0 && fit.learning_rate <= 1.0) {
            return Err(self.refuse(
                step,
                format!("'step' must lie in (0, 1], not {}", fit.learning_rate),
            ));
        }
        if model.prior().is_bounded() {
            return Err(self.refuse(
                "model.box",
                "variational inference fits a Gaussian, which no box holds; drop the box, or start elsewhere",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare;
    use crate::sampler::Sampler;

    const RUN: &str = "[data]\nfile = \"t.csv\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\"]\nclamp = [-1, 1]\n[model]\nkind = \"logistic\"\nprior = { kind = \"normal\", sd = 1.0 }\n[sampler]\nalgorithm = \"dp-hmc\"\n[run]\niterations = 2000\n[privacy]\nepsilon = 0.01\ndelta = 1e-6\n";

    /// A tiny budget takes so large a τ that far moves cannot be decided: they are rejected, and
    /// a step that makes typical moves of them is refused.
    #[test]
    fn no_move_asks_for_more_noise_than_can_be_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let table: String = (0..200)
            .map(|i| format!("{},{}\n", i % 3 - 1, i % 2))
            .collect();
        std::fs::write(folder.path().join("t.csv"), format!("a,y\n{table}")).unwrap();
        let plan = |step: &str| {
            let text = RUN.replace("[run]", &format!("{step}[run]"));
            prepare(Plan::parse(&folder.path().join("run.toml"), text).unwrap())
        };
        let prepared = plan("").unwrap();
        let Sampler::Hamiltonian(sampler) = &prepared.sampler else {
            panic!("dp-hmc is Hamiltonian");
        };
        let s = sampler.settings();
        let largest = s.largest_clip;
        assert!((100.0..LARGEST_CLIP).contains(&largest), "{largest}");
        for clip in [largest, 0.501 * largest, 0.499 * largest] {
            assert!(Curator::cost(200, clip, s.estimator, s.acceptance).is_ok());
        }
        assert!(Curator::cost(200, 4.0 * largest, s.estimator, s.acceptance).is_err());
        let refusal = plan("step = 1e5\n").err().unwrap().to_string();
        assert!(refusal.contains("sampler.step"), "{refusal}");
        let fits = refusal.split("a step of ").nth(1).unwrap();
        let fits = fits.split(' ').next().unwrap();
        assert!(plan(&format!("step = {fits}\n")).is_ok(), "{refusal}");
    }
}
