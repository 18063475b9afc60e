//! `[data]` and `[test]`: what is declared about tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::path;
use crate::data::{BadCells, Storage, Transform};

/// `[data]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSection {
    /// Name of the data set, for ledgers; by default the file's name without its ending
    /// (`survey.2020` of `survey.2020.csv.gz`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// CSV (gzip allowed), Parquet or NPY; relative to the run file.
    #[serde(with = "path")]
    pub file: PathBuf,
    /// The byte between the cells of a text table, of `[test]` too: one ASCII character. By
    /// default a tab in `.tsv` files and a comma in others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Whether quoted cells of a text table may hold line breaks. Without it a record is a line,
    /// whatever it holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quoted_newlines: bool,
    /// What becomes of a cell that its declaration cannot read: an error, or a missing cell.
    #[serde(default, skip_serializing_if = "BadCells::is_default")]
    pub bad_cells: BadCells,
    /// How features are kept in memory: rounded to 16 bits on a public grid, or as floats.
    #[serde(default)]
    pub storage: Storage,
    /// NPY file of labels: 0/1, or what a `[data.label]` without a column declares.
    #[serde(
        default,
        with = "path::optional",
        skip_serializing_if = "Option::is_none"
    )]
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
    /// Products of declared features, in order, after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<InteractionEntry>,
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
    /// For scale and clamp: what is taken of the number between its bounds, which stay in raw
    /// units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transform: Option<Transform>,
    /// For clamp: public constants, in units of the transform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardize: Option<StandardizeEntry>,
    /// For scale: Legendre polynomials up to this degree instead of the column alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polynomial: Option<u32>,
    /// For scale: a natural cubic spline instead of the column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spline: Option<SplineEntry>,
    /// Declared levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_hot: Option<Vec<String>>,
    /// For one_hot: levels that share a feature, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<BTreeMap<String, Vec<String>>>,
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
