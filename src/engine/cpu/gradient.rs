//! Gradient sums: a row's gradient, its clip factor and its integers, tile by tile. One read
//! of the rows from memory serves every chain: a tile stays in the first-level cache.

use super::dispatch::InstructionSet;
use super::lanes::{Lanes, exp, multiply_add};
use super::network;
use crate::data::TILE;
use crate::engine::gradient::LARGEST_FACTOR;
use crate::engine::{GradientQuery, GradientSum};
use crate::model::{GradientFunction, Score};

/// 1.5·2^23: in `v + ROUND` the low bits are v's nearest integer.
pub(super) const ROUND: f32 = 12_582_912.0;
const ROUND_BITS: u32 = 0x4b40_0000;
/// Tiles a lane's integers can take: 2^10 · 2^20 fits an i32.
pub(super) const MOST_TILES: usize = 1024;

/// Adds the gradients of `rows` ≤ 16·[`MOST_TILES`] rows, laid out in `tiles`, to the sums of
/// chains `first..first + sums.len()`.
pub(super) fn sum_tiles(
    set: InstructionSet,
    query: &GradientQuery,
    first: usize,
    tiles: &[f32],
    labels: &[f32],
    rows: usize,
    sums: &mut [GradientSum],
) {
    let d = query.dim();
    let used = rows.div_ceil(TILE);
    let mut scratch = Scratch {
        integers: vec![[0u32; TILE]; d * sums.len()],
        gradient: vec![[0.0; TILE]; scratch_lanes(query)],
        clipped: vec![0; sums.len()],
    };
    set.gradients(
        &Block {
            query,
            first,
            tiles,
            labels,
            rows,
        },
        &mut scratch,
    );
    // Every lane carries the bits of ROUND once a tile.
    let excess = ROUND_BITS.wrapping_mul(used as u32);
    for (c, sum) in sums.iter_mut().enumerate() {
        for (total, lanes) in sum.steps.iter_mut().zip(&scratch.integers[c * d..]) {
            *total += lanes
                .iter()
                .map(|l| i64::from(l.wrapping_sub(excess) as i32))
                .sum::<i64>();
        }
        sum.clipped += scratch.clipped[c];
    }
}

/// Tiles of lanes that a row's gradient needs beside the row.
fn scratch_lanes(query: &GradientQuery) -> usize {
    match query.function() {
        GradientFunction::Score(_) => 0,
        GradientFunction::Affine | GradientFunction::Mixture => query.dim(),
        GradientFunction::Network(shape) => network::scratch_lanes(shape),
    }
}

/// What one call computes.
pub(super) struct Block<'a> {
    pub query: &'a GradientQuery,
    pub first: usize,
    pub tiles: &'a [f32],
    pub labels: &'a [f32],
    pub rows: usize,
}

/// Where it is put.
pub(super) struct Scratch {
    /// `[chain][coordinate]`, with the bits of [`ROUND`] once a tile.
    pub integers: Vec<[u32; TILE]>,
    pub gradient: Vec<Lanes>,
    pub clipped: Vec<u64>,
}

/// Plain loops over lanes that vectorise for the caller's instruction set.
#[inline(always)]
pub(super) fn gradients<const FMA: bool>(block: &Block<'_>, scratch: &mut Scratch) {
    let query = block.query;
    if let GradientFunction::Network(shape) = query.function() {
        return network::gradients::<FMA>(block, scratch, shape);
    }
    let (d, features) = (query.dim(), query.features());
    let tiles = block.tiles.chunks_exact(features * TILE);
    for (t, tile) in tiles.take(block.rows.div_ceil(TILE)).enumerate() {
        let tile = tile.as_chunks::<TILE>().0;
        let live = (block.rows - t * TILE).min(TILE);
        let labels: Lanes = match block.labels.get(t * TILE..(t + 1) * TILE) {
            Some(labels) => std::array::from_fn(|i| labels[i]),
            None => [0.0; TILE],
        };
        let square = match query.function() {
            GradientFunction::Score(_) => squares::<FMA>(tile),
            _ => [0.0; TILE],
        };
        for (k, integers) in scratch.integers.chunks_exact_mut(d).enumerate() {
            let c = block.first + k;
            let (offsets, weights) = (query.offsets(c), query.weights(c));
            let (mut factor, square, gradient) = match query.function() {
                GradientFunction::Score(score) => {
                    let eta = form::<FMA>(tile, weights, 0.0);
                    let mut t = scores::<FMA>(score, &eta, &labels);
                    t.iter_mut().for_each(|t| *t *= query.scale());
                    (t, square, tile)
                }
                GradientFunction::Affine => {
                    let rows = weights.chunks_exact(features);
                    for ((v, w), o) in scratch.gradient.iter_mut().zip(rows).zip(offsets) {
                        *v = form::<FMA>(tile, w, *o);
                    }
                    sanitize(&mut scratch.gradient);
                    let square = squares::<FMA>(&scratch.gradient);
                    ([query.scale(); TILE], square, &scratch.gradient[..])
                }
                // Networks have left above.
                GradientFunction::Mixture | GradientFunction::Network(_) => {
                    mixture::<FMA>(tile, offsets, weights, &mut scratch.gradient);
                    sanitize(&mut scratch.gradient);
                    let square = squares::<FMA>(&scratch.gradient);
                    ([query.scale(); TILE], square, &scratch.gradient[..])
                }
            };
            scratch.clipped[k] += clip(&mut factor, &square, query.limit(), live);
            for (sum, v) in integers.iter_mut().zip(gradient) {
                for i in 0..TILE {
                    let bits = multiply_add::<FMA>(v[i], factor[i], ROUND).to_bits();
                    sum[i] = sum[i].wrapping_add(bits);
                }
            }
        }
    }
}

