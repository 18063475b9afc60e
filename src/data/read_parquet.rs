//! Parquet tables, through the row interface with a column projection.

use std::path::Path;

use parquet::basic::{ConvertedType, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;

use super::DataError;
use super::feature::Cell;
use super::load::{Position, RowSink, Wanted, find_columns, open};

fn damaged(path: &Path, error: impl std::fmt::Display) -> DataError {
    // Errors of the file's structure (footer, schema) alone: decoding errors may quote a
    // cell and are not shown.
    DataError::File {
        path: path.into(),
        what: format!("is not a readable Parquet file (truncated or damaged?): {error}"),
    }
}

fn reader(path: &Path) -> Result<SerializedFileReader<std::fs::File>, DataError> {
    SerializedFileReader::new(open(path)?).map_err(|e| damaged(path, e))
}

fn names(reader: &SerializedFileReader<std::fs::File>) -> Vec<String> {
    let schema = reader.metadata().file_metadata().schema();
    schema
        .get_fields()
        .iter()
        .map(|f| f.name().to_string())
        .collect()
}

thread_local! {
    /// Set while the library reads: its panics on damaged files are errors of the file.
    static READING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs `read`, turning a panic of the Parquet library (it has some on damaged files)
/// into `None`. The panic's own text could quote a value and is dropped.
pub(crate) fn without_panics<T>(read: impl FnOnce() -> T) -> Option<T> {
    READING.with(|r| r.set(true));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    READING.with(|r| r.set(false));
    result.ok()
}

fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, DataError>) -> Result<T, DataError> {
    without_panics(read).unwrap_or_else(|| Err(damaged(path, "its pages contradict each other")))
}

/// Keeps the message of a panic that [`without_panics`] catches off standard error.
#[cfg(feature = "cli")]
pub(crate) fn silence_damaged_files() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !READING.with(std::cell::Cell::get) {
            default(info);
        }
    }));
}

pub(super) fn header(path: &Path) -> Result<Vec<String>, DataError> {
    guarded(path, || Ok(names(&reader(path)?)))
}

pub(super) fn rows(
    path: &Path,
    wanted: &Wanted,
    fits: &dyn Fn(u64) -> Result<(), DataError>,
    sink: &mut RowSink<'_>,
) -> Result<(), DataError> {
    guarded(path, || read_rows(path, wanted, fits, sink))
}

fn read_rows(
    path: &Path,
    wanted: &Wanted,
    fits: &dyn Fn(u64) -> Result<(), DataError>,
    sink: &mut RowSink<'_>,
) -> Result<(), DataError> {
    let reader = reader(path)?;
    let columns = find_columns(path, &names(&reader), wanted)?;
    let count = reader.metadata().file_metadata().num_rows();
    fits(u64::try_from(count).unwrap_or(0))?;
    let schema = reader.metadata().file_metadata().schema();
    for (&c, name) in columns.iter().zip(&wanted.names) {
        if !is_supported(&schema.get_fields()[c]) {
            return Err(DataError::File {
                path: path.into(),
                what: format!(
                    "column '{name}' is nested or of an unsupported type; store it as boolean, integer, float, double or UTF-8 text"
                ),
            });
        }
    }
    // The projection keeps file order; `order` maps each wanted cell into it.
    let mut kept = columns.clone();
    kept.sort_unstable();
    let order: Vec<usize> = columns
        .iter()
        .map(|c| kept.iter().position(|k| k == c).unwrap_or(0))
        .collect();
    let projection = Type::group_type_builder(schema.name())
        .with_fields(
            kept.iter()
                .map(|&c| schema.get_fields()[c].clone())
                .collect(),
        )
        .build()
        .map_err(|e| damaged(path, e))?;
    let iter = reader
        .get_row_iter(Some(projection))
        .map_err(|e| damaged(path, e))?;
    for (i, row) in iter.enumerate() {
        let row = row.map_err(|_| DataError::Cell {
            path: path.into(),
            line: i as u64 + 1,
            column: None,
            what: "cannot be decoded (truncated or damaged?)".into(),
        })?;
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, f)| f).collect();
        let line = i as u64 + 1;
        let mut cells = Vec::with_capacity(order.len());
        for (&k, name) in order.iter().zip(&wanted.names) {
            cells.push(cell(fields[k]).ok_or_else(|| DataError::Cell {
                path: path.into(),
                line,
                column: Some(name.clone()),
                what: "is neither a number, a boolean nor a text".into(),
            })?);
        }
        sink(&Position { path, line }, &cells)?;
    }
    Ok(())
}

/// Plain columns that the row reader converts without failing on a value.
fn is_supported(column: &Type) -> bool {
    if !column.is_primitive() {
        return false;
    }
    let info = column.get_basic_info();
    match column.get_physical_type() {
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => true,
        Physical::INT32 | Physical::INT64 => matches!(
            info.converted_type(),
            ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64
                | ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        ),
        Physical::BYTE_ARRAY => {
            matches!(
                info.converted_type(),
                ConvertedType::UTF8 | ConvertedType::ENUM
            )
        }
        Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => false,
    }
}

fn cell(field: &Field) -> Option<Cell<'_>> {
    Some(match field {
        Field::Null => Cell::Missing,
        Field::Bool(b) => Cell::Number(f64::from(u8::from(*b))),
        Field::Byte(v) => Cell::Number(f64::from(*v)),
        Field::Short(v) => Cell::Number(f64::from(*v)),
        Field::Int(v) => Cell::Number(f64::from(*v)),
        Field::Long(v) => Cell::Number(*v as f64),
        Field::UByte(v) => Cell::Number(f64::from(*v)),
        Field::UShort(v) => Cell::Number(f64::from(*v)),
        Field::UInt(v) => Cell::Number(f64::from(*v)),
        Field::ULong(v) => Cell::Number(*v as f64),
        Field::Float(v) => Cell::Number(f64::from(*v)),
        Field::Double(v) => Cell::Number(*v),
        Field::Str(s) => Cell::Text(s),
        _ => return None,
    })
}
