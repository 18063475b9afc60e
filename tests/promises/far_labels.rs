//! The promise: an anchor finds the mode of a law whose scores fall off far out, on labels that are
//! a small part of their declared range, so that the way begins where rows say nothing.

use std::path::Path;

use crate::common::anchored_run::AnchoredRun;
use dpmc::config::Plan;
use dpmc::data::{Dataset, LabelKind};
use dpmc::engine::EngineChoice;

const ROWS: usize = 20_000;
const HIGHEST: f64 = 10_000.0;
/// About the mode, for an intercept, a number and a group of a tenth of the rows.
const MODE: [f64; 3] = [499.0, 201.0, -151.0];
/// Thirty sds of a run's noise.
const NEAR: f64 = 100.0;
const RUNS: u64 = 24;

/// Labels about 500 with tails of a Cauchy law that ends.
fn data() -> Dataset {
    let names = ["intercept", "x1", "x2"].map(String::from).to_vec();
    let label = LabelKind::Number {
        low: 0.0,
        high: HIGHEST,
    };
    let mut set = Dataset::builder_with(names, Some(label), 3f64.sqrt()).unwrap();
    for i in 0..ROWS {
        let x = (2.9 * i as f64).sin();
        let rare = f64::from(u8::from(i % 11 == 0));
        let u = (i as f64 * 0.618_033_988_7).fract();
        let tail = (0.9 * std::f64::consts::PI * (u - 0.5)).tan();
        let y = 500.0 + 200.0 * x - 150.0 * rare + 120.0 * tail;
        let row = [1.0, x as f32, rare as f32];
        set.push_value(&row, Some(y.max(0.0))).unwrap();
    }
    set.finish().unwrap()
}

/// Of 24 runs at ε = 6 no more than 3 end far from the mode (one does); where steps that turn back
/// on each other were not shortened, 9 did.
#[test]
#[ignore = "study"]
fn the_way_from_far_labels_does_not_bounce() {
    let text = format!(
        "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\nclamp = [0, {HIGHEST}]\n[[data.features]]\nintercept = true\n[[data.features]]\ncolumns = [\"x1\", \"x2\"]\nclamp = [-1, 1]\n[model]\nkind = \"student-t\"\nconstants = {{ log_sigma = 4.8, nu = 4 }}\nprior = {{ kind = \"normal\", sd = 1000 }}\n[sampler]\nalgorithm = \"dp-laplace\"\n[run]\nchains = 1\niterations = 100\n[privacy]\nepsilon = 6\ndelta = 1e-6\n"
    );
    let plan = Plan::parse(Path::new("made-up.toml"), text).unwrap();
    let is_far = |seed: &u64| {
        let run = AnchoredRun::of(&plan, data(), EngineChoice::Cpu, *seed).unwrap();
        (0..3).any(|j| (run.moments(j).0 - MODE[j]).abs() > NEAR)
    };
    let far = (0..RUNS).filter(is_far).count();
    println!("{far} of {RUNS} runs ended far away");
    assert!(far <= 3, "{far}");
}
