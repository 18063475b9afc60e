//! A posterior run: chains in lockstep, pulled step by step. The only file that knows
//! sampler, curator and output; draws leave it only beside their certificate.

mod state;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::model::{AnchorRelease, RowFunction};
use crate::privacy::{Certificate, Curator, Halt, Ledger, LedgerFileError, MOST_STEPS, RunFacts};
use crate::sampler::{Chains, RandomWalk, Sampler, StepInfo};
pub use state::{PartFile, RunState};

/// A refresh that the budget did not hold.
const KEPT_ANCHOR: &str = "the budget did not hold the second anchor (sampler.anchor.refresh): the run went on with the first one";

/// How long a run is and what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength {
    /// Iterations of each chain after warm-up.
    pub iterations: u64,
    /// Warm-up iterations, not kept but charged like all others.
    pub warmup: u64,
    /// Every `thin`-th draw is kept.
    pub thin: u64,
}

/// How a run ended, or that it has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It can be stepped.
    Running,
    /// All iterations were made.
    Finished,
    /// The next step would not have fitted the budget.
    BudgetSpent,
    /// The caller stopped it.
    Interrupted,
    /// Engine or ledger failed; draws up to there are valid.
    Failed(String),
}

impl Status {
    /// Its name in certificates.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Finished => "finished",
            Status::BudgetSpent => "budget spent",
            Status::Interrupted => "interrupted",
            Status::Failed(_) => "failed",
        }
    }
}

/// One kept draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// Chain, from 0.
    pub chain: u32,
    /// Iteration after warm-up, from 1.
    pub iteration: u64,
    /// θ, and the standard deviations that a prior samples, as [`PosteriorRun::parameters`] names
    /// them.
    pub theta: Vec<f64>,
}

/// A run in progress. See [`PosteriorRun::step`].
pub struct PosteriorRun {
    curator: Curator,
    sampler: Sampler,
    /// What puts the chains at their start, before the first step.
    start: Option<Sampler>,
    chains: Chains,
    length: RunLength,
    iteration: u64,
    /// How often it was resumed.
    session: u64,
    status: Status,
    draws: Vec<Draw>,
    kept_accepted: u64,
    warnings: Vec<String>,
    /// Where it is recorded, in words.
    records: Option<String>,
    resolved: String,
    anchor: Option<AnchorRelease>,
    /// The curator had answered before this run.
    used: bool,
    /// Whether draws have the noise of the releases in them.
    noise_aware: bool,
    /// Of an optimiser: the iteration whose point was kept last.
    kept_end: u64,
}

impl PosteriorRun {
    /// A run from its start. `resolved`: the run file that would repeat it; `warnings`:
    /// what its certificate must say.
    pub fn new(
        curator: Curator,
        sampler: impl Into<Sampler>,
        chains: Chains,
        length: RunLength,
        resolved: String,
        warnings: Vec<String>,
    ) -> Self {
        PosteriorRun {
            used: curator.ledger().is_some_and(|l| l.spent() > 0.0),
            curator,
            sampler: sampler.into(),
            start: None,
            chains,
            length,
            iteration: 0,
            session: 0,
            status: Status::Running,
            draws: Vec::new(),
            kept_accepted: 0,
            warnings,
            records: None,
            resolved,
            anchor: None,
            noise_aware: true,
            kept_end: 0,
        }
    }

    /// Keeps draws of the chains' own target, without the noise of the releases in them.
    #[must_use]
    pub fn keeping_chain_draws(mut self) -> Self {
        self.noise_aware = false;
        self
    }

    /// Has certificates say where this run is recorded, and `sum`, what all runs on its table that
    /// are add up to.
    pub fn recorded(&mut self, records: String, sum: Option<String>) {
        self.records = Some(records);
        self.warnings.extend(sum);
    }

    /// How often it was resumed.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// Puts every chain where one step of `start` leads, charged before the first step: a draw
    /// of a fitted Gaussian, or one posterior draw.
    #[must_use]
    pub fn starting_by(mut self, start: Option<Sampler>) -> Self {
        self.start = start;
        self
    }

    /// Stops once `flag` is set: before the next step, or between two releases of a long one (a
    /// fit, an anchor's warm start) and within a secret chain. What such a step
    /// released stays charged, and its chains have not moved; a fit is begun anew.
    #[must_use]
    pub fn stopping_by(mut self, flag: Arc<AtomicBool>) -> Self {
        self.curator.stop_when(flag);
        self
    }

