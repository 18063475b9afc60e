//! Rows with public bounds of their own are drawn in proportion to them: the posterior stays
//! exact, and a step costs what its widest row makes it cost.

use std::sync::Arc;

use crate::common::chains::{
    AnyCurator, Length, STUDY, TEST, drive, log_posterior_by_curator, quadrature, run,
};
use dpmc::data::{Dataset, LabelKind, Population};
use dpmc::engine::EngineChoice;
use dpmc::model::{Mixture, Model, Prior, Regression, Support};
use dpmc::privacy::{Acceptance, Curator, Estimator, Event, FastMhSettings, Lambda};
use dpmc::sampler::{Adapt, Adaptation, ClipNorm, ClipRule, FastMh, Preconditioner, RandomWalk};

const NORM: f64 = 2.0;

/// Rows of two strata: every eighth as long as B, the others 0.1 of it.
fn rows() -> impl Iterator<Item = ([f32; 2], f64, f64)> {
    (0..160).map(|i| {
        let bound = if i % 8 == 0 { 1.0 } else { 0.1 };
        let angle = f64::from(i) * 2.399;
        let length = NORM * bound * (0.6 + 0.4 * (f64::from(i) * 0.61).sin());
        let row = [(length * angle.cos()) as f32, (length * angle.sin()) as f32];
        let eta = 1.4 * f64::from(row[0]) - 0.8 * f64::from(row[1]);
        let noise = 1.5 * (f64::from(i) * 1.93).sin();
        (row, bound, eta + noise)
    })
}

fn logistic_data() -> Dataset {
    let mut set = Dataset::builder(vec!["a".into(), "b".into()], true, NORM).unwrap();
    for (row, bound, value) in rows() {
        let label = if value > 0.0 { 1.0 } else { -1.0 };
        set.push_bounded(&row, Some(label), bound).unwrap();
    }
    set.finish().unwrap()
}

fn logistic() -> Arc<dyn Model> {
    let names = ["a".to_string(), "b".to_string()];
    Arc::new(Regression::logistic(&names, NORM, Prior::normal(2, 2.0), 1.0).unwrap())
}

const LABEL: LabelKind = LabelKind::Number {
    low: -4.0,
    high: 4.0,
};

fn linear_data() -> Dataset {
    let names = vec!["a".into(), "b".into()];
    let mut set = Dataset::builder_with(names, Some(LABEL), NORM).unwrap();
    for (row, bound, value) in rows() {
        set.push_bounded(&row, Some(value), bound).unwrap();
    }
    set.finish().unwrap()
}

fn linear() -> Arc<dyn Model> {
    let names = ["a".to_string(), "b".to_string()];
    let prior = Prior {
        support: Support::Box(vec![4.0; 2]),
        ..Prior::normal(2, 2.0)
    };
    Arc::new(Regression::linear(&names, 16.0, LABEL, NORM, prior, 1.0).unwrap())
}

/// Exact (mean, sd) of both parameters.
fn exact(data: fn() -> Dataset, model: &Arc<dyn Model>, limit: f64) -> Vec<(f64, f64)> {
    let centre = [1.0, -0.6];
    let density = log_posterior_by_curator(data, model.clone(), centre.to_vec());
    quadrature(density, &centre, &[1.0, 1.0], limit)
}

/// Name, rows, model, rule and iterations.
type Case = (
    &'static str,
    fn() -> Dataset,
    Arc<dyn Model>,
    Acceptance,
    usize,
);

/// Each sampler that draws minibatches. Rows drawn uniformly, or ratios not divided by their
/// bounds, move means and sds by tens of per cent; false alarms and power are those of `Length`.
#[test]
fn weighted_minibatches_sample_the_posterior_exactly() {
    check_minibatches(&TEST);
}

#[test]
#[ignore = "study"]
fn long_chains_of_weighted_minibatches_sample_the_posterior_exactly() {
    check_minibatches(&STUDY);
    check_fast_mh(&STUDY);
}

