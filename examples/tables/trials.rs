//! Every method at every ε, repeat after repeat, on one table.

use std::path::Path;

use super::arguments::Arguments;
use super::glm::{Problem, log_loss};
use super::objective_perturbation::Neighbours;
use super::outcome::Outcome;
use super::reference::{Reference, reference};
use super::report::Report;
use super::score::{Score, Trial};
use super::table::Table;
use super::yardstick::Yardstick;
use super::{adassp, diffprivlib, gradient_descent, made_up, objective_perturbation, private_run};

pub const DELTA: f64 = 1e-6;
/// Draws of the exact posterior: of a table whose labels stay, and of one repeat's labels.
const DRAWS: (usize, usize) = (2000, 400);
/// Normal quantile of a central 90 % interval.
const Z90: f64 = 1.644_853_626_951_472_2;

/// Trials by ε and method, in the order of the methods' first use.
#[derive(Default)]
struct Trials {
    lines: Vec<Line>,
}

/// One method at one ε.
struct Line {
    /// Which ε.
    e: usize,
    method: String,
    trials: Vec<Result<Trial, String>>,
}

impl Trials {
    fn keep(&mut self, e: usize, method: &str, trial: Result<Trial, String>) {
        let mut lines = self.lines.iter_mut();
        match lines.find(|l| l.e == e && l.method == method) {
            Some(line) => line.trials.push(trial),
            None => self.lines.push(Line {
                e,
                method: method.into(),
                trials: vec![trial],
            }),
        }
    }
}

/// Labels and the posterior that they have without privacy.
struct Case {
    y: Vec<f64>,
    reference: Reference,
}

impl Case {
    /// Made-up tables draw their labels anew in each repeat.
    fn new(table: &Table, repeat: u64, folder: &Path) -> Result<Case, String> {
        let (y, draws) = match &table.truth {
            Some(truth) => (made_up::labels(table, truth, repeat), DRAWS.1),
            None => (table.y.clone(), DRAWS.0),
        };
        table.write_csv(&y, folder).map_err(|e| e.to_string())?;
        let reference = reference(&table.problem(&y), draws, &table.name)
            .map_err(|e| format!("{}: {e}", table.name))?;
        Ok(Case { y, reference })
    }

    /// The posterior itself as an outcome.
    fn without_privacy(&self) -> Outcome {
        let r = &self.reference;
        let around = r.mean.iter().zip(&r.sd);
        Outcome {
            mean: r.mean.clone(),
            intervals: Some(around.map(|(m, s)| [m - Z90 * s, m + Z90 * s]).collect()),
            draws: r.draws.clone(),
            ..Outcome::default()
        }
    }
}

pub fn on_table(table: &Table, a: &Arguments, folder: &Path) -> Result<Report, String> {
    let mut trials = Trials::default();
    let mut open = Vec::new();
    let mut case = Case::new(table, 0, folder)?;
    let (skew, mut error) = (case.reference.skew, 0.0f64);
    let measure = Yardstick::new(&table.problem(&case.y), &case.reference);
    for repeat in 0..a.repeats {
        eprintln!("{}: repeat {} of {}", table.name, repeat + 1, a.repeats);
        if repeat > 0 && table.truth.is_some() {
            case = Case::new(table, repeat, folder)?;
        }
        error = error.max(case.reference.mean_error);
        let score = |outcome: Outcome| Trial::new(table, &case.reference, outcome);
        open.push(Ok(score(case.without_privacy())));
        for (e, &epsilon) in a.epsilons.iter().enumerate() {
            for algorithm in &a.algorithms {
                let budget = (epsilon, DELTA);
                let outcome = private_run::run(table, folder, algorithm, budget, repeat + 1);
                trials.keep(e, &format!("dpmc {algorithm}"), outcome.map(score));
            }
            let seed = repeat * 1000 + e as u64;
            for (method, outcome) in peers(&table.problem(&case.y), epsilon, seed) {
                trials.keep(e, method, outcome.map(score));
            }
        }
        let theirs = diffprivlib::run(&table.problem(&case.y), a, repeat, folder);
        for (e, outcome) in theirs.into_iter().enumerate() {
            trials.keep(e, diffprivlib::NAME, Ok(score(outcome)));
        }
    }
    let without = Score::new(table, f64::INFINITY, "", &open);
    let draws = &case.reference.draws;
    Ok(Report {
        table: table.name.clone(),
        model: table.model.name().into(),
        rows: table.design.rows(),
        coefficients: table.design.d,
        row_norm: table.row_norm(),
        prior_sd: table.prior_sd,
        delta: DELTA,
        log_loss: table
            .test
            .as_ref()
            .map(|(x, y)| log_loss(table.model, x, y, draws)),
        covers_truth: without
            .covers_truth
            .zip(without.covers_truth_least)
            .map(<[f64; 2]>::from),
        reference_error: error,
        reference_skew: skew,
        yardstick: a
            .epsilons
            .iter()
            .map(|&e| (e, measure.error(e, DELTA)))
            .collect(),
        scores: trials
            .lines
            .iter()
            .map(|l| Score::new(table, a.epsilons[l.e], &l.method, &l.trials))
            .collect(),
    })
}

/// The peers that are part of this example.
fn peers(
    problem: &Problem<'_>,
    epsilon: f64,
    seed: u64,
) -> Vec<(&'static str, Result<Outcome, String>)> {
    let budget = (epsilon, DELTA);
    let mut out = Vec::new();
    if objective_perturbation::applies(problem.model) {
        for (name, neighbours) in [
            ("objective perturbation", Neighbours::Substitution),
            ("objective perturbation, add/remove", Neighbours::AddRemove),
        ] {
            let outcome = objective_perturbation::run(problem, neighbours, budget, seed);
            out.push((name, outcome));
        }
    }
    if adassp::applies(problem.model) {
        out.push(("AdaSSP", adassp::run(problem, budget, seed)));
    }
    out.push(("DP-GD", Ok(gradient_descent::run(problem, budget, seed))));
    out
}
