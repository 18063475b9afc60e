//! An anchor's sums over the rows, a block of rows at a time, columns side by side.
//!
//! Sums are exact in f64: a row's integers are w q_j of at most 2^28 and q_k of at most 2^14 in
//! size, so that all products of [`BLOCK`] rows add up to at most 2^51, whatever the order. So every
//! instruction set and any number of threads give the same integers.

use rayon::prelude::*;

use super::dispatch::InstructionSet;
use crate::data::{Dataset, TILE};
use crate::engine::EngineError;
use crate::engine::anchor::{
    AnchorQuery, AnchorSums, FEATURE_BITS, quantize_row, quantize_slopes, share_of_ball,
};
use crate::model::{Lower, Predictor};

/// Rows of a block: whole tiles, and few enough that sums of products stay below 2^53.
pub(super) const BLOCK: usize = 512;
/// Columns are padded to whole groups of so many, which are multiplied together.
pub(super) const GROUP: usize = 4;

/// The sums over all rows.
pub(super) fn sums(
    set: InstructionSet,
    data: &Dataset,
    query: &AnchorQuery<'_>,
) -> Result<AnchorSums, EngineError> {
    query.check(data.features().len(), data.labelled())?;
    let zero = || AnchorSums::zero(query.at.len());
    // Integers, so any split gives the same bits.
    Ok((0..data.rows().div_ceil(BLOCK))
        .into_par_iter()
        .fold(
            || (Block::new(set, data, query), zero()),
            |(mut block, mut sums), k| {
                set.read(&mut block, k * BLOCK);
                set.add(&mut block, &mut sums);
                (block, sums)
            },
        )
        .map(|(_, sums)| sums)
        .reduce(zero, |mut a, b| {
            a.add(b);
            a
        }))
}

/// Weights ω_i of all rows, padded with zeros to whole tiles: what remainders are multiplied by.
pub(super) fn row_weights(
    set: InstructionSet,
    data: &Dataset,
    query: &AnchorQuery<'_>,
) -> Result<Vec<f32>, EngineError> {
    query.check(data.features().len(), data.labelled())?;
    let mut weights = vec![0.0f32; data.rows().next_multiple_of(TILE)];
    weights.par_chunks_mut(BLOCK).enumerate().for_each_init(
        || Block::new(set, data, query),
        |block, (k, out)| {
            set.read(block, k * BLOCK);
            for (i, weight) in out.iter_mut().enumerate().take(block.live) {
                let (_, w) = query.slopes.score.slopes(block.eta[i], 0.0);
                let share = share_of_ball(block.squares[i].sqrt(), query.metric.row_bound);
                *weight = query.slopes.influence(share, w).omega as f32;
            }
        },
    );
    Ok(weights)
}

/// Some rows in an anchor's coordinates: coordinate j of row i stands at `j · BLOCK + i`.
pub(super) struct Block<'a> {
    set: InstructionSet,
    data: &'a Dataset,
    query: &'a AnchorQuery<'a>,
    /// L with every row over its diagonal, and what the diagonal is divided by.
    factor: Unit,
    first: usize,
    /// Rows that there are.
    live: usize,
    eta: Vec<f64>,
    /// z = L⁻¹x, or L⁻¹∇f of a network; padded columns are zeros.
    z: Vec<f64>,
    /// ‖z‖².
    squares: Vec<f64>,
    /// z as integers within the ball.
    q: Vec<f64>,
    /// Their products with each row's weight; then the scores, as a column of their own.
    weighted: Vec<f64>,
    weights: Vec<f64>,
    /// Products of the weighted columns with those of q; above the diagonal unused.
    products: Vec<f64>,
}

