//! The keys of the estimator: λ of a Poisson minibatch above all.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::SamplerSection;
use crate::data::Population;
use crate::model::{Model, Predictor, Slopes};
use crate::privacy::{Estimator, Lambda};
use crate::sampler::{Combination, EstimatorName};

/// λ/Λ: a step on 2Λ rows costs 7 % more than one on all rows, and hardly any acceptance where
/// most ratios are small beside their clip.
const USUAL: f64 = 1.0;
/// The same of an anchored network, whose remainders are about as large as their clip: noise of
/// variance 2Σr²/(2λ/N + c) would cost more than rows do.
const OF_REMAINDERS: f64 = 4.0;

impl Plan {
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
        let bent = |slopes: Slopes| slopes.predictor != Predictor::Linear;
        let usual = Lambda::Ratio(match chosen.anchored && model.slopes().is_some_and(bent) {
            true => OF_REMAINDERS,
            false => USUAL,
        });
        Ok(match chosen.estimator {
            EstimatorName::Poisson if s.as_published => {
                Estimator::PublishedFastMh(self.fast_mh(s, chosen, rows)?)
            }
            EstimatorName::FixedBatch => Estimator::FixedBatch {
                batch: self.batch(s)?,
            },
            EstimatorName::Poisson if chosen.is_minibatch() => Estimator::Poisson {
                lambda: given.first().map_or(usual, |(_, lambda)| *lambda),
            },
            // DP-Fast MH: each move's own follows from its clip bound.
            EstimatorName::All | EstimatorName::Poisson => Estimator::FullBatch,
        })
    }
}
