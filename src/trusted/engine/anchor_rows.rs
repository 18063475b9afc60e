//! Rows in an anchor's coordinates, a tile at a time, and their sums: in f64, 16 rows in its lanes,
//! compiled for every instruction set.
//!
//! The sums are of integers. A curvature's weights and features are at most 2^14, a gradient's
//! scores and features at most 2^20, so that a row adds at most 2^42 to a sum, and 2^11 rows no more
//! than 2^53: f64 holds every such integer, and neither rounding, order nor fused operations can
//! change a bit. Lanes see the operations of a single row
//! in a single row's order ([`Lower::solve_each`](crate::model::Lower::solve_each)).

use std::ops::Range;

use super::anchor::{
    AnchorQuery, AnchorSums, FEATURE_BITS, GRADIENT_BITS, PROFILE_SHIFT, WEIGHT_BITS,
    quantize_in_ball, quantize_slopes, share_of_ball,
};
use crate::data::{Dataset, TILE};
use crate::model::{Predictor, Profile};

/// Tiles whose sums are exact.
const EXACT_TILES: usize = (1 << 11) / TILE;
/// Columns of a sum that are added to at once, and rows that are added together.
const COLUMNS: usize = 8;
const ROWS: usize = 4;

type Lanes = [f64; TILE];
type Columns = [f64; COLUMNS];

/// The rows of one tile.
pub(super) struct TileRows<'a> {
    data: &'a Dataset,
    query: &'a AnchorQuery<'a>,
    /// Where the rows of the metric's factor begin, past their zeros.
    starts: Vec<usize>,
    x: Vec<Lanes>,
    /// In the anchor's coordinates.
    z: Vec<Lanes>,
    eta: Lanes,
    /// ‖z‖.
    norms: Lanes,
}

impl<'a> TileRows<'a> {
    pub fn new(data: &'a Dataset, query: &'a AnchorQuery<'a>) -> Self {
        TileRows {
            data,
            query,
            starts: query.metric.factor.starts(),
            x: vec![[0.0; TILE]; data.width()],
            z: vec![[0.0; TILE]; query.at.len()],
            eta: [0.0; TILE],
            norms: [0.0; TILE],
        }
    }

    /// Reads tile `t`.
    #[inline(always)]
    fn read(&mut self, t: usize) {
        let (tiles, width) = (self.data.tiles(), self.x.len());
        let d = self.data.features().len();
        for (j, x) in self.x.iter_mut().enumerate() {
            let values = tiles.lanes(j, t * width + j);
            for i in 0..TILE {
                x[i] = f64::from(values[i]);
            }
        }
        match self.query.slopes.predictor {
            // (The sums of joint ones are made elsewhere.)
            Predictor::Linear | Predictor::Joint(_) => {
                self.z[..d].copy_from_slice(&self.x[..d]);
                // The offset, if there is one, or nothing.
                self.eta = self.x.get(d).copied().unwrap_or([0.0; TILE]);
                for (x, at) in self.x.iter().zip(self.query.at) {
                    for (eta, x) in self.eta.iter_mut().zip(x) {
                        *eta += x * at;
                    }
                }
            }
            Predictor::Network(shape) => {
                let mut slope = vec![0.0; self.z.len()];
                for i in 0..TILE {
                    let row: Vec<f64> = self.x.iter().map(|x| x[i]).collect();
                    self.eta[i] = shape.slope(self.query.at, &row, &mut slope);
                    self.z.iter_mut().zip(&slope).for_each(|(z, s)| z[i] = *s);
                }
            }
        }
        let factor = &self.query.metric.factor;
        factor.solve_each(&self.starts, &mut self.z);
        let mut squares = [0.0; TILE];
        for z in &self.z {
            for i in 0..TILE {
                squares[i] += z[i] * z[i];
            }
        }
        self.norms = squares.map(f64::sqrt);
    }

