//! `[privacy] ledger`: the file that runs share, and what it says of itself.

use std::path::PathBuf;

use super::Plan;
use crate::privacy::{Budget, Ledger, LedgerFileError, Measure};

impl Plan {
    /// The ledger file that other runs share, where one is named.
    pub fn shared_ledger(&self) -> Option<PathBuf> {
        let file = self.config.privacy.ledger.as_ref();
        file.map(|file| self.locate(file))
    }

    /// A ledger that exists says what it counts, and its budget, unless the run file does. `own`:
    /// the run's own ledger, where it is resumed.
    ///
    /// # Errors
    /// [`LedgerFileError`] where the file cannot be read, or has no folder to be in.
    pub fn take_terms(&mut self, own: Option<PathBuf>) -> Result<(), LedgerFileError> {
        let Some(path) = self.shared_ledger().or(own) else {
            return Ok(());
        };
        if path.parent().is_some_and(|folder| !folder.is_dir()) {
            return Err(LedgerFileError::File {
                path,
                what: "is to lie in a folder that does not exist; make it, or name another".into(),
            });
        }
        if !self.states_measure()
            && let Some(measure) = Ledger::measure_of(&path)?
        {
            self.state_measure(measure);
        }
        let privacy = &mut self.config.privacy;
        if (privacy.epsilon, privacy.delta, privacy.not_private) == (None, None, false)
            && let Some(budget) = Ledger::budget_of(&path)?
        {
            privacy.epsilon = Some(budget.epsilon());
            privacy.delta = Some(budget.delta());
        }
        Ok(())
    }

    /// The shared ledger file, if it exists, and what it counts as spent, nats of the measure.
    ///
    /// # Errors
    /// [`LedgerFileError`] where it is of another table, budget or measure.
    pub fn spent_of_ledger(
        &self,
        rows: usize,
        budget: Budget,
        measure: Measure,
    ) -> Result<Option<(PathBuf, f64)>, LedgerFileError> {
        let Some(path) = self.shared_ledger() else {
            return Ok(None);
        };
        let spent = Ledger::peek(&path, &self.ledger_name(), rows, budget, measure)?;
        Ok(spent.map(|spent| (path, spent)))
    }
}
