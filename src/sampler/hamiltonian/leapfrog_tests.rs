//! What a Hamiltonian step does apart from its target: it can be run backwards, keeps volume,
//! always asks for as much, and its clip bound is symmetric.

use ndarray::{Array2, array};

use super::known_density::{Gradient, KnownDensity, Noise};
use super::leapfrog::Leapfrog;
use super::tests::{RULES, flat, settings};
use super::*;
use crate::model::{Lower, Prior};
use crate::privacy::{Batch, GradientNoise, Halt};
use crate::sampler::*;

const NOISE: GradientNoise = GradientNoise {
    clip: None,
    batch: Batch::All,
    sigma: 0.0,
};

fn masses() -> [Mass; 3] {
    [
        Mass::Scalar(0.7),
        Mass::Diagonal(vec![2.0, 0.3]),
        Mass::dense(&[2.0, 0.6, 0.6, 0.5], 2).unwrap(),
    ]
}

/// A likelihood without symmetry; its gradient is what counts here.
fn density(seed: u8) -> KnownDensity {
    KnownDensity::new(
        |t| -t[0].powi(4) / 4.0 - t[0] * t[1] - t[1] * t[1],
        |t| vec![-t[0].powi(3) - t[1], -t[0] - 2.0 * t[1]],
        seed,
    )
}

/// From the end, with momenta flipped and the noise of the way there backwards, every trajectory
/// returns; with the noise in its first order it does not.
#[test]
fn noisy_trajectories_return_on_reversed_noise() {
    let prior = Prior::normal(2, 3.0);
    for mass in &masses() {
        for noise in [Noise::None, Noise::Gaussian(0.8), Noise::Lattice(0.25)] {
            let start = array![[0.3, -1.1], [1.7, 0.4], [-0.2, 0.0]];
            let momentum = array![[0.5, 0.2], [-1.0, 0.7], [0.1, -2.0]];
            let path = Leapfrog {
                prior: &prior,
                mass,
                noise: NOISE,
                step: 0.13,
                steps: 7,
            };
            let there = |script: Vec<Array2<f64>>, theta: &Array2<f64>, p: &Array2<f64>| {
                let mut density = density(21);
                (density.noise, density.clip, density.script) = (noise, 1.5, script);
                let (mut theta, mut p) = (theta.clone(), p.clone());
                path.run(&mut theta, &mut p, &mut density).unwrap();
                assert_eq!(density.gradient_calls, 8);
                (theta, p, density.drawn)
            };
            let (theta, p, mut drawn) = there(vec![], &start, &momentum);
            let gap = |a: &Array2<f64>, b: &Array2<f64>| {
                (a - b).iter().fold(0.0f64, |m, v| m.max(v.abs()))
            };
            assert!(gap(&theta, &start) > 0.1);
            if noise != Noise::None {
                let (astray, _, _) = there(drawn.clone(), &theta, &-&p);
                assert!(gap(&astray, &start) > 1e-3, "{mass:?} {noise:?}");
            }
            drawn.reverse();
            let (back, flipped, _) = there(drawn, &theta, &-&p);
            assert!(gap(&back, &start) < 1e-9, "{mass:?} {noise:?}");
            assert!(gap(&-flipped, &momentum) < 1e-9, "{mass:?} {noise:?}");
        }
    }
}

