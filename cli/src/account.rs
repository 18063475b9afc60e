//! `dpmc account` and `dpmc calibrate`: the accountants from the command line.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::CliError;
use super::answers::print_json;
use super::args::{AccountArguments, CalibrateArguments};
use dpmc::privacy::accountant::{self, Account, Question, Sequence, Solution};

pub(super) fn account(a: &AccountArguments) -> Result<(), CliError> {
    let sequence = read(&a.events)?;
    let question = question(a.delta, a.epsilon)?;
    let answer = accountant::account(&sequence, question);
    if a.json {
        return print_json(&document(&sequence, question, &answer));
    }
    let asked = match question {
        Question::Epsilon { delta } => format!("epsilon at delta = {delta:e}"),
        Question::Delta { epsilon } => format!("delta at epsilon = {epsilon}"),
    };
    println!(
        "{asked}, neighbours by {}: {} (at least {}; {})",
        sequence.neighbours().name(),
        shown(answer.upper),
        shown(answer.lower),
        answer.method
    );
    table(&answer);
    println!("for a sequence fixed in advance; a filter's answer (yes) also for adaptive ones");
    Ok(())
}

pub(super) fn question(delta: Option<f64>, epsilon: Option<f64>) -> Result<Question, CliError> {
    match (delta, epsilon) {
        (Some(delta), _) => Ok(Question::Epsilon {
            delta: checked_delta(delta)?,
        }),
        (None, Some(epsilon)) if epsilon >= 0.0 && epsilon.is_finite() => {
            Ok(Question::Delta { epsilon })
        }
        (None, Some(epsilon)) => Err(CliError::Input(format!(
            "--epsilon: must be finite and not negative, not {epsilon}"
        ))),
        (None, None) => Err(CliError::Input("say --delta D or --epsilon E".into())),
    }
}

pub(super) fn calibrate(a: &CalibrateArguments) -> Result<(), CliError> {
    let sequence = read(&a.events)?;
    let (found, delta) = (solve(&sequence, a.epsilon, a.delta, &a.solve)?, a.delta);
    if a.json {
        return print_json(&solution(&sequence, delta, &found));
    }
    println!(
        "events[{}].{} = {}: epsilon {} at delta = {delta:e} ({})",
        found.index,
        found.field,
        found.value,
        shown(found.account.upper),
        found.account.method
    );
    Ok(())
}

pub(super) fn solve(
    sequence: &Sequence,
    epsilon: f64,
    delta: f64,
    name: &str,
) -> Result<Solution, CliError> {
    let delta = checked_delta(delta)?;
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        return Err(CliError::Input(format!(
            "--epsilon: must be positive and finite, not {epsilon}"
        )));
    }
    accountant::calibrate(sequence, name, epsilon, delta)
        .map_err(|e| CliError::Input(format!("--solve {name}: {e}")))
}

/// What was solved for, and what it gives.
pub(super) fn solution(sequence: &Sequence, delta: f64, found: &Solution) -> Value {
    let mut document = document(sequence, Question::Epsilon { delta }, &found.account);
    document["solution"] = json!({
        "event": found.index,
        "field": found.field,
        "value": found.value,
    });
    document
}

fn checked_delta(delta: f64) -> Result<f64, CliError> {
    if (0.0..1.0).contains(&delta) {
        Ok(delta)
    } else {
        Err(CliError::Input(format!(
            "--delta: must lie in [0, 1), not {delta}"
        )))
    }
}

/// A sequence of events, or the events of a run's certificate.
fn read(path: &Path) -> Result<Sequence, CliError> {
    let fail = |e: String| CliError::Input(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
    parse(text).map_err(fail)
}

/// The same of its text.
pub(super) fn parse(text: String) -> Result<Sequence, String> {
    let text = certified(&text)?.unwrap_or(text);
    Sequence::from_json(&text).map_err(|e| e.to_string())
}

/// The sequence in a certificate; `None` where the text is none.
fn certified(text: &str) -> Result<Option<String>, String> {
    let Ok(mut map) = serde_json::from_str::<Map<String, Value>>(text) else {
        return Ok(None);
    };
    // What every certificate has, and no sequence.
    if !["private", "accountant", "engine", "status"]
        .iter()
        .all(|key| map.contains_key(*key))
    {
        return Ok(None);
    }
    if map.contains_key("events_left_out") {
        return Err(
            "only the first events are in it; certificate.json of the run's directory has \
             all, and so has 'dpmc summary --json --events'"
                .into(),
        );
    }
    map.retain(|key, _| key == "neighbours" || key == "events");
    serde_json::to_string(&map)
        .map(Some)
        .map_err(|e| e.to_string())
}

/// Infinite answers are `null`.
pub(super) fn document(sequence: &Sequence, question: Question, answer: &Account) -> Value {
    let mut document = json!({
        "neighbours": sequence.neighbours(),
        "lower": answer.lower,
        "upper": answer.upper,
        "method": answer.method,
        "accountants": answer.accountants,
    });
    let (epsilon, delta) = match question {
        Question::Epsilon { delta } => (answer.upper, delta),
        Question::Delta { epsilon } => (epsilon, answer.upper),
    };
    document["epsilon"] = json!(epsilon);
    document["delta"] = json!(delta);
    document
}

fn table(answer: &Account) {
    println!(
        "  {:30} {:>12} {:>12} {:>8}  how",
        "accountant", "lower", "upper", "adaptive"
    );
    for a in &answer.accountants {
        let how = [
            a.order.map(|o| format!("order {o:.3}")),
            a.grid.map(|g| format!("grid {g:.2e}")),
            a.direction.map(str::to_string),
        ];
        let how: Vec<String> = how.into_iter().flatten().collect();
        println!(
            "  {:30} {:>12} {:>12} {:>8}  {}",
            a.method,
            shown(a.lower),
            shown(a.upper),
            if a.adaptive { "yes" } else { "no" },
            how.join(", ")
        );
    }
}

fn shown(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value) {
        format!("{value:.6}")
    } else if value.is_infinite() {
        "infinite".into()
    } else {
        format!("{value:.4e}")
    }
}
