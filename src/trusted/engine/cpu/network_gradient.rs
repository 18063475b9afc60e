//! Gradients of a network with one hidden layer by back-propagation, 16 rows at a time.
//!
//! A row's gradient has the parts `f_h (x, 1)` and `e_k (a, 1)`, so that its norm is
//! `Σ_h (f_h r)² + Σ_k (e_k s)²`, r and s the norms of (x, 1) and (a, 1). In f32 this loses at
//! most ((F + H + K)/2 + 5)·2^-24 of itself, under the (d + 16)·2^-24 of `engine/gradient.rs`,
//! and the two roundings of `(t·f_h)·x_j` stay under the rest. A square that underflows is
//! one of `f_h r`, which bounds every coordinate it stands for.

use super::gradient::{Clip, ROUND, clip, sanitize};
use super::lanes::{Lanes, exp, multiply_add, tanh};
use super::network::{form, softmax, tile_labels};
use crate::data::TILE;
use crate::engine::GradientQuery;
use crate::model::NetworkShape;

/// Tiles of one pass over the sums: d integers of 16 lanes leave the first-level cache, and
/// are read and written once for so many.
const STRIP: usize = 16;

/// Outputs become `∂ log p(y | o)/∂o`.
#[inline(always)]
fn errors<const FMA: bool>(outputs: &mut [Lanes], labels: &Lanes) {
    if let [o] = outputs {
        for i in 0..TILE {
            o[i] = labels[i] / (1.0 + exp::<FMA>(labels[i] * o[i]));
        }
        return;
    }
    softmax::<FMA>(outputs);
    // 1 − p_y as the sum of the others: no cancellation.
    let mut others = [0.0; TILE];
    for (k, p) in outputs.iter().enumerate() {
        for i in 0..TILE {
            others[i] += if labels[i] == k as f32 { 0.0 } else { p[i] };
        }
    }
    for (k, p) in outputs.iter_mut().enumerate() {
        for i in 0..TILE {
            p[i] = if labels[i] == k as f32 {
                others[i]
            } else {
                -p[i]
            };
        }
    }
}

/// Rows whose gradients are wanted.
pub(super) struct Block<'a> {
    pub query: &'a GradientQuery,
    /// The first chain.
    pub first: usize,
    pub tiles: &'a [f32],
    pub labels: &'a [f32],
    pub rows: usize,
}

/// Where they are put.
pub(super) struct Scratch {
    /// `[chain][coordinate]`, with the bits of [`ROUND`] once a tile.
    pub integers: Vec<[u32; TILE]>,
    /// a, f and e of the tiles of a strip.
    parts: Vec<Lanes>,
    pub clipped: Vec<u64>,
}

impl Scratch {
    pub fn new(shape: NetworkShape, chains: usize) -> Self {
        Scratch {
            integers: vec![[0; TILE]; shape.parameters() * chains],
            parts: vec![[0.0; TILE]; STRIP * per_tile(shape)],
            clipped: vec![0; chains],
        }
    }
}

/// Of one tile: a (H), f (H), e (K).
fn per_tile(shape: NetworkShape) -> usize {
    2 * shape.hidden + shape.outputs
}

/// Adds the quantised gradients of a block of rows.
#[inline(always)]
pub(super) fn gradients<const FMA: bool>(
    shape: NetworkShape,
    block: &Block<'_>,
    scratch: &mut Scratch,
) {
    let (d, width) = (shape.parameters(), shape.features * TILE);
    let used = block.rows.div_ceil(TILE);
    let tiles = &block.tiles[..used * width];
    for (s, strip) in tiles.chunks(width * STRIP).enumerate() {
        for (c, integers) in scratch.integers.chunks_exact_mut(d).enumerate() {
            let weights = block.query.weights(block.first + c);
            let parts = scratch.parts.chunks_exact_mut(per_tile(shape));
            for (t, (tile, part)) in strip.chunks_exact(width).zip(parts).enumerate() {
                let t = s * STRIP + t;
                let labels = tile_labels(block.labels, t);
                let live = (block.rows - t * TILE).min(TILE);
                let tile = tile.as_chunks().0;
                backward::<FMA>(shape, weights, tile, &labels, part);
                scratch.clipped[c] += scale_parts(block, shape, tile, live, part);
            }
            add_parts::<FMA>(shape, strip, &scratch.parts, integers);
        }
    }
}

