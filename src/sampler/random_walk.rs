//! Random-walk samplers: one proposal for every chain, one request for all decisions.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::anchored::{AnchoredWalk, WarmupMean};
use super::proposal::{ClipNorm, ClipRule, Preconditioner, propose};
use super::{Adaptation, AnchorSettings, Chains, Decisions, FastMh, PublicRng};
use crate::model::Prior;
use crate::privacy::{Acceptance, Estimator, Halt, MOST_STEPS, Moves, Releases};

/// A random-walk sampler: every algorithm of the catalogue.
#[derive(Clone, Debug)]
pub struct RandomWalk {
    pub(super) prior: Arc<Prior>,
    /// Estimator of the log-likelihood ratio.
    pub estimator: Estimator,
    /// Acceptance rule.
    pub acceptance: Acceptance,
    /// DP-Fast MH: estimator and acceptance follow from each move's clip bound instead.
    pub fast_mh: Option<FastMh>,
    /// Public clip; `None` only in non-private full-batch runs.
    pub clip: Option<ClipRule>,
    /// Step s, public.
    pub step: f64,
    /// Matrix A, public.
    pub preconditioner: Preconditioner,
    /// Warm-up state.
    pub adaptation: Adaptation,
    /// How rows are anchored, where they are: before the first step.
    pub anchoring: Option<AnchorSettings>,
    pub(super) anchored: Option<AnchoredWalk>,
    pub(super) warmup_mean: WarmupMean,
    /// Share of the iterations at which the rows are asked about a move; a chain stays where it is
    /// at the others. At 0 a released Gaussian's draws are kept as they are.
    pub(super) pace: f64,
    iteration: u64,
}

/// What one step released.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepInfo {
    /// Decision of every chain.
    pub accepted: Vec<bool>,
}

