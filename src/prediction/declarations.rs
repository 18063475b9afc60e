//! What a plan declares of a column of a public table.

use super::PredictionError;
use super::public_table::{PublicTable, Value};
use crate::config::{FeatureEntry, Plan};

/// Declarations that read a column.
pub(super) fn entries(plan: &Plan, column: &str) -> Result<Vec<FeatureEntry>, PredictionError> {
    let reads = |entry: &FeatureEntry| {
        let mut several = entry.columns.iter().flatten();
        entry.column.as_deref() == Some(column) || several.any(|c| c == column)
    };
    Ok(plan.feature_entries()?.into_iter().filter(reads).collect())
}

/// Levels that a declaration names.
pub(super) fn declared_levels(entry: &FeatureEntry) -> impl Iterator<Item = &String> {
    let one_of = entry.indicator.as_ref().and_then(|i| i.one_of.as_ref());
    let grouped = entry.groups.iter().flat_map(|g| g.values()).flatten();
    let alone = entry.one_hot.iter().flatten();
    alone.chain(grouped).chain(one_of.into_iter().flatten())
}

/// Share of the cells that lie beyond the column's declared bounds.
pub(super) fn beyond_bounds(plan: &Plan, column: &str, cells: &[Value]) -> Option<f64> {
    let entries = entries(plan, column).unwrap_or_default().into_iter();
    let bounds: Vec<[f64; 2]> = entries
        .filter_map(|entry| entry.scale.or(entry.clamp))
        .collect();
    if bounds.is_empty() || cells.is_empty() {
        return None;
    }
    let beyond = cells.iter().filter(|cell| match cell.number() {
        Ok(Some(v)) => bounds.iter().any(|[low, high]| v < *low || v > *high),
        _ => false,
    });
    Some(beyond.count() as f64 / cells.len() as f64)
}

/// Columns of a table that hold numbers beyond their declared bounds, each in a sentence.
pub(super) fn cut_off(plan: &Plan, table: &PublicTable) -> Vec<String> {
    let mut columns = plan.feature_columns().unwrap_or_default();
    columns.sort();
    columns.dedup();
    let told = columns.iter().filter_map(|column| {
        let share = beyond_bounds(plan, column, table.column(column)?)?;
        (share > 0.0).then(|| {
            format!(
                "{:.3} % of the rows lie beyond the declared bounds of '{column}' and count there as the bound that they are beyond",
                100.0 * share
            )
        })
    });
    told.collect()
}
