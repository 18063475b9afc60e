//! An anchor's sums where what is summed are vectors, because no single score and weight scale a
//! row (docs/proofs/anchors.md, "Parameters that rows share") or because the rows of one unit are
//! clipped together ("Units of several rows"): a gradient is one vector, a curvature a sum of a few
//! outer products.

use std::ops::Range;

use super::anchor::{
    AnchorQuery, AnchorSums, FEATURE_BITS, GRADIENT_BITS, PROFILE_SHIFT, WEIGHT_BITS,
    quantize_in_ball, quantize_to, share_of_ball,
};
use crate::data::{Dataset, Units};
use crate::expression::{Clip, Located, Parts, Source};
use crate::model::{Joint, Profile, Slopes};

/// The vectors of a curvature in units of their bound √W b over 2^21, so that their products are in
/// units of W b² over 2^42.
const CURVATURE_BITS: u32 = FEATURE_BITS + WEIGHT_BITS / 2;
/// Bound on Σ‖q‖² over these vectors where their products may be taken away as well: 2^42/√2.
const INDEFINITE: u128 = 3_109_888_511_975;
/// Units whose curvature is summed in 64 bits: Σ‖q‖² ≤ 2^42 each.
const NARROW_UNITS: usize = 1 << 16;
/// The entries of a unit's profile add up to this at most.
const PROFILE_LIMIT: i64 = 1 << (WEIGHT_BITS + PROFILE_SHIFT);

/// Rows at an anchor's point, one unit after the other; a row is a unit unless it was declared
/// whose it is.
pub(super) struct VectorRows<'a> {
    data: &'a Dataset,
    query: &'a AnchorQuery<'a>,
    /// The law with shared parameters, if there are some.
    shared: Option<(Joint, &'a Located)>,
    slopes: Slopes,
    /// L⁻¹ of each shared parameter's own direction, and its length times the parameter's scale.
    directions: Vec<Vec<f64>>,
    lengths: f64,
}

/// What a unit adds up to, before it is clipped.
struct Unit {
    gradient: Vec<f64>,
    /// Vectors of d values whose outer products its curvature is, and whether each is taken away.
    vectors: Vec<f64>,
    minus: Vec<bool>,
    profile: Vec<i64>,
}