impl<'a> Block<'a> {
    fn new(set: InstructionSet, data: &'a Dataset, query: &'a AnchorQuery<'a>) -> Self {
        let d = query.at.len();
        let (columns, rows) = (d.next_multiple_of(GROUP), (d + 1).next_multiple_of(GROUP));
        let matrix = |columns: usize| vec![0.0; columns * BLOCK];
        let column = || vec![0.0; BLOCK];
        Block {
            set,
            data,
            query,
            factor: Unit::of(&query.metric.factor),
            first: 0,
            live: 0,
            eta: column(),
            z: matrix(columns),
            squares: column(),
            q: matrix(columns),
            weighted: matrix(rows),
            weights: column(),
            products: vec![0.0; rows * columns],
        }
    }

    /// η, z and ‖z‖² of the rows from `first` on.
    #[inline(always)]
    pub(super) fn read(&mut self, first: usize) {
        let d = self.query.at.len();
        self.first = first;
        self.live = BLOCK.min(self.data.rows() - first);
        match self.query.slopes.predictor {
            Predictor::Linear => {
                self.data.copy_columns(first, &mut self.z[..d * BLOCK]);
                self.eta.fill(0.0);
                for (x, t) in self.z.chunks_exact(BLOCK).zip(self.query.at) {
                    for (eta, x) in self.eta.iter_mut().zip(x) {
                        *eta += x * t;
                    }
                }
            }
            Predictor::Network(shape) => {
                let (mut row, mut z) = (vec![0.0; self.data.features().len()], vec![0.0; d]);
                for i in 0..self.live {
                    self.data.copy_row(first + i, &mut row);
                    self.eta[i] = shape.slope(self.query.at, &row, &mut z);
                    for (column, z) in self.z.chunks_exact_mut(BLOCK).zip(&z) {
                        column[i] = *z;
                    }
                }
            }
        }
        self.set.solve(&self.factor, &mut self.z);
        self.squares.fill(0.0);
        for z in self.z.chunks_exact(BLOCK).take(d) {
            for (square, z) in self.squares.iter_mut().zip(z) {
                *square += z * z;
            }
        }
    }

    /// Adds what is wanted of these rows.
    #[inline(always)]
    pub(super) fn add_to(&mut self, sums: &mut AnchorSums) {
        let parts = self.query.parts;
        if parts.profile {
            self.add_profile(sums);
        }
        if !(parts.gradient || parts.curvature) {
            return;
        }
        self.quantize();
        let d = self.query.at.len();
        let columns = self.q.len() / BLOCK;
        if !parts.curvature {
            let scores = &self.weighted[d * BLOCK..][..BLOCK];
            for (sum, q) in sums.gradient.iter_mut().zip(self.q.chunks_exact(BLOCK)) {
                *sum += i128::from(dot(scores, q) as i64);
            }
            return;
        }
        let weighted = self.weighted.chunks_exact_mut(BLOCK).take(d);
        for (weighted, q) in weighted.zip(self.q.chunks_exact(BLOCK)) {
            for ((out, q), w) in weighted.iter_mut().zip(q).zip(&self.weights) {
                *out = q * w;
            }
        }
        self.set
            .products(&self.weighted, &self.q, &mut self.products);
        let mut rows = self.products.chunks_exact(columns);
        let curvature = rows.by_ref().take(d).enumerate();
        let curvature = curvature.flat_map(|(j, row)| &row[..=j]);
        for (sum, found) in sums.curvature.iter_mut().zip(curvature) {
            *sum += i128::from(*found as i64);
        }
        for (sum, found) in sums.gradient.iter_mut().zip(rows.next().unwrap_or(&[])) {
            *sum += i128::from(*found as i64);
        }
    }

    fn label(&self, i: usize) -> f64 {
        let labels = self.data.labels();
        labels.get(self.first + i).map_or(0.0, |y| f64::from(*y))
    }

    fn add_profile(&self, sums: &mut AnchorSums) {
        for i in 0..self.live {
            let (_, weight) = quantize_slopes(&self.query.slopes, 1.0, self.eta[i], self.label(i));
            let norm = self.squares[i].sqrt();
            sums.add_to_profile(norm, self.query.metric.row_bound, weight);
        }
    }

