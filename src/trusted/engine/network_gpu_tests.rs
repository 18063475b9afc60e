//! Networks of layers on the GPU: every kind of layer against the f64 oracle, listed rows against
//! all of them, and the ball as a fact about integers, also where the float clip is broken.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::cpu::CpuEngine;
use super::gpu::GpuLimits;
use super::gradient_gpu_tests::open;
use super::gradient_tests::{adversarial, assert_in_ball, query, thetas, tolerance};
use super::test_cases::{Case, case, pairs};
use super::tests::{ratio_rows, totals};
use super::{
    Engine, EngineChoice, EngineError, EngineSetup, GradientSum, RatioQuery, Rows, Workload,
};
use crate::data::{Dataset, LabelKind};
use crate::model::{Model, Prior, Regression};
use crate::models::Layered;
use crate::network::tests::{label, networks};
use crate::network::{Layer, Network, Volume};

const ROWS: usize = 37;

fn model(network: Network) -> Layered {
    let kind = match network.outputs() {
        1 => LabelKind::Binary,
        classes => LabelKind::Class {
            classes: classes as u32,
        },
    };
    let prior = Prior::normal(network.parameters(), 1.0);
    Layered::new(network, kind, prior, 1.0).unwrap()
}

/// A network over some rows in [−1, 1]; `packed`: in 16 bits.
fn over(network: Network, packed: bool) -> Case {
    let features = network.features();
    let mut rng = ChaCha12Rng::seed_from_u64(features as u64);
    let names = (0..features).map(|j| format!("x{j}")).collect();
    let kind = model(network).label();
    let mut builder = Dataset::builder_with(names, kind, (features as f64).sqrt()).unwrap();
    for i in 0..ROWS {
        let row: Vec<f32> = (0..features)
            .map(|_| 2.0 * rng.random::<f32>() - 1.0)
            .collect();
        builder.push_value(&row, Some(label(network, i))).unwrap();
    }
    let data = builder.finish().unwrap();
    let data = if packed { data.in_16_bits() } else { data };
    case(data, |_| Box::new(model(network)))
}

/// As dot products in f32 with numbers of size one allow, through some layers.
#[test]
fn gradients_of_every_layer_match_the_oracle() {
    for (n, network) in networks().into_iter().enumerate() {
        let case = over(network, n % 2 == 0);
        let Some(mut gpu) = open(&case.data, false, GpuLimits::default()) else {
            return;
        };
        let (model, features) = (&*case.model, network.features());
        // At half the size, so that no activation is at its end.
        let mut points = thetas(model.dim(), 2, n as u64);
        points.iter_mut().flatten().for_each(|t| *t *= 0.35);
        // Nothing is clipped, then nearly all.
        for clip in [300.0, 0.05] {
            let q = query(model, &points, clip);
            for i in 0..ROWS {
                let lists = vec![vec![i as u64]; 2];
                let sums = gpu.gradient_sums(&q, Rows::Listed(&lists)).unwrap();
                let row = &case.rows[i * features..(i + 1) * features];
                for (theta, sum) in points.iter().zip(sums) {
                    let exact = model.gradient(row, case.labels[i], theta);
                    let norm = exact.iter().map(|g| g * g).sum::<f64>().sqrt();
                    let unit = (q.grid().clip_bound() / norm).min(1.0) / q.grid().step();
                    let largest = exact.iter().fold(0.0f64, |m, g| m.max(g.abs())) * unit;
                    // A clipped row is shorter by the margins of norm, rounding and root.
                    let d = model.dim() as f64;
                    let short = (d + 16.0) / 2f64.powi(23) + d.sqrt().ceil() / 2f64.powi(19);
                    let clipped = if sum.clipped > 0 { 1.0 } else { 0.0 };
                    assert_eq!(sum.clipped > 0, norm > q.grid().clip_bound(), "{network:?}");
                    let most = tolerance(largest, largest) + clipped * (3.0 + short * largest);
                    for (g, steps) in exact.iter().zip(&sum.steps) {
                        let error = (g * unit - *steps as f64).abs();
                        assert!(error <= most, "{network:?} row {i}: {steps} {}", g * unit);
                    }
                }
            }
        }
    }
}

