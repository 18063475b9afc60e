//! What a run's ledger says before anything is charged: its terms, what is left of it, and
//! whether that lets a draw be kept.

use std::path::{Path, PathBuf};

use super::CliError;
use dpmc::config::Plan;
use dpmc::privacy::{Budget, Ledger, Measure};

/// The ledger file that other runs share.
pub(super) fn shared(plan: &Plan) -> Option<PathBuf> {
    let file = plan.config.privacy.ledger.as_ref();
    file.map(|file| plan.locate(file))
}

/// A ledger that exists says what it counts, and its budget, unless the run file does.
pub(super) fn take_terms(plan: &mut Plan, resumed: Option<&Path>) -> Result<(), CliError> {
    let own = resumed.map(|directory| directory.join("ledger.json"));
    let Some(path) = shared(plan).or(own) else {
        return Ok(());
    };
    if !plan.states_measure()
        && let Some(measure) = Ledger::measure_of(&path)?
    {
        plan.state_measure(measure);
    }
    let privacy = &mut plan.config.privacy;
    if (privacy.epsilon, privacy.delta, privacy.not_private) == (None, None, false)
        && let Some(budget) = Ledger::budget_of(&path)?
    {
        privacy.epsilon = Some(budget.epsilon());
        privacy.delta = Some(budget.delta());
    }
    Ok(())
}

/// The shared ledger file, if it exists, and what it counts as spent.
pub(super) fn spent(
    plan: &Plan,
    rows: usize,
    budget: Budget,
    measure: Measure,
) -> Result<Option<(PathBuf, f64)>, CliError> {
    let Some(path) = shared(plan) else {
        return Ok(None);
    };
    let spent = Ledger::peek(&path, &plan.dataset_name(), rows, budget, measure)?;
    Ok(spent.map(|spent| (path, spent)))
}

/// What a run is to pay, nats of its ledger's measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// Before the first step alone: a start, a fit, an anchor.
    pub once: f64,
    /// A typical step of one chain.
    pub step: f64,
    /// Steps of warm-up to come, all chains.
    pub warmup: f64,
    /// Nobody knows what steps cost before there is an anchor.
    pub guessed: bool,
}

impl Need {
    /// Whether warm-up takes all of `left`, so that no draw would be kept.
    pub fn ends_in_warmup(&self, left: f64) -> bool {
        self.warmup > 0.0 && self.once + self.warmup * self.step > left
    }

    /// Refuses a run that `left` does not lead to a draw. `path`: the ledger.
    pub fn check(
        &self,
        plan: &Plan,
        path: &Path,
        left: f64,
        measure: Measure,
    ) -> Result<(), CliError> {
        let (first, symbol) = (self.once + self.step, measure.symbol());
        if first > left {
            let path = path.display();
            return Err(CliError::Input(if left > 0.0 {
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
        Ok(())
    }
}

/// What becomes of a run that the budget does not take through warm-up.
pub(super) const NO_DRAW: &str = "warm-up alone needs more than the budget: no draw would be kept";
