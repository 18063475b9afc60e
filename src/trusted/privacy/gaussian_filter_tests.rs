//! The filter on Gaussian DP: its limit against adversaries who choose each release by what
//! they have seen, its prices, and its file.

use super::accountant::Budget;
use super::accountant::EventKey;
use super::accountant::Measure;
use super::accountant::gaussian_dp::{decision, limit};
use super::accountant::{Question, Sequence, account_without_losses, gaussian_delta};
use super::charge_error::ChargeError;
use super::event::Neighbours;
use super::ledger::Ledger;

/// The ρ = η²/8 of a bit that costs `cost` where `after` is left.
type Rule = fn(cost: f64, after: f64) -> f64;

/// The most that an adversary gets of E_Q (dP/dQ − e^ε)₊ from a log likelihood ratio `x` with
/// `left` of μ²/2, in so many more releases, each of a kind and size of their choice: a bit by
/// one of the rules, or Gaussian noise, or nothing.
fn worst(x: f64, left: f64, releases: u32, epsilon: f64, rules: &[Rule]) -> f64 {
    let mut most = (x.exp() - epsilon.exp()).max(0.0);
    if left <= 0.0 {
        return most;
    }
    // All that is left on one Gaussian release, which ends the run.
    most = most.max(x.exp() * gaussian_delta((2.0 * left).sqrt(), epsilon - x).0);
    if releases == 0 {
        return most;
    }
    for (part, rule) in [0.1, 0.4, 1.0]
        .iter()
        .flat_map(|p| rules.iter().map(move |r| (p, r)))
    {
        let after = left * (1.0 - part);
        let eta = (8.0 * rule(part * left, after)).sqrt();
        for centre in [-2.0, -0.7, 0.0, 0.7, 2.0] {
            // On D the logit is half of η above the centre, on D' below.
            let sigmoid = |z: f64| 1.0 / (1.0 + f64::exp(-z));
            let (p, q) = (sigmoid(centre + 0.5 * eta), sigmoid(centre - 0.5 * eta));
            let then = |p: f64, q: f64| match q > 0.0 {
                true => q * worst(x + (p / q).ln(), after, releases - 1, epsilon, rules),
                false => 0.0,
            };
            most = most.max(then(p, q) + then(1.0 - p, 1.0 - q));
        }
    }
    most
}

