use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::*;

#[test]
fn symmetric_kl_of_known_histograms() {
    let reference = [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]];
    let draws = [[0.1, 0.2], [0.3, 0.4], [0.0, 0.0], [0.9, 0.8]];
    // Shares (1/2, 1/2) and (3/4, 1/4): ½·¼·(log 3/2 + log 2).
    let found = symmetric_kl(&reference, &draws, 2).unwrap();
    assert!((found - 0.125 * 3f64.ln()).abs() < 1e-12, "{found}");
    assert!(symmetric_kl(&reference, &reference, 99).unwrap().abs() < 1e-15);
    // Draws outside the reference's range count in no cell: the floor stands for them.
    let outside = symmetric_kl(&reference, &[[5.0, 5.0]], 2).unwrap();
    let expected = (0.5 - KL_FLOOR) * (0.5 / KL_FLOOR).ln();
    assert!((outside - expected).abs() < 1e-9, "{outside} {expected}");
}

#[test]
fn ends_of_the_range_belong_to_the_last_cells() {
    let cells = Cells::new([0.0, -1.0], [2.0, 1.0], [2, 4]).unwrap();
    let shares = cells
        .shares(&[[0.0, -1.0], [2.0, 1.0], [2.1, 0.0], [1.0, -0.5]])
        .unwrap();
    let mut expected = [0.0; 8];
    (expected[0], expected[7], expected[5]) = (0.25, 0.25, 0.25);
    assert_eq!(shares, expected);
    assert_eq!(cells.centre(1, 3), [1.5, 0.75]);
}

#[test]
fn a_normal_density_has_its_moments() {
    let cells = Cells::new([-8.0, -8.0], [9.0, 10.0], [300, 310]).unwrap();
    let log_density = |t: [f64; 2]| -0.5 * t[0] * t[0] - 0.125 * (t[1] - 1.0).powi(2);
    let density = CellDensity::from_log_density(cells, log_density).unwrap();
    for (j, mean, variance) in [(0, 0.0, 1.0), (1, 1.0, 4.0)] {
        let found = density.moments(j);
        // The box cuts 4.5 standard deviations off: 3e-6 of the mass.
        assert!((found.0 - mean).abs() < 1e-3 && (found.1 - variance).abs() < 2e-3);
    }
    assert!((density.mass().iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

/// A draw moves the distance by at most 1/n, so it stays within t of its mean but for
/// exp(−2nt²) (McDiarmid): 1e-7 on either side. Its mean lies between the true distance and
/// that plus `½ Σ √(m(1−m)/n)`.
#[test]
fn total_variation_of_known_laws() {
    let n = 100_000;
    let t = (1e7f64.ln() / (2.0 * n as f64)).sqrt();
    let cells = Cells::new([0.0, 0.0], [1.0, 1.0], [10, 10]).unwrap();
    let uniform = CellDensity::from_log_density(cells, |_| 3.0).unwrap();
    let noise = 0.5 * 100.0 * (0.01 * 0.99 / n as f64).sqrt();
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    let mut near = |value: f64, draw: &mut dyn FnMut(&mut ChaCha12Rng) -> [f64; 2]| {
        let draws: Vec<[f64; 2]> = (0..n).map(|_| draw(&mut rng)).collect();
        let found = total_variation(&draws, &uniform).unwrap();
        assert!(
            value - t < found && found < value + noise + t,
            "{value} {found}"
        );
    };
    near(0.0, &mut |rng| [rng.random(), rng.random()]);
    near(0.5, &mut |rng| [0.5 * rng.random::<f64>(), rng.random()]);
    near(0.7, &mut |rng| [rng.random(), 0.7 + rng.random::<f64>()]);
    let own = uniform.draws(n, &mut ChaCha12Rng::seed_from_u64(2));
    assert!(total_variation(&own, &uniform).unwrap() < noise + t);
}

#[test]
fn input_without_meaning_is_refused_by_name() {
    let (one, two) = ([[0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]);
    for (found, argument) in [
        (symmetric_kl(&[], &two, 9), "reference"),
        (symmetric_kl(&one, &two, 9), "range"),
        (symmetric_kl(&two, &two, 0), "bins"),
        (symmetric_kl(&two, &two, usize::MAX), "bins"),
        (symmetric_kl(&two, &[], 9), "draws"),
        (symmetric_kl(&two, &[[f64::NAN, 0.0]], 9), "draws"),
        (symmetric_kl(&[[f64::INFINITY, 0.0]], &two, 9), "reference"),
        (
            symmetric_kl(&[[-1e308, 0.0], [1e308, 1.0]], &two, 9),
            "range",
        ),
    ] {
        assert_eq!(found.unwrap_err().argument, argument);
    }
    let cells = || Cells::new([0.0; 2], [1.0; 2], [3, 3]).unwrap();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(CellDensity::from_log_density(cells(), |_| bad).is_err());
    }
}
