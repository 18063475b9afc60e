//! Anchored runs: they target exactly the posterior times the anchor's tilt, on the
//! ellipsoid; they charge what they release; and they refuse what they cannot do.
//!
//! Tolerances, false alarms and power as in `known_posteriors`.

use std::sync::Arc;

use crate::common::chains::{Length, STUDY, TEST, large, quadrature};
use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::model::{
    Anchor, Anchored, Lower, Metric, Mixture, Model, Prior, Profile, Regression, Slopes,
};
use dpmc::privacy::{
    Acceptance, AnchorNoise, Budget, Curator, Estimator, Halt, Lambda, Ledger, OpenCurator,
    Releases,
};
use dpmc::sampler::{
    Adapt, Adaptation, AnchoredProposal, AnchoredSettings, Anchoring, Chains, Decisions,
    Preconditioner, RandomWalk, Structure,
};
use dpmc::synthetic;

const AT: [f64; 2] = [0.7, -0.5];

fn data() -> Dataset {
    synthetic::logistic(120, &[1.5, -1.0], 5).unwrap()
}

fn model() -> Arc<Regression> {
    let d = data();
    Arc::new(Regression::logistic(d.features(), d.row_norm(), Prior::normal(2, 0.5), 0.7).unwrap())
}

fn metric() -> Metric {
    // Near the posterior's precision, so that u is of order one.
    let factor = Lower::new(vec![3.4, 0.0, 0.4, 3.2]).unwrap();
    let row_bound = model_norm() * factor.inverse_norm();
    Metric { factor, row_bound }
}

fn model_norm() -> f64 {
    data().row_norm()
}

fn open(seed: u64) -> OpenCurator {
    Curator::not_private(data(), model(), EngineChoice::Cpu, seed).unwrap()
}

fn anchor(noise: AnchorNoise, radius: f64) -> Anchor {
    let expansion = open(3).anchor(&AT, &metric(), noise).unwrap();
    Anchor {
        at: AT.to_vec(),
        metric: metric(),
        gradient: expansion.gradient,
        curvature: expansion.curvature,
        gradient_sd: expansion.gradient_sd,
        curvature_sd: expansion.curvature_sd,
        // Off the middle, so that the ellipsoid's centre is seen.
        centre: vec![0.3, -0.4],
        radius,
        spread: Vec::new(),
        doubts: Default::default(),
        alone: None,
    }
}

fn settings(proposal: AnchoredProposal) -> AnchoredSettings {
    AnchoredSettings {
        anchoring: Anchoring {
            location: None,
            start: AT.to_vec(),
            stages: 0,
            rows: 120,
            row_norm: model_norm(),
            unit: 0.7,
            slopes: Slopes::logistic(),
            structure: Structure::default(),
            clip: Some(100.0),
            radius: 3.0,
            split: None,
            undecided: false,
        },
        proposal,
        share: 1.0,
        refresh_after: None,
        decisions: Decisions::All,
    }
}

fn sampler(estimator: Estimator, acceptance: Acceptance, proposal: AnchoredProposal) -> RandomWalk {
    RandomWalk::new(
        model().prior().clone(),
        estimator,
        acceptance,
        None,
        1.0,
        Preconditioner::Identity,
        Adaptation::new(Adapt::None, 0.3, 0, 2),
    )
    .with_anchoring(settings(proposal))
}

/// log posterior + (noisy expansion − exact expansion), −∞ outside the ellipsoid: from
/// exact full-batch ratios, which know nothing of remainders.
fn target(noisy: Anchor) -> impl Fn(&[f64]) -> f64 {
    let exact = anchor(AnchorNoise::expansion(0.0, 0.0), noisy.radius);
    let curator = std::cell::RefCell::new(open(1));
    let prior = model().prior().clone();
    move |theta: &[f64]| {
        if !noisy.contains(theta) {
            return f64::NEG_INFINITY;
        }
        let distance = (theta[0] - AT[0]).hypot(theta[1] - AT[1]);
        let clip = (1.01 * 0.7 * model_norm() * distance).max(1e-9);
        let sum = curator
            .borrow_mut()
            .exact_log_ratios(&[&AT], &[theta], &[clip])
            .unwrap()[0]
            .0;
        sum + prior.log_density(theta) + noisy.log_density(theta) - exact.log_density(theta)
    }
}

#[test]
fn anchored_chains_match_quadrature_of_the_tilted_posterior() {
    check_chains(&TEST);
}

#[test]
#[ignore = "study"]
fn long_anchored_chains_match_quadrature_of_the_tilted_posterior() {
    check_chains(&STUDY);
}