    /// The integers of every row, as [`quantize_in_ball`] makes them, into a row of `q`.
    #[inline(always)]
    fn quantize(&self, bits: u32, units: &mut [Lanes], q: &mut [Columns]) {
        let (d, bound) = (self.z.len(), self.query.metric.row_bound);
        let limit = (1u64 << bits) as f64;
        let scale = limit / bound;
        let mut squares = [0.0; TILE];
        for (z, units) in self.z.iter().zip(&mut *units) {
            let (z, mut nearest) = (*z, [0.0; TILE]);
            for i in 0..TILE {
                let unit = (z[i] * scale).round_ties_even();
                let unit = unit.clamp(-limit, limit);
                nearest[i] = if unit.is_nan() { 0.0 } else { unit };
                squares[i] += nearest[i] * nearest[i];
            }
            *units = nearest;
        }
        let width = d.div_ceil(COLUMNS);
        for (i, q) in q.chunks_exact_mut(width).enumerate() {
            let q = q.as_flattened_mut();
            q.iter_mut().zip(&*units).for_each(|(q, u)| *q = u[i]);
            // A row that rounding takes out of the ball, or that was never in it.
            if squares[i] > limit * limit {
                let z: Vec<f64> = self.z.iter().map(|z| z[i]).collect();
                let mut units = vec![0; d];
                quantize_in_ball(bits, &z, bound, &mut units);
                q.iter_mut().zip(units).for_each(|(q, u)| *q = u as f64);
            }
        }
    }
}

/// Weights ω of the rows of the tiles from `first` on.
#[inline(always)]
pub(super) fn weights(mut rows: TileRows<'_>, first: usize, out: &mut [f32]) {
    let query = rows.query;
    for (t, out) in out.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        rows.read(first + t);
        for (i, weight) in out.iter_mut().enumerate() {
            let (_, w) = query.slopes.score.slopes(rows.eta[i], 0.0);
            // (As their sums are made: see VectorRows.)
            let shares = rows.data.shares();
            let part = shares.get((first + t) * TILE + i);
            let root = part.map_or(1.0, |s| f64::from(*s).sqrt());
            let share = share_of_ball(root * rows.norms[i], query.metric.row_bound);
            *weight = query.slopes.influence(share, w).omega as f32;
        }
    }
}

/// Sums over some tiles.
#[inline(always)]
pub(super) fn sums<const FMA: bool>(mut rows: TileRows<'_>, tiles: Range<usize>) -> AnchorSums {
    let (data, query) = (rows.data, rows.query);
    let (d, parts, bound) = (query.at.len(), query.parts, query.metric.row_bound);
    let mut sums = AnchorSums::zero(d);
    let thresholds = AnchorSums::profile_thresholds().into_iter();
    let thresholds: Vec<f64> = thresholds.map(|t| t * bound).collect();
    let longest = query.slopes.largest_score * bound;
    let width = d.div_ceil(COLUMNS);
    let mut units = vec![[0.0; TILE]; d];
    let mut q = vec![[0.0; COLUMNS]; width * TILE];
    let mut gradient = vec![[0.0; COLUMNS]; width];
    let mut curvature = vec![[0.0; COLUMNS]; if parts.curvature { width * d } else { 0 }];
    for (k, t) in tiles.clone().enumerate() {
        rows.read(t);
        let live = (data.lines() - t * TILE).min(TILE);
        let (mut scores, mut weights) = ([0.0; TILE], [0.0; TILE]);
        for i in 0..live {
            let label = data.labels().get(t * TILE + i);
            let (eta, label) = (rows.eta[i], label.map_or(0.0, |y| f64::from(*y)));
            match parts.profile {
                Some(Profile::Norms) => {
                    let (_, weight) = quantize_slopes(&query.slopes, 1.0, eta, label);
                    // NaN lies beyond the last.
                    let norm = rows.norms[i] * query.slopes.larger_score(eta);
                    let place = thresholds.iter().position(|t| norm <= *t);
                    let place = place.unwrap_or(thresholds.len());
                    sums.profile[place] += i128::from(weight << PROFILE_SHIFT);
                }
                Some(Profile::Gradients) => {
                    let (score, _) = query.slopes.score.slopes(eta, label);
                    let length = (score * rows.norms[i]).abs() / longest;
                    let place = AnchorSums::place_of_gradient(length, score);
                    sums.profile[place] += 1 << (WEIGHT_BITS + PROFILE_SHIFT);
                }
                None => {}
            }
            let share = share_of_ball(rows.norms[i], bound);
            let (score, weight) = quantize_slopes(&query.slopes, share, eta, label);
            (scores[i], weights[i]) = (score as f64, weight as f64);
        }
        if parts.gradient {
            rows.quantize(GRADIENT_BITS, &mut units, &mut q);
            for (s, q) in scores.iter().zip(q.chunks_exact(width)) {
                add::<FMA, 1>(&mut gradient, [*s], [q]);
            }
        }
        if parts.curvature {
            rows.quantize(FEATURE_BITS, &mut units, &mut q);
            add_products::<FMA>(&mut curvature, &weights, &q, width);
        }
        if (k + 1).is_multiple_of(EXACT_TILES) || t + 1 == tiles.end {
            empty(&mut gradient, &mut sums.gradient);
            let mut triangle = &mut sums.curvature[..];
            for (j, row) in curvature.chunks_exact_mut(width).enumerate() {
                let (columns, rest) = triangle.split_at_mut(j + 1);
                empty(row, columns);
                triangle = rest;
            }
        }
    }
    sums
}

