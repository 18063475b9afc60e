//! A sampler on anchored rows: its settings, and how an anchor is put in.

use std::sync::Arc;

use ndarray::Array1;
use rand::SeedableRng;

use super::moves::RemainderClip;
use super::{AnchoredMoves, AnchoredProposal, Anchoring, MomentSettings};
use crate::model::{AnchorRelease, FLAT_CLIP, MomentAnchor, Prior, Surrogate};
use crate::privacy::{Estimator, Halt, Releases};
use crate::sampler::{Chains, PublicRng, RandomWalk};

/// Moves that are made up to learn what those of a chain will cost, and the seed of their coins.
const TRIED: usize = 2000;
const TRIED_SEED: [u8; 32] = [0x61; 32];
/// Share of its budget that a run plans to spend on decisions: the moves of a chain are others.
const PLANNED: f64 = 0.85;

/// Settings of an anchored run.
#[derive(Clone, Debug, PartialEq)]
pub struct AnchoredSettings {
    /// How the anchor is found.
    pub anchoring: Anchoring,
    /// How moves are proposed.
    pub proposal: AnchoredProposal,
    /// Clip of a remainder as a share of its true bound for rows within the metric's row
    /// bound; of a network's, which has none, of [`crate::model::Slopes::remainder_rate`].
    pub share: f64,
    /// Iterations, the warm-up's, after which the expansion is released anew.
    pub refresh_after: Option<u64>,
    /// Which moves the rows are asked about.
    pub decisions: Decisions,
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
        let clip = self.clip(a.typical_bound());
        clip.rate * a.typical_square().sqrt().powi(clip.power) * length
    }

    /// Clip for rows bounded by b; of rate 0 without remainders.
    fn clip(&self, row_bound: f64) -> RemainderClip {
        let a = &self.anchoring;
        RemainderClip {
            rate: self.share * a.slopes.remainder_rate(a.unit, row_bound),
            power: a.slopes.remainder_power(),
        }
    }
}

/// Log ratios of all rows are sums of 2^20ths of a clip. Where a clip times √N is more than this,
/// rounding takes about 0.01 nats and more off their sum, and no decision is made by it.
const COARSEST: f64 = 3e4;

/// Whether moves around an anchor are decided on, or drawn from its Gaussian as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decisions {
    /// All moves.
    All,
    /// As many as their share of the budget holds, spread over the run: by the root mean square of
    /// their clips at the released anchor, nats.
    Paced {
        /// None beyond this: dearer ones could not be made often enough to be of use.
        most: f64,
        /// At this one all steps fit; a price goes with the square of the clip.
        full: f64,
    },
    /// None: every draw is one of the expansion's own Gaussian.
    None,
}

/// What is released before the first step, and how chains move with it.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // One a run.
pub enum AnchorSettings {
    /// An expansion at a point; moves follow its Gaussian.
    Expansion(AnchoredSettings),
    /// Moments of the rows; moves are an ordinary random walk's.
    Moments(MomentSettings),
}

impl AnchorSettings {
    /// Clip bound expected of a move, nats.
    pub fn typical_clip(&self) -> f64 {
        match self {
            AnchorSettings::Expansion(settings) => settings.typical_clip(),
            AnchorSettings::Moments(settings) => settings.typical_clip,
        }
    }

    /// ρ of what is released before the first step; `None` in a non-private run.
    pub fn rho(&self) -> Option<f64> {
        match self {
            AnchorSettings::Expansion(settings) => settings.anchoring.split.map(|s| s.rho()),
            AnchorSettings::Moments(settings) => settings.rho,
        }
    }
}

impl From<AnchoredSettings> for AnchorSettings {
    fn from(settings: AnchoredSettings) -> Self {
        AnchorSettings::Expansion(settings)
    }
}

/// An anchor in use.
#[derive(Clone, Debug)]
pub(in crate::sampler) enum AnchoredWalk {
    Expansion(AnchoredMoves),
    Moments {
        anchor: Arc<MomentAnchor>,
        /// Clip as a share of the true bound.
        share: f64,
    },
}

impl AnchoredMoves {
    /// Root mean square of the clips of moves from draws of the expansion's own Gaussian, nats. A
    /// few long ones rule it, the more so the fewer directions there are. Made up from what was
    /// released: it asks no row.
    fn root_mean_square_clip(&self, prior: &Prior) -> f64 {
        let mut rng = PublicRng::from_seed(TRIED_SEED);
        let squares = (0..TRIED).map(|_| {
            let theta = self.start(prior, &mut rng);
            let mut proposal = Array1::zeros(theta.len());
            self.propose((&theta).into(), proposal.view_mut(), &mut rng);
            self.clip(&theta, &proposal.to_vec()).powi(2)
        });
        (squares.sum::<f64>() / TRIED as f64).sqrt()
    }
}

impl RandomWalk {
    /// The same sampler on anchored rows.
    #[must_use]
    pub fn with_anchoring(mut self, settings: impl Into<AnchorSettings>) -> Self {
        self.anchoring = Some(settings.into());
        self
    }

    /// Whether an anchor has to be released before the first step.
    pub fn wants_anchor(&self) -> bool {
        self.anchoring.is_some() && self.anchored.is_none()
    }

