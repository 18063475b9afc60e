//! A score of a run's draws on a protected held-out table: the one recipe.

use std::path::Path;

use super::RunError;
use crate::config::{Plan, Validation};
use crate::output::{HeldOutReport, OutputError, add_report};
use crate::prediction::{Posterior, PredictionError, Wanted};
use crate::privacy::{Halt, HeldOut, Ledger, ScoreRequest};

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
            "is missing: [validate] says which held-out table, at what price; give it before the run, or add it to the run.toml of the run's directory",
        )
    };
    let settings = plan.validation()?.ok_or_else(missing)?;
    let posterior = Posterior::read(directory, Wanted::AtMost(settings.draws))?;
    let data = plan.load_validation()?.ok_or_else(missing)?;
    let model = plan.model(&data)?;
    let (rows, budget) = (data.rows(), settings.budget);
    let ledger = Ledger::open(
        &settings.ledger,
        &settings.name,
        rows,
        budget,
        Validation::MEASURE,
    )?;
    let mut table = HeldOut::private(data, model, ledger, None)?;
    let sums = 1 + usize::from(table.has_accuracy());
    let request = ScoreRequest {
        draws: &posterior.draws,
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
    table.settle()?;
    let ledger = table.ledger();
    let report = HeldOutReport {
        table: settings.name,
        rows,
        neighbours: "substitution of one row of this table".into(),
        draws: posterior.draws.len(),
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
    };
    add_report(directory, &report)?;
    Ok(report)
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
