//! A score of a run's draws on a protected held-out table: the one recipe.

use std::path::Path;

use super::RunError;
use crate::config::{Plan, Validation, existing_part};
use crate::data::LabelKind;
use crate::output::{HeldOutReport, HeldOutReports, OutputError};
use crate::prediction::{Posterior, PredictionError, Wanted};
use crate::privacy::{Halt, HeldOut, Ledger, LedgerFileError, ScoreRequest};

/// What the log score of a number is in.
const UNIT: &str = "labels are numbers: the log score is of densities of the label as it is declared (after its 'scale'), and two runs compare only where they declare the label alike";

/// Charges the ledger of the held-out table that the run file in `directory` names, releases one
/// score of the run's draws, and writes it to `validation.json` there.
///
/// # Errors
/// [`RunError`]; where the ledger has too little left nothing is charged.
pub fn validate(directory: &Path) -> Result<HeldOutReport, RunError> {
    let plan = Plan::read(&directory.join("run.toml"))?;
    let missing = || {
        plan.refuse(
            "validate",
            "is missing: [validate] says which held-out table, at what price; give it before the run, or add it to the run.toml of the run's directory. Its paths are relative to the run file that names them, and all runs must lead to one ledger file: two ledgers of one table add up unseen",
        )
    };
    let settings = plan.validation()?.ok_or_else(missing)?;
    if lies_in(&settings.ledger, directory) {
        let what = "lies in the run's own directory, where no other run would find it, and each run would spend the whole budget; paths are relative to the run file: name one file outside of all runs' directories";
        return Err(plan.refuse("validate.ledger", what).into());
    }
    let reports = HeldOutReports::open(directory)?;
    let posterior = Posterior::read(directory, Wanted::AtMost(settings.draws))?;
    let data = plan.load_validation()?.ok_or_else(missing)?;
    let model = plan.model(&data)?;
    let kind = data.label_kind();
    let (rows, budget) = (data.rows(), settings.budget);
    let ledger = Ledger::open(
        &settings.ledger,
        &settings.name,
        rows,
        budget,
        Validation::MEASURE,
    )
    .map_err(of_scores)?;
    let mut table = HeldOut::private(data, model, ledger, None)?;
    let sums = 1 + usize::from(table.has_accuracy());
    let request = ScoreRequest {
        draws: kind.map_or(&posterior.draws, |kind| posterior.of_labels(kind)),
        range: settings.clip,
        tau: settings.tau(sums),
    };
    let score = table.score(&request).map_err(|halt| match halt {
        Halt::BudgetSpent(_) => RunError::Spent(format!(
            "{}: {halt}; nothing was charged. A smaller 'share' in [validate] leaves room for more scores",
            settings.ledger.display()
        )),
        Halt::Refused(what) => RunError::State(what),
        other => RunError::Failed(other.to_string()),
    })?;
    let mut notes = posterior.notes;
    notes.extend(Validation::warning(budget.delta(), rows));
    if let Some(LabelKind::Number { .. }) = kind {
        notes.push(UNIT.into());
    }
    // What is paid for is told, whatever cannot be written now.
    if let Err(e) = table.settle() {
        notes.push(format!("the ledger keeps the score's whole charge: {e}"));
    }
    let ledger = table.ledger();
    let mut report = HeldOutReport {
        table: settings.name,
        rows,
        neighbours: "substitution of one row of this table".into(),
        draws: posterior.draws.len(),
        kept: posterior.kept,
        clip: settings.clip,
        log_score: score.log_score,
        log_score_sd: score.log_score_sd,
        accuracy: score.accuracy.map(|[mean, _]| mean),
        accuracy_sd: score.accuracy.map(|[_, sd]| sd),
        epsilon: budget.epsilon(),
        delta: budget.delta(),
        epsilon_spent: ledger.epsilon_spent(),
        events: ledger.events(),
        ledger: settings.ledger,
        notes,
    };
    if let Err(e) = reports.add(&report) {
        let note = format!("this score was paid for and is in no file, so keep it yourself: {e}");
        report.notes.push(note);
    }
    Ok(report)
}

/// Whether a file, which need not be there, lies in a folder or below it.
fn lies_in(file: &Path, folder: &Path) -> bool {
    let there = existing_part(file);
    let found = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    found(&there).starts_with(found(folder))
}

/// [validate] has no keys by which a ledger of another measure could be shared.
fn of_scores(error: LedgerFileError) -> RunError {
    match error {
        LedgerFileError::OtherMeasure { path, .. } => RunError::State(format!(
            "{}: is a run's ledger, and a held-out ledger counts Gaussian DP; name the file in [validate] that earlier `dpmc validate` calls made, or a new one",
            path.display()
        )),
        other => other.into(),
    }
}

impl From<PredictionError> for RunError {
    fn from(error: PredictionError) -> Self {
        match error {
            PredictionError::Config(e) => RunError::Config(e),
            PredictionError::Output(e) => RunError::Output(e),
            PredictionError::Input(what) => RunError::State(what),
        }
    }
}

impl From<OutputError> for RunError {
    fn from(error: OutputError) -> Self {
        RunError::Output(error)
    }
}
