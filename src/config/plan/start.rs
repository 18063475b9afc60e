//! Private starts: a Gaussian fitted by released gradients, or one posterior draw; and `ops`,
//! which makes nothing but such draws.

use super::Plan;
use super::gradient::{FIT_DRAWS, FIT_STEP, FIT_STEPS};
use crate::config::ConfigError;
use crate::config::schema::{
    DpviEntry, GradientSection, Numbers, OpsEntry, SamplerSection, StartEntry,
};
use crate::model::{Model, Support};
use crate::privacy::{Batch, Budget, DrawRequest, GradientNoise, Measure, rho_of_budget};
use crate::sampler::{Dpvi, PosteriorDraws, Sampler, Variational, gradient_sigma};

/// Steps of a secret chain.
const CHAIN_STEPS: u64 = 2000;
/// Its proposals over the posterior's scale, times √d (Roberts, Gelman & Gilks 1997).
const PROPOSAL: f64 = 2.38;

impl Plan {
    /// The private warm start that `[run] start` asks for.
    ///
    /// # Errors
    /// [`ConfigError`] for keys that are missing or bad.
    pub fn warm_start(&self, model: &dyn Model) -> Result<Option<Sampler>, ConfigError> {
        match &self.config.run.start {
            StartEntry::Dpvi(entry) => Ok(Some(self.fitted_start(entry, model)?.into())),
            StartEntry::Ops(entry) => Ok(Some(self.drawn_start(entry, model)?.into())),
            _ => Ok(None),
        }
    }

    /// What a private start costs all chains in the ledger's measure; 0 where there is none.
    ///
    /// # Errors
    /// [`ConfigError`] for a start that is bad, or that the measure cannot count.
    pub fn start_cost(
        &self,
        model: &dyn Model,
        budget: Budget,
        measure: Measure,
    ) -> Result<f64, ConfigError> {
        let Some(start) = self.warm_start(model)? else {
            return Ok(0.0);
        };
        let chains = self.chains();
        let cost = start
            .step_cost(0, model, (1, chains))
            .map_err(|halt| self.refuse("run.start", halt.to_string()))?;
        let mut total = 0.0;
        for (key, count) in cost.events {
            let price = measure
                .price(key, budget)
                .map_err(|e| self.refuse("run.start", e))?;
            total += price.cost.nats() * count * chains as f64;
        }
        Ok(total)
    }

    /// What a private start leaves to the steps, between which settings without a value
    /// divide it, and the measure of that: for Gaussian noise both are its ρ.
    pub(super) fn left_for_steps(
        &self,
        model: &dyn Model,
        budget: Budget,
    ) -> Result<(f64, Measure), ConfigError> {
        let measure = self.divided_measure(budget)?;
        let (limit, symbol) = (self.limit(budget, measure)?, measure.symbol());
        let start = self.start_cost(model, budget, measure)?;
        if start < limit {
            return Ok((limit - start, measure));
        }
        Err(self.refuse(
            "run.start",
            format!("costs {symbol} {start:.3e}, which leaves nothing of the budget ({symbol} {limit:.3e}); give it a smaller epsilon (dpvi) or box (ops), or the run a larger budget"),
        ))
    }

