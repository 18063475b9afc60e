//! Runs on released moments: they target exactly the posterior times the tilt of the moments'
//! noise; they charge what they release; and they refuse what they cannot do.
//!
//! Tolerances, false alarms and power as in `known_posteriors`.

use std::sync::Arc;

use crate::common::chains::{Length, STUDY, TEST, large, quadrature};
use crate::common::moment_problems::{Problem, banana, gaussian, mixture};
use dpmc::diagnostics::noise_aware_moments;
use dpmc::engine::EngineChoice;
use dpmc::model::{MomentAnchor, MomentBasis, Moments, Prior, Regression, remainder_bound};
use dpmc::privacy::{
    Acceptance, Budget, Curator, Estimator, Halt, Lambda, Ledger, MomentNoise, OpenCurator,
    Releases,
};
use dpmc::sampler::{
    Adapt, Adaptation, AnchorSettings, Chains, MomentSettings, Preconditioner, RandomWalk,
};
use dpmc::synthetic;

fn open(p: &Problem, seed: u64) -> OpenCurator {
    Curator::not_private((p.data)(), p.model.clone(), EngineChoice::Cpu, seed).unwrap()
}

fn sampler(p: &Problem, estimator: Estimator, acceptance: Acceptance) -> RandomWalk {
    RandomWalk::new(
        p.model.prior().clone(),
        estimator,
        acceptance,
        None,
        p.step,
        Preconditioner::Identity,
        Adaptation::new(Adapt::None, 0.3, 0, 2),
    )
    .with_anchoring(AnchorSettings::Moments(MomentSettings {
        degree: p.degree,
        rho: None,
        share: 1.0,
        typical_clip: 1e-6,
    }))
}

/// `κ Σ_k (noise of moment k)·a_k(θ)`, the coefficients a_k by 64-point quadrature of the log
/// density over Chebyshev's weight, or by its slope in each column: nothing of the product's.
fn tilt(p: &Problem, bound: f64, noise: &[f64], theta: &[f64]) -> f64 {
    let origin = [0.0, 0.0];
    let log = |row: &[f64]| p.model.log_ratio(row, 1.0, &origin, theta);
    if p.degree == 1 {
        let zero = vec![0.0; p.model.features()];
        return (0..zero.len())
            .map(|j| {
                let mut row = zero.clone();
                row[j] = bound;
                noise[j] * (log(&row) - log(&zero))
            })
            .sum();
    }
    let n = 64;
    let angle = |i: usize| std::f64::consts::PI * (i as f64 + 0.5) / n as f64;
    let values: Vec<f64> = (0..n).map(|i| log(&[bound * angle(i).cos()])).collect();
    (1..=p.degree)
        .map(|k| {
            let terms = values.iter().enumerate();
            let sum: f64 = terms.map(|(i, v)| (k as f64 * angle(i)).cos() * v).sum();
            noise[k - 1] * 2.0 / n as f64 * sum
        })
        .sum()
}

/// One case: the moments' noise moves the posterior, and the chain is where quadrature says.
fn matches_quadrature(p: &Problem, (estimator, rule): (Estimator, Acceptance), length: &Length) {
    let exact_moments = open(p, 1).moments(p.degree, None).unwrap();
    // So much that what it does to the posterior is seen: 0.16 sds, found with power 0.9999.
    let tau = if p.degree == 1 { 3.0 } else { 9.0 };
    let noisy = open(p, 9)
        .moments(p.degree, Some(MomentNoise { tau }))
        .unwrap();
    let gaps: Vec<f64> = noisy
        .sums
        .iter()
        .zip(&exact_moments.sums)
        .map(|(a, b)| a - b)
        .collect();
    let curator = std::cell::RefCell::new(open(p, 2));
    let bound = exact_moments.basis.bound;
    let log_posterior = |tilted: bool| {
        let (curator, gaps) = (&curator, &gaps);
        move |theta: &[f64]| {
            if !p.model.prior().contains(theta) {
                return f64::NEG_INFINITY;
            }
            let clip = 50.0;
            let mut curator = curator.borrow_mut();
            let sums = curator.exact_log_ratios(&[&p.centre], &[theta], &[clip]);
            let tilt = if tilted {
                tilt(p, bound, gaps, theta)
            } else {
                0.0
            };
            sums.unwrap()[0].0 + p.model.prior().log_density(theta) + tilt
        }
    };
    let exact = quadrature(log_posterior(true), &p.centre, &p.scale, p.limit);
    let untilted = quadrature(log_posterior(false), &p.centre, &p.scale, p.limit);
    let shift = (0..2).map(|j| (exact[j].0 - untilted[j].0).abs() / exact[j].1);
    let shift = shift.fold(0.0, f64::max);
    println!("the noise moves the posterior by {shift} sds");
    assert!(shift > 0.16, "the noise does nothing: {shift}");

    let mut curator = open(p, 50);
    let mut sampler = sampler(p, estimator, rule);
    curator.set_anchor(noisy).unwrap();
    sampler.follow(curator.model().prior()).unwrap();
    let mut chains = Chains::new(&[p.centre.to_vec()], [7; 32]);
    let mut draws = [Vec::new(), Vec::new()];
    for _ in 0..length.of(p.iterations as usize) {
        sampler.step(&mut chains, &mut curator).unwrap();
        for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
            column.push(*v);
        }
    }
    for (j, (column, exact)) in draws.iter().zip(&exact).enumerate() {
        let label = format!("{estimator:?} {rule:?}, parameter {j}");
        length.assert_moments(&label, column, *exact);
    }
}

