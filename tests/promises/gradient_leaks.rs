//! No leak by gradients: what cannot be answered is refused before anything is charged or
//! drawn, what does not fit is not answered, what is charged is what the mechanism costs, and
//! a release shows noise and one clipped sum, nothing else of its batch.

use std::sync::Arc;

use crate::common::misfit::Misfit;
use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::model::{Model, Prior, Regression};
use dpmc::privacy::accountant::{Question, Sequence, account};
use dpmc::privacy::{
    Batch, Budget, Curator, Event, GradientNoise, Halt, Ledger, Measure, Neighbours, Releases,
    epsilon_of_rho,
};
use ndarray::{Array2, array};

const DELTA: f64 = 1e-6;
const ORDER: f64 = 8.0;
const ROWS: usize = 400;

/// With `other`, the last row is substituted.
fn table(other: bool) -> Dataset {
    let mut set = Dataset::builder(vec!["a".into(), "b".into()], true, 2.0).unwrap();
    for i in 0..ROWS as u32 {
        let (a, b) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
        if i as usize == ROWS - 1 && other {
            set.push(&[-1.2, 1.1], Some(false)).unwrap();
        } else {
            set.push(&[a as f32, b as f32], Some(a + 0.3 * b > 0.0))
                .unwrap();
        }
    }
    set.finish().unwrap()
}

fn logistic(data: &Dataset) -> Arc<dyn Model> {
    let prior = Prior::normal(2, 1.0);
    Arc::new(Regression::logistic(data.features(), data.row_norm(), prior, 1.0).unwrap())
}

fn ledger(epsilon: f64, measure: Measure) -> Ledger {
    Ledger::counting(Budget::new(epsilon, DELTA).unwrap(), measure)
}

fn renyi() -> Measure {
    Measure::renyi(ORDER).unwrap()
}

fn private(other: bool, ledger: Ledger) -> Curator {
    let data = table(other);
    let model = logistic(&data);
    Curator::private(data, model, EngineChoice::Cpu, ledger, Some(5)).unwrap()
}

fn noise(rate: Option<f64>, sigma: f64) -> GradientNoise {
    GradientNoise {
        clip: Some(0.5),
        batch: rate.map_or(Batch::All, |rate| Batch::Poisson { rate }),
        sigma,
    }
}

/// Neither charged nor counted.
fn assert_untouched(curator: &Curator, what: &str) {
    let ledger = curator.ledger().unwrap();
    assert!(
        ledger.spent() == 0.0 && ledger.events().is_empty(),
        "{what}"
    );
}

#[test]
fn refusals_come_before_charges_and_coins() {
    let theta = array![[0.1, -0.2], [0.3, 0.0]];
    let with = |clip, batch, sigma| GradientNoise { clip, batch, sigma };
    let all = Batch::All;
    let poisson = |rate| Batch::Poisson { rate };
    let requests = [
        ("no clip", with(None, all, 1.0), "clip"),
        ("no clip, Poisson", with(None, poisson(0.5), 1.0), "clip"),
        ("clip 0", with(Some(0.0), all, 1.0), ""),
        ("clip < 0", with(Some(-1.0), all, 1.0), ""),
        ("clip NaN", with(Some(f64::NAN), all, 1.0), ""),
        ("clip inf", with(Some(f64::INFINITY), all, 1.0), ""),
        ("clip off the grids", with(Some(1e30), all, 1e30), ""),
        ("no noise", with(Some(0.5), all, 0.0), "noise"),
        ("noise < 0", with(Some(0.5), all, -1.0), "noise"),
        ("noise NaN", with(Some(0.5), all, f64::NAN), "noise"),
        ("noise inf", with(Some(0.5), all, f64::INFINITY), "noise"),
        ("too little noise", with(Some(0.5), all, 0.0499), "0.05"),
        ("too much noise", with(Some(0.5), all, 1.1e9), "1e9"),
        ("far too much", with(Some(0.5), all, 1e300), "drawn"),
        ("rate 0", with(Some(0.5), poisson(0.0), 1.0), "rate"),
        ("rate 1", with(Some(0.5), poisson(1.0), 1.0), "ask for all"),
        ("rate > 1", with(Some(0.5), poisson(1.5), 1.0), "rate"),
        ("rate < 0", with(Some(0.5), poisson(-0.5), 1.0), "rate"),
        ("rate NaN", with(Some(0.5), poisson(f64::NAN), 1.0), "rate"),
        ("rate none", with(Some(0.5), poisson(1e-30), 1.0), "rate"),
    ];
    for (measure, ordinary) in [
        (Measure::Zcdp, noise(None, 5.0)),
        (renyi(), noise(Some(0.2), 5.0)),
    ] {
        let mut curator = private(false, ledger(50.0, measure));
        for (name, request, word) in requests {
            let answer = curator.gradients(theta.view(), request);
            let Err(Halt::Refused(text)) = answer else {
                panic!("{name}: {answer:?}");
            };
            assert!(text.contains(word), "{name}: {text}");
            assert_untouched(&curator, name);
        }
        for bad in [
            array![[f64::NAN, 0.0]],
            array![[0.0, f64::INFINITY]],
            array![[1.0, 2.0], [f64::NEG_INFINITY, 0.0]],
            array![[0.0]],
            array![[0.0, 0.0, 0.0]],
        ] {
            let answer = curator.gradients(bad.view(), ordinary);
            assert!(matches!(answer, Err(Halt::Refused(_))), "{answer:?}");
            assert_untouched(&curator, "theta");
        }
        // No coin was drawn either: the next answer is a fresh curator's first.
        let mut fresh = private(false, ledger(50.0, measure));
        let [one, two] = [&mut curator, &mut fresh]
            .map(|curator| curator.gradients(theta.view(), ordinary).unwrap());
        assert_eq!(one, two);
    }
}