fn check_chains(length: &Length) {
    // Noise of half a posterior sd, curvature off by a tenth: the tilt is seen.
    let noisy = anchor(AnchorNoise::expansion(0.12, 0.2), 3.0);
    let exact = quadrature(target(noisy.clone()), &AT, &[0.25, 0.25], 1e9);
    let untilted = quadrature(
        target(anchor(AnchorNoise::expansion(0.0, 0.0), 3.0)),
        &AT,
        &[0.25, 0.25],
        1e9,
    );
    let tilt = (exact[0].0 - untilted[0].0).hypot(exact[1].0 - untilted[1].0);
    println!("the noise moves the mean by {tilt}, sds are {exact:?}");
    assert!(tilt > 0.03, "the noise does nothing: {tilt}");
    let poisson = Estimator::Poisson {
        lambda: Lambda::Ratio(0.5),
    };
    let auto = |correlation| AnchoredProposal::Autoregressive { correlation };
    let walk = AnchoredProposal::RandomWalk { step: 1.5 };
    for (k, (estimator, rule, proposal)) in [
        (poisson, Acceptance::Barker, auto(0.0)),
        (poisson, Acceptance::Barker, auto(0.6)),
        (poisson, Acceptance::Barker, auto(-0.4)),
        (poisson, Acceptance::Barker, walk),
        (Estimator::FullBatch, Acceptance::Barker, auto(0.0)),
        (Estimator::FullBatch, Acceptance::Metropolis, auto(0.3)),
        (
            Estimator::FullBatch,
            Acceptance::Penalty { tau: 0.05 },
            auto(0.3),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let mut curator = open(50 + k as u64);
        let mut sampler = sampler(estimator, rule, proposal);
        sampler.set_anchor(noisy.clone()).unwrap();
        curator.set_anchor(noisy.clone()).unwrap();
        let mut chains = Chains::new(&[AT.to_vec()], [k as u8; 32]);
        sampler.start_at_anchor(&mut chains);
        let mut draws = [Vec::new(), Vec::new()];
        for _ in 0..length.of(220_000) {
            sampler.step(&mut chains, &mut curator).unwrap();
            for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
                column.push(*v);
            }
        }
        for (j, (column, exact)) in draws.iter().zip(&exact).enumerate() {
            let label = format!("{proposal:?} {estimator:?} {rule:?} parameter {j}");
            length.assert_moments(&label, column, *exact);
        }
    }
}

fn private(ledger: Ledger) -> Curator {
    Curator::private(data(), model(), EngineChoice::Cpu, ledger, Some(4)).unwrap()
}

#[test]
fn an_anchor_is_charged_before_it_is_released_and_refusals_charge_nothing() {
    let noise = AnchorNoise::expansion(2.0, 5.0);
    let mut curator = private(large());
    curator.anchor(&AT, &metric(), noise).unwrap();
    let spent = curator.ledger().unwrap().spent();
    let expected = 0.5 / 4.0 + 0.5 / 25.0;
    assert!(spent >= expected * (1.0 - 1e-9) && spent < expected * 1.0001);

    let small = Ledger::in_memory(Budget::new(0.1, 1e-6).unwrap());
    let mut curator = private(small);
    let halt = curator.anchor(&AT, &metric(), noise);
    assert!(matches!(halt, Err(Halt::BudgetSpent(_))), "{halt:?}");
    let upper = Metric {
        row_bound: f64::NAN,
        ..metric()
    };
    for halt in [
        curator.anchor(&AT, &metric(), AnchorNoise::expansion(0.0, 0.0)),
        curator.anchor(&[0.0], &metric(), noise),
        curator.anchor(&[f64::NAN, 0.0], &metric(), noise),
        curator.anchor(&AT, &upper, noise),
        curator.anchor(&AT, &Metric::identity(3, 1.0), noise),
        curator.anchor(&AT, &metric(), AnchorNoise::expansion(0.0, 5.0)),
    ] {
        assert!(matches!(halt, Err(Halt::Refused(_))), "{halt:?}");
    }
    assert_eq!(curator.ledger().unwrap().spent(), 0.0);
}

