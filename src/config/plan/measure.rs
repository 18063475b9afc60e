//! What a run's ledger counts: as stated, as the ledger file has it, or by the kind of
//! sampler. Settled before the run, from public numbers.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::{FilterName, StartEntry};
use crate::data::Population;
use crate::model::Model;
use crate::privacy::{Budget, Curator, EventKey, Ledger, Measure, best_order};
use crate::sampler::{AcceptanceName, EstimatorName, Family, RandomWalk, Sampler};

/// So many decisions are many: one of them costs within a tenth of its ρ as Gaussian DP.
const FEW_DECISIONS: f64 = 1000.0;

impl Plan {
    /// What a ledger of `budget` counts. Where [privacy] states neither `filter` nor `order`:
    /// Rényi divergences, at the order that affords most steps, where a release has no ρ; ρ in a
    /// ledger that runs share; else ρ or Gaussian DP, whichever affords more.
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
        let moves = match sampler.walk() {
            Some(walk) => walk_events(walk, model, rows.into()),
            None => {
                let run = (self.steps()?, self.chains());
                let cost = sampler.step_cost(rows, model, run);
                cost.map_err(|halt| self.refuse("sampler.gradient", halt.to_string()))?
                    .events
            }
        };
        if moves.iter().any(|(key, _)| key.rho().is_none()) {
            let keys: Vec<EventKey> = moves.iter().map(|(key, _)| *key).collect();
            return Ok(Measure::Renyi {
                order: best_order(&keys, budget),
            });
        }
        if self.config.privacy.ledger.is_some() {
            return Ok(Measure::Zcdp);
        }
        if self.divides_budget()? {
            return self.divided_measure(budget);
        }
        let affords = |measure: Measure| -> Result<f64, ConfigError> {
            let cost = moves
                .iter()
                .map(|(key, n)| n * self.price_of(*key, measure, budget))
                .sum::<f64>();
            let start = self.start_cost(model, budget, measure)?;
            Ok((self.room(budget, measure)? - start) / cost)
        };
        match affords(Measure::Gaussian)? > affords(Measure::Zcdp)? {
            true => Ok(Measure::Gaussian),
            false => Ok(Measure::Zcdp),
        }
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

    /// What settings without a value divide: Gaussian DP where it is stated, or where the
    /// ledger is the run's own and releases are Gaussian noise alone, or that and many small
    /// decisions; else ρ.
    pub(super) fn divided_measure(&self, budget: Budget) -> Result<Measure, ConfigError> {
        let gaussian = match self.stated_measure(budget)? {
            Some(stated) => stated == Measure::Gaussian,
            None => {
                let many = self.steps()? as f64 * self.chains() as f64 >= FEW_DECISIONS;
                let own = self.config.privacy.ledger.is_none();
                own && (self.is_all_gaussian()?
                    || many && self.has_mu()? && self.divides_budget()?)
            }
        };
        Ok(match gaussian {
            true => Measure::Gaussian,
            false => Measure::Zcdp,
        })
    }

    /// Whether every release of the steps can be counted as Gaussian DP.
    fn has_mu(&self) -> Result<bool, ConfigError> {
        Ok(match self.family()? {
            Family::Decisions(c) => {
                let noisy = c.acceptance != AcceptanceName::Barker;
                !c.fast_mh && (c.estimator == EstimatorName::All || !noisy)
            }
            Family::StochasticGradient { .. } => !self.draws_batches(),
            Family::Variational | Family::PosteriorDraws => true,
        })
    }

    /// Whether gradients are of Poisson batches.
    fn draws_batches(&self) -> bool {
        let gradient = self.config.sampler.gradient.as_ref();
        gradient
            .and_then(|g| g.rate)
            .is_some_and(|rate| rate != 1.0)
    }

    /// Whether settings of the sampler may follow from what a budget holds, so that they and the
    /// ledger's measure must be chosen together, from the run file alone.
    fn divides_budget(&self) -> Result<bool, ConfigError> {
        Ok(match self.family()? {
            Family::Decisions(c) => c.anchored || c.leapfrog || self.is_all_gaussian()?,
            Family::StochasticGradient { .. } | Family::Variational => true,
            Family::PosteriorDraws => false,
        })
    }

    /// What the run's releases may take of `budget`: the limit, less what must be left after
    /// decisions in a ledger that counts Gaussian DP.
    ///
    /// # Errors
    /// [`ConfigError`] where [sampler] names no sampler.
    pub fn room(&self, budget: Budget, measure: Measure) -> Result<f64, ConfigError> {
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
            Family::StochasticGradient { .. } => !self.draws_batches(),
            Family::Variational => true,
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

    /// States `measure` in [privacy], as a ledger file has it or [`Plan::measure`] chose it.
    pub fn state_measure(&mut self, measure: Measure) {
        let privacy = &mut self.config.privacy;
        (privacy.filter, privacy.order) = match measure {
            Measure::Zcdp => (Some(FilterName::Zcdp), None),
            Measure::Gaussian => (Some(FilterName::Gaussian), None),
            Measure::Renyi { order } => (None, Some(order)),
        };
    }

    /// An error at what made `measure` the run's: the ledger that it shares, or [privacy].
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

    /// Whether [privacy] says what the ledger counts.
    pub fn states_measure(&self) -> bool {
        self.config.privacy.filter.is_some() || self.config.privacy.order.is_some()
    }
}

/// Events of typical moves, each with its share of them, and of the dearest one, with none.
fn walk_events(sampler: &RandomWalk, model: &dyn Model, rows: Population) -> Vec<(EventKey, f64)> {
    let edge = sampler
        .fast_mh
        .and_then(|fast| fast.largest_noisy_minibatch());
    let clips = sampler.typical_clips(model.dim());
    let share = 1.0 / clips.len().max(1) as f64;
    let typical = clips.into_iter().map(|clip| (clip, share));
    typical
        .chain(edge.map(|clip| (clip, 0.0)))
        .filter_map(|(clip, share)| {
            let (estimator, acceptance) = sampler.rule(clip);
            let event = Curator::cost(rows, clip, estimator, acceptance);
            event.ok().flatten().map(|(key, _)| (key, share))
        })
        .collect()
}
