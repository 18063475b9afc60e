//! CSV and TSV tables, plain or gzip.

use std::io::{BufReader, Read};
use std::path::Path;

use super::DataError;
use super::feature::Cell;
use super::load::{Position, RowSink, Wanted, find_columns, open};

fn lower_name(path: &Path) -> String {
    path.to_string_lossy().to_lowercase()
}

/// The table's text.
fn input(path: &Path) -> Result<Box<dyn Read>, DataError> {
    let file = open(path)?;
    Ok(if lower_name(path).ends_with(".gz") {
        Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(BufReader::with_capacity(1 << 18, file))
    })
}

fn reader(path: &Path) -> Result<csv::Reader<Box<dyn Read>>, DataError> {
    let tab = lower_name(path).trim_end_matches(".gz").ends_with(".tsv");
    Ok(csv::ReaderBuilder::new()
        .delimiter(if tab { b'\t' } else { b',' })
        .from_reader(input(path)?))
}

/// Turns a csv error into ours without the record's content.
fn describe(path: &Path, error: &csv::Error) -> DataError {
    let position = error.position();
    let line = position.map_or(0, csv::Position::line);
    let cell = |what: String| DataError::Cell {
        path: path.into(),
        line,
        column: None,
        what,
    };
    let error = match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => cell(format!("{len} cells where the header has {expected_len}")),
        csv::ErrorKind::Utf8 { .. } => cell("not valid UTF-8; convert the file".into()),
        csv::ErrorKind::Io(e) => DataError::File {
            path: path.into(),
            what: format!("cannot be read to its end (truncated or damaged?): {e}"),
        },
        _ => cell("malformed record".into()),
    };
    with_line(error, path, position)
}

/// Puts the line that an editor shows into an error of the record at `position`: the library
/// counts line feeds up to the end of the record before, which a CRLF or an empty line is not
/// part of. Only a failed load pays for this second pass.
fn with_line(mut error: DataError, path: &Path, position: Option<&csv::Position>) -> DataError {
    if let DataError::Cell { line, .. } = &mut error
        && let Some(found) = position.and_then(|p| line_at(path, p.byte()))
    {
        *line = found;
    }
    error
}

/// 1-based line on which the record starts that is the next from byte `start` on. Lines end
/// in LF, CRLF or CR.
fn line_at(path: &Path, start: u64) -> Option<u64> {
    let (mut line, mut after_cr) = (1, false);
    for (i, byte) in BufReader::new(input(path).ok()?).bytes().enumerate() {
        let byte = byte.ok()?;
        if i as u64 >= start && !matches!(byte, b'\r' | b'\n') {
            break;
        }
        line += u64::from(byte == b'\r' || (byte == b'\n' && !after_cr));
        after_cr = byte == b'\r';
    }
    Some(line)
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
        let position = record.position();
        let line = position.map_or(0, csv::Position::line);
        let mut cells = Vec::with_capacity(columns.len());
        for (&c, name) in columns.iter().zip(&wanted.names) {
            let bytes = record.get(c).unwrap_or(b"");
            cells.push(Cell::Text(std::str::from_utf8(bytes).map_err(|_| {
                let error = DataError::Cell {
                    path: path.into(),
                    line,
                    column: Some(name.clone()),
                    what: "is not valid UTF-8; convert the file".into(),
                };
                with_line(error, path, position)
            })?));
        }
        sink(&Position { path, line }, &cells).map_err(|e| with_line(e, path, position))?;
    }
}

/// Rows of a plain file from its size and its first 100 records; `None` for gzip.
fn estimate_rows(path: &Path) -> Result<Option<u64>, DataError> {
    if lower_name(path).ends_with(".gz") {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The line that an error names in a table of columns a and b whose good rows hold 1.
    fn line_named(text: &str) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let wanted = Wanted {
            names: vec!["a".into(), "b".into()],
        };
        let mut sink = |at: &Position<'_>, cells: &[Cell<'_>]| match cells {
            [Cell::Text(_), Cell::Text("1")] => Ok(()),
            _ => Err(DataError::Cell {
                path: at.path.into(),
                line: at.line,
                column: None,
                what: String::new(),
            }),
        };
        match rows(&path, &wanted, &|_| Ok(()), &mut sink) {
            Err(DataError::Cell { line, .. }) => line,
            other => panic!("{other:?}"),
        }
    }

    /// Line ends of each kind in front of a bad cell, a ragged row (too long, too short).
    #[test]
    fn errors_name_the_line_that_an_editor_shows() {
        for bad in ["1,0", "1,1,1", "1"] {
            let tables = [
                (format!("a,b\n1,1\n1,1\n{bad}\n1,1\n"), 4),
                (format!("a,b\r\n1,1\r\n1,1\r\n{bad}\r\n1,1\r\n"), 4),
                (format!("a,b\r1,1\r1,1\r{bad}\r1,1\r"), 4),
                (format!("\u{feff}a,b\r\n{bad}\r\n"), 2),
                (format!("a,b\n1,1\n\n\n{bad}\n"), 5),
                (format!("a,b\r\n1,1\r\n\r\n\r\n{bad}"), 5),
                (format!("a,b\n\"1\n\n1\",1\n{bad}\n"), 5),
                (format!("a,b\r\n\"1\r\n\r\n1\",1\r\n{bad}\r\n"), 5),
                (format!("a,b\r\n\"1\n1\",1\r\n\"\r\n1\",1\r\n{bad}"), 6),
            ];
            for (text, line) in tables {
                assert_eq!(line_named(&text), line, "{text:?}");
            }
        }
        // A row that ends on a later line is named by its first.
        assert_eq!(line_named("a,b\r\n1,1\r\n\"1\r\n\",0\r\n"), 3);
    }

    #[test]
    fn lines_are_counted_in_what_gzip_holds() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv.gz");
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        file.write_all(b"a\r\n1\r\n\xff\r\n").unwrap();
        std::fs::write(&path, file.finish().unwrap()).unwrap();
        let wanted = Wanted {
            names: vec!["a".into()],
        };
        let refused = rows(&path, &wanted, &|_| Ok(()), &mut |_, _| Ok(()));
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("line 3, column 'a'"), "{message}");
    }
}