/// What `state.json` keeps of a sampler: all of it public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomWalkState {
    step: f64,
    preconditioner: Preconditioner,
    adaptation: Adaptation,
    iteration: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warmup_mean: Option<WarmupMean>,
    /// Share of the iterations that are decided on, of an anchored walk that has its anchor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pace: Option<f64>,
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
            fast_mh: None,
            clip,
            step,
            preconditioner,
            adaptation,
            anchoring: None,
            anchored: None,
            warmup_mean: WarmupMean::default(),
            pace: 1.0,
            iteration: 0,
        }
    }

    /// Length of a move with ‖z‖ = √d in the given norm; d parameters.
    pub fn typical_move(&self, norm: ClipNorm, d: usize) -> f64 {
        let size = match (&self.preconditioner, norm) {
            (_, ClipNorm::Constant) => return 1.0,
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
        if !self.decides() {
            let accepted = self.free_step(chains);
            self.iteration += 1;
            return Ok(StepInfo { accepted });
        }
        if !self.is_due() {
            self.iteration += 1;
            return Ok(StepInfo {
                accepted: vec![false; count],
            });
        }
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
            // Outside the support nothing else may decide, not even −∞ − ∞; nor where no bound is
            // known, which is public and symmetric too.
            public.push(if change == f64::NEG_INFINITY || !clip.is_finite() {
                f64::NEG_INFINITY
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
        self.decide(&moves, releases, &mut info.accepted)?;
        for (c, &accepted) in info.accepted.iter().enumerate() {
            if accepted {
                chains.thetas.row_mut(c).assign(&proposals.row(c));
                chains.accepted[c] += 1;
            }
        }
        self.iteration += 1;
        if let Some(after) = self.refresh_after()
            && self.iteration <= after
            && 2 * self.iteration > after
        {
            self.warmup_mean.add(&chains.thetas);
        }
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

    /// One step on what is released alone: prior and expansion. No row is asked, so Metropolis'
    /// rule decides by public coins; where the prior is normal, every proposal is a draw. Where its
    /// scales are sampled a Gibbs sampler steps.
    fn free_step(&self, chains: &mut Chains) -> Vec<bool> {
        let (count, d) = chains.thetas.dim();
        let mut accepted = vec![false; count];
        for (c, accepted) in accepted.iter_mut().enumerate() {
            let mut proposal = Array1::zeros(d);
            let theta = chains.thetas.row(c).to_owned();
            let rng = &mut chains.rngs[c];
            if let Some(AnchoredWalk::Expansion(moves)) = &self.anchored
                && let Some(drawn) = moves.gibbs(&theta.to_vec(), rng)
            {
                chains.thetas.row_mut(c).assign(&Array1::from_vec(drawn));
                chains.accepted[c] += 1;
                *accepted = true;
                continue;
            }
            let (_, hastings) = self.propose(theta.view(), proposal.view_mut(), rng);
            let log = |t: &Array1<f64>| self.prior.log_density(t.as_slice().unwrap_or(&[f64::NAN]));
            let change = log(&proposal) - log(&theta) + hastings;
            let coin: f64 = rng.random();
            if coin.ln() < change {
                chains.thetas.row_mut(c).assign(&proposal);
                chains.accepted[c] += 1;
                *accepted = true;
            }
        }
        accepted
    }

    /// Proposes one chain's move; its clip bound and log Hastings ratio.
    fn propose(
        &self,
        theta: ArrayView1<'_, f64>,
        mut proposal: ArrayViewMut1<'_, f64>,
        rng: &mut PublicRng,
    ) -> (f64, f64) {
        if let Some(anchored) = &self.anchored {
            let hastings = match anchored {
                AnchoredWalk::Expansion(moves) => moves.propose(theta, proposal.view_mut(), rng),
                AnchoredWalk::Moments { .. } => {
                    let (a, norm) = (&self.preconditioner, ClipNorm::Constant);
                    propose(theta, proposal.view_mut(), self.step, a, norm, rng);
                    0.0
                }
            };
            let clip = match (theta.as_slice(), proposal.as_slice(), anchored) {
                (Some(a), Some(b), AnchoredWalk::Expansion(moves)) => moves.clip(a, b),
                (Some(a), Some(b), AnchoredWalk::Moments { anchor, share }) => {
                    share * anchor.clip(a, b)
                }
                _ => f64::NAN,
            };
            return (clip, hastings);
        }
        let norm = self.clip.map_or(ClipNorm::Euclidean, |c| c.norm);
        let size = propose(theta, proposal, self.step, &self.preconditioner, norm, rng);
        (self.clip.map_or(0.0, |rule| rule.rate * size), 0.0)
    }

    /// Whether its steps ask the rows; else they are free.
    pub fn decides(&self) -> bool {
        match (&self.anchoring, &self.anchored) {
            (Some(AnchorSettings::Expansion(s)), None) => s.decisions != Decisions::None,
            _ => self.pace > 0.0,
        }
    }

    /// Whether it is anchored by the expansion of a regression.
    pub fn expands_regression(&self) -> bool {
        match &self.anchoring {
            Some(AnchorSettings::Expansion(s)) => !s.anchoring.slopes.predictor.is_network(),
            _ => false,
        }
    }

    /// Whether there is anything to decide about moves around its anchor.
    pub fn has_remainders(&self) -> bool {
        match &self.anchoring {
            Some(AnchorSettings::Expansion(s)) => !s.anchoring.slopes.is_quadratic(),
            _ => true,
        }
    }

    /// Whether it makes as many decisions as fit and spreads them, instead of ending early.
    pub fn is_paced(&self) -> bool {
        match &self.anchoring {
            Some(AnchorSettings::Expansion(s)) => matches!(s.decisions, Decisions::Paced { .. }),
            _ => false,
        }
    }

    /// Goes on without decisions, as the run began.
    pub fn draw_freely(&mut self) {
        if let Some(AnchorSettings::Expansion(s)) = &mut self.anchoring {
            s.decisions = Decisions::None;
        }
    }

    /// Whether this iteration makes a decision: as many as the pace has by now.
    fn is_due(&self) -> bool {
        let made = |n: u64| (n as f64 * self.pace).floor();
        made(self.iteration + 1) > made(self.iteration)
    }

    /// The public state.
    pub fn state(&self) -> RandomWalkState {
        RandomWalkState {
            step: self.step,
            preconditioner: self.preconditioner.clone(),
            adaptation: self.adaptation.clone(),
            iteration: self.iteration,
            warmup_mean: self.refresh_after().map(|_| self.warmup_mean.clone()),
            pace: self.anchored.as_ref().map(|_| self.pace),
        }
    }

    pub(super) fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Restores the public state.
    ///
    /// # Errors
    /// A message naming the field that is damaged or of another dimension.
    pub fn restore(&mut self, state: &RandomWalkState) -> Result<(), String> {
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
        let mean = state.warmup_mean.clone().unwrap_or_default();
        if !mean.is_consistent(d) {
            return Err(format!("'warmup_mean' is not one of {d} parameters"));
        }
        if let Some(pace) = state.pace {
            if !(0.0..=1.0).contains(&pace) {
                return Err("'pace' is damaged".into());
            }
            self.pace = pace;
        }
        self.warmup_mean = mean;
        self.step = state.step;
        self.preconditioner = state.preconditioner.clone();
        self.adaptation = state.adaptation.clone();
        self.iteration = state.iteration;
        Ok(())
    }
}
