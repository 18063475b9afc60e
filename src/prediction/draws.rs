//! What a run directory holds for predictions: its run file and some of its draws, all released.

use std::path::Path;

use super::PredictionError;
use crate::config::{DrawsName, Plan};
use crate::output::{read_draws, summarize_directory};

/// Draws of a run, evenly spaced.
#[derive(Clone, Debug)]
pub struct Posterior {
    /// The run's own run file.
    pub plan: Plan,
    /// Names of parameters.
    pub parameters: Vec<String>,
    /// Draws.
    pub draws: Vec<Vec<f64>>,
    /// Where predictions would mislead a reader.
    pub notes: Vec<String>,
}

/// Draws that predictions are averaged over unless another number is asked for; more change little.
pub const USUAL_DRAWS: usize = 500;
/// The same where the law of labels is found on a grid.
pub const NUMERIC_DRAWS: usize = 100;

const CHAIN: &str = "the run kept its chains' own draws (draws = \"chain\"), which take the anchor for exact: intervals lack the noise of the release, whose size `dpmc summary` says; runs with draws = \"noise-aware\" have it in them";

impl Posterior {
    /// Of the run in `directory`.
    ///
    /// # Errors
    /// [`PredictionError`] where it is no run directory, its run failed or it has no draws yet.
    pub fn read(directory: &Path) -> Result<Self, PredictionError> {
        let table = read_draws(directory)?;
        let plan = Plan::read(&directory.join("run.toml"))?;
        if table.is_empty() {
            return Err(PredictionError::Input(format!(
                "{0}: holds no draws: its run ended before the first one was kept; `dpmc sample --resume {0}` goes on",
                directory.display()
            )));
        }
        let summary = summarize_directory(directory)?;
        if summary.certificate.status == "failed" {
            return Err(PredictionError::Input(format!(
                "{0}: its run failed before its end; `dpmc sample --resume {0}` goes on",
                directory.display()
            )));
        }
        let mut notes = Vec::new();
        if summary.noise_aware.is_some() && plan.config.run.draws == DrawsName::Chain {
            notes.push(CHAIN.into());
        }
        let mut draws = Vec::new();
        for chain in &table.chains {
            let length = chain.first().map_or(0, Vec::len);
            draws.extend((0..length).map(|i| chain.iter().map(|column| column[i]).collect()));
        }
        Ok(Posterior {
            plan,
            parameters: table.parameters,
            draws,
            notes,
        })
    }

    /// At most `most` of the draws, evenly spaced; without a number as many as predictions usually
    /// take: fewer where a declared likelihood is summed on a grid.
    #[must_use]
    pub fn thinned(mut self, most: Option<usize>) -> Self {
        let usual = match self.plan.config.model.likelihood {
            Some(_) => NUMERIC_DRAWS,
            None => USUAL_DRAWS,
        };
        let stride = self.draws.len().div_ceil(most.unwrap_or(usual).max(1));
        self.draws = self.draws.into_iter().step_by(stride.max(1)).collect();
        self
    }
}
