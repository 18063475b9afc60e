//! Reads a table file into a [`Dataset`] through its declarations.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::kept::{Kept, Room};
use super::rows::{BadCells, Rows, Rule};
use super::storage::Storage;
use super::{BoundsSource, DataError, Dataset, Feature, Interaction, Label, Offset, TextFormat};
use super::{Frame, Part, RowWeights, Unit, frame, read_csv, read_idx, read_npy, read_parquet};
use super::{Held, Share};
use crate::features::Column;

/// A table file and what is declared about it.
#[derive(Clone, Debug)]
pub struct Source {
    /// CSV (`.csv`, `.csv.gz`, `.tsv`), Parquet (`.parquet`), NPY (`.npy`) or bytes
    /// (`.idx3-ubyte`).
    pub path: PathBuf,
    /// An NPY or idx file of labels; 0/1 ones unless `label` declares others.
    pub label_file: Option<PathBuf>,
    /// Feature declarations, in order.
    pub features: Vec<Feature>,
    /// Products of them, whose columns follow theirs.
    pub interactions: Vec<Interaction>,
    /// A number that rows add to their linear predictor as it is, in the units that it has after
    /// its transform.
    pub offset: Option<Feature>,
    /// The label, where the model needs one.
    pub label: Option<Label>,
    /// Declared L2 bound of a row, if one is; see [`Source::norm_bound`].
    pub row_norm: Option<f64>,
    /// How often a row counts, if rows have weights.
    pub weights: Option<RowWeights>,
    /// Public bounds of single rows relative to the norm's, if some are declared.
    pub bounds: Option<BoundsSource>,
    /// Whose rows are, if rows are not neighbours by themselves.
    pub unit: Option<Unit>,
    /// How a text table is written.
    pub text: TextFormat,
    /// What becomes of a cell that its declaration cannot read.
    pub bad_cells: BadCells,
    /// How rows are kept.
    pub storage: Storage,
    /// How much memory they may take, and where they are beyond that.
    pub room: Room,
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

    /// What is declared of all columns' values, in order.
    fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = self.features.iter().flat_map(Feature::columns).collect();
        let products = self.interactions.iter().flat_map(|i| i.columns(&columns));
        let products: Vec<Column> = products.collect();
        columns.extend(products);
        columns
    }

    /// Whether columns are 0 or 1 in all rows by what is declared, in order.
    pub fn flags(&self) -> Vec<bool> {
        self.columns().into_iter().map(|c| c.flag).collect()
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

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Csv,
    Parquet,
    Npy,
    Idx,
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
        .or_else(|| Some((lower.strip_suffix(".npy")?, Format::Npy)))
        .or_else(|| Some((idx_stem(text)?, Format::Idx)))?;
    Some((&name[..stem.len()], format))
}

/// What stands before `.idx3-ubyte` or `-idx1-ubyte`, of any digit.
fn idx_stem(name: &str) -> Option<&str> {
    let stem = name.strip_suffix("-ubyte")?;
    let stem = stem
        .strip_suffix(|c: char| c.is_ascii_digit())?
        .strip_suffix("idx")?;
    stem.strip_suffix(['.', '-'])
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
        None => Err(DataError::file(
            path,
            "unknown kind of file; use .csv, .csv.gz, .tsv, .parquet, .npy or .idx3-ubyte",
        )),
    }
}

/// Whether a file is a text table, to which a [`TextFormat`] applies.
pub(crate) fn is_text(path: &Path) -> bool {
    format_of(path).is_ok_and(|format| format == Format::Csv)
}

/// Column names of a table, without reading its rows.
///
/// A text table's first line is taken for names, and is shown as such; one that looks like a row
/// is refused.
///
/// # Errors
/// [`DataError::File`] where the file is missing, of unknown kind or has no header.
pub fn header(path: &Path, text: TextFormat) -> Result<Vec<String>, DataError> {
    let names = match format_of(path)? {
        Format::Csv => read_csv::header(path, text),
        Format::Parquet => read_parquet::header(path),
        Format::Npy => read_npy::header(path),
        Format::Idx => read_idx::header(path),
    }?;
    if looks_like_data(&names) {
        return Err(DataError::file(
            path,
            "its first line holds numbers or missing cells, not column names; add a header line, or rename columns that are called so (y2019)",
        ));
    }
    Ok(names)
}

