//! A public table in two parts, and how well a run's draws predict the second.

use rayon::prelude::*;

use super::drawing::shown;
use super::study::{Method, Problem, Trace, run};
use super::{Effort, ReproduceError};
use crate::pate::Votes;
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
    part(data, 0..most)
}

/// The rows of these numbers, as far as there are such.
fn part(data: &Dataset, which: impl Iterator<Item = usize>) -> Result<Dataset, ReproduceError> {
    let (rows, labels) = (data.as_public().rows(), data.as_public().labels());
    let d = data.features().len();
    labelled(
        data,
        which.map_while(|k| Some((rows.get(k * d..(k + 1) * d)?, *labels.get(k)?))),
    )
}

/// Rows under the declarations of a data set.
fn labelled<'a>(
    like: &Dataset,
    rows: impl Iterator<Item = (&'a [f32], bool)>,
) -> Result<Dataset, ReproduceError> {
    let mut builder = Dataset::builder(like.features().to_vec(), true, like.row_norm())?;
    for (row, label) in rows {
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

    /// PATE with logistic teachers and a supervised student: accuracy on the rows that teachers
    /// were not asked about, for each ε at this δ. `asked`: answers, on the first test rows.
    ///
    /// # Errors
    /// [`ReproduceError`] of the first run that fails.
    pub fn pate(
        &self,
        settings: &str,
        (epsilons, delta): (&[f64], f64),
        (teachers, asked, steps): (usize, usize, u64),
        runs: u64,
    ) -> Result<Vec<Score>, ReproduceError> {
        const TEACHER: Method<'_> = Method::reference("pate", "algorithm = 'adam'\nstep = 0.05");
        let d = self.train.features().len();
        let asked = asked.min(self.labels.len() / 2);
        let (pool, held) = self.rows.split_at(asked * d);
        // Where Adam ends.
        let fit = |data: &(dyn Fn() -> Result<Dataset, ReproduceError> + Sync)| {
            let problem = Problem {
                settings,
                delta,
                data,
            };
            let trace = run(&problem, &TEACHER, steps, 1)?;
            Ok::<_, ReproduceError>(trace.draws.last().cloned().into_iter().collect::<Vec<_>>())
        };
        let said = (0..teachers).into_par_iter().map(|teacher| {
            // Dealt by position: replacing a row changes one part.
            let rows = (teacher..self.train.rows()).step_by(teachers);
            let theta = fit(&|| part(&self.train, rows.clone()))?;
            let p = logistic_predictive(&theta, pool).into_iter();
            Ok(p.map(|p| usize::from(p > 0.5)).collect())
        });
        let said: Vec<Vec<usize>> = said.collect::<Result<_, ReproduceError>>()?;
        let mut votes = Votes::none(asked, 2);
        said.iter().for_each(|classes| votes.add(classes));
        let score = |epsilon: &f64| {
            let sigma = crate::pate::sigma(*epsilon, asked as u64, delta)?;
            let accuracies = (1..=runs).map(|seed| {
                let winners = votes.answers(asked, sigma, seed);
                let student = fit(&|| {
                    let winners = winners.iter().map(|k| *k == 1);
                    labelled(&self.train, pool.chunks_exact(d).zip(winners))
                })?;
                let p = logistic_predictive(&student, held);
                Ok(accuracy(&p, &self.labels[asked..]))
            });
            let accuracies: Vec<f64> = accuracies.collect::<Result<_, ReproduceError>>()?;
            let n = accuracies.len() as f64;
            let mean = accuracies.iter().sum::<f64>() / n;
            let square: f64 = accuracies.iter().map(|a| (a - mean).powi(2)).sum();
            Ok(Score {
                epsilon: crate::pate::epsilon(sigma, asked as u64, delta)?,
                accuracy: mean,
                spread: (square / (n - 1.0).max(1.0)).sqrt(),
                iterations: steps as f64,
                rows_a_step: self.train.rows() as f64,
            })
        };
        epsilons.iter().map(score).collect()
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
