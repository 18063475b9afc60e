//! Figure 4 of Zhang & Zhang 2023: what λ, the step and K trade on the mixture.

use rayon::prelude::*;

use super::drawing::shown;
use super::study::{Method, Problem, run};
use super::zhang_mixture::{EPSILON, KL, Mixture, NOTES, data};
use super::zhang_settings::{CAP_RUNS, CAPS, DELTA, LAMBDAS, MIXTURE, STEPS, TRADE_OFF_RUNS};
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::plot::{Axis, Mark, Plot};

/// ε, rows a step, acceptance, symmetric KL: means over the runs.
type Means = [f64; 4];

/// One row of panels: a sampler by one of its settings.
struct Sweep {
    algorithm: &'static str,
    /// Its fixed settings.
    fixed: &'static str,
    /// The key that varies, its name in the picture and its values.
    key: &'static str,
    name: &'static str,
    values: [f64; 6],
    runs: u64,
}

const SWEEPS: [Sweep; 3] = [
    Sweep {
        algorithm: "poisson-barker",
        fixed: "step = 0.06",
        key: "lambda",
        name: "lambda",
        values: LAMBDAS,
        runs: TRADE_OFF_RUNS,
    },
    Sweep {
        algorithm: "poisson-barker",
        fixed: "lambda = 300",
        key: "step",
        name: "step",
        values: STEPS,
        runs: TRADE_OFF_RUNS,
    },
    Sweep {
        algorithm: "dp-fast-mh",
        fixed: "lambda = 10\nstep = 0.06",
        key: "batch_cap",
        name: "K",
        values: CAPS,
        runs: CAP_RUNS,
    },
];

/// Figure 4.
pub(super) fn draw(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let study = Mixture::new(effort)?;
    let (mut plots, mut rows) = (Vec::new(), Vec::new());
    for sweep in &SWEEPS {
        let (algorithm, name) = (sweep.algorithm, sweep.name);
        let mut curves: [Vec<(f64, f64)>; 4] = Default::default();
        for value in sweep.values {
            let means = means(&study, sweep, value, effort)?;
            for (curve, mean) in curves.iter_mut().zip(means) {
                curve.push((value, mean));
            }
            rows.push(row(&format!("{algorithm}, {name} = {value}"), means));
        }
        let axes = [
            ("Cost", Axis::log(EPSILON)),
            ("Reads", Axis::log("expected rows a step")),
            ("Acceptance", Axis::linear("share of moves")),
            ("Distance", Axis::log(KL)),
        ];
        for ((title, y), points) in axes.into_iter().zip(curves) {
            plots.push(Plot {
                name: format!("{title} by {name}"),
                x: Axis::log(name),
                y,
                marks: vec![Mark::line(algorithm, points)],
            });
        }
    }
    let table = Table {
        head: vec![
            "method",
            "spends in total",
            "rows a step",
            "accepted",
            "final KL",
        ],
        rows,
    };
    let runs = format!("means of {TRADE_OFF_RUNS} runs ({CAP_RUNS} by K)");
    let settings = format!(
        "From above: poisson-barker by lambda at step 0.06, by the step at lambda = 300; sound dp-fast-mh by K at lambda = 10, step 0.06. {}",
        study.settings(&runs)
    );
    let drawing = Drawing::new(figure, &settings, (4, 150.0), plots, table);
    Ok(drawing.noting(NOTES))
}

/// Means over the runs at one value.
fn means(
    study: &Mixture,
    sweep: &Sweep,
    value: f64,
    effort: &Effort,
) -> Result<Means, ReproduceError> {
    let sampler = format!(
        "algorithm = '{}'\n{}\n{} = {value}",
        sweep.algorithm, sweep.fixed, sweep.key
    );
    // Either role pays from a ledger.
    let method = Method::ours(sweep.algorithm, &sampler);
    let problem = Problem {
        settings: MIXTURE,
        delta: DELTA,
        data: &|| data(study.rows),
    };
    let runs = effort.of(sweep.runs, 2);
    let all: Vec<Means> = (1..=runs)
        .into_par_iter()
        .map(|seed| {
            let trace = run(&problem, &method, study.steps, seed)?;
            let kl = study.divergence(&trace.pairs())?;
            Ok([
                trace.end().epsilon,
                trace.rows_a_step(),
                trace.acceptance,
                kl,
            ])
        })
        .collect::<Result<_, ReproduceError>>()?;
    Ok([0, 1, 2, 3].map(|k| all.iter().map(|m| m[k]).sum::<f64>() / runs as f64))
}

fn row(label: &str, [epsilon, read, accepted, kl]: Means) -> Vec<String> {
    vec![
        label.into(),
        shown(epsilon),
        format!("{read:.0}"),
        format!("{accepted:.3}"),
        format!("{kl:.3}"),
    ]
}
