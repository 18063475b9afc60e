//! Dominating pairs, and the grids that bracket them.

use super::grid::{Knots, Slices};
use super::pair::Pair;

const PAIRS: [Pair; 9] = [
    Pair::Mixture {
        rate: 1.0,
        shift: 0.7,
    },
    Pair::Mixture {
        rate: 0.01,
        shift: 1.25,
    },
    Pair::Mixture {
        rate: 0.3,
        shift: 2.0,
    },
    Pair::TwoSided {
        rate: 0.01,
        shift: 1.0,
    },
    Pair::TwoSided {
        rate: 1.0,
        shift: 0.4,
    },
    Pair::FixedBatch {
        rate: 0.05,
        shift: 1.0,
    },
    Pair::BoundedRange {
        eta: 0.8,
        share: 1.0,
    },
    Pair::Pure { epsilon: 0.5 },
    Pair::Kept {
        mean: 0.3,
        shift: 0.6,
    },
];

/// Masses add up to one, and on every slice of losses P over Q lies between its ends.
#[test]
fn slices_have_the_loss_they_claim() {
    for pair in PAIRS {
        let (mut p, mut q) = (0.0, 0.0);
        for a in pair.atoms() {
            assert!(((a.p / a.q).ln() - a.loss).abs() < 1e-12, "{pair:?}");
            p += a.p;
            q += a.q;
        }
        let h = 0.01;
        for k in -4000..4000 {
            let (low, high) = (f64::from(k) * h, f64::from(k + 1) * h);
            let (a, b) = if k >= 0 {
                (pair.above(low), pair.above(high))
            } else {
                (pair.below(high), pair.below(low))
            };
            let (mp, mq) = (a.p - b.p, a.q - b.q);
            p += mp;
            q += mq;
            if mp > 1e-12 && mq > 1e-12 {
                let loss = (mp / mq).ln();
                assert!(
                    loss > low - 1e-4 && loss < high + 1e-4,
                    "{pair:?} {low} {loss}"
                );
            }
        }
        assert!(
            (p - 1.0).abs() < 1e-9 && (q - 1.0).abs() < 1e-9,
            "{pair:?} {p} {q}"
        );
    }
}

/// Two-sided at q = 1 is the Gaussian of twice the shift.
#[test]
fn full_rate_is_no_subsampling() {
    for epsilon in [0.0, 0.3, 2.0] {
        let two = Pair::TwoSided {
            rate: 1.0,
            shift: 0.4,
        };
        let one = Pair::Mixture {
            rate: 1.0,
            shift: 0.8,
        };
        let fixed = Pair::FixedBatch {
            rate: 1.0,
            shift: 0.8,
        };
        assert!((two.delta(epsilon).1 - one.delta(epsilon).1).abs() < 1e-13);
        assert!((fixed.delta(epsilon).1 - one.delta(epsilon).1).abs() < 1e-13);
    }
}

/// `(√E − √a)²/(E − 1)`: the pointwise supremum over bits, by brute force.
#[test]
fn the_bounded_range_profile_is_the_supremum_over_bits() {
    let eta = 0.8f64;
    let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
    for epsilon in [0.0, 0.2, 0.5, 0.79] {
        let brute = (-4000..4000)
            .map(|k| f64::from(k) * 0.002)
            .map(|z| sigma(z) - f64::exp(epsilon) * sigma(z - eta))
            .fold(0.0, f64::max);
        let closed = Pair::BoundedRange { eta, share: 1.0 }.delta(epsilon).1;
        assert!((closed - brute).abs() < 1e-6 && closed >= brute - 1e-15);
    }
}

fn profile(knots: &Knots, epsilon: f64) -> f64 {
    let sum: f64 = knots
        .p
        .iter()
        .enumerate()
        .map(|(k, p)| (k, p, (knots.first + k as i64) as f64 * knots.h))
        .filter(|(_, _, loss)| *loss > epsilon)
        .map(|(_, p, loss)| -p * (epsilon - loss).exp_m1())
        .sum();
    sum + knots.infinite
}

/// The two grids bracket the exact profile everywhere, closely, in both directions.
#[test]
fn grids_bracket_the_exact_profile() {
    for pair in PAIRS {
        for h in [1e-2, 1.3e-3, 1e-4] {
            let slices = Slices::new(pair, h, 1e-18).unwrap();
            for reversed in [false, true] {
                let slices = if reversed {
                    slices.reversed()
                } else {
                    slices.clone()
                };
                let (upper, lower) = (slices.upper(), slices.lower());
                let total: f64 = lower.p.iter().sum();
                assert!(total < 1.0 + 1e-9, "{pair:?} {total}");
                for i in 0..60 {
                    let epsilon = 0.0173 * f64::from(i);
                    let exact = if reversed {
                        pair.delta_reversed(epsilon).1
                    } else {
                        pair.delta(epsilon).1
                    };
                    let (high, low) = (profile(&upper, epsilon), profile(&lower, epsilon));
                    assert!(
                        low <= exact + 1e-13 && exact <= high + 1e-13,
                        "{pair:?} h {h} eps {epsilon}: {low} {exact} {high}"
                    );
                    // Second order: the chord's height, atoms apart.
                    let width = match pair {
                        Pair::Pure { .. } => h,
                        _ => 40.0 * h * h,
                    };
                    assert!(
                        h > 2e-3 || high - low <= width,
                        "{pair:?} h {h} eps {epsilon}: {low} {exact} {high}"
                    );
                }
            }
        }
    }
}
