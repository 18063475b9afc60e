//! `[data]` and `[test]`: what is declared about tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::key::{keyed, section};
use super::{pair, path, texts};
use crate::data::{BadCells, Storage, Transform};

keyed! {
    /// `[data]`
    pub struct DataSection {
        /// Name of the data set, by which a shared ledger knows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>, "text; the file's name without its ending, or the folder's; required with a pattern";
        /// The sensitive table: `.csv`, `.tsv` or `.txt` (each also with `.gz`), `.parquet`,
        /// `.npy`, `.idx3-ubyte` (also with `.gz`); a folder of such files, or a pattern such as
        /// `visits/*.parquet`: see **Many files** below. Overridden by `--data`.
        #[serde(with = "path")]
        file: PathBuf, "path, required";
        /// The column that says whose a row is, where one person (household, device, …) has
        /// several: the guarantee is then for all rows of one together. See [persons with several
        /// rows](../guide/persons.md).
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<String>, "text, none";
        /// So many rows of a unit count, in the order of the table; further ones are left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        rows_per_unit: Option<u32>, "1 to 1000; required with `unit`";
        /// What stands between the cells of text tables (`[test]`'s too): `";"`, `"\t"`, ….
        #[serde(skip_serializing_if = "Option::is_none")]
        delimiter: Option<String>, "one ASCII character; a tab in `.tsv`, else a comma";
        /// Whether quoted cells of text tables may hold line breaks. Only for files from software
        /// that quotes cells properly; [what it means for
        /// N](../proofs/guarantee.md#one-record-one-row).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        quoted_newlines: bool, "bool, `false`";
        /// What becomes of a cell that its declaration cannot read, and of a line with another
        /// number of cells than the header: it stops the run, or counts as missing (the whole line
        /// does). `"missing"` is refused unless every declaration says what a missing cell counts
        /// as.
        #[serde(default, skip_serializing_if = "BadCells::is_default")]
        bad_cells: BadCells, "`\"error\"` or `\"missing\"`, `\"error\"`";
        /// How features are kept in memory: rounded to 16 bits, or as floats of 32 bits, which take
        /// twice the memory and time. See **Rounding** below.
        #[serde(default)]
        storage: Storage, "`\"i16\"` or `\"f32\"`, `\"i16\"`";
        /// One-dimensional `.npy` or `.idx1-ubyte` file of labels, one a row: 0/1, or what a
        /// `[data.label]` without `column` declares. Not beside a label `column`.
        #[serde(default, with = "path::optional", skip_serializing_if = "Option::is_none")]
        label_file: Option<PathBuf>, "path, none";
        /// Bound B on a row's Euclidean norm, after `scale` and `clamp`; longer rows are shortened
        /// to it. Implied: the root of the sum of what each declaration can add to a row's square,
        /// listed below: 1 for each intercept, scaled column, indicator, one_hot or spline,
        /// max(LOW², HIGH²) for each clamped column. A smaller one costs less privacy and changes
        /// the rows that it shortens.
        #[serde(skip_serializing_if = "Option::is_none")]
        row_norm: Option<f64>, "number > 0; what the features imply";
        /// Public bounds of single rows, relative to `row_norm`.
        #[serde(skip_serializing_if = "Option::is_none")]
        bounds: Option<BoundsEntry>, "table, see below";
        /// The label.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<LabelEntry>, "table, see below";
        /// A number that rows add to their linear predictor as it is, such as the log of an
        /// exposure.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<OffsetEntry>, "table, see below";
        /// How often a row counts: survey weights, or how many like rows it stands for.
        #[serde(skip_serializing_if = "Option::is_none")]
        weights: Option<WeightsEntry>, "table, see below";
        /// Features, in order; or instead a `formula` in `[model]`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        features: Vec<FeatureEntry>, "list of tables, see below";
        /// Products of features, in order, after them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interactions: Vec<InteractionEntry>, "list of tables, see below";
    }
}

