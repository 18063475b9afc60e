//! What a run directory holds for predictions: its run file and some of its draws, all released.

use std::path::Path;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::PredictionError;
use crate::config::Plan;
use crate::data::LabelKind;
use crate::diagnostics::{with_noise, without_noise};
use crate::output::{AnchorNoise, OutputError, POINT, read_draws};
use crate::privacy::Certificate;
use crate::sampler::Family;

/// Draws of a run, evenly spaced.
#[derive(Clone, Debug)]
pub struct Posterior {
    /// The run's own run file.
    pub plan: Plan,
    /// Names of parameters; standard deviations that a prior samples are left out.
    pub parameters: Vec<String>,
    /// How many draws the run has kept, of which these are some.
    pub kept: usize,
    /// Draws, with the noise of a released anchor in them: what intervals are made of.
    pub draws: Vec<Vec<f64>>,
    /// The same without that noise, where they differ.
    quiet: Option<Vec<Vec<f64>>>,
    /// Where predictions would mislead a reader.
    pub notes: Vec<String>,
}

/// Draws that predictions are averaged over unless another number is asked for; more change little.
pub const USUAL_DRAWS: usize = 500;
/// The same where the law of labels is found on a grid.
pub const NUMERIC_DRAWS: usize = 100;

/// How many draws are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of them.
    All,
    /// As many as predictions usually take: fewer where a declared likelihood is summed on a grid.
    Usual,
    /// At most so many.
    AtMost(usize),
}

/// The stream of the noise that draws get here; it is no secret.
const NOISE_SEED: u64 = 0x006e_6f69_7365;

const ADDED: &str = "the run's draws take its anchor for exact; the noise of the anchor's releases was added to them here to first order, as `dpmc summary` widens intervals by it";
const LACKING: &str = "the run's draws take its anchor for exact, and the noise of the anchor's releases, which `dpmc summary` tells, could not be added: intervals are too short";
const KEPT: &str = "the run has too few draws for the noise of the anchor's releases to be told apart in them, so expected values are averages over that noise too, which draws probabilities to one half; more iterations mend that";

impl Posterior {
    /// Of the run in `directory`: draws evenly spaced, with the noise of released anchors in them.
    ///
    /// # Errors
    /// [`PredictionError`] where it is no run directory, its run failed or it has no draws yet.
    pub fn read(directory: &Path, wanted: Wanted) -> Result<Self, PredictionError> {
        let refuse = |what: &str| {
            PredictionError::Input(format!(
                "{0}: {what}; `dpmc sample --resume {0}` goes on",
                directory.display()
            ))
        };
        let mut table = read_draws(directory)?;
        let plan = Plan::read(&directory.join("run.toml"))?;
        if table.is_empty() {
            return Err(refuse(
                "holds no draws: its run ended before the first one was kept",
            ));
        }
        if status(directory)? == "failed" {
            return Err(refuse("its run failed before its end"));
        }
        let mut all: Vec<Vec<f64>> = Vec::new();
        for chain in &table.chains {
            let length = chain.first().map_or(0, Vec::len);
            all.extend((0..length).map(|i| chain.iter().map(|column| column[i]).collect()));
        }
        let kept = all.len();
        let most = match (wanted, &plan.config.model.likelihood) {
            (Wanted::All, _) => all.len(),
            (Wanted::AtMost(most), _) => most.max(1),
            (Wanted::Usual, Some(_)) => NUMERIC_DRAWS,
            (Wanted::Usual, None) => USUAL_DRAWS,
        };
        // Labels depend on the coefficients alone.
        let own = (table.parameters.len()).saturating_sub(plan.sampled_scales()?.len());
        table.parameters.truncate(own);
        all.iter_mut().for_each(|draw| draw.truncate(own));
        let stride = all.len().div_ceil(most).max(1);
        let noise = AnchorNoise::read(directory)?;
        let mut quiet = match &noise {
            AnchorNoise::InDraws(anchor) => without_noise(&all, anchor, stride),
            _ => None,
        };
        let mut draws: Vec<Vec<f64>> = all.into_iter().step_by(stride).collect();
        let mut notes = Vec::new();
        if matches!(noise, AnchorNoise::InDraws(_)) && quiet.is_none() {
            notes.push(KEPT.into());
        }
        // (Without privacy there is none.)
        if let AnchorNoise::Missing(anchor) = noise
            && anchor.gradient_sd > 0.0
        {
            let mut rng = ChaCha20Rng::seed_from_u64(NOISE_SEED);
            let noisy = with_noise(&draws, &anchor, &mut rng);
            notes.push(if noisy.is_some() { ADDED } else { LACKING }.into());
            quiet = noisy.map(|noisy| std::mem::replace(&mut draws, noisy));
        }
        if ends_at_a_point(&plan) {
            notes.push(POINT.into());
        }
        Ok(Posterior {
            plan,
            parameters: table.parameters,
            kept,
            draws,
            quiet,
            notes,
        })
    }

    /// The draws without the noise of a released anchor: what is expected of a label is averaged
    /// over these. Noise leaves directions open to which the prior alone has an answer, and most
    /// priors are far wider than coefficients turn out to be. An average over all of that draws
    /// probabilities to one half: docs/results/tables.md has what it costs.
    pub fn without_noise(&self) -> &[Vec<f64>] {
        self.quiet.as_ref().unwrap_or(&self.draws)
    }

    /// The same where they differ from the draws.
    pub(super) fn quiet(&self) -> Option<&[Vec<f64>]> {
        self.quiet.as_deref()
    }

    /// The draws that the law of a label is averaged over: the law of a class is its probabilities,
    /// which are what is expected of it; that of a number has an interval, so the noise is in it.
    pub fn of_labels(&self, label: LabelKind) -> &[Vec<f64>] {
        match label {
            LabelKind::Binary | LabelKind::Class { .. } => self.without_noise(),
            _ => &self.draws,
        }
    }
}

/// Whether an optimiser made the run, which has a point in place of draws.
fn ends_at_a_point(plan: &Plan) -> bool {
    matches!(plan.family(), Ok(Family::Optimiser { .. }))
}

/// How the run ended, as its certificate says.
fn status(directory: &Path) -> Result<String, PredictionError> {
    let path = directory.join("certificate.json");
    let fail = |what: String| OutputError::Read {
        path: path.clone(),
        what,
    };
    let text = std::fs::read_to_string(&path).map_err(|e| fail(e.to_string()))?;
    let certificate: Certificate = serde_json::from_str(&text).map_err(|e| fail(e.to_string()))?;
    Ok(certificate.status)
}
