//! Exact sums for an anchor: gradient and curvature of the log likelihood at a public θ*,
//! row by row in integers, so that sensitivities are facts about integers.

use std::ops::Range;

use rayon::prelude::*;

use serde::{Deserialize, Serialize};

use super::EngineError;
use super::anchor_rows::TileRows;
use super::anchor_vectors::VectorRows;
use super::cpu::{InstructionSet, SERIAL_WORK};
use crate::data::{Dataset, TILE};
use crate::model::{Metric, Predictor, Profile, Slopes};

/// A row's whitened z in a curvature, in units of b/2^14.
pub(super) const FEATURE_BITS: u32 = 14;
/// Curvature weights in units of their public bound over 2^14.
pub(super) const WEIGHT_BITS: u32 = 14;
/// Whitened z and score in a gradient, in units of their bounds over 2^20: at the mode, scores of
/// either sign cancel, and rows that are equal are rounded the same way, so what rounding leaves
/// over grows with the number of rows where the posterior's own width grows with its root.
pub(super) const GRADIENT_BITS: u32 = 20;
/// Weights in a profile are in finer units by this power of two: the noise of a release is then on
/// a lattice as fine beside its sensitivity as that of all others.
pub(super) const PROFILE_SHIFT: u32 = 8;

/// Thresholds of a profile in units of the metric's row bound b: 2^(j/2), from 2^-3.5 to 2^4.5.
const PROFILE_BITS: std::ops::RangeInclusive<i32> = -7..=9;
/// Ranges of a profile of gradients but for the last.
const OCTAVES: i32 = 8;

/// `Σ ω_i s_i z_i` and `Σ ω_i w_i z_i z_iᵀ` of a model's log likelihood at θ*, z = L⁻¹x (L⁻¹∇f of a
/// network), s the score and w minus its slope, clipped to public bounds; in units of
/// [`crate::model::Model::unit`]. ω_i ≤ 1 is the weight of a row beyond the row bound b, see
/// [`Slopes::influence`]; a row within it has ω = 1.
#[derive(Serialize)]
pub(in crate::trusted) struct AnchorQuery<'a> {
    /// θ*, d values.
    pub at: &'a [f64],
    /// L and b.
    pub metric: &'a Metric,
    /// s, w and their bounds.
    pub slopes: Slopes,
    /// Which sums are wanted; the others may be left zero.
    pub parts: AnchorParts,
}

/// Which sums of an anchor are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::trusted) struct AnchorParts {
    /// d sums.
    pub gradient: bool,
    /// d(d+1)/2 sums.
    pub curvature: bool,
    /// A profile.
    pub profile: Option<Profile>,
}

impl AnchorQuery<'_> {
    /// Refuses a query that does not fit rows of so many features.
    pub fn check(&self, features: usize, labelled: bool) -> Result<(), EngineError> {
        let d = self.slopes.predictor.dim(features);
        let shaped = match self.slopes.predictor {
            Predictor::Network(shape) => shape.features == features && shape.outputs == 1,
            Predictor::Linear | Predictor::Joint(_) => true,
        };
        let fits = labelled && shaped && self.at.len() == d && self.metric.dim() == d;
        if !fits || !self.metric.is_valid() {
            return Err(EngineError::Query(
                "the anchor does not fit the rows it is asked about".into(),
            ));
        }
        Ok(())
    }
}

/// The exact sums, in integer units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::trusted) struct AnchorSums {
    /// d sums in units of [`AnchorSums::gradient_unit`].
    pub gradient: Vec<i128>,
    /// Lower triangle, row by row, d(d+1)/2 sums in units of [`AnchorSums::curvature_unit`].
    pub curvature: Vec<i128>,
    /// Sums of w over rows by ‖z‖, in units of [`AnchorSums::weight_unit`]: one of every range
    /// between [`AnchorSums::profile_thresholds`], and what lies beyond the last. Or numbers of
    /// rows by [their gradients](AnchorSums::place_of_gradient).
    pub profile: Vec<i128>,
}

