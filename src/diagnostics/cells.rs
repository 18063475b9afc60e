//! Two-dimensional draws and densities on a rectangle of cells: the papers' symmetric
//! Kullback–Leibler divergence, and the total variation distance from a known density.

use rand::{Rng, RngExt};

use super::error::{DiagnosticError, refuse};

/// Cells hold at least this share in [`symmetric_kl`] (Zhang & Zhang 2023, their code).
pub const KL_FLOOR: f64 = 1e-13;
/// More cells than this are refused.
const MOST_CELLS: usize = 1 << 26;

/// A rectangle cut into equal cells, `bins[0] × bins[1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    low: [f64; 2],
    high: [f64; 2],
    bins: [usize; 2],
}

impl Cells {
    /// The rectangle `low[j] ≤ θ_j ≤ high[j]`.
    ///
    /// # Errors
    /// [`DiagnosticError`] for sides of no length, no bins or more than 2^26 cells.
    pub fn new(low: [f64; 2], high: [f64; 2], bins: [usize; 2]) -> Result<Self, DiagnosticError> {
        for j in 0..2 {
            if !(low[j] < high[j] && (high[j] - low[j]).is_finite()) {
                return refuse(
                    "range",
                    format!("from {} to {} has no length", low[j], high[j]),
                );
            }
        }
        match bins[0].checked_mul(bins[1]) {
            Some(1..=MOST_CELLS) => Ok(Cells { low, high, bins }),
            _ => refuse("bins", "must make between 1 and 2^26 cells"),
        }
    }

    /// The range of a sample in both coordinates, in `bins × bins` cells.
    ///
    /// # Errors
    /// [`DiagnosticError`] where a draw is not finite, or all are equal in a coordinate.
    pub fn of_range(sample: &[[f64; 2]], bins: usize) -> Result<Self, DiagnosticError> {
        check("reference", sample)?;
        let end = |j: usize, fold: fn(f64, f64) -> f64, start: f64| {
            sample.iter().map(|d| d[j]).fold(start, fold)
        };
        Cells::new(
            [0, 1].map(|j| end(j, f64::min, f64::INFINITY)),
            [0, 1].map(|j| end(j, f64::max, f64::NEG_INFINITY)),
            [bins, bins],
        )
    }

    /// Cells of each coordinate.
    pub fn bins(&self) -> [usize; 2] {
        self.bins
    }

    /// Lower and upper ends of coordinate `j` (0 or 1).
    pub fn side(&self, j: usize) -> (f64, f64) {
        (self.low[j & 1], self.high[j & 1])
    }

    /// Centre of the cell in column `i` (of θ₁) and row `k` (of θ₂).
    pub fn centre(&self, i: usize, k: usize) -> [f64; 2] {
        [self.place(0, i as f64 + 0.5), self.place(1, k as f64 + 0.5)]
    }

    fn place(&self, j: usize, position: f64) -> f64 {
        self.low[j] + position / self.bins[j] as f64 * (self.high[j] - self.low[j])
    }

    /// Index `i · bins[1] + k` of the cell that holds a draw; the upper ends belong to the
    /// last cells.
    fn index(&self, draw: [f64; 2]) -> Option<usize> {
        let along = |j: usize| {
            let share = (draw[j] - self.low[j]) / (self.high[j] - self.low[j]);
            (0.0..=1.0)
                .contains(&share)
                .then(|| ((share * self.bins[j] as f64) as usize).min(self.bins[j] - 1))
        };
        Some(along(0)? * self.bins[1] + along(1)?)
    }

    /// Share of all draws in each cell; draws outside count in none.
    ///
    /// # Errors
    /// [`DiagnosticError`] without draws, or where one is not finite.
    pub fn shares(&self, draws: &[[f64; 2]]) -> Result<Vec<f64>, DiagnosticError> {
        check("draws", draws)?;
        let mut counts = vec![0u64; self.bins[0] * self.bins[1]];
        for index in draws.iter().filter_map(|&d| self.index(d)) {
            counts[index] += 1;
        }
        let total = draws.len() as f64;
        Ok(counts.into_iter().map(|n| n as f64 / total).collect())
    }
}

fn check(argument: &'static str, draws: &[[f64; 2]]) -> Result<(), DiagnosticError> {
    if draws.is_empty() {
        return refuse(argument, "there are no draws");
    }
    match draws
        .iter()
        .position(|d| !(d[0].is_finite() && d[1].is_finite()))
    {
        Some(i) => refuse(argument, format!("draw {i} (from 0) is not finite")),
        None => Ok(()),
    }
}