/// Reads the whole table.
///
/// # Errors
/// [`DataError`], naming file, line and column or the key of the declaration.
pub fn load(source: &Source) -> Result<Dataset, DataError> {
    load_parts(source, &[])
}

/// As [`load`], of a table that consists of these files, in their order; where there are none, of
/// the source's own, whose path stands for all of them in messages.
///
/// # Errors
/// [`DataError`], as there, and where the files are of several kinds.
pub fn load_parts(source: &Source, parts: &[Part]) -> Result<Dataset, DataError> {
    load_seen(source, parts, None, &[]).map(|(data, _)| data)
}

/// As [`load_parts`], the rows of one of several ranks, and which of the table's they are: whole
/// files where there are as many as ranks, or row groups of Parquet files, else blocks of rows or
/// units, of files that all ranks read.
///
/// # Errors
/// [`DataError`], as there.
pub fn load_share(
    source: &Source,
    parts: &[Part],
    share: Share,
) -> Result<(Dataset, Held), DataError> {
    let seen = seen(source, parts)?;
    let (data, mut held) = load_seen(source, parts, Some(share), &seen)?;
    held.seen.extend(seen);
    Ok((data, held))
}

/// Paths and bytes of a table's files: what all ranks must see alike.
fn seen(source: &Source, parts: &[Part]) -> Result<Vec<u64>, DataError> {
    let bytes = |path: &Path| match path.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(e) => Err(DataError::file(path, format!("cannot be looked at: {e}"))),
    };
    let mut seen = match parts {
        [] => vec![bytes(&source.path)?],
        parts => {
            let bytes = parts
                .iter()
                .map(|p| bytes(&p.path).map_err(|e| p.at_fault(e)));
            bytes.collect::<Result<_, _>>()?
        }
    };
    let mut paths = DefaultHasher::new();
    source.path.hash(&mut paths);
    parts.iter().for_each(|part| part.path.hash(&mut paths));
    seen.push(paths.finish());
    Ok(seen)
}

/// `bytes`: of each file, where rows are dealt.
fn load_seen(
    source: &Source,
    parts: &[Part],
    share: Option<Share>,
    bytes: &[u64],
) -> Result<(Dataset, Held), DataError> {
    let alone = [Part {
        path: source.path.clone(),
        shown: source.path.clone(),
        given: Vec::new(),
    }];
    let (files, format) = match parts {
        [] => (&alone[..], format_of(&source.path)?),
        parts => (parts, common_format(source, parts)?),
    };
    let fault = |part: &Part, e| match parts {
        [] => e,
        _ => part.at_fault(e),
    };
    // Which line of another file is a row's, or which unit, is known to who reads all before it.
    let beside = matches!(source.bounds, Some(BoundsSource::File(_)));
    let beside = beside || source.label_file.is_some() || source.unit.is_some();
    load_by(source, parts, share, |rows| {
        // Sizes of files or, where ranks are more, of their row groups.
        let size = |i: usize| vec![bytes.get(i).copied().unwrap_or(0)];
        let mut sizes: Vec<Vec<u64>> = (0..files.len()).map(size).collect();
        let dealt = share.filter(|_| !beside);
        if format == Format::Parquet && dealt.is_some_and(|s| files.len() < s.size) {
            for (part, sizes) in files.iter().zip(&mut sizes) {
                rows.begin(part);
                let groups = read_parquet::groups(&part.path, &rows.wanted, &[]);
                let groups = groups.map_err(|e| fault(part, e))?;
                *sizes = groups.into_iter().map(|(_, _, rows)| rows).collect();
            }
        }
        let all = sizes.concat();
        let dealt = dealt.filter(|s| all.len() >= s.size);
        if let (Some(share), None) = (share, dealt) {
            rows.deal(share);
        }
        let here = dealt.map_or(vec![true; all.len()], |share| share.files(&all));
        let mut here = here.into_iter();
        let own = |sizes: &Vec<u64>| -> Vec<bool> { here.by_ref().take(sizes.len()).collect() };
        let own: Vec<Vec<bool>> = sizes.iter().map(own).collect();
        let files = (0..).zip(files).zip(&own);
        let files: Vec<_> = files.filter(|(_, own)| own.contains(&true)).collect();
        let mut count = 0u64;
        for ((_, part), own) in files.iter().filter(|_| !parts.is_empty()) {
            rows.begin(part);
            let more = match format {
                // Known when they are read.
                Format::Csv => Ok(0),
                Format::Parquet => read_parquet::groups(&part.path, &rows.wanted, own)
                    .map(|groups| groups.iter().map(|group| group.2).sum()),
                Format::Npy => read_npy::count(&part.path),
                Format::Idx => read_idx::count(&part.path),
            };
            count = count.saturating_add(more.map_err(|e| fault(part, e))?);
        }
        rows.expect(count)?;
        rows.reserve(count);
        let mut held = Held::default();
        for ((i, part), own) in files {
            let before = rows.seen();
            rows.begin(part);
            let read = match format {
                Format::Csv => read_csv::rows(&part.path, source.text, rows),
                Format::Parquet => read_parquet::rows(&part.path, rows, own),
                Format::Npy => read_npy::rows(&part.path, rows),
                Format::Idx => read_idx::rows(&part.path, rows),
            };
            read.map_err(|e| fault(part, e))?;
            // (Ranks have the row groups of one file in the ranks' order.)
            held.parts.push((i, (rows.seen() - before) as u64));
        }
        held.seen = all;
        Ok(dealt.map(|_| held))
    })
}

