//! Reads a table file into a [`Dataset`] through its declarations.

use std::path::{Path, PathBuf};

use super::feature::Cell;
use super::{BoundsSource, DataError, Dataset, Feature, FeatureKind, Interaction, Label, TILE};
use super::{bounds, read_csv, read_npy, read_parquet};

/// A table file and what is declared about it.
#[derive(Clone, Debug)]
pub struct Source {
    /// CSV (`.csv`, `.csv.gz`, `.tsv`), Parquet (`.parquet`) or NPY (`.npy`).
    pub path: PathBuf,
    /// An NPY file of labels; 0/1 ones unless `label` declares others.
    pub label_file: Option<PathBuf>,
    /// Feature declarations, in order.
    pub features: Vec<Feature>,
    /// Products of them, whose columns follow theirs.
    pub interactions: Vec<Interaction>,
    /// The label, where the model needs one.
    pub label: Option<Label>,
    /// Declared L2 bound of a row, if one is; see [`Source::norm_bound`].
    pub row_norm: Option<f64>,
    /// Public bounds of single rows relative to the norm's, if some are declared.
    pub bounds: Option<BoundsSource>,
}

impl Source {
    /// The bound on a row's L2 norm: as declared, else what the features imply.
    pub fn norm_bound(&self) -> f64 {
        self.row_norm.unwrap_or_else(|| {
            let square: f64 = self.features.iter().map(Feature::max_square).sum();
            let products: f64 = self.interactions.iter().map(Interaction::max_square).sum();
            (square + products).sqrt()
        })
    }

    /// Names of all columns, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.features.iter().flat_map(Feature::names).collect();
        let products = self.interactions.iter().flat_map(|i| i.names(&names));
        let products: Vec<String> = products.collect();
        names.extend(products);
        names
    }
}

/// Where a row stands, for error messages.
pub(super) struct Position<'a> {
    pub path: &'a Path,
    pub line: u64,
}

/// Columns a reader must deliver, by index into `names`.
pub(super) struct Wanted {
    pub names: Vec<String>,
}

