use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;

fn normal(n: usize, mean: &[f64], rng: &mut ChaCha12Rng) -> Vec<Vec<f64>> {
    let draw = |rng: &mut ChaCha12Rng| {
        mean.iter()
            .map(|m| {
                let z: f64 = StandardNormal.sample(rng);
                m + z
            })
            .collect()
    };
    (0..n).map(|_| draw(rng)).collect()
}

/// Between N(0, I) and N(m, I) in d dimensions MMD² is
/// `2 (ℓ²/(ℓ²+2))^{d/2} (1 − exp(−‖m‖²/(2(ℓ²+2))))`. The mean of 40 independent estimates
/// is compared at 6.5 of its standard errors: 1e-7 by Student's t with 39 degrees of freedom,
/// in each of 3 cases.
#[test]
fn mmd_of_two_gaussians() {
    let mut rng = ChaCha12Rng::seed_from_u64(3);
    for (m, ell) in [
        (vec![1.5], 1.0),
        (vec![0.0, 0.0], 0.7),
        (vec![0.5, -1.0], 2.0),
    ] {
        let zero = vec![0.0; m.len()];
        let found: Vec<f64> = (0..40)
            .map(|_| {
                let (x, y) = (normal(250, &zero, &mut rng), normal(200, &m, &mut rng));
                mmd_squared(&x, &y, ell).unwrap()
            })
            .collect();
        let square: f64 = m.iter().map(|v| v * v).sum();
        let wide = ell * ell + 2.0;
        let expected = 2.0
            * (ell * ell / wide).powf(0.5 * m.len() as f64)
            * -(-square / (2.0 * wide)).exp_m1();
        let error = sd(&found) / 40f64.sqrt();
        assert!(
            (mean(&found) - expected).abs() < 6.5 * error,
            "{} {expected} {error}",
            mean(&found)
        );
        // And the comparison can fail: it tells an MMD² of 0 from this one.
        assert!(error * 6.5 < 0.5 * expected || square == 0.0, "{error}");
    }
}

#[test]
fn the_median_distance_of_known_points() {
    let points = |v: &[f64]| -> Vec<Vec<f64>> { v.iter().map(|&x| vec![x]).collect() };
    // Distances 1, 2, 3, 4, 6, 7: the upper of the two middle ones.
    let found = median_bandwidth(&points(&[0.0, 1.0]), &points(&[3.0, 7.0])).unwrap();
    assert_eq!(found, 4.0);
    // Evenly spaced beyond 500: the same grid, thinned.
    let long: Vec<f64> = (0..50_000).map(|i| f64::from(i) / 50_000.0).collect();
    let found = median_bandwidth(&points(&long), &points(&long)).unwrap();
    // |U − U'| has median 1 − √½.
    assert!((found - (1.0 - 0.5f64.sqrt())).abs() < 5e-3, "{found}");
}

#[test]
fn equal_points_far_from_equal_points() {
    let (a, b) = (vec![vec![0.0, 0.0]; 3], vec![vec![3.0, 4.0]; 4]);
    let expected = 2.0 - 2.0 * (-0.5f64).exp();
    assert!((mmd_squared(&a, &b, 5.0).unwrap() - expected).abs() < 1e-15);
    assert!((mmd(&a, &b).unwrap() - expected.sqrt()).abs() < 1e-15);
    assert!((mean_error(&b, &[0.0, 0.0]).unwrap() - 5.0).abs() < 1e-15);
}

#[test]
fn input_without_meaning_is_refused_by_name() {
    let good = vec![vec![0.0, 1.0], vec![2.0, 3.0]];
    for bad in [
        vec![],
        vec![vec![], vec![]],
        vec![vec![0.0, 1.0]],
        vec![vec![0.0, 1.0], vec![2.0]],
        vec![vec![0.0, 1.0], vec![f64::NAN, 1.0]],
    ] {
        assert_eq!(mmd_squared(&bad, &good, 1.0).unwrap_err().argument, "x");
        assert!(mmd_squared(&good, &bad, 1.0).is_err());
        assert!(median_bandwidth(&good, &bad).is_err() && mmd(&bad, &good).is_err());
    }
    for bandwidth in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = mmd_squared(&good, &good, bandwidth).unwrap_err();
        assert_eq!(error.argument, "bandwidth");
    }
    assert!(median_bandwidth(&[vec![1.0], vec![1.0]], &[vec![1.0], vec![1.0]]).is_err());
    assert_eq!(mean_error(&good, &[0.0]).unwrap_err().argument, "draws");
    assert_eq!(mean_error(&[], &[0.0]).unwrap_err().argument, "draws");
}
