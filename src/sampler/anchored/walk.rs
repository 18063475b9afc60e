//! A sampler on anchored rows: its settings, and how an anchor is put in.

use std::sync::Arc;

use super::moves::FLAT_CLIP;
use super::{AnchoredMoves, AnchoredProposal, Anchoring};
use crate::model::{Anchor, Prior};
use crate::privacy::{Halt, Releases};
use crate::sampler::{Chains, RandomWalk};

/// Settings of an anchored run.
#[derive(Clone, Debug, PartialEq)]
pub struct AnchoredSettings {
    /// How the anchor is found.
    pub anchoring: Anchoring,
    /// How moves are proposed.
    pub proposal: AnchoredProposal,
    /// Clip of a remainder as a share of its true bound for rows within the metric's row
    /// bound.
    pub share: f64,
}

impl AnchoredSettings {
    /// Clip bound expected of a move, nats; follows from the settings alone.
    pub fn typical_clip(&self) -> f64 {
        let a = &self.anchoring;
        if a.slopes.is_quadratic() {
            return FLAT_CLIP;
        }
        let d = a.start.len() as f64;
        let length = match self.proposal {
            AnchoredProposal::RandomWalk { step } => step * d.sqrt(),
            AnchoredProposal::Autoregressive { correlation } => {
                (2.0 * (1.0 - correlation) * d).sqrt()
            }
        };
        self.rate(a.typical_bound()) * a.typical_square() * length
    }

    /// Clip bound over `max(‖u‖,‖u'‖)² ‖u'−u‖` for rows bounded by b; 0 without remainders.
    fn rate(&self, row_bound: f64) -> f64 {
        let a = &self.anchoring;
        self.share * a.slopes.remainder_rate(a.unit, row_bound)
    }
}

impl RandomWalk {
    /// The same sampler on anchored rows.
    #[must_use]
    pub fn with_anchoring(mut self, settings: AnchoredSettings) -> Self {
        self.anchoring = Some(settings);
        self
    }

    /// Whether an anchor has to be released before the first step.
    pub fn wants_anchor(&self) -> bool {
        self.anchoring.is_some() && self.anchored.is_none()
    }

    /// Releases the anchor: the private warm start, then the expansion itself.
    ///
    /// # Errors
    /// [`Halt`]; what was spent stays charged.
    pub fn release_anchor(&self, releases: &mut dyn Releases) -> Result<Anchor, Halt> {
        let settings = self.anchoring.as_ref().ok_or_else(|| {
            Halt::Refused("this sampler is not an anchored one; it needs no anchor".into())
        })?;
        settings.anchoring.run(&self.prior, releases)
    }

    /// Moves around `anchor` from here on; the curator must have been given it too.
    ///
    /// # Errors
    /// [`Halt::Refused`] where it is not usable.
    pub fn set_anchor(&mut self, anchor: Anchor) -> Result<(), Halt> {
        let refuse = || Halt::Refused("the anchor is damaged or of another model".into());
        let settings = self.anchoring.as_ref().ok_or_else(refuse)?;
        let rate = settings.rate(anchor.metric.row_bound);
        let prior = Prior {
            anchor: None,
            ..(*self.prior).clone()
        };
        let anchor = Arc::new(anchor);
        let moves = AnchoredMoves::new(anchor.clone(), &prior, settings.proposal, rate);
        self.anchored = Some(moves.ok_or_else(refuse)?);
        self.prior = Arc::new(Prior {
            anchor: Some(anchor),
            ..prior
        });
        Ok(())
    }

    /// Puts every chain at a draw of the expansion's own Gaussian.
    pub fn start_at_anchor(&self, chains: &mut Chains) {
        let Some(moves) = &self.anchored else {
            return;
        };
        for (c, mut theta) in chains.thetas.rows_mut().into_iter().enumerate() {
            let start = moves.start(&self.prior, &mut chains.rngs[c]);
            theta.assign(&ndarray::ArrayView1::from(&start));
        }
    }
}
