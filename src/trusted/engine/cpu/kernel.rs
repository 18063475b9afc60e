//! The inner loops: affine forms of a strip of tiles for a group of chains, then the
//! row function, quantisation and integer sums.

use super::dispatch::InstructionSet;
use super::gradient;
use super::lanes::{chebyshev, poisson_ratio, quantize, softplus_difference};
use crate::data::{Grid, TILE, Tiles, share_of};
use crate::engine::{RatioQuery, RatioSum};
use crate::math::single_remainder::{exponential_difference, weighted_remainder_difference};
use crate::model::RowFunction;

/// Chains that share one read of a tile.
pub(super) const GROUP: usize = 4;

/// Coefficients of one group of chains, repacked for the inner loop.
pub(super) struct Group {
    /// Index of the first chain.
    pub first: usize,
    /// Chains in the group, ≤ GROUP.
    pub chains: usize,
    function: RowFunction,
    /// `offsets[k*chains + c]`.
    offsets: Vec<f32>,
    /// `weights[j*K*chains + k*chains + c]`.
    weights: Vec<f32>,
    scales: Vec<f32>,
    bounds: Vec<i32>,
    /// The row function's constants, chain by chain.
    constants: Vec<Vec<f32>>,
}

impl Group {
    /// Splits a query's chains into groups of 4, 2 and 1.
    pub fn split(query: &RatioQuery) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut first = 0;
        while first < query.chains() {
            let chains = match query.chains() - first {
                n if n >= GROUP => GROUP,
                n if n >= 2 => 2,
                _ => 1,
            };
            groups.push(Group::new(query, first, chains));
            first += chains;
        }
        groups
    }

    /// The single chain `first`.
    pub fn single(query: &RatioQuery, first: usize) -> Group {
        Group::new(query, first, 1)
    }

    fn new(query: &RatioQuery, first: usize, chains: usize) -> Group {
        let k = query.function().forms();
        let each = |f: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
            (0..k)
                .flat_map(|k| (0..chains).map(move |c| (first + c, k)))
                .map(|(c, k)| f(c, k))
                .collect()
        };
        Group {
            first,
            chains,
            function: query.function(),
            offsets: each(&|c, k| query.offset(c, k)),
            weights: (0..query.features())
                .flat_map(|j| each(&|c, k| query.weight(c, k, j)))
                .collect(),
            scales: (0..chains).map(|c| query.scale(first + c)).collect(),
            bounds: (0..chains).map(|c| query.grid(first + c).bound()).collect(),
            constants: (0..chains)
                .map(|c| query.constants(first + c).to_vec())
                .collect(),
        }
    }
}

/// What rows have beside their features: labels, weights at an anchor where they count, and their
/// shares of the largest row weight where these differ.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    pub labels: &'a [f32],
    pub weights: &'a [f32],
    pub shares: &'a [f32],
}

impl<'a> Beside<'a> {
    /// Of the rows from `row` on.
    fn from(self, row: usize) -> Self {
        let part = |values: &'a [f32]| values.get(row..).unwrap_or(&[]);
        Beside {
            labels: part(self.labels),
            weights: part(self.weights),
            shares: part(self.shares),
        }
    }
}

/// Adds the sums of `rows` rows, laid out in `tiles`, to `sums` of all groups' chains.
pub(super) fn sum_tiles(
    set: InstructionSet,
    groups: &[Group],
    tiles: Tiles<'_>,
    beside: Beside<'_>,
    rows: usize,
    sums: &mut [RatioSum],
) {
    let mut room = Vec::new();
    let width = |g: &Group| g.weights.len() / g.offsets.len() * TILE;
    let width = groups.first().map_or(TILE, width);
    for (t, strip) in tiles.chunks(width * STRIP).enumerate() {
        let live = (rows - t * STRIP_ROWS).min(STRIP_ROWS);
        let beside = beside.from(t * STRIP_ROWS);
        // Several groups read a strip's values from the first-level cache.
        let strip = match groups {
            [_] if set.widens() => strip,
            _ => Tiles::F32(floats(set, strip, &mut room)),
        };
        for group in groups {
            let sums = &mut sums[group.first..group.first + group.chains];
            match group.offsets.len() {
                1 => sum::<1>(set, group, strip, beside, live, sums),
                2 => sum::<2>(set, group, strip, beside, live, sums),
                3 => sum::<3>(set, group, strip, beside, live, sums),
                4 => sum::<4>(set, group, strip, beside, live, sums),
                6 => sum::<6>(set, group, strip, beside, live, sums),
                8 => sum::<8>(set, group, strip, beside, live, sums),
                _ => sum::<12>(set, group, strip, beside, live, sums),
            }
        }
    }
}

