//! CSV and TSV tables, plain or gzip.
//!
//! Read in chunks that end with a record; chunks are split into cells on all threads.

use std::io::{BufReader, Read};
use std::path::Path;

use super::DataError;
use super::csv_records::{Cells, Dialect, LINE_END, TextFormat, content, lines};
use super::feature::Cell;
use super::load::{check_names, find_columns, open};
use super::rows::{BadCells, Block, Rows};

/// Bytes that one thread splits at a time.
const CHUNK: usize = 1 << 20;
/// Most bytes of one record.
const LONGEST: usize = 1 << 26;

const NOT_UTF8: &str = "is not valid UTF-8; convert the file";

fn lower_name(path: &Path) -> String {
    path.to_string_lossy().to_lowercase()
}

/// The table's text.
fn input(path: &Path) -> Result<Box<dyn Read>, DataError> {
    let file = open(path)?;
    Ok(if lower_name(path).ends_with(".gz") {
        Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(file)
    })
}

/// A table's text behind its header.
struct Text<'a> {
    path: &'a Path,
    input: Box<dyn Read>,
    dialect: Dialect,
    /// Read, and not handed out yet.
    rest: Vec<u8>,
    ended: bool,
    /// Line on which `rest` starts.
    line: u64,
    /// Whether an empty record is a row, so that the last one must end like all others.
    any_record: bool,
}

/// Whole records.
struct Chunk {
    text: Vec<u8>,
    records: usize,
    line: u64,
}

impl<'a> Text<'a> {
    /// Opens a table; its header's names, too.
    fn open(path: &'a Path, format: TextFormat) -> Result<(Self, Vec<String>), DataError> {
        let tab = lower_name(path).trim_end_matches(".gz").ends_with(".tsv");
        let default = if tab { b'\t' } else { b',' };
        let mut text = Text {
            path,
            input: input(path)?,
            dialect: Dialect {
                delimiter: format.delimiter.unwrap_or(default),
                quoted_newlines: format.quoted_newlines,
            },
            rest: Vec::new(),
            ended: false,
            line: 1,
            any_record: false,
        };
        let names = text.header()?;
        text.any_record = names.len() == 1;
        Ok((text, names))
    }

    fn fail(&self, line: u64, what: &str) -> DataError {
        DataError::line(self.path, line, what)
    }

    fn file(&self, what: &str) -> DataError {
        DataError::file(self.path, what)
    }

    /// Reads on, up to `size` bytes in `rest` or the end of the file.
    fn fill(&mut self, size: usize) -> Result<(), DataError> {
        let missing = size.saturating_sub(self.rest.len());
        self.rest.reserve(missing);
        let mut input = self.input.by_ref().take(missing as u64);
        let read = input.read_to_end(&mut self.rest).map_err(|e| {
            let what = format!("cannot be read to its end (truncated or damaged?): {e}");
            self.file(&what)
        })?;
        self.ended = read < missing;
        Ok(())
    }

    /// Takes the first line.
    fn header(&mut self) -> Result<Vec<String>, DataError> {
        let mut size = CHUNK;
        let end = loop {
            self.fill(size)?;
            match self.rest.iter().position(|b| *b == LINE_END) {
                Some(end) => break end,
                None if self.ended => break self.rest.len(),
                None if size >= LONGEST => {
                    return Err(self.fail(1, "is longer than any list of names"));
                }
                None => size *= 2,
            }
        };
        let rest = self.rest.split_off(self.rest.len().min(end + 1));
        let mut line = std::mem::replace(&mut self.rest, rest);
        line.truncate(end);
        self.line = 2;
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        let line = content(line);
        if line.contains(&b'\r') {
            return Err(self.fail(1, "has a carriage return without a line feed; lines must end in a line feed, with or without a carriage return in front of it"));
        }
        let mut cells = Cells::default();
        cells
            .split(line, self.dialect)
            .map_err(|_| self.fail(1, "the names of the columns are not quoted properly"))?;
        let name = |i| match std::str::from_utf8(cells.get(line, i)) {
            Ok(name) => Ok(name.trim().to_string()),
            Err(_) => Err(self.fail(1, NOT_UTF8)),
        };
        let names = (0..cells.count())
            .map(name)
            .collect::<Result<Vec<String>, _>>()?;
        if names.iter().all(String::is_empty) {
            return Err(self.file("is empty; the first line must name the columns"));
        }
        check_names(self.path, &names)?;
        Ok(names)
    }