fn check_minibatches(length: &Length) {
    let poisson = Estimator::Poisson {
        lambda: Lambda::Ratio(0.5),
    };
    let cases: [Case; 3] = [
        (
            "poisson-barker",
            logistic_data,
            logistic(),
            Acceptance::Barker,
            500_000,
        ),
        (
            "tuna-mh",
            logistic_data,
            logistic(),
            Acceptance::Metropolis,
            250_000,
        ),
        (
            "poisson-barker",
            linear_data,
            linear(),
            Acceptance::Barker,
            500_000,
        ),
    ];
    for (k, (name, data, model, rule, iterations)) in cases.into_iter().enumerate() {
        let limit = match &model.prior().support {
            Support::Box(bounds) => bounds[0],
            Support::Unbounded => 20.0,
        };
        let exact = exact(data, &model, limit);
        let start: Vec<f64> = exact.iter().map(|e| e.0).collect();
        let scale: Vec<f64> = exact.iter().map(|e| e.1).collect();
        let mut curator = AnyCurator::new(
            data(),
            model.clone(),
            EngineChoice::Cpu,
            false,
            40 + k as u64,
        );
        let sampler = (poisson, rule);
        let draws = run(
            &mut curator,
            &*model,
            sampler,
            &start,
            &scale,
            length.of(iterations),
            k as u8,
        );
        for (j, (column, exact)) in draws.iter().zip(&exact).enumerate() {
            let label = format!("{} {name} {j}", model.name());
            length.assert_moments(&label, column, *exact);
        }
    }
}

/// DP-Fast MH over all its branches, which follow from Λ = c Σw_i.
#[test]
fn dp_fast_mh_samples_the_posterior_of_bounded_rows() {
    check_fast_mh(&TEST);
}

fn check_fast_mh(length: &Length) {
    let (model, population) = (logistic(), logistic_data().population());
    let settings = FastMhSettings {
        lambda: 5.0,
        batch_cap: 12.0,
        epsilon: 1.0,
        // Far from private, so that noisy moves are accepted at all.
        delta: 0.48,
    };
    let fast = FastMh {
        settings,
        population,
    };
    let rate = model.ratio_rate().unwrap();
    let mut seen = Vec::new();
    for length in [0.01, 0.06, 0.2, 0.4] {
        let rule = fast.rule(rate * length);
        assert!(!seen.contains(&rule), "{length}: {rule:?}");
        seen.push(rule);
    }
    let exact = exact(logistic_data, &model, 20.0);
    let clip = ClipRule {
        rate,
        norm: ClipNorm::Euclidean,
    };
    let mut walk = RandomWalk::new(
        model.prior().clone(),
        Estimator::FullBatch,
        Acceptance::Barker,
        Some(clip),
        0.3,
        Preconditioner::Identity,
        Adaptation::new(Adapt::None, 0.3, 0, 2),
    );
    walk.fast_mh = Some(fast);
    let mut curator = AnyCurator::new(logistic_data(), model, EngineChoice::Cpu, false, 50);
    let draws = drive(
        walk.into(),
        &mut curator,
        &[exact[0].0, exact[1].0],
        length.of(2_600_000),
        9,
    );
    for (j, (column, exact)) in draws.iter().zip(&exact).enumerate() {
        length.assert_moments(&format!("dp-fast-mh {j}"), column, *exact);
    }
}

/// ρ = (c max w)² ρ₀(K), K = Λ/λ, Λ = c Σw; without bounds c²ρ₀(Nc/λ).
#[test]
fn a_step_costs_what_its_widest_row_makes_it_cost() {
    let population = logistic_data().population();
    assert_eq!((population.rows, population.largest), (160, 1.0));
    // 0.1 is rounded up to a multiple of 2^-20.
    assert!((population.total - 34.0).abs() < 140.0 * f64::powi(2.0, -20));
    let poisson = Estimator::Poisson {
        lambda: Lambda::Fixed(3.0),
    };
    let rho = |population: Population| {
        let cost = Curator::cost(population, 0.25, poisson, Acceptance::Barker);
        cost.unwrap().unwrap().0.rho().unwrap()
    };
    for population in [
        population,
        160.into(),
        Population {
            rows: 160,
            total: 8.0,
            largest: 0.5,
        },
    ] {
        let event = Event::PoissonBarker {
            clip: 0.25 * population.largest,
            ratio: 0.25 * population.total / 3.0,
        };
        let (charged, exact) = (rho(population), event.rho().unwrap());
        // Clip and ratio are rounded up to 512 steps an octave; both numbers are bounds.
        assert!(charged >= exact * (1.0 - 1.0 / 4096.0) && charged < 1.006 * exact);
    }
}

/// The library refuses what the command refuses.
#[test]
fn a_curator_refuses_bounds_that_say_nothing() {
    let mut set = Dataset::builder(vec!["a".into()], false, 2.0).unwrap();
    set.push_bounded(&[1.0], None, 1.0).unwrap();
    set.push_bounded(&[0.1], None, 0.5).unwrap();
    let data = set.finish().unwrap();
    let model = Mixture::new(2.0, 2.0, Prior::flat_box(2, 3.0), 1.0).unwrap();
    let curator = Curator::not_private(data, Arc::new(model), EngineChoice::Cpu, 1);
    let message = curator.err().unwrap().to_string();
    assert!(
        message.contains("mixture") && message.contains("row_norm"),
        "{message}"
    );
}
