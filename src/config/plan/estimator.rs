//! The keys of the estimator: λ of a Poisson minibatch above all.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::SamplerSection;
use crate::data::Population;
use crate::model::{Model, Slopes};
use crate::privacy::{Acceptance, Curator, Estimator, Lambda};
use crate::sampler::{AnchorSettings, Combination, Decisions, EstimatorName};

/// λ/Λ: a step on 2Λ rows costs 7 % more than one on all rows, and hardly any acceptance where
/// most ratios are small beside their clip.
const USUAL: f64 = 1.0;
/// The same of an anchored network, whose remainders are about as large as their clip: noise of
/// variance 2Σr²/(2λ/N + c) would cost more than rows do.
const OF_REMAINDERS: f64 = 4.0;

/// Decisions at an anchor whose secret draws δ must pay for, or they read all rows.
const PAID_DRAWS: f64 = 1e6;

impl Plan {
    /// Settings of an anchored run, and how it estimates log ratios: from all rows where the run
    /// file says nothing of minibatches and the usual one cannot be drawn (at a tiny ε moves and
    /// their clips are huge) or its draws not be paid for from δ (at a huge ε).
    ///
    /// # Errors
    /// As [`Plan::anchoring`].
    pub(super) fn anchored_rule(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
        size: (usize, f64),
        (estimator, acceptance): (Estimator, Acceptance),
    ) -> Result<(AnchorSettings, Estimator), ConfigError> {
        let usual = self.anchoring(s, model, size, (estimator, acceptance));
        let stated = s.estimator.is_some()
            || s.lambda.is_some()
            || s.lambda_ratio.is_some()
            || s.chi.is_some();
        let minibatch = matches!(estimator, Estimator::Poisson { .. });
        if stated || !minibatch || acceptance != Acceptance::Barker {
            return Ok((usual?, estimator));
        }
        if let Ok(settings) = &usual
            && self.pays_for_draws(settings, size.0, (estimator, acceptance))?
        {
            return Ok((usual?, estimator));
        }
        let all = Estimator::FullBatch;
        match self.anchoring(s, model, size, (all, acceptance)) {
            Ok(settings) => Ok((settings, all)),
            Err(_) => Ok((usual?, estimator)),
        }
    }

    /// Whether δ pays for the secret draws of a run's decisions.
    fn pays_for_draws(
        &self,
        settings: &AnchorSettings,
        rows: usize,
        (estimator, acceptance): (Estimator, Acceptance),
    ) -> Result<bool, ConfigError> {
        let Some(budget) = self.budget()? else {
            return Ok(true);
        };
        if let AnchorSettings::Expansion(s) = settings
            && s.decisions == Decisions::None
        {
            return Ok(true);
        }
        let cost = Curator::cost(rows, settings.typical_clip(), estimator, acceptance);
        Ok(match cost {
            Ok(Some((_, coins))) => coins * PAID_DRAWS <= budget.coin_delta(),
            Ok(None) => true,
            Err(_) => false,
        })
    }

    /// How the log ratio is estimated.
    ///
    /// # Errors
    /// [`ConfigError`] where settings exclude each other.
    pub(super) fn estimator(
        &self,
        s: &SamplerSection,
        chosen: Combination,
        (model, rows): (&dyn Model, Population),
    ) -> Result<Estimator, ConfigError> {
        let given: Vec<(&str, Lambda)> = [
            ("lambda", s.lambda.map(Lambda::Fixed)),
            ("lambda_ratio", s.lambda_ratio.map(Lambda::Ratio)),
            ("chi", s.chi.map(Lambda::Chi)),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
        if let [_, (key, _), ..] = given.as_slice() {
            return Err(self.refuse(
                &format!("sampler.{key}"),
                "lambda, lambda_ratio and chi exclude each other",
            ));
        }
        let bent = |slopes: Slopes| slopes.predictor.is_network();
        let usual = Lambda::Ratio(match chosen.anchored && model.slopes().is_some_and(bent) {
            true => OF_REMAINDERS,
            false => USUAL,
        });
        Ok(match chosen.estimator {
            EstimatorName::FixedBatch => Estimator::FixedBatch {
                batch: self.batch(s, rows.rows)?,
            },
            EstimatorName::Poisson if chosen.is_minibatch() => Estimator::Poisson {
                lambda: given.first().map_or(usual, |(_, lambda)| *lambda),
            },
            // DP-Fast MH: each move's own follows from its clip bound.
            EstimatorName::All | EstimatorName::Poisson => Estimator::FullBatch,
        })
    }
}
