//! An anchor's sums for a law with parameters that rows share (docs/proofs/anchors.md, "Parameters
//! that rows share"): a row's gradient is a vector that no single score scales, its curvature a sum
//! of a few outer products.

use std::ops::Range;

use super::anchor::{
    AnchorQuery, AnchorSums, PROFILE_SHIFT, ROW_LIMIT, WEIGHT_BITS, quantize_in_ball, quantize_to,
};
use nalgebra::DMatrix;

use crate::data::Dataset;
use crate::expression::Located;
use crate::model::{Joint, Slopes};

/// A row's gradient in units of its bound S b over 2^28.
const GRADIENT_BITS: u32 = 28;
/// The vectors of its curvature in units of their bound √W b over 2^21.
const CURVATURE_BITS: u32 = 21;
/// Bound on Σ‖q‖² over these vectors where their products may be taken away as well: 2^42/√2.
const INDEFINITE: u128 = 3_109_888_511_975;
/// Rows whose curvature is summed in 64 bits: 9 · 2^42 each, at most.
const NARROW_ROWS: usize = 1 << 16;

/// Rows of a law with shared parameters at an anchor's point.
pub(super) struct JointRows<'a> {
    data: &'a Dataset,
    query: &'a AnchorQuery<'a>,
    joint: Joint,
    located: &'a Located,
    slopes: Slopes,
    /// L⁻¹ of each shared parameter's own direction, and its length times the parameter's scale.
    directions: Vec<Vec<f64>>,
    lengths: f64,
}

impl<'a> JointRows<'a> {
    pub fn new(
        data: &'a Dataset,
        query: &'a AnchorQuery<'a>,
        joint: Joint,
        located: &'a Located,
    ) -> Self {
        let (d, m) = (query.at.len(), located.scales.len());
        let directions: Vec<Vec<f64>> = (d - m..d)
            .map(|k| {
                let mut z = vec![0.0; d];
                z[k] = 1.0;
                query.metric.factor.solve(&mut z);
                z
            })
            .collect();
        let squares = directions.iter().zip(&located.scales);
        let lengths = squares.map(|(z, a)| a * a * square(z)).sum();
        JointRows {
            data,
            query,
            joint,
            located,
            slopes: query.slopes,
            directions,
            lengths,
        }
    }

    /// Sums over some rows.
    pub fn sums(&self, rows: Range<usize>) -> AnchorSums {
        let (d, p) = (
            self.query.at.len(),
            self.query.at.len() - self.directions.len(),
        );
        let (bound, parts) = (self.query.metric.row_bound, self.query.parts);
        let size = 1 + self.directions.len();
        let mut sums = AnchorSums::zero(d);
        let mut narrow = vec![0i64; sums.curvature.len()];
        let (mut z, mut v) = (vec![0.0; d], vec![0.0; d * size]);
        let mut q = vec![0i64; d * size];
        let mut parts_of_row = Parts::new(size);
        let first = rows.start;
        for i in rows {
            self.data.copy_row(i, &mut z[..p]);
            z[p..].fill(0.0);
            let eta: f64 = z.iter().zip(&self.query.at[..p]).map(|(x, t)| x * t).sum();
            let label = f64::from(self.data.labels()[i]);
            self.query.metric.factor.solve(&mut z);
            if parts.gradient {
                let v = &mut v[..d];
                let shared = self.joint.shared(self.query.at);
                let scores = self.joint.law.scores(label, eta, shared);
                self.combine(&z, &scores, v);
                let q = &mut q[..d];
                quantize_in_ball(GRADIENT_BITS, v, self.slopes.largest_score * bound, q);
                let all = sums.gradient.iter_mut().zip(&*q);
                all.for_each(|(s, q)| *s += i128::from(*q));
            }
            if !(parts.curvature || parts.profile) {
                continue;
            }
            self.split(label, eta, &mut parts_of_row);
            let vectors = v.chunks_exact_mut(d);
            for (column, v) in parts_of_row.columns.chunks_exact(size).zip(vectors) {
                self.combine(&z, column, v);
            }
            if parts.profile {
                let norm = (square(&z) + self.lengths).sqrt();
                let vectors = v.chunks_exact(d).zip(&parts_of_row.signs);
                let trace: f64 = vectors.map(|(v, sign)| *sign as f64 * square(v)).sum();
                let weight = trace / (norm * norm);
                sums.profile[place(norm, bound)] += i128::from(self.weight(weight));
            }
            if parts.curvature {
                let unit = self.slopes.largest_weight.sqrt() * bound;
                match self.located.information.is_partial() {
                    false => quantize_in_ball(CURVATURE_BITS, &v, unit, &mut q),
                    true => {
                        let scale = (1u64 << CURVATURE_BITS) as f64 / unit;
                        quantize_to(INDEFINITE, &v, scale, &mut q);
                    }
                }
                for (q, sign) in q.chunks_exact(d).zip(&parts_of_row.signs) {
                    let mut entry = narrow.iter_mut();
                    for (k, a) in q.iter().enumerate() {
                        let a = a * sign;
                        for (b, sum) in q[..=k].iter().zip(entry.by_ref()) {
                            *sum += a * b;
                        }
                    }
                }
                if (i - first + 1).is_multiple_of(NARROW_ROWS) {
                    widen(&mut narrow, &mut sums.curvature);
                }
            }
        }
        widen(&mut narrow, &mut sums.curvature);
        sums
    }

