//! Gradients on a Poisson batch: rows x and x' of any norm and direction, on the lattice that
//! noise is drawn on, never leak more than the one-dimensional pair that is charged.

use super::pair::Pair;
use super::renyi::of_pair;

/// Half the width of the window that lattice sums run over, in standard deviations.
const WIDE: f64 = 13.0;

/// `(1−q)·N_Z(0, s²)² + q·N_Z(x, s²)²` over N_Z(0, s²)², at a lattice point.
fn ratio(rate: f64, s: f64, x: [i32; 2], k: [i32; 2]) -> f64 {
    let dot = f64::from(k[0] * x[0] + k[1] * x[1]);
    let square = f64::from(x[0] * x[0] + x[1] * x[1]);
    1.0 + rate * ((dot - 0.5 * square) / (s * s)).exp_m1()
}

/// Σ over the lattice of `N_Z(0, s²)²(k) f(k)`.
fn lattice_mean(s: f64, most_tilt: f64, f: impl Fn([i32; 2]) -> f64) -> f64 {
    let far = (s * (WIDE + most_tilt)).ceil() as i32;
    let weight = |j: i32| (-0.5 * (f64::from(j) / s).powi(2)).exp();
    let total: f64 = (-far..=far).map(weight).sum();
    let mut sum = 0.0;
    for i in -far..=far {
        for j in -far..=far {
            sum += weight(i) * weight(j) * f([i, j]);
        }
    }
    sum / (total * total)
}

/// Integer rows of norm at most b: none, along, across, slanted, opposite.
fn rows(b: i32) -> Vec<[i32; 2]> {
    let slanted = [3 * b / 5, 4 * b / 5];
    vec![
        [0, 0],
        [b, 0],
        [-b, 0],
        [0, b],
        slanted,
        [-slanted[0], -slanted[1]],
        [-b / 2, 0],
    ]
}

/// Rényi divergences of the lattice against those charged: of the continuous pair whose noise
/// is smaller by 4 steps squared. Opposite rows on an axis attain the pair at s itself to 1e-9.
#[test]
fn no_direction_exceeds_the_pair_at_any_order() {
    for (s, b) in [(4.0f64, 5), (5.0, 3), (8.0, 16)] {
        let nu = f64::from(b) / s;
        let charged = f64::from(b) / (s * s - 4.0).sqrt();
        for rate in [0.02, 0.3, 0.9] {
            for alpha in [1.5, 2.0, 4.0] {
                let pair = |shift| of_pair(Pair::TwoSided { rate, shift }, alpha);
                let mut worst = 0.0f64;
                for x in rows(b) {
                    for y in rows(b) {
                        let moment = lattice_mean(s, 2.0 * alpha * nu, |k| {
                            let (p, q) = (ratio(rate, s, x, k), ratio(rate, s, y, k));
                            q * (p / q).powf(alpha)
                        });
                        let divergence = moment.ln() / (alpha - 1.0);
                        assert!(
                            divergence <= pair(charged) + 1e-12,
                            "{x:?} {y:?} {rate} {alpha}"
                        );
                        worst = worst.max(divergence);
                    }
                }
                let attained = pair(nu);
                assert!(
                    (worst - attained).abs() < 1e-9 * attained.max(1e-3),
                    "{worst}"
                );
            }
        }
    }
}

/// The same of the profile `H_z`, z = e^ε, in both directions (ε < 0 by symmetry), with
/// κ = 8·2e^{−8π²} for the random rounding.
#[test]
fn no_direction_exceeds_the_pair_at_any_epsilon() {
    let (s, b) = (5.0f64, 4);
    let shift = f64::from(b) / (s * s - 4.0).sqrt();
    for rate in [0.02, 0.3, 0.9] {
        for epsilon in [0.0f64, 0.05, 0.3, 1.0, 2.5] {
            let bound = Pair::TwoSided { rate, shift }.delta(epsilon).1;
            let mut worst = 0.0f64;
            for x in rows(b) {
                for y in rows(b) {
                    let delta = lattice_mean(s, 2.0, |k| {
                        (ratio(rate, s, x, k) - epsilon.exp() * ratio(rate, s, y, k)).max(0.0)
                    });
                    assert!(delta <= bound + 1e-12, "{x:?} {y:?} {rate} {epsilon}");
                    worst = worst.max(delta);
                }
            }
            // 4 steps of 25 in σ² and a lattice as coarse as this: within a third, or of 1e-3.
            assert!(worst > 0.66 * bound - 1e-3, "{worst} {bound}");
        }
    }
}

/// What would fail: half of the shift, or rows that go in and out instead of being substituted.
#[test]
fn the_pair_is_no_larger_than_it_must_be() {
    for (rate, shift, alpha) in [(0.1, 0.5, 2.0), (0.05, 1.0, 2.0)] {
        let two = of_pair(Pair::TwoSided { rate, shift }, alpha);
        let half = Pair::TwoSided {
            rate,
            shift: 0.5 * shift,
        };
        let one = of_pair(Pair::Mixture { rate, shift }, alpha);
        assert!(two > 2.4 * one && two > 3.9 * of_pair(half, alpha));
    }
}
