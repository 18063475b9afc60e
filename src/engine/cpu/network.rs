//! Ratios and gradients of a network with one hidden layer, 16 rows at a time. Twin:
//! `model/mlp.rs` (f64 oracle); no shader, the GPU engine hands networks to the CPU.
//!
//! A ratio is made from θ and Δθ without a difference of two log likelihoods: the change of
//! tanh, of the outputs and of the head are each computed as a change.
//!
//! A row's gradient has the parts `f_h (x, 1)` and `e_k (a, 1)`, so that its norm is
//! `Σ_h (f_h r)² + Σ_k (e_k s)²`, r and s the norms of (x, 1) and (a, 1). In f32 this loses at
//! most ((F + H + K)/2 + 5)·2^-24 of itself, under the (d + 16)·2^-24 of `engine/gradient.rs`,
//! and the two roundings of `(t·f_h)·x_j` stay under the rest. A square that underflows is
//! one of `f_h r`, which bounds every coordinate it stands for.

use super::dispatch::InstructionSet;
use super::gradient::{Clip, ROUND, clip, sanitize};
use super::lanes::{
    Lanes, exp, exp_m1, ln, ln_1p, multiply_add, quantize, softplus_difference, tanh, tanh_change,
};
use crate::data::TILE;
use crate::engine::{GradientQuery, RatioQuery, RatioSum};
use crate::model::NetworkShape;

/// Tiles of one pass over the sums: d integers of 16 lanes leave the first-level cache, and
/// are read and written once for so many.
const STRIP: usize = 16;

/// Adds the ratios of `rows` rows, laid out in `tiles`, to the sums of all chains.
pub(super) fn sum_tiles(
    set: InstructionSet,
    query: &RatioQuery,
    shape: NetworkShape,
    tiles: &[f32],
    labels: &[f32],
    rows: usize,
    sums: &mut [RatioSum],
) {
    let width = shape.features * TILE;
    for (t, tile) in tiles.chunks_exact(width).enumerate() {
        let labels = tile_labels(labels, t);
        let live = rows.saturating_sub(t * TILE).min(TILE);
        for (c, sum) in sums.iter_mut().enumerate() {
            let bound = query.grid(c).bound();
            for q in &ratio_tile(set, query, shape, c, tile, &labels)[..live] {
                sum.steps += i64::from(*q);
                sum.saturated += u64::from(q.abs() == bound);
            }
        }
    }
}

/// Quantised ratios of one tile for one chain.
pub(super) fn ratio_tile(
    set: InstructionSet,
    query: &RatioQuery,
    shape: NetworkShape,
    chain: usize,
    tile: &[f32],
    labels: &Lanes,
) -> [i32; TILE] {
    let weights = query.weights_of(chain);
    let ratios = set.network_ratios(shape, weights, tile.as_chunks().0, labels);
    let (scale, bound) = (query.scale(chain), query.grid(chain).bound());
    ratios.map(|r| quantize(r * scale, bound))
}

/// Labels of tile t; 0 where there are none.
fn tile_labels(labels: &[f32], t: usize) -> Lanes {
    let labels = labels.get(t * TILE..(t + 1) * TILE);
    labels.map_or([0.0; TILE], |l| std::array::from_fn(|i| l[i]))
}

/// Untempered ratios of one tile; `weights`: θ, then Δθ.
#[inline(always)]
pub(super) fn ratios<const FMA: bool>(
    shape: NetworkShape,
    weights: &[f32],
    tile: &[Lanes],
    labels: &Lanes,
) -> Lanes {
    let (f, k) = (shape.features, shape.outputs);
    let (theta, step) = weights.split_at(shape.parameters());
    let (now, change) = (shape.layers(theta), shape.layers(step));
    let mut outputs: Vec<Lanes> = now.second_bias.iter().map(|b| [*b; TILE]).collect();
    let mut moves: Vec<Lanes> = change.second_bias.iter().map(|b| [*b; TILE]).collect();
    for h in 0..shape.hidden {
        let range = h * f..(h + 1) * f;
        let z = form::<FMA>(tile, &now.first[range.clone()], now.first_bias[h]);
        let dz = form::<FMA>(tile, &change.first[range], change.first_bias[h]);
        let a: Lanes = std::array::from_fn(|i| tanh::<FMA>(z[i]).0);
        let da: Lanes = std::array::from_fn(|i| tanh_change::<FMA>(z[i], dz[i]));
        for o in 0..k {
            let (w, dw) = (
                now.second[o * shape.hidden + h],
                change.second[o * shape.hidden + h],
            );
            let moved = w + dw;
            for i in 0..TILE {
                outputs[o][i] = multiply_add::<FMA>(w, a[i], outputs[o][i]);
                let by_weight = multiply_add::<FMA>(dw, a[i], moves[o][i]);
                moves[o][i] = multiply_add::<FMA>(moved, da[i], by_weight);
            }
        }
    }
    if k == 1 {
        return std::array::from_fn(|i| {
            let y = labels[i];
            -softplus_difference::<FMA>(-y * outputs[0][i], -y * moves[0][i])
        });
    }
    softmax_ratios::<FMA>(&mut outputs, &moves, labels)
}

