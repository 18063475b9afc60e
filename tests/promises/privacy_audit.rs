//! Audit: what a step releases, repeated many times on two neighbouring tables, never shows more
//! than is charged for it. Bounds are at confidence 1 − 1e-6 each, seeds are fixed. Each audit also
//! shows that it has teeth: it comes near what theory leaves it. Shares are three standard
//! deviations of the bound under those found, false alarm 1e-3 for another seed; what is planted is
//! found with power 0.9999 or more.

use crate::common::bracket::{assert_between, assert_caught};
use std::sync::Arc;

use dpmc::data::Dataset;
use dpmc::engine::{EngineChoice, EngineError};
use dpmc::model::{Model, Prior, Regression, Score};
use dpmc::privacy::audit::{
    AnchorCase, AnchorPart, AuditError, Case, RowWeights, Settings, Subject, audit, audit_anchor,
    audit_case,
};
use dpmc::privacy::{Acceptance, Curator, CuratorError, Estimator, Lambda, Moves, Releases};
use ndarray::array;

const SOUND: [Subject; 5] = [
    Subject::Barker,
    Subject::PoissonBarker,
    Subject::AnchoredBarker,
    Subject::DpPenalty,
    Subject::DpBarker,
];

fn settings(trials: u64, delta: f64, engine: EngineChoice) -> Settings {
    Settings {
        trials,
        delta,
        engine,
        confidence: 1.0 - 1e-6,
        seed: Some(40),
        ..Settings::default()
    }
}

/// For what is claimed, without runs to speak of.
fn few(settings: &Settings) -> Settings {
    Settings {
        trials: 2,
        ..*settings
    }
}

/// At δ = 0.02 what theory leaves an attacker is in events of some per cent, which few runs show
/// well; the studies look at δ = 1e-5, where events are rare.
fn short() -> Settings {
    settings(60_000, 0.02, EngineChoice::Cpu)
}

fn long() -> Settings {
    settings(300_000, 1e-5, EngineChoice::Cpu)
}

#[test]
fn sound_samplers_stay_under_their_claims_and_come_near() {
    let teeth = |subject| match subject {
        Subject::PoissonBarker | Subject::AnchoredBarker => [0.57, 0.43],
        _ => [0.64, 0.5],
    };
    check_sound(&short(), teeth, 0.52);
}

/// The correction's own tails, which no row moves, blunt the attack on dp-barker. The ledger's ε
/// holds for every order of choices, and is larger than the accountant's.
#[test]
#[ignore = "study"]
fn rare_events_of_sound_samplers_stay_under_their_claims() {
    let teeth = |subject| match subject {
        Subject::DpBarker => [0.43, 0.4],
        Subject::PoissonBarker | Subject::AnchoredBarker => [0.53, 0.43],
        _ => [0.53, 0.5],
    };
    check_sound(&long(), teeth, 0.34);
}

/// `teeth`: least share of the smaller claim, and of the ledger's; `part`: of what else is
/// released.
fn check_sound(settings: &Settings, teeth: impl Fn(Subject) -> [f64; 2], part: f64) {
    for subject in SOUND {
        let report = audit(subject, settings).unwrap();
        let [most, ledger] = teeth(subject);
        assert_between(&report, most);
        assert!(report.epsilon_lower >= ledger * report.claim, "{report:?}");
        // What else it releases: an anchor's gradient, curvature (both of long rows, units and
        // heavy rows too) and profiles (of norms and of gradients), moments.
        let parts = match subject {
            Subject::AnchoredBarker => 11,
            _ => 0,
        };
        assert_eq!(report.parts.len(), parts);
        for report in &report.parts {
            assert_between(report, part);
        }
    }
}

const ANCHORS: [AnchorCase; 4] = [
    anchor_case(AnchorPart::Gradient, 1.5, Score::Logistic),
    anchor_case(AnchorPart::Curvature, 0.7, Score::Logistic),
    anchor_case(AnchorPart::Gradient, 2.0, Score::Poisson),
    anchor_case(AnchorPart::Moments, 1.0, Score::Logistic),
];

