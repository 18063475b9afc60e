//! Gradient sums: a row's gradient, its clip factor and its integers, strip by strip. One read
//! of the rows from memory serves every chain: a strip stays in the first-level cache.

use super::dispatch::InstructionSet;
use super::kernel::{Beside, floats};
use super::lanes::{exp, multiply_add};
use super::{layers, network_gradient};
use crate::data::{TILE, Tiles};
use crate::engine::gradient::LARGEST_FACTOR;
use crate::engine::{GradientQuery, GradientSum};
use crate::expression::Law;
use crate::model::{GradientFunction, Score};

/// 1.5·2^23: in `v + ROUND` the low bits are v's nearest integer.
pub(super) const ROUND: f32 = 12_582_912.0;
const ROUND_BITS: u32 = 0x4b40_0000;
/// Tiles a lane's integers can take: 2^10 · 2^20 fits an i32.
pub(super) const MOST_TILES: usize = 1024;
/// Tiles of a strip, at most.
const STRIP: usize = 8;
pub(super) const STRIP_ROWS: usize = STRIP * TILE;
/// Floats of a strip that stay in the first-level cache.
const STRIP_FLOATS: usize = 1 << 13;
/// Forms that share one read of a tile.
const GROUP: usize = 4;

/// Adds the gradients of `rows` ≤ 16·[`MOST_TILES`] rows, laid out in `tiles`, to the sums of
/// chains `first..first + sums.len()`.
pub(super) fn sum_tiles(
    set: InstructionSet,
    query: &GradientQuery,
    first: usize,
    tiles: Tiles<'_>,
    beside: Beside<'_>,
    rows: usize,
    sums: &mut [GradientSum],
) {
    let labels = beside.labels;
    let width = query.features() * TILE;
    let tiles = tiles.slice(0..rows.div_ceil(TILE) * width);
    let mut room = Vec::new();
    if let GradientFunction::Network(shape) = query.function() {
        let block = network_gradient::Block {
            query,
            first,
            tiles: floats(set, tiles, &mut room),
            labels,
            rows,
        };
        let mut scratch = network_gradient::Scratch::new(shape, sums.len());
        set.network_gradients(shape, &block, &mut scratch);
        return add_integers(
            &scratch.integers,
            &scratch.clipped,
            tiles.len() / width,
            sums,
        );
    }
    if let GradientFunction::Layers(network) = query.function() {
        let tiles = floats(set, tiles, &mut room);
        return layers::sum_tiles(set, (query, network), first, (tiles, labels), rows, sums);
    }
    let strip = (STRIP_FLOATS / width).clamp(1, STRIP);
    let mut work = Work::new(query, first, sums.len(), strip);
    for (s, part) in tiles.chunks(width * strip).enumerate() {
        let part = floats(set, part, &mut room);
        let start = s * strip * TILE;
        let live = (rows - start).min(strip * TILE);
        let mut y = [0.0; STRIP_ROWS];
        if let Some(given) = labels.get(start..start + live) {
            y[..live].copy_from_slice(given);
        }
        if let Some(shares) = beside.shares.get(start..start + live) {
            work.shares[..live].copy_from_slice(shares);
        }
        match query.function() {
            GradientFunction::Score(score) => work.scores(set, query, score, part, &y, live),
            // Networks have left above.
            GradientFunction::Declared(law) => work.declared(set, query, law, part, &y, live),
            GradientFunction::Affine
            | GradientFunction::Mixture
            | GradientFunction::Network(_)
            | GradientFunction::Layers(_) => work.gradients(set, query, part, live),
        }
    }
    add_integers(&work.integers, &work.clipped, tiles.len() / width, sums);
}

/// Adds lanes to the sums: every lane carries the bits of ROUND once a tile.
pub(super) fn add_integers(
    integers: &[[u32; TILE]],
    clipped: &[u64],
    tiles: usize,
    sums: &mut [GradientSum],
) {
    let excess = ROUND_BITS.wrapping_mul(tiles as u32);
    let mut integers = integers.iter();
    for (sum, clipped) in sums.iter_mut().zip(clipped) {
        for (total, lanes) in sum.steps.iter_mut().zip(&mut integers) {
            *total += lanes
                .iter()
                .map(|l| i64::from(l.wrapping_sub(excess) as i32))
                .sum::<i64>();
        }
        sum.clipped += clipped;
    }
}

/// Coefficients repacked for the inner loops, and where their results are put.
struct Work {
    /// Number of the first chain.
    first: usize,
    groups: Vec<Group>,
    /// `[chain][coordinate]`, with the bits of [`ROUND`] once a tile.
    integers: Vec<[u32; TILE]>,
    /// Gradients of a strip, in the layout of tiles of d features, where they are not a score times
    /// the row; or rows without their offsets.
    gradients: Vec<f32>,
    /// What a strip's rows add of their clipped gradients.
    shares: [f32; STRIP_ROWS],
    clipped: Vec<u64>,
}

