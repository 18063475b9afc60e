//! Sums over units: what the rows of one come to together is clipped once, to the bit or to what
//! rounding is, and never more than a row's part, whatever its rows are.

use std::sync::Arc;

use super::cpu::{CpuEngine, InstructionSet};
use super::gradient_tests::{adversarial, assert_in_ball, query as gradients, thetas};
use super::row_weights_tests::{regressions, with_shares};
use super::test_cases::{pairs, query};
use super::tests::ratio_rows;
use super::{Engine, GradientSum, Rows};
use crate::data::{Dataset, LabelKind, Unit, share_of};
use crate::model::{Prior, Regression};

/// Rows of each of these units of three; the last may have fewer.
fn units(rows: usize) -> Vec<std::ops::Range<usize>> {
    let firsts = (0..rows).step_by(3);
    firsts.map(|first| first..rows.min(first + 3)).collect()
}

/// A unit's ratio is the clipped sum of its rows' integers; lists, sums, counts of units at the
/// bound and signs follow. Of rows with weights too.
#[test]
fn ratios_of_units_are_clipped_sums_of_rows() {
    let (mut clipped, mut inside) = (0, 0);
    for case in regressions() {
        for weighted in [false, true] {
            let n = case.data.rows();
            let share = |i: usize| weighted.then(|| [0.25, 1.0, 0.5][i % 3]);
            let table = |unit| {
                let rows = (0..n).map(|i| (i, share(i)));
                CpuEngine::new(Arc::new(with_shares(&case.data, rows, unit)))
            };
            let (mut rows, mut owned) = (table(None), table(Some(3)));
            let units = units(n);
            let pairs = pairs(&*case.model, 5, 3);
            let q = query(&*case.model, &pairs, 0.02);
            let each = ratio_rows(&mut rows, &q, &vec![(0..n as u64).collect(); 5]);
            let list: Vec<u64> = (0..units.len() as u64).rev().chain([2, 2, 0]).collect();
            let lists = vec![list.clone(); 5];
            let got = ratio_rows(&mut owned, &q, &lists);
            let sums = owned.ratio_sums(&q).unwrap();
            for c in 0..5 {
                let bound = q.grid(c).bound();
                let of = |u: usize| {
                    let sum: i32 = each[c][units[u].clone()].iter().sum();
                    sum.clamp(-bound, bound)
                };
                let expected: Vec<i32> = list.iter().map(|u| of(*u as usize)).collect();
                assert_eq!(got[c], expected, "{}", case.model.name());
                let whole: Vec<i32> = (0..units.len()).map(of).collect();
                assert_eq!(
                    sums[c].steps,
                    whole.iter().map(|q| i64::from(*q)).sum::<i64>()
                );
                // Those of which a row is clipped too, also where others make up for it.
                let is_clipped = |(u, q): (usize, &i32)| {
                    let row = |i: usize| {
                        let most = share_of(share(i).unwrap_or(1.0) as f32, i64::from(bound));
                        each[c][i] != 0 && i64::from(each[c][i].abs()) == most
                    };
                    q.abs() == bound || units[u].clone().any(row)
                };
                let at = whole.iter().enumerate().filter(|w| is_clipped(*w)).count();
                assert_eq!(sums[c].saturated, at as u64);
                clipped += at;
                inside += whole.len() - at;
            }
        }
    }
    assert!(clipped > 1000 && inside > 1000, "{clipped} {inside}");
}

/// Two rows of a unit that pull apart, each beyond the bound: their sum is 0, and they are seen to
/// be clipped, or a run without privacy would take the bound for wide enough.
#[test]
fn rows_that_cancel_are_seen_to_be_clipped() {
    let number = LabelKind::Number {
        low: -9.0,
        high: 9.0,
    };
    let names = vec!["x".to_string()];
    let column = "who".to_string();
    let set = Dataset::builder_with(names.clone(), Some(number), 1.0).unwrap();
    let mut set = set.of_units(Unit { column, rows: 2 });
    for (y, owner) in [(9.0, 0), (-8.0, 0), (0.1, 1)] {
        set.push_owned(&[1.0], Some(y), owner).unwrap();
    }
    let model = Regression::linear(&names, 1.0, number, 1.0, Prior::normal(1, 1.0), 1.0);
    let model = model.unwrap();
    let mut engine = CpuEngine::new(Arc::new(set.finish().unwrap()));
    for (clip, clipped) in [(0.5, 1), (2.0, 0)] {
        let q = super::RatioQuery::new(&model, &[&[0.0]], &[&[0.1]], &[clip]).unwrap();
        assert_eq!(engine.ratio_sums(&q).unwrap()[0].saturated, clipped);
    }
}

