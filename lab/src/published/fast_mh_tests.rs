//! The defects of the algorithm as published, which the sound form repairs
//! (tests/promises/batch_samplers.rs). Bounds are 6 standard errors (2e-9), seeds fixed.

use dpmc::data::Dataset;
use dpmc::model::{Mixture, Prior, Regression};

use super::*;

fn published(rows: &[(f32, bool)], settings: FastMhSettings, seed: u64) -> PublishedFastMh {
    let mut data = Dataset::builder(vec!["x".into()], true, 1.0).unwrap();
    for &(x, y) in rows {
        data.push(&[x], Some(y)).unwrap();
    }
    let data = data.finish().unwrap();
    let prior = Prior::flat_box(1, 50.0);
    let model = Arc::new(Regression::logistic(data.features(), 1.0, prior, 1.0).unwrap());
    PublishedFastMh::new(data.as_public(), model, RowBound::Norm, settings, seed).unwrap()
}

/// How many of n moves from `a` to `b` are accepted.
fn accepted(published: &mut PublishedFastMh, (a, b): (f64, f64), n: usize) -> f64 {
    let (thetas, proposals) = (Array2::from_elem((n, 1), a), Array2::from_elem((n, 1), b));
    let mut bits = vec![false; n];
    let moves = Moves {
        thetas: thetas.view(),
        proposals: proposals.view(),
        public: &vec![0.0; n],
        clip_bounds: None,
    };
    let (estimator, rule) = (Estimator::FullBatch, Acceptance::Metropolis);
    published
        .decide(&moves, estimator, rule, &mut bits)
        .unwrap();
    bits.iter().filter(|b| **b).count() as f64
}

const PAIR: [(f32, bool); 2] = [(1.0, true), (0.5, true)];
const SETTINGS: FastMhSettings = FastMhSettings {
    lambda: 0.5,
    batch_cap: 3.0,
    // Large, so that no noise is added.
    epsilon: 1e3,
    delta: 1e-5,
};

/// `r_i` of PAIR from θ = 0 to 2.
fn ratios() -> [f64; 2] {
    let log = |z: f64| -(-z).exp().ln_1p();
    PAIR.map(|(x, _)| log(2.0 * f64::from(x)) - log(0.0))
}

/// Acceptance probability of Algorithm 2 on PAIR for a move of length 2, by enumerating the
/// kept counts; the discarded occurrences of B are Poisson(λ + Λ − Σφ) beside them.
fn enumerated(ratios: [f64; 2], cap: f64) -> f64 {
    let (rates, length, lambda) = ([1.0, 0.5], 2.0, SETTINGS.lambda);
    let total: f64 = rates.iter().sum();
    let rate = |i: usize, sign: f64| {
        lambda * rates[i] / total + 0.5 * (rates[i] * length - sign * ratios[i])
    };
    let mass = |mean: f64, k: u32| (1..=k).fold((-mean).exp(), |p, j| p * mean / f64::from(j));
    let weight = |i: usize| (rate(i, -1.0) / rate(i, 1.0)).ln();
    let discarded = lambda + total * length - rate(0, 1.0) - rate(1, 1.0);
    let (mut accepted, mut small) = (0.0, 0.0);
    for s in 0..60u32 {
        for t in 0..60u32 {
            let kept = mass(rate(0, 1.0), s) * mass(rate(1, 1.0), t);
            let under: f64 = (0..200u32)
                .take_while(|d| f64::from(s + t + d) < cap)
                .map(|d| mass(discarded, d))
                .sum();
            let estimate = f64::from(s) * weight(0) + f64::from(t) * weight(1);
            accepted += kept * under * estimate.exp().min(1.0);
            small += kept * under;
        }
    }
    accepted + (1.0 - small) * ratios.iter().sum::<f64>().exp().min(1.0)
}