/// The Jacobian of (θ, p) → (θ', p') by central differences, for smooth gradients and for
/// gradients cut to a lattice: 1.
#[test]
fn volume_is_kept() {
    let prior = Prior::normal(2, 3.0);
    for mass in &masses() {
        for noise in [Noise::Gaussian(0.8), Noise::Lattice(0.25)] {
            let path = Leapfrog {
                prior: &prior,
                mass,
                noise: NOISE,
                step: 0.2,
                steps: 4,
            };
            let end = |x: [f64; 4]| {
                // The same seed: the same noise.
                let mut density = density(22);
                (density.noise, density.scale) = (noise, 0.7);
                let (mut theta, mut p) = (array![[x[0], x[1]]], array![[x[2], x[3]]]);
                path.run(&mut theta, &mut p, &mut density).unwrap();
                [theta[[0, 0]], theta[[0, 1]], p[[0, 0]], p[[0, 1]]]
            };
            let (x, h) = ([0.4, -0.3, 0.8, 1.1], 1e-5);
            let mut columns = [[0.0; 4]; 4];
            for (k, column) in columns.iter_mut().enumerate() {
                let (mut up, mut down) = (x, x);
                up[k] += h;
                down[k] -= h;
                let (up, down) = (end(up), end(down));
                *column = std::array::from_fn(|i| (up[i] - down[i]) / (2.0 * h));
            }
            let det = determinant(columns);
            assert!((det - 1.0).abs() < 1e-7, "{mass:?} {noise:?}: {det}");
            assert!((columns[0][0] - 1.0).abs() > 1e-3, "no force was felt");
        }
    }
}

/// By elimination with pivots.
fn determinant(mut m: [[f64; 4]; 4]) -> f64 {
    let mut det = 1.0;
    for k in 0..4 {
        let pivot = (k..4).max_by(|&a, &b| m[a][k].abs().total_cmp(&m[b][k].abs()));
        let pivot = pivot.unwrap();
        if pivot != k {
            m.swap(k, pivot);
            det = -det;
        }
        det *= m[k][k];
        for i in k + 1..4 {
            let factor = m[i][k] / m[k][k];
            let pivot = m[k];
            m[i].iter_mut()
                .zip(pivot)
                .for_each(|(m, p)| *m -= factor * p);
        }
    }
    det
}

/// L + 1 gradients and one decision a step, with finite h and clip bounds at their floor or
/// above, also where every trajectory diverges; what is not a number gets nowhere.
#[test]
fn every_step_asks_for_as_much() {
    let wild: [(&str, Gradient, f64); 5] = [
        ("usual", |t| t.iter().map(|t| -t).collect(), 0.3),
        ("not a number", |_| vec![f64::NAN; 2], 0.3),
        ("infinite", |_| vec![f64::INFINITY, 0.0], 0.3),
        (
            "overflowing",
            |t| t.iter().map(|t| 1e305 * t).collect(),
            1e8,
        ),
        ("far", |_| vec![1e6; 2], 3.0),
    ];
    for rule in RULES {
        for (what, gradient, step) in wild {
            for norm in [ClipNorm::Euclidean, ClipNorm::Proposal, ClipNorm::Constant] {
                let mut density =
                    KnownDensity::new(|t| -0.5 * (t[0] * t[0] + t[1] * t[1]), gradient, 23);
                let rate = 0.3;
                let settings = HamiltonianSettings {
                    clip: Some(ClipRule { rate, norm }),
                    ..settings(rule, step, 4)
                };
                let prior = Prior::normal(2, 10.0);
                let mut sampler = Hamiltonian::new(prior, settings, 2).unwrap();
                let mut chains = Chains::new(&[vec![0.5, 0.2], vec![-0.1, 1.0]], [23; 32]);
                let start = chains.thetas.clone();
                for _ in 0..10 {
                    sampler.step(&mut chains, &mut density).unwrap();
                    let fine = |(h, c): &(f64, f64)| {
                        h.is_finite() && *c >= f64::powi(2.0, -20) && *c <= 1e6
                    };
                    assert!(density.asked.len() == 2 && density.asked.iter().all(fine));
                }
                assert_eq!((density.gradient_calls, density.decide_calls), (50, 10));
                if what == "usual" {
                    assert!(sampler.divergent() == 0 && chains.thetas != start);
                } else if what == "far" && norm == ClipNorm::Constant {
                    // Far moves cost what others do there: decided as they are.
                    assert!(sampler.divergent() == 0 && chains.thetas == start);
                } else {
                    assert_eq!(sampler.divergent(), 20, "{what}");
                    assert_eq!(chains.thetas, start, "{what}");
                }
            }
        }
    }
}