/// `o + Σ_j w_j x_j` of a tile.
#[inline(always)]
pub(super) fn form<const FMA: bool>(tile: &[Lanes], weights: &[f32], offset: f32) -> Lanes {
    let mut sum = [offset; TILE];
    for (x, w) in tile.iter().zip(weights) {
        for i in 0..TILE {
            sum[i] = multiply_add::<FMA>(*w, x[i], sum[i]);
        }
    }
    sum
}

/// `Σ_j v_j²` of each lane.
#[inline(always)]
fn squares<const FMA: bool>(values: &[Lanes]) -> Lanes {
    let mut sum = [0.0; TILE];
    for v in values {
        for i in 0..TILE {
            sum[i] = multiply_add::<FMA>(v[i], v[i], sum[i]);
        }
    }
    sum
}

/// Not a number, or too large to square, becomes 0: such a coordinate says nothing.
#[inline(always)]
pub(super) fn sanitize(values: &mut [Lanes]) {
    for lanes in values {
        for v in lanes {
            *v = if v.abs() <= 1e18 { *v } else { 0.0 };
        }
    }
}

/// The scores s(η, y) of a tile.
#[inline(always)]
fn scores<const FMA: bool>(score: Score, eta: &Lanes, labels: &Lanes) -> Lanes {
    std::array::from_fn(|i| match score {
        Score::Logistic => labels[i] / (1.0 + exp::<FMA>(labels[i] * eta[i])),
        Score::Linear => labels[i] - eta[i],
        Score::Poisson => labels[i] - exp::<FMA>(eta[i]),
    })
}

/// The mixture's two coordinates of a tile of one feature.
#[inline(always)]
fn mixture<const FMA: bool>(tile: &[Lanes], offsets: &[f32], weights: &[f32], out: &mut [Lanes]) {
    let first = form::<FMA>(tile, &weights[..1], offsets[0]);
    let second = form::<FMA>(tile, &weights[1..2], offsets[1]);
    let odds = form::<FMA>(tile, &weights[2..], offsets[2]);
    for i in 0..TILE {
        let share = 1.0 / (1.0 + exp::<FMA>(-odds[i]));
        out[0][i] = multiply_add::<FMA>(share, second[i] - first[i], first[i]);
        out[1][i] = share * second[i];
    }
}

/// Scales down the factors t of rows with `|t|·√square > limit`, and zeroes those of rows past
/// the last one and those that are not numbers; returns how many live rows were touched.
#[inline(always)]
pub(super) fn clip(factor: &mut Lanes, square: &Lanes, limit: f32, live: usize) -> u64 {
    let mut clipped = 0;
    for i in 0..TILE {
        let norm = square[i].sqrt();
        let t = factor[i];
        let inside = t.abs() * norm <= limit && t.abs() <= LARGEST_FACTOR;
        // The last factor covers the rounding of root, quotient and product.
        let edge = limit / norm * (1.0 - 1e-6);
        let edge = if edge <= LARGEST_FACTOR {
            edge
        } else {
            LARGEST_FACTOR
        };
        let possible = norm > 0.0 && norm < f32::INFINITY && !t.is_nan() && i < live;
        let scaled = if possible { edge.copysign(t) } else { 0.0 };
        factor[i] = if inside && i < live { t } else { scaled };
        clipped += u64::from(!inside && i < live);
    }
    clipped
}
