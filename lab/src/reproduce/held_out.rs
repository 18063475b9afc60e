//! A public table in two parts, and how well a run's draws predict the second.

use rayon::prelude::*;

use super::drawing::shown;
use super::study::{Method, Problem, Trace, run};
use super::{Effort, ReproduceError};
use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::diagnostics::{accuracy, logistic_predictive, network_predictive};
use dpmc::model::NetworkShape;

/// Draws of a run that a prediction averages over, evenly spaced in its second half.
const PREDICTIVE_DRAWS: usize = 100;

/// Training and test rows.
pub(super) struct HeldOut {
    pub train: Dataset,
    rows: Vec<f32>,
    labels: Vec<bool>,
}

/// What the runs of one method came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Score {
    /// True ε of a run; infinite without privacy.
    pub epsilon: f64,
    /// Mean and standard deviation of the test accuracies.
    pub accuracy: f64,
    pub spread: f64,
    /// Iterations of a run and rows read by one, on average.
    pub iterations: f64,
    pub rows_a_step: f64,
}

impl Score {
    /// ε for a table.
    pub fn spent(&self) -> String {
        if self.epsilon.is_infinite() {
            "NOT private".into()
        } else {
            shown(self.epsilon)
        }
    }

    /// Accuracy with its spread over the runs.
    pub fn shown(&self) -> String {
        format!("{:.4} ± {:.4}", self.accuracy, self.spread)
    }
}

/// One table of the data folder, as `settings` (`[data]` and `[model]`) declare it for the file
/// `name`.
fn load(
    effort: &Effort,
    settings: &str,
    (declared, name): (&str, &str),
) -> Result<Dataset, ReproduceError> {
    let path = effort.data.join(name);
    if !path.is_file() {
        return Err(ReproduceError::NoData(path.display().to_string()));
    }
    let text = format!("{settings}\n[sampler]\nalgorithm = 'mh'").replace(declared, name);
    Ok(Plan::parse(&effort.data.join("held-out"), text)?.load_data()?)
}

/// The first `most` rows again: a curator takes its data set. The rows are public.
pub(super) fn copy(data: &Dataset, most: usize) -> Result<Dataset, ReproduceError> {
    let (rows, labels) = (data.as_public().rows(), data.as_public().labels());
    let d = data.features().len();
    let mut builder = Dataset::builder(data.features().to_vec(), true, data.row_norm())?;
    for (row, label) in rows.chunks_exact(d).zip(labels).take(most) {
        builder.push(row, Some(label))?;
    }
    Ok(builder.finish()?)
}

impl HeldOut {
    /// Both parts, binary labels; `settings` declare the file `train`.
    ///
    /// # Errors
    /// [`ReproduceError::NoData`] naming a missing file.
    pub fn load(
        effort: &Effort,
        settings: &str,
        (train, test): (&str, &str),
    ) -> Result<Self, ReproduceError> {
        let test = load(effort, settings, (train, test))?;
        Ok(HeldOut {
            train: load(effort, settings, (train, train))?,
            rows: test.as_public().rows(),
            labels: test.as_public().labels(),
        })
    }

    /// Accuracy of the posterior predictive of a run's second half; NaN without draws.
    pub fn accuracy(&self, trace: &Trace, network: Option<NetworkShape>) -> f64 {
        let kept = &trace.draws[trace.draws.len() / 2..];
        let stride = kept.len().div_ceil(PREDICTIVE_DRAWS).max(1);
        let draws: Vec<Vec<f64>> = kept.iter().rev().step_by(stride).cloned().collect();
        let p = match network {
            None => logistic_predictive(&draws, &self.rows),
            Some(shape) => network_predictive(&draws, shape, &self.rows),
        };
        accuracy(&p, &self.labels)
    }

    /// Runs a method from as many seeds.
    ///
    /// # Errors
    /// [`ReproduceError`] of the first that fails.
    pub fn score(
        &self,
        settings: &str,
        delta: f64,
        method: &Method<'_>,
        (iterations, runs): (u64, u64),
        network: Option<NetworkShape>,
    ) -> Result<Score, ReproduceError> {
        let problem = Problem {
            settings,
            delta,
            data: &|| copy(&self.train, usize::MAX),
        };
        let all: Vec<(f64, f64, f64, f64)> = (1..=runs)
            .into_par_iter()
            .map(|seed| {
                let trace = run(&problem, method, iterations, seed)?;
                let end = trace.end();
                let made = end.iteration as f64;
                let score = self.accuracy(&trace, network);
                Ok((end.epsilon, score, made, trace.rows_a_step()))
            })
            .collect::<Result<_, ReproduceError>>()?;
        let n = all.len() as f64;
        let mean = |f: fn(&(f64, f64, f64, f64)) -> f64| all.iter().map(f).sum::<f64>() / n;
        let accuracy = mean(|r| r.1);
        let square: f64 = all.iter().map(|r| (r.1 - accuracy).powi(2)).sum();
        Ok(Score {
            epsilon: all.iter().fold(0.0, |m: f64, r| m.max(r.0)),
            accuracy,
            spread: (square / (n - 1.0).max(1.0)).sqrt(),
            iterations: mean(|r| r.2),
            rows_a_step: mean(|r| r.3),
        })
    }
}