/// `[data.bounds]`: row i is publicly known to be of norm at most `w_i·row_norm`, 0 < w_i ≤ 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundsEntry {
    /// The column of the w_i, neither a feature nor the label …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// … or a one-dimensional NPY file of them.
    #[serde(
        default,
        with = "path::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub file: Option<PathBuf>,
    /// Must be true: the guarantee does not cover the w_i, and is void where they were
    /// computed from private cells.
    #[serde(default)]
    pub public: bool,
}

keyed! {
    /// `[data.offset]`: a column that enters the linear predictor with the coefficient 1.
    pub struct OffsetEntry {
        /// The column.
        column: String, "text, required";
        /// The number, cut off at the bounds, units kept.
        #[serde(deserialize_with = "pair::deserialize")]
        clamp: [f64; 2], "`[LOW, HIGH]`, required";
        /// Taken of the number after it is cut off at the bounds, which stay in raw units: `"log"`
        /// of an exposure.
        #[serde(skip_serializing_if = "Option::is_none")]
        transform: Option<Transform>, "`\"log\"`, `\"log1p\"`, `\"sqrt\"` or `\"asinh\"`; none";
        /// Stands for a missing cell, in raw units, inside the bounds.
        #[serde(skip_serializing_if = "Option::is_none")]
        missing: Option<f64>, "number, none";
    }
}

keyed! {
    /// `[data.weights]`: a row's log likelihood is multiplied by the number in a column.
    pub struct WeightsEntry {
        /// The column of the weights, 0 or more; it is protected as the others are.
        column: String, "text, required";
        /// The largest weight that counts: larger ones are cut off at it. Noise grows with it.
        most: f64, "number from `one` on, required";
        /// The weight that counts as one row, by which weights are divided; of survey weights
        /// usually the size of the population over that of the sample.
        #[serde(skip_serializing_if = "Option::is_none")]
        one: Option<f64>, "number > 0, 1; not of `trials`";
        /// What weights are on average, by public knowledge: sets step sizes, shares of the budget
        /// and forecasts, and touches neither the posterior nor the guarantee.
        #[serde(skip_serializing_if = "Option::is_none")]
        mean: Option<f64>, "number > 0, at most `most`; `one`, or `most` where that is less, of `trials` half of `most`";
    }
}

