//! Gradient sums: a row's gradient, its clip factor and its integers, strip by strip. One read
//! of the rows from memory serves every chain: a strip stays in the first-level cache.

use super::dispatch::InstructionSet;
use super::kernel::{Beside, Kept, floats};
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
    let mut work = Work::new(query, (first, sums.len()), strip, false);
    for (s, part) in tiles.chunks(width * strip).enumerate() {
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
            GradientFunction::Score(score) => {
                work.scores(set, query, score, (part, &mut room), &y, live);
            }
            // Networks have left above.
            _ => work.gradients(set, query, floats(set, part, &mut room), &y, live),
        }
    }
    add_integers(&work.integers, &work.clipped, tiles.len() / width, sums);
}

/// Gradients of units at one chain: sums of their rows' gradients, clipped together.
pub(super) struct UnitGradients<'a> {
    set: InstructionSet,
    query: &'a GradientQuery,
    work: Work,
    /// Sums of the units of a strip so far, in the layout of tiles of d coordinates.
    sums: Vec<f32>,
    /// Tiles that were added.
    tiles: usize,
}

/// Units of a strip, and rows that are made at a time.
pub(super) const UNITS: usize = STRIP_ROWS;

impl<'a> UnitGradients<'a> {
    /// At chain `chain`.
    pub fn new(set: InstructionSet, query: &'a GradientQuery, chain: usize) -> Self {
        UnitGradients {
            set,
            query,
            work: Work::new(query, (chain, 1), STRIP, true),
            sums: vec![0.0; query.dim() * UNITS],
            tiles: 0,
        }
    }

    /// Adds up to [`UNITS`] rows, laid out in `tiles`, to their units; `units[i]`: the place of
    /// row i's unit in the strip. A row that has a share adds so much of itself.
    pub fn add_rows(&mut self, tiles: &[f32], beside: Beside<'_>, units: &[usize]) {
        let mut y = [0.0; STRIP_ROWS];
        let given = beside.labels.iter().take(units.len());
        y.iter_mut().zip(given).for_each(|(y, label)| *y = *label);
        self.work.make(self.set, self.query, 0, tiles, &y);
        let d = self.query.dim();
        self.set.sanitize(&mut self.work.gradients);
        for (i, unit) in units.iter().enumerate() {
            let share = beside.shares.get(i).copied().unwrap_or(1.0);
            let from = i / TILE * d * TILE + i % TILE;
            let to = unit / TILE * d * TILE + unit % TILE;
            for j in 0..d {
                self.sums[to + j * TILE] += share * self.work.gradients[from + j * TILE];
            }
        }
    }

    /// Clips the units of the strip, `live` of them, and begins the next one.
    pub fn end_strip(&mut self, live: usize) {
        let (d, rows) = (self.query.dim(), live.next_multiple_of(TILE));
        let (mut squares, mut factors) = ([0.0; STRIP_ROWS], [1.0; STRIP_ROWS]);
        let sums = &mut self.sums[..rows * d];
        self.set.sanitize(sums);
        self.set.squares(d, sums, &mut squares[..rows]);
        let clip = Clip::of(self.query);
        let clipped = self
            .set
            .clip(&clip, &squares[..rows], live, &mut factors[..rows]);
        self.work.clipped[0] += clipped;
        self.set
            .accumulate(sums, &factors[..rows], &mut self.work.integers);
        sums.fill(0.0);
        self.tiles += rows / TILE;
    }

