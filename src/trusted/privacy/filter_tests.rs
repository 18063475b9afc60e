//! The ledger's filter, on ρ and at one Rényi order: its limit, its prices and its file.

use proptest::prelude::*;

use super::accountant::Budget;
use super::accountant::EventKey;
use super::accountant::{Measure, best_order};
use super::accountant::{Question, Sequence, account_without_losses};
use super::charge_error::ChargeError;
use super::event::Neighbours;
use super::ledger::Ledger;
use super::ledger_error::LedgerFileError;

fn budget() -> Budget {
    Budget::new(4.0, 1e-6).unwrap()
}

/// One event of every kind.
fn keys() -> [EventKey; 5] {
    [
        EventKey::bounded_range(0.02).unwrap(),
        EventKey::discrete_gaussian(1.0, 60.0).unwrap(),
        EventKey::fast_mh_noisy(1e-3, 1.0, 10.0).unwrap(),
        EventKey::heikkila(1000, 1_000_000).unwrap(),
        EventKey::poisson_barker(0.008, 1.0).unwrap(),
    ]
}

fn spend(ledger: &mut Ledger, keys: &[EventKey]) -> u64 {
    let mut charged = 0;
    loop {
        let key = keys[charged as usize % keys.len()];
        match ledger.charge(&[(key, 1)], 0.0) {
            Ok(()) => charged += 1,
            Err(ChargeError::Spent(_)) => return charged,
            Err(e) => panic!("{e:?}"),
        }
    }
}

/// Whatever the mixture of events, nothing beyond the limit is charged; and the limit is
/// used: what is left is less than one event.
#[test]
fn the_filter_is_never_over_its_budget_and_uses_it() {
    let keys = keys();
    for order in [2.0, 6.0, 12.0, 21.5] {
        let measure = Measure::renyi(order).unwrap();
        for mixture in [&keys[..], &keys[..1], &keys[1..2], &keys[2..3], &keys[3..]] {
            let mut ledger = Ledger::counting(budget(), measure);
            let steps = spend(&mut ledger, mixture);
            let epsilon = ledger.epsilon_spent();
            if measure.limit(budget()) == 0.0 {
                assert_eq!((steps, order), (0, 2.0), "the conversion alone costs more");
                continue;
            }
            assert!(steps > 10, "{order} {mixture:?}: {steps}");
            assert!(epsilon <= 4.0 && ledger.spent() <= ledger.limit());
            let (spent, events) = (ledger.spent(), ledger.events());
            let dearest = mixture
                .iter()
                .map(|&key| measure.price(key, budget()).unwrap().cost.nats())
                .fold(0.0, f64::max);
            let by_coins = mixture.contains(&keys[2]);
            assert!(
                by_coins || ledger.limit() - spent < dearest,
                "{order} {mixture:?}"
            );
            assert!(ledger.charge(&[(keys[0], 1 << 40)], 0.0).is_err());
            assert_eq!((spent, events), (ledger.spent(), ledger.events()));
        }
    }
}

/// ε of what was spent is the accountant's at that order: equal where its best order is the
/// ledger's (no cut), and never under its best.
#[test]
fn epsilon_spent_is_the_accountants_number() {
    let [eta, gauss, _, test, _] = keys();
    for key in [eta, gauss, test] {
        let order = best_order(&[key], budget());
        let mut ledger = Ledger::counting(budget(), Measure::Renyi { order });
        let price = ledger.measure().price(key, budget()).unwrap();
        let count = (0.999 * ledger.limit() / price.cost.nats()) as u64;
        ledger.charge(&[(key, count)], 0.0).unwrap();
        let sequence = Sequence::new(Neighbours::Substitution, ledger.events()).unwrap();
        let delta = budget().conversion_delta();
        let account = account_without_losses(&sequence, Question::Epsilon { delta });
        let renyi = account
            .accountants
            .iter()
            .find(|a| a.method == "Rényi")
            .unwrap();
        let ours = ledger.epsilon_spent();
        assert!(ours >= renyi.upper * (1.0 - 1e-9), "{ours} {renyi:?}");
        // The orders to choose from are a grid.
        assert!(ours <= renyi.upper * 1.01, "{ours} {renyi:?}");
    }
}

/// The cut's tails are part of the charge, and they alone can end a run.
#[test]
fn multiplicities_beyond_the_cut_are_paid_from_delta() {
    let key = EventKey::fast_mh_noisy(0.2, 1.0, 30.0).unwrap();
    let measure = Measure::renyi(12.0).unwrap();
    let price = measure.price(key, budget()).unwrap();
    let steps = measure.limit(budget()) / price.cost.nats();
    assert!(price.tail > 0.0 && price.tail * steps <= 0.5 * budget().coin_delta());
    let mut ledger = Ledger::counting(budget(), measure);
    // All of the coins' δ but for one tail is gone already.
    let left = 1.5 * price.tail;
    ledger.charge(&[], budget().coin_delta() - left).unwrap();
    assert!(ledger.charge(&[(key, 1)], 0.0).is_ok());
    assert!(ledger.charge(&[(key, 1)], 0.0).is_err());
}

