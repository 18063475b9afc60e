//! What moments leave of a mixture, on the GPU: rows against the oracle, sums against the rows'
//! and the CPU's, same bits for any placement.

use super::Engine;
use super::cpu::CpuEngine;
use super::gpu::GpuLimits;
use super::gradient_gpu_tests::open;
use super::test_cases::{case, distance, moments, pairs, query};
use super::tests::{all_rows, ratio_rows, totals};
use crate::synthetic;

/// Off by less than the clip allows for rounding; constants of 9 chains in two tiles.
#[test]
fn what_moments_leave_on_the_gpu_matches_the_f64_oracle() {
    for degree in [1, 3, 8, 12] {
        let data = synthetic::mixture(1_201, Some(3.0), 8).unwrap();
        let case = case(data, |d| Box::new(moments(d, degree)));
        let Some(mut gpu) = open(&case.data, false, GpuLimits::default()) else {
            return;
        };
        let pairs = pairs(&*case.model, 9, 5);
        let q = query(&*case.model, &pairs, 1.0);
        let rows = ratio_rows(&mut gpu, &q, &all_rows(&case, 9));
        let (mut largest, mut allowed) = (0.0f64, vec![]);
        for (c, (theta, proposal)) in pairs.iter().enumerate() {
            // Of the ratio's own size, κ left out: the bound's share for rounding.
            let size = distance(theta, proposal) * 4.0 * case.model.tempering();
            let tolerance = size * f64::powi(2.0, -18) + q.grid(c).step();
            allowed.push((case.data.rows() as f64 * tolerance / q.grid(c).step()) as i64 / 4);
            for (x, steps) in case.rows.iter().zip(&rows[c]) {
                let exact = case.model.log_ratio(&[*x], 1.0, theta, proposal);
                let got = f64::from(*steps) * q.grid(c).step();
                assert!((got - exact).abs() <= tolerance, "{degree}: {got} {exact}");
                largest = largest.max(exact.abs() / tolerance);
            }
        }
        // At a low degree much is left; at a high one the series is nearly the whole ratio, so
        // that a wrong term would show.
        assert!(degree > 3 || largest > 100.0, "{degree}: {largest}");
        let sums = gpu.ratio_sums(&q).unwrap();
        let expected = CpuEngine::new(case.data.clone()).ratio_sums(&q).unwrap();
        // Both passes run the same row function; contraction may differ, by less than a quarter
        // of what a row may be off by.
        for (c, (sum, rows)) in sums.iter().zip(totals(&rows, &q)).enumerate() {
            for other in [rows.steps, expected[c].steps] {
                let gap = (sum.steps - other).abs();
                assert!(gap <= allowed[c], "{degree}: {gap} of {}", allowed[c]);
            }
        }
        for limits in [
            GpuLimits {
                workgroup: Some(64),
                ..GpuLimits::default()
            },
            GpuLimits {
                binding: Some(4 * 500),
                resident: Some(0),
                ..GpuLimits::default()
            },
        ] {
            let mut other = open(&case.data, false, limits).unwrap();
            assert_eq!(other.ratio_sums(&q).unwrap(), sums, "{limits:?}");
        }
    }
}
