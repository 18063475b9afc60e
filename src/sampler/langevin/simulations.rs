//! Stochastic-gradient samplers simulated on Gaussians, with fixed seeds; their state; and what
//! they do beyond stability.

use super::known_gradients::KnownGradients;
use super::tests::{close, flat, sampler, settings};
use super::*;
use crate::sampler::*;

/// Mean of θ_j² over steps after `warmup`, and its standard error over independent chains.
fn simulate(
    sampler: &mut StochasticGradient,
    precision: &[f64],
    chains: usize,
    (warmup, steps): (u64, u64),
) -> Vec<(f64, f64)> {
    let d = precision.len();
    let mut releases = KnownGradients::diagonal(1, &vec![0.0; d], precision, 11);
    let mut chains = Chains::new(&vec![vec![0.0; d]; chains], [5; 32]);
    let mut squares = chains.thetas.clone() * 0.0;
    for t in 0..warmup + steps {
        sampler.step(&mut chains, &mut releases).unwrap();
        if t >= warmup {
            squares += &chains.thetas.mapv(|v| v * v / steps as f64);
        }
    }
    let count = chains.len() as f64;
    let summary = squares.columns().into_iter().map(|column| {
        let mean = column.sum() / count;
        let spread: f64 = column.iter().map(|v| (v - mean).powi(2)).sum();
        (mean, (spread / (count - 1.0) / count).sqrt())
    });
    summary.collect()
}

/// Seven standard errors of 64 chains: under 1e-8 a coordinate (Student, 63 degrees).
fn within(found: (f64, f64), expected: f64, bias: f64) {
    assert!(found.1 < 0.03 * expected, "too noisy to tell: {found:?}");
    let gap = (found.0 - expected).abs();
    assert!(
        gap < 7.0 * found.1 + bias * expected,
        "{found:?} against {expected}"
    );
}

#[test]
fn the_thermostat_samples_the_posterior() {
    let precision = [1.0, 1.0, 4.0, 9.0];
    let (a, rate) = (0.15, 0.3);
    let mut sampler = sampler(4, Dynamics::Sgnht { diffusion: 1.0 }, a, rate);
    let found = simulate(&mut sampler, &precision, 64, (1000, 8000));
    for (found, lambda) in found.iter().zip(precision) {
        // Ding's own thermostat would be off by ξa/2 = 0.075.
        let expected = 1.0 / (lambda * (1.0 - a * a * lambda / (2.0 * (2.0 - a))));
        within(*found, expected, 0.01);
    }
}

/// Noise that a small scale lacks on its gradient comes from the public stream.
#[test]
fn scales_leave_the_posterior_alone() {
    let (precision, scale, a) = ([0.25, 9.0], [2.0, 0.3], 0.5);
    for dynamics in [Dynamics::Sgld, Dynamics::Sghmc { friction: 0.4 }] {
        let plain = sampler(2, dynamics, a, 0.2);
        let own = plain.noise_of_step(1).sigma;
        let mut sampler = plain.with_scale(&scale).unwrap();
        close(sampler.noise_of_step(1).sigma, own / 2.0);
        let found = simulate(&mut sampler, &precision, 64, (300, 4000));
        for ((found, lambda), s) in found.iter().zip(precision).zip(scale) {
            let k = a * s * s * lambda;
            let error = match dynamics {
                Dynamics::Sghmc { friction } => k / (4.0 - 2.0 * friction),
                _ => k / 4.0,
            };
            within(*found, 1.0 / (lambda * (1.0 - error)), 0.0);
        }
    }
}

/// A learned metric: near 1/√λ of each other, frozen, at the same price throughout.
#[test]
fn a_learned_metric_leaves_the_posterior_alone() {
    let (precision, a, floor) = ([1.0, 25.0], 0.15, 0.01);
    let dynamics = Dynamics::PreconditionedSgld {
        decay: 0.999,
        floor,
        adapt: 8000,
    };
    let mut sampler = sampler(2, dynamics, a, 0.2);
    let sigma = sampler.noise_of_step(1).sigma;
    close(sigma, 2.0 * 0.2 / a.sqrt());
    let found = simulate(&mut sampler, &precision, 64, (8200, 6000));
    assert_eq!(
        sampler.noise_of_step(14_201).sigma.to_bits(),
        sigma.to_bits()
    );
    let scale = sampler.scale();
    simulate(&mut sampler, &precision, 2, (0, 1));
    assert_eq!(sampler.scale(), scale);
    assert_eq!(scale[0], 1.0);
    // E g² = λ up to the step's bias; the floor counts on both.
    let ratio = (floor * 5.0 + 1.0) / (floor * 5.0 + 5.0);
    let learned = scale[1] * scale[1];
    assert!((learned / ratio - 1.0).abs() < 0.25, "{learned} {ratio}");
    for ((found, lambda), s) in found.iter().zip(precision).zip(scale) {
        let expected = 1.0 / (lambda * (1.0 - a * s * s * lambda / 4.0));
        within(*found, expected, 0.0);
    }
}