    /// Adds all strips to a sum.
    pub fn finish(self, sum: &mut GradientSum) {
        let sums = std::slice::from_mut(sum);
        add_integers(&self.work.integers, &self.work.clipped, self.tiles, sums);
    }
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
    /// `each`: whether scores' rows are made into gradients too.
    fn new(
        query: &GradientQuery,
        (first, chains): (usize, usize),
        strip: usize,
        each: bool,
    ) -> Self {
        let d = query.dim();
        let scored = matches!(query.function(), GradientFunction::Score(_));
        let as_stored = scored && query.features() == d && !each;
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

    /// Gradients that are a score times the row; `room`: for the values of integers.
    fn scores(
        &mut self,
        set: InstructionSet,
        query: &GradientQuery,
        score: Score,
        (tiles, room): (Tiles<'_>, &mut Vec<f32>),
        labels: &[f32; STRIP_ROWS],
        live: usize,
    ) {
        let (d, width) = (query.dim(), query.features());
        let rows = tiles.len() / width;
        let (mut eta, mut factors) = ([[0.0; STRIP_ROWS]; GROUP], [0.0; STRIP_ROWS]);
        let mut squares = [0.0; STRIP_ROWS];
        // The first forms of integers are made while these are read.
        let mut made = false;
        let tiles = match (tiles, self.groups.first()) {
            (Tiles::I16(..), Some(group)) if width == d => {
                room.resize(tiles.len(), 0.0);
                let (values, squares) = (&mut room[..], &mut squares[..rows]);
                group.evaluate(set, tiles, Some(Kept { values, squares }), &mut eta);
                made = true;
                &room[..]
            }
            _ => floats(set, tiles, room),
        };
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
        if !made {
            set.squares(d, features, &mut squares[..rows]);
        }
        for (g, group) in self.groups.iter().enumerate() {
            if g > 0 || !made {
                group.evaluate(set, Tiles::F32(tiles), None, &mut eta);
            }
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

    /// Gradients that are made coordinate by coordinate.
    fn gradients(
        &mut self,
        set: InstructionSet,
        query: &GradientQuery,
        tiles: &[f32],
        labels: &[f32; STRIP_ROWS],
        live: usize,
    ) {
        let (d, rows) = (query.dim(), tiles.len() / query.features());
        let (mut squares, mut factors) = ([0.0; STRIP_ROWS], [0.0; STRIP_ROWS]);
        for c in 0..self.clipped.len() {
            self.make(set, query, c, tiles, labels);
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

    /// Puts the gradients of a strip's rows at chain `c` into `self.gradients`; a score's chain has
    /// a group of its own.
    fn make(
        &mut self,
        set: InstructionSet,
        query: &GradientQuery,
        c: usize,
        tiles: &[f32],
        labels: &[f32; STRIP_ROWS],
    ) {
        let (d, width) = (query.dim(), query.features());
        let rows = tiles.len() / width;
        let mut values = [[0.0; STRIP_ROWS]; GROUP];
        let mut mixture = [[0.0; STRIP_ROWS]; 3];
        // Groups lie in the order of their chains, of which there may be thousands.
        let first = self.groups.partition_point(|g| g.chain < c);
        for group in self.groups[first..].iter().take_while(|g| g.chain == c) {
            group.evaluate(set, Tiles::F32(tiles), None, &mut values);
            let (eta, labels) = (&values[0][..rows], &labels[..rows]);
            let mut score = [0.0; STRIP_ROWS];
            match query.function() {
                GradientFunction::Score(of) => {
                    set.scores(of, eta, labels, &mut score[..rows]);
                    put_products(&mut self.gradients, (d, d), (tiles, width), &score);
                }
                GradientFunction::Declared(law) => {
                    let features = d - law.shared().len();
                    let shared = query.offsets(self.first + c);
                    set.declared_scores(law, 0, labels, eta, shared, &mut score[..rows]);
                    put_products(&mut self.gradients, (d, features), (tiles, width), &score);
                    for k in 1..=law.shared().len() {
                        set.declared_scores(law, k, labels, eta, shared, &mut score[..rows]);
                        put(&mut self.gradients, d, features + k - 1, &score[..rows]);
                    }
                }
                GradientFunction::Mixture => {
                    let forms = mixture[group.form..].iter_mut();
                    forms.zip(values).for_each(|(to, value)| *to = value);
                }
                _ => {
                    for (f, value) in values.iter().enumerate().take(group.forms) {
                        put(&mut self.gradients, d, group.form + f, &value[..rows]);
                    }
                }
            }
        }
        if query.function() == GradientFunction::Mixture {
            let [first, second] = set.mixture(&mixture);
            put(&mut self.gradients, d, 0, &first[..rows]);
            put(&mut self.gradients, d, 1, &second[..rows]);
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

    /// The forms of a strip, in `out[..forms]`, with what is kept of its integers.
    fn evaluate(
        &self,
        set: InstructionSet,
        tiles: Tiles<'_>,
        kept: Option<Kept<'_>>,
        out: &mut [[f32; STRIP_ROWS]; GROUP],
    ) {
        let (w, o) = (&self.weights[..], &self.offsets[..]);
        match self.forms {
            1 => {
                if let Some(out) = out.first_chunk_mut::<1>() {
                    set.forms(w, o, tiles, kept, out);
                }
            }
            2 => {
                if let Some(out) = out.first_chunk_mut::<2>() {
                    set.forms(w, o, tiles, kept, out);
                }
            }
            _ => set.forms(w, o, tiles, kept, out),
        }
    }
}

/// Puts the products of scores and features into the first `features` of d coordinates; what lies
/// behind these in a row is an offset.
fn put_products(
    gradients: &mut [f32],
    (d, features): (usize, usize),
    (tiles, width): (&[f32], usize),
    score: &[f32; STRIP_ROWS],
) {
    for (j, x) in tiles.chunks_exact(TILE).enumerate() {
        let (tile, j) = (j / width, j % width);
        if j >= features {
            continue;
        }
        let to = &mut gradients[(tile * d + j) * TILE..][..TILE];
        for ((to, x), s) in to.iter_mut().zip(x).zip(&score[tile * TILE..]) {
            *to = x * s;
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