    /// Releases the anchor: moments, or the private warm start and then the expansion itself.
    ///
    /// # Errors
    /// [`Halt`]; what was spent stays charged.
    pub fn release_anchor(&self, releases: &mut dyn Releases) -> Result<AnchorRelease, Halt> {
        let settings = self.anchoring.as_ref().ok_or_else(|| {
            Halt::Refused("this sampler is not an anchored one; it needs no anchor".into())
        })?;
        match settings {
            AnchorSettings::Expansion(settings) => settings
                .anchoring
                .run(&self.prior, releases)
                .map(AnchorRelease::Expansion),
            AnchorSettings::Moments(settings) => settings.release(releases),
        }
    }

    /// Takes the anchor over from a curator's model: [`RandomWalk::set_anchor`].
    ///
    /// # Errors
    /// As there, and where the prior holds none.
    pub fn follow(&mut self, prior: &Prior) -> Result<(), Halt> {
        match &prior.anchor {
            Some(anchor) => self.set_anchor(anchor.clone()),
            None => Err(Halt::Refused("the curator was given no anchor".into())),
        }
    }

    /// Moves with this anchor from here on; the curator must have been given it too, and its
    /// model's prior holds it.
    ///
    /// # Errors
    /// [`Halt::Refused`] where it is not usable.
    pub fn set_anchor(&mut self, anchor: impl Into<Surrogate>) -> Result<(), Halt> {
        let refuse = || Halt::Refused("the anchor is damaged or of another model".into());
        let settings = self.anchoring.as_ref().ok_or_else(refuse)?;
        let (anchor, settings) = match (anchor.into(), settings) {
            (Surrogate::Expansion(anchor), AnchorSettings::Expansion(settings)) => {
                (anchor, settings)
            }
            (Surrogate::Moments(anchor), AnchorSettings::Moments(settings)) => {
                let share = settings.share;
                self.anchored = Some(AnchoredWalk::Moments {
                    anchor: anchor.clone(),
                    share,
                });
                self.prior = Arc::new(Prior {
                    anchor: Some(Surrogate::Moments(anchor)),
                    ..(*self.prior).clone()
                });
                return Ok(());
            }
            _ => return Err(refuse()),
        };
        let clip = settings.clip(anchor.metric.row_bound);
        let prior = Prior {
            anchor: None,
            ..(*self.prior).clone()
        };
        let moves = AnchoredMoves::new(anchor.clone(), &prior, settings.proposal, clip);
        let moves = moves.ok_or_else(refuse)?;
        let is_private = settings.anchoring.split.is_some();
        self.pace = match settings.decisions {
            Decisions::All if !is_private => {
                let rows = settings.anchoring.rows as f64;
                self.read_by(rows, moves.root_mean_square_clip(&prior))
            }
            Decisions::All => 1.0,
            Decisions::Paced { most, full } => {
                let clip = moves.root_mean_square_clip(&prior);
                match clip <= most {
                    true => (PLANNED * (full / clip).powi(2)).min(1.0),
                    false => 0.0,
                }
            }
            Decisions::None => 0.0,
        };
        self.anchored = Some(AnchoredWalk::Expansion(moves));
        self.prior = Arc::new(Prior {
            anchor: Some(Surrogate::Expansion(anchor)),
            ..prior
        });
        Ok(())
    }

    /// How many of its moves a run without privacy decides on, whose clips are this large: all, by
    /// all rows where minibatches would be larger than those, or none. (Directions of which the
    /// rows say nothing are as wide as the prior, and so are moves.)
    fn read_by(&mut self, rows: f64, clip: f64) -> f64 {
        if let Estimator::Poisson { lambda } = self.estimator
            && lambda.value(rows * clip) + rows * clip > rows
        {
            self.estimator = Estimator::FullBatch;
        }
        match self.estimator {
            Estimator::FullBatch if clip * rows.sqrt() > COARSEST => 0.0,
            _ => 1.0,
        }
    }

    /// θ with the noise of the releases in it: a draw of the posterior given what was released,
    /// where θ is one of the chain's own target. θ itself without noise, and where no draw of it
    /// falls into the prior's support.
    pub fn noise_aware(&self, theta: &[f64], rng: &mut PublicRng) -> Vec<f64> {
        if let Some(AnchoredWalk::Expansion(moves)) = &self.anchored {
            for _ in 0..100 {
                let noise = moves.noise(rng);
                let moved: Vec<f64> = theta.iter().zip(noise).map(|(t, n)| t + n).collect();
                if self.prior.supports(&moved) {
                    return moved;
                }
            }
        }
        theta.to_vec()
    }

    /// Puts every chain at a draw of the expansion's own Gaussian, where there is one.
    pub fn start_at_anchor(&self, chains: &mut Chains) {
        let Some(AnchoredWalk::Expansion(moves)) = &self.anchored else {
            return;
        };
        for (c, mut theta) in chains.thetas.rows_mut().into_iter().enumerate() {
            let start = moves.start(&self.prior, &mut chains.rngs[c]);
            theta.assign(&ndarray::ArrayView1::from(&start));
        }
    }
}
