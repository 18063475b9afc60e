//! Average marginal effects: what a change of one column does to the expected label, on average
//! over public rows.

use rayon::prelude::*;

use super::PredictionError;
use super::declarations::{beyond_bounds, declared_levels, entries};
use super::draws::Posterior;
use super::label::Words;
use super::law::LabelLaw;
use super::new_rows::NewRows;
use super::predict::{check_fit, check_level, spread};
use super::predictor::Predictor;
use super::public_table::{PublicTable, Value};
use crate::config::{FeatureEntry, Plan};
use crate::data::LabelKind;

/// A change of one column in all rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A number is added; against rows as they are.
    Shift {
        /// The column.
        column: String,
        /// In its own units.
        by: f64,
    },
    /// It becomes this value; against rows as they are.
    Set {
        /// The column.
        column: String,
        /// A level, or a number as a text.
        to: String,
    },
    /// It becomes one value, against another.
    Contrast {
        /// The column.
        column: String,
        /// What it is compared with.
        from: String,
        /// What it becomes.
        to: String,
    },
}

impl Change {
    /// The column.
    pub fn column(&self) -> &str {
        match self {
            Change::Shift { column, .. }
            | Change::Set { column, .. }
            | Change::Contrast { column, .. } => column,
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Change::Shift { column, by } => format!("{column}{by:+}"),
            Change::Set { column, to } => format!("{column}={to}"),
            Change::Contrast { column, from, to } => format!("{column}={from}:{to}"),
        }
    }
}

impl Change {
    /// Of `COLUMN=NUMBER`.
    ///
    /// # Errors
    /// [`PredictionError`] where it is none.
    pub fn shift(plan: &Plan, text: &str) -> Result<Self, PredictionError> {
        let (column, by) = split_column(plan, text)?;
        let what = || {
            PredictionError::Input(format!(
                "'{text}': what is added to a column is a number, as in age=10"
            ))
        };
        let by = by.trim().parse().map_err(|_| what())?;
        Ok(Change::Shift { column, by })
    }

    /// Of `COLUMN=VALUE`.
    ///
    /// # Errors
    /// [`PredictionError`] where it is none.
    pub fn set(plan: &Plan, text: &str) -> Result<Self, PredictionError> {
        let (column, to) = split_column(plan, text)?;
        Ok(Change::Set { column, to })
    }

    /// Of `COLUMN=FROM:TO`; of several colons the one with declared levels on both sides, else the
    /// first.
    ///
    /// # Errors
    /// [`PredictionError`] where it is none.
    pub fn contrast(plan: &Plan, text: &str) -> Result<Self, PredictionError> {
        let (column, values) = split_column(plan, text)?;
        let entries = entries(plan, &column)?;
        let levels: Vec<&String> = entries.iter().flat_map(declared_levels).collect();
        let known = |level: &str| levels.iter().any(|l| *l == level);
        let cut = |at: usize| (&values[..at], &values[at + 1..]);
        let mut cuts = values.match_indices(':').map(|(at, _)| cut(at));
        let both = cuts.clone().find(|(from, to)| known(from) && known(to));
        let (from, to) = both.or_else(|| cuts.next()).ok_or_else(|| {
            PredictionError::Input(format!(
                "'{text}': a contrast names two values, as in education=HS-grad:Masters"
            ))
        })?;
        Ok(Change::Contrast {
            from: from.into(),
            to: to.into(),
            column,
        })
    }
}

/// `COLUMN=VALUE`, where the column's own name may hold a `=`.
fn split_column(plan: &Plan, text: &str) -> Result<(String, String), PredictionError> {
    let columns = plan.feature_columns()?;
    let mut cuts = text
        .match_indices('=')
        .map(|(at, _)| (&text[..at], &text[at + 1..]));
    let read = cuts
        .clone()
        .find(|(column, _)| columns.iter().any(|c| c == column));
    let found = read.or_else(|| cuts.next());
    let (column, value) = found.ok_or_else(|| {
        PredictionError::Input(format!("'{text}': write COLUMN=VALUE, as in age=10"))
    })?;
    Ok((column.into(), value.into()))
}