const MINIBATCH: Estimator = Estimator::Poisson {
    lambda: Lambda::Ratio(0.5),
};

// Of low degree a mixture's moments leave a good deal to the rows.
#[test]
fn mixtures_on_minibatches_of_remainders_match_quadrature_of_the_tilted_posterior() {
    matches_quadrature(&mixture(2), (MINIBATCH, Acceptance::Barker), &TEST);
}

#[test]
#[ignore = "study"]
fn mixtures_on_all_remainders_match_quadrature_of_the_tilted_posterior() {
    matches_quadrature(
        &mixture(3),
        (Estimator::FullBatch, Acceptance::Metropolis),
        &TEST,
    );
}

#[test]
fn gaussian_means_match_quadrature_of_the_tilted_posterior() {
    matches_quadrature(&gaussian(), (MINIBATCH, Acceptance::Barker), &TEST);
}

#[test]
fn bananas_match_quadrature_of_the_tilted_posterior() {
    matches_quadrature(&banana(), (Estimator::FullBatch, Acceptance::Barker), &TEST);
}

#[test]
#[ignore = "study"]
fn long_chains_match_quadrature_of_the_tilted_posterior() {
    for (problem, estimator, rule) in [
        (mixture(2), MINIBATCH, Acceptance::Barker),
        (mixture(3), Estimator::FullBatch, Acceptance::Metropolis),
        (gaussian(), MINIBATCH, Acceptance::Barker),
        (banana(), Estimator::FullBatch, Acceptance::Barker),
    ] {
        matches_quadrature(&problem, (estimator, rule), &STUDY);
    }
}

/// 90 % intervals for the mean of the posterior without noise hold it in 60 private runs:
/// at least 40 times (Pr[Bin(60, 0.9) < 40] = 4e-8), and not by being far too wide: their mean
/// squared error is over a third of what they claim (χ² of 120 terms, false alarm under 1e-9).
#[test]
fn noise_aware_intervals_cover_the_mean_without_noise() {
    let p = gaussian();
    let exact = {
        let curator = std::cell::RefCell::new(open(&p, 2));
        let log_posterior = |theta: &[f64]| {
            let mut curator = curator.borrow_mut();
            let sums = curator.exact_log_ratios(&[&p.centre], &[theta], &[50.0]);
            sums.unwrap()[0].0 + p.model.prior().log_density(theta)
        };
        quadrature(log_posterior, &p.centre, &p.scale, p.limit)
    };
    let (mut held, mut squares) = ([0; 2], 0.0);
    for seed in 0..60 {
        let mut curator = open(&p, 200 + seed);
        let noisy = curator.moments(1, Some(MomentNoise { tau: 4.0 })).unwrap();
        let sds = noisy.sds.clone();
        curator.set_anchor(noisy.clone()).unwrap();
        let anchor = MomentAnchor::new(p.model.clone(), noisy).unwrap();
        let mut sampler = sampler(&p, MINIBATCH, Acceptance::Barker);
        sampler.follow(curator.model().prior()).unwrap();
        let mut chains = Chains::new(&[p.centre.to_vec()], [seed as u8; 32]);
        let mut draws = vec![vec![Vec::new()]; 2];
        for _ in 0..20_000 {
            sampler.step(&mut chains, &mut curator).unwrap();
            for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
                column[0].push(*v);
            }
        }
        let rows = noise_aware_moments(&draws, &sds, |theta| anchor.slopes(theta)).unwrap();
        for (j, row) in rows.iter().enumerate() {
            let [low, high] = row.mean_interval;
            held[j] += i32::from((low..high).contains(&exact[j].0));
            squares += ((0.5 * (low + high) - exact[j].0) / row.mean_sd).powi(2);
        }
    }
    assert!(held.iter().all(|h| *h >= 40), "{held:?} of 60");
    assert!(
        squares / 120.0 > 1.0 / 3.0,
        "intervals are too wide: {squares}"
    );
}

