//! Ratios of a network with one hidden layer, 16 rows at a time. Twin: `model/mlp.rs` (f64
//! oracle); no shader, the GPU engine hands networks to the CPU.
//!
//! A ratio is made from θ and Δθ without a difference of two log likelihoods: the change of
//! tanh, of the outputs and of the head are each computed as a change.
//!
//! Loops over lanes are written out: a closure is compiled without the caller's instruction set.

use super::dispatch::InstructionSet;
use super::lanes::{
    Lanes, exp, exp_m1, ln, ln_1p, multiply_add, quantize, softplus_difference, tanh_change,
};
use super::network_remainder::remainders;
use crate::data::TILE;
use crate::engine::{RatioQuery, RatioSum};
use crate::model::{NetworkShape, RowFunction};

/// What belongs to the rows of some tiles beside their features.
pub(super) struct Rows<'a> {
    pub labels: &'a [f32],
    /// Weights at an anchor; empty where all are 1.
    pub weights: &'a [f32],
    /// Rows there are.
    pub live: usize,
}

/// Adds the ratios of `rows`, laid out in `tiles`, to the sums of all chains.
pub(super) fn sum_tiles(
    set: InstructionSet,
    query: &RatioQuery,
    tiles: &[f32],
    rows: &Rows<'_>,
    sums: &mut [RatioSum],
) {
    let width = query.features() * TILE;
    for (t, tile) in tiles.chunks_exact(width).enumerate() {
        let labels = tile_labels(rows.labels, t);
        let weights = rows.weights.as_chunks().0.get(t).copied();
        let weights = weights.unwrap_or([1.0; TILE]);
        let live = rows.live.saturating_sub(t * TILE).min(TILE);
        for (c, sum) in sums.iter_mut().enumerate() {
            let bound = query.grid(c).bound();
            for q in &ratio_tile(set, query, c, tile, &labels, &weights)[..live] {
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
    chain: usize,
    tile: &[f32],
    labels: &Lanes,
    row_weights: &Lanes,
) -> [i32; TILE] {
    let weights = query.weights_of(chain);
    let mut ratios = set.network_ratios(query.function(), weights, tile.as_chunks().0, labels);
    ratios
        .iter_mut()
        .zip(row_weights)
        .for_each(|(r, w)| *r *= w);
    let (scale, bound) = (query.scale(chain), query.grid(chain).bound());
    ratios.map(|r| quantize(r * scale, bound))
}

/// Labels of tile t; 0 where there are none.
pub(super) fn tile_labels(labels: &[f32], t: usize) -> Lanes {
    let labels = labels.get(t * TILE..(t + 1) * TILE);
    labels.map_or([0.0; TILE], |l| std::array::from_fn(|i| l[i]))
}

/// Untempered ratios of one tile, or what of them is left over an expansion.
#[inline(always)]
pub(super) fn rows<const FMA: bool>(
    function: RowFunction,
    weights: &[f32],
    tile: &[Lanes],
    labels: &Lanes,
) -> Lanes {
    match function {
        RowFunction::Network(shape) => ratios::<FMA>(shape, weights, tile, labels),
        RowFunction::Layers(network) => network.ratios::<FMA>(weights, tile, labels),
        RowFunction::NetworkRemainder(shape) => remainders::<FMA>(shape, weights, tile, labels),
        // Other rows never come here.
        _ => [0.0; TILE],
    }
}

/// Untempered ratios of one tile; `weights`: θ, then Δθ.
#[inline(always)]
fn ratios<const FMA: bool>(
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
pub(super) fn softmax<const FMA: bool>(outputs: &mut [Lanes]) {
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