/// Mathematics, section 12, 3: the test B < K is not reversible. The flows between two states,
/// backward over forward, stand at 1.209 for K = 3 and at 1 without a cap; the sampler makes
/// the moves that the enumeration predicts.
#[test]
fn the_published_batch_cap_breaks_detailed_balance() {
    let odds = ratios().iter().sum::<f64>().exp();
    let back = ratios().map(|r| -r);
    for (cap, expected) in [(3.0, 1.0 / 0.8270), (1e9, 1.0)] {
        let exact = [enumerated(ratios(), cap), enumerated(back, cap)];
        let flow = odds * exact[1] / exact[0];
        assert!((flow - expected).abs() < 2e-4, "K = {cap}: {flow}");
        let settings = FastMhSettings {
            batch_cap: cap,
            epsilon: 1e3 * cap,
            ..SETTINGS
        };
        let mut published = published(&PAIR, settings, 31);
        let n = 200_000;
        for (ends, p) in [((0.0, 2.0), exact[0]), ((2.0, 0.0), exact[1])] {
            let rate = accepted(&mut published, ends, n) / n as f64;
            // Moves that are always accepted leave nothing to chance.
            let error = (p * (1.0 - p).max(0.0) / n as f64).sqrt() + 1e-9;
            assert!((rate - p).abs() < 6.0 * error, "{ends:?}: {rate} {p}");
        }
    }
}

/// Mathematics, section 12, 1: no rejection on D, some on its neighbour.
#[test]
fn moves_without_noise_tell_neighbours_apart() {
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
    let n = 20_000;
    let rejected = |rows: &[(f32, bool)]| {
        n as f64 - accepted(&mut published(rows, settings, 33), (0.0, 0.02), n)
    };
    // −r = log(1 + tanh …) = 0.00995: 1 % of moves are rejected, ± 14 of 199.
    assert_eq!(rejected(&rows), 0.0);
    let seen = rejected(&neighbour);
    assert!((seen - 200.0).abs() < 6.0 * 14.2, "{seen}");
}

/// The published bounds of a row: the formula of the authors' code at its box of 3, and
/// never under a ratio of the row.
#[test]
fn the_row_bounds_are_the_papers_and_bound_the_ratios() {
    let kappa = 1.0 / 500.0;
    let mixture = Mixture::new(2.0, 4.0, Prior::flat_box(2, 3.0), kappa).unwrap();
    let names = ["a".to_string(), "b".to_string()];
    let logistic = Regression::logistic(&names, 2.0, Prior::normal(2, 1.0), 0.5).unwrap();
    for x in [-3.5f64, -0.2, 0.0, 1.0, 3.0] {
        let rate = RowBound::Mixture { variance: 2.0 }
            .of(&[x], &mixture)
            .unwrap();
        let paper = ((2.0 * x.abs() + 9.0) / 2.0).hypot((x.abs() + 6.0) / 2.0) * kappa;
        assert!((rate / paper - 1.0).abs() < 1e-12, "{x}");
        let row = [x, 0.4];
        let norm = RowBound::Norm.of(&row, &logistic).unwrap();
        assert!((norm - 0.5 * x.hypot(0.4)).abs() < 1e-12);
        for (t, p) in [([0.0f64, 0.0], [3.0f64, 3.0]), ([-3.0, 2.0], [1.0, -3.0])] {
            let length = (p[0] - t[0]).hypot(p[1] - t[1]);
            let ratio = mixture.log_ratio(&[x], 1.0, &t, &p).abs();
            assert!(ratio <= rate * length, "{x}: {ratio}");
            assert!(logistic.log_ratio(&row, 1.0, &t, &p).abs() <= norm * length);
        }
    }
    let open = Mixture::new(2.0, 4.0, Prior::normal(2, 1.0), 1.0).unwrap();
    assert_eq!(RowBound::Mixture { variance: 2.0 }.of(&[1.0], &open), None);
}

/// Against the sum over batch sizes, at whole and broken K.
#[test]
fn a_step_reads_its_batch_or_all_rows() {
    for cap in [60.0, 59.5, 1.0, 200.0] {
        let settings = FastMhSettings {
            lambda: 10.0,
            batch_cap: cap,
            epsilon: 0.05,
            delta: 1e-5,
        };
        let (rate, rows) = (10.0 + 45.0, 5000.0f64);
        let (mut mass, mut expected) = (f64::exp(-rate), 0.0);
        for b in 0..400 {
            let size = f64::from(b);
            expected += mass * if size < cap { size } else { rows };
            mass *= rate / (size + 1.0);
        }
        let found = rows_of_step(&settings, 45.0, rows);
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
}