/// Without noise, moments and remainders together are the log likelihood; remainders keep
/// their bound; and a bound of degree 2 is not a hundred times too wide.
#[test]
fn moments_and_remainders_make_up_the_log_likelihood() {
    for p in [
        mixture(1),
        mixture(2),
        mixture(5),
        mixture(12),
        gaussian(),
        banana(),
    ] {
        let mut plain = open(&p, 1);
        let mut rest = open(&p, 1);
        let moments = plain.moments(p.degree, None).unwrap();
        rest.set_anchor(moments.clone()).unwrap();
        let prior = rest.model().prior().clone();
        let plain_prior = p.model.prior().clone();
        let mut widest = 0.0f64;
        for i in 0..60 {
            let at = |k: usize, size: f64| size * ((i * 7 + k * 3) as f64 * 0.61).sin();
            let theta = [at(1, 2.9), at(2, 2.9)];
            let end = [
                (theta[0] + at(3, 0.7)).clamp(-3.0, 3.0),
                (theta[1] + at(4, 0.7)).clamp(-3.0, 3.0),
            ];
            let whole = plain.exact_log_ratios(&[&theta], &[&end], &[60.0]).unwrap()[0].0;
            let clip = remainder_bound(&*p.model, &moments.basis, &theta, &end).unwrap();
            let (sum, clipped) = rest.exact_log_ratios(&[&theta], &[&end], &[clip]).unwrap()[0];
            assert_eq!(
                clipped, 0,
                "degree {}: a remainder passed its bound",
                p.degree
            );
            let public =
                prior.log_density(&end) - prior.log_density(&theta) - plain_prior.log_density(&end)
                    + plain_prior.log_density(&theta);
            let rows = (p.data)().rows() as f64;
            // Grids: 2^-20 of the clip a row of either pass; f32: 1e-6 of a ratio.
            let tolerance = rows.sqrt() * (60.0 + clip) * f64::powi(2.0, -19)
                + 2e-6 * rows * p.model.tempering();
            let gap = (whole - public - sum).abs();
            assert!(
                gap < tolerance,
                "degree {}: {whole} is not {public} + {sum}, off by {gap}",
                p.degree
            );
            widest = widest.max(sum.abs() / (rows * clip));
        }
        if p.degree == 2 {
            assert!(widest > 0.01, "bounds are far too wide: {widest}");
        }
    }
}

fn private(p: &Problem, ledger: Ledger) -> Curator {
    Curator::private(
        (p.data)(),
        p.model.clone(),
        EngineChoice::Cpu,
        ledger,
        Some(4),
    )
    .unwrap()
}

#[test]
fn moments_are_charged_before_they_are_released_and_refusals_charge_nothing() {
    let (p, noise) = (mixture(5), MomentNoise { tau: 2.0 });
    let mut curator = private(&p, large());
    curator.moments(5, Some(noise)).unwrap();
    let spent = curator.ledger().unwrap().spent();
    assert!(
        (0.125 * (1.0 - 1e-9)..0.125 * 1.0001).contains(&spent),
        "{spent}"
    );

    let small = Ledger::in_memory(Budget::new(0.1, 1e-6).unwrap());
    let mut curator = private(&p, small);
    let halt = curator.moments(5, Some(noise));
    assert!(matches!(halt, Err(Halt::BudgetSpent(_))), "{halt:?}");
    for halt in [
        curator.moments(5, None),
        curator.moments(0, Some(noise)),
        curator.moments(31, Some(noise)),
        curator.moments(5, Some(MomentNoise { tau: 0.0 })),
        curator.moments(5, Some(MomentNoise { tau: f64::NAN })),
    ] {
        assert!(matches!(halt, Err(Halt::Refused(_))), "{halt:?}");
    }
    assert_eq!(curator.ledger().unwrap().spent(), 0.0);
    // Two columns have no Chebyshev moments, and a regression none at all.
    let halt = open(&gaussian(), 1).moments(2, None);
    assert!(matches!(halt, Err(Halt::Refused(_))), "{halt:?}");
    let table = synthetic::logistic(50, &[1.0], 1).unwrap();
    let model = Regression::logistic(table.features(), 3.0, Prior::normal(1, 1.0), 1.0).unwrap();
    let mut open = Curator::not_private(table, Arc::new(model), EngineChoice::Cpu, 1).unwrap();
    assert!(matches!(open.moments(1, None), Err(Halt::Refused(_))));
}

#[test]
fn moments_of_another_model_are_refused() {
    let p = mixture(3);
    let moments = open(&p, 1).moments(3, None).unwrap();
    let mut other = open(&gaussian(), 1);
    assert!(matches!(
        other.set_anchor(moments.clone()),
        Err(Halt::Refused(_))
    ));
    for damaged in [
        Moments {
            sums: vec![0.0; 2],
            ..moments.clone()
        },
        Moments {
            sums: vec![f64::NAN; 3],
            ..moments.clone()
        },
        Moments {
            sds: vec![-1.0; 3],
            ..moments.clone()
        },
        Moments {
            rows: 0.0,
            ..moments.clone()
        },
        Moments {
            basis: MomentBasis {
                bound: f64::INFINITY,
                ..moments.basis
            },
            ..moments.clone()
        },
    ] {
        assert!(matches!(
            open(&p, 1).set_anchor(damaged),
            Err(Halt::Refused(_))
        ));
    }
    // A sampler that wants moments makes no step without them.
    let mut sampler = sampler(&p, Estimator::FullBatch, Acceptance::Barker);
    let mut chains = Chains::new(&[vec![0.0; 2]], [0; 32]);
    assert!(matches!(
        sampler.step(&mut chains, &mut open(&p, 1)),
        Err(Halt::Refused(_))
    ));
}