impl AnchorSums {
    /// Bound on the change of the gradient sums in L2 when a row is substituted, units:
    /// each row's part is s·q with |s| ≤ 2^20 and ‖q‖ ≤ 2^20.
    pub const GRADIENT_SENSITIVITY: f64 = 2.0 * (1u64 << (2 * GRADIENT_BITS)) as f64;

    /// The same for the curvature in the Frobenius norm, **squared**, units²: rows give
    /// w·qqᵀ with 0 ≤ w ≤ 2^14, of norm at most 2^42 and inner product at least 0.
    pub const CURVATURE_SENSITIVITY_SQUARED: f64 =
        2.0 * (1u128 << (2 * (WEIGHT_BITS + 2 * FEATURE_BITS))) as f64;

    /// The same for the profile in L2, **squared**: a row adds w·2^8 ≤ 2^22 to one entry.
    pub const PROFILE_SENSITIVITY_SQUARED: f64 =
        2.0 * (1u64 << (2 * (WEIGHT_BITS + PROFILE_SHIFT))) as f64;

    /// Upper ends of a profile's ranges of ‖z‖ in units of the row bound b; the last entry of the
    /// profile has none.
    pub fn profile_thresholds() -> Vec<f64> {
        PROFILE_BITS.map(|j| f64::powi(2.0, j).sqrt()).collect()
    }

    /// No sums, of d parameters.
    pub fn zero(d: usize) -> Self {
        AnchorSums {
            gradient: vec![0; d],
            curvature: vec![0; d * (d + 1) / 2],
            profile: vec![0; PROFILE_BITS.count() + 1],
        }
    }

    /// The entry of a row whose gradient is so many S b long before it is clipped: up to 2^j for j
    /// from 0 on, NaN and what is longer last, and each for scores from 0 on and for others.
    pub(super) fn place_of_gradient(length: f64, score: f64) -> usize {
        let octave = (0..OCTAVES).position(|j| length <= f64::powi(2.0, j));
        2 * octave.unwrap_or(OCTAVES as usize) + usize::from(score < 0.0)
    }

    /// One unit of a profile of gradients, whose whole is the rows of a unit.
    pub fn row_unit(slopes: &Slopes) -> f64 {
        f64::from(slopes.rows_of_unit) * f64::powi(2.0, -((WEIGHT_BITS + PROFILE_SHIFT) as i32))
    }

    /// One unit of a profile's weights w, κ and the model's unit left out.
    pub fn weight_unit(slopes: &Slopes) -> f64 {
        slopes.profile_weight() * f64::powi(2.0, -((WEIGHT_BITS + PROFILE_SHIFT) as i32))
    }

    /// Adds other rows' sums.
    pub(super) fn add(&mut self, other: AnchorSums) {
        for (mine, others) in [
            (&mut self.gradient, other.gradient),
            (&mut self.curvature, other.curvature),
            (&mut self.profile, other.profile),
        ] {
            mine.iter_mut().zip(others).for_each(|(a, b)| *a += b);
        }
    }

    /// One unit of the gradient for rows bounded by b, κ and the model's unit left out.
    pub fn gradient_unit(row_bound: f64, slopes: &Slopes) -> f64 {
        slopes.unit_score() * row_bound * f64::powi(2.0, -((2 * GRADIENT_BITS) as i32))
    }

    /// One unit of the curvature, likewise.
    pub fn curvature_unit(row_bound: f64, slopes: &Slopes) -> f64 {
        let power = f64::powi(2.0, -((2 * FEATURE_BITS + WEIGHT_BITS) as i32));
        slopes.unit_weight() * row_bound * row_bound * power
    }
}

