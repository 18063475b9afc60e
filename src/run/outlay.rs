//! What a run pays before its first draw, against what its ledger has left.

use std::path::Path;

use super::RunError;
use crate::config::{ConfigError, Plan};
use crate::privacy::Measure;

/// What a run is to pay, nats of its ledger's measure.
#[derive(Clone, Copy, Debug)]
pub struct Outlay {
    /// Before the first step alone: a start, a fit, an anchor.
    pub once: f64,
    /// A typical step of one chain.
    pub step: f64,
    /// Steps of warm-up to come, all chains.
    pub warmup: f64,
    /// Steps after warm-up to the first draw that thinning keeps, all chains; 0 where the budget
    /// does not end the run, or nothing can be changed any more.
    pub thin: f64,
    /// Number of chains.
    pub chains: f64,
    /// Nobody knows what steps cost before there is an anchor.
    pub guessed: bool,
}

impl Outlay {
    /// Whether warm-up takes all of `left`, so that no draw would be kept.
    pub fn ends_in_warmup(&self, left: f64) -> bool {
        self.warmup > 0.0 && self.once + self.warmup * self.step > left
    }

    /// Refuses a `thin` beyond the iterations that `left` affords, and says which is not.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn check_thin(&self, plan: &Plan, left: f64) -> Result<(), ConfigError> {
        let affords = ((left - self.once) / self.step - self.warmup) / self.chains;
        // Where not even one iteration fits, thinning is not to blame.
        if self.guessed || self.thin <= self.chains * affords || affords < 1.0 {
            return Ok(());
        }
        let (thin, fits) = (plan.config.run.thin, affords.floor());
        Err(plan.refuse(
            "run.thin",
            format!(
                "keeps one of {thin} iterations, and the budget affords about {fits:.0} after warm-up: no draw would be kept; at most {fits:.0} would fit"
            ),
        ))
    }

    /// Refuses a run that `left` does not lead to a draw. `path`: the ledger.
    ///
    /// # Errors
    /// [`RunError`] that says how much is missing.
    pub fn check(
        &self,
        plan: &Plan,
        path: &Path,
        left: f64,
        measure: Measure,
    ) -> Result<(), RunError> {
        let (first, symbol) = (self.once + self.step, measure.symbol());
        if first > left {
            let path = path.display();
            return Err(RunError::Spent(if left > 0.0 {
                format!(
                    "{path}: {symbol} {left:.3e} of the ledger's budget is left, and this run needs {first:.3e} before its first draw"
                )
            } else {
                format!(
                    "{path}: the ledger's budget is spent: nothing is left, and this run needs {symbol} {first:.3e} before its first draw"
                )
            }));
        }
        if self.ends_in_warmup(left) && !self.guessed {
            return Err(plan
                .refuse(
                    "run.warmup",
                    format!(
                        "{NO_DRAW}: about {symbol} {:.3e} of {left:.3e}; shorten it, make steps cheaper or the budget larger",
                        self.once + self.warmup * self.step
                    ),
                )
                .into());
        }
        Ok(self.check_thin(plan, left)?)
    }
}

/// What becomes of a run that the budget does not take through warm-up.
pub const NO_DRAW: &str = "warm-up alone needs more than the budget: no draw would be kept";