/// a, f and e of one tile, unscaled.
#[inline(always)]
fn backward<const FMA: bool>(
    shape: NetworkShape,
    weights: &[f32],
    tile: &[Lanes],
    labels: &Lanes,
    part: &mut [Lanes],
) {
    let hidden = shape.hidden;
    let layers = shape.layers(weights);
    let (a, rest) = part.split_at_mut(hidden);
    let (f, e) = rest.split_at_mut(hidden);
    for (e, b) in e.iter_mut().zip(layers.second_bias) {
        *e = [*b; TILE];
    }
    for (h, w) in layers.first.chunks_exact(shape.features).enumerate() {
        let z = form::<FMA>(tile, w, layers.first_bias[h]);
        for i in 0..TILE {
            (a[h][i], f[h][i]) = tanh::<FMA>(z[i]);
        }
        for (k, e) in e.iter_mut().enumerate() {
            let w = layers.second[k * hidden + h];
            for i in 0..TILE {
                e[i] = multiply_add::<FMA>(w, a[h][i], e[i]);
            }
        }
    }
    errors::<FMA>(e, labels);
    for (h, f) in f.iter_mut().enumerate() {
        let mut back = [0.0; TILE];
        for (k, e) in e.iter().enumerate() {
            let w = layers.second[k * hidden + h];
            for i in 0..TILE {
                back[i] = multiply_add::<FMA>(w, e[i], back[i]);
            }
        }
        for i in 0..TILE {
            f[i] *= back[i];
        }
    }
    sanitize(part.as_flattened_mut());
}

/// `√(1 + Σ_j v_j²)` of each lane.
#[inline(always)]
fn norm_with_one(values: &[Lanes]) -> Lanes {
    let mut sum = [1.0f32; TILE];
    for v in values {
        for i in 0..TILE {
            sum[i] += v[i] * v[i];
        }
    }
    for v in &mut sum {
        *v = v.sqrt();
    }
    sum
}

/// Scales f and e of one tile by the clip factor of each row; returns the rows clipped.
#[inline(always)]
fn scale_parts(
    block: &Block<'_>,
    shape: NetworkShape,
    tile: &[Lanes],
    live: usize,
    part: &mut [Lanes],
) -> u64 {
    let (a, rest) = part.split_at_mut(shape.hidden);
    let (row, activation) = (norm_with_one(tile), norm_with_one(a));
    let mut square = [0.0f32; TILE];
    for (v, by) in rest.iter().zip(
        std::iter::repeat_n(&row, shape.hidden)
            .chain(std::iter::repeat_n(&activation, shape.outputs)),
    ) {
        for i in 0..TILE {
            let length = v[i] * by[i];
            square[i] += length * length;
        }
    }
    let mut factor = [1.0; TILE];
    let clipped = clip(&Clip::of(block.query), &square, live, &mut factor);
    for v in rest {
        for i in 0..TILE {
            v[i] *= factor[i];
        }
    }
    clipped
}

/// Hidden units that share one read of the rows.
const UNITS: usize = 4;

/// Adds the quantised coordinates of a strip.
#[inline(always)]
fn add_parts<const FMA: bool>(
    shape: NetworkShape,
    strip: &[f32],
    parts: &[Lanes],
    integers: &mut [[u32; TILE]],
) {
    let NetworkShape {
        features, hidden, ..
    } = shape;
    let width = per_tile(shape);
    let rows = strip.as_chunks::<TILE>().0;
    let used = rows.len() / features;
    let parts = &parts[..used * width];
    let (first, rest) = integers.split_at_mut(features * hidden);
    let (first_bias, rest) = rest.split_at_mut(hidden);
    let (second, second_bias) = rest.split_at_mut(hidden * shape.outputs);
    let one = [1.0; TILE];
    for (block, sums) in first.chunks_mut(features * UNITS).enumerate() {
        let units = sums.len() / features;
        let mut factors = [[[0.0f32; TILE]; UNITS]; STRIP];
        for (by, part) in factors.iter_mut().zip(parts.chunks_exact(width)) {
            let start = hidden + block * UNITS;
            by[..units].copy_from_slice(&part[start..start + units]);
        }
        for j in 0..features {
            let mut sum = [[0u32; TILE]; UNITS];
            for (row, by) in rows.chunks_exact(features).zip(&factors) {
                for u in 0..UNITS {
                    add::<FMA>(&mut sum[u], &row[j], &by[u]);
                }
            }
            for (total, sum) in sums[j..].iter_mut().step_by(features).zip(&sum) {
                for i in 0..TILE {
                    total[i] = total[i].wrapping_add(sum[i]);
                }
            }
        }
    }
    for part in parts.chunks_exact(width) {
        let (a, rest) = part.split_at(hidden);
        let (f, e) = rest.split_at(hidden);
        for (sum, f) in first_bias.iter_mut().zip(f) {
            add::<FMA>(sum, &one, f);
        }
        for (sums, e) in second.chunks_exact_mut(hidden).zip(e) {
            for (sum, a) in sums.iter_mut().zip(a) {
                add::<FMA>(sum, a, e);
            }
        }
        for (sum, e) in second_bias.iter_mut().zip(e) {
            add::<FMA>(sum, &one, e);
        }
    }
}

/// Adds `round(v·by)`, and the bits of [`ROUND`], to a coordinate's sums.
#[inline(always)]
fn add<const FMA: bool>(sum: &mut [u32; TILE], v: &Lanes, by: &Lanes) {
    for i in 0..TILE {
        let bits = multiply_add::<FMA>(v[i], by[i], ROUND).to_bits();
        sum[i] = sum[i].wrapping_add(bits);
    }
}
