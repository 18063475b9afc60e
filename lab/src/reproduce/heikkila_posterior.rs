//! Figures 2 and 3 of Heikkilä et al. 2019: the posterior of the mixture on 10^6 rows.
//!
//! Their start by variational inference (0.21, 1e-6) is replaced by the origin, which costs
//! nothing.

use std::path::Path;

use rayon::prelude::*;

use super::drawing::shown;
use super::mixture::{exact_posterior, marginal};
use super::study::{Method, Problem, Role, Trace, run, run_all};
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::plot::{Axis, Mark, Plot};
use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::diagnostics::{CellDensity, Cells, mean, sd, total_variation};
use dpmc::synthetic;

/// κ = N0/N with N0 = 100; priors N(0, 10) and N(0, 1) by variance; the box is far out in
/// their tails and bounds a row's ratio.
const SETTINGS: &str = r#"
[data]
file = "made up"
[[data.features]]
column = "x"
clamp = [-8, 8]
[model]
kind = "mixture"
tempering = 1e-4
box = 6.0
prior = { kind = "normal", sd = [3.1622776601683795, 1.0] }
"#;
/// Rows beyond eight are 2e-7 of all: they are clipped to it.
const ROWS: u64 = 1_000_000;
const DELTA: f64 = 1e-6;
const STEPS: u64 = 20_000;
const BURN_IN: u64 = 1_000;
const RUNS: u64 = 20;
/// Cells a side for total variation and marginals.
const COARSE: u64 = 40;
/// N0 = κN, also of the fewer rows of quick runs.
const TEMPERED: f64 = 100.0;

/// The paper's proposal has variance 0.01: step 0.1.
const METHODS: &[Method<'_>] = &[
    Method::reference(
        "tuna-mh, step 0.1",
        "algorithm = 'tuna-mh'\nlambda = 1000\nstep = 0.1",
    ),
    // b = 1000 and C = 2 are the paper's, and the sampler's own; so is the clip √b/N.
    Method::sound(
        "dp-barker-subsampled, step 0.1",
        "algorithm = 'dp-barker-subsampled'\nbatch = 1000\nstep = 0.1",
    ),
    Method::ours(
        "poisson-barker, step 0.1",
        "algorithm = 'poisson-barker'\nlambda = 1000\nstep = 0.1",
    ),
    Method::ours(
        "poisson-barker, step 0.3",
        "algorithm = 'poisson-barker'\nlambda = 1000\nstep = 0.3",
    ),
    Method::ours(
        "poisson-barker, 5 x steps",
        "algorithm = 'poisson-barker'\nlambda = 1000\nstep = 0.3",
    )
    .stretched(5),
    Method::ours(
        "anchored-barker, 5 x steps",
        "algorithm = 'anchored-barker'\nstep = 0.6",
    )
    .within(0.05)
    .stretched(5),
];
/// Reads all rows each step: one run of it is all that a figure can wait for.
const FULL_DATA: Method<'_> = Method::sound(
    "dp-barker, all rows",
    "algorithm = 'dp-barker'\nvariance = 2.0\nstep = 0.1",
);

struct Study {
    rows: usize,
    settings: String,
    steps: u64,
    burn_in: u64,
    exact: CellDensity,
    /// On cells wide enough for distances of so many draws.
    coarse: CellDensity,
}

impl Study {
    fn new(effort: &Effort) -> Result<Self, ReproduceError> {
        let rows = effort.of(ROWS, 20_000) as usize;
        let kappa = TEMPERED / rows as f64;
        let settings = SETTINGS.replace("tempering = 1e-4", &format!("tempering = {kappa}"));
        let data = data(rows)?;
        let text = format!("{settings}[sampler]\nalgorithm = 'mh'");
        let plan = Plan::parse(Path::new("heikkila mixture"), text)?;
        let model = plan.model(&data)?;
        let exact = |side: u64| {
            let side = side as usize;
            let cells = Cells::new([-2.0, -4.0], [3.0, 4.0], [side, side])?;
            exact_posterior(&data, &*model, cells)
        };
        let (exact, coarse) = (exact(effort.of(120, 40))?, exact(COARSE)?);
        Ok(Study {
            rows,
            settings,
            steps: effort.of(STEPS, 400),
            burn_in: effort.of(BURN_IN, 50),
            exact,
            coarse,
        })
    }

