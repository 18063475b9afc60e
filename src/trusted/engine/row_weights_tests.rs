//! Rows with weights of their own add their shares, to the bit, in every sum.

use std::sync::Arc;

use super::cpu::CpuEngine;
use super::test_cases::{Case, cases, declared, networks_and_declared, pairs, query};
use super::{AnchorParts, AnchorQuery, AnchorSums, Engine, GradientQuery, GradientSum, Rows};
use crate::data::{Dataset, DatasetBuilder, LabelKind, Storage, Unit, share_of};
use crate::expression::{Law, family};
use crate::model::{Metric, Model, Prior, Profile, Regression, Slopes};
use crate::synthetic;

/// The rows of a table without offsets, at these places, each with its share.
pub(super) fn with_shares(
    data: &Dataset,
    rows: impl Iterator<Item = (usize, Option<f64>)>,
    unit: Option<u64>,
) -> Dataset {
    // Wider, so that no row is scaled.
    let norm = 1.001 * data.row_norm();
    let builder = Dataset::builder_with(data.features().to_vec(), data.label_kind(), norm);
    let mut builder: DatasetBuilder = builder.unwrap();
    let rows: Vec<_> = rows.collect();
    if rows[0].1.is_some() {
        builder = builder.weighted();
    }
    if unit.is_some() {
        let (column, rows) = ("who".to_string(), 3);
        builder = builder.of_units(Unit { column, rows });
    }
    let all = data.public_rows();
    let d = data.features().len();
    for (i, share) in rows {
        let (row, label) = (&all[i * d..][..d], Some(f64::from(data.labels()[i])));
        match share {
            Some(share) => builder.push_weighted(row, label, share).unwrap(),
            None => builder.push_value(row, label).unwrap(),
        }
        if let Some(rows) = unit {
            builder.push_owner(i as u64 / rows);
        }
    }
    let made = builder.finish().unwrap();
    match data.storage() {
        Storage::F32 => made,
        Storage::I16 => made.in_16_bits(),
    }
}

/// Tables of regressions, of either storage.
pub(super) fn regressions() -> impl Iterator<Item = Case> {
    let is_one = |c: &Case| {
        let model = &c.model;
        let plain = c.data.offset().is_none() && !model.row_function().sees_rows();
        plain && model.label().is_some()
    };
    cases()
        .into_iter()
        .chain(networks_and_declared())
        .filter(is_one)
}

/// A profile of gradients has each row in the entry of its gradient's length and its score's sign;
/// a row with a weight is so much shorter, and a unit's rows count as shares of it.
#[test]
fn profiles_of_gradients_count_rows_by_length_and_sign() {
    let number = LabelKind::Number {
        low: -30.0,
        high: 30.0,
    };
    let rows: Vec<[f64; 3]> = (0..700)
        .map(|i| {
            let t = f64::from(i);
            [
                (0.7 * t).sin(),
                (1.9 * t).cos(),
                29.0 * (0.3 * t).sin().powi(5),
            ]
        })
        .collect();
    let names = vec!["a".to_string(), "b".to_string()];
    let mut data = Dataset::builder_with(names.clone(), Some(number), 2.0).unwrap();
    for [a, b, y] in &rows {
        data.push_value(&[*a as f32, *b as f32], Some(*y)).unwrap();
    }
    let data = data.finish().unwrap();
    let text = family("gaussian").unwrap().likelihood;
    let law = Law::new("gaussian", text, &["log_sigma".into()], &[]).unwrap();
    let joint = Regression::declared(&names, law, number, 2.0, Prior::normal(3, 3.0), 1.0);
    let joint = joint.unwrap().slopes().unwrap();
    let bound = 0.2;
    for slopes in [Slopes::linear(number, 4.0), joint] {
        let at = [0.4, -0.3, 0.7];
        let at = &at[..slopes.predictor.dim(2)];
        let slopes = slopes.at(at);
        let mut expected = vec![0i128; 18];
        for [a, b, y] in &rows {
            let [a, b, y] = [a, b, y].map(|v| f64::from(*v as f32));
            let norm = a.hypot(b);
            let gap = y - (0.4 * a - 0.3 * b);
            let (score, length) = match at.len() {
                2 => (gap, (gap * norm).abs()),
                _ => {
                    let score = gap * (-1.4f64).exp();
                    (score, (score * norm).hypot(gap * score - 1.0))
                }
            };
            let octave = (length / (slopes.largest_score * bound)).log2().ceil();
            let range = octave.clamp(0.0, 8.0) as usize;
            expected[2 * range + usize::from(score < 0.0)] += 1 << 22;
        }
        let filled = expected.iter().filter(|n| **n > 3 << 22);
        assert!(filled.count() >= 9, "{expected:?}");
        let profile_at = |bound: f64, data: Dataset, rows_of_unit: u32| {
            let query = AnchorQuery {
                at,
                metric: &Metric::identity(at.len(), bound),
                slopes: slopes.of_units(rows_of_unit),
                parts: AnchorParts {
                    gradient: false,
                    curvature: false,
                    profile: Some(Profile::Gradients),
                },
            };
            let sums = CpuEngine::new(Arc::new(data)).anchor_sums(&query);
            sums.unwrap().profile
        };
        let profile = |data, rows_of_unit| profile_at(bound, data, rows_of_unit);
        let of =
            |weight: Option<f64>, unit| with_shares(&data, (0..700).map(|i| (i, weight)), unit);
        assert_eq!(profile(of(None, None), 1), expected);
        assert_eq!(profile(of(Some(1.0), None), 1), expected);
        let quarters = profile_at(4.0 * bound, of(None, None), 1);
        assert!(quarters != expected);
        assert_eq!(profile(of(Some(0.25), None), 1), quarters);
        // Of three rows each a third, to a unit.
        let thirds = profile(of(None, Some(3)), 3);
        for (third, whole) in thirds.iter().zip(&expected) {
            assert!((3 * third - whole).abs() <= 3 * 700, "{third} {whole}");
        }
        // All there is where a unit has one row at most: no more counts.
        let one: i128 = profile(of(None, Some(3)), 1).iter().sum();
        assert!(one <= 234 << 22, "{one}");
    }
}

