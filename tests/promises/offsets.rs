//! The promise: an offset enters the linear predictor with the coefficient 1, whatever the model,
//! the storage of rows and the sampler. What is exact is written out here from the rows alone.
//!
//! False alarms and power as in `known_posteriors`. Without the offsets every posterior here lies
//! more than half an sd elsewhere, which is asserted.

use std::sync::Arc;

use crate::common::chains::{AnyCurator, TEST, quadrature, run, samplers};
use crate::common::regression::{
    AT, COUNT, KAPPA, NUMBER, OFFSET, PRIOR_SD, Table, VARIANCE, table,
};
use dpmc::data::{Dataset, LabelKind};
use dpmc::engine::EngineChoice;
use dpmc::expression::{Law, family};
use dpmc::model::{Model, Prior, Regression, Support};
use dpmc::privacy::{Acceptance, AnchorNoise, Estimator, Lambda};
use dpmc::sampler::{AnchoredProposal, Chains};

/// Of chains in a box: bounds of steps grow with it, and minibatches with them.
const LIMIT: f64 = 1.3;
/// Beyond any draw.
const FAR: f64 = 9.0;

/// Rows with offsets that go with the first feature, so that leaving them out moves it.
fn offsets(kind: LabelKind) -> Table {
    let mut table = table(90, kind);
    let turn = |i: usize| (1.3 * i as f64).sin();
    let own = table.rows.iter().enumerate();
    table.offsets = own
        .map(|(i, x)| f64::from((0.5 * x[0] + 0.3 * turn(i)) as f32))
        .collect();
    table
}

/// The log likelihood of a label at η, by its formula.
type Log = fn(f64, f64) -> f64;

fn poisson(y: f64, eta: f64) -> f64 {
    y * eta - eta.exp()
}

fn linear(y: f64, eta: f64) -> f64 {
    -(y - eta).powi(2) / (2.0 * VARIANCE)
}

/// Shape 1: the geometric law of mean e^η.
fn geometric(y: f64, eta: f64) -> f64 {
    y * eta - (y + 1.0) * eta.exp().ln_1p()
}

/// Mean and sd of both coefficients by sums over the rows as they are stored; `share` of the
/// offsets is added.
fn exact(table: &Table, rows: &[f32], log: Log, share: f64, limit: f64) -> Vec<(f64, f64)> {
    let rows: Vec<&[f32]> = rows.chunks_exact(3).collect();
    let density = |theta: &[f64]| {
        let each = rows.iter().zip(&table.labels).map(|(x, y)| {
            let [a, b, o] = [x[0], x[1], x[2]].map(f64::from);
            log(*y, a * theta[0] + b * theta[1] + share * o)
        });
        let prior: f64 = theta.iter().map(|t| (t / PRIOR_SD).powi(2)).sum();
        KAPPA * each.sum::<f64>() - 0.5 * prior
    };
    quadrature(density, &AT, &[0.2, 0.2], limit)
}

fn boxed() -> Prior {
    Prior {
        support: Support::Box(vec![LIMIT; 2]),
        ..Prior::normal(2, PRIOR_SD)
    }
}

fn law() -> Law {
    let fixed = [("log_shape".to_string(), 0.0)];
    let text = family("negative-binomial").unwrap().likelihood;
    Law::new("negative-binomial", text, &[], &fixed).unwrap()
}

fn model(table: &Table, data: &Dataset, law: Option<Law>) -> Arc<dyn Model> {
    let (names, norm) = (data.features(), data.row_norm());
    let model = match (table.kind, law) {
        (kind, Some(law)) => Regression::declared(names, law, kind, norm, boxed(), KAPPA),
        (LabelKind::Count { .. }, None) => {
            Regression::poisson(names, table.kind, norm, boxed(), KAPPA)
        }
        _ => Regression::linear(names, VARIANCE, table.kind, norm, boxed(), KAPPA),
    };
    Arc::new(model.unwrap().with_offset(OFFSET))
}

fn check(kind: LabelKind, law: Option<Law>, log: Log) {
    let table = offsets(kind);
    for packed in [false, true] {
        let data = || match packed {
            false => table.data(),
            true => table.data().in_16_bits(),
        };
        let rows = data().as_public().rows();
        let moments = exact(&table, &rows, log, 1.0, LIMIT);
        let without = exact(&table, &rows, log, 0.0, LIMIT);
        let apart = (moments[0].0 - without[0].0).abs() / moments[0].1;
        assert!(apart > 0.5, "the offsets do nothing: {apart}");
        let model = model(&table, &data(), law);
        let scale: Vec<f64> = moments.iter().map(|m| m.1).collect();
        for (k, (sampler, estimator, rule, _)) in samplers().into_iter().enumerate() {
            if !["mh", "barker", "poisson-barker"].contains(&sampler) {
                continue;
            }
            let mut curator = AnyCurator::new(
                data(),
                model.clone(),
                EngineChoice::Cpu,
                false,
                9 + k as u64,
            );
            let (steps, rules) = (TEST.of(200_000), (estimator, rule));
            let draws = run(&mut curator, &*model, rules, &AT, &scale, steps, k as u8);
            for (j, (column, exact)) in draws.iter().zip(&moments).enumerate() {
                let label = format!("{kind:?} {packed} {sampler} parameter {j}");
                TEST.assert_moments(&label, column, *exact);
            }
        }
    }
}

#[test]
#[ignore = "study"]
fn counts_with_an_exposure_match_quadrature() {
    check(COUNT, None, poisson);
}

#[test]
fn numbers_with_an_offset_match_quadrature() {
    check(NUMBER, None, linear);
}

#[test]
#[ignore = "study"]
fn a_declared_law_with_an_offset_matches_quadrature() {
    check(COUNT, Some(law()), geometric);
}

/// Chains around an anchor, on all rows and on minibatches.
#[test]
fn anchored_chains_with_an_offset_match_quadrature() {
    let table = offsets(COUNT);
    let anchor = table.anchor(AnchorNoise::expansion(0.0, 0.0), 40.0);
    let rows = table.data().as_public().rows();
    let moments = exact(&table, &rows, poisson, 1.0, FAR);
    let poisson = Estimator::Poisson {
        lambda: Lambda::Ratio(0.5),
    };
    let auto = |correlation| AnchoredProposal::Autoregressive { correlation };
    for (k, (estimator, rule)) in [
        (poisson, Acceptance::Barker),
        (Estimator::FullBatch, Acceptance::Metropolis),
    ]
    .into_iter()
    .enumerate()
    {
        let mut curator = table.open(50 + k as u64);
        let mut sampler = table.sampler(estimator, rule, auto(0.2));
        sampler.set_anchor(anchor.clone()).unwrap();
        curator.set_anchor(anchor.clone()).unwrap();
        let mut chains = Chains::new(&[AT.to_vec()], [k as u8; 32]);
        sampler.start_at_anchor(&mut chains);
        let mut draws = [Vec::new(), Vec::new()];
        for _ in 0..66_000 {
            sampler.step(&mut chains, &mut curator).unwrap();
            for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
                column.push(*v);
            }
        }
        for (j, (column, exact)) in draws.iter().zip(&moments).enumerate() {
            TEST.assert_moments(&format!("anchored {k} parameter {j}"), column, *exact);
        }
    }
}
