//! The keys of stochastic-gradient samplers, and the step that a budget affords.

use super::Plan;
use super::sampler::shaped;
use super::scale::PublicCurvature;
use crate::config::ConfigError;
use crate::config::schema::{SamplerSection, ScheduleEntry, ScheduleName};
use crate::model::Model;
use crate::privacy::{Batch, Budget, Curator, EventKey, Measure, best_order};
use crate::sampler::{
    Dynamics, DynamicsName, GradientSettings, LiSettings, Schedule, StochasticGradient,
};

/// Step without a key and without privacy, over the posterior's least variance; of SGNHT the square
/// of its step.
const STEP: f64 = 0.3;
/// Share of the momentum that SGHMC loses in a step.
const FRICTION: f64 = 0.1;
/// Diffusion of SGNHT.
const DIFFUSION: f64 = 1.0;
/// Order at which the search for a step begins.
const FIRST_ORDER: f64 = 20.0;

impl Plan {
    /// A stochastic-gradient sampler. Without `step`, the longest that lets a private run of
    /// the planned length fit its budget, and that public numbers do not call unstable.
    pub(super) fn stochastic_gradient(
        &self,
        s: &SamplerSection,
        (dynamics, private): (DynamicsName, bool),
        model: &dyn Model,
        (rows, row_norm): (usize, f64),
    ) -> Result<StochasticGradient, ConfigError> {
        let section = s.gradient.clone().unwrap_or_default();
        if section.tau.is_some() {
            return Err(self.refuse(
                "sampler.gradient.tau",
                "belongs to Hamiltonian samplers and dpvi; here the noise follows from the step, and 'extra_tau' adds to it",
            ));
        }
        let clip = self.gradient_clip(&section, model, "sampler.gradient", private)?;
        let batch = self.gradient_batch(section.rate)?;
        let gradients = GradientSettings {
            clip,
            batch,
            extra_noise: section.extra_tau.unwrap_or(0.0),
        };
        let build = |step: f64| self.with_step(s, dynamics, model, rows, gradients, step);
        // What a variance is in the units of a step.
        let step_of = |variance: f64| match dynamics {
            DynamicsName::Sgnht => variance.sqrt(),
            _ => variance,
        };
        match (s.step, self.budget()?) {
            (Some(step), _) => build(step),
            (None, Some(budget)) => {
                // What is wrong at any step is no fault of the budget.
                build(1.0)?;
                let sampled = batch != Batch::All;
                let affordable = self.affordable_step(budget, sampled, model, build)?;
                let variance = match shaped(s) {
                    true => 1.0,
                    false => {
                        PublicCurvature::longest_step(model, self.rows_at_most(rows), row_norm)
                    }
                };
                build(affordable.min(step_of(variance) / schedule(s, 1.0).at(1)))
            }
            (None, None) => {
                let variance = match shaped(s) {
                    true => 1.0,
                    false => {
                        PublicCurvature::langevin_variance(model, self.rows_at_most(rows), row_norm)
                    }
                };
                build(step_of(STEP * variance))
            }
        }
    }

    /// The rows of a step.
    pub(super) fn gradient_batch(&self, rate: Option<f64>) -> Result<Batch, ConfigError> {
        match rate {
            None | Some(1.0) => Ok(Batch::All),
            Some(rate) if rate > 0.0 && rate < 1.0 => Ok(Batch::Poisson { rate }),
            Some(rate) => Err(self.refuse(
                "sampler.gradient.rate",
                format!("is the share of the rows in a batch: it must lie in (0, 1], not {rate}"),
            )),
        }
    }

    fn with_step(
        &self,
        s: &SamplerSection,
        dynamics: DynamicsName,
        model: &dyn Model,
        rows: usize,
        gradients: GradientSettings,
        step: f64,
    ) -> Result<StochasticGradient, ConfigError> {
        let schedule = schedule(s, step);
        let unpublished = [
            ("preconditioner", s.preconditioner.is_some()),
            ("gradient.extra_tau", gradients.extra_noise != 0.0),
        ];
        if let (true, Some((key, _))) =
            (s.as_published, unpublished.iter().find(|(_, given)| *given))
        {
            return Err(self.refuse(
                &format!("sampler.{key}"),
                "is not in the paper that 'as_published' follows to the letter; drop one of the two",
            ));
        }
        let (prior, d) = (model.prior().clone(), model.dim());
        let friction = s.friction.unwrap_or(FRICTION);
        let built = if s.as_published {
            let clip = gradients.clip.unwrap_or(f64::NAN);
            let rate = match gradients.batch {
                Batch::All => 1.0,
                Batch::Poisson { rate } => rate,
            };
            let settings = LiSettings {
                clip,
                eta: schedule,
                batch: rate * rows as f64,
                rows: rows as u64,
            };
            match dynamics {
                DynamicsName::Sgld => StochasticGradient::published_dp_sgld(prior, d, settings),
                _ => StochasticGradient::published_dp_sghmc(prior, d, settings, friction),
            }
        } else {
            let dynamics = match (dynamics, s.preconditioner) {
                (DynamicsName::Sgld, None) => Dynamics::Sgld,
                (DynamicsName::Sgld, Some(p)) => Dynamics::PreconditionedSgld {
                    decay: p.decay,
                    floor: p.floor,
                    adapt: p.adapt,
                },
                (DynamicsName::Sghmc, _) => Dynamics::Sghmc { friction },
                (DynamicsName::Sgnht, _) => Dynamics::Sgnht {
                    diffusion: s.diffusion.unwrap_or(DIFFUSION),
                },
            };
            StochasticGradient::new(prior, d, dynamics, schedule, gradients)
        };
        let built = match (&s.scale, built) {
            (Some(_), Ok(sampler)) => sampler.with_scale(&self.scale(s, d)?),
            (_, built) => built,
        };
        built.map_err(|e| self.refuse(&e.key, e.what))
    }