/// Off by what two log densities in f32 are.
#[test]
fn ratios_of_every_layer_match_the_oracle_and_add_up() {
    for (n, network) in networks().into_iter().enumerate() {
        let case = over(network, n % 2 == 1);
        let Some(mut gpu) = open(&case.data, false, GpuLimits::default()) else {
            return;
        };
        let (model, features) = (&*case.model, network.features());
        let pairs = pairs(model, 3, n as u64);
        let from: Vec<&[f64]> = pairs.iter().map(|p| &p.0[..]).collect();
        let to: Vec<&[f64]> = pairs.iter().map(|p| &p.1[..]).collect();
        let clips = [100.0, 20.0, 0.01];
        let q = RatioQuery::new(model, &from, &to, &clips).unwrap();
        let back = RatioQuery::new(model, &to, &from, &clips).unwrap();
        let every: Vec<u64> = (0..ROWS as u64).collect();
        let rows = ratio_rows(&mut gpu, &q, &vec![every.clone(); 3]);
        for (c, (theta, proposal)) in pairs.iter().enumerate() {
            for (i, got) in rows[c].iter().enumerate() {
                let row = &case.rows[i * features..(i + 1) * features];
                let exact = model.log_ratio(row, case.labels[i], theta, proposal);
                let bound = q.grid(c).clip_bound();
                let error = exact.clamp(-bound, bound) - f64::from(*got) * q.grid(c).step();
                assert!(
                    error.abs() < 2e-5 + q.grid(c).step(),
                    "{network:?}: {error}"
                );
            }
        }
        assert_eq!(gpu.ratio_sums(&q).unwrap(), totals(&rows, &q));
        let negated = ratio_rows(&mut gpu, &back, &vec![every; 3]);
        let pairs = rows.iter().flatten().zip(negated.iter().flatten());
        assert!(pairs.into_iter().all(|(a, b)| a + b == 0));
        assert!(rows.iter().flatten().any(|q| *q != 0));
    }
}

/// Lists of different lengths, an empty one and rows twice; on one chunk, and on streamed ones.
#[test]
fn listed_rows_add_up() {
    let floats = GpuLimits::default();
    let small = GpuLimits {
        binding: Some(64 << 10),
        piece: Some(1 << 12),
        resident: Some(0),
        ..floats
    };
    let all = networks().into_iter();
    // Another's rows were in the same scratch memory before.
    for (network, limits) in all.flat_map(|n| [(n, floats), (n, small)]) {
        let case = over(network, true);
        let Some(mut gpu) = open(&case.data, false, limits) else {
            return;
        };
        let q = query(&*case.model, &thetas(case.model.dim(), 4, 9), 0.3);
        let lists = [vec![36, 0, 36, 17], vec![], vec![5], (0..37).collect()];
        let sums = gpu.gradient_sums(&q, Rows::Listed(&lists)).unwrap();
        for (c, list) in lists.iter().enumerate() {
            let mut expected = GradientSum {
                steps: vec![0; q.dim()],
                clipped: 0,
            };
            for row in list {
                let mut lists = vec![Vec::new(); 4];
                lists[c] = vec![*row];
                let one = gpu
                    .gradient_sums(&q, Rows::Listed(&lists))
                    .unwrap()
                    .swap_remove(c);
                expected.clipped += one.clipped;
                let sums = expected.steps.iter_mut().zip(one.steps);
                sums.for_each(|(sum, q)| *sum += q);
            }
            assert_eq!(sums[c], expected, "chain {c}");
        }
        assert_eq!(gpu.gradient_sums(&q, Rows::All).unwrap()[3], sums[3]);
        let pairs = pairs(&*case.model, 4, 2);
        let q = super::test_cases::query(&*case.model, &pairs, 1.0);
        let rows = ratio_rows(&mut gpu, &q, &lists);
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [4, 0, 1, 37]);
        assert_eq!((rows[0][0], rows[0][0]), (rows[0][2], rows[0][2]));
        assert_eq!(gpu.ratio_sums(&q).unwrap()[3], totals(&rows, &q)[3]);
        // In the order of the list, whatever chunks they lie in.
        let alone = ratio_rows(&mut gpu, &q, &[vec![36, 0, 36, 17], vec![], vec![], vec![]]);
        assert_eq!(alone[0], rows[0]);
        assert_eq!(
            rows[3][5],
            ratio_rows(&mut gpu, &q, &[vec![], vec![], vec![], vec![5]])[3][0]
        );
    }
}

/// More workgroups than one axis of a dispatch takes.
#[test]
fn many_workgroups_are_laid_out_in_two_axes() {
    let features = 8_200;
    let network = Network::new(Volume::flat(features), &[], 1).unwrap();
    let model = model(network);
    let names = (0..features).map(|j| format!("x{j}")).collect();
    let mut builder = Dataset::builder_with(names, model.label(), 40.0).unwrap();
    for i in 0..400 {
        let row: Vec<f32> = (0..features)
            .map(|j| ((i * 7 + j) % 13) as f32 / 50.0)
            .collect();
        builder.push_value(&row, Some(label(network, i))).unwrap();
    }
    let data = Arc::new(builder.finish().unwrap().in_16_bits());
    let limits = GpuLimits {
        piece: Some(1 << 28),
        ..GpuLimits::default()
    };
    let Some(mut gpu) = open(&data, false, limits) else {
        return;
    };
    let mut point = thetas(features + 1, 1, 4);
    point[0].iter_mut().for_each(|t| *t *= 0.01);
    let q = query(&model, &point, 1e3);
    let expected = CpuEngine::new(data.clone())
        .gradient_sums(&q, Rows::All)
        .unwrap();
    for (a, b) in gpu.gradient_sums(&q, Rows::All).unwrap()[0]
        .steps
        .iter()
        .zip(&expected[0].steps)
    {
        assert!(a.abs_diff(*b) <= 400 * 4, "{a} {b}");
    }
}