/// The largest ρ = η²/8 that `decision` prices at `cost`, by bisection.
fn by_price(cost: f64, after: f64) -> f64 {
    let (mut low, mut high) = (0.0, cost);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match decision(middle, (8.0 * middle).sqrt(), after) <= cost {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// No adaptive sequence within the limit gets beyond δ, priced with exactly what is left as the
/// reserve; at the price that a bit has in a ledger of ρ some do, also where much is left.
#[test]
fn adaptive_choices_within_the_limit_stay_within_delta() {
    let (mut cheaper_fails, mut cheaper_fails_early) = (false, false);
    for (epsilon, delta) in [
        (0.01, 0.3),
        (0.2, 0.1),
        (1.0, 0.05),
        (1.0, 1e-3),
        (3.0, 0.01),
    ] {
        let left = limit(epsilon, delta);
        let worst = |rules: &[Rule]| worst(0.0, left, 3, epsilon, rules);
        let ours = worst(&[by_price]);
        assert!(ours <= delta, "{epsilon} {delta}: {ours}");
        // The adversary's best is nearly the budget: the limit is used.
        assert!(ours >= 0.999 * delta, "{epsilon} {delta}: {ours}");
        cheaper_fails |= worst(&[|cost, _| cost]) > 1.05 * delta;
        let early: Rule = |cost, after| if after > cost { cost } else { 0.0 };
        cheaper_fails_early |= worst(&[early]) > (1.0 + 1e-3) * delta;
    }
    assert!(cheaper_fails && cheaper_fails_early);
}

fn spend(ledger: &mut Ledger, keys: &[EventKey]) -> u64 {
    let mut charged = 0;
    while ledger
        .charge(&[(keys[charged as usize % keys.len()], 1)], 0.0)
        .is_ok()
    {
        charged += 1;
    }
    charged
}

/// Gaussian releases fit about an eighth more often than in a ledger of ρ, many small bits a
/// tenth, few large ones less often; and what the ledger says was spent is what the accountants
/// say, or more.
#[test]
fn it_counts_what_the_accountants_do() {
    let budget = Budget::new(4.0, 1e-6).unwrap();
    let noise = EventKey::discrete_gaussian(1.0, 20.0).unwrap();
    let [small, large] = [0.01, 0.4].map(|eta| EventKey::bounded_range(eta).unwrap());
    let count = |measure, keys: &[EventKey]| spend(&mut Ledger::counting(budget, measure), keys);
    let ratio = |keys: &[EventKey]| {
        count(Measure::Gaussian, keys) as f64 / count(Measure::Zcdp, keys) as f64
    };
    for (key, low, high) in [(noise, 1.1, 1.2), (small, 1.1, 1.12), (large, 0.65, 0.75)] {
        assert!(
            (low..high).contains(&ratio(&[key])),
            "{key:?}: {}",
            ratio(&[key])
        );
    }
    for (keys, tight) in [
        (vec![noise], 1e-6),
        (vec![small], 0.01),
        (vec![noise, large], 0.35),
    ] {
        let mut ledger = Ledger::counting(budget, Measure::Gaussian);
        spend(&mut ledger, &keys);
        let spent = ledger.epsilon_spent();
        assert!(spent <= 4.0 && ledger.spent() <= ledger.limit(), "{spent}");
        let sequence = Sequence::new(Neighbours::Substitution, ledger.events()).unwrap();
        let delta = budget.conversion_delta();
        let account = account_without_losses(&sequence, Question::Epsilon { delta });
        assert!(spent >= account.lower, "{spent} {account:?}");
        assert!(
            spent <= account.upper * (1.0 + tight),
            "{spent} {account:?}"
        );
        let ours = account
            .accountants
            .iter()
            .find(|a| a.method == "Gaussian DP")
            .unwrap();
        assert!(
            ours.adaptive && ours.upper <= spent * (1.0 + 1e-6),
            "{spent} {ours:?}"
        );
    }
}

/// Bits leave the reserve, which noise may use; what noise has used no bit finds.
#[test]
fn the_reserve_is_left_after_bits_alone() {
    let budget = Budget::new(4.0, 1e-6).unwrap();
    let [noise, bit] = [
        EventKey::discrete_gaussian(1.0, 20.0).unwrap(),
        EventKey::bounded_range(0.02).unwrap(),
    ];
    let mut ledger = Ledger::counting(budget, Measure::Gaussian);
    let reserve = Measure::Gaussian.reserve(budget);
    spend(&mut ledger, &[bit]);
    let left = ledger.limit() - ledger.spent();
    assert!(left >= reserve && left < reserve * 1.01, "{left} {reserve}");
    assert!((ledger.epsilon_spent() / 4.0 - 1.0).abs() < 0.01);
    assert_eq!(spend(&mut ledger, &[noise]), (reserve * 800.0) as u64);
    assert!(ledger.epsilon_spent() <= 4.0);
    assert!(ledger.charge(&[(bit, 1)], 0.0).is_err());
}

#[test]
fn what_has_no_mu_is_refused_before_anything_is_charged() {
    let budget = Budget::new(4.0, 1e-6).unwrap();
    for key in [
        EventKey::fast_mh_noisy(1e-3, 1.0, 10.0).unwrap(),
        EventKey::heikkila(1000, 1_000_000).unwrap(),
        EventKey::poisson_gaussian(0.01, 1.0, 2.0).unwrap(),
    ] {
        let mut ledger = Ledger::counting(budget, Measure::Gaussian);
        match ledger.charge(&[(key, 1)], 0.0) {
            Err(ChargeError::Unpriced(what)) => assert!(what.contains("has no mu"), "{what}"),
            other => panic!("{other:?}"),
        }
        assert_eq!((ledger.spent(), ledger.events().len()), (0.0, 0));
    }
}

#[test]
fn a_file_keeps_it_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.json");
    let budget = Budget::new(4.0, 1e-6).unwrap();
    let open = |measure| Ledger::open(&path, "people", 1000, budget, measure);
    assert_eq!(Ledger::measure_of(&path).unwrap(), None);
    let mut ledger = open(Measure::Gaussian).unwrap();
    let noise = EventKey::discrete_gaussian(1.0, 20.0).unwrap();
    ledger.charge(&[(noise, 3)], 0.0).unwrap();
    ledger.settle().unwrap();
    let spent = ledger.spent();
    drop(ledger);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("mu_squared_half_spent") && !text.contains("rho_spent"));
    assert_eq!(Ledger::measure_of(&path).unwrap(), Some(Measure::Gaussian));
    let refused = open(Measure::Zcdp).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("filter = \"gaussian\""), "{refused}");
    assert_eq!(open(Measure::Gaussian).unwrap().spent(), spent);
}
