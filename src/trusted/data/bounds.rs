//! Public bounds of single rows, relative to the row norm: how long row i may be, and so how
//! often a minibatch need read it.
//!
//! The bound of every row is **public**: neighbours differ in a row's content, never in its
//! bound. One that was computed from private cells voids the guarantee.

use std::path::{Path, PathBuf};

use super::feature::{Cell, number};
use super::{DataError, read_npy};

/// Bounds are whole multiples of `2^-UNIT_BITS`, so that rows are drawn and clipped by
/// integers.
const UNIT_BITS: u32 = 20;
const UNIT: u32 = 1 << UNIT_BITS;

/// Where the bounds of rows are declared.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundsSource {
    /// A column of the table.
    Column(String),
    /// A one-dimensional NPY file beside it, a number a row.
    File(PathBuf),
}

/// Public relative bounds `w_i ∈ (0, 1]`, one a row: row i has norm at most `w_i B`.
#[derive(Clone, Default)]
pub(in crate::trusted) struct RowBounds {
    units: Vec<u32>,
    total: u64,
    largest: u32,
}

impl RowBounds {
    /// Takes the next row's bound, rounded **up** to a multiple of 2^-20: a wider bound is a
    /// bound. The rounded value.
    pub(super) fn push(&mut self, bound: f64) -> Result<f64, String> {
        let units = units(bound)?;
        self.units.push(units);
        self.total += u64::from(units);
        self.largest = self.largest.max(units);
        Ok(f64::from(units) / f64::from(UNIT))
    }

    /// Takes the bounds of further rows.
    pub(super) fn append(&mut self, more: &[u32]) {
        self.units.extend_from_slice(more);
        self.total += more.iter().map(|w| u64::from(*w)).sum::<u64>();
        self.largest = more.iter().copied().fold(self.largest, u32::max);
    }

    /// `2^20 w_i`, one a row.
    pub fn units(&self) -> &[u32] {
        &self.units
    }

    /// `w_i`.
    pub(super) fn share(&self, row: usize) -> f64 {
        f64::from(self.units[row]) / f64::from(UNIT)
    }

    /// The bound of a row's integer answer on a grid of bound `most`: `⌊w_i·most⌋`.
    pub fn clamp(&self, row: usize, most: i32) -> i32 {
        ((i64::from(self.units[row]) * i64::from(most)) >> UNIT_BITS) as i32
    }

    /// `q/w_i`, nearest: at most `most` where `|q| ≤ ⌊w_i·most⌋`.
    pub fn divide(&self, row: usize, q: i32) -> f64 {
        (i64::from(q) << UNIT_BITS) as f64 / f64::from(self.units[row])
    }

    /// What of them is said of all rows together.
    pub(super) fn population(&self) -> Population {
        Population {
            rows: self.units.len(),
            total: self.total as f64 / f64::from(UNIT),
            largest: f64::from(self.largest) / f64::from(UNIT),
        }
    }
}

fn units(bound: f64) -> Result<u32, String> {
    if bound > 0.0 && bound <= 1.0 {
        return Ok((bound * f64::from(UNIT)).ceil() as u32);
    }
    Err("a row's bound is a share of row_norm and must lie in (0, 1]; divide all bounds by the largest, and let row_norm be that one".into())
}

/// How many rows there are and how far they reach: public numbers that prices and batches
/// follow from. `From<usize>`: so many rows, each with the whole bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Population {
    /// Rows N.
    pub rows: usize,
    /// `Σ w_i`; N without bounds of rows.
    pub total: f64,
    /// `max w_i`; 1 without.
    pub largest: f64,
}

impl Population {
    /// The largest row's share of all, `max w_i / Σ w_i`; 1/N without bounds of rows.
    pub fn share(self) -> f64 {
        self.largest / self.total
    }
}

impl From<usize> for Population {
    fn from(rows: usize) -> Self {
        Population {
            rows,
            total: rows as f64,
            largest: 1.0,
        }
    }
}

/// The bound in a cell of a public column.
pub(super) fn read(cell: Cell<'_>) -> Result<f64, String> {
    let bound = number(cell, None, "every row needs its public bound")?;
    units(bound).map(|_| bound)
}

/// The bounds of a file of their own.
pub(super) fn read_file(path: &Path) -> Result<Vec<f64>, DataError> {
    read_npy::column(path, "bounds of rows", read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Rounding goes up, by less than a unit; the integer clamp never exceeds w c, and
        /// what it lets through is at most c once divided by w.
        #[test]
        fn bounds_round_up_and_clamps_down(log in -25.0f64..0.0, most in 1i32 << 19..1 << 20) {
            let mut bounds = RowBounds::default();
            let w = bounds.push(log.exp2()).map_err(TestCaseError::fail)?;
            prop_assert!(w >= log.exp2() && w - log.exp2() < 1.0 / f64::from(UNIT));
            let clamp = bounds.clamp(0, most);
            prop_assert!(f64::from(clamp) <= w * f64::from(most));
            prop_assert!(f64::from(clamp) > w * f64::from(most) - 1.0);
            prop_assert!(bounds.divide(0, clamp) <= f64::from(most));
            prop_assert_eq!(bounds.divide(0, -clamp), -bounds.divide(0, clamp));
        }
    }

    #[test]
    fn the_population_is_the_sum_of_its_rows() {
        let mut bounds = RowBounds::default();
        for w in [0.25, 1.0, 0.5, 0.25] {
            bounds.push(w).unwrap();
        }
        let population = bounds.population();
        assert_eq!((population.rows, population.total), (4, 2.0));
        assert_eq!((population.largest, population.share()), (1.0, 0.5));
        let plain = Population::from(4);
        assert_eq!(
            (plain.total, plain.largest, plain.share()),
            (4.0, 1.0, 0.25)
        );
        for bad in [0.0, -0.5, 1.0 + 1e-9, f64::NAN, f64::INFINITY] {
            assert!(bounds.push(bad).unwrap_err().contains("(0, 1]"));
        }
        assert_eq!(bounds.units().len(), 4);
    }
}