/// A unit's gradient is the sum of its rows', clipped as one: against the f64 reference. Lists add
/// up to the bit, as do all units, by every instruction set and however many threads.
#[test]
fn gradients_of_units_are_clipped_together() {
    for case in regressions().filter(|c| c.model.prior().anchor.is_none()) {
        let (model, n) = (&*case.model, case.data.rows());
        let data = with_shares(&case.data, (0..n).map(|i| (i, None)), Some(3));
        let data = Arc::new(data);
        let (units, points) = (units(n), thetas(model.dim(), 3, 5));
        for set in InstructionSet::available() {
            let mut engine = CpuEngine::with(data.clone(), set, 64);
            for clip in [1e-2, 1.0, 100.0] {
                let q = gradients(model, &points, clip);
                let ask = |engine: &mut CpuEngine, list: Vec<u64>| -> Vec<GradientSum> {
                    engine
                        .gradient_sums(&q, Rows::Listed(&vec![list; 3]))
                        .unwrap()
                };
                for (u, rows) in units.iter().enumerate().take(60) {
                    let got = ask(&mut engine, vec![u as u64]);
                    for (theta, got) in points.iter().zip(got) {
                        let mut exact = vec![0.0; model.dim()];
                        for i in rows.clone() {
                            let mut row = vec![0.0; data.width()];
                            data.copy_row(i, &mut row);
                            let part = model.gradient(&row, case.labels[i], theta);
                            exact.iter_mut().zip(part).for_each(|(e, p)| *e += p);
                        }
                        let norm = exact.iter().map(|g| g * g).sum::<f64>().sqrt();
                        let shrink = (clip_of(&q) / norm).min(1.0);
                        assert_in_ball(&q, &got, model.name());
                        for (e, g) in exact.iter().zip(&got.steps) {
                            let (e, g) = (e * shrink, *g as f64 * q.grid().step());
                            // Rows of a unit may nearly cancel; they are not beyond these sizes.
                            let allowed = 3e-5 * clip_of(&q) + 2e-5 * norm.min(40.0);
                            assert!((e - g).abs() < allowed, "{} {g} {e}", model.name());
                        }
                    }
                }
                let some: Vec<u64> = (0..units.len() as u64).rev().chain([1, 1]).collect();
                let (first, second) = some.split_at(77);
                let parts = [first, second].map(|part| ask(&mut engine, part.to_vec()));
                let twice = ask(&mut engine, vec![1, 1]);
                let all = engine.gradient_sums(&q, Rows::All).unwrap();
                for (c, whole) in ask(&mut engine, some.clone()).iter().enumerate() {
                    for j in 0..model.dim() {
                        let sum = parts[0][c].steps[j] + parts[1][c].steps[j];
                        assert_eq!(whole.steps[j], sum);
                        assert_eq!(all[c].steps[j], sum - twice[c].steps[j]);
                    }
                }
            }
        }
    }
}

fn clip_of(q: &super::GradientQuery) -> f64 {
    q.grid().clip_bound()
}

/// Whatever the rows of a unit are, and wherever θ is, it moves ratios by at most the bound and
/// gradients within the ball, and can come near both.
#[test]
fn no_unit_moves_a_sum_by_more_than_a_row_may() {
    for d in [1usize, 5, 40] {
        let names: Vec<String> = (0..d).map(|j| format!("x{j}")).collect();
        let column = "who".to_string();
        let set = Dataset::builder_with(names.clone(), Some(LabelKind::Binary), 3e38).unwrap();
        let mut set = set.of_units(Unit { column, rows: 50 });
        let rows = adversarial(d);
        for owner in 0..40u64 {
            for k in 0..1 + owner * 3 % 50 {
                let row = &rows[(owner as usize * 7 + k as usize) % rows.len()];
                let size = [1.0, 1e4, 3e37, -1e20][owner as usize % 4];
                let row: Vec<f32> = row.iter().map(|v| v * size).collect();
                let y = if owner % 3 == 0 { 1.0 } else { -1.0 };
                set.push_owned(&row, Some(y), owner).unwrap();
            }
        }
        let mut engine = CpuEngine::new(Arc::new(set.finish().unwrap()));
        let model = Regression::logistic(&names, 1e4, Prior::normal(d, 1.0), 1.0).unwrap();
        let (mut largest, mut saturated) = (0.0f64, 0);
        for value in [0.0, 0.3, 1e30, f64::INFINITY, f64::NAN] {
            let at = vec![value; d];
            for clip in [1e-3, 1.0, 1e4] {
                for unit in 0..40 {
                    let q = gradients(&model, std::slice::from_ref(&at), clip);
                    let list = vec![vec![unit]];
                    let sum = &engine.gradient_sums(&q, Rows::Listed(&list)).unwrap()[0];
                    largest = largest.max(assert_in_ball(&q, sum, "unit"));
                    let to: Vec<f64> = at.iter().map(|t| t + 0.5).collect();
                    let q = super::RatioQuery::new(&model, &[&at], &[&to], &[clip]).unwrap();
                    let steps = ratio_rows(&mut engine, &q, &list)[0][0];
                    assert!(steps.abs() <= q.grid(0).bound());
                    saturated += usize::from(steps.abs() == q.grid(0).bound());
                }
            }
        }
        assert!(
            largest > 1.0 - 1e-3 && saturated > 50,
            "{d}: {largest} {saturated}"
        );
    }
}
