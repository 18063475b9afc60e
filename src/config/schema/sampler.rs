//! `[sampler]`: a published combination or three choices, and their settings.

use serde::{Deserialize, Serialize};

use super::Numbers;
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

/// `[sampler]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplerSection {
    /// A published combination by its name; or else the three choices below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Without `algorithm`: which rows a step reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<EstimatorName>,
    /// Without `algorithm`: how a move is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<AcceptanceName>,
    /// Without `algorithm`: whether rows are asked for remainders at a released anchor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchored: Option<bool>,
    /// Poisson minibatch: λ itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// Poisson minibatch: λ/Λ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda_ratio: Option<f64>,
    /// Poisson minibatch: λ/Λ².
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chi: Option<f64>,
    /// Penalty: noise multiplier τ; without it, what budget and iterations allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tau: Option<f64>,
    /// Barker's test with Gaussian noise: its variance C, below π²/3; 2 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
    /// DP-Fast MH: batch cap K; a sixth of the rows without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_cap: Option<f64>,
    /// DP-Fast MH: ε of a step, from which its noise follows; 0.05 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_epsilon: Option<f64>,
    /// DP-Fast MH: δ of a step, from which its noise follows; 1e-5 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_delta: Option<f64>,
    /// DP-Fast MH: to the letter of the paper, which is not private.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_published: bool,
    /// Subsampled Barker's test: rows b of a batch; 1000 without it, or a tenth of fewer rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Clip; without it the model's true bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<ClipEntry>,
    /// Step s; 2.38/√d without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// Diagonal of the preconditioner A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Numbers>,
    /// Covariance whose Cholesky factor is A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covariance: Option<Vec<Vec<f64>>>,
    /// What warm-up adapts.
    #[serde(default)]
    pub adapt: Adapt,
    /// Acceptance rate that warm-up aims at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_acceptance: Option<f64>,
    /// Anchored samplers: how moves are proposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<AnchoredProposal>,
    /// Anchored samplers: how the anchor is found and paid for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<AnchorSection>,
    /// Leapfrog steps L of a trajectory; in a combination by its choices this key asks for
    /// trajectories instead of a random walk. 10 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leapfrog_steps: Option<u32>,
    /// Hamiltonian samplers: whether the step size is jittered, or the range of its factors; true
    /// without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterEntry>,
    /// Hamiltonian samplers: whether warm-up adapts L (two chains or more).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapt_length: Option<bool>,
    /// Samplers on gradients: how these are clipped and released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient: Option<GradientSection>,
    /// Stochastic gradients: how the step falls; fixed without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleEntry>,
    /// SGHMC: share of the momentum lost in a step; 0.1 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<f64>,
    /// SGNHT: diffusion A; 1 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffusion: Option<f64>,
    /// SGLD: a metric learned from released gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditioner: Option<RmsEntry>,
    /// DPVI: steps of the fit; 2000 without it. OPS: steps of the chain behind a draw; 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
}

/// `[sampler.gradient]`: clip and noise of released gradients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradientSection {
    /// Bound b on a row's tempered gradient, nats a unit of θ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// The same as a share of the model's true bound; 1 without either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Hamiltonian samplers, DPVI: noise on the sum in units of its sensitivity 2b, all rows:
    /// ρ = 1/(2τ²) a gradient. What the budget allows without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tau: Option<f64>,
    /// Stochastic gradients: rate q of the Poisson batches; all rows without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Stochastic gradients: noise beyond what the dynamics inject, in units of 2b.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_tau: Option<f64>,
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
    Range([f64; 2]),
}

/// `schedule = "fixed"`, `"cube-root"` or `{ offset = …, exponent = … }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "schedule must be \"fixed\", \"cube-root\" or { offset = …, exponent = … }"
)]
pub enum ScheduleEntry {
    /// By name.
    Named(ScheduleName),
    /// `step·(offset + t)^−exponent`.
    Polynomial(PolynomialEntry),
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

/// `[sampler.anchor]`; shares are of the budget's ρ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorSection {
    /// Stages of the private path to the anchor at most, 0 to begin the last releases at the start
    /// itself; without it 25, up to 60 where a linear model's labels are declared to lie far off, 20
    /// for networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// Share for the warm start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// Share for the anchor's gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient: Option<f64>,
    /// Share for the anchor's curvature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curvature: Option<f64>,
    /// Share for a second expansion after warm-up, at the mean of its draws; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<f64>,
    /// Clip of rows in whitened coordinates, in units of their expected root mean square; by a released
    /// profile of their norms without it (of networks, 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// Share for decisions on moves, of regressions; what they are worth without it, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<f64>,
    /// Mixtures: highest degree of the released Chebyshev moments; 12 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degree: Option<usize>,
    /// Models told by moments: share for these; what the steps leave over without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moments: Option<f64>,
    /// The target is restricted to ‖u‖ ≤ radius; 4√d + 4 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
}

