//! `dp-fast-mh` and `dp-barker-subsampled`: reversible where the paper's are not, refused before
//! anything is charged where no theorem covers them. Statistical bounds are 6 standard errors
//! (2e-9), seeds fixed.

use std::sync::Arc;

use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::model::{Model, Prior, Regression};
use dpmc::privacy::{
    Acceptance, Budget, Curator, Estimator, FastMhSettings, Halt, Lambda, Ledger, Measure, Moves,
    OpenCurator, Releases,
};
use dpmc::sampler::{
    Adapt, Adaptation, Chains, ClipNorm, ClipRule, FastMh, Preconditioner, RandomWalk,
};
use ndarray::Array2;

fn data(rows: &[(f32, bool)]) -> Dataset {
    let mut set = Dataset::builder(vec!["x".into()], true, 1.0).unwrap();
    for &(x, y) in rows {
        set.push(&[x], Some(y)).unwrap();
    }
    set.finish().unwrap()
}

fn model(data: &Dataset) -> Arc<dyn Model> {
    Arc::new(Regression::logistic(data.features(), 1.0, Prior::flat_box(1, 50.0), 1.0).unwrap())
}

fn open(rows: &[(f32, bool)], seed: u64) -> OpenCurator {
    let data = data(rows);
    let model = model(&data);
    Curator::not_private(data, model, EngineChoice::Cpu, seed).unwrap()
}

/// How many of n moves from `a` to `b` with public part h are accepted.
fn accepted(
    curator: &mut dyn Releases,
    (a, b): (f64, f64),
    h: f64,
    clip: f64,
    rule: (Estimator, Acceptance),
    n: usize,
) -> f64 {
    let (thetas, proposals) = (Array2::from_elem((n, 1), a), Array2::from_elem((n, 1), b));
    let mut bits = vec![false; n];
    let moves = Moves {
        thetas: thetas.view(),
        proposals: proposals.view(),
        public: &vec![h; n],
        clip_bounds: Some(&vec![clip; n]),
    };
    curator.decide(&moves, rule.0, rule.1, &mut bits).unwrap();
    bits.iter().filter(|b| **b).count() as f64
}

/// The sound form on both sides of its cap, with and without noise: the flows agree. Each of
/// 400,000 moves a side; their ratio is known to 0.8 %.
#[test]
fn the_sound_form_is_reversible_in_every_branch() {
    let rows: Vec<(f32, bool)> = (0..40)
        .map(|i| (f32::from(u8::from(i < 6)), true))
        .collect();
    let (length, clip) = (0.4f64, 0.4);
    let odds = (2.0 / (1.0 + (-length).exp())).powi(6);
    // Λ = 40c = 16, so the rate is 18.
    let cases = [(30.0, 1e3), (30.0, 0.5), (10.0, 1e3), (10.0, 0.5)];
    let mut seen = Vec::new();
    for (batch_cap, epsilon) in cases {
        let settings = FastMhSettings {
            lambda: 2.0,
            batch_cap,
            epsilon,
            delta: 1e-5,
        };
        let rule = FastMh {
            settings,
            population: 40.into(),
        }
        .rule(clip);
        // Noise of moderate size: the paper's would stop nearly every move of so few rows.
        let rule = match rule {
            (e, Acceptance::Penalty { .. }) => (e, Acceptance::Penalty { tau: 0.3 }),
            other => other,
        };
        assert!(!seen.contains(&rule));
        seen.push(rule);
        let mut curator = open(&rows, 32);
        let n = 400_000;
        let forward = accepted(&mut curator, (0.0, length), 0.0, clip, rule, n);
        let back = accepted(&mut curator, (length, 0.0), 0.0, clip, rule, n);
        let flow = odds * back / forward;
        let error = (1.0 / forward + 1.0 / back).sqrt();
        assert!((flow - 1.0).abs() < 6.0 * error, "{rule:?}: {flow}");
        assert!(error < 0.008, "{rule:?}: {error}");
    }
}

/// Where the published form adds no noise and never rejects, the sound form rejects half.
#[test]
fn moves_without_noise_are_rejected_on_neighbours_alike() {
    let mut rows = vec![(1e-6, true); 1000];
    let neighbour = {
        let mut rows = rows.clone();
        rows[0] = (1.0, false);
        rows
    };
    rows[0].0 = 2e-6;
    let settings = FastMhSettings {
        lambda: 50.0,
        batch_cap: 1.0,
        epsilon: 0.05,
        delta: 1e-5,
    };
    let sound = FastMh {
        settings,
        population: 1000.into(),
    }
    .rule(0.02);
    assert_eq!(sound, (Estimator::FullBatch, Acceptance::Barker));
    let n = 20_000;
    for rows in [&rows, &neighbour] {
        let moves = accepted(&mut open(rows, 33), (0.0, 0.02), 0.0, 0.02, sound, n);
        assert!((moves - 0.5 * n as f64).abs() < 0.01 * n as f64, "{moves}");
    }
}

