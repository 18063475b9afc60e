//! Ratios and gradients of a network with one hidden layer, 16 rows at a time. Twin:
//! `model/mlp.rs` (f64 oracle); no shader, the GPU engine hands networks to the CPU.
//!
//! A ratio is made from θ and Δθ without a difference of two log likelihoods: the change of
//! tanh, of the outputs and of the head are each computed as a change.
//!
//! Loops over lanes are written out: a closure is compiled without the caller's instruction set.
//!
//! A row's gradient has the parts `f_h (x, 1)` and `e_k (a, 1)`, so that its norm is
//! `Σ_h (f_h r)² + Σ_k (e_k s)²`, r and s the norms of (x, 1) and (a, 1). In f32 this loses at
//! most ((F + H + K)/2 + 5)·2^-24 of itself, under the (d + 16)·2^-24 of `engine/gradient.rs`,
//! and the two roundings of `(t·f_h)·x_j` stay under the rest. A square that underflows is
//! one of `f_h r`, which bounds every coordinate it stands for.

use super::dispatch::InstructionSet;
use super::gradient::{Block, ROUND, Scratch, clip, form, sanitize};
use super::lanes::{
    Lanes, exp, exp_m1, ln, ln_1p, multiply_add, quantize, softplus_difference, tanh, tanh_change,
};
use crate::data::TILE;
use crate::engine::{RatioQuery, RatioSum};
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
        let (mut a, mut da) = ([0.0; TILE], [0.0; TILE]);
        for i in 0..TILE {
            (a[i], da[i]) = tanh_change::<FMA>(z[i], dz[i]);
        }
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
        let mut ratios = [0.0; TILE];
        for i in 0..TILE {
            let y = labels[i];
            ratios[i] = -softplus_difference::<FMA>(-y * outputs[0][i], -y * moves[0][i]);
        }
        return ratios;
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
    let mut ratios = [0.0; TILE];
    for i in 0..TILE {
        let (plain, near) = (ln::<FMA>(large[i]), ln_1p::<FMA>(small[i]));
        ratios[i] = -if small[i] < -0.5 { plain } else { near };
    }
    ratios
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

/// Lanes that [`gradients`] needs beside the rows.
pub(super) fn scratch_lanes(shape: NetworkShape) -> usize {
    STRIP * per_tile(shape)
}

/// Of one tile: a (H), f (H), e (K).
fn per_tile(shape: NetworkShape) -> usize {
    2 * shape.hidden + shape.outputs
}

/// Twin of [`super::gradient::gradients`] for networks.
#[inline(always)]
pub(super) fn gradients<const FMA: bool>(
    block: &Block<'_>,
    scratch: &mut Scratch,
    shape: NetworkShape,
) {
    let (d, width) = (shape.parameters(), shape.features * TILE);
    let used = block.rows.div_ceil(TILE);
    let tiles = &block.tiles[..used * width];
    for (s, strip) in tiles.chunks(width * STRIP).enumerate() {
        for (c, integers) in scratch.integers.chunks_exact_mut(d).enumerate() {
            let weights = block.query.weights(block.first + c);
            let parts = scratch.gradient.chunks_exact_mut(per_tile(shape));
            for (t, (tile, part)) in strip.chunks_exact(width).zip(parts).enumerate() {
                let t = s * STRIP + t;
                let labels = tile_labels(block.labels, t);
                let live = (block.rows - t * TILE).min(TILE);
                let tile = tile.as_chunks().0;
                backward::<FMA>(shape, weights, tile, &labels, part);
                scratch.clipped[c] += scale_parts(block, shape, tile, live, part);
            }
            add_parts::<FMA>(shape, strip, &scratch.gradient, integers);
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
    sanitize(part);
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
    let mut factor = [block.query.scale(); TILE];
    let clipped = clip(&mut factor, &square, block.query.limit(), live);
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
