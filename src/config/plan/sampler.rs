//! `[sampler]`: proposal, estimator, acceptance rule and clip.

use super::Plan;
use super::scale::PublicCurvature;
use crate::config::ConfigError;
use crate::config::schema::SamplerSection;
use crate::data::Population;
use crate::math::cholesky;
use crate::model::Model;
use crate::privacy::{Acceptance, Correction, Curator, Estimator};
use crate::sampler::{
    AcceptanceName, Adaptation, ClipNorm, ClipRule, Combination, EstimatorName, Family, FastMh,
    Preconditioner, RandomWalk, Sampler,
};

/// Share of the budget that a planned walk of default steps may be expected to spend: moves differ.
const PLANNED: f64 = 0.98;

/// Whether the run file says how wide the posterior is.
pub(super) fn shaped(s: &SamplerSection) -> bool {
    s.scale.is_some() || s.covariance.is_some()
}

impl Plan {
    /// The sampler over `rows`, a [`Population`] or a number of rows, of norm at most
    /// `row_norm`.
    ///
    /// # Errors
    /// [`ConfigError`] for keys that are missing, bad, or foreign to the algorithm.
    pub fn sampler(
        &self,
        model: &dyn Model,
        rows: impl Into<Population>,
        row_norm: f64,
    ) -> Result<Sampler, ConfigError> {
        let rows = rows.into();
        let s = &self.config.sampler;
        let family = self.family()?;
        self.check_positive(s)?;
        self.check_privacy(family)?;
        self.check_unit(family, model)?;
        self.check_keys(s, family)?;
        self.check_scales(family, model)?;
        match family {
            Family::Decisions(chosen) if chosen.leapfrog => {
                Ok(self.hamiltonian(s, chosen, model, (rows, row_norm))?.into())
            }
            Family::Decisions(chosen) => Ok(self.walk(s, chosen, model, (rows, row_norm))?.into()),
            Family::StochasticGradient { dynamics, private } => Ok(self
                .stochastic_gradient(s, (dynamics, private), model, (rows.rows, row_norm))?
                .into()),
            Family::Optimiser { rule, private } => Ok(self
                .optimiser(s, (rule, private), model, (rows.rows, row_norm))?
                .into()),
            Family::Laplace => {
                let chosen = Combination {
                    estimator: EstimatorName::All,
                    acceptance: AcceptanceName::Barker,
                    anchored: true,
                    fast_mh: false,
                    leapfrog: false,
                };
                Ok(self.walk(s, chosen, model, (rows, row_norm))?.into())
            }
            Family::Variational => Ok(self.variational(s, model)?.into()),
            Family::PosteriorDraws => Ok(self.posterior_draws(s, model)?.into()),
        }
    }

    fn walk(
        &self,
        s: &SamplerSection,
        chosen: Combination,
        model: &dyn Model,
        (rows, row_norm): (Population, f64),
    ) -> Result<RandomWalk, ConfigError> {
        let d = model.dim();
        let estimator = self.estimator(s, chosen, (model, rows))?;
        let acceptance = self.acceptance(s, chosen, model)?;
        let target = self.target(s, chosen.default_target())?;
        let length = self.length()?;
        let size = (rows.rows, row_norm);
        let (anchored, estimator) = match chosen.anchored {
            true => {
                let rule = (estimator, acceptance);
                let (settings, estimator) = self.anchored_rule(s, model, size, rule)?;
                (Some(settings), estimator)
            }
            false => (None, estimator),
        };
        let usual = match anchored.is_some() {
            true => 2.38 / (d as f64).sqrt(),
            false => self.usual_step(model, rows, row_norm),
        };
        let step = s.step.unwrap_or(usual);
        let mut sampler = RandomWalk::new(
            model.prior().clone(),
            estimator,
            acceptance,
            match anchored {
                Some(_) => None,
                None => self.clip(s, chosen, model, rows.rows)?,
            },
            step,
            self.preconditioner(s, d)?,
            Adaptation::new(s.adapt, target, length.warmup, d),
        );
        if s.step.is_none() && anchored.is_none() {
            let clips = sampler.typical_clips(d);
            let rule = (estimator, acceptance);
            sampler.step *= self.affordable_share(&clips, rule, (model, rows), PLANNED)?;
        }
        if chosen.fast_mh {
            let settings = self.fast_mh(s, chosen, rows)?;
            sampler.fast_mh = Some(FastMh {
                settings,
                population: rows,
            });
        }
        Ok(match anchored {
            Some(settings) => sampler.with_anchoring(settings),
            None => sampler,
        })
    }