    /// Takes up a saved state, with the curator's fresh secret generator; without privacy and
    /// with a fixed seed, with coins that no session before had. A ledger file takes up each state
    /// once: save the new one before the first step, as [`crate::output::RunDirectory`] does.
    ///
    /// # Errors
    /// A message naming what does not fit.
    pub fn resume(&mut self, state: &RunState) -> Result<(), String> {
        for (key, count) in [
            ("iteration", state.iteration),
            ("kept_accepted", state.kept_accepted),
            ("parts", state.parts),
            ("leg", state.session),
        ] {
            if count > MOST_STEPS {
                return Err(format!("the saved state's '{key}' is damaged"));
            }
        }
        let chains = Chains::restore(&state.chains)?;
        if chains.thetas.dim() != self.chains.thetas.dim() {
            return Err(format!(
                "the saved state has {:?} chains × parameters, the run file {:?}",
                chains.thetas.dim(),
                self.chains.thetas.dim()
            ));
        }
        // States of before sessions were counted say 0.
        let session = state.session.max(u64::from(state.resumed)) + 1;
        self.curator.take_up(state.paid.as_ref(), session)?;
        if let Some(anchor) = &state.anchor {
            self.set_anchor(anchor.clone()).map_err(|e| e.to_string())?;
        }
        self.chains = chains;
        let dim = self.chains.thetas.dim();
        self.sampler.restore(&state.sampler, state.iteration, dim)?;
        if self.sampler.walk().is_some_and(RandomWalk::kept_anchor) {
            self.warnings.push(KEPT_ANCHOR.into());
        }
        if state.is_started() {
            self.start = None;
        }
        self.iteration = state.iteration;
        self.kept_accepted = state.kept_accepted;
        self.kept_end = if state.parts > 0 { state.iteration } else { 0 };
        self.session = session;
        Ok(())
    }

    /// One iteration of all chains. Returns the status after it.
    pub fn step(&mut self) -> &Status {
        if self.status != Status::Running {
            return &self.status;
        }
        if self.iteration >= self.total() {
            self.status = Status::Finished;
            return &self.status;
        }
        if self.curator.stopped().is_err() {
            self.status = Status::Interrupted;
            return &self.status;
        }
        match self.advance() {
            Ok(info) => {
                self.iteration += 1;
                self.keep(&info.accepted);
                if self.iteration >= self.total() {
                    self.status = Status::Finished;
                }
            }
            Err(Halt::BudgetSpent(_)) => self.status = Status::BudgetSpent,
            Err(Halt::Interrupted) => self.status = Status::Interrupted,
            Err(Halt::Refused(what) | Halt::Failed(what)) => self.status = Status::Failed(what),
        }
        if self.sampler.is_optimiser() {
            self.keep_end();
        }
        &self.status
    }

    /// Start and anchor first, where they are wanted, and a new anchor after warm-up; then one step
    /// of the sampler.
    fn advance(&mut self) -> Result<StepInfo, Halt> {
        if let Some(start) = &mut self.start {
            start.step(&mut self.chains, &mut self.curator)?;
            self.start = None;
        }
        if let Some(walk) = self.sampler.walk().filter(|w| w.wants_anchor()) {
            let anchor = walk.release_anchor(&mut self.curator)?;
            self.set_anchor(anchor)?;
            if let Some(walk) = self.sampler.walk() {
                walk.start_at_anchor(&mut self.chains);
            }
        }
        if let Some(walk) = self.sampler.walk_mut().filter(|w| w.wants_refresh()) {
            match walk.refresh_anchor(&mut self.curator) {
                Ok(anchor) => {
                    self.set_anchor(anchor)?;
                    if let Some(walk) = self.sampler.walk() {
                        walk.start_at_anchor(&mut self.chains);
                    }
                }
                // Nothing was charged; there may be enough for steps at the first one.
                Err(Halt::BudgetSpent(_)) => {
                    walk.keep_anchor();
                    self.warnings.push(KEPT_ANCHOR.into());
                }
                Err(other) => return Err(other),
            }
        }
        self.sampler.step(&mut self.chains, &mut self.curator)
    }

    fn set_anchor(&mut self, anchor: AnchorRelease) -> Result<(), Halt> {
        let Some(walk) = self.sampler.walk_mut() else {
            return Err(Halt::Refused("this sampler takes no anchor".into()));
        };
        self.curator.set_anchor(anchor.clone())?;
        walk.follow(self.curator.model().prior())?;
        self.anchor = Some(anchor);
        Ok(())
    }

    fn keep(&mut self, accepted: &[bool]) {
        let Some(iteration) = self.iteration.checked_sub(self.length.warmup) else {
            return;
        };
        if iteration == 0 || self.sampler.is_optimiser() {
            return;
        }
        self.kept_accepted += accepted.iter().filter(|a| **a).count() as u64;
        if !iteration.is_multiple_of(self.length.thin) {
            return;
        }
        for (c, theta) in self.chains.thetas.rows().into_iter().enumerate() {
            let theta = theta.to_vec();
            let theta = match self.sampler.walk() {
                Some(walk) if self.noise_aware => {
                    walk.noise_aware(&theta, &mut self.chains.rngs[c])
                }
                _ => theta,
            };
            let mut theta = theta;
            if let Some(blocks) = self.curator.model().prior().blocks() {
                let scales = blocks.scales(&theta, &mut self.chains.rngs[c]);
                theta.extend(scales);
            }
            self.draws.push(Draw {
                chain: c as u32,
                iteration,
                theta,
            });
        }
    }

