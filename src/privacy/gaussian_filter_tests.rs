//! The filter on Gaussian DP: its limit against adversaries who choose each release by what
//! they have seen, its prices, and its file.

use super::accountant::{Question, Sequence, account, gaussian_delta};
use super::budget::Budget;
use super::charge_error::ChargeError;
use super::event::Neighbours;
use super::event_key::EventKey;
use super::gaussian_dp::{BOUNDED_RANGE, limit};
use super::ledger::Ledger;
use super::measure::Measure;

/// The most that an adversary gets of E_Q (dP/dQ − e^ε)₊ from a log likelihood ratio `x` with
/// `left` of μ²/2, in so many more releases, each of a kind and size of their choice: a bit
/// whose logit moves by η and costs `share`·η²/8, or Gaussian noise, or nothing.
fn worst(x: f64, left: f64, releases: u32, epsilon: f64, share: f64) -> f64 {
    let mut most = (x.exp() - epsilon.exp()).max(0.0);
    if left <= 0.0 {
        return most;
    }
    // All that is left on one Gaussian release, which ends the run.
    most = most.max(x.exp() * gaussian_delta((2.0 * left).sqrt(), epsilon - x).0);
    if releases == 0 {
        return most;
    }
    for part in [0.1, 0.5, 1.0] {
        let eta = (8.0 * part * left / share).sqrt();
        for centre in [-2.0, -0.7, 0.0, 0.7, 2.0] {
            // On D the logit is half of η above the centre, on D' below.
            let sigmoid = |z: f64| 1.0 / (1.0 + f64::exp(-z));
            let (p, q) = (sigmoid(centre + 0.5 * eta), sigmoid(centre - 0.5 * eta));
            let after = |p: f64, q: f64| {
                let ratio = x + (p / q).ln();
                q * worst(ratio, left * (1.0 - part), releases - 1, epsilon, share)
            };
            most = most.max(after(p, q) + after(1.0 - p, 1.0 - q));
        }
    }
    most
}

/// No adaptive sequence within the limit gets beyond δ; at the price that a bit has in a
/// ledger of ρ some do.
#[test]
fn adaptive_choices_within_the_limit_stay_within_delta() {
    let mut cheaper_fails = false;
    for (epsilon, delta) in [
        (0.01, 0.3),
        (0.2, 0.1),
        (1.0, 0.05),
        (1.0, 1e-3),
        (3.0, 0.01),
    ] {
        let left = limit(epsilon, delta);
        let worst = |share| worst(0.0, left, 3, epsilon, share);
        let ours = worst(BOUNDED_RANGE);
        assert!(ours <= delta, "{epsilon} {delta}: {ours}");
        // The adversary's best is nearly the budget: the limit is used.
        assert!(ours >= 0.999 * delta, "{epsilon} {delta}: {ours}");
        cheaper_fails |= worst(1.0) > 1.05 * delta;
    }
    assert!(cheaper_fails);
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

/// Gaussian releases fit about an eighth more often than in a ledger of ρ, bits less often; and
/// what the ledger says was spent is what the accountants say, or more.
#[test]
fn it_counts_what_the_accountants_do() {
    let budget = Budget::new(4.0, 1e-6).unwrap();
    let noise = EventKey::discrete_gaussian(1.0, 20.0).unwrap();
    let bit = EventKey::bounded_range(0.1).unwrap();
    let count = |measure, keys: &[EventKey]| spend(&mut Ledger::counting(budget, measure), keys);
    let ratio = |keys: &[EventKey]| {
        count(Measure::Gaussian, keys) as f64 / count(Measure::Zcdp, keys) as f64
    };
    assert!((1.1..1.2).contains(&ratio(&[noise])), "{}", ratio(&[noise]));
    assert!((0.7..0.75).contains(&ratio(&[bit])), "{}", ratio(&[bit]));
    for (keys, tight) in [(vec![noise], 1e-6), (vec![noise, bit], 0.25)] {
        let mut ledger = Ledger::counting(budget, Measure::Gaussian);
        spend(&mut ledger, &keys);
        let spent = ledger.epsilon_spent();
        assert!(spent <= 4.0 && ledger.spent() <= ledger.limit(), "{spent}");
        let sequence = Sequence::new(Neighbours::Substitution, ledger.events()).unwrap();
        let delta = budget.conversion_delta();
        let account = account(&sequence, Question::Epsilon { delta });
        assert!(spent >= account.lower, "{spent} {account:?}");
        assert!(
            spent <= account.upper * (1.0 + tight),
            "{spent} {account:?}"
        );
        let ours = account
            .accountants
            .iter()
            .find(|a| a.method == "Gaussian DP");
        assert!(ours.is_some_and(|a| a.adaptive && (a.upper / spent - 1.0).abs() < 1e-6));
    }
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
