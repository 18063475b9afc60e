//! The promise: a score of a protected held-out table is what its rows and the released draws say,
//! within noise of the stated size, is paid for before it is made, and tells no more than that.
//!
//! A score must lie within 6 standard deviations of its noise (false alarm 2e-9 each).

use std::sync::Arc;

use crate::common::bracket::{assert_between, assert_caught};
use crate::common::regression::{COUNT, NUMBER, Table, VARIANCE, table};
use dpmc::data::{Dataset, LabelKind, Unit};
use dpmc::engine::EngineChoice;
use dpmc::expression::{Law, family};
use dpmc::model::{GaussianMean, Model, Prior, Regression};
use dpmc::privacy::audit::{Settings, audit_held_out};
use dpmc::privacy::{Budget, Event, Halt, HeldOut, HeldOutScore, Ledger, Measure, ScoreRequest};

/// Few draws, apart enough that their densities' mean is not that of their logs.
const DRAWS: [[f64; 2]; 3] = [[0.8, -1.1], [0.1, -0.4], [1.4, -1.9]];

fn ledger(epsilon: f64) -> Ledger {
    Ledger::counting(Budget::new(epsilon, 1e-5).unwrap(), Measure::Gaussian)
}

fn holder(data: Dataset, model: Arc<dyn Model>, seed: u64) -> HeldOut {
    HeldOut::private(data, model, ledger(900.0), Some(seed)).unwrap()
}

fn scored(
    data: Dataset,
    model: Arc<dyn Model>,
    range: [f64; 2],
    density: impl Fn(f64, f64) -> f64,
    rows: &[Vec<f64>],
    labels: &[f64],
) -> (HeldOutScore, f64) {
    let draws = DRAWS.map(Vec::from);
    let request = ScoreRequest {
        draws: &draws,
        range,
        tau: 0.2,
    };
    let score = holder(data, model, 3).score(&request).unwrap();
    let each = rows.iter().zip(labels).map(|(x, y)| {
        let densities = DRAWS.iter().map(|t| {
            let offset = x.get(2).copied().unwrap_or(0.0);
            density(*y, x[0] * t[0] + x[1] * t[1] + offset)
        });
        let mean = densities.sum::<f64>() / 3.0;
        mean.ln().clamp(range[0], range[1])
    });
    let exact = each.sum::<f64>() / rows.len() as f64;
    // τ of the range over N, and half a unit of rounding a row.
    let sd = 0.2 * (range[1] - range[0]) / rows.len() as f64;
    assert!((score.log_score_sd / sd - 1.0).abs() < 1e-6);
    let gap = (score.log_score - exact).abs();
    assert!(
        gap < 6.0 * sd + 1e-6 * (range[1] - range[0]),
        "{gap} {sd} {exact}"
    );
    (score, exact)
}

fn rows(table: &Table) -> Vec<Vec<f64>> {
    (0..table.rows.len()).map(|i| table.row(i)).collect()
}

#[test]
fn counts_and_numbers_are_scored_by_their_densities() {
    let mut counts = table(300, COUNT);
    let turns = (0..300).map(|i| f64::from((0.5 * (1.3 * f64::from(i)).sin()) as f32));
    counts.offsets = turns.collect();
    let poisson = |y: f64, eta: f64| {
        let factorial: f64 = (1..=y as u64).map(|k| (k as f64).ln()).sum();
        (y * eta - eta.exp() - factorial).exp()
    };
    let all = rows(&counts);
    let (data, model) = (counts.data(), counts.model());
    let (score, exact) = scored(data, model, [-9.0, 0.0], poisson, &all, &counts.labels);
    assert!(exact < -0.5 && score.accuracy.is_none());
    // Cut off where many rows are.
    let (data, model) = (counts.data(), counts.model());
    let (_, cut) = scored(data, model, [-1.0, -0.5], poisson, &all, &counts.labels);
    assert!(cut > exact);
    let numbers = table(300, NUMBER);
    let normal = |y: f64, eta: f64| {
        let z = (y - eta).powi(2) / (2.0 * VARIANCE);
        (-z).exp() / (2.0 * std::f64::consts::PI * VARIANCE).sqrt()
    };
    let (data, model) = (numbers.data(), numbers.model());
    scored(
        data,
        model,
        [-6.0, 1.0],
        normal,
        &rows(&numbers),
        &numbers.labels,
    );
}

