//! `[sampler]`: a published combination or three choices, and their settings.

use serde::{Deserialize, Serialize};

use super::Numbers;
use super::key::section;
use super::pair;
use crate::sampler::{AcceptanceName, Adapt, Algorithm, AnchoredProposal, ClipNorm, EstimatorName};

/// `clip = { rate = … }`, `{ rms = … }` or `{ share = … }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClipEntry {
    /// Nats a unit of the norm; of an anchored network's remainders, the r of
    /// `r·(κb²/d)·max(‖u‖,‖u'‖)·‖u'−u‖` (docs/proofs/anchors.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// In units of the root mean square that a row's ratio has when the proposal's scale
    /// matches the posterior: rate = rms·√(κ/N), norm `proposal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rms: Option<f64>,
    /// As a share of the model's true bound; for anchored samplers, of the remainder's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// `euclidean` (default), `proposal` or `constant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm: Option<ClipNorm>,
}

section! {
    /// `[sampler]`
    pub struct SamplerSection {
        /// What each is stands in [samplers.md](samplers.md); eight are not private. `--algorithm`
        /// overrides it and drops settings that the other sampler has no use for.
        algorithm: Option<Algorithm>, "a name", "";
        /// Instead of `algorithm`, with `acceptance`: rows that a step reads.
        estimator: Option<EstimatorName>, "`all`, `poisson`, `fixed-batch`", "samplers that decide on proposals";
        /// Instead of `algorithm`: how a move is accepted; `metropolis` is not private.
        acceptance: Option<AcceptanceName>, "`barker`, `penalty`, `noisy-barker`, `metropolis`", "samplers that decide on proposals";
        /// Instead of `algorithm`: whether rows are asked only for what a released stand-in of the
        /// likelihood misses ([anchors.md](../proofs/anchors.md)).
        anchored: Option<bool>, "bool, `false`", "samplers that decide on proposals";
        /// What it is the step of, and its default, stand below.
        step: Option<f64>, "number > 0", "";
        /// Rough posterior standard deviations: the diagonal of the preconditioner.
        scale: Option<Numbers>, "number or list of d, 1", "";
        /// Rough posterior covariance, instead of `scale`.
        covariance: Option<Vec<Vec<f64>>>, "d × d matrix", "samplers that decide on proposals";
        /// What warm-up learns, from released draws and decisions alone.
        adapt: Adapt, "`none`, `step`, `diagonal`, `full`; `none`", "samplers that decide on proposals";
        /// What warm-up aims at; default 0.2, penalty 0.15 (`dp-fast-mh` 0.2), metropolis 0.3;
        /// Hamiltonian 0.35 with Barker acceptance, else 0.65.
        target_acceptance: Option<f64>, "in (0, 1)", "samplers that decide on proposals";
        /// Bound of a row's log ratio. `dp-barker-subsampled` has its own, √batch/N.
        clip: Option<ClipEntry>, "table, see below; the model's true bound", "samplers that decide on proposals";
        /// Moves in the anchor's own Gaussian, for regressions and networks; r = 0 proposes
        /// independent draws.
        proposal: Option<AnchoredProposal>, "`{ autoregressive = { correlation = r } }`, -1 < r < 1, or `{ random-walk = { step = s } }`; the first, r = 0", "anchored samplers (anchored-barker, or anchored = true)";
        /// How the anchor is found and paid for.
        anchor: Option<AnchorSection>, "table, see below", "anchored samplers (anchored-barker, or anchored = true)";
        /// λ of a Poisson minibatch, of λ + Λ rows on average, Λ = N · clip. More rows, less noise,
        /// less privacy spent. One of `lambda`, `lambda_ratio` and `chi`.
        lambda: Option<f64>, "number > 0; of `dp-fast-mh` 10, at most `batch_cap`/2", "Poisson minibatches (dp-fast-mh takes 'lambda' itself)";
        /// λ/Λ instead.
        lambda_ratio: Option<f64>, "number > 0; 1, anchored networks 4", "Poisson minibatches (dp-fast-mh takes 'lambda' itself)";
        /// λ/Λ² instead.
        chi: Option<f64>, "number > 0", "Poisson minibatches (dp-fast-mh takes 'lambda' itself)";
        /// Noise of a decision in units of its sensitivity: ρ = 1/(2τ²). Required without privacy
        /// and on minibatches.
        tau: Option<f64>, "number > 0; what budget and iterations allow", "penalty acceptance (dp-penalty)";
        /// Variance C of the noise in the test.
        variance: Option<f64>, "in (0, π²/3), 2", "dp-barker alone (all rows, noisy-barker)";
        /// Rows b of a batch without replacement.
        batch: Option<usize>, "whole number > 10; 1000, or a tenth of fewer rows", "fixed batches (dp-barker-subsampled)";
        /// Largest minibatch K.
        batch_cap: Option<f64>, "number ≥ 1, N/6", "dp-fast-mh";
        /// ε of a step, from which its noise follows; no budget.
        step_epsilon: Option<f64>, "number > 0, 0.05", "dp-fast-mh";
        /// δ of a step, from which its noise follows; no budget.
        step_delta: Option<f64>, "number > 0, 1e-5", "dp-fast-mh";
        /// To the letter of the paper.
        as_published: bool, "bool, `false`", "dp-sgld and dp-sghmc";
        /// Steps L of a trajectory; beside `estimator` and `acceptance` it asks for trajectories.
        leapfrog_steps: Option<u32>, "1 to 2²⁰, 10", "Hamiltonian samplers (hmc, dp-hmc, barker-hmc)";
        /// Random factor of the leapfrog step.
        jitter: Option<JitterEntry>, "`true` ([0.9, 1.1]), `false`, `[LOW, HIGH]` within [0, 10]; `true`", "Hamiltonian samplers (hmc, dp-hmc, barker-hmc)";
        /// Warm-up adapts L; does nothing with one chain.
        adapt_length: Option<bool>, "bool, `false`", "Hamiltonian samplers (hmc, dp-hmc, barker-hmc)";
        /// How gradients are clipped and released.
        gradient: Option<GradientSection>, "table, see below", "samplers on gradients";
        /// How the step falls: step · 1, t^(-1/3), (b + t)^(-g), 0 < g ≤ 1, or in
        /// cycles of n iterations from `step` to almost nothing along a cosine (Zhang 2020).
        schedule: Option<ScheduleEntry>, "`\"fixed\"`, `\"cube-root\"`, `{ offset = b, exponent = g }`, `{ cycle = n }`; fixed", "stochastic gradients and optimisers";
        /// Share of momentum lost in a step.
        friction: Option<f64>, "in (0, 1], 0.1", "sghmc and dp-sghmc";
        /// Diffusion of the thermostat.
        diffusion: Option<f64>, "number > 0, 1", "sgnht and dp-sgnht";
        /// Metric learned from released gradients over `adapt` steps, e.g. `{ decay = 0.99, floor =
        /// 0.05, adapt = 1000 }`.
        preconditioner: Option<RmsEntry>, "`{ decay, floor, adapt }`, none", "sgld and dp-sgld";
        /// Steps of the fit, or of the secret chain behind a draw.
        steps: Option<u64>, "whole number, 2000", "dpvi and ops";
    }
}