    /// Keeps the point where an optimiser ended, once.
    fn keep_end(&mut self) {
        let ended = matches!(self.status, Status::Finished | Status::BudgetSpent);
        if !ended || self.iteration <= self.kept_end {
            return;
        }
        self.kept_end = self.iteration;
        for (c, theta) in self.chains.thetas.rows().into_iter().enumerate() {
            self.draws.push(Draw {
                chain: c as u32,
                iteration: self.iteration,
                theta: theta.to_vec(),
            });
        }
    }

    fn total(&self) -> u64 {
        self.length.iterations.saturating_add(self.length.warmup)
    }

    /// Stops the run at the caller's wish.
    pub fn interrupt(&mut self) {
        if self.status == Status::Running {
            self.status = Status::Interrupted;
        }
    }

    /// Status now.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Whether the next step pays for a start, an anchor or a fit: state that a crash must not
    /// lose, or it would be paid for again.
    pub fn pays_once(&self) -> bool {
        let fits = matches!(&self.sampler, Sampler::Variational(fit) if fit.posterior().is_none());
        let anchors = self.sampler.walk().is_some_and(|w| w.wants_anchor());
        self.start.is_some() || fits || anchors
    }

    /// Iterations made and to make, warm-up included.
    pub fn progress(&self) -> (u64, u64) {
        (self.iteration, self.total())
    }

    /// Share of accepted moves after warm-up (decisions are released).
    pub fn acceptance(&self) -> f64 {
        // In floating point: counts of a damaged state must not overflow.
        let chains = self.chains.len() as f64;
        let kept = self.iteration.saturating_sub(self.length.warmup);
        let (hits, moves) = if kept == 0 {
            let hits = self.chains.accepted.iter().map(|a| *a as f64).sum();
            (hits, self.iteration as f64 * chains)
        } else {
            (self.kept_accepted as f64, kept as f64 * chains)
        };
        hits / moves.max(1.0)
    }

    /// Names of what draws hold: the model's parameters, then the standard deviations that its
    /// prior samples.
    pub fn parameters(&self) -> Vec<String> {
        let model = self.curator.model();
        let scales = model.prior().blocks().map(|b| b.names());
        let names = model.parameters().iter().cloned();
        names.chain(scales.into_iter().flatten()).collect()
    }

    /// Kept draws not yet taken by the output.
    pub fn pending(&self) -> usize {
        self.draws.len()
    }

    /// The curator (its ledger, engine and model).
    pub fn curator(&self) -> &Curator {
        &self.curator
    }

    /// Settles the ledger of a run that ends or cannot go on.
    ///
    /// # Errors
    /// [`LedgerFileError`]; the reservation stands.
    pub fn settle(&mut self) -> Result<(), LedgerFileError> {
        self.curator.settle()
    }

    /// The resolved run file.
    pub fn resolved(&self) -> &str {
        &self.resolved
    }

    /// The certificate at this moment. Only a run that ended by itself, never resumed and
    /// with costs that could not follow released values, may claim what it spent.
    pub fn certificate(&self) -> Certificate {
        self.certificate_as(&self.status)
    }

    /// The same of a run that goes on, which claims the budget: what is written before the last
    /// draws have their state and the ledger is settled.
    pub(crate) fn certificate_before_the_end(&self) -> Certificate {
        self.certificate_as(&Status::Running)
    }

    fn certificate_as(&self, status: &Status) -> Certificate {
        let by_itself = matches!(status, Status::Finished | Status::BudgetSpent);
        let bounded = self.curator.model().prior().is_bounded();
        let adaptive = !by_itself
            || self.used
            || self.session > 0
            || bounded
            || self.sampler.costs_follow_releases();
        Certificate::new(
            &self.curator,
            &RunFacts {
                chains: self.chains.len(),
                iterations: self.iteration,
                status: status.name(),
                adaptive,
                warnings: &self.warnings,
                records: self.records.as_deref(),
            },
        )
    }

    /// Public state; `parts` counts the published part files. The output adds their list, and what
    /// tells settings apart.
    pub fn state(&self, parts: u64) -> RunState {
        RunState {
            iteration: self.iteration,
            resumed: self.session > 0,
            session: self.session,
            started: self.start.is_none(),
            kept_accepted: self.kept_accepted,
            parts,
            files: Vec::new(),
            settings: String::new(),
            paid: self.curator.ledger().map(Ledger::paid_run),
            anchor: self.anchor.clone(),
            noise_aware: self.noise_aware,
            // Rows of a linear model have nothing left to be asked about.
            free: !self.sampler.walk().is_none_or(RandomWalk::decides)
                && self.curator.model().row_function() != RowFunction::Affine,
            chains: self.chains.state(),
            sampler: self.sampler.state(),
        }
    }

    /// Hands the pending draws over together with the certificate that covers them.
    pub fn take_draws(&mut self) -> (Vec<Draw>, Certificate) {
        let certificate = self.certificate();
        (std::mem::take(&mut self.draws), certificate)
    }
}