/// An average effect with its credible interval, in units of the label or of its probability.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Effect {
    /// The change.
    pub change: String,
    /// Of what: `mean`, `quantile`, `probability`, `probability_0`, ….
    pub of: String,
    /// Mean over draws, without the noise of an anchor's releases, of the mean over rows.
    pub effect: f64,
    /// Lower end of its credible interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Share of rows that lie beyond the declared bounds of the column after the change, which cut
    /// them off there; none where the column has no bounds.
    pub beyond_bounds: Option<f64>,
}

/// Effects of several changes.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Effects {
    /// Probability of the intervals.
    pub level: f64,
    /// Draws that were used.
    pub draws: usize,
    /// Rows that were averaged over.
    pub rows: usize,
    /// The label's column.
    pub label: String,
    /// One entry for each change; of classes one for each class.
    pub effects: Vec<Effect>,
    /// Where they would mislead a reader.
    pub notes: Vec<String>,
}

/// Of an effect that is no average over noise, and an interval that is one of it.
const OUTSIDE: &str = "the effect lies outside of its interval, which has the noise of the releases in it: where noise moves predictions far, their differences shrink, and the effect, from which noise is left out, does not; little is known of it";

/// What each change does to the expected label, on average over the rows of a public table.
///
/// # Errors
/// [`PredictionError`] naming the column, the level or the row that does not fit.
pub fn effects(
    posterior: &Posterior,
    table: &PublicTable,
    changes: &[Change],
    level: f64,
) -> Result<Effects, PredictionError> {
    check_level(level)?;
    let plan = &posterior.plan;
    let words = Words::new(plan)?;
    let load = |table: &PublicTable| NewRows::of_table(plan, table, "the changed table", false);
    let plain = load(table)?;
    let predictor = Predictor::new(plan, &plain)?;
    check_fit(&predictor, posterior)?;
    let expected = |rows: &NewRows| {
        let by = |draws| average_expected(&predictor, draws, rows);
        let all = by(&posterior.draws);
        let quiet = posterior.quiet().map_or_else(|| all.clone(), by);
        [all, quiet]
    };
    let as_it_is = expected(&plain);
    let mut found = Vec::new();
    let mut notes = posterior.notes.clone();
    for change in changes {
        let column = known_column(plan, table, change)?;
        let (before, changed) = match change {
            Change::Shift { by, .. } => (None, shifted(change.column(), column, *by)?),
            Change::Set { to, .. } => (None, set(plan, change.column(), column, to)?),
            Change::Contrast { from, to, .. } => (
                Some(set(plan, change.column(), column, from)?),
                set(plan, change.column(), column, to)?,
            ),
        };
        let beyond = beyond_bounds(plan, change.column(), &changed);
        let after = expected(&load(&table.with(change.column(), changed))?);
        let before = match before {
            Some(cells) => &expected(&load(&table.with(change.column(), cells))?),
            None => &as_it_is,
        };
        if beyond.is_some_and(|share| share > 0.0) {
            notes.push(format!(
                "{}: {:.1} % of the rows end beyond the declared bounds of '{}' and are cut off there, so that the effect is of less than the whole change",
                change.describe(),
                100.0 * beyond.unwrap_or(0.0),
                change.column()
            ));
        }
        for k in 0..after[0].len() {
            let [all, quiet] = [0, 1].map(|which| -> Vec<f64> {
                let pairs = after[which][k].iter().zip(&before[which][k]);
                pairs.map(|(a, b)| words.difference(a - b)).collect()
            });
            let [effect, low, high] = spread(&quiet, all, level);
            if effect < low || effect > high {
                notes.push(format!("{}: {OUTSIDE}", change.describe()));
            }
            found.push(Effect {
                change: change.describe(),
                of: outcome(&predictor, k),
                effect,
                low,
                high,
                beyond_bounds: beyond,
            });
        }
    }
    Ok(Effects {
        level,
        draws: posterior.draws.len(),
        rows: plain.rows(),
        label: words.column().into(),
        effects: found,
        notes,
    })
}

/// Name of the k-th thing that is expected.
fn outcome(predictor: &Predictor, k: usize) -> String {
    match predictor.label() {
        LabelKind::Binary => "probability".into(),
        LabelKind::Class { .. } => format!("probability_{k}"),
        _ if predictor.is_quantile() => "quantile".into(),
        _ => "mean".into(),
    }
}