/// The sums over all rows.
pub(super) fn sums(
    set: InstructionSet,
    data: &Dataset,
    query: &AnchorQuery<'_>,
) -> Result<AnchorSums, EngineError> {
    query.check(data.features().len(), data.labelled())?;
    let joint = match query.slopes.predictor {
        Predictor::Joint(joint) => Some((joint, joint.located(query.at))),
        Predictor::Linear | Predictor::Network(_) => None,
    };
    let shared = joint.as_ref().map(|(joint, located)| (*joint, &**located));
    // Small shares need finer integers than tiles have.
    let finely = shared.is_some() || data.units().is_some() || data.weighted();
    Ok(match finely {
        true => {
            let rows = VectorRows::new(data, query, shared);
            over(rows.count(), query, |units| rows.sums(units))
        }
        false => over(data.lines().div_ceil(TILE), query, |tiles| {
            set.anchor_sums(TileRows::new(data, query), tiles)
        }),
    })
}

/// Adds the sums of parts of `count` on all threads, or of few on this one: integers, so any split
/// gives the same bits.
fn over(
    count: usize,
    query: &AnchorQuery<'_>,
    part: impl Fn(std::ops::Range<usize>) -> AnchorSums + Sync,
) -> AnchorSums {
    let d = query.at.len();
    if count * TILE * d * d < SERIAL_WORK {
        return part(0..count);
    }
    let chunk = count.div_ceil(64).max(1);
    (0..count.div_ceil(chunk))
        .into_par_iter()
        .map(|k| part(k * chunk..((k + 1) * chunk).min(count)))
        .reduce(
            || AnchorSums::zero(d),
            |mut a, b| {
                a.add(b);
                a
            },
        )
}

/// Weights ω_i of all rows, padded with zeros to whole tiles: what remainders are multiplied by.
pub(super) fn row_weights(
    set: InstructionSet,
    data: &Dataset,
    query: &AnchorQuery<'_>,
    tiles: Range<usize>,
) -> Vec<f32> {
    let mut weights = vec![0.0f32; tiles.len() * TILE];
    if let Predictor::Joint(_) = query.slopes.predictor {
        // Nothing of these is a remainder.
        return weights;
    }
    let first = tiles.start;
    let weigh = |(k, out): (usize, &mut [f32])| {
        set.anchor_weights(TileRows::new(data, query), first + k * 64, out);
    };
    match tiles.len() {
        ..=64 => weigh((0, &mut weights)),
        _ => weights
            .par_chunks_mut(TILE * 64)
            .enumerate()
            .for_each(weigh),
    }
    let live = data.lines().saturating_sub(first * TILE);
    weights.iter_mut().skip(live).for_each(|w| *w = 0.0);
    weights
}

/// What ‖z‖ is scaled by to lie in the ball of radius `bound`: 1 inside it, NaN → 1 (such a row is
/// all zeros).
pub(super) fn share_of_ball(norm: f64, bound: f64) -> f64 {
    (bound / norm).min(1.0)
}

/// z in units of `b/2^bits`, rounded; where that leaves the ball, scaled to its edge and truncated
/// towards zero, so that a row whose norm is b to rounding loses a unit a coordinate at most;
/// NaN becomes 0. On return `Σ q² ≤ 2^(2 bits)`, checked in integers.
pub(super) fn quantize_in_ball(bits: u32, z: &[f64], bound: f64, q: &mut [i64]) {
    let scale = (1i64 << bits) as f64 / bound;
    quantize_to(1 << (2 * bits), z, scale, q);
}

