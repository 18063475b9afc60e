//! Figure 3 of Räisä 2021: what clipping of log-likelihood ratios does, all noise switched off.

use super::raisa_run::{CHAINS, Entry, Score, average};
use super::raisa_targets::{Kind, REFERENCE, ROWS, Target};
use super::study::Role;
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::plot::{Axis, Mark, Plot};

/// Runs of each.
const REPEATS: u64 = 1;
/// Nats a unit of ‖θ'−θ‖₂ (their code).
const BANANA: [f64; 9] = [0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.5, 1.0, 10.0];
const GAUSSIAN: [f64; 9] = [0.1, 0.2, 1.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0];

/// Their random walk and their trajectories on each problem: iterations and all of the sampler's
/// section but its clip.
const WALKS: [(Kind, u64, &str, &[f64]); 2] = [
    (Kind::Banana, 12_000, "step = 0.3", &BANANA),
    (Kind::Gaussian, 25_000, "step = 0.0007", &GAUSSIAN),
];
const TRAJECTORIES: [(Kind, u64, &str, &[f64]); 2] = [
    (
        Kind::Banana,
        1_000,
        "step = 0.01\nleapfrog_steps = 100\njitter = [0.0, 1.0]\ngradient = { clip = 10.0 }",
        &BANANA,
    ),
    (
        Kind::Gaussian,
        1_000,
        "step = 0.0005\nleapfrog_steps = 12\njitter = [0.0, 1.0]\ngradient = { clip = 100.0 }",
        &GAUSSIAN,
    ),
];

/// Figure 3.
pub(super) fn draw(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let rows = effort.of(ROWS, 2_000) as usize;
    let (mut plots, mut table) = (Vec::new(), Vec::new());
    for kind in [Kind::Banana, Kind::Gaussian] {
        let target = Target::new(kind, rows)?;
        let mut marks = [Vec::new(), Vec::new()];
        for (algorithm, settings) in [("mh", WALKS), ("hmc", TRAJECTORIES)] {
            let found = settings.into_iter().find(|(k, ..)| *k == kind);
            let Some((_, iterations, fixed, bounds)) = found else {
                continue;
            };
            let scores = sweep(&target, algorithm, (iterations, fixed, bounds), effort)?;
            for (curve, of) in marks.iter_mut().zip([mmd, mean_error]) {
                let points = bounds.iter().zip(&scores).map(|(b, s)| (*b, of(s)));
                curve.push(Mark::line(algorithm, points.collect()));
            }
            for (bound, score) in bounds.iter().zip(&scores) {
                table.push(row(&target, algorithm, *bound, score));
            }
        }
        let titles = [
            ("MMD", Axis::log("MMD")),
            ("shift", Axis::log("error of the mean")),
        ];
        for ((title, y), marks) in titles.into_iter().zip(marks) {
            plots.push(Plot {
                name: format!("{}, {title}", target.name()),
                x: Axis::log("clip bound, nats a unit of length"),
                y,
                marks,
            });
        }
    }
    let table = Table {
        head: vec![
            "problem",
            "method",
            "clip",
            "accepted",
            "MMD",
            "error of the mean",
            "R-hat",
        ],
        rows: table,
    };
    let says = format!(
        "n = {rows}, {CHAINS} chains, no noise, one run each, first halves left out, {REFERENCE} exact draws."
    );
    let drawing = Drawing::new(figure, &says, (2, 250.0), plots, table);
    Ok(drawing.noting(&[
        "Nothing here is private: with noise off only the bias of clipped ratios is left, and what the chains have not yet forgotten of their starts.",
    ]))
}

fn mmd(score: &Score) -> f64 {
    score.mmd
}

fn mean_error(score: &Score) -> f64 {
    score.mean_error
}

/// One score a clip bound.
fn sweep(
    target: &Target,
    algorithm: &'static str,
    (iterations, fixed, bounds): (u64, &str, &[f64]),
    effort: &Effort,
) -> Result<Vec<Score>, ReproduceError> {
    bounds
        .iter()
        .map(|bound| {
            let entry = Entry {
                label: algorithm,
                role: Role::Reference,
                sampler: format!(
                    "algorithm = '{algorithm}'\nclip = {{ rate = {bound:?} }}\n{fixed}"
                ),
                share: 0.0,
                most: effort.of(iterations, 20),
                repeats: REPEATS,
            };
            average(target, &entry, None)
        })
        .collect()
}

fn row(target: &Target, algorithm: &str, bound: f64, score: &Score) -> Vec<String> {
    vec![
        target.name().into(),
        algorithm.into(),
        format!("{bound}"),
        format!("{:.2}", score.acceptance),
        format!("{:.3}", score.mmd),
        format!("{:.2e}", score.mean_error),
        format!("{:.2}", score.r_hat),
    ]
}
