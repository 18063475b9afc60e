//! What is expected of new public rows, with intervals.

use rayon::prelude::*;

use super::PredictionError;
use super::draws::Posterior;
use super::label::Words;
use super::law::LabelLaw;
use super::mixture::Mixture;
use super::new_rows::NewRows;
use super::predictor::Predictor;
use super::write::Columns;
use crate::data::LabelKind;
use crate::diagnostics::{mean, quantile};

/// Predictions of a table's rows.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Predictions {
    /// Probability of each interval.
    pub level: f64,
    /// Draws that were used.
    pub draws: usize,
    /// The label's column.
    pub label: String,
    /// Columns, one value a row.
    pub columns: Columns,
    /// Where they would mislead a reader.
    pub notes: Vec<String>,
}

/// The mean of `expected`, a number over draws without the noise of an anchor, and the central
/// interval of a level of the same number over draws with it.
pub(super) fn spread(expected: &[f64], mut values: Vec<f64>, level: f64) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - level);
    [
        mean(expected),
        quantile(&values, tail),
        quantile(&values, 1.0 - tail),
    ]
}

/// Checks that draws and rows belong together.
pub(super) fn check_fit(
    predictor: &Predictor,
    posterior: &Posterior,
) -> Result<(), PredictionError> {
    if posterior
        .draws
        .iter()
        .any(|d| d.len() != predictor.parameters())
    {
        return Err(PredictionError::Input(
            "the draws are of another model than the run's run.toml says; put the file back".into(),
        ));
    }
    Ok(())
}

/// Checks a level of intervals.
pub(super) fn check_level(level: f64) -> Result<(), PredictionError> {
    match level > 0.0 && level < 1.0 {
        true => Ok(()),
        false => Err(PredictionError::Input(format!(
            "the level of intervals must lie between 0 and 1, not {level}"
        ))),
    }
}

/// What the draws predict for each of `rows`, in units of the label: of a binary label the
/// probability that it is positive, of classes that of each; of numbers and counts the mean (of
/// a quantile regression the quantile) and an interval of the label itself. Every expected value
/// is an average over draws without the noise of an anchor's releases, and comes with its credible
/// interval, which has that noise in it.
///
/// # Errors
/// [`PredictionError`] where draws and rows do not belong together, or the model has no label.
pub fn predict(
    posterior: &Posterior,
    rows: &NewRows,
    level: f64,
) -> Result<Predictions, PredictionError> {
    check_level(level)?;
    let words = Words::new(&posterior.plan)?;
    let predictor = Predictor::new(&posterior.plan, rows)?;
    check_fit(&predictor, posterior)?;
    let values = rows.values();
    let each = values.par_chunks_exact(rows.width());
    let told: Vec<Vec<f64>> = each
        .map(|row| {
            let laws = |draws: &[Vec<f64>]| -> Vec<LabelLaw> {
                draws
                    .iter()
                    .map(|theta| predictor.law(theta, row))
                    .collect()
            };
            let quiet = posterior.quiet().map(laws);
            of_row(&words, quiet, laws(&posterior.draws), level)
        })
        .collect();
    let names = names(&predictor);
    let columns = names.into_iter().enumerate();
    let columns = columns
        .map(|(k, name)| (name, told.iter().map(|row| row[k]).collect()))
        .collect();
    let notes = posterior.notes.iter().chain(rows.cut_off()).cloned();
    Ok(Predictions {
        level,
        draws: posterior.draws.len(),
        label: words.column().into(),
        columns: Columns(columns),
        notes: notes.collect(),
    })
}

fn names(predictor: &Predictor) -> Vec<String> {
    let three = |name: String| {
        let [low, high] = ["low", "high"].map(|end| format!("{name}_{end}"));
        [name, low, high]
    };
    match predictor.label() {
        LabelKind::Binary => three("probability".into()).into(),
        LabelKind::Class { classes } => {
            let each = (0..classes).flat_map(|k| three(format!("probability_{k}")));
            each.collect()
        }
        _ => {
            let centre = if predictor.is_quantile() {
                "quantile"
            } else {
                "mean"
            };
            let ends = ["label_low", "label_high"].map(String::from);
            three(centre.into()).into_iter().chain(ends).collect()
        }
    }
}

/// What one row is told: its expected label by the laws of draws without noise, where they are
/// others, intervals by those of draws with it.
fn of_row(
    words: &Words,
    quiet: Option<Vec<LabelLaw>>,
    laws: Vec<LabelLaw>,
    level: f64,
) -> Vec<f64> {
    let quiet = quiet.as_ref().unwrap_or(&laws);
    let over = |laws: &[LabelLaw], of: &dyn Fn(&LabelLaw) -> f64| -> Vec<f64> {
        laws.iter().map(of).collect()
    };
    let told = |of: &dyn Fn(&LabelLaw) -> f64| spread(&over(quiet, of), over(&laws, of), level);
    match laws.first() {
        Some(LabelLaw::Classes(chances)) => (0..chances.len())
            .flat_map(|k| {
                told(&|law| match law {
                    LabelLaw::Classes(chances) => chances[k],
                    _ => f64::NAN,
                })
            })
            .collect(),
        Some(LabelLaw::Binary { .. }) => told(&LabelLaw::expected).into(),
        _ => {
            let expected = told(&LabelLaw::expected);
            let (mixture, tail) = (Mixture(laws), 0.5 * (1.0 - level));
            let ends = [tail, 1.0 - tail].map(|p| mixture.quantile(p));
            let all = expected.into_iter().chain(ends);
            all.map(|y| words.number(y)).collect()
        }
    }
}