/// Rows' shares of their clipped gradients.
fn weigh(shares: &[f32; STRIP_ROWS], factors: &mut [f32]) {
    for (t, share) in factors.iter_mut().zip(shares) {
        *t *= share;
    }
}

/// Up to [`GROUP`] affine forms: of one chain each (scores), or of one chain together.
struct Group {
    /// The chain, or the first of them, from 0.
    chain: usize,
    /// The form's number within its chain.
    form: usize,
    forms: usize,
    offsets: Vec<f32>,
    /// `weights[j*forms + f]`.
    weights: Vec<f32>,
}

impl Work {
    fn new(query: &GradientQuery, first: usize, chains: usize, strip: usize) -> Self {
        let d = query.dim();
        let scored = matches!(query.function(), GradientFunction::Score(_));
        let as_stored = scored && query.features() == d;
        // One form η makes a score; others have one an offset.
        let per_chain = match query.function() {
            GradientFunction::Score(_) | GradientFunction::Declared(_) => 1,
            function => function.offsets(d),
        };
        // Every form as (chain, form).
        let all: Vec<(usize, usize)> = (0..chains)
            .flat_map(|c| (0..per_chain).map(move |k| (c, k)))
            .collect();
        let mut groups = Vec::new();
        for part in all.chunk_by(|a, b| scored || a.0 == b.0) {
            let mut rest = part;
            while !rest.is_empty() {
                let forms = match rest.len() {
                    n if n >= GROUP => GROUP,
                    n if n >= 2 => 2,
                    _ => 1,
                };
                let (now, later) = rest.split_at(forms);
                groups.push(Group::new(query, first, now));
                rest = later;
            }
        }
        Work {
            first,
            groups,
            integers: vec![[0; TILE]; d * chains],
            gradients: vec![0.0; if as_stored { 0 } else { d * strip * TILE }],
            shares: [1.0; STRIP_ROWS],
            clipped: vec![0; chains],
        }
    }

    /// Gradients that are a score times the row.
    fn scores(
        &mut self,
        set: InstructionSet,
        query: &GradientQuery,
        score: Score,
        tiles: &[f32],
        labels: &[f32; STRIP_ROWS],
        live: usize,
    ) {
        let (d, width) = (query.dim(), query.features());
        let rows = tiles.len() / width;
        let mut squares = [0.0; STRIP_ROWS];
        let features = match width == d {
            true => tiles,
            // Rows without their offsets.
            false => {
                let tiles = tiles.chunks_exact(width * TILE);
                let own = self.gradients.chunks_exact_mut(d * TILE);
                own.zip(tiles)
                    .for_each(|(own, tile)| own.copy_from_slice(&tile[..d * TILE]));
                &self.gradients[..rows * d]
            }
        };
        set.squares(d, features, &mut squares[..rows]);
        let (mut eta, mut factors) = ([[0.0; STRIP_ROWS]; GROUP], [0.0; STRIP_ROWS]);
        for group in &self.groups {
            group.evaluate(set, tiles, &mut eta);
            for (k, eta) in eta.iter().enumerate().take(group.forms) {
                let c = group.chain + k;
                let factors = &mut factors[..rows];
                set.scores(score, &eta[..rows], &labels[..rows], factors);
                let clip = Clip::of(query);
                self.clipped[c] += set.clip(&clip, &squares[..rows], live, factors);
                weigh(&self.shares, factors);
                let integers = &mut self.integers[c * d..(c + 1) * d];
                set.accumulate(features, factors, integers);
            }
        }
    }

    /// Gradients that are a score times the row, and behind it the scores of shared parameters.
    fn declared(
        &mut self,
        set: InstructionSet,
        query: &GradientQuery,
        law: Law,
        tiles: &[f32],
        labels: &[f32; STRIP_ROWS],
        live: usize,
    ) {
        let (d, width) = (query.dim(), query.features());
        let features = d - law.shared().len();
        let rows = tiles.len() / width;
        let mut eta = [[0.0; STRIP_ROWS]; GROUP];
        let (mut squares, mut factors) = ([0.0; STRIP_ROWS], [0.0; STRIP_ROWS]);
        for group in &self.groups {
            group.evaluate(set, tiles, &mut eta);
            let (c, eta, labels) = (group.chain, &eta[0][..rows], &labels[..rows]);
            let shared = query.offsets(self.first + c);
            let mut score = [0.0; STRIP_ROWS];
            set.declared_scores(law, 0, labels, eta, shared, &mut score[..rows]);
            for (j, x) in tiles.chunks_exact(TILE).enumerate() {
                let (tile, j) = (j / width, j % width);
                // What lies behind the features is an offset.
                if j >= features {
                    continue;
                }
                let to = &mut self.gradients[(tile * d + j) * TILE..][..TILE];
                for ((to, x), s) in to.iter_mut().zip(x).zip(&score[tile * TILE..]) {
                    *to = x * s;
                }
            }
            for k in 1..=law.shared().len() {
                set.declared_scores(law, k, labels, eta, shared, &mut score[..rows]);
                put(&mut self.gradients, d, features + k - 1, &score[..rows]);
            }
            let gradients = &mut self.gradients[..rows * d];
            set.sanitize(gradients);
            set.squares(d, gradients, &mut squares[..rows]);
            factors.fill(1.0);
            let clip = Clip::of(query);
            self.clipped[c] += set.clip(&clip, &squares[..rows], live, &mut factors[..rows]);
            weigh(&self.shares, &mut factors[..rows]);
            let integers = &mut self.integers[c * d..(c + 1) * d];
            set.accumulate(gradients, &factors[..rows], integers);
        }
    }

