//! Anchors on the GPU: sums against the CPU's, same bits for any placement, and the bounds of a
//! row's part as facts about integers, whatever the row, the point and the metric are.

use std::sync::Arc;

use super::cpu::CpuEngine;
use super::gpu::GpuLimits;
use super::gradient_gpu_tests::{alone, open};
use super::gradient_tests::adversarial;
use super::{AnchorQuery, AnchorSums, Engine};
use crate::data::{Dataset, LabelKind, synthetic};
use crate::model::{Lower, Metric, Slopes};

/// The bound of an integer score or weight, and of a row's integers in L2.
const LIMIT: i128 = 1 << 14;

/// Rows with the slopes of their label.
struct Case {
    data: Arc<Dataset>,
    slopes: Slopes,
}

const SIZES: [usize; 6] = [1, 3, 4, 12, 50, 81];

/// Each model over d features; row counts that leave partial tiles, quads and workgroups.
fn cases(d: usize) -> [Case; 3] {
    let theta: Vec<f64> = (0..d).map(|j| (0.9 * j as f64 + 0.4).sin()).collect();
    let number = LabelKind::Number {
        low: -3.0,
        high: 3.0,
    };
    let case = |data: Dataset, slopes| Case {
        data: Arc::new(data),
        slopes,
    };
    let logistic = synthetic::logistic(1_003, &theta, 4).unwrap();
    let linear = synthetic::linear(1_001, &theta, 0.8, 3.0, 4).unwrap();
    let poisson = synthetic::poisson(999, &theta, 30, 4).unwrap();
    [
        case(logistic, Slopes::logistic()),
        case(linear, Slopes::linear(number, 0.5)),
        case(poisson, Slopes::poisson(30.0, None)),
    ]
}

fn point(d: usize) -> Vec<f64> {
    (0..d).map(|j| 0.3 * (1.7 * j as f64).cos()).collect()
}

/// Coordinates that mix all features, with rows of norm `share` of the bound on average.
fn whitening(data: &Dataset, share: f64) -> Metric {
    let d = data.features().len();
    let mut entries = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..i {
            entries[i * d + j] = 0.3 * ((i * 5 + j * 3) as f64).sin();
        }
        entries[i * d + i] = 1.0 + 0.5 * (i as f64).cos();
    }
    let factor = Lower::new(entries).unwrap();
    let rows = data.public_rows();
    let mut square = 0.0;
    for row in rows.chunks(d) {
        let mut z: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
        factor.solve(&mut z);
        square += z.iter().map(|v| v * v).sum::<f64>();
    }
    Metric {
        factor,
        row_bound: (square / data.rows() as f64).sqrt() / share,
    }
}

fn largest_gap(a: &[i128], b: &[i128]) -> i128 {
    let gaps = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    gaps.max().unwrap_or(0)
}

/// Sums against the CPU's, on rows inside the ball and on rows of which many are shortened. A
/// row's integers differ by a unit where f32 rounds the other way, which moves its part by 2^15
/// and 2^30 at most; few rows do. A row missing or twice, a swapped sign, or a lost carry would
/// move some sum by more than is left to them.
#[test]
fn gpu_sums_are_the_cpus_within_units() {
    for d in SIZES {
        for Case { data, slopes } in cases(d) {
            let Some(mut gpu) = open(&data, false, GpuLimits::default()) else {
                return;
            };
            let mut cpu = CpuEngine::new(data.clone());
            let norm = data.row_norm();
            for (metric, clips) in [
                (Metric::identity(d, norm), false),
                (whitening(&data, 0.3), false),
                (whitening(&data, 1.1), true),
            ] {
                let at = point(d);
                let query = AnchorQuery {
                    at: &at,
                    metric: &metric,
                    slopes,
                };
                let got = gpu.anchor_sums(&query).unwrap();
                let expected = cpu.anchor_sums(&query).unwrap();
                assert_eq!(got.gradient.len(), d);
                assert_eq!(got.curvature.len(), d * (d + 1) / 2);
                let g = largest_gap(&got.gradient, &expected.gradient);
                let c = largest_gap(&got.curvature, &expected.curvature);
                let score = slopes.score;
                eprintln!(
                    "{d} {score:?} {clips}: {} of {}, {} of {}",
                    g,
                    largest_gap(&expected.gradient, &vec![0; d]),
                    c,
                    largest_gap(&expected.curvature, &vec![0; d * d])
                );
            }
        }
    }
}
