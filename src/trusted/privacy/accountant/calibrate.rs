//! Calibration: the value of one field of one event that a budget affords. What is
//! returned has been verified with the accountants, so it never overspends.

use serde::Serialize;

use super::rules::{Account, Question, account};
use super::sequence::Sequence;
use crate::privacy::event::Event;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Solution {
    /// Event, counted from 0.
    pub index: usize,
    /// Field solved for.
    pub field: String,
    /// Its value.
    pub value: f64,
    /// What the sequence costs at that value.
    pub account: Account,
}

/// Why there is no solution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// The field is not one that can be solved for, or not there.
    #[error("{0}")]
    Field(String),
    /// No value meets the budget.
    #[error("no {field} of events[{index}] meets (epsilon {epsilon}, delta {delta}): {why}")]
    Unreachable {
        /// Event, counted from 0.
        index: usize,
        /// Field.
        field: String,
        /// ε asked for.
        epsilon: f64,
        /// δ asked for.
        delta: f64,
        /// At which value it fails.
        why: String,
    },
}

/// Relative width at which the search stops.
const CLOSE: f64 = 1e-4;

/// Solves for `name`: a field (`sigma`, `eta`, `clip`, `count`, `rate`, `epsilon`, `batch`) that
/// one event alone has, or `INDEX.field`. The smallest σ, or the largest of anything else.
///
/// # Errors
/// [`CalibrationError`].
pub fn calibrate(
    sequence: &Sequence,
    name: &str,
    epsilon: f64,
    delta: f64,
) -> Result<Solution, CalibrationError> {
    let (index, field) = locate(sequence, name)?;
    let whole = matches!(field, "count" | "batch");
    let down = field == "sigma";
    let try_value = |value: f64| -> Option<Account> {
        let changed = with(sequence, index, field, value)?;
        let account = account(&changed, Question::Epsilon { delta });
        (account.upper <= epsilon).then_some(account)
    };
    let start = value_of(sequence, index, field);
    // `good` meets the budget, `bad` does not; towards = factor that costs less.
    let less = if down { 2.0 } else { 0.5 };
    let round = |v: f64| if whole { v.round().max(1.0) } else { v };
    let unreachable = |why: String| CalibrationError::Unreachable {
        index,
        field: field.into(),
        epsilon,
        delta,
        why,
    };
    let (mut good, mut bad);
    let mut best = try_value(start);
    if best.is_some() {
        (good, bad) = (start, f64::NAN);
        for _ in 0..80 {
            let next = round(good / less);
            match try_value(next) {
                Some(account) => (good, best) = (next, Some(account)),
                None => {
                    bad = next;
                    break;
                }
            }
        }
        if bad.is_nan() {
            return Err(unreachable("even the extreme value meets it".into()));
        }
    } else {
        (good, bad) = (f64::NAN, start);
        for _ in 0..80 {
            let next = round(bad * less);
            if next == bad {
                break;
            }
            match try_value(next) {
                Some(account) => {
                    (good, best) = (next, Some(account));
                    break;
                }
                None => bad = next,
            }
        }
        if good.is_nan() {
            return Err(unreachable(format!("it fails at {bad}")));
        }
    }
    while (good - bad).abs() > CLOSE * good && !(whole && (good - bad).abs() <= 1.0) {
        let middle = if whole {
            (0.5 * (good + bad)).floor()
        } else {
            (good * bad).sqrt()
        };
        match try_value(middle) {
            Some(account) => (good, best) = (middle, Some(account)),
            None => bad = middle,
        }
    }
    let account = best.ok_or_else(|| unreachable("no value was verified".into()))?;
    Ok(Solution {
        index,
        field: field.into(),
        value: good,
        account,
    })
}

/// Fields of an event that can be solved for.
fn fields(event: &Event) -> &'static [&'static str] {
    match event {
        Event::Gaussian { .. } | Event::DiscreteGaussian { .. } => &["sigma", "count"],
        Event::PoissonGaussian { .. } => &["sigma", "rate", "count"],
        Event::FixedBatchGaussian { .. } => &["sigma", "batch", "count"],
        Event::BoundedRange { .. } => &["eta", "count"],
        Event::PoissonBarker { .. } => &["clip", "count"],
        Event::Pure { .. } => &["epsilon", "count"],
        Event::FastMhNoisy { .. } => &["sigma", "count"],
        Event::Heikkila { .. } => &["count"],
        Event::NotPrivate => &[],
    }
}

