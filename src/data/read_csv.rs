//! CSV and TSV tables, plain or gzip.

use std::io::{BufReader, Read};
use std::path::Path;

use super::DataError;
use super::feature::Cell;
use super::load::{Position, RowSink, Wanted, find_columns, open};

fn reader(path: &Path) -> Result<csv::Reader<Box<dyn Read>>, DataError> {
    let file = open(path)?;
    let name = path.to_string_lossy().to_lowercase();
    let input: Box<dyn Read> = if name.ends_with(".gz") {
        Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(BufReader::with_capacity(1 << 18, file))
    };
    let tab = name.trim_end_matches(".gz").ends_with(".tsv");
    Ok(csv::ReaderBuilder::new()
        .delimiter(if tab { b'\t' } else { b',' })
        .from_reader(input))
}

/// Turns a csv error into ours without the record's content.
fn describe(path: &Path, error: &csv::Error) -> DataError {
    let line = error.position().map_or(0, csv::Position::line);
    let cell = |line, what: String| DataError::Cell {
        path: path.into(),
        line,
        column: None,
        what,
    };
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => cell(
            line,
            format!("{len} cells where the header has {expected_len}"),
        ),
        csv::ErrorKind::Utf8 { pos, .. } => cell(
            pos.as_ref().map_or(line, csv::Position::line),
            "not valid UTF-8; convert the file".into(),
        ),
        csv::ErrorKind::Io(e) => DataError::File {
            path: path.into(),
            what: format!("cannot be read to its end (truncated or damaged?): {e}"),
        },
        _ => cell(line, "malformed record".into()),
    }
}

pub(super) fn header(path: &Path) -> Result<Vec<String>, DataError> {
    let mut reader = reader(path)?;
    let names = reader.headers().map_err(|e| describe(path, &e))?;
    let names: Vec<String> = names
        .iter()
        .map(|n| n.trim().trim_start_matches('\u{feff}').to_string())
        .collect();
    if names.iter().all(String::is_empty) {
        return Err(DataError::File {
            path: path.into(),
            what: "is empty; the first line must name the columns".into(),
        });
    }
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            return Err(DataError::File {
                path: path.into(),
                what: format!("the header names column '{name}' twice"),
            });
        }
    }
    Ok(names)
}

pub(super) fn rows(
    path: &Path,
    wanted: &Wanted,
    fits: &dyn Fn(u64) -> Result<(), DataError>,
    sink: &mut RowSink<'_>,
) -> Result<(), DataError> {
    let columns = find_columns(path, &header(path)?, wanted)?;
    if let Some(rows) = estimate_rows(path)? {
        fits(rows)?;
    }
    let mut reader = reader(path)?;
    let mut record = csv::ByteRecord::new();
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(e) => return Err(describe(path, &e)),
        }
        let line = record.position().map_or(0, csv::Position::line);
        let mut cells = Vec::with_capacity(columns.len());
        for (&c, name) in columns.iter().zip(&wanted.names) {
            let bytes = record.get(c).unwrap_or(b"");
            cells.push(Cell::Text(std::str::from_utf8(bytes).map_err(|_| {
                DataError::Cell {
                    path: path.into(),
                    line,
                    column: Some(name.clone()),
                    what: "is not valid UTF-8; convert the file".into(),
                }
            })?));
        }
        sink(&Position { path, line }, &cells)?;
    }
}

/// Rows of a plain file from its size and its first 100 records; `None` for gzip.
fn estimate_rows(path: &Path) -> Result<Option<u64>, DataError> {
    if path.to_string_lossy().to_lowercase().ends_with(".gz") {
        return Ok(None);
    }
    let size = open(path)?.metadata().map_or(0, |m| m.len());
    let mut reader = reader(path)?;
    let mut record = csv::ByteRecord::new();
    let mut seen = 0u64;
    while seen < 100 && reader.read_byte_record(&mut record).unwrap_or(false) {
        seen += 1;
    }
    let read = reader.position().byte();
    // Half the estimate, so that an uneven start never refuses a table that fits.
    Ok((seen == 100 && read > 0).then(|| size / read * seen / 2))
}
