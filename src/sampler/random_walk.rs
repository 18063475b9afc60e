//! Random-walk samplers: one proposal for every chain, one request for all decisions.

use std::sync::Arc;

use ndarray::{Array2, ArrayView1, ArrayViewMut1};
use serde::{Deserialize, Serialize};

use super::proposal::{ClipNorm, ClipRule, Preconditioner, propose};
use super::{Adaptation, AnchoredMoves, AnchoredProposal, Anchoring, Chains, PublicRng};
use crate::model::{Anchor, Prior, remainder_rate};
use crate::privacy::{Acceptance, Estimator, Halt, MOST_STEPS, Moves, Releases};

/// A random-walk sampler: `mh`, `tuna-mh`, `barker`, `poisson-barker`, `dp-penalty`,
/// `dp-barker`.
#[derive(Clone, Debug)]
pub struct RandomWalk {
    prior: Arc<Prior>,
    /// Estimator of the log-likelihood ratio.
    pub estimator: Estimator,
    /// Acceptance rule.
    pub acceptance: Acceptance,
    /// Public clip; `None` only in non-private full-batch runs.
    pub clip: Option<ClipRule>,
    /// Step s, public.
    pub step: f64,
    /// Matrix A, public.
    pub preconditioner: Preconditioner,
    /// Warm-up state.
    pub adaptation: Adaptation,
    /// How rows are anchored, where they are: before the first step.
    pub anchoring: Option<AnchoredSettings>,
    anchored: Option<AnchoredMoves>,
    iteration: u64,
}

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
        let d = a.start.len() as f64;
        let usual = (4.0 * d / (a.tempering * a.rows as f64)).sqrt();
        let length = match self.proposal {
            AnchoredProposal::RandomWalk { step } => step * d.sqrt(),
            AnchoredProposal::Autoregressive { correlation } => {
                (2.0 * (1.0 - correlation) * d).sqrt()
            }
        };
        self.share * remainder_rate(a.tempering, a.clip * usual) * a.typical_square() * length
    }
}

/// What one step released.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepInfo {
    /// Decision of every chain.
    pub accepted: Vec<bool>,
}

/// What `state.json` keeps of a sampler: all of it public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplerState {
    step: f64,
    preconditioner: Preconditioner,
    adaptation: Adaptation,
    iteration: u64,
}

impl RandomWalk {
    /// A sampler for the given prior; `adaptation` as configured.
    pub fn new(
        prior: Prior,
        estimator: Estimator,
        acceptance: Acceptance,
        clip: Option<ClipRule>,
        step: f64,
        preconditioner: Preconditioner,
        adaptation: Adaptation,
    ) -> Self {
        RandomWalk {
            prior: Arc::new(prior),
            estimator,
            acceptance,
            clip,
            step,
            preconditioner,
            adaptation,
            anchoring: None,
            anchored: None,
            iteration: 0,
        }
    }

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
        let rate =
            settings.share * remainder_rate(settings.anchoring.tempering, anchor.metric.row_bound);
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

    /// Length of a move with ‖z‖ = √d in the given norm; d parameters.
    pub fn typical_move(&self, norm: ClipNorm, d: usize) -> f64 {
        let size = match (&self.preconditioner, norm) {
            (Preconditioner::Identity, _) | (_, ClipNorm::Proposal) => (d as f64).sqrt(),
            (Preconditioner::Diagonal(a) | Preconditioner::Full(a), ClipNorm::Euclidean) => {
                a.iter().map(|v| v * v).sum::<f64>().sqrt()
            }
        };
        self.step * size
    }

    /// Clip bound of a move with ‖z‖ = √d, nats; `None` without a clip.
    pub fn typical_clip(&self, d: usize) -> Option<f64> {
        if let Some(settings) = &self.anchoring {
            return Some(settings.typical_clip());
        }
        let clip = self.clip?;
        Some(clip.rate * self.typical_move(clip.norm, d))
    }