const fn anchor_case(part: AnchorPart, tau: f64, score: Score) -> AnchorCase {
    AnchorCase { part, tau, score }
}

#[test]
fn an_anchor_never_exceeds_its_gaussian_trade_off() {
    for (case, steps) in ANCHORS.iter().zip([4, 1, 1, 3]) {
        check_anchor(case, steps, &short(), 0.64);
    }
}

#[test]
#[ignore = "study"]
fn no_rare_event_of_an_anchor_exceeds_its_gaussian_trade_off() {
    for (case, steps) in ANCHORS.iter().zip([4, 1, 1, 3]) {
        let teeth = if case.tau == 2.0 { 0.34 } else { 0.4 };
        check_anchor(case, steps, &long(), teeth);
    }
    for (part, score) in [
        (AnchorPart::Gradient, Score::Linear),
        (AnchorPart::Curvature, Score::Linear),
        (AnchorPart::Curvature, Score::Poisson),
    ] {
        check_anchor(&anchor_case(part, 2.0, score), 1, &long(), 0.34);
    }
}

fn check_anchor(case: &AnchorCase, steps: u32, settings: &Settings, teeth: f64) {
    let settings = Settings {
        steps: Some(steps),
        ..*settings
    };
    assert_between(&audit_anchor(case, &settings).unwrap(), teeth);
}

/// Noise of half its standard deviation, in any part.
#[test]
#[ignore = "study"]
fn an_anchor_with_half_its_noise_would_be_caught() {
    let settings = short();
    for part in AnchorPart::ALL {
        let honest = audit_anchor(&AnchorCase::of(part), &few(&settings)).unwrap();
        let half = AnchorCase {
            part,
            tau: 0.5 * AnchorCase::of(part).tau,
            ..AnchorCase::of(part)
        };
        let faulty = audit_anchor(&half, &settings).unwrap();
        assert_caught(&faulty, honest.claim.max(honest.accountant));
    }
}

/// Steps without a ρ are charged for multiplicities and variances that hardly ever come
/// together, and for more than a bit of what is noisy: of the ε that bits show an audit of this
/// size resolves about half (docs/proofs/guarantee.md).
#[test]
fn samplers_of_one_order_stay_under_their_claims() {
    for (subject, trials, delta, teeth) in [
        (Subject::DpFastMh, 40_000, 1e-5, 0.1),
        (Subject::DpBarkerSubsampled, 20_000, 0.02, 0.2),
    ] {
        let report = audit(subject, &settings(trials, delta, EngineChoice::Cpu)).unwrap();
        assert_between(&report, teeth);
    }
}

/// Charges of small multiplicities add up less loosely the more steps there are, and the less
/// each costs.
#[test]
#[ignore = "study"]
fn samplers_of_one_order_come_nearer_in_longer_runs() {
    let case = Case {
        acceptance: Acceptance::Penalty { tau: 8.0 },
        public: vec![1.163],
        steps: 64,
        ..Case::of(Subject::DpFastMh).unwrap()
    };
    let settings = settings(300_000, 1e-5, EngineChoice::Cpu);
    let report = audit_case(&case, Subject::DpFastMh, &settings).unwrap();
    assert_between(&report, 0.19);
    let report = audit(Subject::DpBarkerSubsampled, &settings).unwrap();
    assert_between(&report, 0.22);
    for (case, teeth) in Case::weighted(Subject::DpFastMh)
        .unwrap()
        .iter()
        .zip([0.13, 0.06])
    {
        let report = audit_case(case, Subject::DpFastMh, &settings).unwrap();
        assert_between(&report, teeth);
    }
}