    /// Gradients whose coordinates are made from forms.
    fn gradients(
        &mut self,
        set: InstructionSet,
        query: &GradientQuery,
        tiles: &[f32],
        live: usize,
    ) {
        let d = query.dim();
        let rows = tiles.len() / query.features();
        let mut values = [[0.0; STRIP_ROWS]; GROUP];
        let (mut squares, mut factors) = ([0.0; STRIP_ROWS], [0.0; STRIP_ROWS]);
        let mut forms = self.groups.iter().peekable();
        for c in 0..self.clipped.len() {
            let mut mixture = [[0.0; STRIP_ROWS]; 3];
            while let Some(group) = forms.next_if(|g| g.chain == c) {
                group.evaluate(set, tiles, &mut values);
                for (f, value) in values.iter().enumerate().take(group.forms) {
                    let k = group.form + f;
                    if query.function() == GradientFunction::Mixture {
                        mixture[k] = *value;
                    } else {
                        put(&mut self.gradients, d, k, &value[..rows]);
                    }
                }
            }
            if query.function() == GradientFunction::Mixture {
                let [first, second] = set.mixture(&mixture);
                put(&mut self.gradients, d, 0, &first[..rows]);
                put(&mut self.gradients, d, 1, &second[..rows]);
            }
            let gradients = &mut self.gradients[..rows * d];
            set.sanitize(gradients);
            set.squares(d, gradients, &mut squares[..rows]);
            factors.fill(1.0);
            let clip = Clip::of(query);
            self.clipped[c] += set.clip(&clip, &squares[..rows], live, &mut factors[..rows]);
            weigh(&self.shares, &mut factors[..rows]);
            let integers = &mut self.integers[c * d..(c + 1) * d];
            set.accumulate(gradients, &factors[..rows], integers);
        }
    }
}

impl Group {
    fn new(query: &GradientQuery, first: usize, forms: &[(usize, usize)]) -> Self {
        let features = query.features();
        let weight = |(c, k): (usize, usize), j: usize| query.weights(first + c)[k * features + j];
        let offset = |(c, k): (usize, usize)| match query.function() {
            // Shared parameters are in their place.
            GradientFunction::Declared(_) => 0.0,
            _ => query.offsets(first + c).get(k).copied().unwrap_or(0.0),
        };
        Group {
            chain: forms[0].0,
            form: forms[0].1,
            forms: forms.len(),
            offsets: forms.iter().map(|f| offset(*f)).collect(),
            weights: (0..features)
                .flat_map(|j| forms.iter().map(move |f| weight(*f, j)))
                .collect(),
        }
    }

    /// The forms of a strip, in `out[..forms]`.
    fn evaluate(&self, set: InstructionSet, tiles: &[f32], out: &mut [[f32; STRIP_ROWS]; GROUP]) {
        let (w, o) = (&self.weights[..], &self.offsets[..]);
        match self.forms {
            1 => {
                if let Some(out) = out.first_chunk_mut::<1>() {
                    set.forms(w, o, tiles, out);
                }
            }
            2 => {
                if let Some(out) = out.first_chunk_mut::<2>() {
                    set.forms(w, o, tiles, out);
                }
            }
            _ => set.forms(w, o, tiles, out),
        }
    }
}

/// Puts coordinate `k` of some rows into tiles of `d` coordinates.
fn put(gradients: &mut [f32], d: usize, k: usize, values: &[f32]) {
    for (tile, values) in gradients
        .chunks_exact_mut(d * TILE)
        .zip(values.chunks(TILE))
    {
        tile[k * TILE..k * TILE + values.len()].copy_from_slice(values);
    }
}

/// What the clip of a row follows from.
pub(super) struct Clip {
    scale: f32,
    limit: f32,
}

