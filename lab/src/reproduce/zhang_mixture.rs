//! Figures 1, 2 and 4 of Zhang & Zhang 2023: the mixture.

use std::path::Path;

use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

use super::drawing::shown;
use super::mixture::{exact_posterior, marginal};
use super::study::{Method, Problem, Stop, Trace, run_all};
use super::zhang_settings::{
    CLAIMED_EPSILON, DELTA, MIXTURE, MIXTURE_METHODS, MIXTURE_ROWS, MIXTURE_STEPS, PUBLISHED_NOTE,
};
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::plot::{Axis, Mark, Plot};
use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::diagnostics::{CellDensity, Cells, symmetric_kl};
use dpmc::privacy::accountant::{Question, Sequence, account_without_losses};
use dpmc::privacy::{Event, Neighbours};
use dpmc::synthetic;

/// Cells a side of the reference's histogram (their code).
const BINS: usize = 99;
/// Cells a side of the exact posterior.
const FINE: u64 = 160;
/// Cells a side of the pictures' histograms.
const COARSE: usize = 48;

pub(super) const KL: &str = "symmetric KL, nats";
pub(super) const EPSILON: &str = "total epsilon at delta = 1e-5";
pub(super) const NOTES: &[&str] = &[
    PUBLISHED_NOTE,
    "spends: what a ledger charges for all steps; with a parameter box a certificate claims the budget, so set the budget to it.",
];

/// The experiment on which figures 1, 2 and 4 look.
pub(super) struct Mixture {
    pub rows: usize,
    pub steps: u64,
    exact: CellDensity,
    reference: Vec<[f64; 2]>,
}

impl Mixture {
    pub fn new(effort: &Effort) -> Result<Self, ReproduceError> {
        let rows = effort.of(MIXTURE_ROWS, 5_000) as usize;
        let data = data(rows)?;
        let plan = Plan::parse(
            Path::new("zhang mixture"),
            format!("{MIXTURE}[sampler]\nalgorithm = 'mh'"),
        )?;
        let side = effort.of(FINE, 40) as usize;
        let cells = Cells::new([-3.0; 2], [3.0; 2], [side, side])?;
        let exact = exact_posterior(&data, &*plan.model(&data)?, cells)?;
        let draws = effort.of(200_000, 20_000) as usize;
        let reference = exact.draws(draws, &mut ChaCha12Rng::seed_from_u64(11));
        Ok(Mixture {
            rows,
            steps: effort.of(MIXTURE_STEPS, 400),
            exact,
            reference,
        })
    }

