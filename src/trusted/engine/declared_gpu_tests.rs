//! Declared likelihoods on the GPU, whose shaders are made of their expressions: every named one
//! against its f64 reference, in ratios, gradients, anchors and what anchors leave over.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::cpu::CpuEngine;
use super::gpu::GpuLimits;
use super::gradient_gpu_tests::open;
use super::gradient_tests::query as gradients;
use super::test_cases::{distance, plain_anchor};
use super::tests::ratio_rows;
use super::{AnchorParts, AnchorQuery, Engine, EngineError, RatioQuery, Rows};
use crate::data::{Dataset, LabelKind, Offset};
use crate::expression::{FAMILIES, Family, Labels, Law};
use crate::model::{Anchored, Metric, Model, Prior, Regression, RowFunction};

const ROWS: usize = 203;
const D: usize = 3;

/// Rows with labels that the family takes, of either storage, with an offset or without.
fn rows(family: &Family, seed: u64) -> Arc<Dataset> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let (kind, low) = match family.label {
        Labels::Binary => (LabelKind::Binary, 0.0),
        Labels::Number => (
            LabelKind::Number {
                low: -4.0,
                high: 4.0,
            },
            -4.0,
        ),
        Labels::Positive => (
            LabelKind::Number {
                low: 0.05,
                high: 4.0,
            },
            0.05,
        ),
        Labels::Share => (
            LabelKind::Number {
                low: 0.01,
                high: 0.99,
            },
            0.01,
        ),
        Labels::Count => (LabelKind::Count { max: 9 }, 0.0),
    };
    let names: Vec<String> = (0..D).map(|j| format!("x{j}")).collect();
    let mut builder = Dataset::builder_with(names, Some(kind), 2.0).unwrap();
    let offset = seed.is_multiple_of(2);
    if offset {
        let (low, high) = (-0.5, 0.5);
        builder = builder.with_offset(Offset { low, high }).unwrap();
    }
    for i in 0..ROWS {
        let uniform = |rng: &mut ChaCha12Rng| 2.0 * rng.random::<f32>() - 1.0;
        let mut row: Vec<f32> = (0..D).map(|_| uniform(&mut rng)).collect();
        row.extend(offset.then(|| 0.5 * uniform(&mut rng)));
        let y = match kind {
            LabelKind::Binary => [-1.0, 1.0][i % 2],
            LabelKind::Count { .. } => (i % 10) as f64,
            _ => {
                let high = if let LabelKind::Number { high, .. } = kind {
                    high
                } else {
                    0.0
                };
                low + (high - low) * rng.random::<f64>()
            }
        };
        builder.push_value(&row, Some(y)).unwrap();
    }
    let data = builder.finish().unwrap();
    Arc::new(if seed % 4 < 2 {
        data
    } else {
        data.in_16_bits()
    })
}

/// Numbers that parameters are near, where they are one.
fn usual(name: &str) -> f64 {
    match name {
        "nu" => 4.0,
        "trials" => 9.0,
        "share" => 0.3,
        "width" => 0.4,
        _ => 0.2,
    }
}

/// Numbers, not parameters that are sampled.
fn is_number(name: &str) -> bool {
    ["nu", "trials", "share", "width"].contains(&name)
}

fn model(family: &Family, data: &Dataset, sampled: bool) -> Regression {
    let (mut shared, mut fixed) = (Vec::new(), Vec::new());
    for (name, _) in family.parameters {
        match sampled && !is_number(name) {
            true => shared.push(name.to_string()),
            false => fixed.push((name.to_string(), usual(name))),
        }
    }
    let law = Law::new(family.name, family.likelihood, &shared, &fixed).unwrap();
    let prior = Prior::normal(D + shared.len(), 10.0);
    let kind = data.label_kind().unwrap();
    let model = Regression::declared(data.features(), law, kind, 2.0, prior, 0.7).unwrap();
    match data.offset() {
        Some(offset) => model.with_offset(offset),
        None => model,
    }
}

fn row(data: &Dataset, i: usize) -> (Vec<f64>, f64) {
    let mut row = vec![0.0; data.width()];
    data.copy_row(i, &mut row);
    (row, f64::from(data.labels()[i]))
}

