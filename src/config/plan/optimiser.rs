//! The keys of optimisers, and the noise that a budget asks of their gradients.

use super::Plan;
use super::scale::PublicCurvature;
use super::stochastic::schedule;
use crate::config::ConfigError;
use crate::config::schema::SamplerSection;
use crate::model::Model;
use crate::privacy::{Batch, Curator, EventKey, GradientNoise};
use crate::sampler::{Optimiser, OptimiserName};

/// Adam's step without a key, in units of `scale`.
const ADAM_STEP: f64 = 0.01;

impl Plan {
    /// An optimiser. Without `gradient.tau`, the least noise that lets a private run of the planned
    /// length fit its budget.
    pub(super) fn optimiser(
        &self,
        s: &SamplerSection,
        (rule, private): (OptimiserName, bool),
        model: &dyn Model,
        (rows, row_norm): (usize, f64),
    ) -> Result<Optimiser, ConfigError> {
        let section = s.gradient.clone().unwrap_or_default();
        if section.extra_tau.is_some() {
            return Err(self.refuse(
                "sampler.gradient.extra_tau",
                "belongs to stochastic-gradient samplers; the noise of an optimiser is 'tau'",
            ));
        }
        let clip = self.gradient_clip(&section, model, "sampler.gradient", private)?;
        let batch = self.gradient_batch(section.rate)?;
        let noise = GradientNoise {
            clip,
            batch,
            sigma: match clip {
                Some(clip) if private => {
                    2.0 * clip * self.noise_ratio(section.tau, batch, clip, model)?
                }
                _ if section.tau.is_some() => {
                    return Err(self.refuse(
                        "sampler.gradient.tau",
                        "is the noise of a private optimiser; drop it, or take dp-sgd or dp-adam",
                    ));
                }
                _ => 0.0,
            },
        };
        let usual = || match rule {
            OptimiserName::Adam => ADAM_STEP,
            // Newton's where the mean log posterior is steepest.
            OptimiserName::Sgd => {
                let most = self.rows_at_most(rows);
                rows as f64 * PublicCurvature::ascent_variance(model, most, row_norm)
            }
        };
        let schedule = schedule(s, s.step.unwrap_or_else(usual));
        let scale = self.scale(s, model.dim())?;
        Optimiser::new(model.prior().clone(), rule, schedule, noise, rows, scale)
            .map_err(|e| self.refuse(&e.key, e.what))
    }

    /// τ: as given, or as the budget asks.
    fn noise_ratio(
        &self,
        given: Option<f64>,
        batch: Batch,
        clip: f64,
        model: &dyn Model,
    ) -> Result<f64, ConfigError> {
        let budget = match (given, self.budget()?) {
            (Some(tau), _) => return self.tau_within(tau),
            (None, Some(budget)) => budget,
            (None, None) => {
                return Err(self.refuse(
                    "sampler.gradient",
                    "without a budget a private optimiser needs 'tau', its noise in units of 2 · clip",
                ));
            }
        };
        let steps = self.steps()?;
        let keys = |inverse: f64| -> Option<Vec<(EventKey, u64)>> {
            let sigma = 2.0 * clip / inverse;
            let noise = GradientNoise {
                clip: Some(clip),
                batch,
                sigma,
            };
            Some(vec![(Curator::gradient_cost(noise).ok()?, steps)])
        };
        match self.dearest(budget, batch != Batch::All, model, keys)? {
            Some(inverse) => Ok(1.0 / inverse),
            None => Err(self.refuse(
                "privacy.epsilon",
                "no noise lets so many iterations fit the budget; fewer iterations, a smaller gradient rate, or a larger budget",
            )),
        }
    }
}
