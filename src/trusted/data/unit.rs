//! Whose a row is: where one person has several rows, and the guarantee is to be for all of them
//! (docs/proofs/guarantee.md).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::feature::{Cell, is_missing};

/// Rows of a unit at most.
const MOST_ROWS: u32 = 1000;

/// The column that says whose a row is, and how many rows of one unit count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Rows whose cells are equal there are of one unit; every row has one.
    pub column: String,
    /// So many rows of a unit count, in the order of the table; further ones are left out.
    pub rows: u32,
}

impl Unit {
    /// So many of them, in words.
    pub fn counted(&self, units: usize) -> String {
        let Unit { column, rows } = self;
        format!("{units} units of '{column}', up to {rows} rows each")
    }

    /// Refuses a number of rows that is none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate(&self) -> Result<(), String> {
        match self.rows {
            1..=MOST_ROWS => Ok(()),
            rows => Err(format!("must lie between 1 and {MOST_ROWS}, not {rows}")),
        }
    }
}

/// What stands for a unit while a table is read: a hash of what the cell says. A whole number is
/// the same as a number and as its digits. Were two units to share a hash, they would be one: the
/// guarantee is for whatever is summed and clipped together.
pub(super) fn owner(cell: Cell<'_>) -> Result<u64, String> {
    let mut hasher = DefaultHasher::new();
    match cell {
        Cell::Bad(what) => return Err(what.into()),
        cell if is_missing(cell) => return Err(NO_OWNER.into()),
        Cell::Number(v) if v.fract() == 0.0 && v.abs() < EXACT => (v as i64).hash(&mut hasher),
        Cell::Number(v) if v.fract() == 0.0 || v.is_infinite() => return Err(TOO_LONG.into()),
        Cell::Number(v) => v.to_bits().hash(&mut hasher),
        Cell::Text(text) => match text.trim().parse::<i64>() {
            Ok(v) if v.to_string() == text.trim() => v.hash(&mut hasher),
            _ => text.trim().hash(&mut hasher),
        },
        Cell::Missing => return Err(NO_OWNER.into()),
    }
    Ok(hasher.finish())
}

/// Whole numbers below 2^53 are numbers of their own as f64.
const EXACT: f64 = 9_007_199_254_740_992.0;
const NO_OWNER: &str =
    "the cell is missing, so it is not known whose the row is; fill it in, or drop the row";
const TOO_LONG: &str =
    "the number has more digits than tables keep apart; store whose rows are as texts";

/// Which rows of a table are whose: those of a unit follow each other.
#[derive(Clone)]
pub(in crate::trusted) struct Units {
    /// The first row of each unit, and the number of all rows.
    starts: Vec<usize>,
    declared: Unit,
}

impl Units {
    /// Number of units U.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whose they are.
    pub fn declared(&self) -> &Unit {
        &self.declared
    }

    /// The rows of one unit.
    pub fn rows(&self, unit: usize) -> std::ops::Range<usize> {
        self.starts[unit]..self.starts[unit + 1]
    }

    /// The units, in the order of their first rows, and the rows that count in their order.
    pub(super) fn group(owners: &[u64], declared: Unit) -> (Self, Vec<usize>) {
        let mut place: HashMap<u64, usize> = HashMap::new();
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for (row, owner) in owners.iter().enumerate() {
            let at = *place.entry(*owner).or_insert_with(|| {
                rows.push(Vec::new());
                rows.len() - 1
            });
            if rows[at].len() < declared.rows as usize {
                rows[at].push(row);
            }
        }
        let mut starts = vec![0];
        for rows in &rows {
            starts.push(starts.last().map_or(0, |s| s + rows.len()));
        }
        (Units { starts, declared }, rows.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_unit_follow_each_other_and_no_more_than_count() {
        let column = "patient".to_string();
        let (units, order) = Units::group(&[7, 3, 7, 9, 7, 3, 7], Unit { column, rows: 3 });
        assert_eq!(order, [0, 2, 4, 1, 5, 3]);
        let rows: Vec<_> = (0..units.count()).map(|u| units.rows(u)).collect();
        assert_eq!(rows, [0..3, 3..5, 5..6]);
    }

    #[test]
    fn a_unit_is_known_by_what_its_cell_says() {
        let text = |s| owner(Cell::Text(s)).unwrap();
        let number = |v| owner(Cell::Number(v)).unwrap();
        assert_eq!(text("17"), number(17.0));
        assert_eq!(text("-17"), number(-17.0));
        assert_eq!(text(" 17 "), text("17"));
        assert_eq!(text("a"), text("a "));
        // Digits that a number does not keep count, and so do leading zeros.
        let different = [
            text("17"),
            text("017"),
            text("1.7e1"),
            text("18"),
            number(17.5),
            text("a"),
            text("b"),
            text("90071992547409931"),
            text("90071992547409932"),
        ];
        for (i, a) in different.iter().enumerate() {
            assert!(different[..i].iter().all(|b| b != a));
        }
        for missing in [
            Cell::Missing,
            Cell::Text(" "),
            Cell::Text("NA"),
            Cell::Number(f64::NAN),
            Cell::Number(1e16),
            Cell::Number(f64::INFINITY),
            Cell::Bad("is no text"),
        ] {
            assert!(owner(missing).is_err());
        }
    }
}