/// A profile of gradients is in numbers of rows, whatever the likelihood's tempering is, with noise
/// of √2·τ of them, for a row moves two entries by one; and it costs what every release does.
#[test]
fn a_profile_of_gradients_counts_rows_and_is_paid_for() {
    let noise = |tau| AnchorNoise {
        profile: Some(tau),
        profile_of: Profile::Gradients,
        ..AnchorNoise::default()
    };
    let exact = open(3).anchor(&AT, &metric(), noise(0.0)).unwrap();
    assert_eq!(exact.profile.iter().sum::<f64>(), 120.0);
    assert!(exact.profile.iter().all(|n| n.fract() == 0.0 && *n >= 0.0));
    // Scores of one class are above 0, of the other below.
    let above = exact.profile.iter().step_by(2).sum::<f64>();
    let events = data().as_public().labels().iter().filter(|y| **y).count();
    assert_eq!(above, events as f64);

    let mut curator = private(large());
    let noisy = curator.anchor(&AT, &metric(), noise(3.0)).unwrap();
    assert!((noisy.profile_sd / (3.0 * 2f64.sqrt()) - 1.0).abs() < 1e-6);
    let spent = curator.ledger().unwrap().spent();
    let expected = 0.5 / 9.0;
    assert!(spent >= expected * (1.0 - 1e-9) && spent < expected * 1.0001);
}

#[test]
fn models_without_a_remainder_and_anchors_outside_the_support_are_refused() {
    let table = synthetic::mixture(50, Some(3.0), 1).unwrap();
    let mixture = Arc::new(Mixture::new(2.0, 3.0, Prior::flat_box(2, 3.0), 1.0).unwrap());
    assert!(
        Anchored::new(
            mixture.clone(),
            anchor(AnchorNoise::expansion(0.0, 0.0), 3.0)
        )
        .is_err()
    );
    let mut curator = Curator::not_private(table, mixture, EngineChoice::Cpu, 1).unwrap();
    assert!(matches!(
        curator.anchor(&[0.0, 0.0], &metric(), AnchorNoise::expansion(0.0, 0.0)),
        Err(Halt::Refused(_))
    ));
    let boxed = Regression::logistic(data().features(), 3.0, Prior::flat_box(2, 0.1), 0.7).unwrap();
    assert!(
        Anchored::new(
            Arc::new(boxed),
            anchor(AnchorNoise::expansion(0.0, 0.0), 3.0)
        )
        .is_err()
    );
    // A sampler that wants an anchor makes no step without one.
    let mut sampler = sampler(
        Estimator::FullBatch,
        Acceptance::Barker,
        AnchoredProposal::RandomWalk { step: 1.0 },
    );
    let mut chains = Chains::new(&[AT.to_vec()], [0; 32]);
    let halt = sampler.step(&mut chains, &mut open(1));
    assert!(matches!(halt, Err(Halt::Refused(_))));
}

/// Data that a hyperplane separates under a flat prior: the likelihood has no mode. The run has an
/// anchor all the same, keeps to its budget, and knows that it did not settle.
#[test]
fn an_anchor_of_separated_rows_is_known_to_be_unsettled() {
    let mut set = Dataset::builder(vec!["x".into()], true, 1.0).unwrap();
    for i in 0..40_000 {
        let x = 0.5 + 0.5 * (i % 97) as f32 / 97.0;
        set.push(&[if i % 2 == 0 { x } else { -x }], Some(i % 2 == 0))
            .unwrap();
    }
    let set = set.finish().unwrap();
    let prior = Prior {
        density: dpmc::model::Density::Flat,
        ..Prior::normal(1, 1.0)
    };
    let model = Arc::new(Regression::logistic(set.features(), 1.0, prior.clone(), 1.0).unwrap());
    let mut curator = Curator::private(set, model, EngineChoice::Cpu, large(), Some(1)).unwrap();
    let anchoring = Anchoring {
        location: None,
        undecided: false,
        start: vec![0.0],
        stages: 4,
        rows: 40_000,
        row_norm: 1.0,
        unit: 1.0,
        slopes: Slopes::logistic(),
        structure: Structure::default(),
        clip: Some(2.0),
        radius: 8.0,
        split: Some(dpmc::sampler::AnchorSplit {
            refresh: 0.0,
            start: 1.0,
            gradient: 0.5,
            curvature: 0.5,
        }),
    };
    let anchor = anchoring.run(&prior, &mut curator).unwrap();
    // It went to where rows tell next to nothing, and the summary's notes start at 2.
    assert!(anchor.theta(&anchor.centre)[0] > 8.0, "{anchor:?}");
    // Its coordinates follow the curvature, which is not lost in noise therefore; draws are wide.
    let unit = anchor.metric.factor.transposed_times(&[1.0])[0];
    let stated = (anchor.spread[0] + 1.0 / anchor.curvature[0]).sqrt() / unit;
    assert!(stated > 1.0, "{stated}");
    assert!(anchor.doubts.unsettled > 2.0, "{:?}", anchor.doubts);
    let spent = curator.ledger().unwrap().spent();
    assert!((1.999..=2.0).contains(&spent), "{spent}");
}