/// Adds `w·qqᵀ` of every row, up to the block of the diagonal.
#[inline(always)]
fn add_products<const FMA: bool>(
    sums: &mut [Columns],
    weights: &Lanes,
    q: &[Columns],
    width: usize,
) {
    let groups = weights.as_chunks::<ROWS>().0.iter();
    for (weights, q) in groups.zip(q.chunks_exact(width * ROWS)) {
        let q: [&[Columns]; ROWS] = std::array::from_fn(|r| &q[r * width..][..width]);
        for (j, sums) in sums.chunks_exact_mut(width).enumerate() {
            let scaled = std::array::from_fn(|r| weights[r] * q[r].as_flattened()[j]);
            add::<FMA, ROWS>(&mut sums[..=j / COLUMNS], scaled, q);
        }
    }
}

/// Adds multiples of some rows.
#[inline(always)]
fn add<const FMA: bool, const N: usize>(sums: &mut [Columns], by: [f64; N], q: [&[Columns]; N]) {
    for (k, sums) in sums.iter_mut().enumerate() {
        // A copy stays in registers.
        let mut sum = *sums;
        for r in 0..N {
            let q = q[r][k];
            for c in 0..COLUMNS {
                sum[c] = match FMA {
                    true => by[r].mul_add(q[c], sum[c]),
                    false => by[r] * q[c] + sum[c],
                };
            }
        }
        *sums = sum;
    }
}

