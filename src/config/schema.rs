//! The keys of a run file. Unknown keys are errors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::EngineChoice;
use crate::expression::{Family, family};

mod data;
mod key;
mod pair;
mod path;
mod sampler;
mod start;
mod texts;

use key::{keyed, section};

pub use key::Key;
pub use path::quoted;

pub use data::{
    BoundsEntry, ColumnEntry, DataSection, FeatureEntry, IndicatorEntry, InteractionEntry,
    LabelEntry, LevelEntry, OffsetEntry, SplineEntry, TestSection, ValidateSection, WeightsEntry,
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
    /// What is public about columns, by name, for formulas.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, ColumnEntry>,
    /// A public held-out table for predictive accuracy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<TestSection>,
    /// A protected held-out table that scores are released of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate: Option<ValidateSection>,
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

/// Sections and nested tables whose keys stand with their meaning, in the order of
/// `docs/reference/run_file.md`.
pub(super) const SECTIONS: [(&str, &[Key]); 14] = [
    ("data", DataSection::KEYS),
    ("data.label", LabelEntry::KEYS),
    ("data.offset", OffsetEntry::KEYS),
    ("data.weights", WeightsEntry::KEYS),
    ("data.features", FeatureEntry::KEYS),
    ("columns", ColumnEntry::KEYS),
    ("validate", ValidateSection::KEYS),
    ("model", ModelSection::KEYS),
    ("model.hierarchy", HierarchyEntry::KEYS),
    ("run", RunSection::KEYS),
    ("privacy", PrivacySection::KEYS),
    ("sampler", SamplerSection::KEYS),
    ("sampler.gradient", GradientSection::KEYS),
    ("sampler.anchor", AnchorSection::KEYS),
];

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
    /// Bayesian neural network of declared layers.
    Network,
    /// Two classes by the normal distribution function.
    Probit,
    /// Two classes by a rate.
    Cloglog,
    /// Numbers with unknown variance.
    Gaussian,
    /// Numbers with outliers.
    StudentT,
    /// Positive numbers by their logarithm.
    LogNormal,
    /// Positive numbers with a log link.
    Gamma,
    /// Overdispersed counts.
    NegativeBinomial,
    /// Shares.
    Beta,
    /// Times of events.
    Weibull,
    /// A quantile.
    Quantile,
    /// Successes in trials.
    Binomial,
    /// Counts with more zeros.
    ZeroInflatedPoisson,
    /// Overdispersed counts with more zeros.
    ZeroInflatedNegativeBinomial,
    /// Times of events, by their logarithm.
    LogNormalSurvival,
    /// Ordered classes.
    Ordinal,
    /// An expression of one's own.
    Declared,
}

impl ModelKind {
    /// The likelihood that such a model is named after, where it is an expression with a name.
    pub fn family(self) -> Option<&'static Family> {
        family(match self {
            ModelKind::Probit => "probit",
            ModelKind::Cloglog => "cloglog",
            ModelKind::Gaussian => "gaussian",
            ModelKind::StudentT => "student-t",
            ModelKind::LogNormal => "log-normal",
            ModelKind::Gamma => "gamma",
            ModelKind::NegativeBinomial => "negative-binomial",
            ModelKind::Beta => "beta",
            ModelKind::Weibull => "weibull",
            ModelKind::Quantile => "quantile",
            ModelKind::Binomial => "binomial",
            ModelKind::ZeroInflatedPoisson => "zero-inflated-poisson",
            ModelKind::ZeroInflatedNegativeBinomial => "zero-inflated-negative-binomial",
            ModelKind::LogNormalSurvival => "log-normal-survival",
            _ => return None,
        })
    }
}