impl<'a> VectorRows<'a> {
    pub fn new(
        data: &'a Dataset,
        query: &'a AnchorQuery<'a>,
        shared: Option<(Joint, &'a Located)>,
    ) -> Self {
        let d = query.at.len();
        let scales = shared.map_or(&[][..], |(_, located)| &located.scales);
        let directions: Vec<Vec<f64>> = (d - scales.len()..d)
            .map(|k| {
                let mut z = vec![0.0; d];
                z[k] = 1.0;
                query.metric.factor.solve(&mut z);
                z
            })
            .collect();
        let squares = directions.iter().zip(scales);
        let lengths = squares.map(|(z, a)| a * a * square(z)).sum();
        VectorRows {
            data,
            query,
            shared,
            slopes: query.slopes,
            directions,
            lengths,
        }
    }

    /// Number of units, or of rows that are here.
    pub fn count(&self) -> usize {
        let units = self.data.units().map(Units::count);
        units.unwrap_or(self.data.lines())
    }

    fn rows(&self, unit: usize) -> Range<usize> {
        match self.data.units() {
            Some(units) => units.rows(unit),
            None => unit..unit + 1,
        }
    }

    /// Sums over some units.
    pub fn sums(&self, units: Range<usize>) -> AnchorSums {
        let d = self.query.at.len();
        let mut sums = AnchorSums::zero(d);
        let mut narrow = vec![0i64; sums.curvature.len()];
        let mut unit = Unit {
            gradient: vec![0.0; d],
            vectors: Vec::new(),
            minus: Vec::new(),
            profile: vec![0; sums.profile.len()],
        };
        let mut row = Row {
            x: vec![0.0; self.data.width()],
            z: vec![0.0; d],
            parts: Parts::new(1 + self.directions.len()),
            gram: self.gram(),
        };
        let mut q = Vec::new();
        for (k, number) in units.enumerate() {
            unit.gradient.fill(0.0);
            unit.vectors.clear();
            unit.minus.clear();
            unit.profile.fill(0);
            for i in self.rows(number) {
                self.add_row(i, &mut row, &mut unit);
            }
            self.clip(&unit, &mut q, &mut sums, &mut narrow);
            if (k + 1).is_multiple_of(NARROW_UNITS) {
                widen(&mut narrow, &mut sums.curvature);
            }
        }
        widen(&mut narrow, &mut sums.curvature);
        sums
    }

    /// Adds a row to its unit; of several rows none counts more than one alone may. One of a share
    /// of the largest weight is as long as the root of that share makes it, and its score as much
    /// less.
    fn add_row(&self, i: usize, row: &mut Row, unit: &mut Unit) {
        let (d, parts) = (self.query.at.len(), self.query.parts);
        let p = d - self.directions.len();
        let bound = self.query.metric.row_bound;
        // What is clipped once more below: a row by itself.
        let several = self.data.units().is_some() || self.data.weighted();
        let z = &mut row.z;
        self.data.copy_row(i, &mut row.x);
        z[..p].copy_from_slice(&row.x[..p]);
        z[p..].fill(0.0);
        let eta: f64 = z.iter().zip(&self.query.at[..p]).map(|(x, t)| x * t).sum();
        let eta = eta + row.x.get(p).copied().unwrap_or(0.0);
        let label = f64::from(self.data.labels()[i]);
        let part = self.data.shares().get(i).map_or(1.0, |s| f64::from(*s));
        let root = part.sqrt();
        self.query.metric.factor.solve(z);
        let norm = root * (square(z) + self.lengths).sqrt();
        let alone = self.shared.is_none().then(|| {
            let share = share_of_ball(norm, bound);
            z.iter_mut().for_each(|z| *z *= root * share);
            self.slopes.score_and_weight(root, share, eta, label)
        });
        if parts.gradient {
            let mut v = vec![0.0; d];
            let most = self.slopes.largest_score * bound;
            match (self.shared, alone) {
                (Some(joint), _) => {
                    let most = most / part.max(f64::MIN_POSITIVE);
                    self.score(joint, z, ([label, eta], most), &mut row.gram, &mut v);
                    v.iter_mut().for_each(|v| *v *= part);
                }
                (None, Some((score, _))) => self.combine(z, &[score], &mut v),
                (None, None) => {}
            }
            if several {
                shorten(&mut v, most);
            }
            unit.gradient.iter_mut().zip(v).for_each(|(g, v)| *g += v);
        }
        if parts.profile == Some(Profile::Gradients) {
            let (length, score) = match self.shared {
                // (Its z is not shortened.)
                Some((joint, _)) => {
                    let scores = joint.law.scores(label, eta, joint.shared(self.query.at));
                    let mut v = vec![0.0; d];
                    self.combine(z, &scores, &mut v);
                    (part * square(&v).sqrt(), scores[0])
                }
                None => {
                    let (score, _) = self.slopes.score.slopes(eta, label);
                    ((root * score * norm).abs(), score)
                }
            };
            let longest = self.slopes.largest_score * bound;
            let place = AnchorSums::place_of_gradient(length / longest, score);
            let rows = f64::from(self.slopes.rows_of_unit);
            unit.profile[place] += in_profile(1.0 / rows);
        }
        let by_norms = parts.profile == Some(Profile::Norms);
        if !(parts.curvature || by_norms) {
            return;
        }
        match (self.shared, alone) {
            (Some((joint, located)), _) => {
                let (law, shared) = (joint.law, joint.shared(self.query.at));
                let information = &located.information;
                information.split(law, [label, eta], shared, &mut row.parts);
            }
            (None, Some((_, weight))) => row.parts.columns.fill(weight.sqrt()),
            (None, None) => {}
        }
        let first = unit.vectors.len();
        unit.vectors.resize(first + d * row.parts.minus.len(), 0.0);
        let columns = row.parts.columns.chunks_exact(row.parts.minus.len());
        let vectors = unit.vectors[first..].chunks_exact_mut(d);
        columns
            .zip(vectors)
            .for_each(|(column, v)| self.combine(z, column, v));
        unit.minus.extend_from_slice(&row.parts.minus);
        if by_norms {
            let weight = match self.shared {
                None => self.slopes.score_and_weight(1.0, 1.0, eta, label).1,
                Some(_) => {
                    let vectors = unit.vectors[first..].chunks_exact(d);
                    let signed = vectors.zip(&row.parts.minus);
                    let trace: f64 = signed
                        .map(|(v, minus)| if *minus { -square(v) } else { square(v) })
                        .sum();
                    trace / (square(z) + self.lengths)
                }
            };
            let norm = norm * self.slopes.larger_score(eta);
            let share = weight / self.slopes.profile_weight();
            unit.profile[place(norm, bound)] += in_profile(share);
        }
        if self.shared.is_some() {
            let vectors = unit.vectors[first..].iter_mut();
            vectors.for_each(|v| *v *= root);
        }
        if several {
            let most = self.slopes.largest_weight.sqrt() * bound;
            shorten(&mut unit.vectors[first..], most);
        }
    }

    /// The score of a row in whitened coordinates, clipped to `most` by what the law says of it.
    fn score(
        &self,
        (joint, located): (Joint, &Located),
        z: &[f64],
        ([label, eta], most): ([f64; 2], f64),
        gram: &mut [f64],
        out: &mut [f64],
    ) {
        let (law, shared) = (joint.law, joint.shared(self.query.at));
        if located.information.is_centred() {
            self.measure(z, gram);
            let clip = Clip { gram, most };
            let scores = located
                .information
                .centred(law, [label, eta], shared, &clip);
            self.combine(z, &scores, out);
        } else {
            self.combine(z, &law.scores(label, eta, shared), out);
            shorten(out, most);
        }
    }

    /// Clips a unit as the sums are priced, in integers, and adds it to them.
    fn clip(&self, unit: &Unit, q: &mut Vec<i64>, sums: &mut AnchorSums, narrow: &mut [i64]) {
        let (d, parts) = (self.query.at.len(), self.query.parts);
        let bound = self.query.metric.row_bound;
        if parts.gradient {
            q.resize(d, 0);
            let most = self.slopes.unit_score() * bound;
            quantize_in_ball(2 * GRADIENT_BITS, &unit.gradient, most, q);
            let all = sums.gradient.iter_mut().zip(&*q);
            all.for_each(|(s, q)| *s += i128::from(*q));
        }
        if parts.profile.is_some() {
            // (Rounding can take the sum of a unit's entries beyond the limit, by a unit a row.)
            let whole: i64 = unit.profile.iter().sum();
            let entries = sums.profile.iter_mut().zip(&unit.profile);
            entries.for_each(|(s, w)| {
                let w = i128::from(*w);
                *s += w * i128::from(PROFILE_LIMIT) / i128::from(whole.max(PROFILE_LIMIT));
            });
        }
        if parts.curvature {
            q.resize(unit.vectors.len(), 0);
            let most = self.slopes.unit_weight().sqrt() * bound;
            let shared = self.shared.map(|(_, located)| located.information.source());
            let indefinite = shared == Some(Source::Observed);
            match indefinite {
                true => {
                    let scale = (1u64 << CURVATURE_BITS) as f64 / most;
                    quantize_to(INDEFINITE, &unit.vectors, scale, q);
                }
                false => quantize_in_ball(CURVATURE_BITS, &unit.vectors, most, q),
            }
            for (q, minus) in q.chunks_exact(d).zip(&unit.minus) {
                let mut entry = narrow.iter_mut();
                // Whatever a law says, nothing is taken away that was not priced so.
                let sign = if indefinite && *minus { -1 } else { 1 };
                for (k, a) in q.iter().enumerate() {
                    let a = a * sign;
                    for (b, sum) in q[..=k].iter().zip(entry.by_ref()) {
                        *sum += a * b;
                    }
                }
            }
        }
    }

    /// `by[0]·z + Σ by[k] z_k`.
    fn combine(&self, z: &[f64], by: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(z).for_each(|(o, z)| *o = by[0] * z);
        for (by, direction) in by[1..].iter().zip(&self.directions) {
            let sum = out.iter_mut().zip(direction);
            sum.for_each(|(o, z)| *o += by * z);
        }
    }

    /// Products of the directions with each other, and room for those of z.
    fn gram(&self) -> Vec<f64> {
        let size = 1 + self.directions.len();
        let mut gram = vec![0.0; size * size];
        for (k, a) in self.directions.iter().enumerate() {
            for (l, b) in self.directions.iter().enumerate() {
                gram[(k + 1) * size + l + 1] = product(a, b);
            }
        }
        gram
    }

    /// Those of z, into a matrix that has the others.
    fn measure(&self, z: &[f64], gram: &mut [f64]) {
        let size = 1 + self.directions.len();
        gram[0] = square(z);
        for (k, direction) in self.directions.iter().enumerate() {
            let along = product(z, direction);
            (gram[k + 1], gram[(k + 1) * size]) = (along, along);
        }
    }
}

/// A share of what an entry of a profile may be, in its units: from 0 to 2^22 whatever it is.
fn in_profile(share: f64) -> i64 {
    let units = share * PROFILE_LIMIT as f64;
    (units.round_ties_even() as i64).clamp(0, PROFILE_LIMIT)
}

/// A row, in the anchor's coordinates too, and its curvature.
struct Row {
    /// As it is stored.
    x: Vec<f64>,
    z: Vec<f64>,
    parts: Parts,
    /// Products of the Jacobian's columns with each other.
    gram: Vec<f64>,
}

/// The range of a profile that a norm is in; NaN lies beyond the last.
fn place(norm: f64, bound: f64) -> usize {
    let thresholds = AnchorSums::profile_thresholds();
    let place = thresholds.iter().position(|t| norm <= t * bound);
    place.unwrap_or(thresholds.len())
}

fn square(v: &[f64]) -> f64 {
    product(v, v)
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Scales a vector to a norm of `most` where it is longer; NaN stays, and becomes 0 in integers.
fn shorten(v: &mut [f64], most: f64) {
    let norm = square(v).sqrt();
    if norm > most {
        v.iter_mut().for_each(|v| *v *= most / norm);
    }
}

fn widen(from: &mut [i64], to: &mut [i128]) {
    to.iter_mut()
        .zip(&*from)
        .for_each(|(t, f)| *t += i128::from(*f));
    from.fill(0);
}

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
        profile: Some(Profile::Norms),
    };