/// The same for z·`scale` and any bound on Σ q² whose root, and so each |q|, is at most 2^62.
pub(super) fn quantize_to(most: u128, z: &[f64], scale: f64, q: &mut [i64]) {
    let limit = most.isqrt() as i64;
    let fill = |to_integer: fn(f64) -> f64, scale: f64, q: &mut [i64]| -> bool {
        let mut squares = 0u128;
        for (q, z) in q.iter_mut().zip(z) {
            // NaN becomes 0 and infinities saturate in the conversion.
            *q = (to_integer(z * scale) as i64).clamp(-limit, limit);
            squares += u128::from(q.unsigned_abs()).pow(2);
        }
        squares <= most
    };
    if fill(f64::round_ties_even, scale, q) {
        return;
    }
    let norm = z.iter().map(|v| v * v).sum::<f64>().sqrt() * scale;
    // The slack covers the rounding of the norm.
    let shrink = (limit as f64 / norm).min(1.0) * (1.0 - f64::powi(2.0, -30));
    if !(shrink.is_finite() && fill(f64::trunc, scale * shrink, q)) {
        q.fill(0);
    }
}

/// Score and weight of a row that is shortened by `share`, in units of their bounds over 2^20 and
/// 2^14: |score| ≤ 2^20, 0 ≤ weight ≤ 2^14 whatever η, the label and the bounds are. NaN becomes 0.
pub(super) fn quantize_slopes(slopes: &Slopes, share: f64, eta: f64, label: f64) -> (i64, i64) {
    let (steepest, heaviest) = (1i64 << GRADIENT_BITS, 1i64 << WEIGHT_BITS);
    let (score, weight) = slopes.score_and_weight(1.0, share, eta, label);
    let units = |value: f64, limit: i64, bound: f64| {
        (value * (limit as f64 / bound)).round_ties_even() as i64
    };
    (
        units(score, steepest, slopes.largest_score).clamp(-steepest, steepest),
        units(weight, heaviest, slopes.largest_weight).clamp(0, heaviest),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::LabelKind;
    use crate::engine::Engine;
    use crate::engine::cpu::CpuEngine;
    use crate::model::{Lower, NetworkShape, Predictor, Score};
    use crate::synthetic;
    use proptest::prelude::*;
    use std::sync::Arc;

    impl AnchorParts {
        /// Gradient and curvature.
        pub const EXPANSION: AnchorParts = AnchorParts {
            gradient: true,
            curvature: true,
            profile: None,
        };
    }

    proptest! {
        /// The integer bound holds whatever the row is: huge, tiny in many coordinates, NaN.
        #[test]
        fn no_row_exceeds_the_bound(
            d in 1usize..1200, log in -30f64..30.0, bound in 1e-3f64..1e3, kind in 0u8..4,
            bits in prop::sample::select(vec![FEATURE_BITS, GRADIENT_BITS, 2 * GRADIENT_BITS])
        ) {
            let size = log.exp();
            let z: Vec<f64> = (0..d).map(|j| match kind {
                0 => size * (j as f64 * 0.7).sin(),
                1 => if j == 0 { bound } else { bound * f64::powi(2.0, -1 - bits as i32) },
                2 => if j % 7 == 0 { f64::NAN } else { size },
                _ => if j == 1 { f64::INFINITY } else { size },
            }).collect();
            let mut q = vec![0; d];
            quantize_in_ball(bits, &z, bound, &mut q);
            let squares: u128 = q.iter().map(|v| u128::from(v.unsigned_abs()).pow(2)).sum();
            prop_assert!(squares <= 1 << (2 * bits));
        }

        #[test]
        fn slopes_stay_within_their_bounds(
            eta in prop::num::f64::ANY, label in prop::num::f64::ANY, share in prop::num::f64::ANY, which in 0usize..5
        ) {
            let (s, w) = quantize_slopes(&every_slopes()[which], share, eta, label);
            prop_assert!(s.abs() <= 1 << GRADIENT_BITS && (0..=1 << WEIGHT_BITS).contains(&w));
        }
    }

    /// One of each model, and two whose bounds are at the ends of what can be declared.
    fn every_slopes() -> [Slopes; 5] {
        let number = |low, high| LabelKind::Number { low, high };
        [
            Slopes::logistic(),
            Slopes::linear(number(-1.0, 3.0), 0.25),
            Slopes::poisson(12.0, None),
            Slopes::linear(number(-1e18, 1e18), 1e-30),
            Slopes::poisson(16_777_216.0, Some(-700.0)),
        ]
    }

    /// Against the sums in f64, on rows that no bound clips; in whitened coordinates too.
    #[test]
    fn sums_match_floating_point() {
        let theta = [0.4, -1.0, 0.3];
        let number = LabelKind::Number {
            low: -4.0,
            high: 4.0,
        };
        let sets = [
            (
                synthetic::logistic(5_003, &theta, 4).unwrap(),
                Slopes::logistic(),
            ),
            (
                synthetic::linear(5_003, &theta, 0.8, 4.0, 4).unwrap(),
                Slopes::linear(number, 4.0),
            ),
            (
                synthetic::poisson(5_003, &theta, 30, 4).unwrap(),
                Slopes::poisson(100.0, None),
            ),
        ];
        let whitened = Metric {
            factor: Lower::new(vec![2.0, 0.0, 0.0, 0.5, 1.5, 0.0, -0.3, 0.2, 3.0]).unwrap(),
            row_bound: 4.0,
        };
        for (data, slopes) in sets {
            for metric in [Metric::identity(3, 3.0), whitened.clone()] {
                check_sums(&data, slopes, &metric);
            }
        }
    }

    fn check_sums(data: &Dataset, slopes: Slopes, metric: &Metric) {
        let rows = data.public_rows();
        let at = [0.1, -0.2, 0.5];
        let query = AnchorQuery {
            at: &at,
            metric,
            slopes,
            parts: AnchorParts::EXPANSION,
        };
        let sums = sums(InstructionSet::detect(), data, &query).unwrap();
        let mut gradient = [0.0; 3];
        let mut curvature = [0.0; 6];
        for (row, y) in rows.chunks(3).zip(data.labels()) {
            let mut z: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
            let eta: f64 = z.iter().zip(&at).map(|(x, t)| x * t).sum();
            metric.factor.solve(&mut z);
            // Written out here: `Score::slopes` has a test of its own.
            let y = f64::from(*y);
            let (score, weight) = match slopes.score {
                Score::Logistic => {
                    let p = 1.0 / (1.0 + (-eta).exp());
                    ((y + 1.0) / 2.0 - p, p * (1.0 - p))
                }
                Score::Linear => (y - eta, 1.0),
                Score::Poisson => (y - eta.exp(), eta.exp()),
                Score::Declared(_) => unreachable!("rows one by one are compared below"),
            };
            assert!(score.abs() <= slopes.largest_score && weight <= slopes.largest_weight);
            let mut k = 0;
            for i in 0..3 {
                gradient[i] += score * z[i];
                for j in 0..=i {
                    curvature[k] += weight * z[i] * z[j];
                    k += 1;
                }
            }
        }
        // 5,003 rows, each off by up to b·2^-19 of the bounds: 0.004 by chance.
        let unit = AnchorSums::gradient_unit(metric.row_bound, &slopes);
        for (exact, sum) in gradient.iter().zip(&sums.gradient) {
            let gap = (*sum as f64 * unit - exact).abs();
            assert!(gap < 1e-3 * slopes.largest_score, "{exact} by {gap}");
        }
        // Off by up to b²·2^-14: 0.2 by chance, 1 would be a bias.
        let unit = AnchorSums::curvature_unit(metric.row_bound, &slopes);
        for (exact, sum) in curvature.iter().zip(&sums.curvature) {
            let gap = (*sum as f64 * unit - exact).abs();
            assert!(gap < 0.24 * slopes.largest_weight, "{exact} by {gap}");
        }
    }

    /// Row by row, from the definitions.
    fn oracle(data: &Dataset, query: &AnchorQuery<'_>) -> AnchorSums {
        let d = query.at.len();
        let mut sums = AnchorSums::zero(d);
        let mut row = vec![0.0; data.features().len()];
        for i in 0..data.rows() {
            data.copy_row(i, &mut row);
            let mut z = vec![0.0; d];
            let eta = match query.slopes.predictor {
                Predictor::Linear => {
                    z.copy_from_slice(&row);
                    row.iter().zip(query.at).map(|(x, t)| x * t).sum()
                }
                Predictor::Network(shape) => shape.slope(query.at, &row, &mut z),
                Predictor::Joint(_) => unreachable!("has sums of its own"),
            };
            query.metric.factor.solve(&mut z);
            let norm = z.iter().map(|v| v * v).sum::<f64>().sqrt();
            let (bound, y) = (query.metric.row_bound, f64::from(data.labels()[i]));
            let (_, weight) = quantize_slopes(&query.slopes, 1.0, eta, y);
            let mut thresholds = AnchorSums::profile_thresholds().into_iter();
            let long = norm * query.slopes.larger_score(eta);
            let place = thresholds.position(|t| long <= t * bound);
            let last = sums.profile.len() - 1;
            sums.profile[place.unwrap_or(last)] += i128::from(weight << PROFILE_SHIFT);
            let (mut fine, mut q) = (vec![0; d], vec![0; d]);
            quantize_in_ball(GRADIENT_BITS, &z, bound, &mut fine);
            quantize_in_ball(FEATURE_BITS, &z, bound, &mut q);
            let share = (bound / norm).min(1.0);
            let (score, weight) = quantize_slopes(&query.slopes, share, eta, y);
            let mut entry = 0;
            for j in 0..d {
                sums.gradient[j] += i128::from(score * fine[j]);
                for k in 0..=j {
                    sums.curvature[entry] += i128::from(weight * q[j] * q[k]);
                    entry += 1;
                }
            }
        }
        sums
    }

    /// Every instruction set makes the integers of the definitions, to the last: rows within the
    /// ball and beyond it, whole blocks and parts of one, columns that fill groups and not.
    #[test]
    fn sums_are_those_of_the_rows_one_by_one() {
        let shape = NetworkShape {
            features: 3,
            hidden: 2,
            outputs: 1,
        };
        for (rows, d, row_bound) in [
            (2, 1, 0.4),
            (1030, 3, 0.7),
            (512, 4, 3.0),
            (700, 13, 1.1),
            (333, 50, 6.0),
        ] {
            let theta: Vec<f64> = (0..d).map(|j| (j as f64).sin()).collect();
            let data = Arc::new(synthetic::logistic(rows, &theta, 4).unwrap());
            let lower = |d: usize| {
                let entry = |i: usize, j: usize| match i.cmp(&j) {
                    std::cmp::Ordering::Less => 0.0,
                    std::cmp::Ordering::Equal => 1.0 + 0.1 * i as f64,
                    std::cmp::Ordering::Greater => 0.05 * ((3 * i + j) as f64).cos(),
                };
                let entries = (0..d * d).map(|k| entry(k / d, k % d)).collect();
                Metric {
                    factor: Lower::new(entries).unwrap(),
                    row_bound,
                }
            };
            let mut cases = vec![(Slopes::logistic(), theta.clone(), lower(d))];
            if d == 3 {
                let parameters = shape.parameters();
                let at = (0..parameters).map(|j| (j as f64).cos()).collect();
                cases.push((Slopes::network(shape), at, lower(parameters)));
            }
            for (slopes, at, metric) in cases {
                let query = AnchorQuery {
                    at: &at,
                    metric: &metric,
                    slopes,
                    parts: AnchorParts {
                        profile: Some(Profile::Norms),
                        ..AnchorParts::EXPANSION
                    },
                };
                let expected = oracle(&data, &query);
                for set in InstructionSet::available() {
                    let mut engine = CpuEngine::with(data.clone(), set, 100);
                    let sums = engine.anchor_sums(&query).unwrap();
                    assert_eq!(sums, expected, "{rows} rows, {d} features, {}", set.name());
                }
            }
        }
    }

    /// A row on the edge of the ball is not shortened by more than truncation does, whatever
    /// the rounding of its coordinates; one beyond keeps its direction.
    #[test]
    fn rows_at_the_bound_are_kept() {
        let mut rounded_out = 0;
        for d in [2usize, 3, 12, 50, 400] {
            for k in 0..40 {
                let raw: Vec<f64> = (0..d).map(|j| ((j * 7 + k * 3 + 1) as f64).sin()).collect();
                let norm = raw.iter().map(|v| v * v).sum::<f64>().sqrt();
                for far in [1.0 + 1e-7, 1.0, 5.0] {
                    let z: Vec<f64> = raw.iter().map(|v| v * far / norm).collect();
                    let mut q = vec![0; d];
                    quantize_in_ball(FEATURE_BITS, &z, 1.0, &mut q);
                    let unit = (1 << FEATURE_BITS) as f64;
                    for (q, z) in q.iter().zip(&z) {
                        assert!(
                            (*q as f64 - z * unit / far.max(1.0)).abs() < 1.01,
                            "{d} {k}"
                        );
                    }
                    let nearest = z.iter().map(|v| (v * unit).round_ties_even().powi(2));
                    rounded_out += u32::from(nearest.sum::<f64>() > unit * unit);
                }
            }
        }
        assert!(
            rounded_out > 250,
            "rounding never left the ball: {rounded_out}"
        );
    }

    /// The extreme rows reach the stated sensitivities and do not pass them.
    #[test]
    fn sensitivities_are_attained_and_not_exceeded() {
        let mut q = vec![0; 2];
        let part =
            |slopes: &Slopes, z: &[f64], share: f64, (eta, y): (f64, f64), q: &mut Vec<i64>| {
                let (s, w) = quantize_slopes(slopes, share, eta, y);
                quantize_in_ball(GRADIENT_BITS, z, 1.0, q);
                let g: Vec<f64> = q.iter().map(|v| (s * v) as f64).collect();
                quantize_in_ball(FEATURE_BITS, z, 1.0, q);
                let c = [
                    (w * q[0] * q[0]) as f64,
                    (w * q[1] * q[0]) as f64 * 2f64.sqrt(),
                    (w * q[1] * q[1]) as f64,
                ];
                (g, c)
            };
        let [logistic, linear, poisson, ..] = every_slopes();
        // Labels of either end and rows far beyond the ball, whose scores are clipped last; and an
        // η where the weight is largest.
        for (slopes, low, high, steep) in [
            (logistic, -1.0, 1.0, 0.0),
            (linear, -1.0, 3.0, 0.0),
            (poisson, 0.0, 12.0, 9.0),
        ] {
            let (g1, _) = part(&slopes, &[1.0, 0.0], 1e-3, (-60.0, high), &mut q);
            let (g2, _) = part(&slopes, &[1.0, 0.0], 1e-3, (60.0, low), &mut q);
            let change = (g1[0] - g2[0]).hypot(g1[1] - g2[1]);
            assert_eq!(change, AnchorSums::GRADIENT_SENSITIVITY);
            let (_, c1) = part(&slopes, &[1.0, 0.0], 1.0, (steep, high), &mut q);
            let (_, c2) = part(&slopes, &[0.0, 1.0], 1.0, (steep, high), &mut q);
            let change: f64 = c1.iter().zip(c2).map(|(a, b)| (a - b).powi(2)).sum();
            assert_eq!(change, AnchorSums::CURVATURE_SENSITIVITY_SQUARED);
            // One row alone: half of the one, 1/√2 of the other (`Alone`).
            assert!(2.0 * g1[0].hypot(g1[1]) <= AnchorSums::GRADIENT_SENSITIVITY);
            let own: f64 = c1.iter().map(|c| c * c).sum();
            assert!(2.0 * own <= AnchorSums::CURVATURE_SENSITIVITY_SQUARED);
        }
    }
}