/// Rows with public bounds of their own: the widest is held against the charge, a narrow one
/// against what w c costs, a quarter of it in η.
#[test]
fn rows_with_bounds_of_their_own_stay_under_their_claims_and_come_near() {
    for (subject, trials, teeth) in [
        (Subject::PoissonBarker, 30_000, [0.46, 0.46]),
        (Subject::DpFastMh, 20_000, [0.07, 0.0]),
    ] {
        for (case, teeth) in Case::weighted(subject).unwrap().iter().zip(teeth) {
            let report =
                audit_case(case, subject, &settings(trials, 0.02, EngineChoice::Cpu)).unwrap();
            assert_eq!(report.row_bound, case.weights.map(|w| w.differing));
            assert_between(&report, teeth);
        }
    }
}

/// What would be seen if rows were drawn uniformly but weighed by their bounds: that is, to the
/// letter of both, the minibatch without bounds at clip cΣw_i/N and the same Λ, in which a
/// narrow row's ratio counts in full. And if a row were longer than its bound and not clipped.
#[test]
fn a_broken_promise_to_a_narrow_row_would_be_caught() {
    let subject = Subject::PoissonBarker;
    let [_, narrow] = Case::weighted(subject).unwrap();
    let settings = settings(30_000, 0.02, EngineChoice::Cpu);
    let honest = audit_case(&narrow, subject, &few(&settings)).unwrap();
    let weights = narrow.weights.unwrap();
    let rows = narrow.rows as f64;
    let mean = (weights.differing + (rows - 1.0) * weights.others) / rows;
    let uniform = Case {
        weights: None,
        clip_bound: narrow.clip_bound * mean,
        ..narrow.clone()
    };
    let longer = Case {
        weights: Some(RowWeights {
            differing: 2.0 * weights.differing,
            ..weights
        }),
        ..narrow
    };
    for faulty in [uniform, longer] {
        let report = audit_case(&faulty, subject, &settings).unwrap();
        assert_caught(&report, honest.claim.min(honest.accountant));
    }
}

#[test]
#[ignore = "study"]
fn sound_samplers_stay_under_their_claims_on_the_gpu() {
    for subject in SOUND {
        match audit(subject, &settings(10_000, 0.02, EngineChoice::Gpu)) {
            Ok(report) => {
                assert_eq!(report.engine, "gpu");
                assert_between(&report, 0.3);
            }
            Err(AuditError::Curator(CuratorError::Engine(EngineError::NoAdapter { .. })))
                if std::env::var_os("DPMC_REQUIRE_GPU").is_none() =>
            {
                eprintln!("skipped: no GPU adapter (DPMC_REQUIRE_GPU=1 makes this a failure)");
                return;
            }
            Err(e) => panic!("{e}"),
        }
    }
}

/// One bit shows all of η where it is rare, half of it where it is not.
#[test]
fn barker_never_exceeds_its_bounded_range() {
    for (h, teeth) in [(0.0, 0.46), (-1.0, 0.65), (2.0, 0.75), (-3.0, 0.83)] {
        let case = Case {
            public: vec![h],
            steps: 1,
            ..Case::of(Subject::Barker).unwrap()
        };
        let settings = settings(300_000, 0.0, EngineChoice::Cpu);
        assert_between(
            &audit_case(&case, Subject::Barker, &settings).unwrap(),
            teeth,
        );
    }
}

#[test]
fn poisson_barker_never_exceeds_its_bounded_range() {
    // The bound is nearly attained only for small c and h far out; `teeth` is the share
    // that c = 0.5 reaches at least.
    for (ratio, teeth) in [(1.0, 0.65), (0.3, 0.46), (4.0, 0.65)] {
        let case = Case {
            anchored: false,
            weights: None,
            rows: 2,
            clip_bound: 0.5,
            estimator: Estimator::Poisson {
                lambda: Lambda::Ratio(ratio),
            },
            acceptance: Acceptance::Barker,
            public: vec![2.0, 3.0],
            steps: 1,
        };
        let settings = settings(100_000, 0.0, EngineChoice::Cpu);
        let report = audit_case(&case, Subject::PoissonBarker, &settings).unwrap();
        assert_between(&report, teeth);
    }
}