    /// The longest step whose planned run fits the budget, to a part in 10^4: a longer one
    /// injects less noise.
    fn affordable_step(
        &self,
        budget: Budget,
        sampled: bool,
        model: &dyn Model,
        build: impl Fn(f64) -> Result<StochasticGradient, ConfigError>,
    ) -> Result<f64, ConfigError> {
        let steps = self.steps()?;
        let keys = |step: f64| -> Option<Vec<(EventKey, u64)>> {
            let sampler = build(step).ok()?;
            let levels = sampler.levels(steps).into_iter();
            let keys = levels.map(|(t, count)| {
                Curator::gradient_cost(sampler.noise_of_step(t)).map(|key| (key, count))
            });
            keys.collect::<Result<_, _>>().ok()
        };
        match self.dearest(budget, sampled, model, keys)? {
            Some(step) => Ok(step),
            None => Err(self.refuse(
                "privacy.epsilon",
                "no step lets so many iterations fit the budget; fewer iterations, a smaller gradient clip or rate, or a larger budget",
            )),
        }
    }

    /// The largest setting, to a part in 10^4, at which the planned run fits the budget. `keys`: a
    /// chain's events with their counts at a setting; the larger it is the more they cost. `None`
    /// where nothing fits; `sampled`: whether they are of Poisson batches.
    pub(super) fn dearest(
        &self,
        budget: Budget,
        sampled: bool,
        model: &dyn Model,
        keys: impl Fn(f64) -> Option<Vec<(EventKey, u64)>>,
    ) -> Result<Option<f64>, ConfigError> {
        let chains = self.chains() as f64;
        let fits = |setting: f64, measure: Measure, left: f64| -> bool {
            let Some(keys) = keys(setting) else {
                return false;
            };
            let cost: Option<f64> = keys
                .iter()
                .map(|(key, n)| Some(measure.price(*key, budget).ok()?.cost.nats() * *n as f64))
                .sum();
            // The slack covers the rounding of events and of levels.
            cost.is_some_and(|c| c * chains * 1.003 <= left)
        };
        // At a small budget a low order's conversion alone costs more than ε.
        let first = match (Measure::Renyi { order: FIRST_ORDER }).limit(budget) > 0.0 {
            true => FIRST_ORDER,
            false => 1.0 - 2.0 * budget.conversion_delta().ln() / budget.epsilon(),
        };
        let stated = self.stated_measure(budget)?;
        let mut measure = match (stated, sampled) {
            (Some(stated), true) if !stated.is_renyi() => {
                return Err(self.refuse_measure(
                    stated,
                    "it cannot count gradients of a Poisson batch; give them a ledger of their own and no 'filter' (a Rényi order is chosen), or leave out 'rate'",
                ));
            }
            (Some(stated), _) => stated,
            (None, true) => Measure::Renyi { order: first },
            (None, false) => self.divided_measure(budget)?,
        };
        let mut found = None;
        // The order and the setting depend on one another.
        for _ in 0..3 {
            let start = self.start_cost(model, budget, measure)?;
            let left = (self.limit(budget, measure)? - start).max(0.0);
            let exponents = -80.0..60.0;
            let (mut low, mut high) = (exponents.start, exponents.end);
            // The noise leaves the range that can be charged at both ends.
            let works = |e: f64| fits(f64::exp2(e), measure, left);
            let Some(start) = (0..280)
                .map(|i| high - 0.5 * f64::from(i))
                .find(|e| works(*e))
            else {
                break;
            };
            (low, high) = (start.max(low), start + 0.5);
            while high - low > 1e-4 {
                let middle = 0.5 * (low + high);
                if works(middle) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            found = Some(f64::exp2(low));
            let Some(keys) = keys(f64::exp2(low)) else {
                break;
            };
            let keys: Vec<EventKey> = keys.into_iter().map(|(key, _)| key).collect();
            if stated.is_some() || keys.iter().all(|k| k.rho().is_some()) {
                break;
            }
            let order = best_order(&keys, budget);
            measure = Measure::Renyi { order };
        }
        Ok(found)
    }
}

/// How steps fall, the first of them of this length or, of a polynomial, in its proportion.
pub(super) fn schedule(s: &SamplerSection, step: f64) -> Schedule {
    match s.schedule {
        None | Some(ScheduleEntry::Named(ScheduleName::Fixed)) => Schedule::Fixed { step },
        Some(ScheduleEntry::Named(ScheduleName::CubeRoot)) => Schedule::CubeRoot { step },
        Some(ScheduleEntry::Polynomial(p)) => Schedule::Polynomial {
            step,
            offset: p.offset,
            exponent: p.exponent,
        },
        Some(ScheduleEntry::Cyclical(c)) => Schedule::Cyclical {
            step,
            length: c.cycle,
        },
    }
}
