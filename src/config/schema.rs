//! The keys of a run file. Unknown keys are errors.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::EngineChoice;

mod data;
mod key;
mod path;
mod sampler;
mod start;

pub use key::Key;
pub use path::quoted;

pub use data::{
    BoundsEntry, DataSection, FeatureEntry, IndicatorEntry, InteractionEntry, LabelEntry,
    TestSection,
};
pub use sampler::{
    AnchorSection, GradientSection, JitterEntry, SamplerSection, ScheduleEntry, ScheduleName,
};
pub use start::{DpviEntry, OpsEntry, StartEntry};

/// A run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The sensitive table.
    pub data: DataSection,
    /// A public held-out table for predictive accuracy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<TestSection>,
    /// The model.
    pub model: ModelSection,
    /// The sampler.
    pub sampler: SamplerSection,
    /// Length, chains, start.
    #[serde(default)]
    pub run: RunSection,
    /// The budget.
    #[serde(default)]
    pub privacy: PrivacySection,
}

/// A number for all parameters, or one each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub enum Numbers {
    /// The same for all.
    One(f64),
    /// One each.
    Each(Vec<f64>),
}

impl Numbers {
    /// One value a parameter.
    pub fn expand(&self, d: usize) -> Vec<f64> {
        match self {
            Numbers::One(v) => vec![*v; d],
            Numbers::Each(values) => values.clone(),
        }
    }
}

/// Model kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Bayesian logistic regression.
    Logistic,
    /// Gaussian mean with known covariance.
    GaussianMean,
    /// Two-component Gaussian mixture with tied means.
    Mixture,
    /// Bayesian linear regression with known noise variance.
    Linear,
    /// Poisson regression with a log link.
    Poisson,
    /// The banana of Räisä 2021.
    Banana,
    /// Bayesian neural network with one hidden layer.
    Mlp,
}

/// `[model]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSection {
    /// Which model.
    pub kind: ModelKind,
    /// Likelihood tempering κ ∈ (0, 1].
    #[serde(default = "one")]
    pub tempering: f64,
    /// Prior.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorEntry>,
    /// `|θ_j| ≤ box`: parameters outside have density zero.
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    pub support: Option<Numbers>,
    /// Mixture: variance of each component. Linear: variance of the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
    /// Gaussian mean: known covariance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covariance: Option<Vec<Vec<f64>>>,
    /// Network: units of the hidden layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    /// Banana: curvature a.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curvature: Option<f64>,
    /// Banana: variances of the two columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variances: Option<[f64; 2]>,
}

fn one() -> f64 {
    1.0
}

/// Prior kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorKind {
    /// Constant.
    Flat,
    /// Independent normal.
    Normal,
    /// Independent Laplace.
    Laplace,
}

/// `prior = { kind = "normal", sd = 10 }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorEntry {
    /// Family.
    pub kind: PriorKind,
    /// Normal: means (default 0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Numbers>,
    /// Normal: standard deviations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<Numbers>,
    /// Laplace: scales.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Numbers>,
}

/// `[run]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSection {
    /// Iterations after warm-up.
    pub iterations: u64,
    /// Warm-up iterations (charged).
    pub warmup: u64,
    /// Keep every thin-th draw.
    pub thin: u64,
    /// Chains; their costs add up. 1 in a private run, 4 without privacy, by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chains: Option<usize>,
    /// Effective draws that decisions are to buy; where they cannot, a run whose anchor has a
    /// Gaussian of its own draws from that, which is free.
    pub ess: f64,
    /// What draws are of: with the noise of the releases in them, or the chain's own target.
    pub draws: DrawsName,
    /// Where chains start; `init` is another name for it.
    #[serde(alias = "init")]
    pub start: StartEntry,
    /// Fixes the public streams (starts, proposals), whose seed `state.json` holds in any
    /// case; without privacy, all generators. Secret coins are never seeded by a run file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Engine.
    pub engine: EngineChoice,
}

impl Default for RunSection {
    fn default() -> Self {
        RunSection {
            iterations: 10_000,
            warmup: 0,
            thin: 1,
            chains: None,
            ess: 400.0,
            draws: DrawsName::NoiseAware,
            start: StartEntry::Zero,
            seed: None,
            engine: EngineChoice::Auto,
        }
    }
}

/// `draws`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrawsName {
    /// Of the posterior given what was released, where the noise's law tells that.
    NoiseAware,
    /// Of the target that the releases made, as if they had no noise.
    Chain,
}

/// `filter`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterName {
    /// ρ of zCDP.
    Zcdp,
    /// Gaussian DP.
    Gaussian,
}

/// `[privacy]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacySection {
    /// ε of the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ of the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// What the ledger counts, ρ or Gaussian DP. Without it and `order` it is chosen, and the
    /// resolved run file states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterName>,
    /// Order α at which the ledger counts Rényi divergences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<f64>,
    /// No privacy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_private: bool,
    /// Ledger file shared by the runs on one data set.
    #[serde(
        default,
        with = "path::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ledger: Option<PathBuf>,
}