section! {
    /// One `[[data.features]]`: exactly one of `intercept`, `pixels`, `scale`, `clamp`, `one_hot`,
    /// `indicator`.
    pub struct FeatureEntry {
        /// The constant 1; alone in its block.
        intercept: Option<bool>, "`true`; in the draws: `intercept`", "";
        /// The columns `x0`, `x1`, … of so many bytes, divided by 255: pixels of the images in an
        /// NPY or idx file; alone in its block.
        pixels: Option<usize>, "number of pixels, 1 to 2²⁰; in the draws: `x0`, `x1`, …", "";
        /// The column; or instead `columns`.
        column: Option<String>, "text", "";
        /// Several columns with the same declaration.
        columns: Option<Vec<String>>, "list of texts", "";
        /// Number, cut off at the bounds, mapped to [-1, 1]; the usual choice.
        #[serde(deserialize_with = "pair::optional::deserialize")]
        scale: Option<[f64; 2]>, "`[LOW, HIGH]`; in the draws: `age`", "";
        /// Number, cut off at the bounds, units kept; for columns that are already of size 1.
        #[serde(deserialize_with = "pair::optional::deserialize")]
        clamp: Option<[f64; 2]>, "`[LOW, HIGH]`; in the draws: `age`", "";
        /// With `scale` or `clamp`: taken of the number after it is cut off at the bounds, which
        /// stay in raw units.
        transform: Option<Transform>, "`\"log\"`, `\"log1p\"`, `\"sqrt\"` or `\"asinh\"`; none; in the draws: `log(income)`", "";
        /// With `clamp`: (x − M)/S, of the transformed number if there is a `transform`; public
        /// constants, such as a published mean. LOW and HIGH stay in raw units.
        standardize: Option<StandardizeEntry>, "`{ mean = M, sd = S }`, none; in the draws: `age`", "";
        /// With `scale`: Legendre polynomials P₁, …, P_degree of the scaled number.
        polynomial: Option<u32>, "degree 2 to 10, none; in the draws: `age`, `age^2`, `age^3`", "";
        /// With `scale`: a natural cubic spline with these 1 to 50 inner knots, in raw units; one
        /// column more than knots.
        spline: Option<SplineEntry>, "`{ knots = [numbers] }`, none; in the draws: `age~s1`, `age~s2`, …", "";
        /// A 0/1 column for each level, then each group, and one for everything else unless
        /// `strict`.
        #[serde(deserialize_with = "texts::optional")]
        one_hot: Option<Vec<String>>, "list of texts; in the draws: `region=north`, …, `region=other`", "";
        /// With `one_hot` (which may be `[]`): levels that share one column; groups in the order of
        /// their names.
        #[serde(deserialize_with = "texts::groups")]
        groups: Option<BTreeMap<String, Vec<String>>>, "`{ NAME = [texts], … }`, none; in the draws: `region=islands`", "";
        /// With `one_hot`: no column for everything else; a cell that is no declared level stops
        /// the run.
        strict: Option<bool>, "bool, `false`", "";
        /// With `one_hot`: one of its levels or groups, which gets no column: the coefficients of
        /// the others are differences from it. Give one beside an intercept.
        #[serde(deserialize_with = "texts::one")]
        reference: Option<String>, "text, none", "";
        /// 1 where the cell is one of the texts, or is a number above (below) the threshold, else
        /// 0; the threshold is in raw units and itself counts as 0.
        indicator: Option<IndicatorEntry>, "`{ in = [texts] }`, `{ above = NUMBER }` or `{ below = NUMBER }`; in the draws: `smoker=daily`, `smoker=(daily|former)`, `age>65`", "";
        /// Stands for a missing cell of `scale`, `clamp`, `above` or `below`, in the column's raw
        /// units, inside the bounds; of `indicator = { in = … }`: 0 or 1.
        missing: Option<f64>, "number, none", "";
    }
}

section! {
    /// One of `[columns]`: what is public about a column, for formulas. A feature is exactly one of
    /// `scale`, `clamp`, `levels` and `indicator`; a label is read as `[data.label]` reads it.
    pub struct ColumnEntry {
        /// Number, cut off at the bounds, mapped to [-1, 1]; the usual choice.
        #[serde(deserialize_with = "pair::optional::deserialize")]
        scale: Option<[f64; 2]>, "`[LOW, HIGH]`; features, labels", "";
        /// Number, cut off at the bounds, units kept.
        #[serde(deserialize_with = "pair::optional::deserialize")]
        clamp: Option<[f64; 2]>, "`[LOW, HIGH]`; features, labels", "";
        /// With `scale` or `clamp`, for every use of the column; a formula may give it instead:
        /// `log(income)`.
        transform: Option<Transform>, "`\"log\"`, `\"log1p\"`, `\"sqrt\"` or `\"asinh\"`; none; features", "";
        /// With `clamp`: (x − M)/S, of the transformed number if there is a `transform`.
        standardize: Option<StandardizeEntry>, "`{ mean = M, sd = S }`, none; features", "";
        /// Texts that have a 0/1 column each, but the reference; any other text has one more,
        /// `region=other`, unless `strict`.
        #[serde(deserialize_with = "texts::optional")]
        levels: Option<Vec<String>>, "list of texts; features, and labels in their order", "";
        /// With `levels` or alone: levels that share one column.
        #[serde(deserialize_with = "texts::groups")]
        groups: Option<BTreeMap<String, Vec<String>>>, "`{ NAME = [texts], … }`, none; features", "";
        /// With `levels`: no column for everything else; a cell that is no declared level stops
        /// the run.
        strict: Option<bool>, "bool, `false`; features", "";
        /// With `levels`: the level or group that the others are counted from.
        #[serde(deserialize_with = "texts::one")]
        reference: Option<String>, "text, the first of `levels`; features", "";
        /// 1 where the cell is one of the texts, or is a number above (below) the threshold, else
        /// 0.
        indicator: Option<IndicatorEntry>, "`{ in = [texts] }`, `{ above = NUMBER }` or `{ below = NUMBER }`; features", "";
        /// Stands for a missing cell, as in `[[data.features]]` and `[data.label]`.
        missing: Option<f64>, "number, none; features, labels", "";
        /// These mean 1.
        #[serde(deserialize_with = "texts::deserialize")]
        positive: Vec<String>, "list of texts; labels", "";
        /// Beside `positive`: these mean 0, and a cell that is neither is an error.
        #[serde(deserialize_with = "texts::deserialize")]
        negative: Vec<String>, "list of texts; all that is neither positive nor missing; labels", "";
        /// Whole numbers from 0; larger ones become MAX.
        count: Option<u32>, "whole number MAX, 1 to 2²⁴; labels", "";
        /// Whole numbers 0 to K − 1; others are errors.
        classes: Option<u32>, "whole number K, 2 to 2²⁴; labels", "";
    }
}