/// Trajectories that end outside a box are rejected, and free: h = −∞.
#[test]
fn trajectories_that_end_outside_the_box_are_rejected() {
    let mut density = KnownDensity::new(|_| 0.0, |_| vec![0.0; 2], 24);
    let mut sampler =
        Hamiltonian::new(Prior::flat_box(2, 0.5), settings(RULES[0], 1.0, 3), 2).unwrap();
    let mut chains = Chains::new(&vec![vec![0.1, 0.2]; 200], [24; 32]);
    let info = sampler.step(&mut chains, &mut density).unwrap();
    let outside = density.asked.iter().map(|(h, _)| *h == f64::NEG_INFINITY);
    assert!(outside.clone().filter(|o| *o).count() > 100);
    assert!(outside.zip(&info.accepted).all(|(o, a)| !(o && *a)));
    assert!(chains.thetas.iter().all(|t| t.abs() <= 0.5));
}

/// c(θ, θ') = c(θ', θ) to the bit, and is what it says: what a chain pays for going there and
/// coming back is the same.
#[test]
fn clip_bounds_are_symmetric_to_the_bit() {
    let points = array![
        [0.1, 0.7],
        [1.0 / 3.0, -1e-7],
        [1e5, 3.3],
        [0.1, 0.7 + 1e-16]
    ];
    for mass in masses() {
        for norm in [ClipNorm::Euclidean, ClipNorm::Proposal, ClipNorm::Constant] {
            let settings = HamiltonianSettings {
                clip: Some(ClipRule { rate: 0.37, norm }),
                mass: mass.clone(),
                ..settings(RULES[1], 0.1, 1)
            };
            let sampler = Hamiltonian::new(flat(), settings, 2).unwrap();
            for a in points.rows() {
                for b in points.rows() {
                    let (there, back) = (sampler.clip(a, b), sampler.clip(b, a));
                    assert_eq!(there.to_bits(), back.to_bits());
                    assert!(there >= f64::powi(2.0, -20));
                }
            }
            let gap = [points[[1, 0]] - 0.1, points[[1, 1]] - 0.7];
            let wanted = match norm {
                ClipNorm::Euclidean => gap[0].hypot(gap[1]),
                ClipNorm::Proposal => mass.norm(&gap),
                ClipNorm::Constant => 1.0,
            };
            let given = sampler.clip(points.row(0), points.row(1));
            assert!((given / (0.37 * wanted) - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn wrong_settings_are_named() {
    let refused = |change: fn(&mut HamiltonianSettings), key: &str| {
        let mut s = settings(RULES[1], 0.1, 3);
        change(&mut s);
        let error = Hamiltonian::new(flat(), s, 2).unwrap_err();
        assert_eq!(error.key, key);
    };
    refused(|s| s.step = f64::NAN, "sampler.step");
    refused(|s| s.leapfrog_steps = 0, "sampler.leapfrog_steps");
    refused(|s| s.largest_clip = f64::INFINITY, "sampler.clip");
    refused(
        |s| s.mass = Mass::Dense(Lower::identity(3)),
        "sampler.scale",
    );
    refused(|s| s.warmup.target = 1.0, "sampler.target_acceptance");
    refused(
        |s| s.warmup.most_leapfrog_steps = 0,
        "sampler.leapfrog_steps",
    );
    refused(
        |s| {
            s.clip = Some(ClipRule {
                rate: -1.0,
                norm: ClipNorm::Euclidean,
            });
        },
        "sampler.clip",
    );
    refused(
        |s| {
            s.largest_clip = 0.5;
            s.clip = Some(ClipRule {
                rate: 1.0,
                norm: ClipNorm::Constant,
            });
        },
        "sampler.clip",
    );
    let mut sampler = Hamiltonian::new(flat(), settings(RULES[1], 0.1, 3), 2).unwrap();
    let mut chains = Chains::new(&[vec![0.0; 3]], [0; 32]);
    let halt = sampler.step(&mut chains, &mut density(25));
    assert!(matches!(halt, Err(Halt::Refused(_))));
}
