//! Exact sums of the rows' moments, in integers.

use rayon::prelude::*;

use serde::{Deserialize, Serialize};

use super::EngineError;
use super::anchor::quantize_in_ball;
use crate::data::Dataset;
use crate::model::MomentBasis;

/// A row's weighted moments in units of R/2^24.
const BITS: u32 = 24;
/// Rows whose moments are summed in an i64: 2^(24+16) fits.
const BLOCK_ROWS: usize = 1 << 16;

/// `Σ_i q_i`, q the weighted moments of a row rounded to integers, `‖q‖ ≤ 2^24`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::trusted) struct MomentSums(pub Vec<i128>);

impl MomentSums {
    /// Bound on the change of the sums in L2 when a row is substituted, units.
    pub const SENSITIVITY: f64 = 2.0 * (1u64 << BITS) as f64;

    /// One unit of moment k's sum, its weight taken out.
    pub fn unit(basis: &MomentBasis, moment: usize) -> f64 {
        basis.radius() * f64::powi(2.0, -(BITS as i32)) / basis.weight(moment)
    }
}

/// Over all rows.
pub(super) fn sums(data: &Dataset, basis: &MomentBasis) -> Result<MomentSums, EngineError> {
    if !basis.is_valid() || basis.features != data.features().len() {
        return Err(EngineError::Query(
            "the moments do not fit the rows they are asked of".into(),
        ));
    }
    let (rows, m) = (data.lines(), basis.len());
    let block = |b: usize| {
        let (start, end) = (b * BLOCK_ROWS, ((b + 1) * BLOCK_ROWS).min(rows));
        block_sums(data, basis, start, end)
    };
    let blocks: Vec<Vec<i64>> = match rows.div_ceil(BLOCK_ROWS) {
        1 => vec![block(0)],
        blocks => (0..blocks).into_par_iter().map(block).collect(),
    };
    let mut total = vec![0i128; m];
    for block in blocks {
        for (t, b) in total.iter_mut().zip(block) {
            *t += i128::from(b);
        }
    }
    Ok(MomentSums(total))
}

fn block_sums(data: &Dataset, basis: &MomentBasis, start: usize, end: usize) -> Vec<i64> {
    let (d, m, radius) = (basis.features, basis.len(), basis.radius());
    let mut sums = vec![0i64; m];
    let (mut row, mut moments, mut q) = (vec![0.0; d], vec![0.0; m], vec![0i64; m]);
    for i in start..end {
        data.copy_row(i, &mut row);
        basis.of_row(&row, &mut moments);
        quantize_in_ball(BITS, &moments, radius, &mut q);
        for (s, q) in sums.iter_mut().zip(&q) {
            *s += q;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use proptest::prelude::*;

    fn basis(degree: usize, features: usize, bound: f64) -> MomentBasis {
        MomentBasis {
            degree,
            features,
            bound,
        }
    }

    proptest! {
        /// The integer bound holds whatever the row is.
        #[test]
        fn no_row_exceeds_the_bound(
            degree in 1usize..=30, x in prop::num::f64::ANY, bound in 1e-3f64..1e3
        ) {
            let basis = basis(degree, 1, bound);
            let mut moments = vec![0.0; basis.len()];
            basis.of_row(&[x], &mut moments);
            let mut q = vec![0; basis.len()];
            quantize_in_ball(BITS, &moments, basis.radius(), &mut q);
            let squares: u128 = q.iter().map(|v| u128::from(v.unsigned_abs()).pow(2)).sum();
            prop_assert!(squares <= 1 << (2 * BITS));
        }
    }

    /// Against `Σ cos(k arccos(x/B))` in f64, 3,000 rows: each is off by under a unit.
    #[test]
    fn sums_match_floating_point() {
        let bound = 2.5;
        let mut builder = Dataset::builder(vec!["x".into()], false, bound).unwrap();
        let xs: Vec<f32> = (0..3_000).map(|i| 2.5 * (i as f32 * 0.37).sin()).collect();
        for x in &xs {
            builder.push(&[*x], None).unwrap();
        }
        let data = builder.finish().unwrap();
        for degree in [1, 2, 7, 30] {
            let basis = basis(degree, 1, bound);
            let sums = sums(&data, &basis).unwrap();
            for (k, sum) in sums.0.iter().enumerate() {
                let order = (k + 1) as f64;
                let exact: f64 = xs
                    .iter()
                    .map(|x| (order * (f64::from(*x) / bound).clamp(-1.0, 1.0).acos()).cos())
                    .sum();
                let unit = MomentSums::unit(&basis, k);
                let error = (*sum as f64 * unit - exact).abs();
                // A row on the edge of the ball loses a unit, the others half of one.
                assert!(error < 60.0 * unit + 1e-9, "{degree} {k}: {error} {unit}");
            }
        }
    }

    /// Opposite rows reach the stated sensitivity.
    #[test]
    fn the_sensitivity_is_attained() {
        let basis = basis(1, 2, 3.0);
        let (mut z, mut q) = ([0.0; 2], [0i64; 2]);
        basis.of_row(&[3.0, 0.0], &mut z);
        quantize_in_ball(BITS, &z, 1.0, &mut q);
        assert_eq!(2.0 * q[0] as f64, MomentSums::SENSITIVITY);
    }
}
