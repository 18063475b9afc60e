//! The two-component mixture of both papers: its rows and its exact posterior.

use std::f64::consts::SQRT_2;

use super::ReproduceError;
use dpmc::data::Dataset;
use dpmc::diagnostics::{CellDensity, Cells};
use dpmc::model::Model;

/// Rows are counted at so many places, less one, for the exact posterior: the error is of
/// second order in their distance, under 1e-5 of a row's log-likelihood here.
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
    let mut counts = vec![0.0; ROW_BINS + 1];
    let width = 2.0 * REACH / ROW_BINS as f64;
    for x in data.as_public().rows() {
        // Shared by its two neighbours, so that the mean of the rows stays.
        let place = ((f64::from(x) + REACH) / width).clamp(0.0, ROW_BINS as f64 - 1e-9);
        counts[place as usize] += 1.0 - place.fract();
        counts[place as usize + 1] += place.fract();
    }
    let held: Vec<(f64, f64)> = counts
        .into_iter()
        .enumerate()
        .filter(|(_, n)| *n > 0.0)
        .map(|(i, n)| (-REACH + i as f64 * width, n))
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

#[cfg(test)]
mod tests {
    use super::*;
    use dpmc::model::{Mixture, Prior};
    use dpmc::synthetic;

    /// Row by row, without counting rows in bins, on the same cells.
    #[test]
    fn counting_rows_changes_no_moment() {
        let data = synthetic::mixture(300, Some(3.0), 1).unwrap();
        let model = Mixture::new(2.0, 3.0, Prior::flat_box(2, 3.0), 0.1).unwrap();
        let cells = || Cells::new([-3.0; 2], [3.0; 2], [30, 30]).unwrap();
        let found = exact_posterior(&data, &model, cells()).unwrap();
        let rows = data.as_public().rows();
        let direct = CellDensity::from_log_density(cells(), |theta| {
            let ratio = |x: &f32| model.log_ratio(&[f64::from(*x)], 1.0, &[0.0; 2], &theta);
            rows.iter().map(ratio).sum()
        })
        .unwrap();
        for j in 0..2 {
            let (a, b) = (found.moments(j), direct.moments(j));
            assert!(
                (a.0 - b.0).abs() < 1e-4 && (a.1 - b.1).abs() < 1e-4,
                "{a:?} {b:?}"
            );
        }
    }

    #[test]
    fn marginals_sum_the_other_coordinate() {
        let cells = Cells::new([0.0, 0.0], [1.0, 3.0], [2, 3]).unwrap();
        let shares = [0.1, 0.2, 0.3, 0.0, 0.4, 0.0];
        let close = |found: Vec<(f64, f64)>, expected: &[(f64, f64)]| {
            for (f, e) in found.iter().zip(expected) {
                assert!(
                    (f.0 - e.0).abs() < 1e-12 && (f.1 - e.1).abs() < 1e-12,
                    "{found:?}"
                );
            }
            assert_eq!(found.len(), expected.len());
        };
        close(marginal(&cells, &shares, 0), &[(0.25, 1.2), (0.75, 0.8)]);
        close(
            marginal(&cells, &shares, 1),
            &[(0.5, 0.1), (1.5, 0.6), (2.5, 0.3)],
        );
    }
}