    /// What a row's information is made of: as expected of its η, or, where the law does not tell how
    /// labels come about (the times of events that were not seen), as it was observed.
    fn split(&self, label: f64, eta: f64, parts: &mut Parts) {
        let size = parts.signs.len();
        let information = &self.located.information;
        if !information.is_partial() {
            parts.signs.fill(1);
            let mut factor = vec![0.0; size * size];
            information.factor(eta, &mut factor);
            for j in 0..size {
                for k in 0..size {
                    parts.columns[j * size + k] = factor[k * size + j];
                }
            }
            return;
        }
        let shared = self.joint.shared(self.query.at);
        let mut triangle = self.joint.law.bends(label, eta, shared).into_iter();
        let mut matrix = DMatrix::zeros(size, size);
        for k in 0..size {
            for l in 0..=k {
                let value = triangle.next().filter(|v| v.is_finite());
                matrix[(k, l)] = value.unwrap_or(0.0);
                matrix[(l, k)] = matrix[(k, l)];
            }
        }
        let eigen = matrix.symmetric_eigen();
        for j in 0..size {
            let value = eigen.eigenvalues[j];
            parts.signs[j] = if value < 0.0 { -1 } else { 1 };
            for k in 0..size {
                parts.columns[j * size + k] = eigen.eigenvectors[(k, j)] * value.abs().sqrt();
            }
        }
    }

    /// `by[0]·z + Σ by[k] z_k`.
    fn combine(&self, z: &[f64], by: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(z).for_each(|(o, z)| *o = by[0] * z);
        for (by, direction) in by[1..].iter().zip(&self.directions) {
            out.iter_mut()
                .zip(direction)
                .for_each(|(o, z)| *o += by * z);
        }
    }

    /// A weight in a profile's units: from 0 to 2^22 whatever it is.
    fn weight(&self, weight: f64) -> i64 {
        let limit = 1i64 << WEIGHT_BITS;
        let units = weight * (limit as f64 / self.slopes.largest_weight);
        (units.round_ties_even() as i64).clamp(0, limit) << PROFILE_SHIFT
    }
}

/// A symmetric matrix as a sum of outer products of columns, each with its sign.
struct Parts {
    columns: Vec<f64>,
    signs: Vec<i64>,
}

impl Parts {
    fn new(size: usize) -> Self {
        Parts {
            columns: vec![0.0; size * size],
            signs: vec![1; size],
        }
    }
}

/// The range of a profile that a norm is in; NaN lies beyond the last.
fn place(norm: f64, bound: f64) -> usize {
    let thresholds = AnchorSums::profile_thresholds();
    let place = thresholds.iter().position(|t| norm <= t * bound);
    place.unwrap_or(thresholds.len())
}

fn square(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum()
}

fn widen(from: &mut [i64], to: &mut [i128]) {
    to.iter_mut()
        .zip(&*from)
        .for_each(|(t, f)| *t += i128::from(*f));
    from.fill(0);
}

/// Units fit what the sums are priced for: S b over 2^28, and W b² over 2^42.
const _: () = {
    assert!((1u64 << GRADIENT_BITS) as f64 == ROW_LIMIT * (1u64 << WEIGHT_BITS) as f64);
    assert!(
        (1u64 << (2 * CURVATURE_BITS)) as f64
            == ROW_LIMIT * ROW_LIMIT * (1u64 << WEIGHT_BITS) as f64
    );
};