    pub fn run(&self, methods: &[Method<'_>]) -> Result<Vec<Trace>, ReproduceError> {
        let rows = self.rows;
        let problem = Problem {
            settings: MIXTURE,
            delta: DELTA,
            data: &|| data(rows),
        };
        run_all(&problem, methods, self.steps)
    }

    /// Symmetric KL of the first draws.
    pub fn divergence(&self, draws: &[[f64; 2]]) -> Result<f64, ReproduceError> {
        Ok(symmetric_kl(&self.reference, draws, BINS)?)
    }

    /// Symmetric KL at every stop of a run.
    fn divergences(&self, trace: &Trace) -> Result<Vec<(Stop, f64)>, ReproduceError> {
        let pairs = trace.pairs();
        trace
            .stops
            .iter()
            .map(|stop| Ok((*stop, self.divergence(&pairs[..stop.iteration as usize])?)))
            .collect()
    }

    /// Symmetric KL of as many independent draws: what no chain beats.
    fn floor(&self, counts: &[u64]) -> Result<Vec<(f64, f64)>, ReproduceError> {
        let most = counts.iter().copied().max().unwrap_or(0) as usize;
        let own = self.exact.draws(most, &mut ChaCha12Rng::seed_from_u64(12));
        counts
            .iter()
            .map(|&n| Ok((n as f64, self.divergence(&own[..n as usize])?)))
            .collect()
    }

    /// One plot of one run each, with its table.
    fn drawing(&self, figure: &Figure, plot: Plot, table: Table) -> Drawing {
        let settings = self.settings("one run each");
        Drawing::new(figure, &settings, (1, 330.0), vec![plot], table).noting(NOTES)
    }

    pub fn settings(&self, runs: &str) -> String {
        format!(
            "N = {}, T = 500, {} iterations from the origin, {runs}, {BINS} x {BINS} cells, {} reference draws.",
            self.rows,
            self.steps,
            self.reference.len()
        )
    }
}

/// The rows: ½N(0, 2) + ½N(1, 2) truncated to ±3.
pub(super) fn data(rows: usize) -> Result<Dataset, ReproduceError> {
    Ok(synthetic::mixture(rows, Some(3.0), 3)?)
}

/// The panels' curves: (x of a stop, symmetric KL) of every method.
fn divergence_curves(
    figure: &Figure,
    effort: &Effort,
    x: Axis,
    place: fn(Stop) -> f64,
    with_floor: bool,
) -> Result<Drawing, ReproduceError> {
    let study = Mixture::new(effort)?;
    let traces = study.run(MIXTURE_METHODS)?;
    let scores = traces
        .iter()
        .map(|t| study.divergences(t))
        .collect::<Result<Vec<_>, _>>()?;
    let mut marks: Vec<Mark> = MIXTURE_METHODS
        .iter()
        .zip(&scores)
        .map(|(m, s)| {
            Mark::line(
                m.label,
                s.iter().map(|(at, kl)| (place(*at), *kl)).collect(),
            )
        })
        .collect();
    if with_floor {
        let longest = traces.iter().max_by_key(|t| t.draws.len());
        let stops = longest.map_or(&[][..], |t| &t.stops[..]);
        let counts: Vec<u64> = stops.iter().map(|s| s.iteration).collect();
        marks.push(Mark::dashed("independent draws", study.floor(&counts)?));
    }
    let plot = Plot {
        name: "Distance from the posterior".into(),
        x,
        y: Axis::log(KL),
        marks,
    };
    Ok(study.drawing(figure, plot, comparison(&traces, &scores)))
}

/// Figure 1a.
pub(super) fn divergence_by_iteration(f: &Figure, e: &Effort) -> Result<Drawing, ReproduceError> {
    let x = Axis::log("iterations");
    divergence_curves(f, e, x, |stop| stop.iteration as f64, true)
}

/// Figure 1b.
pub(super) fn divergence_by_rows(f: &Figure, e: &Effort) -> Result<Drawing, ReproduceError> {
    let x = Axis::log("expected rows read");
    divergence_curves(f, e, x, |stop| stop.rows, false)
}

/// One row a method: claim, cost, reads, acceptance, accuracy, and the cost of being as good
/// as non-private MH was in the end.
fn comparison(traces: &[Trace], scores: &[Vec<(Stop, f64)>]) -> Table {
    let last = |s: &[(Stop, f64)]| s.last().map_or(f64::NAN, |(_, kl)| *kl);
    let goal = last(&scores[0]);
    let mut rows = Vec::new();
    for ((method, trace), score) in MIXTURE_METHODS.iter().zip(traces).zip(scores) {
        let reached = score.iter().find(|(_, kl)| *kl <= goal);
        rows.push(vec![
            method.label.into(),
            method.role.name().into(),
            method.claim.into(),
            trace.spent(),
            format!("{:.0}", trace.rows_a_step()),
            format!("{:.2}", trace.acceptance),
            format!("{:.3}", last(score)),
            match (method.role.is_private(), reached) {
                (false, _) => String::new(),
                (_, Some((stop, _))) => {
                    format!("{} ({} steps)", shown(stop.epsilon), stop.iteration)
                }
                (_, None) => "not reached".into(),
            },
        ]);
    }
    Table {
        head: vec![
            "method",
            "role",
            "paper claims a step",
            "spends in total",
            "rows a step",
            "accepted",
            "final KL",
            "epsilon when as good as mh at its end",
        ],
        rows,
    }
}

/// Figure 1c.
pub(super) fn cost(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let study = Mixture::new(effort)?;
    let traces = study.run(MIXTURE_METHODS)?;
    let stops: Vec<u64> = traces[0].stops.iter().map(|s| s.iteration).collect();
    let basic = stops
        .iter()
        .map(|&k| (k as f64, CLAIMED_EPSILON * k as f64))
        .collect();
    let advanced = stops
        .iter()
        .map(|&k| {
            let step = Event::Pure {
                epsilon: CLAIMED_EPSILON,
            };
            let sequence = Sequence::new(Neighbours::Substitution, vec![(step, k)])?;
            let question = Question::Epsilon { delta: DELTA };
            Ok((k as f64, account_without_losses(&sequence, question).upper))
        })
        .collect::<Result<_, ReproduceError>>()?;
    let mut marks = vec![
        Mark::dashed("dp-fast-mh as published, its claim added up", basic),
        Mark::dashed(
            "dp-fast-mh as published, its claim composed (delta grows by 1e-5 a step)",
            advanced,
        ),
    ];
    for (method, trace) in MIXTURE_METHODS.iter().zip(&traces) {
        let points: Vec<(f64, f64)> = trace
            .stops
            .iter()
            .filter(|s| s.epsilon.is_finite())
            .map(|s| (s.iteration as f64, s.epsilon))
            .collect();
        if !points.is_empty() {
            marks.push(Mark::line(method.label, points));
        }
    }
    let plot = Plot {
        name: "Total cost".into(),
        x: Axis::log("iterations"),
        y: Axis::log(EPSILON),
        marks,
    };
    let scores = traces
        .iter()
        .map(|t| study.divergences(t))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(study.drawing(figure, plot, comparison(&traces, &scores)))
}

/// Figure 1d.
pub(super) fn marginals(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let study = Mixture::new(effort)?;
    let traces = study.run(MIXTURE_METHODS)?;
    let cells = Cells::new([-3.0; 2], [3.0; 2], [COARSE, COARSE])?;
    let mut plots = Vec::new();
    for (j, name) in [(0, "theta1"), (1, "theta2")] {
        let mut marks = Vec::new();
        for (method, trace) in MIXTURE_METHODS.iter().zip(&traces) {
            let shares = cells.shares(&trace.pairs())?;
            marks.push(Mark::line(method.label, marginal(&cells, &shares, j)));
        }
        let exact = marginal(study.exact.cells(), study.exact.mass(), j);
        marks.push(Mark::dashed("exact", exact));
        plots.push(Plot {
            name: name.into(),
            x: Axis::linear(name),
            y: Axis::linear("density"),
            marks,
        });
    }
    let table = moments(&study, &traces);
    let drawing = Drawing::new(
        figure,
        &study.settings("one run each"),
        (2, 260.0),
        plots,
        table,
    );
    Ok(drawing.noting(NOTES))
}

/// Figure 2.
pub(super) fn joint(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let study = Mixture::new(effort)?;
    let traces = study.run(MIXTURE_METHODS)?;
    let cells = Cells::new([-1.5, -2.5], [2.5, 2.5], [COARSE, COARSE])?;
    let mut plots = Vec::new();
    for (method, trace) in MIXTURE_METHODS.iter().zip(&traces) {
        plots.push(Plot {
            name: method.label.into(),
            x: Axis::linear("theta1"),
            y: Axis::linear("theta2"),
            marks: vec![
                Mark::Map {
                    label: method.label.into(),
                    cells: cells.clone(),
                    shares: cells.shares(&trace.pairs())?,
                },
                Mark::Contours {
                    label: "exact posterior".into(),
                    density: study.exact.clone(),
                    masses: vec![0.5, 0.95],
                },
            ],
        });
    }
    let table = moments(&study, &traces);
    let drawing = Drawing::new(
        figure,
        &study.settings("one run each"),
        (3, 200.0),
        plots,
        table,
    );
    Ok(drawing.noting(NOTES))
}

/// Moments of every method beside the exact ones, and what they cost.
fn moments(study: &Mixture, traces: &[Trace]) -> Table {
    let row = |label: &str, moments: [(f64, f64); 2], claim: &str, spent: String| {
        let number = |v: f64| format!("{v:.3}");
        let [(m1, v1), (m2, v2)] = moments;
        let mut cells = vec![label.to_string()];
        cells.extend([m1, v1.sqrt(), m2, v2.sqrt()].map(number));
        cells.extend([claim.to_string(), spent]);
        cells
    };
    let exact = [study.exact.moments(0), study.exact.moments(1)];
    let mut rows = vec![row("exact", exact, "", String::new())];
    for (method, trace) in MIXTURE_METHODS.iter().zip(traces) {
        let found = [0, 1].map(|j| {
            let values: Vec<f64> = trace.draws.iter().map(|d| d[j]).collect();
            let sd = dpmc::diagnostics::sd(&values);
            (dpmc::diagnostics::mean(&values), sd * sd)
        });
        rows.push(row(method.label, found, method.claim, trace.spent()));
    }
    Table {
        head: vec![
            "method",
            "mean theta1",
            "sd theta1",
            "mean theta2",
            "sd theta2",
            "paper claims a step",
            "spends in total",
        ],
        rows,
    }
}
