//! `[sampler.anchor]`: how an anchored run divides its budget, before it looks at a row.

use super::Plan;
use super::forecast::DECISIONS_A_DRAW;
use crate::config::ConfigError;
use crate::config::schema::{AnchorSection, DrawsName, SamplerSection, StartEntry};
use crate::model::{Density, Model, Predictor, Slopes, Support, check_anchorable};
use crate::privacy::{Acceptance, Budget, Curator, Estimator, Measure};
use crate::sampler::{
    Adapt, AnchorSettings, AnchorSplit, AnchoredProposal, AnchoredSettings, Anchoring, Decisions,
    Family, LEAST_ANCHOR, stream,
};

/// Stages of a regression's path at most: it ends where noise is all that they see.
const STAGES: u32 = 25;
/// … or so many more than it may take to come near the labels …
const MORE_STAGES: f64 = 10.0;
/// … but no more than this: labels so far off should be scaled.
const MOST_STAGES: f64 = 300.0;
/// Newton steps of a network, which are halved.
const NETWORK_STAGES: u32 = 20;
/// A network's rows are clipped at this multiple of their expected root mean square: its sure rows,
/// of next to no weight, have long gradients.
const NETWORK_CLIP: f64 = 3.0;
/// Shares of what the steps leave over of a regression: the path at most (the rest of it goes to
/// the gradients), gradients, curvature.
const PATH_SHARES: [f64; 3] = [0.5, 0.44, 0.06];
/// The same of a network: warm start, gradient, curvature.
const SHARES: [f64; 3] = [0.2, 0.6, 0.2];
/// What decisions are worth: without them a draw is off by about `√(d/(N w̄))/2` posterior sds
/// where the likelihood is skewed, and the noise of the rest by 2kb/μ with b = k√(d/(N w̄)); so
/// they are worth (μ/(4k))² of the budget, ρ/18 of it at k = 3/2, but no more than this.
const MOST_FOR_DECISIONS: f64 = 0.3;
/// The warm start gets more where its error would exceed this, posterior sds a coordinate …
const START_ERROR: f64 = 1.2;
/// … or this where rows have no remainders, so that the anchor need not lie close by …
const FLAT_START_ERROR: f64 = 3.0;
/// … up to this share.
const LARGEST_START: f64 = 0.6;
/// Steps are expected to cost less than this multiple of a typical step's price each.
pub(super) const MARGIN: f64 = 4.0;
/// Warm-up before an anchor is refreshed, at least.
const FEWEST_DRAWS: u64 = 100;
/// Largest share of a refreshed anchor.
const MOST_REFRESH: f64 = 0.8;
/// No budget has a larger ε.
const MOST_EPSILON: f64 = 1000.0;