fn share(i: usize) -> f64 {
    [0.0, 0.25, 1.0, 0.5, 0.999][i % 5]
}

/// Sums, and listed rows in any order, are of the shares of the integers that rows have else.
#[test]
fn ratios_are_the_shares_of_rows_to_the_bit() {
    // Cases whose integers are large.
    let mut functions = 0;
    for case in regressions() {
        let n = case.data.rows();
        let plain = with_shares(&case.data, (0..n).map(|i| (i, None)), None);
        let own = with_shares(&case.data, (0..n).map(|i| (i, Some(share(i)))), None);
        let shares = own.shares().to_vec();
        let [mut plain, mut own] = [plain, own].map(|data| CpuEngine::new(Arc::new(data)));
        let pairs = pairs(&*case.model, 5, 1);
        let query = query(&*case.model, &pairs, 0.7);
        let list: Vec<u64> = (0..n as u64).rev().chain([3, 3, 0]).collect();
        let lists = vec![list.clone(); 5];
        let (mut whole, mut part) = (vec![Vec::new(); 5], vec![Vec::new(); 5]);
        plain.ratio_rows(&query, &lists, &mut whole).unwrap();
        own.ratio_rows(&query, &lists, &mut part).unwrap();
        let sums = own.ratio_sums(&query).unwrap();
        for c in 0..5 {
            let sign = i64::from(query.sign(c));
            let of = |(row, q): (&u64, &i32)| {
                sign * share_of(shares[*row as usize], sign * i64::from(*q))
            };
            let expected: Vec<i64> = list.iter().zip(&whole[c]).map(of).collect();
            let found: Vec<i64> = part[c].iter().map(|q| i64::from(*q)).collect();
            assert_eq!(found, expected);
            assert_eq!(sums[c].steps, expected[..n].iter().sum::<i64>());
        }
        functions += usize::from(whole.iter().flatten().any(|q| q.abs() > 1000));
    }
    assert!(functions >= 8, "{functions}");
}