    /// The next records; `None` at the end of the table.
    fn chunk(&mut self) -> Result<Option<Chunk>, DataError> {
        let mut size = CHUNK;
        loop {
            self.fill(size)?;
            let (mut end, mut records) = self.dialect.whole(&self.rest);
            if self.ended && end < self.rest.len() {
                self.check_last(end)?;
                (end, records) = (self.rest.len(), records + 1);
            }
            if records > 0 {
                let rest = self.rest.split_off(end);
                let text = std::mem::replace(&mut self.rest, rest);
                let line = self.line;
                self.line += lines(&text) as u64;
                return Ok(Some(Chunk {
                    text,
                    records,
                    line,
                }));
            }
            if self.ended {
                return Ok(None);
            }
            if size >= LONGEST {
                return Err(self.fail(self.line, "is longer than 64 MiB, or has an open quote"));
            }
            size *= 2;
        }
    }

    /// Refuses a last record without a line end where that could hide one, or has an open quote.
    fn check_last(&self, start: usize) -> Result<(), DataError> {
        if self.any_record {
            return Err(self.file("the last line must end in a line break, so that an empty one is a row too, for the table has one column or data.bad_cells = \"missing\"; add one"));
        }
        if !self.dialect.quoted_newlines {
            return Ok(());
        }
        // With a line end behind it, it is whole unless a quote is open.
        let last = [&self.rest[start..], &[LINE_END]].concat();
        if self.dialect.end(&last) == Some(last.len() - 1) {
            return Ok(());
        }
        let line = self.line + lines(&self.rest[..start]) as u64;
        Err(self.fail(line, "a quote is not closed by the end of the file"))
    }
}

pub(super) fn header(path: &Path, format: TextFormat) -> Result<Vec<String>, DataError> {
    Ok(Text::open(path, format)?.1)
}

pub(super) fn rows(path: &Path, format: TextFormat, rows: &mut Rows<'_>) -> Result<(), DataError> {
    let (mut text, names) = Text::open(path, format)?;
    text.any_record |= rows.rule.source.bad_cells == BadCells::Missing;
    let columns = Columns {
        places: find_columns(path, &names, &rows.wanted)?,
        count: names.len(),
        dialect: text.dialect,
    };
    let wave = 2 * rayon::current_num_threads();
    loop {
        let (mut chunks, mut end) = (Vec::with_capacity(wave), None);
        while chunks.len() < wave && end.is_none() {
            match text.chunk() {
                Ok(Some(chunk)) => chunks.push(chunk),
                other => end = Some(other.map(|_| ())),
            }
        }
        rows.extend(
            &chunks,
            |chunk| chunk.records,
            |chunk, block| columns.read(chunk, block),
        )?;
        // What is wrong further on is said only if nothing is wrong before it.
        if let Some(end) = end {
            return end;
        }
    }
}

/// Where the wanted columns stand in a record.
struct Columns {
    places: Vec<usize>,
    /// Cells of a record.
    count: usize,
    dialect: Dialect,
}

impl Columns {
    fn read(&self, chunk: &Chunk, block: &mut Block<'_>) -> Result<(), DataError> {
        let (mut rest, mut line) = (&chunk.text[..], chunk.line);
        // Once for all cells; where a cell is no text, each is looked at by itself.
        let text = std::str::from_utf8(rest).ok();
        let mut cells = Cells::default();
        for _ in 0..chunk.records {
            let end = self.dialect.end(rest).unwrap_or(rest.len());
            let record = content(&rest[..end]);
            let place = chunk.text.len() - rest.len();
            let text = text.and_then(|t| t.get(place..place + record.len()));
            match self.split(record, text, &mut cells) {
                Ok(wanted) => block.push(line, |k| wanted[k])?,
                // Where records end by quotes, what follows may be no records either.
                Err(what) => block.push_malformed(line, what, !self.dialect.quoted_newlines)?,
            }
            line += 1;
            if self.dialect.quoted_newlines {
                line += lines(record) as u64;
            }
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Ok(())
    }

    /// The wanted cells of a record.
    fn split<'c>(
        &self,
        record: &'c [u8],
        text: Option<&'c str>,
        cells: &'c mut Cells,
    ) -> Result<Vec<Cell<'c>>, &'static str> {
        cells.split(record, self.dialect)?;
        if cells.count() != self.count {
            return Err(match record.trim_ascii().is_empty() {
                true => "is empty, and every line is a row; delete it if it is none",
                false => "does not have as many cells as the header has names",
            });
        }
        let cells: &'c Cells = cells;
        let cell = |&c: &usize| {
            let known = text.and_then(|text| cells.get_text(text, c));
            match known.map_or_else(|| std::str::from_utf8(cells.get(record, c)), Ok) {
                Ok(text) => Cell::Text(text),
                Err(_) => Cell::Bad(NOT_UTF8),
            }
        };
        Ok(self.places.iter().map(cell).collect())
    }
}

#[cfg(test)]
mod tests;