/// The expected label, averaged over rows, by each draw; of classes each one's probability.
fn average_expected(predictor: &Predictor, draws: &[Vec<f64>], rows: &NewRows) -> Vec<Vec<f64>> {
    let (values, width) = (rows.values(), rows.width());
    let count = rows.rows() as f64;
    let classes = match predictor.label() {
        LabelKind::Class { classes } => Some(classes as usize),
        _ => None,
    };
    let by_draw: Vec<Vec<f64>> = draws
        .par_iter()
        .map(|theta| match classes {
            Some(classes) => {
                let mut sums = vec![0.0; classes];
                for row in values.chunks_exact(width) {
                    if let LabelLaw::Classes(chances) = predictor.law(theta, row) {
                        sums.iter_mut().zip(chances).for_each(|(s, p)| *s += p);
                    }
                }
                sums.into_iter().map(|s| s / count).collect()
            }
            None => {
                let expected = predictor.expected(theta, &values, width);
                vec![expected.into_iter().sum::<f64>() / count]
            }
        })
        .collect();
    (0..classes.unwrap_or(1))
        .map(|k| by_draw.iter().map(|of| of[k]).collect())
        .collect()
}

/// The cells of a column that the model reads.
fn known_column<'a>(
    plan: &Plan,
    table: &'a PublicTable,
    change: &Change,
) -> Result<&'a [Value], PredictionError> {
    let column = change.column();
    if entries(plan, column)?.is_empty() {
        let mut read: Vec<String> = Vec::new();
        for column in plan.feature_columns()? {
            if !read.contains(&column) {
                read.push(column);
            }
        }
        return Err(PredictionError::Input(format!(
            "{}: the model reads no column '{column}'; it reads {}",
            change.describe(),
            read.join(", ")
        )));
    }
    let none = || PredictionError::Input(format!("the table has no column '{column}'"));
    Ok(table.column(column).ok_or_else(none)?)
}

fn shifted(column: &str, cells: &[Value], by: f64) -> Result<Vec<Value>, PredictionError> {
    if !by.is_finite() {
        let what = format!("'{column}' can be shifted by a finite number alone");
        return Err(PredictionError::Input(what));
    }
    let moved = cells.iter().enumerate().map(|(i, cell)| match cell.number() {
        Ok(Some(v)) => Ok(Value::Number(v + by)),
        Ok(None) => Ok(Value::Missing),
        Err(()) => Err(PredictionError::Input(format!(
            "column '{column}' holds no number in row {}, so it cannot be shifted; set it, or contrast two levels",
            i + 1
        ))),
    });
    moved.collect()
}

/// A whole column of one value, which must be a level that is declared or in the table, or a
/// number where numbers are read.
fn set(
    plan: &Plan,
    column: &str,
    cells: &[Value],
    to: &str,
) -> Result<Vec<Value>, PredictionError> {
    let number = to.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let mut levels: Vec<&String> = Vec::new();
    let entries = entries(plan, column)?;
    for entry in &entries {
        let one_of = entry.indicator.as_ref().and_then(|i| i.one_of.as_ref());
        let reads_numbers = entry.one_hot.is_none() && one_of.is_none();
        if reads_numbers && number.is_none() {
            let what = format!("column '{column}' is read as a number, which '{to}' is not");
            return Err(PredictionError::Input(what));
        }
        if reads_numbers {
            return Ok(vec![Value::Text(to.into()); cells.len()]);
        }
        levels.extend(declared_levels(entry));
    }
    // The column of what is not declared has this name.
    let rest = |entry: &FeatureEntry| entry.one_hot.is_some() && entry.strict != Some(true);
    let known = levels.iter().any(|level| *level == to)
        || to == "other" && entries.iter().any(rest)
        || cells.iter().any(|cell| cell.text().trim() == to);
    if !known {
        let listed: Vec<&str> = levels.iter().map(|level| level.as_str()).collect();
        return Err(PredictionError::Input(format!(
            "'{to}' is no level of column '{column}' that is declared or in the table; declared are {} (and of a one_hot without 'strict' there is 'other')",
            listed.join(", ")
        )));
    }
    Ok(vec![Value::Text(to.into()); cells.len()])
}