/// `−log Σ_k p_k e^{D_k}`, `D_k = Δo_k − Δo_y`, exponents cut at ±87; `outputs` becomes p.
#[inline(always)]
fn softmax_ratios<const FMA: bool>(
    outputs: &mut [Lanes],
    moves: &[Lanes],
    labels: &Lanes,
) -> Lanes {
    softmax::<FMA>(outputs);
    let mut own = [0.0; TILE];
    for (k, m) in moves.iter().enumerate() {
        for i in 0..TILE {
            own[i] = if labels[i] == k as f32 { m[i] } else { own[i] };
        }
    }
    let (mut small, mut large) = ([0.0; TILE], [0.0; TILE]);
    for (p, m) in outputs.iter().zip(moves) {
        for i in 0..TILE {
            let d = m[i] - own[i];
            // NaN stays: min and max would drop it.
            let d = if d > 87.0 { 87.0 } else { d };
            let d = if d < -87.0 { -87.0 } else { d };
            small[i] = multiply_add::<FMA>(p[i], exp_m1::<FMA>(d), small[i]);
            large[i] = multiply_add::<FMA>(p[i], exp::<FMA>(d), large[i]);
        }
    }
    // Near 1 the sum of changes is accurate, near 0 the sum of positive terms.
    std::array::from_fn(|i| {
        if small[i] < -0.5 {
            -ln::<FMA>(large[i])
        } else {
            -ln_1p::<FMA>(small[i])
        }
    })
}

/// Outputs become shares p of their softmax.
#[inline(always)]
fn softmax<const FMA: bool>(outputs: &mut [Lanes]) {
    let mut top = [f32::NEG_INFINITY; TILE];
    for o in outputs.iter() {
        for i in 0..TILE {
            top[i] = if o[i] > top[i] { o[i] } else { top[i] };
        }
    }
    let mut sum = [0.0; TILE];
    for o in outputs.iter_mut() {
        for i in 0..TILE {
            o[i] = exp::<FMA>(o[i] - top[i]);
            sum[i] += o[i];
        }
    }
    for o in outputs {
        for i in 0..TILE {
            o[i] /= sum[i];
        }
    }
}

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

/// `o + Σ_j w_j x_j` of a tile.
#[inline(always)]
fn form<const FMA: bool>(tile: &[Lanes], weights: &[f32], offset: f32) -> Lanes {
    let mut sum = [offset; TILE];
    for (x, w) in tile.iter().zip(weights) {
        for i in 0..TILE {
            sum[i] = multiply_add::<FMA>(*w, x[i], sum[i]);
        }
    }
    sum
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

/// Scales f and e of one tile by the clip factor of each row; returns the rows clipped.
#[inline(always)]
fn scale_parts(
    block: &Block<'_>,
    shape: NetworkShape,
    tile: &[Lanes],
    live: usize,
    part: &mut [Lanes],
) -> u64 {
    let norm = |values: &[Lanes]| -> Lanes {
        let mut sum = [1.0f32; TILE];
        for v in values {
            for i in 0..TILE {
                sum[i] += v[i] * v[i];
            }
        }
        sum.map(f32::sqrt)
    };
    let (a, rest) = part.split_at_mut(shape.hidden);
    let (row, activation) = (norm(tile), norm(a));
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

/// Adds the quantised coordinates of a strip.
#[inline(always)]
fn add_parts<const FMA: bool>(
    shape: NetworkShape,
    strip: &[f32],
    parts: &[Lanes],
    integers: &mut [[u32; TILE]],
) {
    let (features, hidden, outputs) = (shape.features, shape.hidden, shape.outputs);
    let width = per_tile(shape);
    let rows = strip.as_chunks::<TILE>().0;
    let tiles = || rows.chunks_exact(features).zip(parts.chunks_exact(width));
    let add = |sum: &mut [u32; TILE], v: &Lanes, by: &Lanes| {
        for i in 0..TILE {
            let bits = multiply_add::<FMA>(v[i], by[i], ROUND).to_bits();
            sum[i] = sum[i].wrapping_add(bits);
        }
    };
    let one = [1.0; TILE];
    let (first, rest) = integers.split_at_mut(features * hidden);
    let (first_bias, rest) = rest.split_at_mut(hidden);
    let (second, second_bias) = rest.split_at_mut(hidden * outputs);
    for (h, sums) in first.chunks_exact_mut(features).enumerate() {
        for (j, sum) in sums.iter_mut().enumerate() {
            for (row, part) in tiles() {
                add(sum, &row[j], &part[hidden + h]);
            }
        }
        for (_, part) in tiles() {
            add(&mut first_bias[h], &one, &part[hidden + h]);
        }
    }
    for (k, sums) in second.chunks_exact_mut(hidden).enumerate() {
        for (h, sum) in sums.iter_mut().enumerate() {
            for (_, part) in tiles() {
                add(sum, &part[h], &part[2 * hidden + k]);
            }
        }
        for (_, part) in tiles() {
            add(&mut second_bias[k], &one, &part[2 * hidden + k]);
        }
    }
}
