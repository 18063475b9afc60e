//! What outcomes of several repeats come to.

use serde::{Deserialize, Serialize};

use super::glm::log_loss;
use super::outcome::Outcome;
use super::reference::Reference;
use super::table::Table;

/// One repeat of one method.
pub struct Trial {
    /// (estimate − posterior mean)/posterior sd, one a coefficient.
    errors: Vec<f64>,
    holds_mean: Option<Vec<bool>>,
    holds_truth: Option<Vec<bool>>,
    log_loss: Option<f64>,
    seconds: f64,
    effective_draws: Option<f64>,
    status: String,
}

impl Trial {
    pub fn new(table: &Table, reference: &Reference, outcome: Outcome) -> Trial {
        let pairs = outcome.mean.iter().zip(&reference.mean);
        let errors = pairs.zip(&reference.sd).map(|((a, m), s)| (a - m) / s);
        let holds = |intervals: &Option<Vec<[f64; 2]>>, values: &[f64]| {
            let pairs = intervals.as_ref()?.iter().zip(values);
            Some(pairs.map(|([a, b], v)| a <= v && v <= b).collect())
        };
        let truth = table.truth.as_deref();
        let test = table.test.as_ref();
        let losses = test.map(|(x, y)| log_loss(table.model, x, y, &outcome.draws));
        Trial {
            errors: errors.collect(),
            holds_mean: holds(&outcome.mean_intervals, &reference.mean),
            holds_truth: truth.and_then(|t| holds(&outcome.intervals, t)),
            log_loss: losses,
            seconds: outcome.seconds,
            effective_draws: outcome.effective_draws,
            status: outcome.status,
        }
    }
}

/// One line of the study: a method at an ε.
#[derive(Serialize, Deserialize)]
pub struct Score {
    pub table: String,
    pub epsilon: f64,
    pub method: String,
    pub repeats: usize,
    /// Repeats that released nothing, with what the last of them said.
    pub none: usize,
    pub why_none: Option<String>,
    /// Mean over repeats of the root mean square error over coefficients, in posterior sds.
    pub rms: Option<f64>,
    /// The coefficient with the largest root mean square error over repeats, and that error.
    pub worst: Option<f64>,
    pub worst_coefficient: Option<String>,
    /// Share of 90 % intervals of the noise alone that hold the non-private posterior mean.
    pub covers_mean: Option<f64>,
    /// Share of full 90 % intervals that hold the generating coefficient; the least of any
    /// coefficient.
    pub covers_truth: Option<f64>,
    pub covers_truth_least: Option<f64>,
    pub log_loss: Option<f64>,
    /// Median.
    pub seconds: Option<f64>,
    /// Median over repeats of the worst coefficient's effective draws.
    pub effective_draws: Option<f64>,
    /// How runs with draws ended, where not all finished.
    pub ended: Vec<String>,
}

impl Score {
    pub fn new(
        table: &Table,
        epsilon: f64,
        method: &str,
        trials: &[Result<Trial, String>],
    ) -> Score {
        let good: Vec<&Trial> = trials.iter().filter_map(|t| t.as_ref().ok()).collect();
        let d = table.design.d;
        let root_mean_square = |values: &mut dyn Iterator<Item = f64>| -> f64 {
            let squares: Vec<f64> = values.map(|v| v * v).collect();
            (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
        };
        let each = |of: &dyn Fn(&Trial) -> Option<f64>| -> Vec<f64> {
            good.iter().filter_map(|t| of(t)).collect()
        };
        let worst = (0..d)
            .map(|j| (j, root_mean_square(&mut good.iter().map(|t| t.errors[j]))))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|_| !good.is_empty());
        // Shares by coefficient, then over all of them.
        let shares = |of: fn(&Trial) -> Option<&Vec<bool>>, skip: Option<usize>| -> Vec<f64> {
            let held: Vec<&Vec<bool>> = good.iter().filter_map(|t| of(t)).collect();
            let used = (0..d).filter(|j| Some(*j) != skip && !held.is_empty());
            used.map(|j| held.iter().filter(|h| h[j]).count() as f64 / held.len() as f64)
                .collect()
        };
        let covers_mean = shares(|t| t.holds_mean.as_ref(), None);
        let covers_truth = shares(|t| t.holds_truth.as_ref(), table.separated);
        let mut ended: Vec<String> = good.iter().map(|t| t.status.clone()).collect();
        ended.sort();
        ended.dedup();
        ended.retain(|s| !s.is_empty() && s != "finished");
        let rms = each(&|t| Some(root_mean_square(&mut t.errors.iter().copied())));
        Score {
            table: table.name.clone(),
            epsilon,
            method: method.into(),
            repeats: trials.len(),
            none: trials.len() - good.len(),
            why_none: trials.iter().rev().find_map(|t| t.as_ref().err().cloned()),
            rms: average(&rms),
            worst: worst.map(|w| w.1),
            worst_coefficient: worst.map(|w| table.coefficients()[w.0].clone()),
            covers_mean: average(&covers_mean),
            covers_truth: average(&covers_truth),
            covers_truth_least: covers_truth.iter().copied().reduce(f64::min),
            log_loss: average(&each(&|t| t.log_loss)),
            seconds: median(each(&|t| Some(t.seconds))),
            effective_draws: median(each(&|t| t.effective_draws)),
            ended,
        }
    }
}

fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| values[values.len() / 2])
}
