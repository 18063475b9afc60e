//! Predictive checks: public labels beside what the draws say of them.

use std::path::Path;

use rayon::prelude::*;

use super::PredictionError;
use super::draws::Posterior;
use super::label::Words;
use super::law::LabelLaw;
use super::mixture::Mixture;
use super::new_rows::NewRows;
use super::predict::check_fit;
use super::predictor::Predictor;
use crate::config::Plan;
use crate::data::LabelKind;
use crate::diagnostics::mean;

/// Levels of the intervals that are checked.
const LEVELS: [f64; 2] = [0.5, 0.9];
/// Bins of histograms.
const BINS: usize = 10;

/// How many labels lie in their rows' central predictive intervals.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Coverage {
    /// Probability of the intervals.
    pub level: f64,
    /// Share of labels inside. A label with a probability of its own (a whole number, a bound, a
    /// censored time) counts by the part of that which is inside: an interval that ends within it
    /// would hold more than its level.
    pub share: f64,
    /// Standard deviation that a share of so many rows has, at most, where the model is right.
    pub sd: f64,
}

/// Rows whose predicted probability lies in a range.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Calibration {
    /// The range.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Rows in it.
    pub rows: usize,
    /// Mean of their predicted probabilities.
    pub predicted: f64,
    /// Share of their labels that are what was predicted.
    pub observed: f64,
}

/// Public labels beside predictions.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// The label's column.
    pub label: String,
    /// Rows.
    pub rows: usize,
    /// Draws that were used.
    pub draws: usize,
    /// Of numbers and counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<Coverage>,
    /// Of numbers and counts: how many labels have a predictive probability of smaller ones (the
    /// probability integral transform) in each tenth of [0, 1]. Even where the model is right. A
    /// label with a probability of its own is spread over the tenths that it takes up (Czado,
    /// Gneiting and Held 2009, "Predictive model assessment for count data", Biometrics 65).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pit: Vec<f64>,
    /// Of binary labels by the probability of a positive one, of classes by that of the likeliest
    /// one: a row for each tenth that holds a row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calibration: Vec<Calibration>,
    /// Where it would mislead a reader.
    pub notes: Vec<String>,
}

/// The public table that a comparison is made with: `table`, or that of `[test]`.
///
/// # Errors
/// [`PredictionError`] where there is neither, or it is the table that the run protects.
pub fn test_table(plan: &Plan, table: Option<&Path>) -> Result<NewRows, PredictionError> {
    if let Some(table) = table {
        return NewRows::read(plan, table, true);
    }
    let none = || {
        PredictionError::Input(
            "the run file has no [test] table; give a public table with labels by --table".into(),
        )
    };
    plan.load_test()?.map(NewRows::from).ok_or_else(none)
}

/// The labels of `rows` beside what the draws say of them.
///
/// # Errors
/// [`PredictionError`] where draws and rows do not belong together, or rows have no labels.
pub fn compare(posterior: &Posterior, rows: &NewRows) -> Result<Comparison, PredictionError> {
    Predictor::check_single_outcomes(&posterior.plan)?;
    let words = Words::new(&posterior.plan)?;
    let predictor = Predictor::new(&posterior.plan, rows)?;
    check_fit(&predictor, posterior)?;
    let labels = rows.labels();
    if labels.len() != rows.rows() || rows.rows() == 0 {
        let what = "the table has no labels to compare with";
        return Err(PredictionError::Input(what.into()));
    }
    let values = rows.values();
    let each = values.par_chunks_exact(rows.width());
    let draws = posterior.of_labels(predictor.label());
    let mixtures = each.map(|row| {
        let laws = draws.iter().map(|theta| predictor.law(theta, row));
        Mixture(laws.collect())
    });
    let mut comparison = Comparison {
        label: words.column().into(),
        rows: rows.rows(),
        draws: posterior.draws.len(),
        coverage: Vec::new(),
        pit: Vec::new(),
        calibration: Vec::new(),
        notes: posterior.notes.clone(),
    };
    match predictor.label() {
        LabelKind::Binary | LabelKind::Class { .. } => {
            let pairs = mixtures
                .zip(&labels)
                .map(|(mixture, y)| likeliest(&mixture, *y));
            comparison.calibration = calibration(&pairs.collect::<Vec<_>>());
        }
        label => {
            let ranks = mixtures
                .zip(&labels)
                .map(|(mixture, y)| rank(&mixture, label, *y));
            let ranks: Vec<[f64; 2]> = ranks.collect();
            comparison.coverage = LEVELS.map(|level| coverage(&ranks, level)).into();
            comparison.pit = histogram(&ranks);
        }
    }
    Ok(comparison)
}