keyed! {
    /// `[model]`
    pub struct ModelSection {
        /// What a row is: see [models.md](models.md). `poisson` has a log link, `mixture` takes
        /// exactly one feature (θ₁, θ₂: components at θ₁ and θ₁+θ₂), `banana` two, `mlp` is one
        /// layer of tanh units, `network` what `layers` say.
        kind: ModelKind, "`logistic`, `linear`, `poisson`, `gaussian-mean`, `mixture`, `banana`, `mlp`, `network`, `probit`, `cloglog`, `gaussian`, `student-t`, `log-normal`, `gamma`, `negative-binomial`, `beta`, `weibull`, `quantile`, `binomial`, `zero-inflated-poisson`, `zero-inflated-negative-binomial`, `log-normal-survival`, `ordinal`, `declared`; required";
        /// Label and features: `"label ~ a + b"`, of columns that `[columns]` declares, in place of
        /// `[[data.features]]`; see [formulas](../guide/formulas.md).
        #[serde(skip_serializing_if = "Option::is_none")]
        formula: Option<String>, "text, none; kinds: all";
        /// Power κ of the likelihood: cheaper, and another, wider posterior.
        #[serde(default = "one")]
        tempering: f64, "number in (0, 1], 1; kinds: all";
        /// Independent, but for the horseshoe's; `sd`, `scale` and `degrees` are required; `mean`,
        /// `sd` and `scale` are one number for all parameters or a list of d, of those that are in
        /// no hierarchy. `sd` and `scale` lie between 1e-18 and 1e18. See
        /// [priors](../guide/hierarchies.md).
        #[serde(skip_serializing_if = "Option::is_none")]
        prior: Option<PriorEntry>, "`{ kind = \"flat\" }` (the default), `{ kind = \"normal\", mean = 0, sd = … }`, `{ kind = \"laplace\", scale = … }`, `{ kind = \"student-t\", degrees = …, mean = 0, scale = … }` or `{ kind = \"horseshoe\", scale = …, intercept_sd = 10 }`; kinds: all, horseshoe: regressions";
        /// Coefficients that share a prior, N(0, τ²), whose τ is sampled with them and reported as
        /// `sd(NAME)`; see below.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hierarchy: Vec<HierarchyEntry>, "list of tables, none; kinds: regressions";
        /// θ_j outside ±box has density zero. Gives every kind but `mlp` and `network` a true bound
        /// of row ratios; not for stochastic gradients and `dpvi`; needed by `ops`.
        #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
        support as "box": Option<Numbers>, "number or list of d, none; kinds: all";
        /// Known variance of the noise (in the label's units squared, after its `scale`), or of
        /// each component.
        #[serde(skip_serializing_if = "Option::is_none")]
        variance: Option<f64>, "number > 0; `linear`: required, `mixture`: 2; kinds: linear, mixture";
        /// Known covariance of a row.
        #[serde(skip_serializing_if = "Option::is_none")]
        covariance: Option<Vec<Vec<f64>>>, "d × d matrix, required; kinds: gaussian-mean";
        /// Hidden units.
        #[serde(skip_serializing_if = "Option::is_none")]
        hidden: Option<usize>, "whole number, required; kinds: mlp";
        /// How a row's features are arranged: height, width and, where a place has several values,
        /// channels, in the order (row, column, channel).
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Vec<usize>>, "`[height, width]` or `[height, width, channels]`; a line; kinds: network";
        /// The layers between the features and the outputs, in order; a dense layer to one output
        /// (binary label) or one for each class follows them. Strides are 1 (of pools: the side)
        /// and `padding` is 0 unless they are given.
        #[serde(skip_serializing_if = "Option::is_none")]
        layers: Option<Vec<LayerEntry>>, "list of `{ dense = units }`, `{ conv = channels, kernel = side, stride, padding }`, `{ max_pool = side, stride }`, `{ average_pool = side, stride }`, `{ group_norm = groups }`, `\"tanh\"`, `\"relu\"`, `\"softplus\"`; required; kinds: network";
        /// The curvature a.
        #[serde(skip_serializing_if = "Option::is_none")]
        curvature: Option<f64>, "number, 20; kinds: banana";
        /// The variances (s₁, s₂) of the two columns.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[serde(default, deserialize_with = "pair::optional::deserialize")]
        variances: Option<[f64; 2]>, "two numbers, [20, 25]; kinds: banana";
        /// A row's log likelihood as an expression of the label `y`, the linear predictor `eta` and
        /// the names below; see [models.md](models.md#your-own-likelihood).
        #[serde(skip_serializing_if = "Option::is_none")]
        likelihood: Option<String>, "text, required; kinds: declared";
        /// Parameters beside the coefficients that are sampled, each with its normal prior; the
        /// coefficients need a normal prior too.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        parameters: BTreeMap<String, NormalEntry>, "`{ NAME = { mean = 0, sd = 1 } }`; kinds: declared, and those with a parameter";
        /// Parameters that are held fixed.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        constants: BTreeMap<String, f64>, "`{ NAME = number }`; kinds: as for parameters";
    }
}

/// A layer of a network: a name, or a table with one of the first four keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a layer is \"tanh\", \"relu\" or \"softplus\", or a table such as { dense = 32 }, { conv = 16, kernel = 3, stride = 2, padding = 1 }, { max_pool = 2 }, { average_pool = 2 } or { group_norm = 4 }"
)]
pub enum LayerEntry {
    /// By its name.
    Named(String),
    /// With numbers.
    Sized(SizedLayer),
}

/// `{ conv = 16, kernel = 3, stride = 2, padding = 1 }`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizedLayer {
    /// Units of a dense layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dense: Option<usize>,
    /// Channels of a convolution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conv: Option<usize>,
    /// Side of the squares whose largest values are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pool: Option<usize>,
    /// Side of the squares whose means are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_pool: Option<usize>,
    /// Normalises so many groups of channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_norm: Option<usize>,
    /// Side of a convolution's squares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<usize>,
    /// Places from one square to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stride: Option<usize>,
    /// Zeros around the input of a convolution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub padding: Option<usize>,
}

fn one() -> f64 {
    1.0
}

/// `NAME = { mean = 0, sd = 1 }`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NormalEntry {
    /// Mean.
    #[serde(default)]
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
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
    /// Independent Student's t.
    StudentT,
    /// Sparse: N(0, τ²λ_j²), λ_j half-Cauchy.
    Horseshoe,
}

