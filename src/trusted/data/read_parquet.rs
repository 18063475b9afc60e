//! Parquet tables: columns are decoded on all threads, some rows of a row group at a time.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;
use rayon::prelude::*;

use super::DataError;
use super::load::{check_names, find_columns, open};
use super::parquet_columns::{Column, Kind, Values, kind};
use super::rows::Rows;

/// Rows that are decoded at a time: a column of them stays in a core's cache.
const WAVE: usize = 1 << 13;

/// The library's own words are not shown: they may quote a value, or statistics of some.
fn damaged(path: &Path, what: &str) -> DataError {
    DataError::file(
        path,
        format!("is not a readable Parquet file (truncated or damaged?): {what}"),
    )
}

/// A file that threads read at their own places: a clone of a [`File`] shares its position.
struct SharedFile {
    file: Arc<File>,
    length: u64,
}

struct At {
    file: Arc<File>,
    place: u64,
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], place: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, place)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], place: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, place)
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = read_at(&self.file, buffer, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(At {
            file: self.file.clone(),
            place: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // A damaged length could ask for any amount of memory.
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF("a part ends behind the file".into()));
        }
        let mut bytes = vec![0; length];
        let file = self.file.clone();
        At { file, place: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

fn reader(path: &Path) -> Result<SerializedFileReader<SharedFile>, DataError> {
    let file = open(path)?;
    let length = file.metadata().map_or(0, |m| m.len());
    let file = SharedFile {
        file: Arc::new(file),
        length,
    };
    SerializedFileReader::new(file).map_err(|_| damaged(path, "its footer cannot be read"))
}

fn names(path: &Path, schema: &SchemaDescriptor) -> Result<Vec<String>, DataError> {
    let fields = schema.root_schema().get_fields().iter();
    let names: Vec<String> = fields.map(|f| f.name().to_string()).collect();
    check_names(path, &names)?;
    Ok(names)
}

thread_local! {
    /// Set while the library reads: its panics on damaged files are errors of the file.
    static READING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs `read`, turning a panic of the Parquet library (it has some on damaged files)
/// into `None`. The panic's own text could quote a value and is dropped.
pub(crate) fn without_panics<T>(read: impl FnOnce() -> T) -> Option<T> {
    let before = READING.with(|r| r.replace(true));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    READING.with(|r| r.set(before));
    result.ok()
}

fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, DataError>) -> Result<T, DataError> {
    without_panics(read).unwrap_or_else(|| Err(damaged(path, "its pages contradict each other")))
}

/// Keeps the message of a panic that `without_panics` catches off standard error.
pub fn silence_damaged_files() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !READING.with(std::cell::Cell::get) {
            default(info);
        }
    }));
}

pub(super) fn header(path: &Path) -> Result<Vec<String>, DataError> {
    guarded(path, || {
        let reader = reader(path)?;
        names(path, reader.metadata().file_metadata().schema_descr())
    })
}

/// Row groups, each with the rows before it and its own.
type Groups = Vec<(usize, u64, u64)>;

/// The row groups of a file that has the wanted columns: all, unless `here` says it of each.
pub(super) fn groups(path: &Path, names: &[String], here: &[bool]) -> Result<Groups, DataError> {
    guarded(path, || {
        let reader = reader(path)?;
        let metadata = reader.metadata();
        wanted(path, metadata.file_metadata().schema_descr(), names)?;
        groups_of(path, metadata, here)
    })
}

fn groups_of(path: &Path, metadata: &ParquetMetaData, here: &[bool]) -> Result<Groups, DataError> {
    let (mut groups, mut first) = (Vec::new(), 0u64);
    for (g, group) in metadata.row_groups().iter().enumerate() {
        // (Less than no rows are more than any file has.)
        let rows = group.num_rows() as u64;
        if here.len() < 2 || here.get(g) == Some(&true) {
            groups.push((g, first, rows));
        }
        first = first.saturating_add(rows);
    }
    match i64::try_from(first) == Ok(metadata.file_metadata().num_rows()) {
        true => Ok(groups),
        false => Err(damaged(path, "its numbers of rows contradict each other")),
    }
}

