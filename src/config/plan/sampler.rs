//! `[sampler]`: proposal, estimator, acceptance rule and clip.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::SamplerSection;
use crate::model::{Model, cholesky};
use crate::privacy::{Acceptance, Correction, Estimator, Lambda};
use crate::sampler::{
    Adaptation, Algorithm, ClipNorm, ClipRule, FastMh, Preconditioner, RandomWalk,
};

impl Plan {
    /// The sampler over `rows` rows of norm at most `row_norm`.
    ///
    /// # Errors
    /// [`ConfigError`] for keys that are missing, bad, or foreign to the algorithm.
    pub fn sampler(
        &self,
        model: &dyn Model,
        rows: usize,
        row_norm: f64,
    ) -> Result<RandomWalk, ConfigError> {
        let s = &self.config.sampler;
        let d = model.dim();
        self.check_positive(s)?;
        self.check_privacy(s)?;
        self.check_batch_keys(s)?;
        let estimator = self.estimator(s, rows)?;
        let acceptance = self.acceptance(s)?;
        let target = s.target_acceptance.unwrap_or(s.algorithm.default_target());
        if !(target > 0.0 && target < 1.0) {
            return Err(self.refuse("sampler.target_acceptance", "must lie between 0 and 1"));
        }
        let length = self.length()?;
        let anchored = self.anchoring(s, model, (rows, row_norm), estimator)?;
        let mut sampler = RandomWalk::new(
            model.prior().clone(),
            estimator,
            acceptance,
            match anchored {
                Some(_) => None,
                None => self.clip(s, model, rows)?,
            },
            s.step.unwrap_or(2.38 / (d as f64).sqrt()),
            self.preconditioner(s, d)?,
            Adaptation::new(s.adapt, target, length.warmup, d),
        );
        if s.algorithm.is_fast_mh() && !s.as_published {
            let settings = self.fast_mh(s, rows)?;
            sampler.fast_mh = Some(FastMh { settings, rows });
        }
        Ok(match anchored {
            Some(settings) => sampler.with_anchoring(settings),
            None => sampler,
        })
    }

