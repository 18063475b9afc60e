//! What a run's ledger counts: as stated, as the ledger file has it, or by the kind of
//! sampler. Settled before the run, from public numbers.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::{FilterName, StartEntry};
use crate::data::Population;
use crate::model::Model;
use crate::privacy::{Budget, Curator, EventKey, Ledger, Measure, best_order};
use crate::sampler::{AcceptanceName, EstimatorName, Family, RandomWalk, Sampler};

impl Plan {
    /// What a ledger of `budget` counts. Where `[privacy]` states neither `filter` nor `order`:
    /// Gaussian DP where every release is of Gaussian noise and the ledger is the run's own; ρ
    /// where every release has one; else Rényi divergences, at the order that affords most steps.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn measure(
        &self,
        sampler: &Sampler,
        model: &dyn Model,
        rows: impl Into<Population>,
        budget: Budget,
    ) -> Result<Measure, ConfigError> {
        if let Some(measure) = self.stated_measure(budget)? {
            return Ok(measure);
        }
        let keys = match sampler.walk() {
            // Few and small decisions beside Gaussian noise.
            Some(walk) if walk.expands_regression() => return self.measure_of_gaussians(budget),
            Some(walk) if walk.has_rho() => Vec::new(),
            Some(walk) => walk_events(walk, model, rows.into()),
            None => {
                let cost = sampler
                    .step_cost(rows, model, (self.steps()?, self.chains()))
                    .map_err(|halt| self.refuse("sampler.gradient", halt.to_string()))?;
                cost.events.iter().map(|(key, _)| *key).collect()
            }
        };
        if keys.iter().all(|key| key.rho().is_some()) {
            return self.divided_measure(budget);
        }
        Ok(Measure::Renyi {
            order: best_order(&keys, budget),
        })
    }

    /// A ledger in memory that counts what this run's own would; `None` without privacy.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn ledger(
        &self,
        sampler: &Sampler,
        model: &dyn Model,
        rows: impl Into<Population>,
    ) -> Result<Option<Ledger>, ConfigError> {
        let Some(budget) = self.budget()? else {
            return Ok(None);
        };
        let measure = self.measure(sampler, model, rows, budget)?;
        Ok(Some(Ledger::counting(budget, measure)))
    }

    /// What an event costs; 0 where the measure has no price for it.
    pub(super) fn price_of(&self, key: EventKey, measure: Measure, budget: Budget) -> f64 {
        measure.price(key, budget).map_or(0.0, |p| p.cost.nats())
    }

    /// What settings without a value divide: Gaussian DP where it is stated, or every release
    /// is of Gaussian noise and no other run shares the ledger; else ρ.
    pub(super) fn divided_measure(&self, budget: Budget) -> Result<Measure, ConfigError> {
        let gaussian = match self.stated_measure(budget)? {
            Some(stated) => stated == Measure::Gaussian,
            None => self.config.privacy.ledger.is_none() && self.is_all_gaussian()?,
        };
        Ok(match gaussian {
            true => Measure::Gaussian,
            false => Measure::Zcdp,
        })
    }

    /// The measure of a run that turns out to release Gaussian noise alone: Gaussian DP, unless
    /// another is stated or other runs share the ledger.
    pub(super) fn measure_of_gaussians(&self, budget: Budget) -> Result<Measure, ConfigError> {
        match self.config.privacy.ledger {
            None if self.stated_measure(budget)?.is_none() => Ok(Measure::Gaussian),
            _ => self.divided_measure(budget),
        }
    }

    /// Whether gradients are of Poisson batches.
    fn draws_batches(&self) -> bool {
        let gradient = self.config.sampler.gradient.as_ref();
        gradient
            .and_then(|g| g.rate)
            .is_some_and(|rate| rate != 1.0)
    }

    /// What the run's releases may take of `budget`: the limit, less what must be left after
    /// decisions in a ledger that counts Gaussian DP.
    ///
    /// # Errors
    /// [`ConfigError`] where `[sampler]` names no sampler.
    pub fn limit(&self, budget: Budget, measure: Measure) -> Result<f64, ConfigError> {
        let reserve = match self.is_all_gaussian()? {
            true => 0.0,
            false => measure.reserve(budget),
        };
        Ok(measure.limit(budget) - reserve)
    }

    /// Whether all that the sampler, or what starts it, ever releases is Gaussian noise on sums
    /// over all rows.
    fn is_all_gaussian(&self) -> Result<bool, ConfigError> {
        let drawn = matches!(self.config.run.start, StartEntry::Ops(_));
        let steps = match self.family()? {
            Family::Decisions(c) => {
                c.estimator == EstimatorName::All
                    && !c.fast_mh
                    && matches!(
                        c.acceptance,
                        AcceptanceName::Penalty | AcceptanceName::NoisyBarker
                    )
            }
            Family::StochasticGradient { .. } | Family::Optimiser { .. } => !self.draws_batches(),
            Family::Laplace | Family::Variational => true,
            Family::PosteriorDraws => false,
        };
        Ok(steps && !drawn)
    }

    /// The measure that [privacy] states.
    pub(super) fn stated_measure(&self, budget: Budget) -> Result<Option<Measure>, ConfigError> {
        let privacy = &self.config.privacy;
        let order = match (privacy.order, privacy.filter) {
            (None, None) => return Ok(None),
            (None, Some(FilterName::Zcdp)) => return Ok(Some(Measure::Zcdp)),
            (None, Some(FilterName::Gaussian)) => return Ok(Some(Measure::Gaussian)),
            (Some(_), Some(_)) => {
                return Err(self.refuse(
                    "privacy.filter",
                    "contradicts 'order', which chooses a Rényi filter; keep one of the two",
                ));
            }
            (Some(order), None) => order,
        };
        let measure = Measure::renyi(order).map_err(|e| self.refuse("privacy.order", e))?;
        if measure.limit(budget) > 0.0 {
            return Ok(Some(measure));
        }
        Err(self.refuse(
            "privacy.order",
            format!("at order {order} the conversion alone costs more than epsilon = {}; state a larger order", budget.epsilon()),
        ))
    }

    /// States `measure` in `[privacy]`, as a ledger file has it or [`Plan::measure`] chose it.
    pub fn state_measure(&mut self, measure: Measure) {
        let privacy = &mut self.config.privacy;
        (privacy.filter, privacy.order) = match measure {
            Measure::Zcdp => (Some(FilterName::Zcdp), None),
            Measure::Gaussian => (Some(FilterName::Gaussian), None),
            Measure::Renyi { order } => (None, Some(order)),
        };
    }

    /// An error at what made `measure` the run's: the ledger that it shares, or `[privacy]`.
    pub fn refuse_measure(&self, measure: Measure, what: &str) -> ConfigError {
        let filter = measure.filter();
        match &self.config.privacy.ledger {
            Some(file) => {
                let file = file.display();
                self.refuse("privacy.ledger", format!("{file} is a {filter}: {what}"))
            }
            None if measure.is_renyi() => {
                self.refuse("privacy.order", format!("a {filter}: {what}"))
            }
            None => self.refuse("privacy.filter", format!("a {filter}: {what}")),
        }
    }

    /// Whether `[privacy]` says what the ledger counts.
    pub fn states_measure(&self) -> bool {
        self.config.privacy.filter.is_some() || self.config.privacy.order.is_some()
    }
}

/// Events of typical moves, and of the dearest ones.
fn walk_events(sampler: &RandomWalk, model: &dyn Model, rows: Population) -> Vec<EventKey> {
    let dearest = sampler.fast_mh.map(|fast| fast.dearest_minibatches());
    let mut clips = sampler.typical_clips(model.dim());
    clips.extend(dearest.unwrap_or_default());
    clips
        .into_iter()
        .filter_map(|clip| {
            let (estimator, acceptance) = sampler.rule(clip);
            let event = Curator::cost(rows, clip, estimator, acceptance);
            event.ok().flatten().map(|(key, _)| key)
        })
        .collect()
}