fn private(measure: Measure, rows: usize) -> Curator {
    let data = data(&vec![(0.5, true); rows]);
    let model = model(&data);
    let ledger = Ledger::counting(Budget::new(20.0, 0.1).unwrap(), measure);
    Curator::private(data, model, EngineChoice::Cpu, ledger, Some(1)).unwrap()
}

/// Why no theorem covers a move is said before anything is charged.
#[test]
fn what_no_theorem_covers_is_refused_before_anything_is_charged() {
    let batch = |batch| Estimator::FixedBatch { batch };
    let test = |variance| Acceptance::NoisyBarker { variance };
    let poisson = |lambda| Estimator::Poisson {
        lambda: Lambda::Fixed(lambda),
    };
    let penalty = |tau| Acceptance::Penalty { tau };
    let at = |order| Measure::Renyi { order };
    // √b/N = 0.1 at b = 100, N = 100.
    for (measure, estimator, rule, clip, says) in [
        (
            Measure::Zcdp,
            batch(100),
            test(2.0),
            0.09,
            "'order' in [privacy]",
        ),
        (at(6.0), batch(100), test(2.0), 0.101, "sqrt(b)/N"),
        (at(6.0), batch(10), test(2.0), 0.01, "more than 10 rows"),
        (at(6.0), batch(101), test(2.0), 0.01, "at most 100"),
        (at(6.0), batch(100), test(1.9), 0.09, "C = 2 alone"),
        (at(20.0), batch(100), test(2.0), 0.09, "batch/5 = 20"),
        (
            at(6.0),
            batch(100),
            Acceptance::Barker,
            0.09,
            "batch of fixed size",
        ),
        (
            Measure::Zcdp,
            poisson(5.0),
            penalty(5.0),
            0.02,
            "'order' in [privacy]",
        ),
        (
            at(6.0),
            poisson(60.0),
            penalty(5.0),
            0.02,
            "half of the rows",
        ),
        (at(6.0), poisson(5.0), penalty(0.01), 0.02, "sigma/W"),
        (
            at(6.0),
            poisson(5.0),
            test(2.0),
            0.02,
            "Poisson minibatches",
        ),
    ] {
        let mut curator = private(measure, 100);
        let (theta, proposal) = (Array2::zeros((1, 1)), Array2::from_elem((1, 1), 0.01));
        let moves = Moves {
            thetas: theta.view(),
            proposals: proposal.view(),
            public: &[0.0],
            clip_bounds: Some(&[clip]),
        };
        match curator.decide(&moves, estimator, rule, &mut [false]) {
            Err(Halt::Refused(what)) => assert!(what.contains(says), "{says}: {what}"),
            other => panic!("{says}: {other:?}"),
        }
        let ledger = curator.ledger().unwrap();
        assert_eq!((ledger.spent(), ledger.events().len()), (0.0, 0), "{says}");
    }
}

/// A private dp-fast-mh run charges each branch its own event, and no chain twice.
#[test]
fn every_branch_is_charged_its_own_event() {
    let settings = FastMhSettings {
        lambda: 2.0,
        batch_cap: 20.0,
        epsilon: 0.5,
        delta: 1e-5,
    };
    let clip = ClipRule {
        rate: 1.0,
        norm: ClipNorm::Euclidean,
    };
    let mut walk = RandomWalk::new(
        Prior::flat_box(1, 50.0),
        Estimator::FullBatch,
        Acceptance::Barker,
        Some(clip),
        0.2,
        Preconditioner::Identity,
        Adaptation::new(Adapt::None, 0.2, 0, 1),
    );
    walk.fast_mh = Some(FastMh {
        settings,
        population: 100.into(),
    });
    assert!(!walk.has_rho());
    let mut curator = private(Measure::Renyi { order: 2.5 }, 100);
    let mut chains = Chains::new(&vec![vec![0.0]; 400], [3; 32]);
    let before = chains.thetas.clone();
    let info = walk.step(&mut chains, &mut curator).unwrap();
    let moved = info
        .accepted
        .iter()
        .zip(before.rows())
        .zip(chains.thetas.rows());
    assert!(moved.into_iter().all(|((&a, old), new)| a == (old != new)));
    let events = curator.ledger().unwrap().events();
    let total: u64 = events.iter().map(|(_, n)| n).sum();
    assert_eq!(total, 400, "{events:?}");
    for kind in [
        "poisson_barker",
        "bounded_range",
        "fast_mh_noisy",
        "discrete_gaussian",
    ] {
        assert!(events.iter().any(|(e, _)| e.kind() == kind), "{kind}");
    }
}