/// Asks for the ratios of all rows under clips that the largest ones meet. Every row's is within so
/// many grid steps of the f64 reference, and, under each clip, `loose` nats; the rows add up to the
/// sums. False without an adapter.
fn ratios_match(
    data: &Arc<Dataset>,
    model: &dyn Model,
    pairs: &[(Vec<f64>, Vec<f64>)],
    steps: i32,
    loose: impl Fn(&[f64], &[f64]) -> f64,
) -> bool {
    let Some(mut gpu) = open(data, false, GpuLimits::default()) else {
        return false;
    };
    let exact = |(theta, to): &(Vec<f64>, Vec<f64>)| -> Vec<f64> {
        let each = (0..data.rows()).map(|i| row(data, i));
        each.map(|(x, y)| model.log_ratio(&x, y, theta, to))
            .collect()
    };
    let exact: Vec<Vec<f64>> = pairs.iter().map(exact).collect();
    let largest = |ratios: &Vec<f64>| ratios.iter().fold(0.0f64, |m, r| m.max(r.abs()));
    let clips: Vec<f64> = exact.iter().map(largest).collect();
    let thetas: Vec<&[f64]> = pairs.iter().map(|p| &p.0[..]).collect();
    let proposals: Vec<&[f64]> = pairs.iter().map(|p| &p.1[..]).collect();
    let q = RatioQuery::new(model, &thetas, &proposals, &clips).unwrap();
    let every = vec![(0..data.rows() as u64).collect(); pairs.len()];
    let rows = ratio_rows(&mut gpu, &q, &every);
    let sums = gpu.ratio_sums(&q).unwrap();
    for (c, (rows, exact)) in rows.iter().zip(&exact).enumerate() {
        let allowed = steps + (loose(&pairs[c].0, &pairs[c].1) / q.grid(c).step()) as i32;
        for (i, (got, exact)) in rows.iter().zip(exact).enumerate() {
            let exact = q.grid(c).quantize(*exact);
            assert!(
                (got - exact).abs() <= allowed,
                "{} chain {c} row {i}: {got} for {exact}",
                model.name()
            );
        }
        // (Both passes run one function; contraction may differ.)
        let sum: i64 = rows.iter().map(|s| i64::from(*s)).sum();
        assert!((sums[c].steps - sum).abs() <= data.rows() as i64);
    }
    true
}

fn moves(d: usize, sizes: &[f64], at: &[f64]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    let mut near = |at: &[f64], by: f64| -> Vec<f64> {
        (0..d)
            .map(|j| at[j] + by * (2.0 * rng.random::<f64>() - 1.0))
            .collect()
    };
    let mut pairs = Vec::new();
    for size in sizes {
        let theta = near(at, 0.4 * size);
        let to = near(&theta, 0.3 * size);
        pairs.push((theta, to));
    }
    pairs
}

/// Several tables a family: rows of either storage, with an offset or without.
fn tables() -> impl Iterator<Item = (&'static Family, Arc<Dataset>)> {
    let families = FAMILIES.iter().enumerate();
    families
        .flat_map(|(k, family)| [k, k + 2, k + 3].map(|seed| (family, rows(family, seed as u64))))
}

/// Under a clip that the largest of them meets a ratio is off by what rounding forms comes to.
#[test]
fn ratios_of_every_family_match_the_oracle() {
    for (family, data) in tables() {
        let model = model(family, &data, true);
        assert!(model.row_function().on_gpu(), "{}", family.name);
        let d = model.dim();
        let pairs = moves(d, &[1.0, 0.1, 0.01], &vec![0.1; d]);
        if !ratios_match(&data, &model, &pairs, 3, |_, _| 0.0) {
            return;
        }
    }
}

