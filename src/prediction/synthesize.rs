//! Made-up labels for public features: one draw of the parameters for a whole table.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::PredictionError;
use super::draws::Posterior;
use super::label::Words;
use super::law::LabelLaw;
use super::new_rows::NewRows;
use super::predict::check_fit;
use super::predictor::Predictor;
use super::public_table::{PublicTable, Value};

/// Labels of `sets` tables over the same rows, as models read them (binary ones 0 or 1). Each set
/// has one draw of the posterior, evenly spaced among all of them, and every label of it is drawn
/// from the law by that draw.
///
/// # Errors
/// [`PredictionError`] where draws and rows do not belong together, or there are fewer draws than
/// sets.
pub fn synthetic_labels(
    posterior: &Posterior,
    rows: &NewRows,
    sets: usize,
    seed: u64,
) -> Result<Vec<Vec<f64>>, PredictionError> {
    Predictor::check_single_outcomes(&posterior.plan)?;
    let predictor = Predictor::new(&posterior.plan, rows)?;
    check_fit(&predictor, posterior)?;
    let count = posterior.draws.len();
    if sets == 0 || sets > count {
        return Err(PredictionError::Input(format!(
            "every set takes a draw of its own, so there can be 1 to {count} sets, not {sets}"
        )));
    }
    let values = rows.values();
    let mut made = Vec::new();
    for set in 0..sets {
        // The middle of each of so many equal parts of the chains.
        let theta = &posterior.draws[(2 * set + 1) * count / (2 * sets)];
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        rng.set_stream(set as u64);
        let each = values.chunks_exact(rows.width());
        let laws = each.map(|row| predictor.law(theta, row));
        let labels: Vec<f64> = laws.map(|law: LabelLaw| law.draw(&mut rng)).collect();
        if labels.iter().any(|y| !y.is_finite()) {
            let what = "a draw of the posterior gives a label that no number holds (its predictor is too large for the law); the rows lie far from those of the run, or the draws have not converged";
            return Err(PredictionError::Input(what.into()));
        }
        made.push(labels);
    }
    Ok(made)
}

/// The public table with made-up labels behind its columns, in the label's own words.
///
/// # Errors
/// [`PredictionError`] where the table has the label's column already.
pub fn synthetic_table(
    words: &Words,
    table: &PublicTable,
    labels: &[f64],
) -> Result<PublicTable, PredictionError> {
    if table.column(words.column()).is_some() {
        return Err(PredictionError::Input(format!(
            "the table has a column '{}', where the made-up labels go; drop it or rename it",
            words.column()
        )));
    }
    let cells = labels.iter().map(|y| Value::Text(words.cell(*y)));
    Ok(table.with(words.column(), cells.collect()))
}