/// Tiles as floats; `room`: for the values of integers.
pub(super) fn floats<'a>(
    set: InstructionSet,
    tiles: Tiles<'a>,
    room: &'a mut Vec<f32>,
) -> &'a [f32] {
    match tiles {
        Tiles::F32(tiles) => tiles,
        Tiles::I16(tiles, grid) => {
            room.resize(tiles.len(), 0.0);
            set.decode(tiles, grid, room);
            room
        }
    }
}

/// Quantised ratios of one tile for the first chain of `group`.
pub(super) fn ratio_tile(
    set: InstructionSet,
    group: &Group,
    tile: &[f32],
    beside: Beside<'_>,
) -> [i32; TILE] {
    match group.offsets.len() {
        1 => tile_steps::<1>(set, group, tile, beside),
        2 => tile_steps::<2>(set, group, tile, beside),
        _ => tile_steps::<3>(set, group, tile, beside),
    }
}

/// Tiles whose forms are computed before their row functions: enough to amortise the
/// dispatch, few enough for the first-level cache.
const STRIP: usize = 8;
const STRIP_ROWS: usize = STRIP * TILE;

/// One strip; F = K forms × C chains.
fn sum<const F: usize>(
    set: InstructionSet,
    group: &Group,
    strip: Tiles<'_>,
    beside: Beside<'_>,
    live: usize,
    sums: &mut [RatioSum],
) {
    let mut forms = [[0.0f32; STRIP_ROWS]; F];
    let mut steps = [0i32; STRIP_ROWS];
    let (weights, offsets) = (&group.weights, &group.offsets);
    set.forms(weights, offsets, strip, None, &mut forms);
    for (c, total) in sums.iter_mut().enumerate() {
        row_steps(set, group, c, &forms, beside, &mut steps[..live]);
        let (sum, saturated) = set.total(&steps[..live], group.bounds[c]);
        total.saturated += u64::from(saturated);
        total.steps += match beside.shares.is_empty() {
            true => i64::from(sum),
            false => {
                weigh(beside.shares, &mut steps[..live]);
                i64::from(set.total(&steps[..live], group.bounds[c]).0)
            }
        };
    }
}

/// The sum of a strip's steps, and how many are at the bound. 128 · 2^20 fits an i32 with room to
/// spare.
#[inline(always)]
pub(super) fn total(steps: &[i32], bound: i32) -> (i32, u32) {
    let (mut sum, mut saturated) = (0i32, 0u32);
    for &q in steps {
        sum += q;
        saturated += u32::from(q.abs() == bound);
    }
    (sum, saturated)
}

fn tile_steps<const F: usize>(
    set: InstructionSet,
    group: &Group,
    tile: &[f32],
    beside: Beside<'_>,
) -> [i32; TILE] {
    let mut forms = [[0.0f32; TILE]; F];
    let (weights, offsets) = (&group.weights, &group.offsets);
    set.forms(weights, offsets, Tiles::F32(tile), None, &mut forms);
    let mut steps = [0i32; TILE];
    row_steps(set, group, 0, &forms, beside, &mut steps);
    weigh(beside.shares, &mut steps);
    steps
}

/// Rows' shares of their steps.
fn weigh(shares: &[f32], steps: &mut [i32]) {
    for (q, share) in steps.iter_mut().zip(shares) {
        *q = share_of(*share, i64::from(*q)) as i32;
    }
}

/// Quantised ratios of chain `c` from its forms, one a row.
fn row_steps<const F: usize, const R: usize>(
    set: InstructionSet,
    group: &Group,
    c: usize,
    forms: &[[f32; R]; F],
    beside: Beside<'_>,
    steps: &mut [i32],
) {
    let form = |k: usize| forms.get(k * group.chains + c).map_or(&[][..], |f| &f[..]);
    let row = RowForms {
        function: group.function,
        forms: [form(0), form(1), form(2)],
        beside,
        constants: &group.constants[c],
    };
    set.steps(&row, group.scales[c], group.bounds[c], steps);
}

/// What a row function is told of some rows, at one chain.
pub(in crate::trusted) struct RowForms<'a> {
    function: RowFunction,
    /// As many as the function has.
    forms: [&'a [f32]; 3],
    beside: Beside<'a>,
    constants: &'a [f32],
}

