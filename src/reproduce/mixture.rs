//! The two-component mixture of both papers: its rows and its exact posterior.

use std::f64::consts::SQRT_2;

use super::ReproduceError;
use crate::data::Dataset;
use crate::diagnostics::{CellDensity, Cells};
use crate::model::Model;

/// Rows are counted in so many bins for the exact posterior: the error is of second order in
/// the width, under 1e-5 of a row's log-likelihood here.
const ROW_BINS: usize = 2000;

/// Half of the range of rows that is counted: seven standard deviations of a component.
const REACH: f64 = 7.0 * SQRT_2 + 1.0;

/// The exact (tempered, untruncated in θ but for `cells`) posterior, by the midpoint rule on
/// cells. The rows are made up, so that reading them costs nobody anything.
///
/// # Errors
/// [`ReproduceError`] where the posterior vanishes on the cells.
pub(super) fn exact_posterior(
    data: &Dataset,
    model: &dyn Model,
    cells: Cells,
) -> Result<CellDensity, ReproduceError> {
    let mut counts = vec![0.0; ROW_BINS];
    let width = 2.0 * REACH / ROW_BINS as f64;
    for x in data.public_rows() {
        let bin = (f64::from(x) + REACH) / width;
        counts[(bin.max(0.0) as usize).min(ROW_BINS - 1)] += 1.0;
    }
    let held: Vec<(f64, f64)> = counts
        .into_iter()
        .enumerate()
        .filter(|(_, n)| *n > 0.0)
        .map(|(i, n)| (-REACH + (i as f64 + 0.5) * width, n))
        .collect();
    let log_posterior = |theta: [f64; 2]| {
        let ratios = held
            .iter()
            .map(|(x, n)| n * model.log_ratio(&[*x], 1.0, &[0.0, 0.0], &theta));
        ratios.sum::<f64>() + model.prior().log_density(&theta)
    };
    Ok(CellDensity::from_log_density(cells, log_posterior)?)
}

/// Marginal densities of a density on cells: (value, density) along coordinate `j`.
pub(super) fn marginal(cells: &Cells, shares: &[f64], j: usize) -> Vec<(f64, f64)> {
    let [columns, rows] = cells.bins();
    let (low, high) = cells.side(j);
    let width = (high - low) / cells.bins()[j] as f64;
    (0..cells.bins()[j])
        .map(|k| {
            let along = if j == 0 { rows } else { columns };
            let share: f64 = (0..along)
                .map(|o| shares[if j == 0 { k * rows + o } else { o * rows + k }])
                .sum();
            (low + (k as f64 + 0.5) * width, share / width)
        })
        .collect()
}