/// The kind that all files are of.
fn common_format(source: &Source, parts: &[Part]) -> Result<Format, DataError> {
    let format = |part: &Part| format_of(&part.path).map_err(|e| part.at_fault(e));
    let formats = parts.iter().map(format);
    let formats = formats.collect::<Result<Vec<Format>, _>>()?;
    match formats.iter().all(|format| *format == formats[0]) {
        true => Ok(formats[0]),
        false => Err(DataError::file(
            &source.path,
            "its files are of several kinds (text, .parquet, .npy); name those of one kind by a pattern, such as \"*.csv\"",
        )),
    }
}

/// The labels of a file of their own.
pub(super) fn labels(path: &Path, label: &Label, bad: BadCells) -> Result<Vec<f64>, DataError> {
    match format_of(path) {
        Ok(Format::Idx) => read_idx::labels(path, label, bad),
        _ => read_npy::labels(path, label, bad),
    }
}

/// As [`load`], of a table in memory; messages call it by the source's path.
///
/// # Errors
/// [`DataError`], naming row and column or the key of the declaration.
pub fn load_frame(source: &Source, table: &Frame) -> Result<Dataset, DataError> {
    let read = |rows: &mut Rows<'_>| frame::rows(table, rows).map(|()| None);
    load_by(source, &[], None, read).map(|(data, _)| data)
}

