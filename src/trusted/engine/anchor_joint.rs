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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::cpu::CpuEngine;
    use super::super::{AnchorParts, Engine};
    use super::*;
    use crate::data::LabelKind;
    use crate::expression::{Law, family};
    use crate::model::{Lower, Metric, Model, Prior, Regression};

    const ALL: AnchorParts = AnchorParts {
        gradient: true,
        curvature: true,
        profile: true,
    };

    fn number(low: f64, high: f64) -> LabelKind {
        LabelKind::Number { low, high }
    }

    /// A law of each kind of information, its label and shared parameters.
    fn laws() -> Vec<(Law, LabelKind, Vec<f64>)> {
        let law = |name: &str, shared: &[&str]| {
            let shared: Vec<String> = shared.iter().map(|n| n.to_string()).collect();
            Law::new(name, family(name).unwrap().likelihood, &shared, &[]).unwrap()
        };
        vec![
            (
                law("gaussian", &["log_sigma"]),
                number(-9.0, 9.0),
                vec![-0.4],
            ),
            (
                law("student-t", &["log_sigma", "nu"]),
                number(-9.0, 9.0),
                vec![0.1, 5.0],
            ),
            (
                law("negative-binomial", &["log_shape"]),
                LabelKind::Count { max: 60 },
                vec![0.3],
            ),
            (
                law("weibull", &["log_shape"]),
                number(-40.0, 40.0),
                vec![0.2],
            ),
        ]
    }

    fn table(label: LabelKind, rows: &[([f32; 2], f64)]) -> Arc<Dataset> {
        let names = vec!["a".into(), "b".into()];
        let mut set = Dataset::builder_with(names, Some(label), 3e38).unwrap();
        for (row, y) in rows {
            set.push_value(row, Some(*y)).unwrap();
        }
        Arc::new(set.finish().unwrap())
    }

    fn slopes(law: Law, label: LabelKind, at: &[f64]) -> Slopes {
        let names = ["a".to_string(), "b".to_string()];
        let prior = Prior::normal(at.len(), 3.0);
        let model = Regression::declared(&names, law, label, 2.0, prior, 1.0).unwrap();
        model.slopes().unwrap().at(at)
    }

    /// Rows that no bound clips, against derivatives by differences of the log likelihood in θ.
    #[test]
    fn sums_are_those_of_the_derivatives() {
        for (law, label, shared) in laws() {
            let at = [vec![0.3, -0.2], shared.clone()].concat();
            let d = at.len();
            let rows: Vec<([f32; 2], f64)> = (0..200)
                .map(|i| {
                    let t = f64::from(i);
                    let y = match label {
                        LabelKind::Count { .. } => f64::from(i % 7),
                        // An event in three.
                        _ if law.name() == "weibull" && i % 3 > 0 => -(1.0 + 0.5 * t.sin()),
                        _ if law.name() == "weibull" => 1.2 + t.sin(),
                        _ => (0.7 * t).sin() + (1.9 * t).cos(),
                    };
                    ([(0.4 * t).sin() as f32, (0.9 * t).cos() as f32], y)
                })
                .collect();
            let mut entries = vec![0.0; d * d];
            for i in 0..d {
                for j in 0..=i {
                    entries[i * d + j] = if i == j {
                        1.3
                    } else {
                        0.2 * (i + 2 * j) as f64
                    };
                }
            }
            let factor = Lower::new(entries).unwrap();
            let metric = Metric {
                factor: factor.clone(),
                row_bound: 8.0,
            };
            let slopes = slopes(law, label, &at);
            let query = AnchorQuery {
                at: &at,
                metric: &metric,
                slopes,
                parts: ALL,
            };
            let sums = CpuEngine::new(table(label, &rows))
                .anchor_sums(&query)
                .unwrap();
            let value = |theta: &[f64]| -> f64 {
                let each = rows.iter().map(|(x, y)| {
                    let eta = f64::from(x[0]) * theta[0] + f64::from(x[1]) * theta[1];
                    law.log_likelihood(f64::from(*y as f32), eta, &theta[2..])
                });
                each.sum()
            };
            // In whitened coordinates: θ = at + L⁻ᵀ u.
            let along = |moves: &[(usize, f64)]| -> f64 {
                let mut u = vec![0.0; d];
                moves.iter().for_each(|(k, by)| u[*k] += by);
                let moved = factor.solve_transposed(&u);
                value(&at.iter().zip(moved).map(|(a, v)| a + v).collect::<Vec<_>>())
            };
            let h = 1e-4;
            let unit = AnchorSums::gradient_unit(metric.row_bound, &slopes);
            let curvature = AnchorSums::curvature_unit(metric.row_bound, &slopes);
            let mut entry = 0;
            for i in 0..d {
                let slope = (along(&[(i, h)]) - along(&[(i, -h)])) / (2.0 * h);
                let found = sums.gradient[i] as f64 * unit;
                assert!(
                    (found - slope).abs() < 1e-3 * (1.0 + slope.abs()),
                    "{law:?} {i} {found} {slope}"
                );
                for j in 0..=i {
                    let bend = along(&[(i, h), (j, h)])
                        - along(&[(i, h), (j, -h)])
                        - along(&[(i, -h), (j, h)])
                        + along(&[(i, -h), (j, -h)]);
                    let bend = -bend / (4.0 * h * h);
                    let found = sums.curvature[entry] as f64 * curvature;
                    // What is expected is what was observed where rows are censored alone.
                    if law.name() == "weibull" {
                        assert!(
                            (found - bend).abs() < 2e-3 * (1.0 + bend.abs()),
                            "{i} {j} {found} {bend}"
                        );
                    } else if i == j {
                        assert!(found > 0.0, "{law:?}");
                    }
                    entry += 1;
                }
            }
            assert!(sums.profile.iter().sum::<i128>() > 0);
        }
    }

    /// Whatever a row is, its part is within the bounds that are charged for: the gradient 2^28, the
    /// curvature 2^42, of an indefinite one 2^42/√2, an entry of the profile 2^22.
    #[test]
    fn no_row_exceeds_its_bounds() {
        let sizes = [0.0, 1e-40, 1.0, -3.0, 1e20, -1e20, 3e38];
        let mut indefinite = 0;
        for (law, label, shared) in laws() {
            let ends = match label {
                LabelKind::Number { low, high } => vec![low, 0.0, 0.3, high],
                _ => vec![0.0, 1.0, label.bound()],
            };
            for (row_bound, far) in [(1e-3, 0.0), (2.0, 40.0), (1e3, 700.0), (0.5, -700.0)] {
                let at = [
                    vec![0.3, far],
                    shared.iter().map(|s| s + 0.01 * far).collect(),
                ]
                .concat();
                let metric = Metric {
                    factor: Lower::identity(at.len()),
                    row_bound,
                };
                let rows: Vec<([f32; 2], f64)> = sizes
                    .iter()
                    .flat_map(|x| ends.iter().map(|y| ([*x, 0.7 * *x], *y)))
                    .collect();
                let set = table(label, &rows);
                let slopes = slopes(law, label, &at);
                let query = AnchorQuery {
                    at: &at,
                    metric: &metric,
                    slopes,
                    parts: ALL,
                };
                let crate::model::Predictor::Joint(joint) = slopes.predictor else {
                    panic!("no joint law");
                };
                let located = joint.located(&at);
                let each = JointRows::new(&set, &query, joint, &located);
                for (i, row) in rows.iter().enumerate() {
                    let sums = each.sums(i..i + 1);
                    let square = |v: &[i128]| v.iter().map(|s| (*s as f64).powi(2)).sum::<f64>();
                    assert!(square(&sums.gradient) <= 2f64.powi(56));
                    let mut whole = 0.0;
                    let mut entry = sums.curvature.iter().map(|s| (*s as f64).powi(2));
                    for j in 0..at.len() {
                        for k in 0..=j {
                            whole += if j == k { 1.0 } else { 2.0 } * entry.next().unwrap();
                        }
                    }
                    let partial = located.information.is_partial();
                    let most = 2f64.powi(84) / if partial { 2.0 } else { 1.0 };
                    assert!(whole <= most, "{law:?} {row:?}");
                    indefinite += usize::from(partial && whole > 0.1 * most);
                    assert!(sums.profile.iter().all(|s| (0..=1 << 22).contains(s)));
                }
            }
        }
        assert!(indefinite > 0, "the bound is never come near to");
    }
}