section! {
    /// `[sampler.gradient]`: clip and noise of released gradients.
    pub struct GradientSection {
        /// Bound b on a row's tempered gradient, nats a unit of θ.
        clip: Option<f64>, "number > 0; of networks 1, of others the model's true bound", "";
        /// The same as a share of the model's true bound; where there is none, a private run needs
        /// `clip`.
        share: Option<f64>, "number > 0, 1", "";
        /// Hamiltonian samplers, `dpvi`, `dp-sgd` and `dp-adam`: noise on the sum over the rows of
        /// a step in units of its sensitivity, 2 · clip: over all rows ρ = 1/(2τ²) a gradient. Half
        /// of the noise multiplier that papers state, which is in units of the clip.
        tau: Option<f64>, "number > 0; what the budget allows", "";
        /// Stochastic gradients and optimisers: rows enter a step's batch with this probability.
        rate: Option<f64>, "in (0, 1]; all rows", "";
        /// Stochastic gradients: noise beyond what the dynamics inject, in units of 2 · clip.
        extra_tau: Option<f64>, "number ≥ 0, 0", "";
    }
}

/// `jitter = true`, `false` or `[low, high]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "jitter must be true, false or [low, high], the range of the factors of the step size"
)]
pub enum JitterEntry {
    /// Between 0.9 and 1.1, or none.
    Switch(bool),
    /// Between these.
    Range(#[serde(deserialize_with = "pair::deserialize")] [f64; 2]),
}

/// `schedule = "fixed"`, `"cube-root"`, `{ offset = …, exponent = … }` or `{ cycle = … }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "schedule must be \"fixed\", \"cube-root\", { offset = …, exponent = … } or { cycle = … }"
)]
pub enum ScheduleEntry {
    /// By name.
    Named(ScheduleName),
    /// `step·(offset + t)^−exponent`.
    Polynomial(PolynomialEntry),
    /// From `step` to almost nothing, and anew.
    Cyclical(CycleEntry),
}