    /// Advances all chains by one step.
    ///
    /// # Errors
    /// [`Halt`]; the chains have not moved then.
    pub fn step(
        &mut self,
        chains: &mut Chains,
        releases: &mut dyn Releases,
    ) -> Result<StepInfo, Halt> {
        if self.wants_anchor() {
            return Err(Halt::Refused(
                "release and set the anchor before the first step".into(),
            ));
        }
        let (count, d) = chains.thetas.dim();
        let mut proposals = Array2::zeros((count, d));
        let mut public = Vec::with_capacity(count);
        let mut clips = Vec::with_capacity(count);
        for c in 0..count {
            let (clip, hastings) = self.propose(
                chains.thetas.row(c),
                proposals.row_mut(c),
                &mut chains.rngs[c],
            );
            let log_prior = |t: ndarray::ArrayView1<'_, f64>| {
                self.prior.log_density(t.as_slice().unwrap_or(&[f64::NAN]))
            };
            let change = log_prior(proposals.row(c)) - log_prior(chains.thetas.row(c));
            // Outside the support nothing else may decide, not even −∞ − ∞.
            public.push(if change == f64::NEG_INFINITY {
                change
            } else {
                change + hastings
            });
            clips.push(clip);
        }
        let mut info = StepInfo {
            accepted: vec![false; count],
        };
        let moves = Moves {
            thetas: chains.thetas.view(),
            proposals: proposals.view(),
            public: &public,
            clip_bounds: (self.clip.is_some() || self.anchored.is_some()).then_some(&clips),
        };
        releases.decide(&moves, self.estimator, self.acceptance, &mut info.accepted)?;
        for (c, &accepted) in info.accepted.iter().enumerate() {
            if accepted {
                chains.thetas.row_mut(c).assign(&proposals.row(c));
                chains.accepted[c] += 1;
            }
        }
        self.iteration += 1;
        let rate = info.accepted.iter().filter(|a| **a).count() as f64 / count.max(1) as f64;
        self.adaptation.update(
            self.iteration,
            &chains.thetas,
            rate,
            &mut self.step,
            &mut self.preconditioner,
        );
        Ok(info)
    }

    /// Proposes one chain's move; its clip bound and log Hastings ratio.
    fn propose(
        &self,
        theta: ArrayView1<'_, f64>,
        mut proposal: ArrayViewMut1<'_, f64>,
        rng: &mut PublicRng,
    ) -> (f64, f64) {
        if let Some(moves) = &self.anchored {
            let hastings = moves.propose(theta, proposal.view_mut(), rng);
            let points = (theta.as_slice(), proposal.as_slice());
            let clip = match points {
                (Some(a), Some(b)) => moves.clip(a, b),
                _ => f64::NAN,
            };
            return (clip, hastings);
        }
        let norm = self.clip.map_or(ClipNorm::Euclidean, |c| c.norm);
        let size = propose(theta, proposal, self.step, &self.preconditioner, norm, rng);
        (self.clip.map_or(0.0, |rule| rule.rate * size), 0.0)
    }

    /// The public state.
    pub fn state(&self) -> SamplerState {
        SamplerState {
            step: self.step,
            preconditioner: self.preconditioner.clone(),
            adaptation: self.adaptation.clone(),
            iteration: self.iteration,
        }
    }

    /// Restores the public state.
    ///
    /// # Errors
    /// A message naming the field that is damaged or of another dimension.
    pub fn restore(&mut self, state: &SamplerState) -> Result<(), String> {
        let d = self.adaptation.dim();
        let fits = match &state.preconditioner {
            Preconditioner::Identity => true,
            Preconditioner::Diagonal(a) => a.len() == d,
            Preconditioner::Full(l) => l.len() == d * d,
        };
        if !fits {
            return Err(format!("'preconditioner' is not one of {d} parameters"));
        }
        if !(state.step > 0.0 && state.step.is_finite()) {
            return Err("'step' is damaged".into());
        }
        if state.iteration > MOST_STEPS {
            return Err("'iteration' is damaged".into());
        }
        if !state.adaptation.is_consistent(d) {
            return Err(format!("'adaptation' is not one of {d} parameters"));
        }
        self.step = state.step;
        self.preconditioner = state.preconditioner.clone();
        self.adaptation = state.adaptation.clone();
        self.iteration = state.iteration;
        Ok(())
    }
}
