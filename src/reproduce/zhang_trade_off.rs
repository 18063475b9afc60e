//! Figure 4 of Zhang & Zhang 2023: what λ and the step trade on the mixture.

use rayon::prelude::*;

use super::drawing::shown;
use super::study::{Method, Problem, Role, run};
use super::zhang_mixture::{EPSILON, KL, Mixture, NOTES, data};
use super::zhang_settings::{DELTA, LAMBDAS, MIXTURE, STEPS, TRADE_OFF_RUNS};
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::output::plot::{Axis, Mark, Plot};

/// ε, rows a step, acceptance, symmetric KL: means over the runs.
type Means = [f64; 4];

/// Figure 4.
pub(super) fn draw(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let study = Mixture::new(effort)?;
    let runs = effort.of(TRADE_OFF_RUNS, 2);
    let (mut plots, mut rows) = (Vec::new(), Vec::new());
    for (name, fixed, values) in [
        ("lambda", "step = 0.06", LAMBDAS),
        ("step", "lambda = 300", STEPS),
    ] {
        let mut curves: [Vec<(f64, f64)>; 4] = Default::default();
        for value in values {
            let sampler = format!("algorithm = 'poisson-barker'\n{fixed}\n{name} = {value}");
            let means = means(&study, &sampler, runs)?;
            for (curve, mean) in curves.iter_mut().zip(means) {
                curve.push((value, mean));
            }
            rows.push(row(&format!("poisson-barker, {name} = {value}"), means));
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
                marks: vec![Mark::line("poisson-barker", points)],
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
    let settings = format!(
        "Upper panels: lambda at step 0.06; lower: step at lambda = 300. {} K belongs to DP-Fast MH, which is not run here.",
        study.settings(&format!("means of {runs} runs"))
    );
    let drawing = Drawing::new(figure, &settings, (4, 150.0), plots, table);
    Ok(drawing.noting(NOTES))
}

fn means(study: &Mixture, sampler: &str, runs: u64) -> Result<Means, ReproduceError> {
    let method = Method {
        label: "poisson-barker",
        role: Role::Ours,
        claim: "",
        sampler,
        stretch: 1,
    };
    let problem = Problem {
        settings: MIXTURE,
        delta: DELTA,
        data: &|| data(study.rows),
    };
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
