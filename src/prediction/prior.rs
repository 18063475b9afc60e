//! What the prior alone predicts: parameters from the prior, labels from their law. No table is
//! read but a public one.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::PredictionError;
use super::label::Words;
use super::new_rows::NewRows;
use super::predictor::Predictor;
use super::public_table::{PublicTable, Value};
use crate::config::{FeatureEntry, Plan};
use crate::data::LabelKind;
use crate::diagnostics::quantile;
use crate::model::{Density, Support};

/// Probabilities of the quantiles that are told.
const QUANTILES: [f64; 7] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99];
/// Rows that are looked at; more are thinned evenly.
const MOST_ROWS: usize = 1000;
/// Rows that are made up where there is no table.
const MADE_UP: usize = 200;
/// Most labels that are drawn for each draw of the parameters.
const LABELS_A_DRAW: usize = 200;

/// Quantiles of a number over draws of the prior and rows.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct PriorQuantiles {
    /// Of what.
    pub of: String,
    /// Pairs of probability and quantile; infinite numbers are null in JSON.
    pub quantiles: Vec<(f64, f64)>,
}

/// What the prior predicts, in units of the label.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct PriorPredictive {
    /// The label's column.
    pub label: String,
    /// Draws of the parameters.
    pub draws: usize,
    /// Rows.
    pub rows: usize,
    /// Of expected labels and of labels; of binary labels and classes of probabilities alone.
    pub predicted: Vec<PriorQuantiles>,
    /// Share of predicted labels beyond the label's declared bounds, where it has some.
    pub beyond_bounds: Option<f64>,
    /// Of binary labels and classes: share of probabilities under 0.01 or over 0.99.
    pub all_but_certain: Option<f64>,
}

/// Rows that nobody has, of values that the declarations allow: numbers evenly over their bounds,
/// levels as often as each other. Features are independent.
///
/// # Errors
/// [`PredictionError`] where the declarations are refused.
pub fn made_up_rows(plan: &Plan, seed: u64) -> Result<NewRows, PredictionError> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut table = PublicTable::default();
    let mut made_by: BTreeMap<String, u8> = BTreeMap::new();
    for entry in &plan.feature_entries()? {
        for column in entry.column.iter().chain(entry.columns.iter().flatten()) {
            // A column that several declarations read is made of one that allows fewest cells.
            let made = made_by.entry(column.clone()).or_insert(u8::MAX);
            if allows(entry) >= *made {
                continue;
            }
            *made = allows(entry);
            let cells = (0..MADE_UP).map(|_| made_up(entry, &mut rng));
            table = table.with(column, cells.collect());
        }
    }
    if table.names.is_empty() {
        // Nothing but an intercept.
        table.names.push("row".into());
        table.columns.push(Arc::new(vec![Value::Missing; MADE_UP]));
    }
    NewRows::of_table(plan, &table, "the made-up table", false)
}

/// How freely cells of a declaration are chosen: bounds and levels least, indicators, which take
/// any cell, most.
fn allows(entry: &FeatureEntry) -> u8 {
    match (entry.scale.or(entry.clamp), &entry.one_hot, &entry.groups) {
        (Some(_), _, _) => 0,
        (None, None, None) => 2,
        _ => 1,
    }
}

fn made_up(entry: &FeatureEntry, rng: &mut ChaCha20Rng) -> Value {
    if let Some([low, high]) = entry.scale.or(entry.clamp) {
        return Value::Number(low + (high - low) * rng.random::<f64>());
    }
    let indicator = entry.indicator.as_ref();
    if let Some(one_of) = indicator.and_then(|i| i.one_of.as_ref()) {
        let hit = one_of.first().filter(|_| rng.random::<bool>());
        // A text that nobody lists.
        return Value::Text(hit.cloned().unwrap_or_else(|| "\u{fffd}".into()));
    }
    if let Some(at) = indicator.and_then(|i| i.above.or(i.below)) {
        let by = at.abs().max(1.0);
        return Value::Number(if rng.random::<bool>() {
            at + by
        } else {
            at - by
        });
    }
    let alone = entry.one_hot.iter().flatten();
    let grouped = entry.groups.iter().flat_map(|g| g.values());
    let levels: Vec<&String> = alone.chain(grouped.filter_map(|l| l.first())).collect();
    match levels.as_slice() {
        [] => Value::Missing,
        levels => Value::Text(levels[rng.random_range(0..levels.len())].clone()),
    }
}

/// What the prior of `plan` predicts for the rows.
///
/// # Errors
/// [`PredictionError`] naming the key where the prior is improper, so that nothing can be drawn.
pub fn prior_predictive(
    plan: &Plan,
    rows: &NewRows,
    draws: usize,
    seed: u64,
) -> Result<PriorPredictive, PredictionError> {
    let words = Words::new(plan)?;
    let predictor = Predictor::new(plan, rows)?;
    let model = plan.model(rows.set())?;
    let prior = model.prior();
    if (&prior.density, &prior.support) == (&Density::Flat, &Support::Unbounded) {
        let what = "a flat prior without a box is improper: nothing can be drawn from it; declare { kind = \"normal\", sd = … }";
        return Err(plan.refuse("model.prior", what).into());
    }
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let values = rows.values();
    let every = rows.rows().div_ceil(MOST_ROWS).max(1);
    let chosen: Vec<&[f32]> = values.chunks_exact(rows.width()).step_by(every).collect();
    let labelled = chosen.len().div_ceil(LABELS_A_DRAW).max(1);
    let (mut expected, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..draws {
        let nothing = || {
            plan.refuse(
                "model.box",
                "holds next to nothing of the prior; widen one of them",
            )
        };
        let theta = prior.draw(&mut rng).ok_or_else(nothing)?;
        for (i, row) in chosen.iter().enumerate() {
            let law = predictor.law(&theta, row);
            match &law {
                super::LabelLaw::Classes(chances) => expected.extend(chances),
                law => expected.push(words.number(law.expected())),
            }
            if i % labelled == 0 {
                labels.push(words.number(law.draw(&mut rng)));
            }
        }
    }
    let classes = matches!(
        predictor.label(),
        LabelKind::Binary | LabelKind::Class { .. }
    );
    let certain = expected
        .iter()
        .filter(|p| !(0.01..=0.99).contains(*p))
        .count();
    let certain = certain as f64 / expected.len() as f64;
    let beyond = words.bounds().map(|(low, high)| {
        let outside = labels.iter().filter(|y| !(low..=high).contains(*y));
        outside.count() as f64 / labels.len() as f64
    });
    let centre = match (classes, predictor.is_quantile()) {
        (true, _) => "probability",
        (_, true) => "quantile",
        _ => "mean",
    };
    let mut predicted = vec![quantiles(centre, expected)];
    if !classes {
        predicted.push(quantiles("label", labels));
    }
    Ok(PriorPredictive {
        label: words.column().into(),
        draws,
        rows: chosen.len(),
        predicted,
        beyond_bounds: beyond,
        all_but_certain: classes.then_some(certain),
    })
}

fn quantiles(of: &str, mut values: Vec<f64>) -> PriorQuantiles {
    values.retain(|v| !v.is_nan());
    values.sort_by(f64::total_cmp);
    PriorQuantiles {
        of: of.into(),
        quantiles: QUANTILES.map(|p| (p, quantile(&values, p))).into(),
    }
}
