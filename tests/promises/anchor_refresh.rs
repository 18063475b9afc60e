//! An anchor that is refreshed after warm-up: it lies at the mean of the warm-up's second half, is
//! paid for by its share, takes the first one's place, and is not released twice.

use std::path::Path;
use std::sync::Arc;

use crate::common::chains::{assert_moments, log_posterior_by_curator, quadrature};
use crate::common::place::{Place, RUN, edit};
use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::model::{Anchor, AnchorRelease, Prior, Regression};
use dpmc::posterior_run::{PosteriorRun, RunState, Status};
use dpmc::privacy::Curator;
use dpmc::sampler::Chains;
use dpmc::synthetic;

const KAPPA: f64 = 0.7;

fn data() -> Dataset {
    synthetic::logistic(120, &[1.5, -1.0], 5).unwrap()
}

fn model() -> Arc<Regression> {
    let d = data();
    Arc::new(
        Regression::logistic(d.features(), d.row_norm(), Prior::normal(2, 0.5), KAPPA).unwrap(),
    )
}

fn plan(privacy: &str, sampler: &str, iterations: u64) -> Plan {
    let text = format!(
        "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-3, 3]\n[model]\nkind = \"logistic\"\ntempering = {KAPPA}\nprior = {{ kind = \"normal\", sd = 0.5 }}\n[sampler]\nalgorithm = \"anchored-barker\"\n{sampler}\n[run]\nwarmup = 400\niterations = {iterations}\n[privacy]\n{privacy}\n"
    );
    Plan::parse(Path::new("made-up.toml"), text).unwrap()
}

fn start(plan: &Plan, seed: u64) -> PosteriorRun {
    let d = data();
    let sampler = plan.sampler(&*model(), d.rows(), d.row_norm()).unwrap();
    let chains = Chains::new(&plan.starts(&*model(), [1; 32]).unwrap(), [1; 32]);
    let ledger = plan.ledger(&sampler, &*model(), d.rows()).unwrap();
    let curator = match ledger {
        Some(ledger) => {
            Curator::private(d, model(), EngineChoice::Cpu, ledger, Some(seed)).unwrap()
        }
        None => Curator::not_private(d, model(), EngineChoice::Cpu, seed)
            .unwrap()
            .into_curator(),
    };
    let length = plan.length().unwrap();
    PosteriorRun::new(curator, sampler, chains, length, String::new(), vec![])
}

fn anchor(state: &RunState) -> Anchor {
    match &state.anchor {
        Some(AnchorRelease::Expansion(anchor)) => anchor.clone(),
        other => panic!("no expansion: {other:?}"),
    }
}

fn spent(run: &PosteriorRun) -> f64 {
    run.curator().ledger().unwrap().spent()
}

fn theta(state: &RunState) -> Vec<f64> {
    let value = serde_json::to_value(&state.chains).unwrap();
    let values = value["thetas"].as_array().unwrap().iter();
    let rows = values.flat_map(|row| row.as_array().unwrap().iter());
    rows.map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn the_second_anchor_lies_at_the_mean_of_warm_up_and_costs_its_share() {
    let private = plan(
        "epsilon = 20.0\ndelta = 1e-6",
        "clip = { share = 1e-4 }\nanchor = { refresh = 0.3 }",
        50,
    );
    let mut run = start(&private, 3);
    let mut sum = [0.0; 2];
    for i in 1..=400 {
        assert_eq!(*run.step(), Status::Running);
        if i > 200 {
            for (s, t) in sum.iter_mut().zip(theta(&run.state(0))) {
                *s += t / 200.0;
            }
        }
    }
    let (first, before) = (anchor(&run.state(0)), spent(&run));
    run.step();
    let (second, after) = (anchor(&run.state(0)), spent(&run));
    // Gaussian DP keeps a 64th from what decisions may leave behind.
    let budget = run.curator().ledger().unwrap().limit();
    let price = (after - before) / budget;
    assert!((0.2953..0.3005).contains(&price), "{price}");
    for (j, (at, mean)) in second.at.iter().zip(sum).enumerate() {
        assert!(
            (at - mean).abs() < 1e-12 && *at != first.at[j],
            "{at} {mean}"
        );
    }
    assert_eq!(second.metric, first.metric);
    assert!(second.contains(&theta(&run.state(0))));
    run.step();
    assert_eq!(anchor(&run.state(0)), second, "released again");
    assert!(spent(&run) - after < 0.02 * budget);
    while *run.step() == Status::Running {}
    assert_eq!(*run.status(), Status::Finished);
    assert!(spent(&run) <= budget);
}

/// Exact anchors leave the posterior as it is, however many of them: the second replaces the
/// first, and does not add to it. Tolerances as in `anchored.rs`.
#[test]
fn a_refreshed_chain_matches_quadrature_of_the_posterior() {
    let sampler = "clip = { share = 1.0 }\nanchor = { clip = 100.0, radius = 30.0, refresh = 0.1 }";
    let mut run = start(&plan("not_private = true", sampler, 60_000), 8);
    while *run.step() == Status::Running {}
    assert_eq!(*run.status(), Status::Finished);
    let (draws, _) = run.take_draws();
    let log_posterior = log_posterior_by_curator(data, model(), vec![0.7, -0.5]);
    let exact = quadrature(log_posterior, &[0.7, -0.5], &[0.25, 0.25], 1e9);
    for (j, exact) in exact.into_iter().enumerate() {
        let column: Vec<f64> = draws.iter().map(|d| d.theta[j]).collect();
        assert_moments(&format!("parameter {j}"), &column, exact);
    }
}

#[test]
fn refreshing_without_warm_up_or_a_share_is_refused_and_a_resumed_run_refreshes_once() {
    let run = edit(
        RUN,
        "algorithm = \"barker\"\nstep = 0.0001",
        "algorithm = \"anchored-barker\"\nclip = { share = 1e-4 }\nanchor = { refresh = 0.2 }",
    );
    let message = Place::new(&run).refuses("check run.toml");
    assert!(
        message.contains("sampler.anchor.refresh") && message.contains("warmup"),
        "{message}"
    );
    let whole = edit(
        &edit(&run, "refresh = 0.2", "refresh = 1.2"),
        "[run]",
        "[run]\nwarmup = 200",
    );
    let message = Place::new(&whole).refuses("check run.toml");
    assert!(
        message.contains("sampler.anchor.refresh: is a share"),
        "{message}"
    );

    let run = edit(
        &edit(&run, "[run]", "[run]\nwarmup = 200"),
        "epsilon = 5.0",
        "epsilon = 30.0",
    );
    let place = Place::new(&run);
    let check = place.works("check run.toml");
    assert!(check.contains("for a second one after warm-up"), "{check}");
    place.works("sample run.toml --out out --iterations 100");
    let (state, ledger) = (place.json("out/state.json"), place.json("out/ledger.json"));
    place.works("sample --resume out --iterations 200");
    assert_eq!(place.json("out/state.json")["anchor"], state["anchor"]);
    let rho = crate::common::place::spent;
    assert!(rho(&place.json("out/ledger.json")) < 1.1 * rho(&ledger));
}