/// `read`: which files, or parts of them, were read, where such are dealt.
fn load_by(
    source: &Source,
    parts: &[Part],
    share: Option<Share>,
    read: impl FnOnce(&mut Rows<'_>) -> Result<Option<Held>, DataError>,
) -> Result<(Dataset, Held), DataError> {
    for (i, feature) in source.features.iter().enumerate() {
        feature
            .validate()
            .map_err(|what| DataError::declaration(&feature_key(feature, i), what))?;
    }
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
    let mut builder = Dataset::builder_with(source.names(), kind, source.norm_bound())?;
    if let Some(offset) = &source.offset {
        let offset = Offset::of(offset);
        let refuse = |what| DataError::declaration("data.offset", what);
        builder = builder.with_offset(offset.map_err(refuse)?)?;
    }
    if source.storage == Storage::I16 {
        builder = builder.on_grids(&source.columns());
    }
    if let Some(weights) = &source.weights {
        let refuse = |what| DataError::declaration("data.weights.most", what);
        weights.validate().map_err(refuse)?;
        builder = builder.weighted();
    }
    if let Some(unit) = &source.unit {
        check_unit(source, unit)?;
        builder = builder.of_units(unit.clone());
    }
    let kept = Kept::of(source, parts, share, &builder);
    if let Some(found) = kept.as_ref().and_then(|kept| kept.find(&builder)) {
        return Ok(found);
    }
    let rule = Rule::new(source, label)?;
    let beside = share.map_or(1, |share| share.beside.max(1) as u64);
    let available = crate::machine::available_memory().into_iter();
    let available = available.chain(source.room.memory).min();
    let available = available.map(|bytes| bytes / beside);
    let ranks = share.map_or(1, |share| share.size);
    let blank = builder.like();
    let mut rows = Rows::new(&rule, builder, available, ranks, kept.as_ref());
    let dealt = read(&mut rows)?;
    if let Some(kept) = &kept {
        let now = Kept::of(source, parts, share, &blank);
        kept.check(now.as_ref(), &source.path)?;
    }
    rows.finish(dealt)
}

/// What is said of a table row by row elsewhere would say how many rows there are.
fn check_unit(source: &Source, unit: &Unit) -> Result<(), DataError> {
    let beside = [
        ("data.label_file", source.label_file.is_some()),
        ("data.bounds", source.bounds.is_some()),
        (
            "data.bad_cells = \"missing\"",
            source.bad_cells == BadCells::Missing,
        ),
    ];
    match beside.into_iter().find(|(_, given)| *given) {
        Some((key, _)) => {
            let what = "does not go with data.unit: how many rows there are is private then, and whose a row is must be readable";
            Err(DataError::declaration(key, what.into()))
        }
        None => (unit.validate()).map_err(|e| DataError::declaration("data.rows_per_unit", e)),
    }
}

fn feature_key(feature: &Feature, index: usize) -> String {
    match &feature.column {
        Some(column) => format!("data.features[{index}] (column '{column}')"),
        None => format!("data.features[{index}]"),
    }
}

pub(super) fn open(path: &Path) -> Result<std::fs::File, DataError> {
    std::fs::File::open(path).map_err(|e| DataError::file(path, match e.kind() {
            // `"..\table.csv"` holds a tab.
            std::io::ErrorKind::NotFound if path.to_string_lossy().contains(char::is_control) => {
                "no such file; its name holds a control character: in double quotes a \\ begins an escape, so write / or single quotes".into()
            }
            std::io::ErrorKind::NotFound => {
                "no such file; paths in a run file are relative to the run file".into()
            }
            _ => format!("cannot be opened: {e}"),
        }))
}

/// Whether a header line holds cells instead of names.
fn looks_like_data(header: &[String]) -> bool {
    let is_cell = |name: &String| name.parse::<f64>().is_ok() || matches!(&**name, "?" | "NA");
    header.iter().any(is_cell)
}

/// Refuses names that stand twice. By their places: the first line may be no header, but a row.
pub(super) fn check_names(path: &Path, names: &[String]) -> Result<(), DataError> {
    for (i, name) in names.iter().enumerate() {
        if let Some(before) = names[..i].iter().position(|n| n == name) {
            let (before, at) = (before + 1, i + 1);
            let what = format!(
                "columns {before} and {at} have the same name; rename one, and see that the first line holds names"
            );
            return Err(DataError::file(path, what));
        }
    }
    Ok(())
}

/// Index of each wanted column among the table's names, of which none is shown: they may be the
/// cells of a row.
pub(super) fn find_columns(
    path: &Path,
    names: &[String],
    wanted: &[String],
) -> Result<Vec<usize>, DataError> {
    let missing = |name: &String| {
        let hint = match names.len() {
            1 => "it has a single column; is the delimiter wrong? See 'delimiter' in [data]",
            _ => "write it as the table's header does, case included",
        };
        let count = names.len();
        let what = format!("none of its {count} columns is called '{name}'; {hint}");
        DataError::file(path, what)
    };
    let find = |name| names.iter().position(|n| n == name);
    wanted
        .iter()
        .map(|name| find(name).ok_or_else(|| missing(name)))
        .collect()
}