impl Plan {
    /// Settings of an anchored run.
    pub(super) fn anchoring(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
        (rows, row_norm): (usize, f64),
        rule: (Estimator, Acceptance),
    ) -> Result<AnchorSettings, ConfigError> {
        if let Some(order) = self.config.privacy.order {
            return Err(self.refuse_measure(
                Measure::Renyi { order },
                "an anchored run divides rho, or Gaussian DP; give it a ledger of its own, and no 'order'",
            ));
        }
        self.check_anchor_bounds()?;
        let section = s.anchor.clone().unwrap_or_default();
        let laplace = self.family()? == Family::Laplace;
        if model.moment_form().is_some() {
            if self.unit()?.is_some() {
                return Err(self.refuse(
                    "data.unit",
                    "the moments of this model are not added up unit by unit; only regressions are",
                ));
            }
            if laplace {
                return Err(self.refuse(
                    "sampler.algorithm",
                    "dp-laplace draws from a regression's released quadratic, and this model has none; use anchored-barker",
                ));
            }
            let settings = self.moment_settings(s, &section, model, (rows, row_norm), rule)?;
            return Ok(AnchorSettings::Moments(settings));
        }
        check_anchorable(model)
            .map_err(|e| self.refuse(self.choice("sampler.anchored"), e.what))?;
        self.check_foreign(s)?;
        for (key, given) in [
            ("degree", section.degree.is_some()),
            ("moments", section.moments.is_some()),
        ] {
            if given {
                return Err(self.refuse(
                    &format!("sampler.anchor.{key}"),
                    "belongs to models told by moments (mixture, gaussian-mean, banana); a regression is expanded at a point",
                ));
            }
        }
        self.check_section(&section)?;
        let d = model.dim();
        let root = (d as f64).sqrt();
        let slopes = model.slopes().ok_or_else(|| {
            let what = format!("model '{}' has no anchored form", self.model_name(model));
            self.refuse(self.choice("sampler.anchored"), what)
        })?;
        let network = slopes.predictor.is_network();
        if network && improper(model) {
            return Err(self.refuse(
                "model.prior",
                "an anchored network needs a proper prior, which alone holds the directions that no row tells of; give a prior or a box",
            ));
        }
        if laplace && network {
            return Err(self.refuse(
                self.choice("sampler.algorithm"),
                "the Gaussian at a network's mode is far from its posterior; use anchored-barker",
            ));
        }
        let explicit = self.config.sampler.is_explicit();
        let joint = matches!(slopes.predictor, Predictor::Joint(_));
        if joint && (explicit || section.decisions.is_some()) {
            return Err(self.refuse(
                self.choice("sampler.anchored"),
                "a model with [model.parameters] makes no decisions at an anchor: its draws are those of the released expansion; name algorithm = \"anchored-barker\" or \"dp-laplace\" alone, or hold the parameters fixed in [model.constants]",
            ));
        }
        let unit = self.unit()?;
        if unit.is_some() && network {
            return Err(self.refuse(
                "data.unit",
                "a network's rows are not added up unit by unit; use a regression, or leave the unit out where a row is all that is to be protected",
            ));
        }
        let slopes = slopes.of_units(unit.as_ref().map_or(1, |u| u.rows));
        let slopes = slopes.of_weights(self.mean_share());
        let blocks = model.prior().blocks().is_some();
        if blocks {
            self.check_blocks_at_anchor(s, model, network, &section)?;
        }
        let share = self.remainder_share(s, model, &slopes)?;
        let length = self.length()?;
        let mut settings = AnchoredSettings {
            anchoring: Anchoring {
                start: self.anchor_start(network, model)?,
                stages: section.stages.unwrap_or(match network {
                    true => NETWORK_STAGES,
                    false => stages(&slopes),
                }),
                location: model
                    .location()
                    .filter(|_| matches!(self.config.run.start, StartEntry::Usual)),
                rows,
                row_norm,
                unit: model.tempering() * model.unit(),
                slopes,
                structure: self.structure()?,
                clip: section.clip.or(network.then_some(NETWORK_CLIP)),
                radius: section.radius.unwrap_or(4.0 * root + 4.0),
                split: None,
                undecided: false,
            },
            proposal: s
                .proposal
                .unwrap_or(AnchoredProposal::Autoregressive { correlation: 0.0 }),
            share,
            refresh_after: section.refresh.map(|_| length.warmup),
            decisions: match laplace
                || joint
                || blocks
                || unit.is_some()
                || slopes.is_quadratic() && !explicit
            {
                true => Decisions::None,
                false => Decisions::All,
            },
        };
        if let Some(budget) = self.budget()? {
            self.divide(&mut settings, &section, budget, rule)?;
        }
        Ok(AnchorSettings::Expansion(settings))
    }

    /// What draws of a prior that is a mixture of normals cannot have at an anchor: they are those
    /// of the released expansion, by a Gibbs sampler.
    fn check_blocks_at_anchor(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
        network: bool,
        section: &AnchorSection,
    ) -> Result<(), ConfigError> {
        let refuse = |key: &str, what: &str| Err(self.refuse(key, what));
        if network {
            return refuse(
                "model.prior",
                "an anchored network needs a normal prior: its draws are moves that rows decide on",
            );
        }
        if s.is_explicit() || section.decisions.is_some() {
            return refuse(
                self.choice("sampler.anchored"),
                "a hierarchy, a student-t prior or a horseshoe makes no decisions at an anchor: its draws are those of the released expansion; name algorithm = \"anchored-barker\" or \"dp-laplace\" alone, or another sampler",
            );
        }
        if s.proposal.is_some() {
            let what = "belongs to moves, and draws of a hierarchy, a student-t prior or a horseshoe are a Gibbs sampler's; leave it out";
            return refuse("sampler.proposal", what);
        }
        if model.prior().support != Support::Unbounded {
            return refuse(
                "model.box",
                "no box holds the draws of a hierarchy, a student-t prior or a horseshoe at an anchor; leave it out",
            );
        }
        if self.config.run.draws == DrawsName::Chain {
            return refuse(
                "run.draws",
                "draws of a hierarchy, a student-t prior or a horseshoe at an anchor have the noise of the releases in them always; leave it out",
            );
        }
        Ok(())
    }

