//! Audit: what a step releases, repeated many times on two neighbouring tables, never
//! shows more than is charged for it. (The curator is opened without a ledger, for no
//! budget pays for so many repetitions; engine, mechanism and coins are the private ones.) Thresholds are 6 standard errors (2e-9 a comparison).
//! Each audit also shows that it has teeth: the worst case comes near its bound.

use std::sync::Arc;

use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::model::{Logistic, Model, Prior};
use dpmc::privacy::{Acceptance, Curator, Estimator, Lambda, Moves, Releases};
use ndarray::array;

/// Two rows: one silent (x = 0), one that favours the move (r = +c) or opposes it (−c).
fn table(favours: bool) -> Dataset {
    let mut set = Dataset::builder(vec!["x".into()], true, 4.0).unwrap();
    set.push(&[0.0], Some(true)).unwrap();
    set.push(&[4.0], Some(favours)).unwrap();
    set.finish().unwrap()
}

/// Share of accepted moves θ = 0 → 1 with clip c and public part h.
fn acceptance(favours: bool, clip: f64, h: f64, e: Estimator, a: Acceptance, trials: u32) -> f64 {
    let data = table(favours);
    let model: Arc<dyn Model> =
        Arc::new(Logistic::new(data.features(), 4.0, Prior::normal(1, 1.0), 1.0).unwrap());
    let seed = u64::from(favours) + 40;
    let mut curator = Curator::not_private(data, model, EngineChoice::Cpu, seed).unwrap();
    let (theta, proposal) = (array![[0.0]], array![[1.0]]);
    let moves = Moves {
        thetas: theta.view(),
        proposals: proposal.view(),
        public: &[h],
        clip_bounds: Some(&[clip]),
    };
    let mut hits = 0u32;
    for _ in 0..trials {
        let mut accepted = [false];
        curator.decide(&moves, e, a, &mut accepted).unwrap();
        hits += u32::from(accepted[0]);
    }
    f64::from(hits) / f64::from(trials)
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

/// Measured shift of the logit between neighbours and its standard error.
fn shift(clip: f64, h: f64, e: Estimator, trials: u32) -> (f64, f64) {
    let p = acceptance(true, clip, h, e, Acceptance::Barker, trials);
    let q = acceptance(false, clip, h, e, Acceptance::Barker, trials);
    let variance = |p: f64| 1.0 / (f64::from(trials) * p * (1.0 - p));
    (logit(p) - logit(q), (variance(p) + variance(q)).sqrt())
}

#[test]
fn barker_never_exceeds_its_bounded_range() {
    // The row's ratios are log σ(4) − log σ(0) = 0.67 and −3.3: both beyond the clip.
    for h in [0.0, -1.0, 2.0] {
        let (shift, error) = shift(0.5, h, Estimator::FullBatch, 400_000);
        assert!(shift < 1.0 + 6.0 * error, "h = {h}: {shift}");
        assert!(
            shift > 1.0 - 6.0 * error,
            "h = {h}: the worst case is attained, {shift}"
        );
    }
}

#[test]
fn poisson_barker_never_exceeds_its_bounded_range() {
    // The bound is nearly attained only for small c; `teeth` is the share that this case
    // with c = 0.5 reaches at least.
    for (ratio, h, teeth) in [
        (1.0, 0.0, 0.5),
        (1.0, 3.0, 0.5),
        (0.3, 2.0, 0.4),
        (4.0, 0.0, 0.7),
    ] {
        let e = Estimator::Poisson {
            lambda: Lambda::Ratio(ratio),
        };
        let eta = 0.5 * (2.0 + 1.0 / ratio);
        let (shift, error) = shift(0.5, h, e, 400_000);
        assert!(
            shift < eta + 6.0 * error,
            "λ/Λ = {ratio}, h = {h}: {shift} > {eta}"
        );
        assert!(
            shift > teeth * eta,
            "λ/Λ = {ratio}, h = {h}: {shift} is far from {eta}"
        );
    }
}

#[test]
fn penalty_never_exceeds_its_gaussian_trade_off() {
    use statrs::distribution::{ContinuousCDF, Normal};
    let normal = Normal::new(0.0, 1.0).unwrap();
    let trials = 300_000;
    for (tau, h) in [(1.0, 0.0), (2.0, 0.5), (0.7, 1.0)] {
        let rule = Acceptance::Penalty { tau };
        let p = acceptance(true, 0.5, h, Estimator::FullBatch, rule, trials);
        let q = acceptance(false, 0.5, h, Estimator::FullBatch, rule, trials);
        // A Gaussian mechanism with Δ/σ = 1/τ: p ≤ Φ(Φ⁻¹(q) + 1/τ).
        let (zp, zq) = (normal.inverse_cdf(p), normal.inverse_cdf(q));
        let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let error = |p: f64, z: f64| (p * (1.0 - p) / f64::from(trials)).sqrt() / density(z);
        let total = error(p, zp).hypot(error(q, zq));
        assert!(zp - zq < 1.0 / tau + 6.0 * total, "τ = {tau}: {}", zp - zq);
        assert!(zp - zq > 0.5 / tau, "τ = {tau}: {} has no teeth", zp - zq);
    }
}

/// A row beyond every bound, or a NaN on its way through the arithmetic, moves a sum by no
/// more than the charged sensitivity.
#[test]
fn the_charge_is_made_before_the_answer_and_stops_it() {
    let data = table(true);
    let model: Arc<dyn Model> =
        Arc::new(Logistic::new(data.features(), 4.0, Prior::normal(1, 1.0), 1.0).unwrap());
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