/// Moves integers from exact sums in f64 to wide ones.
fn empty(from: &mut [Columns], to: &mut [i128]) {
    let from = from.as_flattened_mut();
    to.iter_mut()
        .zip(&*from)
        .for_each(|(t, f)| *t += i128::from(*f as i64));
    from.fill(0.0);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::AnchorParts;
    use super::super::cpu::InstructionSet;
    use super::*;
    use crate::model::{Lower, Metric, Slopes};
    use crate::synthetic;

    /// The sums row by row, in integers.
    fn plain(data: &Dataset, query: &AnchorQuery<'_>) -> (AnchorSums, Vec<f32>) {
        let (d, bound) = (query.at.len(), query.metric.row_bound);
        let (mut sums, mut weights) = (AnchorSums::zero(d), Vec::new());
        let (mut z, mut fine, mut q) = (vec![0.0; d], vec![0i64; d], vec![0i64; d]);
        for i in 0..data.lines() {
            data.copy_row(i, &mut z);
            let eta: f64 = z.iter().zip(query.at).map(|(x, t)| x * t).sum();
            query.metric.factor.solve(&mut z);
            let norm = z.iter().map(|v| v * v).sum::<f64>().sqrt();
            let label = f64::from(data.labels()[i]);
            let (_, whole) = quantize_slopes(&query.slopes, 1.0, eta, label);
            let place = AnchorSums::profile_thresholds()
                .iter()
                .position(|t| norm * query.slopes.larger_score(eta) <= t * bound);
            let last = sums.profile.len() - 1;
            sums.profile[place.unwrap_or(last)] += i128::from(whole << PROFILE_SHIFT);
            quantize_in_ball(GRADIENT_BITS, &z, bound, &mut fine);
            quantize_in_ball(FEATURE_BITS, &z, bound, &mut q);
            let share = share_of_ball(norm, bound);
            let (score, weight) = quantize_slopes(&query.slopes, share, eta, label);
            let mut k = 0;
            for i in 0..d {
                sums.gradient[i] += i128::from(score * fine[i]);
                for j in 0..=i {
                    sums.curvature[k] += i128::from(weight * q[i] * q[j]);
                    k += 1;
                }
            }
            let (_, w) = query.slopes.score.slopes(eta, 0.0);
            weights.push(query.slopes.influence(share, w).omega as f32);
        }
        weights.resize(data.lines().next_multiple_of(TILE), 0.0);
        (sums, weights)
    }

    /// Every instruction set and thread count has the plain sums to the bit: of rows of either
    /// storage, in the ball, on its edge and far out, more of them than one exact sum takes.
    #[test]
    fn sums_are_the_plain_ones_to_the_bit() {
        for (d, bound) in [(1usize, 3.0), (3, 0.7), (8, 1e-3), (9, 1e3), (17, 0.9)] {
            let theta: Vec<f64> = (0..d).map(|j| (j as f64).sin()).collect();
            let floats = synthetic::logistic(5_003, &theta, 3).unwrap();
            let mut entries = vec![0.0; d * d];
            for i in 0..d {
                for j in 0..=i {
                    let (a, b) = (0.7 + 0.1 * i as f64, 0.2 * ((i * 3 + j) as f64).sin());
                    entries[i * d + j] = if i == j { a } else { b };
                }
            }
            let metric = Metric {
                factor: Lower::new(entries).unwrap(),
                row_bound: bound,
            };
            for data in [floats.in_16_bits(), floats] {
                let data = Arc::new(data);
                for slopes in [Slopes::logistic(), Slopes::poisson(12.0, None)] {
                    let query = AnchorQuery {
                        at: &theta,
                        metric: &metric,
                        slopes,
                        parts: AnchorParts {
                            gradient: true,
                            curvature: true,
                            profile: Some(Profile::Norms),
                        },
                    };
                    let (sums, weights) = plain(&data, &query);
                    for set in InstructionSet::available() {
                        let got = super::super::anchor::sums(set, &data, &query).unwrap();
                        assert_eq!(got, sums, "{d} {bound} {set:?}");
                        // In one piece, so that sums are moved in between.
                        let tiles = 0..data.lines().div_ceil(TILE);
                        assert!(tiles.end > 2 * EXACT_TILES);
                        let got = set.anchor_sums(TileRows::new(&data, &query), tiles);
                        assert_eq!(got, sums, "{d} {bound} {set:?}");
                        let all = 0..data.lines().div_ceil(TILE);
                        let got = super::super::anchor::row_weights(set, &data, &query, all);
                        assert_eq!(got, weights, "{d} {bound} {set:?}");
                    }
                }
            }
        }
    }

    /// Sums at their largest are exact up to where they are moved: rows that all add the most.
    #[test]
    fn the_largest_sums_are_exact() {
        let rows = EXACT_TILES * TILE;
        for (by, most) in [(1i64 << 28, 1i64 << 14), (1 << 20, 1 << 20)] {
            let mut sum = vec![[0.0; COLUMNS]];
            for _ in 0..rows / ROWS {
                let q = [[(most - 1) as f64; COLUMNS]];
                add::<false, ROWS>(&mut sum, [by as f64; ROWS], [&q; ROWS]);
            }
            let mut wide = [0i128; COLUMNS];
            empty(&mut sum, &mut wide);
            let expected = i128::from(by) * i128::from(most - 1) * rows as i128;
            assert_eq!(wide, [expected; COLUMNS]);
        }
        assert_eq!(rows << 42, 1 << 53);
    }
}