/// More tiles of chains than an axis of a dispatch takes: of a long likelihood each chain is one.
#[test]
fn more_chains_than_an_axis_takes_are_summed() {
    let mut tables = tables();
    let (family, data) = tables.find(|(f, _)| f.name == "negative-binomial").unwrap();
    let model = model(family, &data, true);
    let limits = GpuLimits {
        workgroup: Some(64),
        ..GpuLimits::default()
    };
    let Some(mut gpu) = open(&data, false, limits) else {
        return;
    };
    let pairs = moves(model.dim(), &[0.3; 65_540], &[0.1; D + 1]);
    let mut sums = |pairs: &[(Vec<f64>, Vec<f64>)]| {
        let thetas: Vec<&[f64]> = pairs.iter().map(|p| &p.0[..]).collect();
        let proposals: Vec<&[f64]> = pairs.iter().map(|p| &p.1[..]).collect();
        let clips = vec![0.5; pairs.len()];
        let query = RatioQuery::new(&model, &thetas, &proposals, &clips).unwrap();
        gpu.ratio_sums(&query).unwrap()
    };
    let (all, last) = (sums(&pairs), sums(&pairs[65_530..]));
    assert_eq!(all[65_530..], last);
    assert!(last.iter().all(|sum| sum.steps != 0));
}

/// The same of what is left over, which is small beside what is taken away: near an anchor as far
/// off. A weight at its largest may be cut off by what it is rounded to.
#[test]
fn what_anchors_leave_of_every_family_matches_the_oracle() {
    let mut alone = Vec::new();
    for (family, data) in tables() {
        let model = Arc::new(model(family, &data, false));
        let largest = model.slopes().unwrap().largest_weight;
        let at = vec![0.2, -0.1, 0.3];
        let anchored = Anchored::new(model, plain_anchor(at.clone(), 9.0)).unwrap();
        let function = anchored.row_function();
        if function == RowFunction::Affine {
            // Nothing is left over a quadratic.
            continue;
        }
        if !function.on_gpu() {
            alone.push(family.name);
            continue;
        }
        let square = data.row_norm().powi(2);
        let rounded = |theta: &[f64], to: &[f64]| {
            let reach = distance(theta, &at).max(distance(to, &at));
            3e-7 * largest * square * reach * distance(theta, to)
        };
        for size in [1.0, 0.1, 0.01] {
            let pairs = moves(D, &[size], &at);
            if !ratios_match(&data, &anchored, &pairs, 4, rounded) {
                return;
            }
        }
    }
    assert_eq!(alone, ["beta"; 3]);
}

/// Sums of clipped gradients are the CPU's, but for the steps that rows are rounded to.
#[test]
fn gradients_of_every_family_are_the_cpus() {
    for ((family, data), sampled) in tables().zip([true, false, true].into_iter().cycle()) {
        let model = model(family, &data, sampled);
        let d = model.dim();
        let points = moves(d, &[1.0; 5], &vec![0.1; d]);
        let thetas: Vec<Vec<f64>> = points.into_iter().map(|p| p.0).collect();
        let q = gradients(&model, &thetas, 0.3);
        let Some(mut gpu) = open(&data, false, GpuLimits::default()) else {
            return;
        };
        let got = gpu.gradient_sums(&q, Rows::All).unwrap();
        let mut cpu = CpuEngine::new(data.clone());
        let expected = cpu.gradient_sums(&q, Rows::All).unwrap();
        for (a, b) in got.iter().zip(expected) {
            assert!(a.clipped > 0 && a.clipped.abs_diff(b.clipped) <= 1);
            for (a, b) in a.steps.iter().zip(b.steps) {
                // A row at the clip has some 2^19 of them in each coordinate.
                assert!(a.abs_diff(b) <= 2 * ROWS as u64, "{}: {a} {b}", family.name);
            }
        }
    }
}

/// Anchors are the CPU's: curvatures but for the units that weights are rounded to, gradients but
/// for those of features, which are coarser here. Rows are within the bound, or many are not.
#[test]
fn anchors_of_every_family_are_the_cpus() {
    for ((family, data), bound) in tables().zip([2.0, 0.8].into_iter().cycle()) {
        let model = model(family, &data, false);
        let metric = Metric::identity(D, bound);
        let query = AnchorQuery {
            at: &[0.2, -0.1, 0.3],
            metric: &metric,
            slopes: model.slopes().unwrap(),
            parts: AnchorParts::EXPANSION,
        };
        let Some(mut gpu) = open(&data, false, GpuLimits::default()) else {
            return;
        };
        let got = gpu.anchor_sums(&query).unwrap();
        let expected = CpuEngine::new(data.clone()).anchor_sums(&query).unwrap();
        for (got, expected, share) in [
            (&got.gradient, &expected.gradient, 3e-4),
            (&got.curvature, &expected.curvature, 3e-5),
        ] {
            // A row of some 200 is half a hundredth.
            let largest = expected.iter().map(|v| v.abs()).max().unwrap();
            let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
            let off = off.max().unwrap() as f64 / largest as f64;
            assert!(off <= share, "{}: {off}", family.name);
        }
    }
}