/// Rows with binary labels, and the chance of a label by a logistic law.
fn binary(n: usize) -> (Table, Dataset) {
    let mut table = table(n, NUMBER);
    let labels = table
        .labels
        .iter()
        .map(|y| if *y > 0.2 { 1.0 } else { -1.0 });
    table.labels = labels.collect();
    table.kind = LabelKind::Binary;
    let data = table.data();
    (table, data)
}

fn chance(y: f64, eta: f64) -> f64 {
    1.0 / (1.0 + (-y * eta).exp())
}

#[test]
fn binary_labels_are_scored_and_counted() {
    let (table, data) = binary(500);
    let (names, prior) = (data.features().to_vec(), Prior::normal(2, 1.0));
    let logistic = Regression::logistic(&names, data.row_norm(), prior.clone(), 0.5).unwrap();
    let text = family("cloglog").unwrap().likelihood;
    let law = Law::new("cloglog", text, &[], &[]).unwrap();
    let kind = LabelKind::Binary;
    let declared = Regression::declared(&names, law, kind, data.row_norm(), prior, 1.0).unwrap();
    let cloglog = |y: f64, eta: f64| {
        let none = (-eta.exp()).exp();
        if y > 0.0 { 1.0 - none } else { none }
    };
    let all = rows(&table);
    for (model, density) in [
        (Arc::new(logistic), chance as fn(f64, f64) -> f64),
        (Arc::new(declared), cloglog),
    ] {
        let (data, labels) = (table.data(), &table.labels);
        let (score, _) = scored(data, model, [-3.0, 0.0], density, &all, labels);
        let likelier = |(x, y): &(&Vec<f64>, &f64)| {
            let each = DRAWS
                .iter()
                .map(|t| density(**y, x[0] * t[0] + x[1] * t[1]));
            each.sum::<f64>() > 1.5
        };
        let hits = all.iter().zip(labels).filter(likelier).count() as f64 / 500.0;
        let [accuracy, sd] = score.accuracy.unwrap();
        assert!((sd * 500.0 / 0.2 - 1.0).abs() < 1e-6);
        assert!((accuracy - hits).abs() < 6.0 * sd, "{accuracy} {hits}");
        assert!(hits > 0.6 && hits < 0.99);
    }
}

/// 4,000 releases of one table: noise has the stated mean and variance, both sums one of their own.
/// Six standard errors (false alarm 2e-9 each); a factor of 1.2 would fail.
#[test]
fn noise_is_of_the_stated_size() {
    let (_, data) = binary(40);
    let model = Regression::logistic(data.features(), data.row_norm(), Prior::normal(2, 1.0), 1.0);
    let model: Arc<dyn Model> = Arc::new(model.unwrap());
    let draws = [vec![0.8, -1.1]];
    let request = ScoreRequest {
        draws: &draws,
        range: [-3.0, 0.0],
        tau: 60.0,
    };
    let mut table = HeldOut::private(data, model, ledger(900.0), Some(8)).unwrap();
    let n = 4_000;
    let all: Vec<HeldOutScore> = (0..n).map(|_| table.score(&request).unwrap()).collect();
    let (sd, hit_sd) = (all[0].log_score_sd, all[0].accuracy.unwrap()[1]);
    let scores: Vec<f64> = all.iter().map(|s| s.log_score / sd).collect();
    let hits: Vec<f64> = all
        .iter()
        .map(|s| s.accuracy.unwrap()[0] / hit_sd)
        .collect();
    let error = 6.0 / f64::from(n).sqrt();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (a, b) = (mean(&scores), mean(&hits));
    // Of a score between −3 and 0 and a share between 0 and 1.
    assert!(a < error && a > -3.0 / sd - error && b > -error && b < 1.0 / hit_sd + error);
    let product = |u: &[f64], a: f64, v: &[f64], b: f64| {
        let each: Vec<f64> = u.iter().zip(v).map(|(u, v)| (u - a) * (v - b)).collect();
        mean(&each)
    };
    for (v, m) in [(&scores, a), (&hits, b)] {
        let variance = product(v, m, v, m);
        assert!((variance - 1.0).abs() < error * 2f64.sqrt(), "{variance}");
    }
    assert!(product(&scores, a, &hits, b).abs() < error);
}