/// Priors of a standard deviation that is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleKind {
    /// |N(0, scale²)|.
    #[default]
    HalfNormal,
    /// Student's t with one degree of freedom, positive.
    HalfCauchy,
    /// Student's t, positive.
    HalfStudentT,
}

keyed! {
    /// One `[[model.hierarchy]]`: coefficients that share a prior N(0, τ²).
    pub struct HierarchyEntry {
        /// What it is called: τ is reported as `sd(NAME)`. Of a formula's `(1 | g)` it is `g`, of
        /// its `(x | g)` also `x | g`.
        name: String, "text; required";
        /// Prior of τ.
        #[serde(default)]
        kind: ScaleKind, "`half-normal` (default), `half-cauchy`, `half-student-t`";
        /// Its scale, in units of the coefficients: about the largest that τ may well be.
        scale: f64, "number > 0; required";
        /// Its degrees of freedom.
        #[serde(skip_serializing_if = "Option::is_none")]
        degrees: Option<f64>, "number > 0; required; kinds: half-student-t";
        /// Whose coefficients they are: columns of `[[data.features]]` with levels, products `x:g`,
        /// or names of single coefficients. A formula says them itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        features: Vec<String>, "list of texts; required without a formula";
    }
}

/// `prior = { kind = "normal", sd = 10 }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorEntry {
    /// Family.
    pub kind: PriorKind,
    /// Normal and Student-t: means (default 0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Numbers>,
    /// Normal: standard deviations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<Numbers>,
    /// Laplace and Student-t: scales; horseshoe: that of its global one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Numbers>,
    /// Student-t: degrees of freedom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degrees: Option<f64>,
    /// Horseshoe: of the intercept, which is not shrunk; its prior is normal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intercept_sd: Option<f64>,
}

keyed! {
    /// `[run]`
    #[serde(default)]
    pub struct RunSection {
        /// Iterations of each chain after warm-up; a private run ends earlier when the budget is
        /// spent. Overridden by `--iterations`.
        iterations: u64, "whole number ≥ 1, 10000";
        /// Iterations before those, charged like them; drops the way from the start, and is what
        /// `adapt` learns from.
        warmup: u64, "whole number, 0";
        /// Keep every thin-th draw; saves disk, not privacy.
        thin: u64, "whole number from 1 to `iterations`, 1";
        /// Their costs add up.
        #[serde(skip_serializing_if = "Option::is_none")]
        chains: Option<usize>, "1 to 65536; 1, without privacy 4";
        /// Effective draws that decisions of an anchored regression are to buy: where the budget
        /// does not hold three decisions for each, the run makes none and draws from the anchor's
        /// own Gaussian, which is free. A smaller number lets smaller budgets decide.
        ess: f64, "number > 0, 400";
        /// Anchored regressions: what a kept draw is. With the noise of the releases in it, a draw
        /// of the posterior given what was released; or the chain's own, of a target that takes the
        /// releases for exact. Other samplers keep the chain's own.
        draws: DrawsName, "`\"noise-aware\"` (default), `\"chain\"`";
        /// Where chains start; `init` is another name for it.
        #[serde(alias = "init")]
        start: StartEntry, "see below, `\"usual\"`";
        /// Fixes starts and proposals; the secret coins of a private run are never seeded.
        #[serde(skip_serializing_if = "Option::is_none")]
        seed: Option<u64>, "whole number ≥ 0, random";
        /// What computes; `mlp`, and tables with `data.unit` or `[data.weights]`, run on the CPU
        /// alone.
        engine: EngineChoice, "`auto`, `cpu`, `gpu`; `auto`";
    }
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
            start: StartEntry::Usual,
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

section! {
    /// `[privacy]`
    pub struct PrivacySection {
        /// The budget of all that is published, for tables that differ in one replaced row; with
        /// `delta`. Flag `--epsilon`.
        epsilon: Option<f64>, "in (0, 1000]", "";
        /// The budget's other half, which should be far under 1/rows. Flag `--delta`.
        delta: Option<f64>, "in (0, 1)", "";
        /// What the ledger counts: ρ, or Gaussian DP, by which a budget holds 7 to 19 % more of
        /// Gaussian noise and about a tenth more of thousands of small decisions, but less of a few
        /// large ones.
        filter: Option<FilterName>, "`\"zcdp\"`, `\"gaussian\"`", "";
        /// Instead: Rényi divergences at this order, for steps that have no ρ
        /// (`dp-barker-subsampled`, `dp-fast-mh`, penalty on a minibatch, gradients with a `rate`).
        /// Not with an anchor.
        order: Option<f64>, "1.01 to 1e5", "";
        /// No privacy: for public or made-up rows. Instead of a budget, without `ledger` and
        /// `order`. Flag `--not-private`.
        not_private: bool, "bool, `false`", "";
        /// Ledger file that runs on one table share, see below. It binds: the flag `--ledger`,
        /// relative to where you are, is for run files that name none.
        #[serde(with = "path::optional")]
        ledger: Option<PathBuf>, "path, the run's own `ledger.json`", "";
    }
}
