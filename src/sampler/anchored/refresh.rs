//! A second anchor at the mean of the warm-up's draws: nearer to the posterior's own mean than any
//! Newton step of a skewed posterior, so remainders are smaller from there.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::path::{STAGE_BOUND, STAGE_CLIP, expand};
use super::warm_start::multiplier;
use super::{AnchorSettings, Anchoring};
use crate::model::{Anchor, AnchorRelease, Prior, Surrogate};
use crate::privacy::{AnchorNoise, Halt, Releases};
use crate::sampler::RandomWalk;

/// Shares of the refreshed anchor's ρ: gradient, curvature.
const SHARES: [f64; 2] = [0.75, 0.25];

/// Sum of the draws in the second half of warm-up: released values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::sampler) struct WarmupMean {
    sum: Vec<f64>,
    count: f64,
    done: bool,
    /// The budget did not hold the second anchor: the first one was kept.
    #[serde(default)]
    kept: bool,
}

impl WarmupMean {
    pub(in crate::sampler) fn add(&mut self, thetas: &Array2<f64>) {
        self.sum.resize(thetas.ncols(), 0.0);
        for theta in thetas.rows() {
            for (s, t) in self.sum.iter_mut().zip(theta) {
                *s += t;
            }
            self.count += 1.0;
        }
    }

    /// Whether it is of d parameters and holds numbers.
    pub(in crate::sampler) fn is_consistent(&self, d: usize) -> bool {
        (self.sum.is_empty() || self.sum.len() == d)
            && self.sum.iter().all(|s| s.is_finite())
            && self.count >= 0.0
            && self.count.is_finite()
    }
}

impl Anchoring {
    /// Releases the expansion anew at `at`, in the coordinates of the one before.
    fn refresh(
        &self,
        before: &Anchor,
        at: &[f64],
        prior: &Prior,
        releases: &mut dyn Releases,
    ) -> Result<Anchor, Halt> {
        let tau = |share: f64| self.split.map_or(0.0, |s| multiplier(share * s.refresh));
        let noise = AnchorNoise::expansion(tau(SHARES[0]), tau(SHARES[1]));
        let bound = before.metric.row_bound;
        // (What a narrower bound keeps of weighted scores is not known any more.)
        let narrow = match self.slopes.clips_residuals && !self.slopes.weights_scores {
            true => STAGE_CLIP / STAGE_BOUND * bound,
            false => bound,
        };
        let seen = expand(at, &before.metric, narrow, noise, releases)?;
        self.centred(self.anchor_of(at, &before.metric, seen), prior)
    }
}

impl RandomWalk {
    /// Iterations after which the anchor is refreshed, where it is to be.
    pub(in crate::sampler) fn refresh_after(&self) -> Option<u64> {
        match &self.anchoring {
            Some(AnchorSettings::Expansion(settings)) if self.decides() => settings.refresh_after,
            _ => None,
        }
    }

    /// Whether the anchor is to be refreshed before the next step.
    pub fn wants_refresh(&self) -> bool {
        self.refresh_after() == Some(self.iteration()) && !self.warmup_mean.done
    }

    /// Releases the expansion anew, at the mean of the draws in the second half of warm-up. The
    /// draws before have another target.
    ///
    /// # Errors
    /// [`Halt`]; what was spent stays charged.
    pub fn refresh_anchor(&mut self, releases: &mut dyn Releases) -> Result<AnchorRelease, Halt> {
        let (Some(AnchorSettings::Expansion(settings)), Some(Surrogate::Expansion(before))) =
            (&self.anchoring, &self.prior.anchor)
        else {
            return Err(Halt::Refused(
                "there is no expansion to be refreshed".into(),
            ));
        };
        let mean = &self.warmup_mean;
        let at: Vec<f64> = mean.sum.iter().map(|s| s / mean.count.max(1.0)).collect();
        let prior = Prior {
            anchor: None,
            ..(*self.prior).clone()
        };
        let anchor = settings.anchoring.refresh(before, &at, &prior, releases)?;
        self.warmup_mean.done = true;
        Ok(AnchorRelease::Expansion(anchor))
    }

    /// Goes on with the first anchor.
    pub fn keep_anchor(&mut self) {
        self.warmup_mean.done = true;
        self.warmup_mean.kept = true;
    }

    /// Whether the first anchor was kept where a second one was wanted.
    pub fn kept_anchor(&self) -> bool {
        self.warmup_mean.kept
    }
}