/// The gradients of rows of no weight are none, of the full weight all, and those of half of it
/// half: to half a step a row and coordinate.
#[test]
fn gradients_are_the_shares_of_rows() {
    for case in regressions() {
        let anchored = case.model.prior().anchor.is_some();
        if anchored {
            continue;
        }
        let n = case.data.rows();
        let pairs = pairs(&*case.model, 2, 2);
        let thetas: Vec<&[f64]> = pairs.iter().map(|p| &p.0[..]).collect();
        let query = GradientQuery::new(&*case.model, &thetas, 0.4).unwrap();
        let sums = |share: Option<fn(usize) -> f64>, rows: Rows<'_>| -> Vec<GradientSum> {
            let rows_of = (0..n).map(|i| (i, share.map(|share| share(i))));
            let data = with_shares(&case.data, rows_of, None);
            CpuEngine::new(Arc::new(data))
                .gradient_sums(&query, rows)
                .unwrap()
        };
        let third: Vec<u64> = (0..n as u64).filter(|i| i % 3 == 1).collect();
        let thirds = vec![third; 2];
        let of_third = sums(None, Rows::Listed(&thirds));
        let only_third = sums(Some(|i| f64::from(u8::from(i % 3 == 1))), Rows::All);
        let (whole, half) = (sums(None, Rows::All), sums(Some(|_| 0.5), Rows::All));
        let every: Vec<Vec<u64>> = vec![(0..n as u64).collect(); 2];
        let listed = sums(Some(|_| 0.5), Rows::Listed(&every));
        for c in 0..2 {
            assert_eq!(only_third[c].steps, of_third[c].steps);
            assert_eq!(listed[c].steps, half[c].steps);
            for (h, w) in half[c].steps.iter().zip(&whole[c].steps) {
                assert!((2 * h - w).unsigned_abs() <= 2 * n as u64);
            }
            assert!(whole[c].steps.iter().any(|s| s.abs() > 100 * n as i64));
        }
    }
}

/// Sums are those others, to 2^-12 of the largest entry: what rounding rows to the integers of
/// either may come to.
fn near(part: &AnchorSums, whole: &AnchorSums) {
    for (part, whole) in [
        (&part.gradient, &whole.gradient),
        (&part.curvature, &whole.curvature),
        (&part.profile, &whole.profile),
    ] {
        let most = whole.iter().map(|w| w.unsigned_abs()).max().unwrap() as f64;
        for (p, w) in part.iter().zip(whole) {
            let gap = *p as f64 - *w as f64;
            assert!(gap.abs() <= most / 4096.0, "{}", gap / most);
        }
    }
}

/// An anchor's sums, of single rows, of units and of models with shared parameters, are those of
/// the rows that have a weight, where all others have none. Rows of a share of it are as if they
/// were shorter, and their scores less, by its root: in units of their bounds they add what whole
/// rows do where bounds are so much wider.
#[test]
fn anchors_are_the_shares_of_rows() {
    let fixed = synthetic::linear(1_103, &[0.8, -1.1, 0.3], 0.6, 2.5, 5).unwrap();
    let joint = declared(&fixed, "gaussian", &[], 1.0);
    let plain = declared(&fixed, "gaussian", &[("log_sigma", -0.5)], 1.0);
    let logistic = synthetic::logistic(1_103, &[2.0, -1.0, 0.5], 3).unwrap();
    let all = [
        (&fixed, joint.slopes().unwrap(), joint.dim()),
        (&fixed, plain.slopes().unwrap(), plain.dim()),
        (&logistic, Slopes::logistic(), 3),
    ];
    for (data, slopes, d) in all {
        for unit in [None, Some(3)] {
            let at: Vec<f64> = (0..d).map(|j| 0.3 - 0.2 * j as f64).collect();
            let slopes = slopes.at(&at).of_units(unit.map_or(1, |_| 3));
            let sums_at = |root: f64, rows: Vec<(usize, Option<f64>)>| -> AnchorSums {
                let query = AnchorQuery {
                    at: &at,
                    metric: &Metric::identity(d, 0.8 * data.row_norm() / root),
                    slopes: Slopes {
                        largest_score: slopes.largest_score / root,
                        ..slopes
                    },
                    parts: AnchorParts {
                        gradient: true,
                        curvature: true,
                        profile: Some(Profile::Norms),
                    },
                };
                let data = with_shares(data, rows.into_iter(), unit);
                let mut engine = CpuEngine::new(Arc::new(data));
                engine.anchor_sums(&query).unwrap()
            };
            let n = data.rows();
            let sums = |rows| sums_at(1.0, rows);
            let kept = |i: usize| i % 3 != 1;
            let mut some = sums((0..n).map(|i| (i, Some(kept(i).into()))).collect());
            let rest = (0..n).filter(|i| kept(*i));
            let mut others = sums(rest.clone().map(|i| (i, Some(1.0))).collect());
            near(&others, &sums(rest.map(|i| (i, None)).collect()));
            // Rows of no weight are counted, too, with norms of 0.
            let more = some.profile[0] - others.profile[0];
            assert!(more > 0);
            (some.profile[0], others.profile[0]) = (0, 0);
            assert_eq!(some, others);
            for share in [0.25, 1.0 / 256.0] {
                let part = sums((0..n).map(|i| (i, Some(share))).collect());
                let whole = sums_at(f64::sqrt(share), (0..n).map(|i| (i, None)).collect());
                near(&part, &whole);
            }
        }
    }
}
