//! Rows in 16 bits on the GPU: the bits of the rounded rows' floats, in half of the memory, and
//! the ball as a fact about integers.

use std::sync::Arc;

use super::gpu::GpuLimits;
use super::gradient_gpu_tests::open;
use super::gradient_tests::{adversarial, assert_in_ball, query as gradients};
use super::test_cases::{case, floats, on_gpu, pairs, query};
use super::tests::ratio_rows;
use super::{AnchorParts, AnchorQuery, Engine, Rows};
use crate::data::{Dataset, LabelKind, Storage};
use crate::model::{Metric, Predictor, Prior, Regression};
use crate::synthetic;

/// A table of floats that holds the rounded rows gives the same bits: ratios, listed rows,
/// gradients and anchors, for one chain, some and many, whether chunks are resident or streamed.
#[test]
#[ignore = "study"]
fn gpu_rows_in_16_bits_are_the_rounded_rows() {
    let theta: Vec<f64> = (0..50).map(|j| (0.9 * f64::from(j)).sin()).collect();
    let wide = |d: usize| {
        let data = synthetic::logistic(1_003, &theta[..d], 8).unwrap();
        case(data.in_16_bits(), |data| {
            let (prior, norm) = (Prior::normal(d, 10.0), data.row_norm());
            Box::new(Regression::logistic(data.features(), norm, prior, 0.3).unwrap())
        })
    };
    let mut tables = 0;
    for case in on_gpu().into_iter().chain([1, 9, 50].map(wide)) {
        let (data, model) = (&case.data, &*case.model);
        if data.storage() == Storage::F32 {
            continue;
        }
        tables += 1;
        let floats = Arc::new(floats(data));
        let d = data.width() as u64;
        // (A network's rows take more, and go a few at a time.)
        let network = model.row_function().sees_rows();
        let most = if network { 1000 } else { 512 };
        let streamed = GpuLimits {
            binding: Some(4 * d.div_ceil(2) * most),
            resident: Some(0),
            ..GpuLimits::default()
        };
        let Some(mut float) = open(&floats, false, GpuLimits::default()) else {
            return;
        };
        let mut whole = open(data, false, GpuLimits::default()).unwrap();
        // Half of the words, for an even number of features.
        let rows = 4 * data.rows().next_multiple_of(4) as u64;
        assert_eq!(float.held() - whole.held(), rows * (d / 2), "{d}");
        let mut pieces = open(data, false, streamed).unwrap();
        assert!(pieces.placement().1 > 1, "{:?}", pieces.placement());
        for chains in [1, 3, 11].into_iter().filter(|c| !network || *c == 1) {
            let pairs = pairs(model, chains, 5);
            let name = (model.name(), d, chains);
            let q = query(model, &pairs, 0.3);
            let sums = float.ratio_sums(&q).unwrap();
            assert!(sums.iter().all(|s| s.steps != 0), "{name:?}");
            assert_eq!(whole.ratio_sums(&q).unwrap(), sums, "{name:?}");
            assert_eq!(pieces.ratio_sums(&q).unwrap(), sums, "{name:?}");
            let some: Vec<u64> = (0..200).map(|i| i * 7 % 887).collect();
            let rows = vec![some; chains];
            let listed = ratio_rows(&mut float, &q, &rows);
            assert_eq!(ratio_rows(&mut whole, &q, &rows), listed, "{name:?}");
            // An anchored model's gradient is another model's.
            if model.prior().anchor.is_some() {
                continue;
            }
            let thetas: Vec<Vec<f64>> = pairs.into_iter().map(|p| p.0).collect();
            let q = gradients(model, &thetas, 0.3);
            let sums = float.gradient_sums(&q, Rows::All).unwrap();
            assert_eq!(whole.gradient_sums(&q, Rows::All).unwrap(), sums);
            // Coefficients of several chains take more than these bindings of one feature.
            if d > 1 {
                assert_eq!(pieces.gradient_sums(&q, Rows::All).unwrap(), sums);
            }
        }
        let slopes = model.slopes();
        if let Some(slopes) = slopes.filter(|s| matches!(s.predictor, Predictor::Linear)) {
            let query = AnchorQuery {
                at: &vec![0.1; model.dim()],
                metric: &Metric::identity(model.dim(), data.row_norm()),
                slopes,
                parts: AnchorParts::EXPANSION,
            };
            let sums = float.anchor_sums(&query).unwrap();
            assert_eq!(whole.anchor_sums(&query).unwrap(), sums, "{}", model.name());
        }
    }
    assert_eq!(tables, 24);
}

/// `Σ q_j² ≤ bound²` of every row in 16 bits, also where the clip before the check is broken.
#[test]
fn no_gpu_row_in_16_bits_leaves_the_ball() {
    for d in [1usize, 34, 301] {
        let names: Vec<String> = (0..d).map(|j| format!("x{j}")).collect();
        let norm = 1.5 * (d as f64).sqrt();
        let model = Regression::logistic(&names, norm, Prior::normal(d, 1.0), 1.0).unwrap();
        // Twice, as a data set has two rows.
        let alone = |row: &[f32], y: f64| {
            let kind = Some(LabelKind::Binary);
            let mut builder = Dataset::builder_with(names.clone(), kind, norm).unwrap();
            for _ in 0..2 {
                builder.push_value(row, Some(y)).unwrap();
            }
            Arc::new(builder.finish().unwrap().in_16_bits())
        };
        let rows = adversarial(d);
        let Some(mut gpu) = open(&alone(&rows[0], 1.0), false, GpuLimits::default()) else {
            return;
        };
        let (mut largest, mut zeroed) = (0.0f64, 0);
        for (i, row) in rows.iter().enumerate() {
            let y = if i % 2 == 0 { 1.0 } else { -1.0 };
            gpu.reload(&alone(row, y)).unwrap();
            for clip in [0.999_999, 0.3, 1e-20] {
                for factor in [1.0, 1.1, 1e30, f32::INFINITY, f32::NAN] {
                    let q = gradients(&model, &[vec![0.0; d], vec![0.3; d]], clip);
                    let limit = q.limit() * factor;
                    let q = q.with_limit(limit);
                    for mut sum in gpu.gradient_sums(&q, Rows::All).unwrap() {
                        assert!(sum.steps.iter().all(|s| s % 2 == 0));
                        sum.steps.iter_mut().for_each(|s| *s /= 2);
                        let what = format!("d {d} row {i} clip {clip} limit {limit}");
                        let share = assert_in_ball(&q, &sum, &what);
                        match factor == 1.0 {
                            true => largest = largest.max(share),
                            false => zeroed += usize::from(factor > 1e6 && share == 0.0),
                        }
                    }
                }
            }
        }
        assert!(
            largest > 1.0 - 1e-3,
            "d {d}: never near the edge, {largest}"
        );
        assert!(zeroed > 10, "d {d}: {zeroed}");
    }
}
