//! What a sampler may ask for. Every answer has been paid for and released.

use ndarray::{Array2, ArrayView2};

use super::charge_error::Refusal;
use crate::engine::AnchorSums;
use crate::model::{Metric, Moments, Profile};

/// More steps than any run makes: a saved count beyond it is damaged, and could overflow.
pub(crate) const MOST_STEPS: u64 = 1 << 60;

/// Proposed moves of all chains.
#[derive(Debug)]
pub struct Moves<'a> {
    /// Current θ, C × d.
    pub thetas: ArrayView2<'a, f64>,
    /// Proposed θ', C × d.
    pub proposals: ArrayView2<'a, f64>,
    /// Public part h of each log acceptance ratio, nats: prior, proposal, kinetic energy.
    pub public: &'a [f64],
    /// Public clip bound c(θ, θ') of each move, nats, symmetric in its arguments.
    /// `None` in a non-private run: the curator widens the clip until nothing is clipped.
    pub clip_bounds: Option<&'a [f64]>,
}

/// How the log-likelihood ratio of a move is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimator {
    /// All rows.
    FullBatch,
    /// A Poisson minibatch (docs/proofs/guarantee.md).
    Poisson {
        /// How λ follows from Λ = Nc; public and symmetric in θ, θ'.
        lambda: Lambda,
    },
    /// So many rows, drawn without replacement (section 8); with [`Acceptance::NoisyBarker`]
    /// at C = 2 and clip bounds of at most √b/N alone.
    FixedBatch {
        /// Rows b of a batch.
        batch: usize,
    },
}

/// Settings of DP-Fast MH (Zhang & Zhang 2023, Algorithm 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastMhSettings {
    /// λ of the minibatch.
    pub lambda: f64,
    /// Batch cap K.
    pub batch_cap: f64,
    /// ε of one step, from which noise and its absence follow.
    pub epsilon: f64,
    /// δ of one step.
    pub delta: f64,
}

impl FastMhSettings {
    /// `ε/(6pK)`, the ε of one occurrence, p = max c_i/C (1/N for uniform c).
    pub fn occurrence_epsilon(&self, share: f64) -> f64 {
        self.epsilon / (6.0 * self.batch_cap * share)
    }

    /// σ₁ of the minibatch's noise, in units of Δ₁: `√(2 log(2.5Kp/δ))/(ε/(6Kp))`. Not a number
    /// where δ exceeds 2.5Kp.
    pub fn sigma_minibatch(&self, share: f64) -> f64 {
        (2.0 * (2.5 * self.batch_cap * share / self.delta).ln()).sqrt()
            / self.occurrence_epsilon(share)
    }

    /// σ₂ of the noise on all rows, in units of Δ₂: `√(2 log(1.25/δ))/ε`.
    pub fn sigma_full(&self) -> f64 {
        (2.0 * (1.25 / self.delta).ln()).sqrt() / self.epsilon
    }
}

/// The parameter λ of the Poisson minibatch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lambda {
    /// A constant.
    Fixed(f64),
    /// λ = ratio · Λ: constant privacy factor `2 + 1/ratio`.
    Ratio(f64),
    /// λ = χ Λ² (Zhang 2020, TunaMH).
    Chi(f64),
}

impl Lambda {
    /// λ for Λ = N·c.
    pub fn value(self, big_lambda: f64) -> f64 {
        match self {
            Lambda::Fixed(lambda) => lambda,
            Lambda::Ratio(ratio) => ratio * big_lambda,
            Lambda::Chi(chi) => chi * big_lambda * big_lambda,
        }
    }
}