    /// Clip of remainders in units of [`Slopes::remainder_rate`].
    fn remainder_share(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
        slopes: &Slopes,
    ) -> Result<f64, ConfigError> {
        let refuse = |what: &str| Err(self.refuse("sampler.clip", what));
        let network = slopes.predictor.is_network();
        match &s.clip {
            Some(_) if slopes.is_quadratic() => refuse(&format!(
                "model '{}' is its own quadratic: an anchor leaves no remainders to clip; leave the clip out",
                self.model_name(model)
            )),
            None if network => refuse(
                "how far a network bends from its expansion has no bound to clip remainders at; give clip = { rate = … }, in units of the square of its slope (1.5, say)",
            ),
            None => Ok((4.0 / (model.dim() as f64).powf(1.5)).min(1.0)),
            Some(clip) => match (clip.share, clip.rate, clip.rms, clip.norm) {
                (Some(v), None, None, None) if !network && v > 0.0 && v.is_finite() => Ok(v),
                (None, Some(v), None, None) if network && v > 0.0 && v.is_finite() => Ok(v),
                _ if network => refuse(
                    "an anchored network's remainders have no bound to take a share of: give { rate = … }, positive",
                ),
                _ => refuse("an anchored sampler clips remainders: give { share = … }, positive"),
            },
        }
    }

    /// Keys that mean nothing around an anchor, and impossible proposals.
    fn check_foreign(&self, s: &SamplerSection) -> Result<(), ConfigError> {
        for (key, given) in [
            ("sampler.step", s.step.is_some()),
            ("sampler.scale", s.scale.is_some()),
            ("sampler.covariance", s.covariance.is_some()),
            ("sampler.adapt", s.adapt != Adapt::None),
        ] {
            if given {
                return Err(self.refuse(
                    key,
                    "does not go with an anchor: the anchor's own Gaussian scales its moves; see sampler.proposal",
                ));
            }
        }
        match s.proposal {
            Some(AnchoredProposal::Autoregressive { correlation })
                if correlation.is_nan() || correlation.abs() >= 1.0 =>
            {
                Err(self.refuse(
                    "sampler.proposal",
                    format!("correlation must lie strictly between -1 and 1, not {correlation}"),
                ))
            }
            Some(AnchoredProposal::RandomWalk { step }) if !(step > 0.0 && step.is_finite()) => {
                Err(self.refuse(
                    "sampler.proposal",
                    format!("step must be positive, not {step}"),
                ))
            }
            _ => Ok(()),
        }
    }

    fn check_section(&self, a: &AnchorSection) -> Result<(), ConfigError> {
        for (key, value) in [
            ("start", a.start),
            ("gradient", a.gradient),
            ("curvature", a.curvature),
            ("refresh", a.refresh),
            ("decisions", a.decisions),
        ] {
            if let Some(v) = value
                && !(v > 0.0 && v < 1.0)
            {
                return Err(self.refuse(
                    &format!("sampler.anchor.{key}"),
                    format!("is a share of the budget and must lie between 0 and 1, not {v}"),
                ));
            }
        }
        for (key, value) in [("clip", a.clip), ("radius", a.radius)] {
            if let Some(v) = value
                && !(v > 0.0 && v.is_finite())
            {
                return Err(self.refuse(
                    &format!("sampler.anchor.{key}"),
                    format!("must be positive, not {v}"),
                ));
            }
        }
        if a.stages == Some(0) && a.start.is_some() {
            return Err(self.refuse(
                "sampler.anchor.start",
                "is the share of a warm start, and stages = 0 makes none; drop one of the two",
            ));
        }
        if a.refresh.is_some_and(|r| r > MOST_REFRESH) {
            return Err(self.refuse(
                "sampler.anchor.refresh",
                format!("at most {MOST_REFRESH}: the first anchor and the steps need the rest"),
            ));
        }
        let warmup = self.length()?.warmup;
        if a.refresh.is_some() && warmup < FEWEST_DRAWS {
            return Err(self.refuse(
                "sampler.anchor.refresh",
                format!("takes the mean of the warm-up's second half: give [run] a warmup of {FEWEST_DRAWS} or more, not {warmup}"),
            ));
        }
        if a.stages.is_some_and(|s| s > 100) {
            return Err(self.refuse("sampler.anchor.stages", "at most 100"));
        }
        Ok(())
    }

