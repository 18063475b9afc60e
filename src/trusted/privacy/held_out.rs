//! Scores of released draws on a table that is held out and protected: charged, computed and noised
//! (docs/proofs/guarantee.md, "Held-out scores").

use std::sync::Arc;

use rayon::prelude::*;

use super::accountant::EventKey;
use super::curator::{CuratorError, check_fit};
use super::ledger::Ledger;
use super::ledger_error::LedgerFileError;
use super::mechanism::{self, MAX_VARIANCE, Secret, SecretRng};
use super::releases::Halt;
use crate::data::{Dataset, LabelKind};
use crate::model::Model;

/// A row adds a whole number from 0 to this to each sum.
const UNIT: i64 = 1 << 20;

/// What is asked of a held-out table.
#[derive(Clone, Copy, Debug)]
pub struct ScoreRequest<'a> {
    /// Released draws of the model's parameters, all of which every row is scored by.
    pub draws: &'a [Vec<f64>],
    /// A row's log score is cut off at these, nats: lowest, then highest.
    pub range: [f64; 2],
    /// τ of the noise of each sum, which costs ρ = 1/(2τ²).
    pub tau: f64,
}

/// What was released of a held-out table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOutScore {
    /// Mean over rows of the log of the predictive density or probability of their labels, each
    /// cut off, with the noise in it; nats.
    pub log_score: f64,
    /// Standard deviation of its noise.
    pub log_score_sd: f64,
    /// Of binary labels: the share of rows whose label has a predictive probability above one half,
    /// with the noise in it, and its standard deviation.
    pub accuracy: Option<[f64; 2]>,
}

/// Holder of a held-out table, which answers for nothing but scores.
pub struct HeldOut {
    data: Dataset,
    model: Arc<dyn Model>,
    ledger: Ledger,
    secret: SecretRng,
}

impl HeldOut {
    /// A holder of `data`, whose scores `ledger` pays for. `seed` fixes its secret coins, for tests
    /// and audits.
    ///
    /// # Errors
    /// [`CuratorError`] where model and table do not fit, the model has no density of labels, rows
    /// belong to units, or there is no entropy.
    pub fn private(
        data: Dataset,
        model: Arc<dyn Model>,
        ledger: Ledger,
        seed: Option<u64>,
    ) -> Result<Self, CuratorError> {
        check_fit(&data, &*model)?;
        let refuse = |what: &str| Err(CuratorError::Mismatch(what.into()));
        if data.units().is_some() {
            return refuse("held-out scores are clipped row by row, and protect no units of rows");
        }
        let (row, theta) = (vec![0.0; data.width()], vec![0.0; model.dim()]);
        if model.log_density(&row, 0.0, &theta).is_none() {
            return refuse("held-out scores are of regressions: other models have no density here");
        }
        let secret = match seed {
            Some(seed) => SecretRng::from_seed(seed, ledger.position()),
            None => SecretRng::from_system().map_err(CuratorError::Entropy)?,
        };
        Ok(HeldOut {
            data,
            model,
            ledger,
            secret,
        })
    }

    /// Number of rows N (public).
    pub fn rows(&self) -> usize {
        self.data.rows()
    }