    /// A rough posterior sd by public numbers; 1 where a scale or covariance says it.
    pub(super) fn usual_unit(&self, model: &dyn Model, rows: Population, row_norm: f64) -> f64 {
        match shaped(&self.config.sampler) {
            true => 1.0,
            false => PublicCurvature::of(model, self.rows_at_most(rows.rows), row_norm).scale(),
        }
    }

    /// The step of a random walk that no budget shortens.
    pub fn usual_step(&self, model: &dyn Model, rows: Population, row_norm: f64) -> f64 {
        2.38 / (model.dim() as f64).sqrt() * self.usual_unit(model, rows, row_norm)
    }

    /// What a usual step is multiplied by so that the decisions of the planned run, of these
    /// typical clips, take this share of the budget, at most 1. Barker's decisions cost the square
    /// of a move, and so does the distance that a walk covers: for one budget it is that of any
    /// shorter step, and nearly all of those are accepted.
    pub(super) fn affordable_share(
        &self,
        clips: &[f64],
        (estimator, acceptance): (Estimator, Acceptance),
        (model, rows): (&dyn Model, Population),
        part: f64,
    ) -> Result<f64, ConfigError> {
        let by_moves = match (acceptance, estimator) {
            (_, Estimator::FixedBatch { .. }) => false,
            (Acceptance::Barker | Acceptance::NoisyBarker { .. }, _) => true,
            _ => false,
        };
        let budget = match self.budget()? {
            Some(budget) if by_moves => budget,
            _ => return Ok(1.0),
        };
        let (limit, measure) = self.left_for_steps(model, budget)?;
        let length = self.length()?;
        let planned = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        let costs = clips
            .iter()
            .map(|c| match Curator::cost(rows, *c, estimator, acceptance) {
                Ok(Some((key, _))) => self.price_of(key, measure, budget),
                _ => 0.0,
            });
        let mean = costs.sum::<f64>() / clips.len() as f64;
        let share = (part * limit / (mean * planned)).sqrt();
        Ok(if share < 1.0 { share } else { 1.0 })
    }

    /// Acceptance rate that warm-up aims at.
    pub(super) fn target(&self, s: &SamplerSection, usual: f64) -> Result<f64, ConfigError> {
        let target = s.target_acceptance.unwrap_or(usual);
        if target > 0.0 && target < 1.0 {
            return Ok(target);
        }
        Err(self.refuse("sampler.target_acceptance", "must lie between 0 and 1"))
    }

    fn check_positive(&self, s: &SamplerSection) -> Result<(), ConfigError> {
        for (key, value) in [
            ("lambda", s.lambda),
            ("lambda_ratio", s.lambda_ratio),
            ("chi", s.chi),
            ("tau", s.tau),
            ("step_epsilon", s.step_epsilon),
            ("step", s.step),
            ("friction", s.friction),
            ("diffusion", s.diffusion),
        ] {
            if let Some(v) = value
                && !(v > 0.0 && v.is_finite())
            {
                return Err(self.refuse(
                    &format!("sampler.{key}"),
                    format!("must be positive, not {v}"),
                ));
            }
        }
        Ok(())
    }

    /// The kind of sampler that `[sampler]` names, by one name or by its choices: the only
    /// place that reads them.
    ///
    /// # Errors
    /// [`ConfigError`] where it is over- or underspecified, or cannot be run by anyone.
    pub fn family(&self) -> Result<Family, ConfigError> {
        let s = &self.config.sampler;
        let choices = [
            ("estimator", s.estimator.is_some()),
            ("acceptance", s.acceptance.is_some()),
            ("anchored", s.anchored.is_some()),
        ];
        let given = choices.iter().find(|(_, given)| *given);
        let combination = match (s.algorithm, given, s.estimator, s.acceptance) {
            (Some(algorithm), None, _, _) => return Ok(algorithm.family()),
            (Some(algorithm), Some((key, _)), _, _) => {
                return Err(self.refuse(
                    &format!("sampler.{key}"),
                    format!(
                        "algorithm = \"{}\" chooses estimator, acceptance and anchor already; keep one or the others",
                        algorithm.name()
                    ),
                ));
            }
            (None, None, _, _) => {
                return Err(self.refuse(
                    "sampler",
                    "names no sampler: give algorithm = \"poisson-barker\" or another name, or estimator and acceptance",
                ));
            }
            (None, _, Some(estimator), Some(acceptance)) => Combination {
                estimator,
                acceptance,
                anchored: s.anchored.unwrap_or(false),
                fast_mh: false,
                leapfrog: s.leapfrog_steps.is_some(),
            },
            (None, _, None, _) => {
                return Err(self.refuse(
                    "sampler.estimator",
                    "is missing: \"all\", \"poisson\" or \"fixed-batch\"",
                ));
            }
            (None, _, Some(_), None) => {
                return Err(self.refuse(
                    "sampler.acceptance",
                    "is missing: \"barker\", \"penalty\", \"noisy-barker\" or (without privacy) \"metropolis\"",
                ));
            }
        };
        match combination.refusal() {
            Some((key, why)) => Err(self.refuse(&format!("sampler.{key}"), why)),
            None => Ok(Family::Decisions(combination)),
        }
    }

