//! Weights of rows: how often a row counts, as survey weights say, or how many like rows it
//! stands for.
//!
//! A row's weight is a cell like any other: neighbours differ in it, and it is protected. What is
//! public is the largest that one may be. A row adds its **share** w/most ≤ 1 of what it would add
//! with the largest weight, and the model's tempering has the factor `most`: every bound on a row's
//! influence holds as it is.

use serde::{Deserialize, Serialize};

use super::feature::{Cell, number};

/// Shares are whole multiples of `2^-UNIT_BITS`: exact as f32, and in integer products.
const UNIT_BITS: u32 = 20;
/// The whole.
const UNIT: f32 = (1 << UNIT_BITS) as f32;

/// Where a row's weight is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowWeights {
    /// The column of the weights, 0 or more.
    pub column: String,
    /// Larger ones are cut off at this.
    pub most: f64,
}

impl RowWeights {
    /// Refuses a largest weight that is none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate(&self) -> Result<(), String> {
        match self.most > 0.0 && self.most.is_finite() {
            true => Ok(()),
            false => Err(format!("must be a positive number, not {}", self.most)),
        }
    }
}

/// The share of the weight in a row's cell, cut off at 1: the nearest multiple of 2^-20.
///
/// # Errors
/// What is wrong; never the value.
pub(super) fn share(cell: Cell<'_>, most: f64) -> Result<f32, String> {
    let weight = number(
        cell,
        None,
        "every row needs its weight; fill it in, or drop the row",
    )?;
    if weight < 0.0 {
        return Err("the weight is negative; weights are 0 or more".into());
    }
    let units = (weight / most).min(1.0) * f64::from(UNIT);
    Ok((units.round() / f64::from(UNIT)) as f32)
}

/// A share of an integer, nearest, halves up: no larger in size than the integer.
#[inline(always)]
pub(in crate::trusted) fn share_of(share: f32, q: i64) -> i64 {
    let units = i64::from((share * UNIT) as i32);
    (q * units + (1 << (UNIT_BITS - 1))) >> UNIT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever a cell holds, its share is a multiple of the unit within [0, 1], as near as
        /// such can be, and takes no integer beyond its size.
        #[test]
        fn shares_never_lengthen(w in 0f64..1e300, most in 1e-6f64..1e6, q in -(1i64 << 40)..1i64 << 40) {
            let share = share(Cell::Number(w), most).unwrap();
            prop_assert!((0.0..=1.0).contains(&share) && (share * UNIT).fract() == 0.0);
            let exact = (w / most).min(1.0);
            prop_assert!((f64::from(share) - exact).abs() <= 0.5 / f64::from(UNIT));
            let part = share_of(share, q);
            prop_assert!(part.abs() <= q.abs());
            prop_assert!((part as f64 - f64::from(share) * q as f64).abs() <= 0.5 + 1e-3);
        }
    }

    #[test]
    fn a_weight_that_is_none_is_refused() {
        for cell in [
            Cell::Missing,
            Cell::Text(" "),
            Cell::Text("-1"),
            Cell::Number(f64::NAN),
            Cell::Number(f64::INFINITY),
            Cell::Number(-0.5),
            Cell::Bad("is no number"),
        ] {
            assert!(share(cell, 2.0).is_err());
        }
        assert_eq!(share(Cell::Text("0.5"), 2.0).unwrap(), 0.25);
        assert_eq!(share(Cell::Number(7.0), 2.0).unwrap(), 1.0);
        assert_eq!(
            [share_of(1.0, -7), share_of(0.0, 9), share_of(0.5, 3)],
            [-7, 0, 2]
        );
    }
}
