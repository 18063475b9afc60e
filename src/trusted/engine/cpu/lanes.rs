//! What is computed of the rows of a tile, and how it becomes integers.

use crate::data::TILE;
use crate::math::single::ROUND;
pub(super) use crate::math::single::{
    chebyshev, clamp, exp, exp_m1, is_nan, ln, ln_1p, multiply_add, poisson_ratio,
    softplus_difference, tanh, tanh_change,
};

/// Values of one quantity for the 16 rows of a tile.
pub(super) type Lanes = [f32; TILE];

/// A row's ratio in grid steps: nearest, ties to even, NaN → 0, clamped as an integer.
#[inline(always)]
pub(super) fn quantize(steps: f32, bound: i32) -> i32 {
    let finite = clamp(steps, -1_048_577.0, 1_048_577.0);
    let rounded = ((finite + ROUND).to_bits() as i32).wrapping_sub(0x4b40_0000);
    let rounded = if is_nan(steps) { 0 } else { rounded };
    let rounded = if rounded > bound { bound } else { rounded };
    if rounded < -bound { -bound } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantize_matches_the_oracle(steps in -3e6f32..3e6, bound in 524_289i32..1_048_576) {
            let oracle = (steps.round_ties_even() as i32).clamp(-bound, bound);
            prop_assert_eq!(quantize(steps, bound), oracle);
        }
    }

    #[test]
    fn special_values_stay_within_the_bound() {
        let nan = f32::NAN;
        assert_eq!(quantize(nan, 600_000), 0);
        assert_eq!(quantize(-nan, 600_000), 0);
        assert_eq!(quantize(f32::INFINITY, 600_000), 600_000);
        assert_eq!(quantize(f32::NEG_INFINITY, 600_000), -600_000);
    }
}