/// Rows beyond the row bound count with their weights in what is left over, as on the CPU: with the
/// weight 1 the sums would be off by a third.
#[test]
fn what_anchors_leave_is_weighted_as_on_the_cpu() {
    let mut seen = 0;
    for (family, data) in tables() {
        let model = Arc::new(model(family, &data, false));
        let at = vec![0.2, -0.1, 0.3];
        let anchor = plain_anchor(at.clone(), 0.6);
        let metric = anchor.metric.clone();
        let anchored = Anchored::new(model.clone(), anchor).unwrap();
        if anchored.row_function() == RowFunction::Affine || !anchored.row_function().on_gpu() {
            continue;
        }
        let Some(mut gpu) = open(&data, true, GpuLimits::default()) else {
            return;
        };
        let mut cpu = CpuEngine::new(data.clone()).holding_weights();
        let pairs = moves(D, &[1.0, 0.3], &at);
        let thetas: Vec<&[f64]> = pairs.iter().map(|p| &p.0[..]).collect();
        let proposals: Vec<&[f64]> = pairs.iter().map(|p| &p.1[..]).collect();
        let clips: Vec<f64> = pairs.iter().map(|(a, b)| distance(a, b)).collect();
        let q = RatioQuery::new(&anchored, &thetas, &proposals, &clips).unwrap();
        let whole = cpu.ratio_sums(&q).unwrap();
        let query = AnchorQuery {
            at: &at,
            metric: &metric,
            slopes: model.slopes().unwrap(),
            parts: AnchorParts::EXPANSION,
        };
        gpu.weigh_rows(&query).unwrap();
        cpu.weigh_rows(&query).unwrap();
        let sums = gpu.ratio_sums(&q).unwrap();
        for ((got, expected), whole) in sums.iter().zip(cpu.ratio_sums(&q).unwrap()).zip(whole) {
            let off = (got.steps - expected.steps).abs();
            assert!(off <= 2 * ROWS as i64, "{}: {off}", family.name);
            seen += usize::from((got.steps - whole.steps).abs() > 100 * ROWS as i64);
        }
    }
    assert!(seen > 40, "{seen}");
}

/// What no float holds is the CPU's.
#[test]
fn numbers_beyond_floats_are_left_to_the_cpu() {
    let poisson = FAMILIES.iter().find(|f| f.name == "negative-binomial");
    let data = rows(poisson.unwrap(), 1);
    let law = "y * eta - exp(eta) - 1e300 * (1e-300 * eta)^2";
    let law = Law::new("expression", law, &[], &[]).unwrap();
    let kind = data.label_kind().unwrap();
    let model = Regression::declared(data.features(), law, kind, 2.0, Prior::normal(D, 1.0), 1.0);
    let model = model.unwrap();
    let Some(mut gpu) = open(&data, true, GpuLimits::default()) else {
        return;
    };
    let mut cpu = CpuEngine::new(data.clone());
    let q = gradients(&model, &[vec![0.3; D]], 0.5);
    let sums = cpu.gradient_sums(&q, Rows::All).unwrap();
    assert_eq!(gpu.gradient_sums(&q, Rows::All).unwrap(), sums);
    let q = RatioQuery::new(&model, &[&[0.3; D]], &[&[0.1; D]], &[1.0]).unwrap();
    let sums = cpu.ratio_sums(&q).unwrap();
    assert_eq!(gpu.ratio_sums(&q).unwrap(), sums);
    let bare = open(&data, false, GpuLimits::default())
        .unwrap()
        .ratio_sums(&q);
    assert!(matches!(bare, Err(EngineError::CpuOnly)));
}