impl ColumnEntry {
    /// Whether its cells are texts of a declared list.
    pub fn has_levels(&self) -> bool {
        self.levels.is_some() || self.groups.is_some()
    }
}

/// `standardize = { mean = m, sd = s }`: (x − m)/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandardizeEntry {
    /// Public mean, in units of the transform.
    pub mean: f64,
    /// Public standard deviation, in units of the transform.
    pub sd: f64,
}

/// `spline = { knots = […] }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplineEntry {
    /// Knots inside the bounds, in raw units.
    pub knots: Vec<f64>,
}

/// One `[[data.interactions]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InteractionEntry {
    /// Columns of declared features, or names of single ones; two or more.
    pub features: Vec<String>,
}

/// `indicator = { in = […] }`, `{ above = v }` or `{ below = v }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndicatorEntry {
    /// Texts.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "texts::optional")]
    pub one_of: Option<Vec<String>>,
    /// Threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// Threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

keyed! {
    /// `[data.label]`: binary, or exactly one of `clamp`, `scale`, `count`, `classes`, `levels`.
    pub struct LabelEntry {
        /// The column; required unless there is a `label_file`.
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<String>, "text; models: all with a label";
        /// These mean 1; needs a `column`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[serde(deserialize_with = "texts::deserialize")]
        positive: Vec<String>, "list of texts; models: of two classes";
        /// Beside `positive`: these mean 0, and a cell that is neither is an error.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[serde(deserialize_with = "texts::deserialize")]
        negative: Vec<String>, "list of texts; all that is neither positive nor missing; models: of two classes";
        /// A number, cut off at the bounds, units kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[serde(default, deserialize_with = "pair::optional::deserialize")]
        clamp: Option<[f64; 2]>, "`[LOW, HIGH]`; models: of numbers, shares and times";
        /// A number, cut off at the bounds and mapped to [-1, 1].
        #[serde(skip_serializing_if = "Option::is_none")]
        #[serde(default, deserialize_with = "pair::optional::deserialize")]
        scale: Option<[f64; 2]>, "`[LOW, HIGH]`; models: of numbers";
        /// Whole numbers from 0; larger ones become MAX. A smaller MAX costs much less privacy.
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<u32>, "whole number MAX, 1 to 2²⁴; models: of counts";
        /// Whole numbers 0 to K − 1; others are errors.
        #[serde(skip_serializing_if = "Option::is_none")]
        classes: Option<u32>, "whole number K, 2 to 2²⁴; models: mlp, ordinal";
        /// All levels of an ordered label, the lowest first: its classes; a list in place of a text
        /// merges levels into one class. Needs a `column`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        levels: Vec<LevelEntry>, "list of texts or of lists of texts, two or more; models: ordinal";
        /// Of a time, with `clamp`: the column that says whether its event was seen, and the texts
        /// that mean so. The times of other rows are those until which it was not seen. Name the
        /// texts of these as `censored`, and cells that hold neither are errors.
        #[serde(skip_serializing_if = "Option::is_none")]
        event: Option<EventEntry>, "`{ column = NAME, in = [texts], censored = [texts] }`, none; models: weibull, log-normal-survival, declared";
        /// The label is the number of successes in as many trials as another column says, and the
        /// row counts as that many; see `[data.weights]`, whose keys it has.
        #[serde(skip_serializing_if = "Option::is_none")]
        trials: Option<WeightsEntry>, "`{ column = NAME, most = TRIALS }`, none; models: binomial";
        /// Stands for a missing cell, in raw units; with `clamp`, `scale`, `count` and `classes`
        /// only.
        #[serde(skip_serializing_if = "Option::is_none")]
        missing: Option<f64>, "number, none; models: all with a label";
    }
}