    /// Where the choice that `key` stands for was made: there, or by an algorithm's name.
    pub(super) fn choice(&self, key: &'static str) -> &'static str {
        match self.config.sampler.algorithm {
            Some(_) => "sampler.algorithm",
            None => key,
        }
    }

    /// A private run needs a private algorithm.
    fn check_privacy(&self, chosen: Family) -> Result<(), ConfigError> {
        if chosen.is_private() || self.config.privacy.not_private {
            return Ok(());
        }
        let name = chosen.name();
        if let Family::StochasticGradient { .. } | Family::Optimiser { .. } = chosen {
            return Err(self.refuse(
                "sampler.algorithm",
                format!("'{name}' is not private; choose dp-{name}, which clips gradients and charges their noise, or run it with --not-private"),
            ));
        }
        Err(self.refuse(
            self.choice("sampler.acceptance"),
            format!(
                "'{name}' is not private, for metropolis acceptance without noise is not; choose a private one such as barker, poisson-barker or anchored-barker, or run it with --not-private"
            ),
        ))
    }

    /// Refuses samplers whose answers are of single rows, where rows belong to units.
    fn check_unit(&self, chosen: Family, model: &dyn Model) -> Result<(), ConfigError> {
        let s = &self.config.sampler;
        let Some(unit) = self.unit()? else {
            return Ok(());
        };
        let declared = self.declared()?;
        let mut levels = declared.features.iter().map(|(_, e)| e);
        let tells_units =
            |e: &crate::config::FeatureEntry| e.one_hot.is_some() || e.indicator.is_some();
        if levels.any(|e| tells_units(e) && e.column.as_ref() == Some(&unit.column)) {
            return Err(self.refuse(
                "data.unit",
                format!("'{}' is a feature that tells units apart too, but the effect of a single unit is just what must not show; drop that feature", unit.column),
            ));
        }
        if self.config.data.bounds.is_some() {
            return Err(self.refuse(
                "data.bounds",
                "are of single rows, and data.unit says that units are clipped; drop one of the two",
            ));
        }
        match chosen {
            Family::PosteriorDraws => Err(self.refuse(
                "data.unit",
                format!("'{}' pays for bounds of single rows; use algorithm = \"anchored-barker\" or \"dp-laplace\"", chosen.name()),
            )),
            Family::Decisions(Combination { anchored: true, .. })
                if s.is_explicit() || s.anchor.as_ref().is_some_and(|a| a.decisions.is_some()) =>
            {
                Err(self.refuse(
                    "data.unit",
                    "decisions about moves clip what an anchor leaves of single rows; name algorithm = \"anchored-barker\" alone, without decisions, estimator or acceptance",
                ))
            }
            Family::Decisions(Combination { leapfrog: false, .. }) | Family::Laplace => Ok(()),
            _ if model.gradient_function().sees_rows() => Err(self.refuse(
                "data.unit",
                "gradients of a network's rows are not added up unit by unit; use a regression, or a sampler that decides on moves",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses keys that mean nothing to this sampler.
    fn check_keys(&self, s: &SamplerSection, chosen: Family) -> Result<(), ConfigError> {
        let mut particular = SamplerSection::KEYS
            .iter()
            .filter(|key| key.is_particular());
        if let Some(key) = particular.find(|key| s.sets(key.name) && !chosen.takes(key.name)) {
            let (owner, name) = (key.owner, chosen.name());
            return Err(self.refuse(
                &format!("sampler.{}", key.name),
                format!("belongs to {owner}; '{name}' has no use for it"),
            ));
        }
        Ok(())
    }

    pub(super) fn acceptance(
        &self,
        s: &SamplerSection,
        chosen: Combination,
        model: &dyn Model,
    ) -> Result<Acceptance, ConfigError> {
        Ok(match chosen.acceptance {
            AcceptanceName::Penalty if chosen.fast_mh => Acceptance::Barker,
            AcceptanceName::Metropolis => Acceptance::Metropolis,
            AcceptanceName::Barker => Acceptance::Barker,
            AcceptanceName::Penalty => Acceptance::Penalty {
                tau: self.tau(s, chosen, model)?,
            },
            // The one variance that the theorem of the subsampled test covers.
            AcceptanceName::NoisyBarker if !chosen.takes("variance") => {
                Acceptance::NoisyBarker { variance: 2.0 }
            }
            AcceptanceName::NoisyBarker => {
                let variance = s.variance.unwrap_or(2.0);
                Correction::fit(variance).map_err(|e| self.refuse("sampler.variance", e))?;
                Acceptance::NoisyBarker { variance }
            }
        })
    }

    /// τ as given, or the smallest that lets all planned steps fit the budget, or half of
    /// it where an anchor takes the other half.
    fn tau(
        &self,
        s: &SamplerSection,
        chosen: Combination,
        model: &dyn Model,
    ) -> Result<f64, ConfigError> {
        if let Some(tau) = s.tau {
            return Ok(tau);
        }
        let key = self.choice("sampler.acceptance");
        if chosen.is_minibatch() {
            return Err(self.refuse(
                key,
                "a penalty on a minibatch needs 'tau': its steps have no rho that a budget could be divided by",
            ));
        }
        let Some(budget) = self.budget()? else {
            return Err(self.refuse(key, "a non-private penalty needs 'tau'"));
        };
        let length = self.length()?;
        let steps = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        let share = if chosen.anchored || chosen.leapfrog {
            0.5
        } else {
            1.0
        };
        // The slack covers the rounding of σ² and of the event grid, both upwards.
        let (rho, _) = self.left_for_steps(model, budget)?;
        Ok((steps / (2.0 * share * rho)).sqrt() * (1.0 + 2e-5))
    }

    pub(super) fn clip(
        &self,
        s: &SamplerSection,
        chosen: Combination,
        model: &dyn Model,
        rows: usize,
    ) -> Result<Option<ClipRule>, ConfigError> {
        if chosen.estimator == EstimatorName::FixedBatch {
            return self.fixed_clip(s, rows);
        }
        let Some(clip) = &s.clip else {
            let bound = self.ratio_rate(model).map(|rate| ClipRule {
                rate,
                norm: ClipNorm::Euclidean,
            });
            if bound.is_none() && (chosen.is_private() || chosen.is_minibatch()) {
                return Err(self.refuse(
                    "sampler",
                    format!(
                        "model '{}' has no bound on its log ratios here; declare a parameter 'box' in [model] (an mlp has no bound in any box) or 'clip = {{ rate = … }}' in [sampler]",
                        self.model_name(model)
                    ),
                ));
            }
            return Ok(bound);
        };
        let norm = clip.norm.unwrap_or(match clip.rms {
            Some(_) => ClipNorm::Proposal,
            None => ClipNorm::Euclidean,
        });
        let rate = match (clip.rate, clip.rms, clip.share) {
            (Some(rate), None, None) => rate,
            (None, Some(_), None) if norm == ClipNorm::Euclidean => {
                return Err(self.refuse("sampler.clip", "rms goes with norm = \"proposal\""));
            }
            (None, Some(rms), None) => rms * (model.tempering() / self.weighed(rows) as f64).sqrt(),
            (None, None, Some(share)) => match (self.ratio_rate(model), norm) {
                (Some(rate), ClipNorm::Euclidean) => share * rate,
                _ => {
                    return Err(self.refuse(
                        "sampler.clip",
                        "share needs a model with a true bound, and norm = \"euclidean\"",
                    ));
                }
            },
            _ => return Err(self.refuse("sampler.clip", "give exactly one of rate, rms and share")),
        };
        if !(rate > 0.0 && rate.is_finite()) {
            return Err(self.refuse("sampler.clip", format!("must be positive, not {rate}")));
        }
        Ok(Some(ClipRule { rate, norm }))
    }

    pub(super) fn preconditioner(
        &self,
        s: &SamplerSection,
        d: usize,
    ) -> Result<Preconditioner, ConfigError> {
        match (&s.scale, &s.covariance) {
            (None, None) => Ok(Preconditioner::Identity),
            (Some(scale), None) => {
                let values = scale.expand(d);
                if values.len() != d || values.iter().any(|v| !(*v > 0.0 && v.is_finite())) {
                    return Err(self.refuse(
                        "sampler.scale",
                        format!("needs a positive number, or {d} of them"),
                    ));
                }
                Ok(Preconditioner::Diagonal(values))
            }
            (None, Some(rows)) => {
                let flat = self.matrix("sampler.covariance", rows, d)?;
                cholesky(&flat, d)
                    .map(Preconditioner::Full)
                    .map_err(|what| self.refuse("sampler.covariance", what))
            }
            _ => Err(self.refuse("sampler.covariance", "contradicts 'scale'; keep one")),
        }
    }
}