#[test]
fn a_score_is_charged_before_it_is_made_or_refused() {
    let (_, data) = binary(60);
    let model = Regression::logistic(data.features(), data.row_norm(), Prior::normal(2, 1.0), 1.0);
    let model: Arc<dyn Model> = Arc::new(model.unwrap());
    let mut table = HeldOut::private(data, model, ledger(1.0), Some(5)).unwrap();
    let draws = [vec![0.8, -1.1]];
    let request = |tau| ScoreRequest {
        draws: &draws,
        range: [-3.0, 0.0],
        tau,
    };
    // μ²/2 is about 0.035 at (1, 1e-5): two sums of τ = 8 cost 1/64.
    table.score(&request(8.0)).unwrap();
    let events = table.ledger().events();
    let [
        (
            Event::DiscreteGaussian {
                sensitivity, sigma, ..
            },
            2,
        ),
    ] = events[..]
    else {
        panic!("{events:?}");
    };
    assert!((sigma / sensitivity / 8.0 - 1.0).abs() < 1e-3);
    let spent = table.ledger().spent();
    assert!((spent * 64.0 - 1.0).abs() < 1e-3, "{spent}");
    // Too dear, and nothing of it is charged.
    assert!(matches!(
        table.score(&request(2.0)),
        Err(Halt::BudgetSpent(_))
    ));
    for (draws, range, tau) in [
        (vec![], [-3.0, 0.0], 8.0),
        (vec![vec![0.1; 3]], [-3.0, 0.0], 8.0),
        (vec![vec![0.1; 2]], [0.0, -3.0], 8.0),
        (vec![vec![0.1; 2]], [f64::NAN, 0.0], 8.0),
        (vec![vec![0.1; 2]], [-3.0, 0.0], 0.0),
    ] {
        let (draws, range) = (&draws[..], range);
        let refused = table.score(&ScoreRequest { draws, range, tau });
        assert!(matches!(refused, Err(Halt::Refused(_))));
    }
    assert_eq!(table.ledger().spent(), spent);
    // A table of units, and a model without labels.
    let names = vec!["a".to_string()];
    let column = "person".to_string();
    let set = Dataset::builder(names.clone(), true, 1.0).unwrap();
    let mut set = set.of_units(Unit { column, rows: 2 });
    for owner in 0..4 {
        set.push_owned(&[0.5], Some(1.0), owner).unwrap();
    }
    let model = Regression::logistic(&names, 1.0, Prior::normal(1, 1.0), 1.0).unwrap();
    let refused = HeldOut::private(set.finish().unwrap(), Arc::new(model), ledger(1.0), None);
    assert!(refused.err().unwrap().to_string().contains("units"));
    let mut set = Dataset::builder(names.clone(), true, 1.0).unwrap();
    set.push(&[0.5], Some(true)).unwrap();
    set.push(&[0.1], Some(true)).unwrap();
    let model = GaussianMean::new(&names, &[1.0], 1.0, Prior::normal(1, 1.0), 1.0).unwrap();
    let refused = HeldOut::private(set.finish().unwrap(), Arc::new(model), ledger(1.0), None);
    assert!(refused.err().unwrap().to_string().contains("regressions"));
}

fn settings() -> Settings {
    Settings {
        trials: 60_000,
        delta: 0.02,
        engine: EngineChoice::Cpu,
        confidence: 1.0 - 1e-6,
        seed: Some(40),
        ..Settings::default()
    }
}

/// The attack stays under the claim and comes near; noise of half its standard deviation, and a
/// second sum that nobody paid for, would be seen.
#[test]
fn an_attack_finds_no_more_than_is_charged() {
    let honest = audit_held_out(2.0, &settings()).unwrap();
    assert_between(&honest, 0.6);
    let few = Settings {
        trials: 2,
        ..settings()
    };
    let claim = |tau: f64| {
        let report = audit_held_out(tau, &few).unwrap();
        report.claim.min(report.accountant)
    };
    // Half the noise is another τ's honest release.
    assert_caught(&honest, claim(4.0));
    // One sum of τ costs what two of √2·τ do.
    assert_caught(&honest, claim(2.0 * 2f64.sqrt()));
}