impl SamplerSection {
    /// Whether estimator and acceptance are named one by one.
    pub fn is_explicit(&self) -> bool {
        self.algorithm.is_none()
    }

    /// The keys that some samplers alone have a use for: whether each is given, and whose it
    /// is.
    pub fn particular(&self) -> [(&'static str, bool, &'static str); 28] {
        let minibatch = "Poisson minibatches (dp-fast-mh takes 'lambda' itself)";
        let fast_mh = "dp-fast-mh";
        let anchored = "anchored samplers (anchored-barker, or anchored = true)";
        let leapfrog = "Hamiltonian samplers (hmc, dp-hmc, barker-hmc)";
        let decisions = "samplers that decide on proposals";
        [
            ("lambda", self.lambda.is_some(), minibatch),
            ("lambda_ratio", self.lambda_ratio.is_some(), minibatch),
            ("chi", self.chi.is_some(), minibatch),
            ("tau", self.tau.is_some(), "penalty acceptance (dp-penalty)"),
            (
                "variance",
                self.variance.is_some(),
                "dp-barker alone (all rows, noisy-barker)",
            ),
            (
                "batch",
                self.batch.is_some(),
                "fixed batches (dp-barker-subsampled)",
            ),
            ("batch_cap", self.batch_cap.is_some(), fast_mh),
            (
                "as_published",
                self.as_published,
                "dp-fast-mh, dp-sgld and dp-sghmc",
            ),
            ("step_epsilon", self.step_epsilon.is_some(), fast_mh),
            ("step_delta", self.step_delta.is_some(), fast_mh),
            ("proposal", self.proposal.is_some(), anchored),
            ("anchor", self.anchor.is_some(), anchored),
            ("leapfrog_steps", self.leapfrog_steps.is_some(), leapfrog),
            ("jitter", self.jitter.is_some(), leapfrog),
            ("adapt_length", self.adapt_length.is_some(), leapfrog),
            ("gradient", self.gradient.is_some(), "samplers on gradients"),
            ("schedule", self.schedule.is_some(), "stochastic gradients"),
            ("friction", self.friction.is_some(), "sghmc and dp-sghmc"),
            ("diffusion", self.diffusion.is_some(), "sgnht and dp-sgnht"),
            (
                "preconditioner",
                self.preconditioner.is_some(),
                "sgld and dp-sgld",
            ),
            ("steps", self.steps.is_some(), "dpvi and ops"),
            ("clip", self.clip.is_some(), decisions),
            ("covariance", self.covariance.is_some(), decisions),
            ("adapt", self.adapt != Adapt::None, decisions),
            (
                "target_acceptance",
                self.target_acceptance.is_some(),
                decisions,
            ),
            ("estimator", self.estimator.is_some(), decisions),
            ("acceptance", self.acceptance.is_some(), decisions),
            ("anchored", self.anchored.is_some(), decisions),
        ]
    }

    /// Makes `algorithm` the choice, and drops the settings that it has no use for.
    pub fn choose(&mut self, algorithm: Algorithm) {
        self.algorithm = Some(algorithm);
        (self.estimator, self.acceptance, self.anchored) = (None, None, None);
        for (key, _, _) in self.particular() {
            if algorithm.family().takes(key) {
                continue;
            }
            match key {
                "lambda" => self.lambda = None,
                "lambda_ratio" => self.lambda_ratio = None,
                "chi" => self.chi = None,
                "tau" => self.tau = None,
                "variance" => self.variance = None,
                "batch" => self.batch = None,
                "batch_cap" => self.batch_cap = None,
                "as_published" => self.as_published = false,
                "step_epsilon" => self.step_epsilon = None,
                "step_delta" => self.step_delta = None,
                "proposal" => self.proposal = None,
                "anchor" => self.anchor = None,
                "leapfrog_steps" => self.leapfrog_steps = None,
                "jitter" => self.jitter = None,
                "adapt_length" => self.adapt_length = None,
                "gradient" => self.gradient = None,
                "schedule" => self.schedule = None,
                "friction" => self.friction = None,
                "diffusion" => self.diffusion = None,
                "preconditioner" => self.preconditioner = None,
                "steps" => self.steps = None,
                "clip" => self.clip = None,
                "covariance" => self.covariance = None,
                "adapt" => self.adapt = Adapt::None,
                // The choices of a combination are dropped above.
                _ => self.target_acceptance = None,
            }
        }
    }
}