/// How a decision is made from the estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Acceptance {
    /// min(1, e^z); not private.
    Metropolis,
    /// σ(z) (docs/proofs/guarantee.md).
    Barker,
    /// Discrete Gaussian noise of scale σ = 2cτ and its penalty (section 5); on a Poisson
    /// minibatch σ = 2Wτ, W = log(1 + Λ/λ) (section 6), which has no ρ.
    Penalty {
        /// Noise multiplier τ: on all rows, ρ = 1/(2τ²) a step.
        tau: f64,
    },
    /// Discrete Gaussian noise of variance C and a correction that makes their sum nearly
    /// logistic (Heikkilä 2019, full data; section 8). ρ = (2c)²/(2C) a step; approximate.
    NoisyBarker {
        /// C, below π²/3.
        variance: f64,
    },
}

/// What is released at a point, with noise as multiples of the sensitivities: ρ = 1/(2τ²) each.
/// `None` is not released; τ = 0 is released exactly, in a non-private run only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnchorNoise {
    /// τ of the gradient.
    pub gradient: Option<f64>,
    /// τ of the curvature.
    pub curvature: Option<f64>,
    /// τ of a profile …
    pub profile: Option<f64>,
    /// … and what it tells rows apart by.
    pub profile_of: Profile,
    /// Rows' weights are clipped at this, a public number, where their model's bound is larger;
    /// noise of curvature and profile is the less.
    pub largest_weight: Option<f64>,
}

impl AnchorNoise {
    /// Gradient and curvature at these multiples.
    pub fn expansion(gradient: f64, curvature: f64) -> Self {
        AnchorNoise {
            gradient: Some(gradient),
            curvature: Some(curvature),
            ..AnchorNoise::default()
        }
    }
}

/// Released gradient and curvature of the log likelihood at a public point, in the
/// coordinates of a [`Metric`]; nats. Parts that were not asked for are empty. Rows longer than the
/// metric's row bound count with their weights ω_i ≤ 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// `L⁻¹ Σ κω_i∇ℓ_i(θ*)` plus noise, d values.
    pub gradient: Vec<f64>,
    /// `L⁻¹ (Σ −κω_i∇²ℓ_i(θ*)) L⁻ᵀ` plus noise, d×d, symmetric.
    pub curvature: Vec<f64>,
    /// `Σ κw_i` plus noise over rows by ‖L⁻¹x‖, w minus the second derivative in η: up to each of
    /// [`profile_thresholds`] in units of the row bound, and beyond. Of gradients, numbers of rows:
    /// two entries for lengths up to 2^j S b, j from 0 on, of scores from 0 on and below.
    pub profile: Vec<f64>,
    /// Noise of each gradient coordinate.
    pub gradient_sd: f64,
    /// Noise of each diagonal curvature coordinate; `1/√2` of it off the diagonal.
    pub curvature_sd: f64,
    /// Noise of each entry of the profile.
    pub profile_sd: f64,
}

/// Upper ends of a profile's ranges, in units of the row bound b; the last entry has none.
pub fn profile_thresholds() -> Vec<f64> {
    AnchorSums::profile_thresholds()
}

/// Released moments of the rows; see [`crate::model::Moments`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentNoise {
    /// σ as a multiple of the sensitivity: ρ = 1/(2τ²) for all moments together.
    pub tau: f64,
}

/// Which rows a gradient is estimated from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Batch {
    /// All rows.
    All,
    /// Each row with probability `rate`, by secret coins; the sum is divided by `rate`.
    Poisson {
        /// q ∈ (0, 1).
        rate: f64,
    },
}

/// How gradients are released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientNoise {
    /// Bound b_g on a row's tempered gradient in L2, nats a unit of θ. `None` in a non-private
    /// run: the curator widens it until nothing is clipped.
    pub clip: Option<f64>,
    /// Rows.
    pub batch: Batch,
    /// Standard deviation σ of the discrete Gaussian noise on each coordinate of the batch's
    /// **sum**, same unit; 0 in a non-private run only. On all rows a gradient costs
    /// ρ = (2b_g)²/(2σ²); on a Poisson batch it has no ρ.
    pub sigma: f64,
}

