//! How far from zero the rows of a narrow column lie. The curvature's diagonal cannot tell a column
//! that is 1 in few rows from one whose values are all small; a profile of that column alone can.

use nalgebra::{DMatrix, DVector};

use super::algebra::lower;
use crate::model::Metric;
use crate::privacy::{AnchorNoise, Expansion, Halt, Releases, profile_thresholds};

/// A column that holds this share of all weight away from zero is not one of a rare level.
const BULK: f64 = 0.1;
/// Entries of a profile below this many sds of its noise are taken for empty.
const LOUD: f64 = 4.0;
/// Other columns are divided by so many times the longest row.
const ASIDE: f64 = 1e3;

/// What a profile tells of a narrow column most of whose rows are not zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Narrow {
    /// Σ κw x².
    pub square: f64,
    /// Mean of x² where its information lies: Σ κw x⁴ over Σ κw x².
    pub far: f64,
}

/// Asks for the profile of column j at `at`, its values measured in `unit`, for noise of τ.
/// `None`: the column is mostly zero, or lost in noise.
///
/// # Errors
/// [`Halt`] of the curator.
pub(super) fn narrow(
    at: &[f64],
    j: usize,
    unit: f64,
    longest: f64,
    tau: f64,
    releases: &mut dyn Releases,
) -> Result<Option<Narrow>, Halt> {
    let scale = |k| if k == j { unit } else { ASIDE * longest };
    let scales = DVector::from_fn(at.len(), |k, _| scale(k));
    let metric = Metric {
        factor: lower(&DMatrix::from_diagonal(&scales))?,
        row_bound: 1.0,
    };
    let noise = AnchorNoise {
        profile: Some(tau),
        ..AnchorNoise::default()
    };
    Ok(of_profile(&releases.anchor(at, &metric, noise)?, unit))
}

fn of_profile(seen: &Expansion, unit: f64) -> Option<Narrow> {
    let half = 2f64.powf(0.25);
    let mut ends = profile_thresholds();
    ends.extend(ends.last().map(|e| 1.4 * e));
    let loud = |sum: f64| {
        if sum > LOUD * seen.profile_sd {
            sum
        } else {
            0.0
        }
    };
    let ranges: Vec<(f64, f64)> = ends
        .iter()
        .zip(&seen.profile)
        .map(|(end, sum)| (unit * end / half, loud(*sum)))
        .collect();
    let moment = |power: i32| -> f64 { ranges.iter().map(|(x, w)| w * x.powi(power)).sum() };
    let away: f64 = ranges[1..].iter().map(|(_, w)| w).sum();
    (away > 0.0 && away >= BULK * moment(0)).then(|| Narrow {
        square: moment(2),
        far: moment(4) / moment(2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(profile: Vec<f64>, sd: f64) -> Expansion {
        Expansion {
            gradient: Vec::new(),
            curvature: Vec::new(),
            profile,
            gradient_sd: 0.0,
            curvature_sd: 0.0,
            profile_sd: sd,
        }
    }

    /// Column of all 0.02 (a range's middle), of 1 in one row of a hundred, and one in noise.
    #[test]
    fn columns_of_small_values_are_told_from_rare_levels() {
        let ranges = profile_thresholds().len() + 1;
        let middle = profile_thresholds()[6] / 2f64.powf(0.25);
        let mut profile = vec![0.0; ranges];
        profile[6] = 1000.0;
        let unit = 0.02 / middle;
        let told = of_profile(&seen(profile.clone(), 10.0), unit).expect("most rows are not zero");
        assert!((told.square - 1000.0 * 0.02 * 0.02).abs() < 1e-9);
        assert!((told.far - 0.02 * 0.02).abs() < 1e-12);
        assert_eq!(of_profile(&seen(profile, 251.0), unit), None);
        let mut profile = vec![0.0; ranges];
        (profile[0], profile[13]) = (990.0, 10.0);
        assert_eq!(of_profile(&seen(profile, 0.1), 0.1), None);
    }
}
