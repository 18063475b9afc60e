//! `validation.json`: what was released of a protected held-out table, with its own guarantee.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{OutputError, guarantee_number};
use crate::privacy::{Event, replace_durably};

/// The file in a run's directory.
const FILE: &str = "validation.json";

/// A released score of a held-out table, and what covers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOutReport {
    /// What its ledger calls the table.
    pub table: String,
    /// Rows N, public.
    pub rows: usize,
    /// Neighbouring relation.
    pub neighbours: String,
    /// Draws that each row was scored by.
    pub draws: usize,
    /// Draws that the run had kept when the score was made, of which those are some.
    #[serde(default)]
    pub kept: usize,
    /// A row's score was cut off at these, nats.
    pub clip: [f64; 2],
    /// Mean over rows of the log predictive density of their labels, with noise; nats.
    pub log_score: f64,
    /// Standard deviation of its noise.
    pub log_score_sd: f64,
    /// Of binary labels: share of rows whose label was likelier than not, with noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Standard deviation of its noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_sd: Option<f64>,
    /// The guarantee of all that the ledger's runs publish of this table: ε at `delta`.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// ε of what the ledger has spent so far.
    pub epsilon_spent: f64,
    /// Releases that this one was charged as, with their number.
    pub events: Vec<(Event, u64)>,
    /// The ledger file.
    pub ledger: PathBuf,
    /// Where the score would mislead a reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl HeldOutReport {
    /// In words, for a person: scores with the interval that their noise leaves them in with
    /// probability 0.95, and the guarantee.
    pub fn lines(&self) -> Vec<String> {
        let spread = |mean: f64, sd: f64| format!("{mean:.4} \u{b1} {:.4}", 1.96 * sd);
        let mut scores = format!("log score {}", spread(self.log_score, self.log_score_sd));
        if let (Some(mean), Some(sd)) = (self.accuracy, self.accuracy_sd) {
            scores += &format!(", accuracy {}", spread(mean, sd));
        }
        let [low, high] = self.clip;
        let mut lines = vec![
            format!(
                "{scores} (mean of {} held-out rows by {} of the {} draws that the run had; \u{b1} is the noise's 95% interval, of rows cut off at {low} and {high})",
                self.rows, self.draws, self.kept
            ),
            format!(
                "held-out table '{}': ({}, {:e})-DP, neighbours by {}, all scores of the ledger {} (spent {})",
                self.table,
                guarantee_number(self.epsilon),
                self.delta,
                self.neighbours,
                self.ledger.display(),
                guarantee_number(self.epsilon_spent)
            ),
        ];
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines
    }
}

/// The scores that were released of the run in `directory`, in order.
///
/// # Errors
/// [`OutputError`] where the file is damaged.
pub fn held_out_reports(directory: &Path) -> Result<Vec<HeldOutReport>, OutputError> {
    let path = directory.join(FILE);
    let fail = |what: String| OutputError::Read {
        path: path.clone(),
        what,
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map_err(|e| fail(e.to_string())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(fail(e.to_string())),
    }
}

/// The scores of a run's directory, to which one can be added: what could stop that is found out
/// before anything is paid for.
pub(crate) struct HeldOutReports {
    directory: PathBuf,
}

impl HeldOutReports {
    /// Finds out whether they can be read, and the folder written.
    ///
    /// # Errors
    /// [`OutputError`] where the file is damaged or nothing can be written there.
    pub fn open(directory: &Path) -> Result<Self, OutputError> {
        held_out_reports(directory)?;
        let path = directory.join(FILE);
        // Another process may probe at this moment.
        let probe = directory.join(format!("validation.probe.{}.tmp", std::process::id()));
        std::fs::write(&probe, "")
            .and_then(|()| std::fs::remove_file(&probe))
            .map_err(|e| fail(&path, e.to_string()))?;
        let directory = directory.to_path_buf();
        Ok(HeldOutReports { directory })
    }

    /// Adds one to those that are there now: others may have come since these were opened. The
    /// caller holds the ledger's lock, so nobody else adds at this moment.
    ///
    /// # Errors
    /// [`OutputError`] where the file cannot be read or written.
    pub fn add(self, report: &HeldOutReport) -> Result<(), OutputError> {
        let path = self.directory.join(FILE);
        let mut all = held_out_reports(&self.directory)?;
        all.push(report.clone());
        let text = serde_json::to_string_pretty(&all);
        let text = text.map_err(|e| fail(&path, e.to_string()))?;
        replace_durably(&path, text.as_bytes()).map_err(|e| fail(&path, e.to_string()))
    }
}

fn fail(path: &Path, what: String) -> OutputError {
    let path = path.to_path_buf();
    OutputError::Write { path, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(epsilon_spent: f64) -> HeldOutReport {
        HeldOutReport {
            table: "held".into(),
            rows: 9,
            neighbours: "substitution".into(),
            draws: 1,
            kept: 1,
            clip: [-1.0, 0.0],
            log_score: -0.5,
            log_score_sd: 0.1,
            accuracy: None,
            accuracy_sd: None,
            epsilon: 0.000935,
            delta: 1e-6,
            epsilon_spent,
            events: Vec::new(),
            ledger: "l.json".into(),
            notes: Vec::new(),
        }
    }

    /// Both were opened before either had its turn at the ledger; both were paid for.
    #[test]
    fn scores_made_at_once_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [(); 2].map(|()| HeldOutReports::open(folder.path()).unwrap());
        two.add(&report(0.1)).unwrap();
        one.add(&report(0.2)).unwrap();
        let found = held_out_reports(folder.path()).unwrap();
        assert_eq!(found, [report(0.1), report(0.2)]);
        let files = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(files.count(), 1);
    }

    #[test]
    fn a_guarantee_is_never_rounded_down() {
        let line = report(1.6e-7).lines().remove(1);
        assert!(line.contains("(9.35e-4, 1e-6)-DP"), "{line}");
        assert!(line.contains("(spent 1.60e-7)"), "{line}");
    }
}