    fn number(low: f64, high: f64) -> LabelKind {
        LabelKind::Number { low, high }
    }

    /// Another expression for labels below 0, which says nothing of events that were not seen.
    const TWO_SIDED: &str = "if(y > 0, -0.5 * ((y - eta) * exp(-log_sigma))^2, \
                             -0.5 * ((eta - y) * exp(-log_sigma))^2) - log_sigma";

    /// A law of each kind of information, its label and shared parameters.
    fn laws() -> Vec<(Law, LabelKind, Vec<f64>)> {
        let law = |name: &str, shared: &[&str]| {
            let shared: Vec<String> = shared.iter().map(|n| n.to_string()).collect();
            Law::new(name, family(name).unwrap().likelihood, &shared, &[]).unwrap()
        };
        let ordered = ["cut_1".to_string(), "log_gap_2".to_string()];
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
                Law::new("ordinal", &crate::expression::ordinal(3), &ordered, &[]).unwrap(),
                LabelKind::Class { classes: 3 },
                vec![-0.7, 0.4],
            ),
            (
                Law::new("two-sided", TWO_SIDED, &["log_sigma".into()], &[]).unwrap(),
                number(-9.0, 9.0),
                vec![-0.4],
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
                        LabelKind::Class { .. } => f64::from(i % 3),
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
                    // What signs stand for is not known: as observed.
                    if law.name() == "two-sided" {
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

    /// Asserts what a unit's part is charged for; its curvature's share of that, squared.
    fn within_bounds(sums: &AnchorSums, partial: bool) -> f64 {
        assert!(sums.gradient.iter().map(|s| s * s).sum::<i128>() <= 1 << (4 * GRADIENT_BITS));
        let mut whole = 0.0;
        let mut entry = sums.curvature.iter().map(|s| (*s as f64).powi(2));
        for j in 0..sums.gradient.len() {
            for k in 0..=j {
                whole += if j == k { 1.0 } else { 2.0 } * entry.next().unwrap();
            }
        }
        let most = 2f64.powi(84) / if partial { 2.0 } else { 1.0 };
        assert!(whole <= most);
        assert!(sums.profile.iter().all(|s| *s >= 0));
        assert!(sums.profile.iter().sum::<i128>() <= 1 << 22);
        whole / most
    }

    /// Rows of three classes as often as their law draws them, a rare one beyond the bound: what
    /// clipped scores add up to is gone but for that row's share of it, which is clipped again.
    #[test]
    fn clipped_classes_add_up_to_little_where_the_law_holds() {
        let (law, kind, _) = laws().swap_remove(3);
        // At η = 0 the classes are seen 12, 7 and 1 in 20 times.
        let cuts = [(0.6f64 / 0.4).ln(), (0.95f64 / 0.05).ln()];
        let at = [0.0, 0.0, cuts[0], (cuts[1] - cuts[0]).ln()];
        let each = [(0.0, 12), (1.0, 7), (2.0, 1)].map(|(y, times)| vec![y; times]);
        let rows: Vec<([f32; 2], f64)> = each.concat().iter().map(|y| ([0.8, -0.5], *y)).collect();
        let slopes = slopes(law, kind, &at);
        let metric = Metric {
            factor: Lower::identity(4),
            row_bound: 0.3,
        };
        let query = AnchorQuery {
            at: &at,
            metric: &metric,
            slopes,
            parts: ALL,
        };
        let sums = CpuEngine::new(table(kind, &rows)).anchor_sums(&query);
        let unit = AnchorSums::gradient_unit(0.3, &slopes);
        let left: Vec<f64> = sums
            .unwrap()
            .gradient
            .iter()
            .map(|s| *s as f64 * unit)
            .collect();
        let mut plain = vec![0.0; 4];
        for (_, y) in &rows {
            let s = law.scores(*y, 0.0, &at[2..]);
            let mut v = [0.8 * s[0], -0.5 * s[0], s[1], s[2]];
            shorten(&mut v, 0.3 * slopes.largest_score);
            plain.iter_mut().zip(v).for_each(|(p, v)| *p += v);
        }
        assert!(square(&plain) > 1.0, "{plain:?}");
        assert!(
            square(&left) < 0.06f64.powi(2) * square(&plain),
            "{left:?} {plain:?}"
        );
    }

    /// Times at a Weibull law's quantiles, the first third of which end before the event where that
    /// is late: events are clipped, rows stop early, and what they add up to is a fiftieth at
    /// most of what clipped scores alone would leave.
    #[test]
    fn clipped_times_add_up_to_little_where_the_law_holds() {
        let kind = number(-40.0, 40.0);
        let text = family("weibull").unwrap().likelihood;
        let law = Law::new("weibull", text, &["log_shape".into()], &[]).unwrap();
        let at = [1.2, -0.5, 0.2];
        let eta = 0.8 * 1.2 + 0.5 * 0.5;
        let count = 3000;
        let rows: Vec<([f32; 2], f64)> = (0..count)
            .map(|i| {
                let hazard = -((f64::from(i) + 0.5) / f64::from(count)).ln();
                let time = (eta + hazard.ln() / 0.2f64.exp()).exp();
                let end = if i % 3 == 0 { 2.5 } else { 1e9 };
                let label = if time <= end { time } else { -end };
                ([0.8, -0.5], label)
            })
            .collect();
        let slopes = slopes(law, kind, &at);
        let row_bound = 0.15;
        let metric = Metric {
            factor: Lower::identity(3),
            row_bound,
        };
        let query = AnchorQuery {
            at: &at,
            metric: &metric,
            slopes,
            parts: ALL,
        };
        let sums = CpuEngine::new(table(kind, &rows))
            .anchor_sums(&query)
            .unwrap();
        let unit = AnchorSums::gradient_unit(row_bound, &slopes);
        let left: Vec<f64> = sums.gradient.iter().map(|s| *s as f64 * unit).collect();
        let most = slopes.largest_score * row_bound;
        let mut plain = vec![0.0; 3];
        let mut clipped = 0;
        for (_, y) in &rows {
            let s = law.scores(f64::from(*y as f32), eta, &at[2..]);
            let mut v = [0.8 * s[0], -0.5 * s[0], s[1]].to_vec();
            clipped += usize::from(square(&v).sqrt() > most);
            shorten(&mut v, most);
            plain.iter_mut().zip(v).for_each(|(p, v)| *p += v);
        }
        let norms = [&left, &plain].map(|v| square(v).sqrt() / most);
        assert!(clipped > 100 && norms[1] > 30.0, "{clipped} {norms:?}");
        assert!(norms[0] < 0.02 * norms[1], "{left:?} {plain:?}");
    }

    /// Units of random rows of every kind, which agree or not, are within the same bounds, and rows
    /// that agree come near to them.
    #[test]
    fn no_unit_exceeds_its_bounds() {
        let classes = Slopes::logistic();
        let mut cases = vec![(None, classes, LabelKind::Binary, vec![0.3, -0.2])];
        for (law, label, shared) in laws() {
            let at = [vec![0.3, -0.2], shared].concat();
            cases.push((Some(law), slopes(law, label, &at), label, at));
        }
        let mut random = 1u64;
        let mut next = move || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize
        };
        let mut nearest = [0.0f64; 2];
        for (law, slopes, label, at) in cases {
            for most in [1u32, 2, 5, 40] {
                let names = vec!["a".into(), "b".into()];
                let set = Dataset::builder_with(names, Some(label), 3e38).unwrap();
                let column = "person".to_string();
                let mut set = set.of_units(crate::data::Unit { column, rows: most });
                let units = 60u64;
                for unit in 0..units {
                    // Rows that agree, or each another.
                    let agree = unit % 2 == 0;
                    let mut x = [1.0f32, 0.2];
                    let mut y = 1.0;
                    for k in 0..1 + next() % (most as usize + 3) {
                        if !agree || k == 0 {
                            let sizes = [0.0, 0.1, -1.0, 2.0, -30.0, 1e20];
                            x = [sizes[next() % 6], sizes[next() % 6]];
                            y = match label {
                                LabelKind::Binary => [1.0, -1.0][next() % 2],
                                _ => label.bound() * (next() % 4) as f64 / 3.0,
                            };
                            y = y.round();
                        }
                        set.push_owned(&x, Some(y), unit).unwrap();
                    }
                }
                let set = set.finish().unwrap();
                assert_eq!(set.rows(), units as usize);
                let metric = Metric {
                    factor: Lower::identity(at.len()),
                    row_bound: 1.0,
                };
                let query = AnchorQuery {
                    at: &at,
                    metric: &metric,
                    slopes: slopes.of_units(most),
                    parts: ALL,
                };
                let joint = match slopes.predictor {
                    crate::model::Predictor::Joint(joint) => Some((joint, joint.located(&at))),
                    _ => None,
                };
                let shared = joint.as_ref().map(|(joint, located)| (*joint, &**located));
                let rows = VectorRows::new(&set, &query, shared);
                let partial =
                    shared.is_some_and(|(_, l)| l.information.source() == Source::Observed);
                let gradients = AnchorQuery {
                    parts: AnchorParts {
                        profile: Some(Profile::Gradients),
                        ..ALL
                    },
                    ..query
                };
                let others = VectorRows::new(&set, &gradients, shared);
                let mut whole = AnchorSums::zero(at.len());
                for unit in 0..rows.count() {
                    within_bounds(&others.sums(unit..unit + 1), partial);
                    let sums = rows.sums(unit..unit + 1);
                    let share = within_bounds(&sums, partial);
                    if most > 1 {
                        let gradient: f64 = sums.gradient.iter().map(|s| (*s as f64).powi(2)).sum();
                        let most = 2f64.powi(4 * GRADIENT_BITS as i32);
                        nearest[0] = nearest[0].max(gradient / most);
                        nearest[1] = nearest[1].max(share);
                    }
                    whole.add(sums);
                }
                // However they are split.
                let engine = CpuEngine::new(Arc::new(set)).anchor_sums(&query).unwrap();
                assert_eq!(engine, whole, "{law:?}");
            }
        }
        assert!(nearest.iter().all(|share| *share > 0.99), "{nearest:?}");
    }

    /// Where no bound clips, units add up to what their rows do one by one.
    #[test]
    fn units_add_up_to_their_rows() {
        let (law, label, shared) = laws().swap_remove(2);
        let negative_binomial = [vec![0.3, -0.2], shared].concat();
        for (slopes, label, at) in [
            (Slopes::logistic(), LabelKind::Binary, vec![0.3, -0.2]),
            (
                slopes(law, label, &negative_binomial),
                label,
                negative_binomial,
            ),
        ] {
            let rows: Vec<([f32; 2], f64)> = (0..900)
                .map(|i| {
                    let t = f64::from(i);
                    let y = match label {
                        LabelKind::Binary => [1.0, -1.0][(7 * i % 3 % 2) as usize],
                        _ => f64::from(i % 7),
                    };
                    ([(0.4 * t).sin() as f32, (0.9 * t).cos() as f32], y)
                })
                .collect();
            let names = vec!["a".into(), "b".into()];
            let set = Dataset::builder_with(names, Some(label), 3e38).unwrap();
            let column = "person".to_string();
            let mut units = set.of_units(crate::data::Unit { column, rows: 3 });
            for (i, (x, y)) in rows.iter().enumerate() {
                units.push_owned(x, Some(*y), i as u64 % 300).unwrap();
            }
            let metric = Metric {
                factor: Lower::identity(at.len()),
                row_bound: 8.0,
            };
            let nats = |set: Arc<Dataset>, slopes: Slopes| -> Vec<f64> {
                let query = AnchorQuery {
                    at: &at,
                    metric: &metric,
                    slopes,
                    parts: ALL,
                };
                let sums = CpuEngine::new(set).anchor_sums(&query).unwrap();
                let units = [
                    (sums.gradient, AnchorSums::gradient_unit(8.0, &slopes)),
                    (sums.curvature, AnchorSums::curvature_unit(8.0, &slopes)),
                    (sums.profile, AnchorSums::weight_unit(&slopes)),
                ];
                let scaled = units
                    .into_iter()
                    .flat_map(|(sums, unit)| sums.into_iter().map(move |s| s as f64 * unit));
                scaled.collect()
            };
            let of_rows = nats(table(label, &rows), slopes);
            let of_units = nats(Arc::new(units.finish().unwrap()), slopes.of_units(3));
            // Rounding alone: 900 rows by a part in 2^13 of the bounds of score and weight.
            for (a, b) in of_rows.iter().zip(&of_units) {
                assert!((a - b).abs() < 0.05 + 2e-3 * a.abs(), "{a} {b}");
            }
        }
    }

    /// Whatever a row is, its part is within the bounds that are charged for: the gradient 2^40,
    /// the curvature 2^42, of an indefinite one 2^42/√2, an entry of the profile 2^22.
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
                let each = VectorRows::new(&set, &query, Some((joint, &located)));
                let partial = located.information.source() == Source::Observed;
                for i in 0..rows.len() {
                    let share = within_bounds(&each.sums(i..i + 1), partial);
                    indefinite += usize::from(partial && share > 0.1);
                }
            }
        }
        assert!(indefinite > 0, "the bound is never come near to");
    }
}