/// A level of an ordered label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a level is a text, or a list of texts that count as one level"
)]
pub enum LevelEntry {
    /// This text.
    One(#[serde(deserialize_with = "texts::cell")] String),
    /// Any of these.
    Merged(#[serde(deserialize_with = "texts::deserialize")] Vec<String>),
}

impl LevelEntry {
    /// Its texts.
    pub fn texts(&self) -> Vec<String> {
        match self {
            LevelEntry::One(text) => vec![text.clone()],
            LevelEntry::Merged(texts) => texts.clone(),
        }
    }
}

/// `event = { column = "died", in = ["yes"] }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventEntry {
    /// The column.
    pub column: String,
    /// Texts that mean that the event was seen.
    #[serde(rename = "in", deserialize_with = "texts::deserialize")]
    pub seen: Vec<String>,
    /// Texts that mean that it was not: then others are refused, and mean so without these.
    #[serde(
        default,
        deserialize_with = "texts::deserialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub censored: Vec<String>,
}

keyed! {
    /// `[validate]`: a held-out table that **is** protected, for `dpmc validate`.
    pub struct ValidateSection {
        /// The table: a file, a folder or a pattern; other rows than those of `[data]`.
        #[serde(with = "path")]
        file: PathBuf, "path, required";
        /// Labels in a file of their own, as in `[data]`.
        #[serde(default, with = "path::optional", skip_serializing_if = "Option::is_none")]
        label_file: Option<PathBuf>, "path, none";
        /// Name of the table, by which its ledger knows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>, "text; the file's name without its ending; required with a pattern";
        /// A row's log score is cut off at these, in nats. A probability's is at most 0; the noise
        /// is proportional to HIGH − LOW.
        #[serde(deserialize_with = "pair::deserialize")]
        clip: [f64; 2], "`[LOW, HIGH]`, required";
        /// The budget of all that is published of this table, in all runs of its ledger; with
        /// `delta`.
        epsilon: f64, "in (0, 1000], required";
        /// The budget's other half, which should be far under 1/rows.
        delta: f64, "in (0, 1), required";
        /// Share of the budget that one `dpmc validate` takes.
        #[serde(default = "all")]
        share: f64, "in (0, 1], 1";
        /// The ledger file of this table, relative to the run file and outside of the runs'
        /// directories. Runs that are compared share it: two ledgers of one table cost twice.
        #[serde(with = "path")]
        ledger: PathBuf, "path, required";
        /// Draws, evenly spaced, that rows are scored by, at most.
        #[serde(default = "scoring_draws")]
        draws: usize, "1 to 10,000; 200";
    }
}

fn all() -> f64 {
    1.0
}

fn scoring_draws() -> usize {
    200
}

/// `[test]`: a held-out table that is **not** protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSection {
    /// The table: a file, a folder or a pattern.
    #[serde(with = "path")]
    pub file: PathBuf,
    /// NPY labels.
    #[serde(
        default,
        with = "path::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub label_file: Option<PathBuf>,
    /// Must be true: the guarantee does not cover this table.
    pub public: bool,
}