    /// Where the warm start begins.
    fn anchor_start(&self, network: bool, model: &dyn Model) -> Result<Vec<f64>, ConfigError> {
        let d = model.dim();
        let start = match &self.config.run.start {
            StartEntry::Usual | StartEntry::Zero if network => {
                return Err(self.refuse(
                    "run.start",
                    "all hidden units of a network are alike at zero, and none has a slope; give { value = […] }, or \"prior\" for one public draw of the prior",
                ));
            }
            // One point for all runs, like a value: of no run's own stream.
            StartEntry::Prior if network => {
                let drawn = model.prior().draw(&mut stream([0; 32], 1 << 33));
                drawn.ok_or_else(|| {
                    self.refuse(
                        "run.start",
                        "no draw of the prior fell inside the box; give { value = […] }",
                    )
                })?
            }
            StartEntry::Usual => model.usual_start(),
            StartEntry::Zero => vec![0.0; d],
            StartEntry::Value(v) => v.clone(),
            StartEntry::Prior | StartEntry::Dpvi(_) | StartEntry::Ops(_) => {
                return Err(self.refuse(
                    "run.start",
                    "an anchored run starts at one public point: \"usual\", \"zero\" or { value = […] }",
                ));
            }
        };
        if start.len() != d || !model.prior().contains(&start) {
            return Err(self.refuse(
                "run.start",
                format!("the anchor's start needs {d} values inside the model's box"),
            ));
        }
        Ok(start)
    }

    /// Divides the budget between steps, warm start and anchor: what the steps are expected to cost
    /// with a margin, the rest by fixed shares, or as the run file says.
    fn divide(
        &self,
        settings: &mut AnchoredSettings,
        section: &AnchorSection,
        budget: Budget,
        (estimator, acceptance): (Estimator, Acceptance),
    ) -> Result<(), ConfigError> {
        let measure = self.divided_measure(budget)?;
        let rho = self.limit(budget, measure)?;
        let length = self.length()?;
        let steps = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        let stages = settings.anchoring.stages > 0;
        let anchoring = settings.anchoring.clone();
        if !anchoring.slopes.predictor.is_network() {
            return self.divide_path(settings, section, budget, (estimator, acceptance));
        }
        let quadratic = anchoring.slopes.is_quadratic();
        let error = if quadratic {
            FLAT_START_ERROR
        } else {
            START_ERROR
        };
        let refresh = section.refresh.map_or(0.0, |share| share * rho);
        let split = |left: f64| -> AnchorSplit {
            let left = (left - refresh).max(1e-3 * rho);
            let first = if stages {
                (anchoring.start_rho(error) / left).clamp(SHARES[0], LARGEST_START)
            } else {
                0.0
            };
            let rest = (1.0 - first) / (SHARES[1] + SHARES[2]);
            let part = |given: Option<f64>, share: f64| given.map_or(left * share, |s| s * rho);
            AnchorSplit {
                start: if stages {
                    part(section.start, first)
                } else {
                    0.0
                },
                gradient: part(section.gradient, SHARES[1] * rest),
                curvature: part(section.curvature, SHARES[2] * rest),
                refresh,
            }
        };
        // The steps' price depends on the noise that the rest buys: two rounds settle it.
        let mut left = 0.9 * rho;
        // A penalty costs the same for every move.
        let margin = match acceptance {
            Acceptance::Penalty { .. } => 1.0 + 1e-4,
            _ => MARGIN,
        };
        // Moves without remainders all cost the same next to nothing.
        let least = if quadratic { 1e-3 } else { 0.05 };
        for _ in 0..3 {
            settings.anchoring.split = Some(split(left));
            let clip = settings.typical_clip();
            let cost = Curator::cost(settings.anchoring.rows, clip, estimator, acceptance);
            let price = match cost {
                Ok(key) => key.map_or(0.0, |(key, _)| self.price_of(key, measure, budget)),
                Err(e) => return Err(self.refuse("sampler.clip", e.to_string())),
            };
            left = rho - (margin * steps * price).clamp(least * rho, 0.5 * rho);
        }
        let chosen = split(left);
        if chosen.rho().is_nan() || chosen.rho() >= rho {
            return Err(self.refuse(
                "sampler.anchor",
                "the shares of start, gradient, curvature and refresh leave nothing for the steps; their sum must be under 1",
            ));
        }
        settings.anchoring.split = Some(chosen);
        Ok(())
    }
}