/// A Poisson batch has no ρ: a ledger of ρ refuses it and says what to do.
#[test]
fn a_ledger_of_rho_refuses_poisson_batches() {
    let mut curator = private(false, ledger(50.0, Measure::Zcdp));
    let answer = curator.gradients(array![[0.0, 0.0]].view(), noise(Some(0.2), 5.0));
    let Err(Halt::Refused(text)) = answer else {
        panic!("{answer:?}");
    };
    for word in ["poisson_gaussian", "no rho", "order"] {
        assert!(text.contains(word), "no '{word}': {text}");
    }
    assert_untouched(&curator, "Poisson");
}

#[test]
fn a_misfit_model_is_refused_before_anything_is_charged() {
    for (measure, request) in [
        (Measure::Zcdp, noise(None, 5.0)),
        (renyi(), noise(Some(0.2), 5.0)),
    ] {
        let data = table(false);
        let model = Arc::new(Misfit(logistic(&data)));
        let ledger = ledger(50.0, measure);
        let mut curator =
            Curator::private(data, model, EngineChoice::Cpu, ledger, Some(5)).unwrap();
        let answer = curator.gradients(array![[0.0, 0.0]].view(), request);
        assert!(matches!(answer, Err(Halt::Refused(_))), "{answer:?}");
        assert_untouched(&curator, "misfit");
    }
}

/// D_α of the pair (1−q)N(0,1) + qN(±ν,1), by a plain sum.
fn pair_divergence(q: f64, nu: f64, alpha: f64) -> f64 {
    let log = |x: f64| {
        let normal = -0.5 * x * x - 0.5 * (2.0 * std::f64::consts::PI).ln();
        normal + (q * (nu * x - 0.5 * nu * nu).exp_m1()).ln_1p()
    };
    let h = 1e-3;
    let moment: f64 = (-30_000..30_000)
        .map(|i| h * f64::from(i))
        .map(|x| h * (alpha * log(x) + (1.0 - alpha) * log(-x)).exp())
        .sum();
    moment.ln() / (alpha - 1.0)
}

/// T gradients of C chains cost what T·C mechanisms of their kind do, computed here from σ and
/// b alone: never less, and no more than the grids of events round.
#[test]
fn what_is_charged_is_what_the_mechanism_costs() {
    let theta = array![[0.0, 0.0], [0.5, 0.5], [-0.5, 0.1]];
    let (sigma, releases) = (6.0, 15.0);
    let ask = |measure, rate| {
        let mut curator = private(false, ledger(50.0, measure));
        for _ in 0..5 {
            curator.gradients(theta.view(), noise(rate, sigma)).unwrap();
        }
        let ledger = curator.ledger().unwrap();
        (ledger.spent(), ledger.epsilon_spent(), ledger.events())
    };
    // All rows: ρ = (2b)²/(2σ²), b = 1/2.
    let (spent, epsilon, events) = ask(Measure::Zcdp, None);
    let rho = releases / (2.0 * sigma * sigma);
    assert!(spent >= rho && spent < 1.0001 * rho, "{spent} {rho}");
    let budget = Budget::new(50.0, DELTA).unwrap();
    let expected = epsilon_of_rho(rho, budget.conversion_delta());
    assert!(epsilon >= expected && epsilon < 1.0002 * expected);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].1 as f64, releases);

    // All rows at an order: αρ.
    let (spent, ..) = ask(renyi(), None);
    assert!(spent >= ORDER * rho && spent < 1.0001 * ORDER * rho);

    // Poisson batches at an order.
    let (rate, nu) = (0.2, 0.5 / sigma);
    let (spent, _, events) = ask(renyi(), Some(rate));
    let exact = releases * pair_divergence(rate, nu, ORDER);
    assert!(
        spent >= exact * (1.0 - 1e-9) && spent < 1.02 * exact,
        "{spent} {exact}"
    );
    // About q² of a gradient on all rows; more, for it is a mixture.
    assert!(spent < 0.08 * ORDER * rho && spent > rate * rate * ORDER * rho);
    // And an accountant of privacy losses finds no more than the ledger's order.
    let sequence = Sequence::new(Neighbours::Substitution, events.clone()).unwrap();
    let question = Question::Epsilon { delta: DELTA };
    let curve = renyi().epsilon(spent, DELTA);
    assert!(account(&sequence, question).upper <= curve, "{curve}");
    let [(Event::PoissonGaussian { rate: charged, .. }, count)] = events[..] else {
        panic!("{events:?}");
    };
    assert!(charged >= rate && count as f64 == releases);
}