/// Reads all rows, or those of the row groups that are `here`.
pub(super) fn rows(path: &Path, rows: &mut Rows<'_>, here: &[bool]) -> Result<(), DataError> {
    guarded(path, || read_rows(path, rows, here))
}

/// A wanted column: its place among the file's leaves, and what its values are.
struct Wanted {
    leaf: usize,
    kind: Kind,
    nullable: bool,
}

/// The wanted columns, refused where they are not plain.
fn wanted(
    path: &Path,
    schema: &SchemaDescriptor,
    names: &[String],
) -> Result<Vec<Wanted>, DataError> {
    let fields = find_columns(path, &self::names(path, schema)?, names)?;
    let plain = |(&field, name): (&usize, &String)| {
        let leaf = (0..schema.num_columns()).find(|&l| schema.get_column_root_idx(l) == field);
        let found = leaf.and_then(|leaf| {
            let column = schema.column(leaf);
            Some(Wanted {
                leaf,
                kind: kind(&column)?,
                nullable: column.max_def_level() > 0,
            })
        });
        found
            .filter(|_| schema.root_schema().get_fields()[field].is_primitive())
            .ok_or_else(|| DataError::file(path, format!(
                    "column '{name}' is nested or of an unsupported type; store it as boolean, integer, float, double or UTF-8 text"
                )))
    };
    fields.iter().zip(names).map(plain).collect()
}

fn read_rows(path: &Path, rows: &mut Rows<'_>, here: &[bool]) -> Result<(), DataError> {
    let reader = reader(path)?;
    let metadata = reader.metadata();
    let wanted = wanted(path, metadata.file_metadata().schema_descr(), &rows.wanted)?;
    let groups = groups_of(path, metadata, here)?;
    let count = groups.iter().map(|(_, _, rows)| rows).sum();
    rows.expect(count)?;
    rows.reserve(count);
    for (g, mut first, count) in groups {
        let mut columns = open_columns(path, &reader, g, &wanted, &rows.wanted)?;
        let mut left = count as usize;
        while left > 0 {
            let size = left.min(WAVE);
            let read = |column: &mut Column| guarded(path, || decode(path, column, size, first));
            columns.par_iter_mut().try_for_each(read)?;
            let values: Vec<&Values> = columns.iter().map(|column| &column.values).collect();
            let numbers = |rows: Range<usize>| -> Vec<_> {
                let numbers = values.iter().map(|v| v.numbers(rows.clone()));
                numbers.map(|n| n.map(Cow::Borrowed)).collect()
            };
            rows.extend_by_index(first, size, numbers, |i, k| values[k].cell(i))?;
            first += size as u64;
            left -= size;
        }
    }
    Ok(())
}

/// The wanted columns of a row group.
fn open_columns(
    path: &Path,
    reader: &SerializedFileReader<SharedFile>,
    group: usize,
    wanted: &[Wanted],
    names: &[String],
) -> Result<Vec<Column>, DataError> {
    let broken = |_| damaged(path, "a row group cannot be read");
    let group = reader.get_row_group(group).map_err(broken)?;
    let open = |(wanted, name): (&Wanted, &String)| {
        let metadata = group.metadata().column(wanted.leaf);
        if metadata.compression() == Compression::LZO {
            let what = format!(
                "column '{name}' is compressed by LZO, which cannot be read; write the file with Zstandard, Snappy, LZ4, Brotli or gzip"
            );
            return Err(DataError::file(path, what));
        }
        let column = group.get_column_reader(wanted.leaf).map_err(broken)?;
        Ok(Column::new(column, wanted.kind, wanted.nullable))
    };
    wanted.iter().zip(names).map(open).collect()
}

/// Decodes the next rows; `first` is the number of rows before them.
fn decode(path: &Path, column: &mut Column, rows: usize, first: u64) -> Result<(), DataError> {
    match column.read(rows) {
        Ok(Some(())) => Ok(()),
        _ => Err(damaged(
            path,
            &format!(
                "rows {} to {} cannot be decoded",
                first + 1,
                first + rows as u64
            ),
        )),
    }
}