    fn fitted_start(
        &self,
        entry: &DpviEntry,
        model: &dyn Model,
    ) -> Result<Variational, ConfigError> {
        let budget = self.fit_budget(entry)?;
        if self.config.data.unit.is_some() && model.gradient_function().sees_rows() {
            return Err(self.refuse(
                "run.start",
                "dpvi follows gradients, and a network's rows are not added up unit by unit as data.unit asks; start elsewhere",
            ));
        }
        let section = GradientSection {
            clip: entry.clip,
            share: entry.share,
            ..GradientSection::default()
        };
        let clip = self.gradient_clip(&section, model, "run.start.dpvi", budget.is_some())?;
        let d = model.dim();
        let scale = entry.scale.as_ref().map_or(vec![1.0; d], |v| v.expand(d));
        self.check_scale("run.start", &scale, d)?;
        let fit = Dpvi {
            steps: entry.steps.unwrap_or(FIT_STEPS),
            learning_rate: entry.step.unwrap_or(FIT_STEP),
            draws_per_step: FIT_DRAWS,
            scale: Some(scale),
        };
        self.check_fit(&fit, model, ("run.start", "run.start"))?;
        let releases = fit.steps as f64 * fit.draws_per_step as f64;
        let sigma = match (clip, budget) {
            (Some(clip), Some(budget)) => {
                let rho = rho_of_budget(budget.epsilon(), budget.delta());
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

    /// What the fit alone may cost; `None` without privacy.
    fn fit_budget(&self, entry: &DpviEntry) -> Result<Option<Budget>, ConfigError> {
        let whole = self.budget()?;
        match (entry.epsilon, entry.delta, whole) {
            (None, None, None) => Ok(None),
            (Some(epsilon), Some(delta), Some(whole)) => {
                let budget =
                    Budget::new(epsilon, delta).map_err(|e| self.refuse("run.start", e.what))?;
                if budget.rho() >= whole.rho() {
                    return Err(self.refuse(
                        "run.start",
                        format!(
                            "a fit of ({epsilon}, {delta:e}) leaves nothing of the run's budget ({}, {:e}), which pays for it",
                            whole.epsilon(),
                            whole.delta()
                        ),
                    ));
                }
                Ok(Some(budget))
            }
            (_, _, None) => Err(self.refuse(
                "run.start",
                "a non-private run's fit costs nothing; drop epsilon and delta",
            )),
            _ => Err(self.refuse(
                "run.start",
                "dpvi needs epsilon and delta: what the fit may cost, charged to the run's budget",
            )),
        }
    }

    /// `ops` as a sampler: every draw is paid for.
    pub(super) fn posterior_draws(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
    ) -> Result<PosteriorDraws, ConfigError> {
        let d = model.dim();
        let step = s.step.unwrap_or(PROPOSAL / (d as f64).sqrt());
        let scale = self.scale(s, d)?.iter().map(|v| step * v).collect();
        let bounds = self.draw_bounds(None, model, "model.box")?;
        self.draws(bounds, s.steps, scale, model, "sampler.steps")
    }

    fn drawn_start(
        &self,
        entry: &OpsEntry,
        model: &dyn Model,
    ) -> Result<PosteriorDraws, ConfigError> {
        let d = model.dim();
        let scale = entry.scale.as_ref().map_or(vec![1.0; d], |v| v.expand(d));
        self.check_scale("run.start", &scale, d)?;
        let scale = scale
            .iter()
            .map(|v| PROPOSAL / (d as f64).sqrt() * v)
            .collect();
        let bounds = self.draw_bounds(entry.bounds.as_ref(), model, "run.start")?;
        self.draws(bounds, entry.steps, scale, model, "run.start")
    }

    /// The box of a posterior draw: as given, within the model's own.
    fn draw_bounds(
        &self,
        given: Option<&Numbers>,
        model: &dyn Model,
        key: &str,
    ) -> Result<Vec<f64>, ConfigError> {
        let d = model.dim();
        let own = match &model.prior().support {
            Support::Box(bounds) => Some(bounds.clone()),
            Support::Unbounded => None,
        };
        let bounds = match (given.map(|v| v.expand(d)), own) {
            (Some(given), Some(own)) if given.len() == d => {
                given.iter().zip(own).map(|(a, b)| a.min(b)).collect()
            }
            (Some(given), _) => given,
            (None, Some(own)) => own,
            (None, None) => {
                return Err(self.refuse(
                    if key == "model.box" { "model" } else { key },
                    "one posterior draw is private over a bounded set alone; declare a 'box'",
                ));
            }
        };
        if bounds.len() == d && bounds.iter().all(|b| *b > 0.0 && b.is_finite()) {
            return Ok(bounds);
        }
        Err(self.refuse(
            key,
            format!("'box' needs a positive number, or {d} of them"),
        ))
    }

    fn draws(
        &self,
        bounds: Vec<f64>,
        steps: Option<u64>,
        scale: Vec<f64>,
        model: &dyn Model,
        key: &str,
    ) -> Result<PosteriorDraws, ConfigError> {
        let steps = steps.unwrap_or(CHAIN_STEPS);
        let fits = scale.len() == model.dim() && scale.iter().all(|v| *v > 0.0 && v.is_finite());
        if steps == 0 || !fits {
            return Err(self.refuse(key, "needs at least one step, and positive scales"));
        }
        if self.config.data.unit.is_some() {
            return Err(self.refuse(
                key,
                "a posterior draw pays for bounds of single rows, and data.unit says that persons have several; start elsewhere",
            ));
        }
        if model.ratio_rate().is_none() {
            return Err(self.refuse(
                "model",
                format!(
                    "model '{}' has no bound on its log ratios here, which one posterior draw needs; declare a parameter 'box' in [model]",
                    self.model_name(model)
                ),
            ));
        }
        Ok(PosteriorDraws::new(DrawRequest {
            bounds,
            steps,
            scale,
        }))
    }
}