impl Clip {
    pub(super) fn of(query: &GradientQuery) -> Self {
        Clip {
            scale: query.scale(),
            limit: query.limit(),
        }
    }
}

/// `Σ_j v_j²` of every row of some tiles of d coordinates; portable twin of the vector
/// versions in `dispatch.rs`.
pub(super) fn squares(d: usize, tiles: &[f32], out: &mut [f32]) {
    for (tile, out) in tiles.chunks_exact(d * TILE).zip(out.chunks_exact_mut(TILE)) {
        out.fill(0.0);
        for v in tile.chunks_exact(TILE) {
            for (o, v) in out.iter_mut().zip(v) {
                *o += v * v;
            }
        }
    }
}

/// Adds the bits of `v·t + ROUND`: nearest integers, as long as |v·t| < 2^21; portable twin as
/// above.
pub(super) fn accumulate(tiles: &[f32], factors: &[f32], integers: &mut [[u32; TILE]]) {
    let d = integers.len();
    for (tile, t) in tiles.chunks_exact(d * TILE).zip(factors.chunks_exact(TILE)) {
        for (v, sum) in tile.chunks_exact(TILE).zip(&mut *integers) {
            for ((v, t), sum) in v.iter().zip(t).zip(sum) {
                *sum = sum.wrapping_add((v * t + ROUND).to_bits());
            }
        }
    }
}

/// Not a number, or too large to square, becomes 0: such a coordinate says nothing.
#[inline(always)]
pub(super) fn sanitize(values: &mut [f32]) {
    for v in values {
        *v = if v.abs() <= 1e18 { *v } else { 0.0 };
    }
}

/// The scores s(η, y) of some rows.
#[inline(always)]
pub(super) fn scores<const FMA: bool>(score: Score, eta: &[f32], labels: &[f32], out: &mut [f32]) {
    if let Score::Declared(law) = score {
        return declared_scores::<FMA>(law, 0, labels, eta, &[], out);
    }
    for (s, (eta, y)) in out.iter_mut().zip(eta.iter().zip(labels)) {
        *s = match score {
            Score::Logistic => y / (1.0 + exp::<FMA>(y * eta)),
            Score::Linear => y - eta,
            Score::Poisson => y - exp::<FMA>(*eta),
            // Above.
            Score::Declared(_) => 0.0,
        };
    }
}

/// The scores of a declared likelihood: in η for k = 0, else in the k-th shared parameter.
#[inline(always)]
pub(super) fn declared_scores<const FMA: bool>(
    law: Law,
    k: usize,
    labels: &[f32],
    eta: &[f32],
    shared: &[f32],
    out: &mut [f32],
) {
    law.score_lanes::<FMA>(k, labels, eta, shared, out);
}

/// The mixture's two coordinates from its three forms.
#[inline(always)]
pub(super) fn mixture<const FMA: bool>(forms: &[[f32; STRIP_ROWS]; 3]) -> [[f32; STRIP_ROWS]; 2] {
    let mut out = [[0.0; STRIP_ROWS]; 2];
    let [one, two] = &mut out;
    let [first, second, odds] = forms;
    for ((g1, g2), ((a1, a2), s)) in one
        .iter_mut()
        .zip(two)
        .zip(first.iter().zip(second).zip(odds))
    {
        let share = 1.0 / (1.0 + exp::<FMA>(-s));
        *g1 = multiply_add::<FMA>(share, a2 - a1, *a1);
        *g2 = share * a2;
    }
    out
}

/// Turns scores into factors t: scaled to grid steps, scaled down where `|t|·√square > limit`, and
/// zero where t is not a number and for rows past the last live one. Returns how many live
/// rows were touched.
#[inline(always)]
pub(super) fn clip(clip: &Clip, squares: &[f32], live: usize, factors: &mut [f32]) -> u64 {
    let mut clipped = 0u32;
    let (rows, padding) = factors.split_at_mut(live);
    padding.fill(0.0);
    for (t, square) in rows.iter_mut().zip(squares) {
        let norm = square.sqrt();
        let scaled = *t * clip.scale;
        let inside = (scaled.abs() * norm <= clip.limit) & (scaled.abs() <= LARGEST_FACTOR);
        // The last factor covers the rounding of root, quotient and product.
        let edge = clip.limit / norm * (1.0 - 1e-6);
        let edge = if edge <= LARGEST_FACTOR {
            edge
        } else {
            LARGEST_FACTOR
        };
        // Compared, not asked by name, so that it vectorises; NaN fails.
        let possible = (norm > 0.0) & (norm < f32::INFINITY) & (scaled.abs() >= 0.0);
        let edge = if possible { edge.copysign(scaled) } else { 0.0 };
        *t = if inside { scaled } else { edge };
        clipped += u32::from(!inside);
    }
    u64::from(clipped)
}