/// `Σ q_j² ≤ bound²` in integers, also where the float clip lets everything through or hands on
/// infinities; and nearly met.
#[test]
fn no_row_of_a_network_leaves_the_ball_on_the_gpu() {
    let layers = [Layer::Dense { units: 98 }, Layer::Tanh];
    let wide = Network::new(Volume::flat(1000), &layers, 10).unwrap();
    for network in [networks()[3], wide] {
        let (d, features) = (network.parameters(), network.features());
        let model = model(network);
        let kind = model.label().unwrap();
        let names: Vec<String> = (0..features).map(|j| format!("x{j}")).collect();
        let mut builder = Dataset::builder_with(names, Some(kind), 1e25).unwrap();
        let mut rows = adversarial(features);
        rows.push(vec![3e20; features]);
        rows.truncate(if d > 1000 { 12 } else { rows.len() });
        for (i, row) in rows.iter().enumerate() {
            builder
                .push_value(row, Some((i % network.outputs().max(2)) as f64))
                .unwrap();
        }
        let data = Arc::new(builder.finish().unwrap());
        let Some(mut gpu) = open(&data, false, GpuLimits::default()) else {
            return;
        };
        let (mut largest, mut zeroed) = (0.0f64, 0);
        for (size, clip) in [(1.0, 1e-4), (1.0, 0.999_999), (1e12, 0.5), (1e-30, 1e-20)] {
            let mut theta = thetas(d, 1, 3);
            theta[0].iter_mut().for_each(|t| *t *= size);
            for limit in [1.0, 1.1, 1e30, f32::INFINITY, f32::NAN] {
                let q = query(&model, &theta, clip);
                let broken = q.limit() * limit;
                let q = q.with_limit(broken);
                for i in 0..rows.len() {
                    let what = format!("d {d} size {size} clip {clip} limit {limit} row {i}");
                    let sums = gpu
                        .gradient_sums(&q, Rows::Listed(&[vec![i as u64]]))
                        .unwrap();
                    let share = assert_in_ball(&q, &sums[0], &what);
                    match limit == 1.0 {
                        true => largest = largest.max(share),
                        false => zeroed += usize::from(share == 0.0),
                    }
                }
            }
        }
        let slack = 2e-4 + 3e-6 * (d as f64).sqrt() + 1e-6 * d as f64;
        assert!(
            largest > 1.0 - slack,
            "d {d}: never near the edge, {largest}"
        );
        assert!(zeroed > 10, "d {d}: the integers never had to hold a row");
    }
}

/// Mesa's software driver would end such a loop before its end.
#[test]
fn loops_that_a_software_adapter_cuts_are_refused() {
    let network = Network::new(Volume::flat(61_000), &[], 1).unwrap();
    let names = (0..61_000).map(|j| format!("x{j}")).collect();
    let mut builder = Dataset::builder_with(names, Some(LabelKind::Binary), 300.0).unwrap();
    for y in [1.0, -1.0] {
        builder.push_value(&vec![0.5; 61_000], Some(y)).unwrap();
    }
    let data = Arc::new(builder.finish().unwrap());
    let Some(mut gpu) = open(&data, false, GpuLimits::default()) else {
        return;
    };
    let q = query(&model(network), &[vec![0.0; 61_001]], 1.0);
    match gpu.gradient_sums(&q, Rows::All) {
        Err(EngineError::Device(what)) => {
            assert!(gpu.is_software() && what.contains("--engine cpu"), "{what}");
        }
        other => assert!(!gpu.is_software() && other.is_ok()),
    }
}

/// `auto` compares minibatches of networks, which a GPU takes; other models' it leaves to the CPU.
#[test]
fn minibatches_are_timed_where_a_gpu_takes_them() {
    let case = over(networks()[1], true);
    let Some(gpu) = open(&case.data, false, GpuLimits::default()) else {
        return;
    };
    let setup = EngineSetup {
        workload: Workload {
            listed: 2,
            share: 1 << 30,
            ..Workload::default()
        },
        ..EngineChoice::Auto.into()
    };
    let engines: [Box<dyn Engine>; 2] =
        [Box::new(CpuEngine::new(case.data.clone())), Box::new(gpu)];
    for mut engine in engines {
        let seconds = setup.seconds(&mut *engine, &case.data, &*case.model, f64::INFINITY);
        assert!(seconds.unwrap() > 0.0);
        let prior = Prior::normal(3, 1.0);
        let other = Regression::logistic(case.data.features(), 2.0, prior, 1.0).unwrap();
        let seconds = setup.seconds(&mut *engine, &case.data, &other, f64::INFINITY);
        assert_eq!(seconds.unwrap(), 0.0);
    }
}