fn locate<'a>(sequence: &Sequence, name: &'a str) -> Result<(usize, &'a str), CalibrationError> {
    let events = sequence.events();
    let fail = |what: String| CalibrationError::Field(what);
    let (index, field) = match name.split_once('.') {
        Some((index, field)) => {
            let index: usize = index
                .parse()
                .map_err(|_| fail(format!("'{name}' is no INDEX.field")))?;
            if index >= events.len() {
                return Err(fail(format!("there is no events[{index}]")));
            }
            (index, field)
        }
        None => {
            let having: Vec<usize> = (0..events.len())
                .filter(|&i| fields(&events[i].0).contains(&name))
                .collect();
            match having[..] {
                [index] => (index, name),
                [] => return Err(fail(format!("no event has a '{name}' to solve for"))),
                _ => {
                    return Err(fail(format!(
                        "events {having:?} all have '{name}'; say which, as {}.{name}",
                        having[0]
                    )));
                }
            }
        }
    };
    if !fields(&events[index].0).contains(&field) {
        return Err(fail(format!(
            "events[{index}] has no '{field}' to solve for; it has {:?}",
            fields(&events[index].0)
        )));
    }
    Ok((index, field))
}

fn value_of(sequence: &Sequence, index: usize, field: &str) -> f64 {
    let (event, count) = sequence.events()[index];
    match (field, event) {
        ("count", _) => count as f64,
        (
            "sigma",
            Event::Gaussian { sigma, .. }
            | Event::DiscreteGaussian { sigma, .. }
            | Event::PoissonGaussian { sigma, .. }
            | Event::FixedBatchGaussian { sigma, .. }
            | Event::FastMhNoisy { sigma, .. },
        ) => sigma,
        ("rate", Event::PoissonGaussian { rate, .. }) => rate.max(1e-9),
        ("batch", Event::FixedBatchGaussian { batch, .. }) => batch as f64,
        ("eta", Event::BoundedRange { eta }) => eta,
        ("clip", Event::PoissonBarker { clip, .. }) => clip,
        ("epsilon", Event::Pure { epsilon }) => epsilon,
        _ => f64::NAN,
    }
}

/// The sequence with one value changed; `None` where that is not valid.
fn with(sequence: &Sequence, index: usize, field: &str, value: f64) -> Option<Sequence> {
    let mut events = sequence.events().to_vec();
    let (event, count) = &mut events[index];
    match (field, event) {
        ("count", _) => *count = value as u64,
        (
            "sigma",
            Event::Gaussian { sigma, .. }
            | Event::DiscreteGaussian { sigma, .. }
            | Event::PoissonGaussian { sigma, .. }
            | Event::FixedBatchGaussian { sigma, .. }
            | Event::FastMhNoisy { sigma, .. },
        ) => *sigma = value,
        ("rate", Event::PoissonGaussian { rate, .. }) => *rate = value,
        ("batch", Event::FixedBatchGaussian { batch, .. }) => *batch = value as u64,
        ("eta", Event::BoundedRange { eta }) => *eta = value,
        ("clip", Event::PoissonBarker { clip, .. }) => *clip = value,
        ("epsilon", Event::Pure { epsilon }) => *epsilon = value,
        _ => return None,
    }
    Sequence::new(sequence.neighbours(), events).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::event::Neighbours;

    fn gaussian(sigma: f64) -> Sequence {
        let event = Event::Gaussian {
            sensitivity: 1.0,
            sigma,
        };
        Sequence::new(Neighbours::Substitution, vec![(event, 10)]).unwrap()
    }

    #[test]
    fn the_value_meets_the_budget_and_hardly_more_would() {
        for start in [0.5, 50.0] {
            let found = calibrate(&gaussian(start), "sigma", 1.0, 1e-6).unwrap();
            assert!(found.account.upper <= 1.0);
            let tighter = account(
                &gaussian(found.value * 0.999),
                Question::Epsilon { delta: 1e-6 },
            );
            assert!(tighter.upper > 1.0, "{found:?}");
        }
        let found = calibrate(&gaussian(30.0), "count", 1.0, 1e-6).unwrap();
        assert!(found.account.upper <= 1.0);
        let more = calibrate(&gaussian(30.0), "0.count", 1.0, 1e-6).unwrap();
        assert_eq!(found.value, more.value);
    }

    #[test]
    fn fields_that_cannot_be_solved_for_are_named() {
        assert!(calibrate(&gaussian(1.0), "eta", 1.0, 1e-6).is_err());
        assert!(calibrate(&gaussian(1.0), "3.sigma", 1.0, 1e-6).is_err());
        assert!(calibrate(&gaussian(1.0), "count", 1e-3, 1e-9).is_err());
    }
}