    fn with<T>(&self, ask: impl FnOnce(&Problem<'_>) -> T) -> T {
        let rows = self.rows;
        ask(&Problem {
            settings: &self.settings,
            delta: DELTA,
            data: &|| data(rows),
        })
    }

    fn says(&self, runs: &str) -> String {
        format!(
            "N = {}, tempered to N0 = 100, {} iterations from the origin, the first {} left out, {runs}; minibatches at lambda = 1000.",
            self.rows, self.steps, self.burn_in
        )
    }
}

fn data(rows: usize) -> Result<Dataset, ReproduceError> {
    Ok(synthetic::mixture(rows, Some(8.0), 5)?)
}

/// Figure 2.
pub(super) fn posterior(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let study = Study::new(effort)?;
    let mut methods = METHODS.to_vec();
    methods.push(FULL_DATA);
    let traces = study.with(|problem| run_all(problem, &methods, study.steps))?;
    let cells = Cells::new([-1.5, -3.0], [2.5, 3.0], [48, 48])?;
    let coarse = study.coarse.cells();
    let mut plots = Vec::new();
    let mut marginals = [Vec::new(), Vec::new()];
    let mut rows = Vec::new();
    for (method, trace) in methods.iter().zip(&traces) {
        let draws = &trace.pairs()[study.burn_in as usize..];
        plots.push(joint(
            method.label,
            &cells,
            cells.shares(draws)?,
            &study.exact,
        ));
        let shares = coarse.shares(draws)?;
        for (j, marks) in marginals.iter_mut().enumerate() {
            marks.push(Mark::line(method.label, marginal(coarse, &shares, j)));
        }
        let moments = [0, 1].map(|j| moments(trace, study.burn_in, j));
        let distance = total_variation(draws, &study.coarse)?;
        rows.push(row(method, moments, format!("{distance:.3}"), trace));
    }
    for (j, mut marks) in marginals.into_iter().enumerate() {
        let exact = marginal(study.exact.cells(), study.exact.mass(), j);
        marks.push(Mark::dashed("exact", exact));
        plots.push(Plot {
            name: format!("Marginal of theta{}", j + 1),
            x: Axis::linear(&format!("theta{}", j + 1)),
            y: Axis::linear("density"),
            marks,
        });
    }
    let exact = [study.exact.moments(0), study.exact.moments(1)];
    let mut first = vec!["exact".to_string(), String::new()];
    first.extend(four(exact));
    first.resize(9, String::new());
    rows.insert(0, first);
    let table = Table {
        head: vec![
            "method",
            "role",
            "mean theta1",
            "variance theta1",
            "mean theta2",
            "variance theta2",
            "total variation",
            "rows a step",
            "spends in total",
        ],
        rows,
    };
    let says = study.says("one run each");
    let drawing = Drawing::new(figure, &says, (3, 200.0), plots, table);
    Ok(drawing.noting(NOTES))
}

const NOTES: &[&str] = &[
    "The paper's accounting of dp-barker-subsampled gives 1.00 for 20,000 steps (all orders; heikkila-1a), and its start by variational inference costs 0.22 more; the origin is free.",
    "spends: what a ledger charges for all steps; with a parameter box a certificate claims the budget, so set the budget to it.",
];

fn joint(name: &str, cells: &Cells, shares: Vec<f64>, exact: &CellDensity) -> Plot {
    Plot {
        name: name.into(),
        x: Axis::linear("theta1"),
        y: Axis::linear("theta2"),
        marks: vec![
            Mark::Map {
                label: name.into(),
                cells: cells.clone(),
                shares,
            },
            Mark::Contours {
                label: "exact posterior".into(),
                density: exact.clone(),
                masses: vec![0.5, 0.95],
            },
        ],
    }
}

fn row(method: &Method<'_>, m: [(f64, f64); 2], score: String, trace: &Trace) -> Vec<String> {
    let mut row = vec![method.label.to_string(), method.role.name().to_string()];
    row.extend(four(m));
    row.extend([score, format!("{:.0}", trace.rows_a_step()), trace.spent()]);
    row
}

fn four([(m1, v1), (m2, v2)]: [(f64, f64); 2]) -> [String; 4] {
    [m1, v1, m2, v2].map(|v| format!("{v:.3}"))
}

/// Mean and variance of one parameter after burn-in.
fn moments(trace: &Trace, burn_in: u64, j: usize) -> (f64, f64) {
    let kept = trace.draws.get(burn_in as usize..).unwrap_or(&[]);
    let values: Vec<f64> = kept.iter().map(|d| d[j]).collect();
    let spread = sd(&values);
    (mean(&values), spread * spread)
}

/// Errors of means and variances at each stop of a run, both parameters averaged: (ε, error
/// of the mean, error of the variance).
fn errors_of(study: &Study, trace: &Trace) -> Vec<(f64, f64, f64)> {
    let burn_in = study.burn_in as usize;
    let kept = trace.stops.iter();
    kept.filter(|s| s.iteration as usize >= burn_in + 2)
        .map(|stop| {
            let draws = &trace.draws[burn_in..stop.iteration as usize];
            let mut sums = (0.0, 0.0);
            for j in 0..2 {
                let values: Vec<f64> = draws.iter().map(|d| d[j]).collect();
                let (m, v) = study.exact.moments(j);
                sums.0 += 0.5 * (mean(&values) - m).abs();
                sums.1 += 0.5 * (sd(&values).powi(2) - v).abs();
            }
            (stop.epsilon, sums.0, sums.1)
        })
        .collect()
}

/// Figure 3.
pub(super) fn errors(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let study = Study::new(effort)?;
    let runs = effort.of(RUNS, 2);
    let private = METHODS.iter().filter(|m| m.role != Role::Reference);
    let mut curves: [Vec<Mark>; 2] = Default::default();
    let mut rows = Vec::new();
    for method in private {
        let traces: Vec<Trace> = study.with(|problem| {
            (1..=runs)
                .into_par_iter()
                .map(|seed| run(problem, method, study.steps, seed))
                .collect::<Result<_, _>>()
        })?;
        let all: Vec<Vec<(f64, f64, f64)>> = traces.iter().map(|t| errors_of(&study, t)).collect();
        let averaged = average(&all);
        let label = method.label.to_string();
        curves[0].push(Mark::line(
            &label,
            averaged.iter().map(|p| (p.0, p.1)).collect(),
        ));
        curves[1].push(Mark::line(
            &label,
            averaged.iter().map(|p| (p.0, p.2)).collect(),
        ));
        let end = averaged
            .last()
            .copied()
            .unwrap_or((f64::NAN, f64::NAN, f64::NAN));
        rows.push(vec![
            label,
            method.role.name().into(),
            format!("{:.3}", end.1),
            format!("{:.3}", end.2),
            format!("{:.0}", traces[0].rows_a_step()),
            shown(end.0),
        ]);
    }
    let [means, variances] = curves;
    let plots = [("Posterior mean", means), ("Posterior variance", variances)]
        .into_iter()
        .map(|(name, marks)| Plot {
            name: name.into(),
            x: Axis::log("total epsilon at delta = 1e-6"),
            y: Axis::log("mean absolute error"),
            marks,
        })
        .collect();
    let table = Table {
        head: vec![
            "method",
            "role",
            "error of means",
            "error of variances",
            "rows a step",
            "spends in total",
        ],
        rows,
    };
    let says = study.says(&format!("means over {runs} runs and both parameters"));
    let drawing = Drawing::new(figure, &says, (2, 260.0), plots, table);
    Ok(drawing.noting(NOTES))
}

/// Averages curves of the same stops.
fn average(all: &[Vec<(f64, f64, f64)>]) -> Vec<(f64, f64, f64)> {
    let stops = all.iter().map(Vec::len).min().unwrap_or(0);
    let n = all.len() as f64;
    (0..stops)
        .map(|k| {
            all.iter().map(|run| run[k]).fold((0.0, 0.0, 0.0), |s, p| {
                (s.0 + p.0 / n, s.1 + p.1 / n, s.2 + p.2 / n)
            })
        })
        .collect()
}