#[test]
fn penalty_never_exceeds_its_gaussian_trade_off() {
    for (tau, clip_bound) in [(0.7, 16.0), (2.0, 16.0), (1.0, 0.5)] {
        let sigma = 2.0 * clip_bound * tau;
        let case = Case {
            clip_bound,
            acceptance: Acceptance::Penalty { tau },
            public: [2.0, -2.0]
                .map(|z| 0.5 * sigma * sigma - sigma * z)
                .to_vec(),
            ..Case::of(Subject::DpPenalty).unwrap()
        };
        let settings = settings(300_000, 1e-5, EngineChoice::Cpu);
        let report = audit_case(&case, Subject::DpPenalty, &settings).unwrap();
        // A short move's bit is far from a threshold on the noisy sum.
        assert_between(&report, if clip_bound < 1.0 { 0.2 } else { 0.4 });
    }
}

/// What would be seen if a sensitivity, or the noise for it, lacked a factor of two. The
/// correction of dp-barker hides that much; its noise is tested where it is drawn.
#[test]
fn a_missing_factor_of_two_would_be_caught() {
    for subject in SOUND {
        if subject == Subject::DpBarker {
            continue;
        }
        let mut case = Case::of(subject).unwrap();
        let settings = match subject {
            Subject::DpPenalty => short(),
            _ => settings(100_000, 0.002, EngineChoice::Cpu),
        };
        let honest = audit_case(&case, subject, &few(&settings)).unwrap();
        if subject == Subject::DpPenalty {
            case.acceptance = Acceptance::Penalty { tau: 0.5 };
            case.public = [2.0, 2.5, 3.0].map(|z| 128.0 - 16.0 * z).to_vec();
        } else {
            case.clip_bound *= 2.0;
        }
        let report = audit_case(&case, subject, &settings).unwrap();
        assert_caught(&report, honest.claim.min(honest.accountant));
        assert_between(&report, 0.4);
    }
}

/// Two rows: one silent (x = 0), one that favours the move.
fn table() -> Dataset {
    let mut set = Dataset::builder(vec!["x".into()], true, 4.0).unwrap();
    set.push(&[0.0], Some(true)).unwrap();
    set.push(&[4.0], Some(true)).unwrap();
    set.finish().unwrap()
}

#[test]
fn the_charge_is_made_before_the_answer_and_stops_it() {
    let data = table();
    let model: Arc<dyn Model> =
        Arc::new(Regression::logistic(data.features(), 4.0, Prior::normal(1, 1.0), 1.0).unwrap());
    let budget = dpmc::privacy::Budget::new(0.5, 1e-6).unwrap();
    let ledger = dpmc::privacy::Ledger::in_memory(budget);
    let mut curator = Curator::private(data, model, EngineChoice::Cpu, ledger, Some(1)).unwrap();
    let (theta, proposal) = (array![[0.0]], array![[1.0]]);
    let mut steps = 0;
    loop {
        let moves = Moves {
            thetas: theta.view(),
            proposals: proposal.view(),
            public: &[0.0],
            clip_bounds: Some(&[0.01]),
        };
        let mut accepted = [false];
        match curator.decide(
            &moves,
            Estimator::FullBatch,
            Acceptance::Barker,
            &mut accepted,
        ) {
            Ok(()) => steps += 1,
            Err(dpmc::privacy::Halt::BudgetSpent(_)) => break,
            Err(e) => panic!("{e}"),
        }
        assert!(steps < 1_000_000);
    }
    let ledger = curator.ledger().unwrap();
    // ρ = η²/8 with η = 0.02: the count is what the budget affords, to the grid's 0.3 %.
    let expected = budget.rho() / (0.02f64.powi(2) / 8.0);
    assert!(
        f64::from(steps) <= expected && f64::from(steps) > 0.99 * expected,
        "{steps} {expected}"
    );
    assert!(ledger.epsilon_spent() <= 0.5);
}