/// How one posterior draw is made (Wang, Fienberg & Smola 2015, "one posterior sample").
#[derive(Clone, Debug, PartialEq)]
pub struct DrawRequest {
    /// The draw is of the posterior restricted to `|θ_j| ≤ bounds_j`, d values.
    pub bounds: Vec<f64>,
    /// Metropolis steps of the secret chain that ends in the draw.
    pub steps: u64,
    /// Standard deviation of a proposal in each parameter, d values.
    pub scale: Vec<f64>,
}

/// Why a run does not go on. Only [`Halt::Failed`] is a failure.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The next step does not fit the budget; the run ends, successfully.
    #[error("the privacy budget is spent: the next step costs {} = {:.3e}, {:.3e} is left", .0.measure.symbol(), .0.cost, .0.left)]
    BudgetSpent(Refusal),
    /// A request that can never be answered, refused before anything was charged.
    #[error("{0}")]
    Refused(String),
    /// The engine or the ledger failed.
    #[error("{0}")]
    Failed(String),
    /// The caller's flag was found set between two releases of one step; what was released
    /// before stays charged.
    #[error("stopped by the caller")]
    Interrupted,
}

/// The samplers' only view of the data.
pub trait Releases {
    /// Whether the caller wishes to stop: long steps (a fit) ask between two releases.
    ///
    /// # Errors
    /// [`Halt::Interrupted`] then.
    fn check_stop(&self) -> Result<(), Halt> {
        Ok(())
    }

    /// Decides every chain's move; `accepted` has C entries. Charged before anything is
    /// computed; moves with h = −∞ are rejected at no cost.
    ///
    /// # Errors
    /// [`Halt`]; nothing was charged on `BudgetSpent` and `Refused`.
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt>;

    /// Releases gradient, curvature and profile of the log likelihood at the public point `at`,
    /// what of them `noise` asks for, in the coordinates of `metric`, whose row bound clips rows.
    /// Charged before anything is computed, ρ = 1/(2τ²) each.
    ///
    /// # Errors
    /// [`Halt`]; nothing was charged on `BudgetSpent` and `Refused`.
    fn anchor(
        &mut self,
        at: &[f64],
        metric: &Metric,
        noise: AnchorNoise,
    ) -> Result<Expansion, Halt>;

    /// Releases, for every chain's θ, `(1/q)(Σ_batch clip(κ∇ℓ_i) + noise)`: C × d, nats a unit
    /// of θ. Charged before anything is computed.
    ///
    /// # Errors
    /// [`Halt`]; nothing was charged on `BudgetSpent` and `Refused`.
    fn gradients(
        &mut self,
        thetas: ArrayView2<'_, f64>,
        noise: GradientNoise,
    ) -> Result<Array2<f64>, Halt>;

    /// Releases the rows' sum and, for `degree` over 1, their Chebyshev moments up to it, of one
    /// column. Charged before anything is computed, ρ = 1/(2τ²). `noise` may be absent in a
    /// non-private run only.
    ///
    /// # Errors
    /// [`Halt`]; nothing was charged on `BudgetSpent` and `Refused`.
    fn moments(&mut self, degree: usize, noise: Option<MomentNoise>) -> Result<Moments, Halt> {
        let _ = (degree, noise);
        Err(Halt::Refused("no moments are to be had here".into()))
    }

    /// Releases the end of a secret Metropolis chain on all rows that begins at `start`: one
    /// posterior draw, **if** the chain has converged, and then η-bounded-range with
    /// η = 4b‖bounds‖, b the model's true bound. Charged before anything is computed.
    ///
    /// # Errors
    /// [`Halt`]; nothing was charged on `BudgetSpent` and `Refused`.
    fn posterior_draw(&mut self, start: &[f64], request: &DrawRequest) -> Result<Vec<f64>, Halt> {
        let _ = (start, request);
        Err(Halt::Refused(
            "no posterior draws are to be had here".into(),
        ))
    }
}