/// Symmetric Kullback–Leibler divergence `½(KL(p‖q) + KL(q‖p))` in nats between the
/// histograms of a reference sample and of draws.
///
/// As in the code of Zhang & Zhang 2023: `bins × bins` equal cells over the **reference**
/// sample's range, every share raised to at least [`KL_FLOOR`]. Theirs is `bins = 99`; 100 is
/// the usual round number. Shares are of all draws, those outside the range included. The value
/// depends on both sample sizes: even independent draws do not score 0.
///
/// # Errors
/// [`DiagnosticError`] for empty or non-finite samples, or a reference without extent.
pub fn symmetric_kl(
    reference: &[[f64; 2]],
    draws: &[[f64; 2]],
    bins: usize,
) -> Result<f64, DiagnosticError> {
    let cells = Cells::of_range(reference, bins)?;
    let (p, q) = (cells.shares(reference)?, cells.shares(draws)?);
    // (p − q)(log p − log q) summed is KL(p‖q) + KL(q‖p).
    let both: f64 = p
        .iter()
        .zip(&q)
        .map(|(p, q)| (p.max(KL_FLOOR), q.max(KL_FLOOR)))
        .map(|(p, q)| (p - q) * (p / q).ln())
        .sum();
    Ok(0.5 * both)
}

/// A density on cells, normalised to mass 1.
#[derive(Clone, Debug, PartialEq)]
pub struct CellDensity {
    cells: Cells,
    mass: Vec<f64>,
    cumulated: Vec<f64>,
}

impl CellDensity {
    /// From a log density (nats, up to a constant) at the cells' centres: the midpoint rule.
    ///
    /// # Errors
    /// [`DiagnosticError`] where the density is NaN or +∞ somewhere, or zero everywhere.
    pub fn from_log_density(
        cells: Cells,
        log_density: impl Fn([f64; 2]) -> f64,
    ) -> Result<Self, DiagnosticError> {
        let [columns, rows] = cells.bins;
        let logs: Vec<f64> = (0..columns * rows)
            .map(|index| log_density(cells.centre(index / rows, index % rows)))
            .collect();
        let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !highest.is_finite() || logs.iter().any(|l| l.is_nan()) {
            return refuse("log_density", "must be finite somewhere and NaN nowhere");
        }
        let mut mass: Vec<f64> = logs.iter().map(|l| (l - highest).exp()).collect();
        let total: f64 = mass.iter().sum();
        mass.iter_mut().for_each(|m| *m /= total);
        let mut sum = 0.0;
        let cumulated = mass
            .iter()
            .map(|m| {
                sum += m;
                sum
            })
            .collect();
        Ok(CellDensity {
            cells,
            mass,
            cumulated,
        })
    }

    /// The cells.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Mass of each cell, column after column.
    pub fn mass(&self) -> &[f64] {
        &self.mass
    }

    /// Mean and variance of coordinate `j` (0 or 1).
    pub fn moments(&self, j: usize) -> (f64, f64) {
        let rows = self.cells.bins[1];
        let at = |index: usize| self.cells.centre(index / rows, index % rows)[j & 1];
        let expect = |f: &dyn Fn(f64) -> f64| -> f64 {
            let terms = self.mass.iter().enumerate();
            terms.map(|(index, m)| m * f(at(index))).sum()
        };
        let mean = expect(&|x| x);
        (mean, expect(&|x| (x - mean).powi(2)))
    }

    /// Independent draws: a cell by its mass, a uniform place in it.
    pub fn draws(&self, count: usize, rng: &mut impl Rng) -> Vec<[f64; 2]> {
        let rows = self.cells.bins[1];
        let last = self.mass.len() - 1;
        (0..count)
            .map(|_| {
                let u: f64 = rng.random();
                let index = self.cumulated.partition_point(|c| *c <= u).min(last);
                let (dx, dy): (f64, f64) = (rng.random(), rng.random());
                [
                    self.cells.place(0, (index / rows) as f64 + dx),
                    self.cells.place(1, (index % rows) as f64 + dy),
                ]
            })
            .collect()
    }
}

/// Total variation distance, in [0, 1], between the histogram of draws and a density on the
/// same cells. Draws outside the cells are where the density has no mass. Independent
/// draws score about `½ Σ √(2 m(1−m)/(πn))` over masses m, not 0.
///
/// # Errors
/// [`DiagnosticError`] for empty or non-finite draws.
pub fn total_variation(draws: &[[f64; 2]], density: &CellDensity) -> Result<f64, DiagnosticError> {
    let shares = density.cells.shares(draws)?;
    let outside = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    let inside: f64 = shares
        .iter()
        .zip(&density.mass)
        .map(|(p, q)| (p - q).abs())
        .sum();
    Ok(0.5 * (inside + outside))
}