/// Schedules by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleName {
    /// `step`.
    Fixed,
    /// `step·t^(−1/3)`.
    CubeRoot,
}

/// A polynomial schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolynomialEntry {
    /// b ≥ 0.
    pub offset: f64,
    /// γ in (0, 1].
    pub exponent: f64,
}

/// A cyclical schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycleEntry {
    /// Iterations of a cycle, n ≥ 2.
    pub cycle: u64,
}

/// `preconditioner = { decay = 0.99, floor = 0.05, adapt = 1000 }`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RmsEntry {
    /// Weight of the past in the running mean of squared gradients.
    pub decay: f64,
    /// Smallest curvature taken seriously, relative to the largest.
    pub floor: f64,
    /// Steps over which the metric is learned.
    pub adapt: u64,
}

section! {
    /// `[sampler.anchor]`; shares are of the budget.
    pub struct AnchorSection {
        /// The most that the private path to the mode may take; what it leaves goes to the last
        /// releases. `mlp`: the warm start, 20 to 60 % of what the steps leave over, more where the
        /// budget is small.
        start: Option<f64>, "share; half of what decisions leave over; models: regressions, `mlp`", "";
        /// The last releases' gradients, four of them. What the path left is divided between these
        /// and the curvature in their proportion. `mlp`: three quarters of the rest.
        gradient: Option<f64>, "share; 44 % of what decisions leave over; models: as above", "";
        /// The last releases' curvature. `mlp`: a quarter of the rest.
        curvature: Option<f64>, "share; 6 % of what decisions leave over; models: as above", "";
        /// Decisions on moves. If it is given, it is kept for them whatever they cost. By default a
        /// run decides only if three times `[run] ess` decisions (or all that it plans) fit, and
        /// draws from the anchor's Gaussian if not. It has no effect on `dp-laplace`, or on
        /// `linear` by `algorithm`, which make no decisions.
        decisions: Option<f64>, "share; what they are worth, at most 30 %, or none; models: `logistic`, `poisson`", "";
        /// Steps of the path at most, which usually ends earlier; of networks, all are made. 0
        /// makes the last releases at the start, after a curvature there.
        stages: Option<u32>, "0 to 100; 25, `linear` up to 60, `mlp` 20; models: regressions, `mlp`", "";
        /// A second release after warm-up (100 or more) at the mean of its second half. For runs
        /// that decide.
        refresh: Option<f64>, "share up to 0.8, none; models: as above", "";
        /// Row bound of the last releases' gradients, in units of the rows' expected root mean
        /// square; longer rows are weighted down. The last curvature has the same bound, or a wider
        /// one where a row's score is bounded apart from its length.
        clip: Option<f64>, "number > 0; by a released profile of row lengths, `mlp` 3; models: as above", "";
        /// The target is restricted to this distance from the expansion's centre, in about
        /// posterior sds.
        radius: Option<f64>, "number > 0; 4√d + 4; models: as above", "";
        /// The release of moments.
        moments: Option<f64>, "share; what the steps leave over; models: `mixture`, `gaussian-mean`, `banana`", "";
        /// Highest moment that is released.
        degree: Option<usize>, "1 to 30, 12; models: `mixture`", "";
    }
}

impl SamplerSection {
    /// Whether estimator and acceptance are named one by one.
    pub fn is_explicit(&self) -> bool {
        self.algorithm.is_none()
    }

    /// Makes `algorithm` the choice, and drops the settings that it has no use for.
    pub fn choose(&mut self, algorithm: Algorithm) {
        for key in Self::KEYS.iter().filter(|key| key.is_particular()) {
            if !algorithm.family().takes(key.name) {
                self.unset(key.name);
            }
        }
        self.algorithm = Some(algorithm);
        (self.estimator, self.acceptance, self.anchored) = (None, None, None);
    }
}