/// A reader calls this once a row with the wanted cells in order.
pub(super) type RowSink<'a> = dyn FnMut(&Position<'_>, &[Cell<'_>]) -> Result<(), DataError> + 'a;

enum Format {
    Csv,
    Parquet,
    Npy,
}

/// A file name up to its ending, and the format of that; `None` for an unknown ending.
fn split_ending(name: &str) -> Option<(&str, Format)> {
    // ASCII, so that lengths stay.
    let lower = name.to_ascii_lowercase();
    let text = lower.strip_suffix(".gz").unwrap_or(&lower);
    let (stem, format) = [".csv", ".tsv", ".txt"]
        .into_iter()
        .find_map(|ending| Some((text.strip_suffix(ending)?, Format::Csv)))
        .or_else(|| Some((lower.strip_suffix(".parquet")?, Format::Parquet)))
        .or_else(|| Some((lower.strip_suffix(".npy")?, Format::Npy)))?;
    Some((&name[..stem.len()], format))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A table's file name without its ending, as far as that is one of a known format.
pub(crate) fn stem(path: &Path) -> String {
    let name = file_name(path);
    match split_ending(&name) {
        Some((stem, _)) if !stem.is_empty() => stem.into(),
        _ => name,
    }
}

fn format_of(path: &Path) -> Result<Format, DataError> {
    match split_ending(&file_name(path)) {
        Some((_, format)) => Ok(format),
        None => Err(DataError::File {
            path: path.into(),
            what: "unknown kind of file; use .csv, .csv.gz, .tsv, .parquet or .npy".into(),
        }),
    }
}

/// Column names of a table, without reading its rows.
///
/// # Errors
/// [`DataError::File`] where the file is missing, of unknown kind or has no header.
pub fn header(path: &Path) -> Result<Vec<String>, DataError> {
    let names = match format_of(path)? {
        Format::Csv => read_csv::header(path),
        Format::Parquet => read_parquet::header(path),
        Format::Npy => read_npy::header(path),
    }?;
    if looks_like_data(&names) {
        return Err(DataError::File {
            path: path.into(),
            what: "its first line holds numbers, not column names; add a header line".into(),
        });
    }
    Ok(names)
}

/// Reads the whole table.
///
/// # Errors
/// [`DataError`], naming file, line and column or the key of the declaration.
pub fn load(source: &Source) -> Result<Dataset, DataError> {
    let format = format_of(&source.path)?;
    for (i, feature) in source.features.iter().enumerate() {
        feature
            .validate()
            .map_err(|what| DataError::declaration(&feature_key(feature, i), what))?;
    }
    let names = source.names();
    let width = names.len();
    let label = match (&source.label, &source.label_file) {
        (Some(label), _) => Some(label.clone()),
        (None, Some(_)) => Some(Label::zero_one_file()),
        (None, None) => None,
    };
    if let Some(label) = &label {
        label
            .validate()
            .map_err(|what| DataError::declaration("data.label", what))?;
        if label.column.is_some() == source.label_file.is_some() {
            let what = "give its 'column' or a label_file, one of them";
            return Err(DataError::declaration("data.label", what.into()));
        }
    }
    let kind = label.as_ref().map(Label::kind);
    let mut builder = Dataset::builder_with(names, kind, source.norm_bound())?;

    let mut wanted = Wanted { names: Vec::new() };
    let mut index = |column: &str| {
        wanted
            .names
            .iter()
            .position(|n| n == column)
            .unwrap_or_else(|| {
                wanted.names.push(column.to_string());
                wanted.names.len() - 1
            })
    };
    let cells: Vec<Option<usize>> = source
        .features
        .iter()
        .map(|f| f.column.as_deref().map(&mut index))
        .collect();
    let label_cell = label
        .as_ref()
        .and_then(|l| l.column.as_deref())
        .map(&mut index);
    let (bound_column, side_bounds) = match &source.bounds {
        Some(BoundsSource::Column(column)) => (Some(column), None),
        Some(BoundsSource::File(path)) => (None, Some(bounds::read_file(path)?)),
        None => (None, None),
    };
    let bound_cell = bound_column.map(String::as_str).map(index);
    let side_labels = match (&source.label_file, &label) {
        (Some(path), Some(label)) => Some(read_npy::labels(path, label)?),
        _ => None,
    };

    let mut values: Vec<f32> = Vec::with_capacity(width);
    let mut row = 0usize;
    let mut sink = |at: &Position<'_>, table: &[Cell<'_>]| -> Result<(), DataError> {
        let fail = |column: Option<&String>, what: String| DataError::Cell {
            path: at.path.into(),
            line: at.line,
            column: column.cloned(),
            what,
        };
        values.clear();
        for (feature, cell) in source.features.iter().zip(&cells) {
            let cell = match (cell, &feature.kind) {
                (Some(k), _) => table[*k],
                (None, FeatureKind::Intercept) => Cell::Missing,
                (None, _) => return Err(fail(None, "a feature names no column".into())),
            };
            feature
                .push(cell, &mut values)
                .map_err(|what| fail(feature.column.as_ref(), what))?;
        }
        for interaction in &source.interactions {
            interaction.push(&mut values);
        }
        let label = match (&label, label_cell, &side_labels) {
            (Some(label), Some(k), _) => Some(
                label
                    .read(table[k])
                    .and_then(|y| label.kind().store(y).map(f64::from))
                    .map_err(|what| fail(label.column.as_ref(), what))?,
            ),
            (_, _, Some(labels)) => Some(*labels.get(row).ok_or_else(|| {
                fail(
                    None,
                    format!("the label file holds only {} labels", labels.len()),
                )
            })?),
            _ => None,
        };
        let bound = match (bound_cell, &side_bounds) {
            (Some(k), _) => {
                let bound = bounds::read(table[k]).map_err(|what| fail(bound_column, what))?;
                Some(bound)
            }
            (None, Some(bounds)) => Some(*bounds.get(row).ok_or_else(|| {
                let what = format!("data.bounds.file holds only {} bounds", bounds.len());
                fail(None, what)
            })?),
            (None, None) => None,
        };
        row += 1;
        let pushed = match bound {
            Some(bound) => builder.push_bounded(&values, label, bound),
            None => builder.push_value(&values, label),
        };
        pushed.map_err(|e| fail(None, e.to_string()))
    };
    // A row's bound, twice, and its place in the table that draws rows by it.
    let extra = usize::from(kind.is_some()) + if source.bounds.is_some() { 6 } else { 0 };
    let fits = |rows: u64| check_memory(&source.path, rows, width, extra);
    match format {
        Format::Csv => read_csv::rows(&source.path, &wanted, &fits, &mut sink)?,
        Format::Parquet => read_parquet::rows(&source.path, &wanted, &fits, &mut sink)?,
        Format::Npy => read_npy::rows(&source.path, &wanted, &fits, &mut sink)?,
    }
    if let Some(labels) = side_labels
        && labels.len() != row
    {
        return Err(DataError::declaration(
            "data.label_file",
            format!("{} labels for {row} rows", labels.len()),
        ));
    }
    if let Some(bounds) = side_bounds
        && bounds.len() != row
    {
        return Err(DataError::declaration(
            "data.bounds.file",
            format!("{} bounds for {row} rows", bounds.len()),
        ));
    }
    builder.finish().map_err(|e| DataError::File {
        path: source.path.clone(),
        what: e.to_string(),
    })
}

fn feature_key(feature: &Feature, index: usize) -> String {
    match &feature.column {
        Some(column) => format!("data.features[{index}] (column '{column}')"),
        None => format!("data.features[{index}]"),
    }
}

/// Refuses a table whose features, and `extra` words a row, would not fit in available memory.
fn check_memory(path: &Path, rows: u64, width: usize, extra: usize) -> Result<(), DataError> {
    let Some(available) = super::memory::available_memory() else {
        return Ok(());
    };
    let tiles = rows.div_ceil(TILE as u64);
    let needed = tiles.saturating_mul((TILE * 4 * (width + extra)) as u64);
    if needed > available {
        return Err(DataError::TooLarge {
            path: path.into(),
            rows,
            features: width,
            needed_mib: needed >> 20,
            available_mib: available >> 20,
        });
    }
    Ok(())
}

pub(super) fn open(path: &Path) -> Result<std::fs::File, DataError> {
    std::fs::File::open(path).map_err(|e| DataError::File {
        path: path.into(),
        what: match e.kind() {
            // `"..\table.csv"` holds a tab.
            std::io::ErrorKind::NotFound if path.to_string_lossy().contains(char::is_control) => {
                "no such file; its name holds a control character: in double quotes a \\ begins an escape, so write / or single quotes".into()
            }
            std::io::ErrorKind::NotFound => {
                "no such file; paths in a run file are relative to the run file".into()
            }
            _ => format!("cannot be opened: {e}"),
        },
    })
}

/// Whether a header line holds cells instead of names.
pub(super) fn looks_like_data(header: &[String]) -> bool {
    header.iter().any(|h| h.trim().parse::<f64>().is_ok())
}

/// Index of each wanted column in the table's header, with the nearest name in the error.
pub(super) fn find_columns(
    path: &Path,
    header: &[String],
    wanted: &Wanted,
) -> Result<Vec<usize>, DataError> {
    wanted
        .names
        .iter()
        .map(|name| {
            header.iter().position(|h| h == name).ok_or_else(|| {
                let near = header
                    .iter()
                    // A table without a header: its first row is no list of names.
                    .filter(|_| !looks_like_data(header))
                    .max_by(|a, b| {
                        strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name))
                    })
                    .map(|n| format!("; the nearest is '{n}'"))
                    .unwrap_or_default();
                let hint = if header.len() == 1 && header[0].contains([';', '\t', '|']) {
                    " (the table has a single column: is the delimiter wrong?)"
                } else {
                    ""
                };
                DataError::File {
                    path: path.into(),
                    what: format!("has no column '{name}'{near}{hint}"),
                }
            })
        })
        .collect()
}
