//! `validation.json`: what was released of a protected held-out table, with its own guarantee.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::OutputError;
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
                "held-out table '{}': ({:.4}, {:e})-DP, neighbours by {}, all scores of the ledger {} (spent {:.4})",
                self.table,
                self.epsilon,
                self.delta,
                self.neighbours,
                self.ledger.display(),
                self.epsilon_spent
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
    path: PathBuf,
    all: Vec<HeldOutReport>,
}

impl HeldOutReports {
    /// Reads them, and finds out whether the folder can be written.
    ///
    /// # Errors
    /// [`OutputError`] where the file is damaged or nothing can be written there.
    pub fn open(directory: &Path) -> Result<Self, OutputError> {
        let all = held_out_reports(directory)?;
        let path = directory.join(FILE);
        // Another process may probe at this moment.
        let probe = directory.join(format!("validation.probe.{}.tmp", std::process::id()));
        std::fs::write(&probe, "")
            .and_then(|()| std::fs::remove_file(&probe))
            .map_err(|e| fail(&path, e.to_string()))?;
        Ok(HeldOutReports { path, all })
    }

    /// Adds one to them.
    ///
    /// # Errors
    /// [`OutputError`] where the file cannot be written.
    pub fn add(mut self, report: &HeldOutReport) -> Result<(), OutputError> {
        self.all.push(report.clone());
        let text = serde_json::to_string_pretty(&self.all);
        let text = text.map_err(|e| fail(&self.path, e.to_string()))?;
        replace_durably(&self.path, text.as_bytes()).map_err(|e| fail(&self.path, e.to_string()))
    }
}

fn fail(path: &Path, what: String) -> OutputError {
    let path = path.to_path_buf();
    OutputError::Write { path, what }
}