    fn check_positive(&self, s: &SamplerSection) -> Result<(), ConfigError> {
        for (key, value) in [
            ("lambda", s.lambda),
            ("lambda_ratio", s.lambda_ratio),
            ("chi", s.chi),
            ("tau", s.tau),
            ("step_epsilon", s.step_epsilon),
            ("step", s.step),
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

    /// A private run needs a private algorithm.
    fn check_privacy(&self, s: &SamplerSection) -> Result<(), ConfigError> {
        if s.algorithm.is_private() || self.config.privacy.not_private {
            return Ok(());
        }
        Err(self.refuse(
            "sampler.algorithm",
            format!(
                "'{}' is a non-private reference; choose barker, poisson-barker or dp-penalty, or run it with --not-private",
                s.algorithm.name()
            ),
        ))
    }

    fn estimator(&self, s: &SamplerSection, rows: usize) -> Result<Estimator, ConfigError> {
        if s.algorithm == Algorithm::DpBarkerSubsampled {
            return Ok(Estimator::FixedBatch {
                batch: self.batch(s)?,
            });
        }
        let given: Vec<(&str, Lambda)> = [
            ("lambda", s.lambda.map(Lambda::Fixed)),
            ("lambda_ratio", s.lambda_ratio.map(Lambda::Ratio)),
            ("chi", s.chi.map(Lambda::Chi)),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
        match (s.algorithm.is_minibatch(), given.as_slice()) {
            (false, [] | [("lambda", _)]) if s.as_published => {
                Ok(Estimator::PublishedFastMh(self.fast_mh(s, rows)?))
            }
            // Each move's own follows from its clip bound.
            (false, [("lambda", _)]) if s.algorithm == Algorithm::DpFastMh => {
                Ok(Estimator::FullBatch)
            }
            (false, []) => Ok(Estimator::FullBatch),
            (false, [(key, _), ..]) if s.algorithm == Algorithm::DpFastMh => Err(self.refuse(
                &format!("sampler.{key}"),
                "dp-fast-mh takes 'lambda' itself",
            )),
            (false, [(key, _), ..]) => Err(self.refuse(
                &format!("sampler.{key}"),
                format!(
                    "'{}' reads all rows and has no minibatch",
                    s.algorithm.name()
                ),
            )),
            (true, [(_, lambda)]) => Ok(Estimator::Poisson { lambda: *lambda }),
            // A remainder's Λ is so small that more rows are cheaper than more privacy.
            (true, []) => Ok(Estimator::Poisson {
                lambda: Lambda::Ratio(match s.algorithm {
                    Algorithm::AnchoredBarker => 4.0,
                    _ => 1.0,
                }),
            }),
            (true, [_, (key, _), ..]) => Err(self.refuse(
                &format!("sampler.{key}"),
                "lambda, lambda_ratio and chi exclude each other",
            )),
        }
    }

    fn acceptance(&self, s: &SamplerSection) -> Result<Acceptance, ConfigError> {
        if s.tau.is_some() && s.algorithm != Algorithm::DpPenalty {
            return Err(self.refuse("sampler.tau", "belongs to dp-penalty alone"));
        }
        if s.variance.is_some() && s.algorithm != Algorithm::DpBarker {
            return Err(self.refuse("sampler.variance", "belongs to dp-barker alone"));
        }
        Ok(match s.algorithm {
            Algorithm::Mh | Algorithm::TunaMh => Acceptance::Metropolis,
            Algorithm::Barker | Algorithm::PoissonBarker | Algorithm::AnchoredBarker => {
                Acceptance::Barker
            }
            Algorithm::DpPenalty => Acceptance::Penalty { tau: self.tau(s)? },
            Algorithm::DpBarker => {
                let variance = s.variance.unwrap_or(2.0);
                Correction::fit(variance).map_err(|e| self.refuse("sampler.variance", e))?;
                Acceptance::NoisyBarker { variance }
            }
            // The one variance that the theorem covers.
            Algorithm::DpBarkerSubsampled => Acceptance::NoisyBarker { variance: 2.0 },
            Algorithm::DpFastMh if s.as_published => Acceptance::Metropolis,
            Algorithm::DpFastMh | Algorithm::DpFastMhFull => Acceptance::Barker,
        })
    }

    /// τ as given, or the smallest that lets all planned steps fit the budget.
    fn tau(&self, s: &SamplerSection) -> Result<f64, ConfigError> {
        if let Some(tau) = s.tau {
            return Ok(tau);
        }
        let Some(budget) = self.budget()? else {
            return Err(self.refuse("sampler.algorithm", "a non-private dp-penalty needs 'tau'"));
        };
        let length = self.length()?;
        let steps = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        // The slack covers the rounding of σ² and of the event grid, both upwards.
        Ok((steps / (2.0 * budget.rho())).sqrt() * (1.0 + 2e-5))
    }

    fn clip(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
        rows: usize,
    ) -> Result<Option<ClipRule>, ConfigError> {
        if s.algorithm == Algorithm::DpBarkerSubsampled || s.as_published {
            return self.fixed_clip(s, rows);
        }
        let Some(clip) = &s.clip else {
            let bound = model.ratio_rate().map(|rate| ClipRule {
                rate,
                norm: ClipNorm::Euclidean,
            });
            if bound.is_none() && (s.algorithm.is_private() || s.algorithm.is_minibatch()) {
                return Err(self.refuse(
                    "sampler",
                    format!(
                        "model '{}' has no bound on its log ratios here; declare a parameter 'box' in [model] or 'clip = {{ rate = … }}' in [sampler]",
                        model.name()
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
            (None, Some(rms), None) => rms * (model.tempering() / rows as f64).sqrt(),
            (None, None, Some(share)) => match (model.ratio_rate(), norm) {
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

    fn preconditioner(&self, s: &SamplerSection, d: usize) -> Result<Preconditioner, ConfigError> {
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