/// Row function and quantisation; plain loops that vectorise for the caller's
/// instruction set.
#[inline(always)]
pub(super) fn steps<const FMA: bool>(row: &RowForms<'_>, scale: f32, bound: i32, out: &mut [i32]) {
    let ([first, second, third], constants) = (row.forms, row.constants);
    let (labels, weights) = (row.beside.labels, row.beside.weights);
    let pairs = first.iter().zip(second);
    let labelled = pairs.clone().zip(labels);
    let triples = pairs.zip(third);
    let weighted = triples.clone().zip(weights);
    match row.function {
        // Networks have no forms and never come here.
        RowFunction::Affine
        | RowFunction::Network(_)
        | RowFunction::Layers(_)
        | RowFunction::NetworkRemainder(_) => {
            for (q, r) in out.iter_mut().zip(first) {
                *q = quantize(r * scale, bound);
            }
        }
        RowFunction::Logistic => {
            for (q, ((eta, delta), y)) in out.iter_mut().zip(labelled) {
                let ratio = -softplus_difference::<FMA>(-y * eta, -y * delta);
                *q = quantize(ratio * scale, bound);
            }
        }
        RowFunction::Mixture => {
            for (q, ((one, odds), change)) in out.iter_mut().zip(triples) {
                *q = quantize(
                    (one + softplus_difference::<FMA>(*odds, *change)) * scale,
                    bound,
                );
            }
        }
        RowFunction::Linear => {
            for (q, ((eta, delta), y)) in out.iter_mut().zip(labelled) {
                *q = quantize(delta * (y - eta - 0.5 * delta) * scale, bound);
            }
        }
        RowFunction::Poisson => {
            for (q, ((eta, delta), y)) in out.iter_mut().zip(labelled) {
                *q = quantize(poisson_ratio::<FMA>(*y, *eta, *delta) * scale, bound);
            }
        }
        RowFunction::LogisticRemainder => {
            for (q, (((eta, offset), delta), omega)) in out.iter_mut().zip(weighted) {
                let change = weighted_remainder_difference::<FMA>(*eta, *offset, *delta, *omega);
                *q = quantize(-change * scale, bound);
            }
        }
        RowFunction::MixtureRemainder { .. } => {
            for (q, ((place, odds), change)) in out.iter_mut().zip(triples) {
                let whole = softplus_difference::<FMA>(*odds, *change);
                *q = quantize((whole - chebyshev::<FMA>(constants, *place)) * scale, bound);
            }
        }
        RowFunction::PoissonRemainder => {
            for (q, (((eta, offset), delta), omega)) in out.iter_mut().zip(weighted) {
                let change = exponential_difference::<FMA>(*eta, *offset, *delta) * omega;
                *q = quantize(-change * scale, bound);
            }
        }
        RowFunction::Declared(law) => {
            let mut ratios = [0.0; STRIP_ROWS];
            let ratios = &mut ratios[..out.len()];
            law.changes::<FMA>(labels, first, second, constants, ratios);
            for (q, r) in out.iter_mut().zip(ratios) {
                *q = quantize(*r * scale, bound);
            }
        }
        // In f64: what is left is small beside what is taken away.
        RowFunction::DeclaredRemainder(law) => {
            let rows = [labels, first, second, third].map(|v| &v[..out.len()]);
            law.remainders(f64::from(constants[0]), rows, weights, |i, rest| {
                out[i] = quantize(-(rest as f32) * scale, bound);
            });
        }
    }
}

/// Affine forms of some tiles; portable twin of the vector versions in `dispatch.rs`.
pub(super) fn forms<const F: usize, const R: usize>(
    weights: &[f32],
    offsets: &[f32],
    tiles: &[f32],
    out: &mut [[f32; R]; F],
) {
    let width = weights.len() / F * TILE;
    for (t, tile) in tiles.chunks_exact(width).enumerate() {
        for f in 0..F {
            let mut acc = [offsets[f]; TILE];
            for (x, w) in tile
                .as_chunks::<TILE>()
                .0
                .iter()
                .zip(weights.chunks_exact(F))
            {
                for i in 0..TILE {
                    acc[i] += w[f] * x[i];
                }
            }
            out[f][t * TILE..(t + 1) * TILE].copy_from_slice(&acc);
        }
    }
}

/// Values of the integers of some tiles; portable twin as above.
pub(super) fn decode(tiles: &[i16], grid: &[Grid], out: &mut [f32]) {
    let (tiles, out) = (tiles.as_chunks::<TILE>().0, out.as_chunks_mut().0);
    for ((m, out), grid) in tiles.iter().zip(out).zip(grid.iter().cycle()) {
        *out = m.map(|m| grid.value(m));
    }
}

/// What is kept of rows in 16 bits while their forms are made: their values, and the sums of
/// squares of each.
pub(super) struct Kept<'a> {
    pub values: &'a mut [f32],
    pub squares: &'a mut [f32],
}

/// As [`forms`], of rows in 16 bits.
pub(super) fn forms16<const F: usize, const R: usize>(
    weights: &[f32],
    offsets: &[f32],
    tiles: &[i16],
    grid: &[Grid],
    kept: Option<Kept<'_>>,
    out: &mut [[f32; R]; F],
) {
    let (mut values, mut squares) = (Vec::new(), Vec::new());
    let kept = kept.unwrap_or_else(|| {
        values.resize(tiles.len(), 0.0);
        squares.resize(tiles.len() / grid.len(), 0.0);
        Kept {
            values: &mut values,
            squares: &mut squares,
        }
    });
    decode(tiles, grid, kept.values);
    gradient::squares(grid.len(), kept.values, kept.squares);
    forms(weights, offsets, kept.values, out);
}
