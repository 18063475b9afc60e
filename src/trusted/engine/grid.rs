//! The fixed-point grid of one query: step γ and integer bound, both from the public
//! clip bound alone.

use serde::{Deserialize, Serialize};

use super::EngineError;

/// Bits between the clip bound and the grid step.
pub(in crate::trusted) const GRID_BITS: i32 = 20;

/// Grid `γ = 2^(⌈log2 c⌉ − 20)` with integer bound `⌊c/γ⌋ ∈ (2^19, 2^20]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    exponent: i32,
    bound: i32,
}

impl Grid {
    /// Grid of clip bound `c` (nats, > 0).
    ///
    /// # Errors
    /// [`EngineError::ClipRange`] where log2 c lies outside [−80, 80] or c is NaN.
    pub fn new(clip_bound: f64) -> Result<Self, EngineError> {
        let (low, high) = (f64::powi(2.0, -80), f64::powi(2.0, 80));
        if !(low..=high).contains(&clip_bound) {
            return Err(EngineError::ClipRange(clip_bound));
        }
        // Exponent from the bits: exact, unlike a rounded log2.
        let floor = ((clip_bound.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        let is_power = clip_bound.to_bits() & ((1 << 52) - 1) == 0;
        let exponent = floor + i32::from(!is_power) - GRID_BITS;
        let bound = (clip_bound / f64::powi(2.0, exponent)).floor() as i32;
        Ok(Grid { exponent, bound })
    }

    /// log2 of the step γ (nats).
    pub fn exponent(self) -> i32 {
        self.exponent
    }

    /// The step γ, nats. A power of two, exact.
    pub fn step(self) -> f64 {
        f64::powi(2.0, self.exponent)
    }

    /// Largest |clip(r_i)| in grid steps.
    pub fn bound(self) -> i32 {
        self.bound
    }

    /// The effective clip bound `bound·γ ≤ c`, nats.
    pub fn clip_bound(self) -> f64 {
        f64::from(self.bound) * self.step()
    }

    /// Largest change of a sum when one row is substituted, grid steps: `2·bound`.
    pub fn sensitivity(self) -> i64 {
        2 * i64::from(self.bound)
    }

    /// Oracle of the engines' quantisation: nearest step, ties to even, NaN → 0, clamped.
    pub fn quantize(self, ratio: f64) -> i32 {
        let steps = (ratio / self.step()).round_ties_even();
        if steps.is_nan() {
            return 0;
        }
        (steps as i32).clamp(-self.bound, self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bound_has_twenty_bits_and_never_exceeds_c(log in -79.9f64..79.9) {
            let c = log.exp2();
            let grid = Grid::new(c)?;
            prop_assert!(grid.bound() > 1 << 19 && grid.bound() <= 1 << 20);
            prop_assert!(grid.clip_bound() <= c && grid.clip_bound() > c * (1.0 - 2e-6));
        }

        #[test]
        fn quantisation_is_odd_and_clamped(c in 1e-6f64..1e6, r in -1e7f64..1e7) {
            let grid = Grid::new(c)?;
            let q = grid.quantize(r);
            prop_assert_eq!(grid.quantize(-r), -q);
            prop_assert!(q.abs() <= grid.bound());
        }
    }

    #[test]
    fn powers_of_two_and_edges() -> Result<(), EngineError> {
        assert_eq!(Grid::new(1.0)?.bound(), 1 << 20);
        assert_eq!(Grid::new(1.0)?.exponent(), -20);
        assert_eq!(Grid::new(1.0)?.quantize(f64::NAN), 0);
        assert_eq!(Grid::new(1.0)?.quantize(f64::INFINITY), 1 << 20);
        assert!(Grid::new(0.0).is_err() && Grid::new(f64::NAN).is_err());
        assert!(Grid::new(1e-30).is_err() && Grid::new(1e30).is_err());
        Ok(())
    }
}