impl Plan {
    /// The same of a regression: decisions get what they are worth, or nothing where that does not
    /// buy a useful number of effective draws; the path to the anchor the rest.
    fn divide_path(
        &self,
        settings: &mut AnchoredSettings,
        section: &AnchorSection,
        budget: Budget,
        (estimator, acceptance): (Estimator, Acceptance),
    ) -> Result<(), ConfigError> {
        let split = |rho: f64, decisions: f64| {
            let refresh = section.refresh.map_or(0.0, |share| share * rho);
            let left = (rho - decisions - refresh).max(0.0);
            let part = |given: Option<f64>, share: f64| given.map_or(left * share, |s| s * rho);
            AnchorSplit {
                start: part(section.start, PATH_SHARES[0]),
                gradient: part(section.gradient, PATH_SHARES[1]),
                curvature: part(section.curvature, PATH_SHARES[2]),
                refresh,
            }
        };
        let length = self.length()?;
        let steps = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        if settings.decisions != Decisions::None {
            let measure = self.measure_of_gaussians(budget)?;
            let rho = self.limit(budget, measure)?;
            // Before its division, which rounding alone would refuse.
            self.check_least(budget, (measure, rho))?;
            settings.anchoring.split = Some(split(rho, 0.0));
            let clip = settings.typical_clip();
            let cost = Curator::cost(settings.anchoring.rows, clip, estimator, acceptance);
            let price = match cost {
                Ok(key) => key.map_or(0.0, |(key, _)| self.price_of(key, measure, budget)),
                // No minibatch of that size can be drawn.
                Err(_) if section.decisions.is_none() => f64::INFINITY,
                Err(e) => return Err(self.refuse("sampler.clip", e.to_string())),
            };
            let worth = (rho / 18.0).min(MOST_FOR_DECISIONS) * rho;
            let target = DECISIONS_A_DRAW * self.config.run.ess;
            let penalty = matches!(acceptance, Acceptance::Penalty { .. });
            let decisions = match section.decisions {
                Some(share) => share * rho,
                // A penalty costs the same for every move.
                None if penalty => ((1.0 + 1e-4) * steps * price).clamp(1e-3 * rho, 0.5 * rho),
                None => (MARGIN * steps * price).min(worth),
            };
            let affordable = decisions / price;
            if section.decisions.is_none() && !penalty {
                let holds = |count: f64| clip * (affordable / count).sqrt();
                settings.decisions = match affordable >= target.min(steps) {
                    true => Decisions::Paced {
                        most: holds(target.min(steps)),
                        full: holds(steps),
                    },
                    false => Decisions::None,
                };
            }
            let chosen = split(rho, decisions);
            if chosen.rho().is_nan() || chosen.rho() >= rho {
                return Err(self.refuse(
                    "sampler.anchor",
                    "the shares of start, gradient, curvature, refresh and decisions leave nothing for the steps; their sum must be under 1",
                ));
            }
            settings.anchoring.split = Some(chosen);
        }
        settings.anchoring.undecided = settings.decisions == Decisions::None;
        if settings.decisions == Decisions::None {
            let measure = self.measure_of_gaussians(budget)?;
            let rho = self.limit(budget, measure)?;
            self.check_least(budget, (measure, rho))?;
            // The rounding of charges, upwards.
            let chosen = split(rho * (1.0 - 1e-4), 0.0);
            if chosen.refresh > 0.0 {
                return Err(self.refuse(
                    "sampler.anchor.refresh",
                    "takes the mean of decided draws, and here none is: the model is its own quadratic, the algorithm makes no decisions, or the budget does not hold enough of them; leave it out",
                ));
            }
            if chosen.rho().is_nan() || chosen.rho() >= rho {
                return Err(self.refuse(
                    "sampler.anchor",
                    "the shares of start, gradient and curvature exceed the budget; their sum must be under 1",
                ));
            }
            settings.anchoring.split = Some(chosen);
        }
        Ok(())
    }
}

