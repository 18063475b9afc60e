//! The keys of DP-Fast MH and of batches of fixed size.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::SamplerSection;
use crate::data::Population;
use crate::privacy::{
    Acceptance, Budget, Curator, Estimator, FastMhSettings, Lambda, largest_batch_clip,
};
use crate::sampler::{ClipNorm, ClipRule, Combination, EstimatorName, RandomWalk};

/// λ of the authors' code, for both of their experiments; less where K is small.
const LAMBDA: f64 = 10.0;
/// ε and δ of a step in the paper's experiments.
const STEP: (f64, f64) = (0.05, 1e-5);
/// Rows of a batch in Heikkilä 2019, section 5 …
const BATCH: usize = 1000;
/// … but no more than this share of the table, or sampling hides next to nothing.
const BATCH_SHARE: f64 = 0.1;
/// The test is private at orders below a fifth of its batch alone.
const LEAST_BATCH: usize = 11;

impl Plan {
    /// Settings of DP-Fast MH over `rows`; K = 0 for its full-batch form.
    ///
    /// K defaults to N/6 (Σw_i/(6 max w_i) where rows have bounds of their own), where `ε/(6K·max
    /// c/C)`, the ε that the paper leaves one occurrence of a row, is the step's own: `K = C/(6 max
    /// c)`, which the authors' code names in a comment (its defaults, 60 and 225, are tuned to its
    /// two experiments).
    pub(super) fn fast_mh(
        &self,
        s: &SamplerSection,
        chosen: Combination,
        rows: Population,
    ) -> Result<FastMhSettings, ConfigError> {
        let full = chosen.estimator == EstimatorName::All;
        let batch_cap = match s.batch_cap {
            _ if full => 0.0,
            Some(cap) => cap,
            None => (rows.total / rows.largest / 6.0).max(1.0),
        };
        if !full && !(1.0..f64::INFINITY).contains(&batch_cap) {
            return Err(self.refuse(
                "sampler.batch_cap",
                format!("must be at least 1, not {batch_cap}"),
            ));
        }
        let settings = FastMhSettings {
            lambda: s.lambda.unwrap_or(if full {
                1.0
            } else {
                LAMBDA.min(0.5 * batch_cap)
            }),
            batch_cap,
            epsilon: s.step_epsilon.unwrap_or(STEP.0),
            delta: s.step_delta.unwrap_or(STEP.1),
        };
        if !full && settings.lambda >= batch_cap {
            return Err(self.refuse(
                if s.lambda.is_some() { "sampler.lambda" } else { "sampler.batch_cap" },
                format!(
                    "lambda = {} must be smaller than batch_cap = {batch_cap}, or no minibatch is ever small enough",
                    settings.lambda
                ),
            ));
        }
        if !(settings.delta > 0.0 && settings.delta < 1.0) {
            return Err(self.refuse(
                "sampler.step_delta",
                format!("must lie strictly between 0 and 1, not {}", settings.delta),
            ));
        }
        Ok(settings)
    }

    /// Rows of a batch of fixed size, of so many.
    pub(super) fn batch(&self, s: &SamplerSection, rows: usize) -> Result<usize, ConfigError> {
        let share = (BATCH_SHARE * rows as f64) as usize;
        let batch = s.batch.unwrap_or(BATCH.min(share).max(LEAST_BATCH));
        if batch >= LEAST_BATCH {
            return Ok(batch);
        }
        Err(self.refuse(
            "sampler.batch",
            format!(
                "must exceed 10, not {batch}: the test is private at orders below batch/5 alone"
            ),
        ))
    }

    /// Clips that leave no choice: √b/N for every move of the subsampled test, which costs the
    /// same at any smaller one; none where the rows bound themselves.
    pub(super) fn fixed_clip(
        &self,
        s: &SamplerSection,
        rows: usize,
    ) -> Result<Option<ClipRule>, ConfigError> {
        if s.clip.is_some() {
            return Err(self.refuse(
                "sampler.clip",
                "dp-barker-subsampled clips at sqrt(batch)/rows; drop 'clip'",
            ));
        }
        Ok(Some(ClipRule {
            rate: largest_batch_clip(self.batch(s, rows)?, rows),
            norm: ClipNorm::Constant,
        }))
    }

    /// Checks that the noisy minibatches that DP-Fast MH may reach can be charged.
    pub(super) fn check_fast_mh(
        &self,
        sampler: &RandomWalk,
        rows: Population,
    ) -> Result<(), ConfigError> {
        let Some(fast) = sampler.fast_mh else {
            return Ok(());
        };
        let s = &fast.settings;
        self.check_coins(s, rows)?;
        let Some(clip) = fast.largest_noisy_minibatch() else {
            return Ok(());
        };
        let most = 2.5 * s.batch_cap * rows.share();
        if s.delta >= most {
            return Err(self.refuse(
                "sampler.step_delta",
                format!(
                    "must be smaller than 2.5 K/N = {most:e} for noise to be defined, not {:e}",
                    s.delta
                ),
            ));
        }
        if s.batch_cap * rows.share() > 0.5 {
            return Err(self.refuse(
                "sampler.batch_cap",
                format!("{} is more than half of the {:.0} rows, where noise on a minibatch cannot be charged; choose a smaller one", s.batch_cap, 1.0 / rows.share()),
            ));
        }
        let (estimator, acceptance) = fast.rule(clip);
        Curator::cost(rows, clip, estimator, acceptance)
            .map(|_| ())
            .map_err(|halt| self.refuse("sampler.batch_cap", halt.to_string()))
    }

    /// Checks that the budget's δ pays for the coins of the largest minibatch: a move that draws
    /// one may come late, however rare it is.
    fn check_coins(&self, s: &FastMhSettings, rows: Population) -> Result<(), ConfigError> {
        let clip = (s.batch_cap - s.lambda) * (1.0 - 1e-9) / rows.total;
        let lambda = Lambda::Fixed(s.lambda);
        let minibatch = Estimator::Poisson { lambda };
        let (true, Some(budget)) = (clip > 0.0, self.budget()?) else {
            return Ok(());
        };
        let Ok(Some((_, coins))) = Curator::cost(rows, clip, minibatch, Acceptance::Barker) else {
            return Ok(());
        };
        if coins <= budget.coin_delta() {
            return Ok(());
        }
        let length = self.length()?;
        let steps = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        let holds = |epsilon: &u32| {
            Budget::new(f64::from(*epsilon), budget.delta())
                .is_ok_and(|smaller| steps * coins <= smaller.coin_delta())
        };
        let fits = match (1..budget.epsilon() as u32).rev().find(holds) {
            Some(epsilon) => format!(", or an epsilon of at most {epsilon}"),
            None => String::new(),
        };
        Err(self.refuse(
            "privacy.epsilon",
            format!(
                "at epsilon {} not even one minibatch can be paid for from delta; use dp-fast-mh-full, which draws none{fits}",
                budget.epsilon()
            ),
        ))
    }
}