    /// Integers of z within the ball, scores and weights; zeros beyond the last row.
    #[inline(always)]
    fn quantize(&mut self) {
        let bound = self.query.metric.row_bound;
        let limit = f64::from(1u32 << FEATURE_BITS);
        round(limit / bound, limit, &self.z, &mut self.q);
        let mut sizes = [0.0; BLOCK];
        for q in self.q.chunks_exact(BLOCK) {
            for (size, q) in sizes.iter_mut().zip(q) {
                *size += q * q;
            }
        }
        let d = self.query.at.len();
        for (i, size) in sizes.iter().enumerate().take(self.live) {
            if *size > limit * limit {
                self.shorten(i, d);
            }
            let share = share_of_ball(self.squares[i].sqrt(), bound);
            let label = self.label(i);
            let (score, weight) = quantize_slopes(&self.query.slopes, share, self.eta[i], label);
            self.weights[i] = weight as f64;
            self.weighted[d * BLOCK + i] = score as f64;
        }
        self.weights[self.live..].fill(0.0);
        self.weighted[d * BLOCK..][self.live..BLOCK].fill(0.0);
    }

    /// A row whose rounded integers leave the ball.
    #[cold]
    fn shorten(&mut self, i: usize, d: usize) {
        let z: Vec<f64> = (0..d).map(|j| self.z[j * BLOCK + i]).collect();
        let mut q = vec![0; d];
        quantize_row(&z, self.query.metric.row_bound, &mut q);
        for (j, q) in q.into_iter().enumerate() {
            self.q[j * BLOCK + i] = q as f64;
        }
    }
}

/// A lower triangular L as D (L_ik/L_ii): divisions take as long as dozens of products.
pub(super) struct Unit {
    /// Row i up to the diagonal, which is left out.
    pub rows: Vec<Vec<f64>>,
    /// 1/L_ii.
    pub inverse: Vec<f64>,
}

impl Unit {
    fn of(factor: &Lower) -> Self {
        let row = |i: usize| {
            let row = factor.row(i);
            row[..i].iter().map(|l| l / row[i]).collect()
        };
        Unit {
            rows: (0..factor.dim()).map(row).collect(),
            inverse: (0..factor.dim()).map(|i| 1.0 / factor.row(i)[i]).collect(),
        }
    }
}

/// `L z = x` in place for the columns of a block, by the same operations in every version: what is
/// rounded must be.
pub(super) fn solve(factor: &Unit, z: &mut [f64]) {
    for (i, (row, inverse)) in factor.rows.iter().zip(&factor.inverse).enumerate() {
        let (solved, rest) = z.split_at_mut(i * BLOCK);
        let mut sum = [0.0; BLOCK];
        for (z, l) in solved.chunks_exact(BLOCK).zip(row) {
            for (sum, z) in sum.iter_mut().zip(z) {
                *sum += l * z;
            }
        }
        for (x, sum) in rest[..BLOCK].iter_mut().zip(&sum) {
            *x = *x * inverse - sum;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Lanes of their own, which are added in any order: integers are exact.
    let mut lanes = [0.0; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for l in 0..8 {
            lanes[l] += a[l] * b[l];
        }
    }
    lanes.iter().sum()
}

/// The nearest integers to z·scale, from −limit to limit; NaN becomes 0.
#[inline(always)]
fn round(scale: f64, limit: f64, z: &[f64], q: &mut [f64]) {
    for (q, z) in q.iter_mut().zip(z) {
        let nearest = (z * scale).round_ties_even();
        *q = if nearest.is_nan() {
            0.0
        } else {
            nearest.clamp(-limit, limit)
        };
    }
}

/// Products `Σ_i a_ji b_ki` of columns j ≥ k, and others.
pub(super) fn products(a: &[f64], b: &[f64], out: &mut [f64]) {
    let columns = b.len() / BLOCK;
    for (j, a) in a.chunks_exact(BLOCK).enumerate() {
        for (k, b) in b.chunks_exact(BLOCK).enumerate().take(j + 1) {
            out[j * columns + k] = dot(a, b);
        }
    }
}
