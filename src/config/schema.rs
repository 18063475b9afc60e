//! The keys of a run file. Unknown keys are errors.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::EngineChoice;

mod sampler;
mod start;

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

/// `[data]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSection {
    /// Name of the data set, for ledgers; by default the file's name without its ending
    /// (`survey.2020` of `survey.2020.csv.gz`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// CSV (gzip allowed), Parquet or NPY; relative to the run file.
    pub file: PathBuf,
    /// NPY file of labels: 0/1, or what a `[data.label]` without a column declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_file: Option<PathBuf>,
    /// Declared bound B on a row's L2 norm; by default what the features imply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_norm: Option<f64>,
    /// Public bounds of single rows, relative to `row_norm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<BoundsEntry>,
    /// Declared label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<LabelEntry>,
    /// Declared features, in order.
    #[serde(default)]
    pub features: Vec<FeatureEntry>,
}

/// `[data.bounds]`: row i is publicly known to be of norm at most `w_i·row_norm`, 0 < w_i ≤ 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundsEntry {
    /// The column of the w_i, neither a feature nor the label …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// … or a one-dimensional NPY file of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Must be true: the guarantee does not cover the w_i, and is void where they were
    /// computed from private cells.
    #[serde(default)]
    pub public: bool,
}

/// One `[[data.features]]`: exactly one of `intercept`, `scale`, `clamp`, `one_hot`,
/// `indicator`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureEntry {
    /// The constant 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intercept: Option<bool>,
    /// One column …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// … or several with the same declaration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Declared bounds, mapped onto [−1, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<[f64; 2]>,
    /// Declared bounds, units kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamp: Option<[f64; 2]>,
    /// Declared levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_hot: Option<Vec<String>>,
    /// For one_hot: refuse undeclared levels instead of giving them the feature
    /// `column=other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// For one_hot: the level without a feature, whose rows are 0 in those of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// A condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indicator: Option<IndicatorEntry>,
    /// Value of a missing cell, in the column's units, for scale, clamp and indicators with
    /// above or below; 0 or 1, the feature's own, for indicators with in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<f64>,
}

/// `indicator = { in = […] }`, `{ above = v }` or `{ below = v }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndicatorEntry {
    /// Texts.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<String>>,
    /// Threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// Threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

/// `[data.label]`: binary, or exactly one of `clamp`, `scale`, `count`, `classes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelEntry {
    /// The column; none where `label_file` holds the labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Texts that mean 1; without it the cells of a binary label must be 0 or 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positive: Vec<String>,
    /// Beside positive: texts that mean 0 ("": an empty cell); without it everything that is
    /// neither positive nor missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub negative: Vec<String>,
    /// A number: declared bounds, units kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamp: Option<[f64; 2]>,
    /// A number: declared bounds, mapped onto [−1, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<[f64; 2]>,
    /// Whole numbers from 0 to this bound, clamped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Whole numbers from 0 to this less one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<u32>,
    /// Value of a missing cell, in the column's units; for clamp, scale and count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<f64>,
}

/// `[test]`: a held-out table that is **not** protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSection {
    /// The table.
    pub file: PathBuf,
    /// NPY labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_file: Option<PathBuf>,
    /// Must be true: the guarantee does not cover this table.
    pub public: bool,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PathBuf>,
}