#[test]
fn all_chains_are_charged_or_none_and_a_spent_budget_releases_nothing() {
    for (measure, request) in [
        (Measure::Zcdp, noise(None, 2.0)),
        (renyi(), noise(Some(0.2), 2.0)),
    ] {
        let one = {
            let mut curator = private(false, ledger(50.0, measure));
            let theta = Array2::zeros((1, 2));
            curator.gradients(theta.view(), request).unwrap();
            curator.ledger().unwrap().spent()
        };
        let mut curator = private(false, ledger(4.0, measure));
        let affords = (curator.ledger().unwrap().limit() / one).floor() as usize;
        assert!((2..1000).contains(&affords), "{affords}");
        let too_many = Array2::zeros((affords + 1, 2));
        let answer = curator.gradients(too_many.view(), request);
        assert!(matches!(answer, Err(Halt::BudgetSpent(_))));
        assert_untouched(&curator, "one chain too many");
        let answer = curator.gradients(Array2::zeros((affords, 2)).view(), request);
        assert_eq!(answer.unwrap().dim(), (affords, 2));
        // Nothing more, ever, and nothing more is charged.
        let spent = curator.ledger().unwrap().spent();
        for _ in 0..3 {
            let answer = curator.gradients(Array2::zeros((1, 2)).view(), request);
            let Err(Halt::BudgetSpent(refusal)) = answer else {
                panic!("{answer:?}");
            };
            let text = Halt::BudgetSpent(refusal).to_string();
            assert!(!text.contains("row") && !text.contains("batch"), "{text}");
        }
        assert_eq!(curator.ledger().unwrap().spent(), spent);
        assert!(curator.ledger().unwrap().epsilon_spent() <= 4.0);
    }
}

/// Batches that are next to surely empty: the answer is noise over q, not a number less, and
/// is charged like any other. 6 standard errors (4e-9 in all).
#[test]
fn an_empty_batch_is_pure_noise() {
    let (rate, sigma, chains) = (1e-9, 3.0, 20_000);
    let mut curator = private(false, ledger(50.0, renyi()));
    let thetas = Array2::from_elem((chains, 2), 0.7);
    let released = curator
        .gradients(thetas.view(), noise(Some(rate), sigma))
        .unwrap();
    assert_eq!(curator.ledger().unwrap().events()[0].1, chains as u64);
    let n = 2.0 * chains as f64;
    let units = released.mapv(|v| v * rate / sigma);
    let mean = units.sum() / n;
    let square = units.mapv(|u| u * u).sum() / n;
    assert!(mean.abs() < 6.0 / n.sqrt(), "{mean}");
    assert!((square - 1.0).abs() < 6.0 * (2.0 / n).sqrt(), "{square}");
}

/// The same coins on neighbours: the substituted row is in the batch of neither, or of both;
/// releases agree to the bit or differ by the two rows' gradients over q, at most 2b/q.
/// Whether other rows were drawn, and how many, moves nothing. 6 standard errors (2e-9).
#[test]
fn a_release_differs_by_the_substituted_row_alone() {
    let (rate, chains) = (0.3, 4000);
    let thetas = Array2::from_elem((chains, 2), 0.25);
    let [one, two] = [false, true].map(|other| {
        let mut curator = private(other, ledger(50.0, renyi()));
        let request = noise(Some(rate), 40.0);
        curator.gradients(thetas.view(), request).unwrap()
    });
    let gap = &one - &two;
    let mut seen: Option<Vec<f64>> = None;
    let mut drawn = 0.0;
    for row in gap.rows() {
        if row.iter().all(|g| *g == 0.0) {
            continue;
        }
        drawn += 1.0;
        let norm = row.dot(&row).sqrt();
        assert!(norm <= 2.0 * 0.5 / rate * (1.0 + 1e-9), "{norm}");
        let first = seen.get_or_insert_with(|| row.to_vec());
        let same = row.iter().zip(first).all(|(a, b)| (a - *b).abs() < 1e-4);
        assert!(same, "{row}");
    }
    let n = chains as f64;
    let error = 6.0 * (n * rate * (1.0 - rate)).sqrt();
    assert!((drawn - n * rate).abs() < error, "{drawn}");
}
