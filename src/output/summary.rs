//! The summary of a run directory: moments, quantiles, convergence, cost.

use std::path::Path;

use serde::Serialize;

use super::{OutputError, read_draws};
#[cfg(feature = "cli")]
use crate::data::{Dataset, LabelKind};
use crate::diagnostics::{NoiseAware, ParameterSummary, noise_aware, summarize};
#[cfg(feature = "cli")]
use crate::diagnostics::{
    accuracy, class_accuracy, class_log_loss, log_loss, logistic_predictive, network_predictive,
};
#[cfg(feature = "cli")]
use crate::model::NetworkShape;
use crate::model::{AnchorRelease, Moments};
use crate::posterior_run::RunState;
use crate::privacy::Certificate;

/// Draws used for predictive averages; more change nothing that can be seen.
#[cfg(feature = "cli")]
const PREDICTIVE_DRAWS: usize = 500;

/// Summary of a run; `dpmc summary --json`.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// One entry a parameter.
    pub parameters: Vec<ParameterSummary>,
    /// Chains.
    pub chains: usize,
    /// Kept draws of each chain.
    pub draws: usize,
    /// Share of accepted moves (decisions are released).
    pub acceptance: f64,
    /// One entry a parameter in an anchored run: intervals with the anchor's noise in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_aware: Option<Vec<NoiseAware>>,
    /// The released moments of a run on them; what their noise does takes the model to tell.
    #[serde(skip)]
    pub moments: Option<Moments>,
    /// Held-out accuracy of the posterior predictive, where a public test table is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
    /// Held-out mean negative log-likelihood, nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_log_loss: Option<f64>,
    /// The certificate.
    pub certificate: Certificate,
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
    let state: RunState = json(&directory.join("state.json"))?;
    // In floating point: a damaged count must not overflow.
    let accepted: f64 = state.chains.accepted.iter().map(|a| *a as f64).sum();
    let moves = state.iteration as f64 * state.chains.accepted.len() as f64;
    let columns: Vec<Vec<Vec<f64>>> = (0..table.parameters.len())
        .map(|j| table.parameter(j))
        .collect();
    let (noise_aware, moments) = match state.anchor {
        Some(AnchorRelease::Expansion(a)) => (noise_aware(&columns, &a), None),
        Some(AnchorRelease::Moments(m)) => (None, Some(m)),
        None => (None, None),
    };
    Ok(RunSummary {
        parameters: table
            .parameters
            .iter()
            .zip(&columns)
            .map(|(name, column)| summarize(name, column))
            .collect(),
        noise_aware,
        moments,
        chains: table.chains.len(),
        draws: table.len(),
        acceptance: accepted / moves.max(1.0),
        test_accuracy: None,
        test_log_loss: None,
        certificate,
    })
}

/// Accuracy and log loss of the posterior predictive on a **public** table (inside the crate
/// only: on a private table it would be an unpaid release), of a network of that shape or else
/// of a logistic model; `None` without labels or draws, or where the draws are of another model.
///
/// # Errors
/// [`OutputError`] where the draws cannot be read.
#[cfg(feature = "cli")]
pub(crate) fn test_accuracy(
    directory: &Path,
    test: &Dataset,
    network: Option<NetworkShape>,
) -> Result<Option<(f64, f64)>, OutputError> {
    let table = read_draws(directory)?;
    let parameters = network.map_or(test.features().len(), NetworkShape::parameters);
    let total: usize = table.chains.iter().map(|c| c[0].len()).sum();
    if table.parameters.len() != parameters || total == 0 {
        return Ok(None);
    }
    let stride = total.div_ceil(PREDICTIVE_DRAWS);
    let mut thetas = Vec::new();
    for chain in &table.chains {
        for i in (0..chain[0].len()).step_by(stride) {
            thetas.push(chain.iter().map(|column| column[i]).collect::<Vec<f64>>());
        }
    }
    let rows = test.public_rows();
    let predictive = || match network {
        Some(shape) => network_predictive(&thetas, shape, &rows),
        None => logistic_predictive(&thetas, &rows),
    };
    Ok(match (test.label_kind(), network) {
        (Some(LabelKind::Binary), _) => {
            let (p, labels) = (predictive(), test.public_labels());
            Some((accuracy(&p, &labels), log_loss(&p, &labels)))
        }
        (Some(LabelKind::Class { .. }), Some(shape)) => {
            let (p, labels) = (predictive(), test.public_classes());
            Some((
                class_accuracy(&p, shape.outputs, &labels),
                class_log_loss(&p, shape.outputs, &labels),
            ))
        }
        _ => None,
    })
}