impl Plan {
    /// Refuses a budget whose `rho` no anchor can be told from noise by.
    fn check_least(
        &self,
        budget: Budget,
        (measure, rho): (Measure, f64),
    ) -> Result<(), ConfigError> {
        if rho >= LEAST_ANCHOR {
            return Ok(());
        }
        let remedy = match self.least_epsilon(budget, measure)? {
            Some(enough) => {
                format!("from about epsilon = {enough} on there is something to be learned")
            }
            None => "no epsilon would do at this delta; give a larger one".into(),
        };
        Err(self.refuse(
            "privacy.epsilon",
            format!("this budget's noise would drown any table, and draws would be the prior's; {remedy}"),
        ))
    }

    /// The least ε, in three digits rounded up, whose budget at this δ holds an anchor.
    fn least_epsilon(
        &self,
        budget: Budget,
        measure: Measure,
    ) -> Result<Option<String>, ConfigError> {
        let holds = |epsilon: f64| -> Result<bool, ConfigError> {
            Ok(match Budget::new(epsilon, budget.delta()) {
                Ok(larger) => self.limit(larger, measure)? >= LEAST_ANCHOR,
                Err(_) => false,
            })
        };
        let (mut low, mut high) = (budget.epsilon(), MOST_EPSILON);
        if !holds(high)? {
            return Ok(None);
        }
        for _ in 0..40 {
            let middle = (low * high).sqrt();
            match holds(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        let decimals = (2.0 - high.log10().floor()).max(0.0);
        let unit = f64::powi(10.0, decimals as i32);
        let up = (high * unit).ceil() / unit;
        Ok(Some(format!("{up:.*}", decimals as usize)))
    }
}

/// Whether the prior has infinite mass.
fn improper(model: &dyn Model) -> bool {
    let prior = model.prior();
    prior.density == Density::Flat && prior.support == Support::Unbounded
}

/// Newton steps of a regression's warm start.
fn stages(slopes: &Slopes) -> u32 {
    let enough = (slopes.crossing.ceil() + MORE_STAGES).min(MOST_STAGES);
    STAGES.max(enough as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare;

    const RUN: &str = "[data]\nfile = \"t.csv\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\"]\nclamp = [-1, 1]\n[model]\nkind = \"logistic\"\nprior = { kind = \"normal\", sd = 1.0 }\n[sampler]\nalgorithm = \"dp-laplace\"\n[privacy]\ndelta = DELTA\nepsilon = ";

    /// The epsilon that a budget too small is told does: in every digit, and next to the least.
    #[test]
    fn an_epsilon_that_is_told_to_do_does() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), "a,y\n0.5,1\n-0.5,0\n").unwrap();
        let refusal = |delta: &str, epsilon: &str| {
            let text = format!("{}{epsilon}\n", RUN.replace("DELTA", delta));
            let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
            prepare(plan).err().map(|e| e.to_string())
        };
        for (delta, tiny) in [("1e-6", "1e-7"), ("1e-12", "1e-9"), ("1e-300", "1e-3")] {
            let message = refusal(delta, tiny).unwrap();
            let told = message.split("epsilon = ").nth(1).expect(&message);
            let told = told.split(' ').next().unwrap();
            assert_eq!(refusal(delta, told), None, "{message}");
            let less = 0.98 * told.parse::<f64>().unwrap();
            assert!(refusal(delta, &less.to_string()).is_some(), "{message}");
        }
    }

    /// No share that nobody gave is blamed for a budget too small, with decisions or without.
    #[test]
    fn a_budget_too_small_is_what_is_blamed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), "a,y\n0.5,1\n-0.5,0\n").unwrap();
        for algorithm in ["dp-laplace", "anchored-barker"] {
            for epsilon in ["1e-7", "1e-9", "1e-12"] {
                let run = RUN.replace("dp-laplace", algorithm);
                let text = format!("{}{epsilon}\n", run.replace("DELTA", "1e-6"));
                let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
                let message = prepare(plan).err().unwrap().to_string();
                assert!(
                    message.contains("privacy.epsilon: this budget's noise would drown any table"),
                    "{algorithm} {epsilon}: {message}"
                );
            }
        }
    }
}
