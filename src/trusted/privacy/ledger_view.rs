//! What a ledger file says to one who only reads it: no lock is taken and nothing is written.

use std::path::Path;

use super::accountant::Budget;
use super::accountant::Measure;
use super::ledger::Ledger;
use super::ledger_error::LedgerFileError;
use super::ledger_file;

impl Ledger {
    /// What the ledger file at `path` counts; `None` where there is none yet.
    ///
    /// # Errors
    /// [`LedgerFileError`] where it cannot be read.
    pub fn measure_of(path: &Path) -> Result<Option<Measure>, LedgerFileError> {
        Ok(ledger_file::terms(path)?.map(|(_, measure)| measure))
    }

    /// The budget of the ledger file at `path`; `None` where there is none yet.
    ///
    /// # Errors
    /// [`LedgerFileError`] where it cannot be read.
    pub fn budget_of(path: &Path) -> Result<Option<Budget>, LedgerFileError> {
        Ok(ledger_file::terms(path)?.map(|(budget, _)| budget))
    }

    /// Identity of the ledger file at `path`, and each record's hash; `None` where there is none.
    ///
    /// # Errors
    /// [`LedgerFileError`] where it cannot be read.
    pub fn records_of(path: &Path) -> Result<Option<(String, Vec<String>)>, LedgerFileError> {
        ledger_file::records(path)
    }

    /// What [`Ledger::open`] would find spent, in nats of the measure, what a run has reserved
    /// at this moment included; `None` where there is no file yet.
    ///
    /// # Errors
    /// [`LedgerFileError`] where it is damaged, of another data set, budget or measure.
    pub fn peek(
        path: &Path,
        dataset: &str,
        rows: usize,
        budget: Budget,
        measure: Measure,
    ) -> Result<Option<f64>, LedgerFileError> {
        let spent = ledger_file::spent(path, (dataset, rows), budget, measure)?;
        Ok(spent.map(|spent| spent.nats()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::accountant::EventKey;

    #[test]
    fn a_look_finds_what_was_spent_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.json");
        let budget = Budget::new(1.0, 1e-6).unwrap();
        let look = |rows, budget| Ledger::peek(&path, "a", rows, budget, Measure::Zcdp);
        assert_eq!(look(9, budget).unwrap(), None);
        assert_eq!(Ledger::budget_of(&path).unwrap(), None);
        let mut ledger = Ledger::open(&path, "a", 9, budget, Measure::Zcdp).unwrap();
        assert!(ledger.try_charge(EventKey::bounded_range(0.01).unwrap()));
        // While it is locked, what is reserved counts.
        assert!(look(9, budget).unwrap().unwrap() >= ledger.spent());
        ledger.settle().unwrap();
        let spent = ledger.spent();
        drop(ledger);
        let before = std::fs::read(&path).unwrap();
        assert_eq!(look(9, budget).unwrap(), Some(spent));
        assert_eq!(Ledger::budget_of(&path).unwrap(), Some(budget));
        assert!(look(8, budget).is_err());
        assert!(look(9, Budget::new(2.0, 1e-6).unwrap()).is_err());
        assert!(Ledger::peek(&path, "b", 9, budget, Measure::Zcdp).is_err());
        assert!(Ledger::peek(&path, "a", 9, budget, Measure::Gaussian).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
