//! How far from zero the rows of a narrow column lie. The curvature's diagonal cannot tell a column
//! that is 1 in few rows from one whose values are all small; a profile of that column alone can
//! (docs/proofs/anchors.md, "Narrow columns").

use nalgebra::{DMatrix, DVector};

use super::Anchoring;
use super::algebra::lower;
use super::norms::ranges;
use super::path::{LONGEST_LEVEL, Purse, row_norm};
use crate::model::Metric;
use crate::privacy::{AnchorNoise, Expansion, Halt, Releases};

/// Share of the whole for the profiles of all columns that are asked about: those whose mean square
/// may be so many times less than that from which on coordinates are raised for rare levels.
const SHARE: f64 = 0.01;
const ASKED: f64 = 3.0;
/// A column that holds this share of all weight away from zero is not one of a rare level.
const BULK: f64 = 0.1;
/// Other columns are divided by so many times the longest row.
pub(super) const ASIDE: f64 = 1e3;
/// Columns of a less mean square, where their information lies, are said to be narrow.
const SAID: f64 = 0.01;

/// What is known of the columns one by one at the start.
pub(super) struct Columns {
    /// The curvature's diagonal.
    pub diagonal: DVector<f64>,
    /// Mean square of features where their information lies, at most 1, and taken to be 1 of a
    /// column of which no profile tells.
    pub far: DVector<f64>,
}

/// What a profile tells of a column most of whose rows are not zero.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    /// Σ κw x².
    square: f64,
    /// Σ κw x⁴ over Σ κw x².
    far: f64,
}

impl Columns {
    /// Asks for the profiles of columns that may be narrow by the released diagonal, whose noise
    /// has this sd, and are neither flags nor of a curve by declaration; `weight`: Σ κw, and rows'
    /// mean weight over the largest.
    ///
    /// # Errors
    /// [`Halt`] of the curator.
    pub fn ask(
        plan: &Anchoring,
        (diagonal, sd): (DVector<f64>, f64),
        (weight, share): (f64, f64),
        purse: &mut Purse,
        releases: &mut dyn Releases,
    ) -> Result<Self, Halt> {
        let d = diagonal.len();
        let far = DVector::from_element(d, 1.0);
        let mut known = Columns { diagonal, far };
        let (_, scales) = plan.slopes.and_scales(&plan.start);
        let raised = share * weight / (LONGEST_LEVEL * LONGEST_LEVEL * d as f64);
        let features = known.diagonal.rows(0, d - scales.len());
        let mut public = plan.structure.in_curves(d);
        (public.iter_mut().zip(&plan.structure.flags)).for_each(|(public, flag)| *public |= flag);
        let asked = asked(&(features / raised), sd / raised, &public);
        let each = SHARE / asked.len().max(1) as f64;
        // A unit's rows are added up: their profile says nothing of single columns.
        if plan.slopes.rows_of_unit > 1 || each < purse.least_share() {
            return Ok(known);
        }
        let longest = row_norm(plan.row_norm, &scales);
        for j in asked {
            let unit = (known.diagonal[j] / weight).sqrt();
            let tau = purse.pay(each);
            let seen = profile(plan, (j, unit), longest, tau, releases)?;
            // At the start predictors are about 0.
            if let Some(told) = told(&seen, unit / plan.slopes.larger_score(0.0)) {
                known.diagonal[j] = told.square;
                known.far[j] = (told.far / share).min(1.0);
            }
        }
        Ok(known)
    }
}

/// Columns that may be narrow by their mean squares over that of levels that are raised, known to
/// this sd; of those whose values are `public` nothing is asked.
fn asked(squares: &DVector<f64>, sd: f64, public: &[bool]) -> Vec<usize> {
    let is_public = |j: usize| public.get(j).is_some_and(|public| *public);
    (0..squares.len())
        .filter(|j| !is_public(*j) && ASKED * (squares[*j] - 2.0 * sd) < 1.0)
        .collect()
}

/// How many columns are narrow, by their mean squares where their information lies.
pub(super) fn narrow(far: &DVector<f64>) -> usize {
    far.iter().filter(|far| **far < SAID).count()
}

/// The profile of column j at the start, its values measured in `unit`.
fn profile(
    plan: &Anchoring,
    (j, unit): (usize, f64),
    longest: f64,
    tau: f64,
    releases: &mut dyn Releases,
) -> Result<Expansion, Halt> {
    let scale = |k| if k == j { unit } else { ASIDE * longest };
    let scales = DVector::from_fn(plan.start.len(), |k, _| scale(k));
    let metric = Metric {
        factor: lower(&DMatrix::from_diagonal(&scales))?,
        row_bound: 1.0,
    };
    let noise = AnchorNoise {
        profile: Some(tau),
        largest_weight: plan.largest_weight(),
        ..AnchorNoise::default()
    };
    releases.anchor(&plan.start, &metric, noise)
}

/// `None`: the column is mostly zero, or lost in noise.
fn told(seen: &Expansion, unit: f64) -> Option<Told> {
    let ranges = ranges(seen, unit);
    let moment = |power: i32| -> f64 { ranges.iter().map(|(x, w)| w * x.powi(power)).sum() };
    let away: f64 = ranges[1..].iter().map(|(_, w)| w).sum();
    (away > 0.0 && away >= BULK * moment(0)).then(|| Told {
        square: moment(2),
        far: moment(4) / moment(2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::profile_thresholds;

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

    /// Of one that may be raised, one that may not and three that are, two of them by declaration 0
    /// or 1.
    #[test]
    fn columns_that_are_flags_by_declaration_are_not_asked_about() {
        let squares = DVector::from_vec(vec![0.4, 0.6, 0.0, 0.0, 0.0]);
        let flags = [false, false, true, false, true];
        assert_eq!(asked(&squares, 0.05, &flags), [0, 3]);
        assert_eq!(asked(&squares, 0.05, &[]), [0, 2, 3, 4]);
        assert_eq!(asked(&squares, 0.0, &flags[..3]), [3, 4]);
    }

    /// Column of all 0.02 (a range's middle), of 1 in one row of a hundred, and one in noise.
    #[test]
    fn columns_of_small_values_are_told_from_rare_levels() {
        let ranges = profile_thresholds().len() + 1;
        let middle = profile_thresholds()[6] / 2f64.powf(0.25);
        let mut profile = vec![0.0; ranges];
        profile[6] = 1000.0;
        let unit = 0.02 / middle;
        let small = told(&seen(profile.clone(), 10.0), unit).expect("most rows are not zero");
        assert!((small.square - 1000.0 * 0.02 * 0.02).abs() < 1e-9);
        assert!((small.far - 0.02 * 0.02).abs() < 1e-12);
        assert_eq!(told(&seen(profile, 251.0), unit), None);
        let mut profile = vec![0.0; ranges];
        (profile[0], profile[13]) = (990.0, 10.0);
        assert_eq!(told(&seen(profile, 0.1), 0.1), None);
    }
}
