//! The summary of a run directory: moments, quantiles, convergence, cost.

use std::path::Path;

use serde::Serialize;

use super::notes::{notes, notes_on_anchor};
use super::parts::read_state;
use super::{HeldOutReport, OutputError, read_draws};
use crate::diagnostics::{NOISE_AWARE_LEVEL, NoiseAware, ParameterSummary, noise_aware, summarize};
use crate::model::{AnchorRelease, Moments};
use crate::privacy::{Certificate, Ledger, LedgerFileError, PaidRun};
use crate::sampler::SamplerState;

/// Summary of a run; `dpmc summary --json`.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// One entry a parameter; none of an optimiser, which has no draws.
    pub parameters: Vec<ParameterSummary>,
    /// One entry a parameter of an optimiser's run: no posterior draws, so no intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<Vec<Point>>,
    /// Chains.
    pub chains: usize,
    /// Kept draws of each chain.
    pub draws: usize,
    /// Share of accepted moves (decisions are released).
    pub acceptance: f64,
    /// One entry a parameter in an anchored run: intervals with the anchor's noise in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_aware: Option<Vec<NamedNoise>>,
    /// The released moments of a run on them; what their noise does takes the model to tell.
    #[serde(skip)]
    pub moments: Option<Moments>,
    /// Held-out accuracy of the posterior predictive, where a public test table is declared and
    /// labels are binary or classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
    /// Held-out root mean square error of the predictive mean of a linear regression, in units of
    /// the label after its `scale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_rmse: Option<f64>,
    /// Held-out mean negative logarithm of the posterior predictive density or probability, nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_log_loss: Option<f64>,
    /// Scores that were released of a protected held-out table, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_out: Vec<HeldOutReport>,
    /// ε of what the run's own ledger counts as spent, where that is more than the certificate
    /// says: it could not be written any more, or the run goes on or was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_spent_by_ledger: Option<f64>,
    /// The certificate.
    pub certificate: Certificate,
    /// Where the above would mislead a reader: draws that do not tell yet, intervals that lack
    /// something.
    pub notes: Vec<String>,
}

/// A parameter where an optimiser ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The parameter's name.
    pub name: String,
    /// Its last value in each chain.
    pub values: Vec<f64>,
}

impl Point {
    /// The last of each chain's draws of one parameter.
    fn last(name: &str, chains: &[Vec<f64>]) -> Self {
        Point {
            name: name.into(),
            values: chains.iter().filter_map(|c| c.last().copied()).collect(),
        }
    }
}

/// A parameter's intervals with an anchor's noise in them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedNoise {
    /// The parameter's name.
    pub name: String,
    /// Probability of the intervals.
    pub level: f64,
    /// The intervals.
    #[serde(flatten)]
    pub noise: NoiseAware,
}

impl NamedNoise {
    /// One entry a parameter, with its name.
    pub fn name_all(names: &[String], noise: Vec<NoiseAware>) -> Vec<NamedNoise> {
        let pairs = names.iter().zip(noise);
        pairs
            .map(|(name, noise)| NamedNoise {
                name: name.clone(),
                level: NOISE_AWARE_LEVEL,
                noise,
            })
            .collect()
    }
}

/// Summarises what `directory` holds at this moment.
///
/// # Errors
/// [`OutputError`] where it is no run directory.
pub fn summarize_directory(directory: &Path) -> Result<RunSummary, OutputError> {
    fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, OutputError> {
        let fail = |what: String| OutputError::Read {
            path: path.into(),
            what,
        };
        let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
        serde_json::from_str(&text).map_err(|e| fail(e.to_string()))
    }
    let table = read_draws(directory)?;
    let certificate: Certificate = json(&directory.join("certificate.json"))?;
    let state = read_state(directory)?;
    // In floating point: a damaged count must not overflow.
    let accepted: f64 = state.chains.accepted.iter().map(|a| *a as f64).sum();
    let moves = state.iteration as f64 * state.chains.accepted.len() as f64;
    let columns: Vec<Vec<Vec<f64>>> = (0..table.parameters.len())
        .map(|j| table.parameter(j))
        .collect();
    let mut doubts = Vec::new();
    let (noise_aware, moments) = match state.anchor {
        Some(AnchorRelease::Expansion(a)) => {
            doubts.extend(notes_on_anchor(&a, &table.parameters, state.free));
            // Standard deviations that the prior samples stand behind the anchor's parameters.
            let own = &columns[..a.at.len().min(columns.len())];
            (noise_aware(own, &a, state.noise_aware), None)
        }
        Some(AnchorRelease::Moments(m)) => (None, Some(m)),
        None => (None, None),
    };
    let named = table.parameters.iter().zip(&columns);
    let (mut parameters, mut points) = (Vec::new(), None);
    match &state.sampler {
        SamplerState::Optimiser(_) => {
            points = Some(
                named
                    .map(|(name, column)| Point::last(name, column))
                    .collect(),
            );
        }
        _ => {
            parameters = named
                .map(|(name, column)| summarize(name, column))
                .collect()
        }
    }
    let sampler = (&state.sampler, certificate.private);
    Ok(RunSummary {
        held_out: Vec::new(),
        notes: [notes(&parameters, &columns, accepted, sampler), doubts].concat(),
        parameters,
        points,
        noise_aware: noise_aware.map(|noise| NamedNoise::name_all(&table.parameters, noise)),
        moments,
        chains: table.chains.len(),
        draws: table.len(),
        acceptance: accepted / moves.max(1.0),
        test_accuracy: None,
        test_rmse: None,
        test_log_loss: None,
        epsilon_spent_by_ledger: None,
        certificate,
    })
}

/// ε of what the ledger in a run's own directory counts as spent, where that is more than what the
/// run's state and certificate had seen; `dataset` is what the ledger calls the table.
///
/// # Errors
/// [`OutputError`] where the ledger or the state cannot be read.
pub fn more_spent_by_ledger(
    directory: &Path,
    dataset: &str,
    certificate: &Certificate,
) -> Result<Option<f64>, OutputError> {
    let path = directory.join("ledger.json");
    let fail = |e: LedgerFileError| OutputError::Read {
        path: path.clone(),
        what: e.to_string(),
    };
    let (Some(budget), Some(published)) = (certificate.budget, certificate.epsilon_spent) else {
        return Ok(None);
    };
    let Some(measure) = Ledger::measure_of(&path).map_err(fail)? else {
        return Ok(None);
    };
    let spent = Ledger::peek(&path, dataset, certificate.rows, budget, measure).map_err(fail)?;
    let seen = read_state(directory)?
        .paid
        .map_or(0.0, |paid| spent_then(&paid));
    // Accountants of fixed sequences find less than the ledger does: what it counts decides. It
    // keeps no events of what is only reserved, so the reserve counts, as when the run goes on.
    let most = measure.limit(budget);
    let taken = |spent: f64| (spent + measure.reserve(budget)).min(most);
    Ok(spent
        .filter(|spent| *spent > seen * (1.0 + 1e-9))
        .map(|spent| measure.epsilon(taken(spent), budget.conversion_delta()))
        .filter(|epsilon| *epsilon > published))
}

/// What a saved run had seen its ledger count as spent, in the ledger's measure.
fn spent_then(paid: &PaidRun) -> f64 {
    let units = serde_json::to_value(paid).ok();
    let units = units.and_then(|paid| paid["spent_units"].as_str()?.parse::<u128>().ok());
    units.map_or(0.0, |units| units as f64 * f64::powi(2.0, -96))
}