    /// Whether labels are binary, so that an accuracy is released too.
    pub fn has_accuracy(&self) -> bool {
        self.data.label_kind() == Some(LabelKind::Binary)
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// A fresh ledger of the same budget: an audit pays for each of its repetitions in full.
    pub(super) fn renew(&mut self) {
        self.ledger = self.ledger.renewed();
    }

    /// Settles the ledger; see [`Ledger::settle`].
    ///
    /// # Errors
    /// [`LedgerFileError`] where the file cannot be written; what was charged stays charged.
    pub fn settle(&mut self) -> Result<(), LedgerFileError> {
        self.ledger.settle()
    }

    /// The privacy event of each sum of a release.
    ///
    /// # Errors
    /// [`Halt::Refused`] for noise that cannot be drawn or charged.
    pub fn cost(tau: f64) -> Result<EventKey, Halt> {
        let sigma = (variance(tau)? as f64).sqrt();
        EventKey::discrete_gaussian(UNIT as f64, sigma)
            .ok_or_else(|| Halt::Refused("the noise of a held-out score is not finite".into()))
    }

    /// Charges, then releases.
    ///
    /// # Errors
    /// [`Halt::Refused`] for a request without meaning, [`Halt::BudgetSpent`]; nothing is charged.
    pub fn score(&mut self, request: &ScoreRequest<'_>) -> Result<HeldOutScore, Halt> {
        let [low, high] = request.range;
        let dim = self.model.dim();
        if !(low < high && (high - low).is_finite()) {
            return Err(Halt::Refused(format!(
                "the range of a row's score is [low, high], not [{low}, {high}]"
            )));
        }
        if request.draws.is_empty() || request.draws.iter().any(|d| d.len() != dim) {
            return Err(Halt::Refused(format!(
                "rows are scored by draws of {dim} parameters"
            )));
        }
        let variance = variance(request.tau)?;
        let sums = 1 + u64::from(self.has_accuracy());
        self.ledger
            .charge(&[(Self::cost(request.tau)?, sums)], 0.0)?;
        let exact = Secret::seal(self.sums(request));
        let noisy = mechanism::noisy_sums(&mut self.secret, exact, variance);
        let rows = self.rows() as f64;
        let sd = (variance as f64).sqrt() / UNIT as f64 / rows;
        let mean = |sum: i128| sum as f64 / UNIT as f64 / rows;
        Ok(HeldOutScore {
            log_score: low + (high - low) * mean(noisy[0]),
            log_score_sd: (high - low) * sd,
            accuracy: noisy.get(1).map(|hits| [mean(*hits), sd]),
        })
    }

    /// Σ of the rows' scores and, of binary labels, of their hits.
    fn sums(&self, request: &ScoreRequest<'_>) -> Vec<i128> {
        let one = |i: usize| {
            let mut row = vec![0.0; self.data.width()];
            self.data.copy_row(i, &mut row);
            let label = f64::from(self.data.labels()[i]);
            let score = log_score(&*self.model, &row, label, request.draws);
            [units(score, request.range), hit(score)]
        };
        let sums = (0..self.data.lines()).into_par_iter().map(one);
        let [score, hits] = sums.reduce(|| [0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        match self.has_accuracy() {
            true => vec![i128::from(score), i128::from(hits)],
            false => vec![i128::from(score)],
        }
    }
}

/// The log of the mean over draws of the density of a row's label.
fn log_score(model: &dyn Model, row: &[f64], label: f64, draws: &[Vec<f64>]) -> f64 {
    let logs = draws
        .iter()
        .map(|theta| model.log_density(row, label, theta));
    let logs: Vec<f64> = logs.map(|log| log.unwrap_or(f64::NAN)).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !most.is_finite() {
        return most;
    }
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    most + (sum / logs.len() as f64).ln()
}

/// A score as a whole number from 0 to [`UNIT`], whatever it is; what is no number counts as 0.
fn units(score: f64, [low, high]: [f64; 2]) -> i64 {
    let share = (score - low) / (high - low);
    ((share * UNIT as f64).round_ties_even() as i64).clamp(0, UNIT)
}

/// [`UNIT`] where a label is likelier than not, else 0.
fn hit(score: f64) -> i64 {
    if score > 0.5f64.ln() { UNIT } else { 0 }
}

/// σ² in squared units, σ = τ·UNIT, rounded up.
fn variance(tau: f64) -> Result<u128, Halt> {
    let variance = (tau * UNIT as f64).powi(2).ceil();
    if !(tau > 0.0 && variance >= 1.0 && variance < MAX_VARIANCE as f64) {
        return Err(Halt::Refused(format!(
            "the noise multiplier of a held-out score must be positive and moderate, not {tau}"
        )));
    }
    Ok(variance as u128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever a score is, a row adds a whole number from 0 to 2^20.
        #[test]
        fn no_row_exceeds_the_sensitivity(
            score in prop::num::f64::ANY, low in -1e3f64..1e3, wide in 1e-6f64..1e3
        ) {
            prop_assert!((0..=UNIT).contains(&units(score, [low, low + wide])));
            prop_assert!([0, UNIT].contains(&hit(score)));
        }
    }

    #[test]
    fn both_ends_of_the_range_are_reached() {
        for (score, expected) in [
            (-3.0, 0),
            (-9.0, 0),
            (f64::NEG_INFINITY, 0),
            (f64::NAN, 0),
            (0.0, UNIT),
            (f64::INFINITY, UNIT),
            (-1.5, UNIT / 2),
        ] {
            assert_eq!(units(score, [-3.0, 0.0]), expected, "{score}");
        }
    }

    /// ρ = 1/(2τ²) a sum.
    #[test]
    fn a_sum_costs_one_gaussian() {
        for tau in [0.3, 1.0, 25.0] {
            let rho = HeldOut::cost(tau).unwrap().rho().unwrap();
            let expected = 0.5 / (tau * tau);
            assert!(rho >= expected * (1.0 - 1e-9) && rho < expected * (1.0 + 1e-4));
        }
        for tau in [0.0, -1.0, f64::NAN, 1e30] {
            assert!(HeldOut::cost(tau).is_err());
        }
    }
}