#[test]
fn what_the_measure_cannot_count_is_refused_before_anything_is_charged() {
    let [eta, _, noisy, test, _] = keys();
    for (measure, key, says) in [
        (Measure::Zcdp, noisy, "a ledger of its own"),
        (Measure::Zcdp, test, "a ledger of its own"),
        (Measure::Renyi { order: 250.0 }, test, "batch/5 = 200"),
        (Measure::Renyi { order: 90_000.0 }, noisy, "smaller 'order'"),
    ] {
        let mut ledger = Ledger::counting(budget(), measure);
        match ledger.charge(&[(eta, 1), (key, 1)], 0.0) {
            Err(ChargeError::Unpriced(what)) => assert!(what.contains(says), "{what}"),
            other => panic!("{measure:?}: {other:?}"),
        }
        assert_eq!((ledger.spent(), ledger.events().len()), (0.0, 0));
    }
    for order in [1.0, 0.5, -3.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(Measure::renyi(order).is_err(), "{order}");
    }
}

#[test]
fn a_file_keeps_its_measure_and_refuses_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.json");
    let measure = Measure::renyi(12.0).unwrap();
    let open = |measure| Ledger::open(&path, "people", 1_000_000, budget(), measure);
    let mut ledger = open(measure).unwrap();
    for key in keys() {
        ledger.charge(&[(key, 5)], 0.0).unwrap();
    }
    ledger.settle().unwrap();
    let (spent, paid) = (ledger.spent(), ledger.paid_run());
    drop(ledger);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("divergence_spent") && !text.contains("rho_spent"));
    for other in [Measure::Zcdp, Measure::Renyi { order: 12.5 }] {
        match open(other).map(|_| ()) {
            Err(e @ LedgerFileError::OtherMeasure { .. }) => {
                let message = e.to_string();
                assert!(
                    message.contains("l.json") && message.contains("order = 12"),
                    "{message}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let mut again = open(measure).unwrap();
    assert_eq!(again.spent(), spent);
    let json = serde_json::to_string(&paid).unwrap();
    again
        .accept(&serde_json::from_str(&json).unwrap(), 1)
        .unwrap();
    assert_eq!(again.spent_of_run(), spent);
    assert_eq!(again.events().len(), 5);
}

/// At K = 1: 0.5365 c² in a ledger of ρ, little more in one of Gaussian DP where much is left, and
/// at an order α times that, or η = 2.5c if that is less.
#[test]
fn minibatch_decisions_are_priced_by_their_flow() {
    let price = |measure: Measure, clip: f64| {
        let key = EventKey::poisson_barker(clip, 1.0).unwrap();
        measure.price(key, budget()).unwrap().cost.nats()
    };
    for clip in [1e-6, 0.01] {
        let rho = price(Measure::Zcdp, clip);
        let exact = 0.5365 * clip * clip;
        assert!(rho >= exact && rho < 1.006 * exact, "{clip}: {rho}");
        let gaussian = price(Measure::Gaussian, clip);
        let reserve = Measure::Gaussian.reserve(budget());
        let more = 1.0 / (1.0 - rho / reserve);
        assert!(
            (gaussian / (rho * more) - 1.0).abs() < 1e-9,
            "{clip}: {gaussian}"
        );
        for order in [1.5, 8.0] {
            let at = price(Measure::Renyi { order }, clip);
            assert!((at / (order * rho) - 1.0).abs() < 1e-9, "{clip}: {at}");
        }
        let most = price(Measure::Renyi { order: 1e5 }, 0.01);
        assert!(most < 0.02505 && most > 0.0249, "{most}");
    }
    // One that is large beside what is left costs π/2 of η²/8 there.
    let alone = std::f64::consts::FRAC_PI_2 * 2.5f64.powi(2) / 8.0;
    let large = price(Measure::Gaussian, 1.0);
    assert!(large >= alone && large < 1.006 * alone, "{large}");
}

fn bits(eta: f64) -> EventKey {
    EventKey::bounded_range(eta).unwrap()
}

#[test]
fn the_filter_never_exceeds_its_budget_and_refusing_changes_nothing() {
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let mut ledger = Ledger::in_memory(budget);
    let mut steps = 0u64;
    while ledger.charge(&[(bits(0.05), 1)], 0.0).is_ok() {
        steps += 1;
    }
    assert!(steps > 10);
    let (spent, events) = (ledger.spent(), ledger.events());
    assert!(ledger.charge(&[(bits(0.05), 1)], 0.0).is_err());
    assert_eq!((spent, events), (ledger.spent(), ledger.events()));
    assert!(ledger.epsilon_spent() <= 1.0);
    // A cheaper step may still fit.
    assert!(ledger.charge(&[(bits(1e-6), 1)], 0.0).is_ok());
}

#[test]
fn coins_have_their_own_budget() {
    let mut ledger = Ledger::in_memory(Budget::new(1.0, 1e-6).unwrap());
    assert!(ledger.charge(&[(bits(1e-4), 1)], 2e-9).is_err());
    assert!(ledger.charge(&[(bits(1e-4), 1)], 1e-12).is_ok());
}

proptest! {
    #[test]
    fn composition_is_the_sum_of_counts(etas in proptest::collection::vec(1e-4f64..1e-2, 1..20)) {
        let budget = Budget::new(10.0, 1e-6).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let (mut one, mut all) = (Ledger::in_memory(budget), Ledger::in_memory(budget));
        let keys: Vec<(EventKey, u64)> = etas.iter().map(|&e| (bits(e), 3)).collect();
        for (k, _) in &keys {
            for _ in 0..3 {
                prop_assert!(one.charge(&[(*k, 1)], 0.0).is_ok());
            }
        }
        prop_assert!(all.charge(&keys, 0.0).is_ok());
        prop_assert_eq!(one.spent(), all.spent());
        prop_assert_eq!(one.events(), all.events());
    }
}