/// The predicted probability that a row is counted by, and whether it came true: of a binary label
/// that of a positive one, of classes that of the likeliest.
fn likeliest(mixture: &Mixture, y: f64) -> (f64, bool) {
    let count = mixture.0.len() as f64;
    let LabelLaw::Classes(first) = &mixture.0[0] else {
        let chance = mixture.0.iter().map(LabelLaw::expected).sum::<f64>() / count;
        return (chance, y > 0.0);
    };
    let mut means = vec![0.0; first.len()];
    for law in &mixture.0 {
        if let LabelLaw::Classes(chances) = law {
            means
                .iter_mut()
                .zip(chances)
                .for_each(|(m, p)| *m += p / count);
        }
    }
    let best = (1..means.len()).fold(0, |best, k| if means[k] > means[best] { k } else { best });
    (means[best], best as f64 == y)
}

/// Probabilities of a smaller label, and of one that is not larger. A label at a declared bound
/// stands for all beyond it; a negative time of an event for all later ones.
fn rank(mixture: &Mixture, label: LabelKind, y: f64) -> [f64; 2] {
    if y < 0.0 && is_of_times(mixture, label) {
        return [mixture.below(-y), 1.0];
    }
    let (low, high) = match label {
        LabelKind::Number { low, high } => (low, high),
        LabelKind::Count { max } => (f64::NEG_INFINITY, f64::from(max)),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    // Labels are kept as f32.
    let near = |bound: f64| bound.is_finite() && (y - bound).abs() <= 1e-6 * bound.abs().max(1e-30);
    let from = if near(low) { 0.0 } else { mixture.under(y) };
    let to = if near(high) { 1.0 } else { mixture.below(y) };
    [from, to]
}

/// Whether no label is negative by its law, so that the sign of a number can only say that its
/// event was not seen: with or without a declared `event`. A law by numbers ends at the declared
/// bounds, unless it is known for one of times.
fn is_of_times(mixture: &Mixture, label: LabelKind) -> bool {
    match (label, mixture.0.first()) {
        (LabelKind::Number { low, .. }, Some(LabelLaw::Numeric(law))) => {
            low >= 0.0 || law.is_of_times()
        }
        (LabelKind::Number { .. }, Some(law)) => law.least() >= 0.0,
        _ => false,
    }
}

fn coverage(ranks: &[[f64; 2]], level: f64) -> Coverage {
    let tail = 0.5 * (1.0 - level);
    let inside = |&[from, to]: &[f64; 2]| match to - from > 1e-9 {
        true => (to.min(1.0 - tail) - from.max(tail)).max(0.0) / (to - from),
        false => f64::from(u8::from(to >= tail && from <= 1.0 - tail)),
    };
    let count = ranks.len() as f64;
    Coverage {
        level,
        share: ranks.iter().map(inside).sum::<f64>() / count,
        sd: (level * (1.0 - level) / count).sqrt(),
    }
}

/// Ranks over the bins of [0, 1], each spread evenly between its two ends.
fn histogram(ranks: &[[f64; 2]]) -> Vec<f64> {
    let mut bins = vec![0.0; BINS];
    for [from, to] in ranks {
        let (a, b) = (from * BINS as f64, to * BINS as f64);
        for (k, bin) in bins.iter_mut().enumerate() {
            let (low, high) = (k as f64, k as f64 + 1.0);
            *bin += match b - a > 1e-9 {
                true => (b.min(high) - a.max(low)).max(0.0) / (b - a),
                false => {
                    let last = k + 1 == BINS;
                    f64::from(u8::from(a >= low && (a < high || last)))
                }
            };
        }
    }
    bins
}

fn calibration(pairs: &[(f64, bool)]) -> Vec<Calibration> {
    let mut bins = Vec::new();
    for k in 0..BINS {
        let (from, to) = (k as f64 / BINS as f64, (k as f64 + 1.0) / BINS as f64);
        let last = k + 1 == BINS;
        let inside = |p: f64| p >= from && (p < to || last);
        let here: Vec<&(f64, bool)> = pairs.iter().filter(|(p, _)| inside(*p)).collect();
        if here.is_empty() {
            continue;
        }
        let predicted: Vec<f64> = here.iter().map(|(p, _)| *p).collect();
        let hits = here.iter().filter(|(_, hit)| *hit).count();
        bins.push(Calibration {
            from,
            to,
            rows: here.len(),
            predicted: mean(&predicted),
            observed: hits as f64 / here.len() as f64,
        });
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_spread_over_what_it_takes_up() {
        assert_eq!(histogram(&[[0.05, 0.05], [0.95, 0.95], [1.0, 1.0]])[0], 1.0);
        assert_eq!(histogram(&[[0.95, 0.95], [1.0, 1.0]])[9], 2.0);
        let bins = histogram(&[[0.25, 0.45]]);
        let expected = [0.0, 0.0, 0.25, 0.5, 0.25];
        for (a, b) in bins.iter().zip(expected) {
            assert!((a - b).abs() < 1e-12, "{bins:?}");
        }
        assert!((bins.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// At a bound a label stands for all beyond: an interval that reaches there holds the part of
    /// it that its tail leaves.
    #[test]
    fn labels_at_bounds_and_censored_ones() {
        let normal = Mixture(vec![LabelLaw::Normal { mean: 0.0, sd: 1.0 }]);
        let label = LabelKind::Number {
            low: -1.0,
            high: 1.0,
        };
        let [from, to] = rank(&normal, label, 1.0);
        assert!((from - 0.841_344_746_068_543).abs() < 1e-12 && to == 1.0);
        assert_eq!(rank(&normal, label, -1.0)[0], 0.0);
        let inside = coverage(&[[from, to]], 0.9).share;
        assert!(
            (inside - (0.95 - from) / (1.0 - from)).abs() < 1e-12,
            "{inside}"
        );
        assert_eq!(coverage(&[[from, to]], 0.5).share, 0.0);
        let weibull = Mixture(vec![LabelLaw::Weibull {
            scale: 2.0,
            shape: 1.0,
        }]);
        let wide = LabelKind::Number {
            low: 0.1,
            high: 60.0,
        };
        let [from, to] = rank(&weibull, wide, -2.0);
        assert!((from - (1.0 - (-1f64).exp())).abs() < 1e-12 && to == 1.0);
        let seen = rank(&weibull, wide, 2.0);
        assert_eq!(seen[0], seen[1]);
        // Signed times without an `event`: the declared bounds are those of both signs.
        let signed = LabelKind::Number {
            low: -8.0,
            high: 8.0,
        };
        for y in [-2.0, 2.0, 8.0] {
            assert_eq!(
                rank(&weibull, signed, y),
                rank(
                    &weibull,
                    LabelKind::Number {
                        low: 0.1,
                        high: 8.0
                    },
                    y
                )
            );
        }
        assert!(rank(&weibull, signed, -8.0)[0] > 0.9);
        // A negative number whose law allows it is that number.
        let [from, to] = rank(&normal, signed, -2.0);
        assert!(from == to && from < 0.1);
    }

    #[test]
    fn counts_hold_whole_steps() {
        let poisson = Mixture(vec![LabelLaw::Poisson { mean: 1.0 }]);
        let label = LabelKind::Count { max: 9 };
        let e = (-1f64).exp();
        let [from, to] = rank(&poisson, label, 1.0);
        assert!((from - e).abs() < 1e-12 && (to - 2.0 * e).abs() < 1e-12);
        assert_eq!(rank(&poisson, label, 0.0)[0], 0.0);
        assert_eq!(rank(&poisson, label, 9.0)[1], 1.0);
    }

    #[test]
    fn predicted_probabilities_are_counted_by_tenths() {
        let bins = calibration(&[(0.05, false), (0.05, true), (1.0, true)]);
        assert_eq!(bins.len(), 2);
        assert_eq!((bins[0].rows, bins[0].observed), (2, 0.5));
        assert_eq!((bins[1].from, bins[1].observed), (0.9, 1.0));
    }
}