#[test]
fn state_comes_back_to_the_last_bit() {
    for dynamics in [
        Dynamics::Sgld,
        Dynamics::PreconditionedSgld {
            decay: 0.8,
            floor: 0.1,
            adapt: 8,
        },
        Dynamics::Sghmc { friction: 0.1 },
        Dynamics::Sgnht { diffusion: 1.0 },
    ] {
        let build = || {
            let schedule = Schedule::CubeRoot { step: 0.1 };
            let gradients = settings(0.5, 0.0);
            StochasticGradient::new(flat(), 2, dynamics, schedule, gradients)
                .and_then(|s| s.with_scale(&[1.0, 0.5]))
                .unwrap()
        };
        let mut releases = KnownGradients::diagonal(3, &[1.0, -1.0], &[1.0, 7.0], 2);
        let mut chains = Chains::new(&[vec![0.1, 0.2], vec![0.3, 0.4]], [3; 32]);
        let mut sampler = build();
        for _ in 0..7 {
            sampler.step(&mut chains, &mut releases).unwrap();
        }
        let json = serde_json::to_string(&(sampler.state(), chains.state())).unwrap();
        let (state, chains_state): (StochasticGradientState, ChainsState) =
            serde_json::from_str(&json).unwrap();
        let mut again = build();
        again.restore(&state, 2).unwrap();
        let mut copies = Chains::restore(&chains_state).unwrap();
        let rng = releases.rng.clone();
        for _ in 0..7 {
            sampler.step(&mut chains, &mut releases).unwrap();
        }
        let asked = releases.asked.split_off(7);
        releases.rng = rng;
        for _ in 0..7 {
            again.step(&mut copies, &mut releases).unwrap();
        }
        assert_eq!(copies.thetas, chains.thetas);
        assert_eq!(again.state(), sampler.state());
        assert_eq!(releases.asked[7..], asked);
        assert_eq!(copies.state(), chains.state());

        let mut damaged = state.clone();
        damaged.iteration = u64::MAX;
        assert!(
            again
                .restore(&damaged, 2)
                .unwrap_err()
                .contains("iteration")
        );
        let mut damaged = state.clone();
        damaged.second_moment.pop();
        assert!(
            again
                .restore(&damaged, 2)
                .unwrap_err()
                .contains("second_moment")
        );
        let mut damaged = state;
        damaged.momenta.push(vec![f64::NAN; 2]);
        assert!(again.restore(&damaged, 2).unwrap_err().contains("momenta"));
    }
}

#[test]
fn no_draw_is_beyond_the_numbers() {
    for dynamics in [
        Dynamics::Sgld,
        Dynamics::Sghmc { friction: 0.1 },
        Dynamics::Sgnht { diffusion: 1.0 },
    ] {
        // Far beyond stability: every few steps would square the distance.
        let mut sampler = sampler(1, dynamics, 1e40, 0.5);
        let mut releases = KnownGradients::diagonal(2, &[0.0], &[1.0], 4);
        let mut chains = Chains::new(&[vec![1.0], vec![-2.0]], [3; 32]);
        for _ in 0..50 {
            sampler.step(&mut chains, &mut releases).unwrap();
            assert!(chains.thetas.iter().all(|t| t.abs() <= 1e100));
        }
        assert_eq!(releases.asked.len(), 50);
        assert!(
            sampler
                .state()
                .momenta
                .iter()
                .flatten()
                .all(|p| p.is_finite())
        );
        chains.thetas[[0, 0]] = f64::NAN;
        assert!(sampler.step(&mut chains, &mut releases).is_err());
        assert_eq!(releases.asked.len(), 50);
    }
}
