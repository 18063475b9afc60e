//! Settings that are each allowed but together ask for the impossible: moves whose clip
//! bound no grid can hold, minibatches and noise that cannot be drawn. Found from public
//! numbers alone, before a run has a directory.

use super::Plan;
use crate::config::ConfigError;
use crate::data::Population;
use crate::model::Model;
use crate::privacy::{Acceptance, Curator, Estimator, Lambda};
use crate::sampler::{ClipNorm, RandomWalk, Sampler};

/// Grids exist for log2 c within ±80. A single move and warm-up may stray from the typical
/// one by a factor of 2^6.
const LOG2_CLIP: f64 = 74.0;

impl Plan {
    /// Checks that a typical move of `sampler` over `rows`, a [`Population`] or a number of
    /// rows, can be decided at all.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key whose value is the most extreme.
    pub fn check_range(
        &self,
        sampler: &Sampler,
        model: &dyn Model,
        rows: impl Into<Population>,
    ) -> Result<(), ConfigError> {
        let rows = rows.into();
        if let Some(start) = self.warm_start(model)? {
            self.check_gradients(&start, model, "run.start")?;
        }
        if let Some(walk) = sampler.walk() {
            return self.check_walk(walk, model, rows);
        }
        let key = match (sampler, self.config.sampler.step) {
            (Sampler::StochasticGradient(_), Some(_)) => "sampler.step",
            _ => "sampler.gradient",
        };
        self.check_gradients(sampler, model, key)?;
        if let Sampler::Hamiltonian(s) = sampler
            && let Some(clip) = s.typical_clip(model.dim())
        {
            let (estimator, acceptance) = (s.settings().estimator, s.settings().acceptance);
            self.check_decision(rows, clip, (estimator, acceptance))?;
        }
        if self.config.privacy.not_private {
            return Ok(());
        }
        sampler
            .step_cost(rows, model, (self.steps()?, self.chains()))
            .map(|_| ())
            .map_err(|halt| self.refuse(key, halt.to_string()))
    }

    /// Iterations, warm-up included.
    pub(super) fn steps(&self) -> Result<u64, ConfigError> {
        let length = self.length()?;
        Ok(length.iterations.saturating_add(length.warmup))
    }

    /// Checks that the sampler's gradients can be released at all, without privacy too.
    fn check_gradients(
        &self,
        sampler: &Sampler,
        model: &dyn Model,
        key: &str,
    ) -> Result<(), ConfigError> {
        let (noises, hint) = match sampler {
            Sampler::Walk(_) | Sampler::PosteriorDraws(_) => (vec![], ""),
            Sampler::Hamiltonian(s) => (vec![s.settings().gradient], ""),
            Sampler::Optimiser(s) => (vec![s.noise()], ""),
            Sampler::Variational(s) => (vec![s.noise()], ""),
            // A schedule's noise is extreme at its ends.
            Sampler::StochasticGradient(s) => (
                vec![s.noise_of_step(1), s.noise_of_step(self.steps()?.max(1))],
                "; the noise follows from the step and its schedule",
            ),
        };
        for noise in noises {
            Curator::can_release(noise, model)
                .map_err(|halt| self.refuse(key, format!("{halt}{hint}")))?;
        }
        Ok(())
    }

    fn check_walk(
        &self,
        sampler: &RandomWalk,
        model: &dyn Model,
        rows: Population,
    ) -> Result<(), ConfigError> {
        if !sampler.decides() {
            return Ok(());
        }
        self.check_fast_mh(sampler, rows)?;
        let d = model.dim();
        // Without a clip the curator starts from the length of the move, and widens.
        let given = sampler.typical_clip(d);
        let clip = given.unwrap_or_else(|| sampler.typical_move(ClipNorm::Euclidean, d));
        let log = clip.log2();
        if !(log <= LOG2_CLIP && (given.is_none() || log >= -LOG2_CLIP)) {
            let (key, value) = self.most_extreme(sampler, model);
            return Err(self.refuse(
                key,
                format!(
                    "{value:e} gives a typical move the clip bound c = {clip:.3e} nats, outside [2^-{LOG2_CLIP}, 2^{LOG2_CLIP}], where sums are exact; choose a {} value",
                    if log > 0.0 { "smaller" } else { "larger" }
                ),
            ));
        }
        let stretch = match (sampler.estimator, sampler.acceptance) {
            (Estimator::Poisson { .. }, Acceptance::Penalty { .. }) => sampler.longest_move(d),
            _ => 1.0,
        };
        let clip = stretch * clip.max(f64::powf(2.0, -LOG2_CLIP));
        self.check_decision(rows, clip, sampler.rule(clip))
    }

    /// Checks that moves of this clip bound can be decided.
    fn check_decision(
        &self,
        rows: Population,
        clip: f64,
        (estimator, acceptance): (Estimator, Acceptance),
    ) -> Result<(), ConfigError> {
        match Curator::cost(rows, clip, estimator, acceptance) {
            Ok(_) => Ok(()),
            Err(halt) => {
                let key = match estimator {
                    Estimator::Poisson { lambda } => match lambda {
                        Lambda::Fixed(_) => "sampler.lambda",
                        Lambda::Ratio(_) => "sampler.lambda_ratio",
                        Lambda::Chi(_) => "sampler.chi",
                    },
                    Estimator::FixedBatch { .. } => "sampler.batch",
                    Estimator::FullBatch => match acceptance {
                        Acceptance::Penalty { .. } => "sampler.tau",
                        _ => self.choice("sampler.acceptance"),
                    },
                };
                Err(self.refuse(key, halt.to_string()))
            }
        }
    }

    /// The factor of the clip bound that is furthest from 1, by key.
    fn most_extreme(&self, sampler: &RandomWalk, model: &dyn Model) -> (&'static str, f64) {
        let s = &self.config.sampler;
        let rate = sampler.clip.map_or(1.0, |c| c.rate);
        let size = sampler.typical_move(ClipNorm::Euclidean, model.dim()) / sampler.step;
        let mut factors = vec![("sampler.step", sampler.step)];
        match &s.clip {
            Some(clip) => factors.push(("sampler.clip", clip.rate.or(clip.rms).unwrap_or(rate))),
            None => factors.push(("model", rate / model.tempering())),
        }
        if s.clip.as_ref().is_none_or(|clip| clip.rms.is_some()) {
            factors.push(("model.tempering", model.tempering()));
        }
        if s.scale.is_some() {
            factors.push(("sampler.scale", size));
        } else if s.covariance.is_some() {
            factors.push(("sampler.covariance", size));
        }
        let strength = |value: f64| match value.log2().abs() {
            log if log.is_nan() => f64::INFINITY,
            log => log,
        };
        factors
            .into_iter()
            .max_by(|a, b| strength(a.1).total_cmp(&strength(b.1)))
            .unwrap_or(("sampler", rate))
    }
}
