//! Where the records of a text table end, and how a record splits into cells.
//!
//! The rule, which no cell can bend: a record is a **line**, whatever its bytes, and a quoted cell
//! ends on the line on which it began. So one record's bytes change nothing but that record. Only
//! a table declared to have quoted line breaks is split otherwise.

use memchr::{memchr, memchr_iter, memrchr};

/// How a text table is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextFormat {
    /// The byte between cells; by default a tab in `.tsv` files and a comma in others.
    pub delimiter: Option<u8>,
    /// Whether quoted cells may hold line breaks: records then end where quotes say, so that N
    /// follows from how whoever wrote the file quoted cells.
    pub quoted_newlines: bool,
}

/// The byte that a declared delimiter is.
pub fn delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(*byte),
        _ => {
            Err("must be one ASCII character, such as \";\" or \"\\t\", and no quote or line break")
        }
    }
}

/// How one file is split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub delimiter: u8,
    pub quoted_newlines: bool,
}

/// A carriage return in front of it is part of the line end; elsewhere it is a blank of a cell.
pub(super) const LINE_END: u8 = b'\n';

const UNCLOSED: &str = "a quote is not closed on its line, or does not end its cell; double the quotes inside of quoted cells, and where those hold line breaks declare quoted_newlines = true in [data]";
const STRAY: &str = "a quote stands inside of a cell that is not quoted, or text behind a closing quote; with quoted_newlines = true such cells must be quoted, with their quotes doubled";

/// Where a byte stands in a record whose quoted cells may hold line breaks.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Start,
    Plain,
    Quoted,
    /// Behind a quote that ends the cell, or is the first of two.
    Closed,
}

impl Dialect {
    /// What follows a byte; `None` behind one that ends the record.
    fn next(self, at: At, byte: u8) -> Option<At> {
        Some(match (at, byte) {
            (At::Quoted, b'"') => At::Closed,
            (At::Quoted, _) | (At::Start | At::Closed, b'"') => At::Quoted,
            (_, LINE_END) => return None,
            (_, byte) if byte == self.delimiter => At::Start,
            (At::Closed, _) => At::Closed,
            _ => At::Plain,
        })
    }

    /// Index of the byte that ends the first record; `None` if none does.
    pub fn end(self, bytes: &[u8]) -> Option<usize> {
        if !self.quoted_newlines {
            return memchr(LINE_END, bytes);
        }
        let mut at = At::Start;
        for (i, &byte) in bytes.iter().enumerate() {
            at = match self.next(at, byte) {
                Some(at) => at,
                None => return Some(i),
            };
        }
        None
    }

    /// Length of the whole records at the start of `bytes`, and how many they are.
    pub fn whole(self, bytes: &[u8]) -> (usize, usize) {
        if !self.quoted_newlines {
            let end = memrchr(LINE_END, bytes).map_or(0, |i| i + 1);
            return (end, lines(&bytes[..end]));
        }
        let (mut end, mut records, mut at) = (0, 0, At::Start);
        for (i, &byte) in bytes.iter().enumerate() {
            at = match self.next(at, byte) {
                Some(at) => at,
                None => {
                    (end, records) = (i + 1, records + 1);
                    At::Start
                }
            };
        }
        (end, records)
    }
}

/// Line ends among these bytes.
pub(super) fn lines(bytes: &[u8]) -> usize {
    memchr_iter(LINE_END, bytes).count()
}

/// A record without its line end's carriage return.
pub(super) fn content(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// The cells of a record.
#[derive(Default)]
pub(super) struct Cells {
    /// Where each cell ends: in the record, or in `text` where the record has quotes.
    ends: Vec<usize>,
    /// The cells without their quotes.
    text: Vec<u8>,
    quoted: bool,
}

impl Cells {
    /// Splits a record.
    ///
    /// # Errors
    /// What is wrong with its quotes.
    pub fn split(&mut self, record: &[u8], dialect: Dialect) -> Result<(), &'static str> {
        self.ends.clear();
        self.quoted = memchr(b'"', record).is_some();
        if self.quoted {
            return self.split_quoted(record, dialect);
        }
        self.ends.extend(memchr_iter(dialect.delimiter, record));
        self.ends.push(record.len());
        Ok(())
    }

    /// A quote at the start of a cell opens it, the next one that is not doubled closes it; what
    /// follows up to the delimiter belongs to the cell, and so do quotes further inside.
    fn split_quoted(&mut self, record: &[u8], dialect: Dialect) -> Result<(), &'static str> {
        self.text.clear();
        let mut rest = record;
        loop {
            if let [b'"', inside @ ..] = rest {
                rest = inside;
                loop {
                    let close = memchr(b'"', rest).ok_or(UNCLOSED)?;
                    self.text.extend_from_slice(&rest[..close]);
                    rest = &rest[close + 1..];
                    match rest {
                        [b'"', after @ ..] => {
                            self.text.push(b'"');
                            rest = after;
                        }
                        _ => break,
                    }
                }
            }
            let end = memchr(dialect.delimiter, rest).unwrap_or(rest.len());
            let plain = &rest[..end];
            if dialect.quoted_newlines && is_stray(plain, self.opened(record, rest)) {
                return Err(STRAY);
            }
            self.text.extend_from_slice(plain);
            self.ends.push(self.text.len());
            match rest.get(end + 1..) {
                Some(next) => rest = next,
                None => return Ok(()),
            }
        }
    }

    /// Whether the byte in front of `rest`, a tail of the record, is a quote that closed a cell.
    fn opened(&self, record: &[u8], rest: &[u8]) -> bool {
        let before = record.len() - rest.len();
        before > 0 && record[before - 1] == b'"'
    }

    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Cell `i` of the record that was split last; empty beyond them.
    #[inline]
    pub fn get<'c>(&'c self, record: &'c [u8], i: usize) -> &'c [u8] {
        match self.range(i) {
            (start, end) if self.quoted => &self.text[start..end],
            (start, end) => &record[start..end],
        }
    }

    /// As [`Cells::get`], of a record that is known to be text; `None` if the cell is none.
    #[inline]
    pub fn get_text<'c>(&'c self, record: &'c str, i: usize) -> Option<&'c str> {
        match self.range(i) {
            (start, end) if self.quoted => std::str::from_utf8(&self.text[start..end]).ok(),
            (start, end) => record.get(start..end),
        }
    }

    /// Where cell `i` starts and ends.
    fn range(&self, i: usize) -> (usize, usize) {
        let end = self.ends.get(i).copied().unwrap_or(0);
        let before = i.checked_sub(1).and_then(|i| self.ends.get(i));
        // Behind the delimiter, which the text of quoted cells lacks.
        let start = before.map_or(0, |b| b + usize::from(!self.quoted));
        (start.min(end), end)
    }
}

/// Whether what follows the quotes of a cell (or all of one without quotes) holds what a writer
/// who quotes properly would not leave there.
fn is_stray(plain: &[u8], closed: bool) -> bool {
    memchr(b'"', plain).is_some() || closed && !plain.trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const LINES: Dialect = Dialect {
        delimiter: b',',
        quoted_newlines: false,
    };
    const QUOTED: Dialect = Dialect {
        quoted_newlines: true,
        ..LINES
    };

    fn split(record: &str, dialect: Dialect) -> Result<Vec<String>, &'static str> {
        let mut cells = Cells::default();
        cells.split(record.as_bytes(), dialect)?;
        let cell = |i| String::from_utf8_lossy(cells.get(record.as_bytes(), i)).into_owned();
        Ok((0..cells.count()).map(cell).collect())
    }

    #[test]
    fn quotes_open_cells_at_their_start_alone() {
        for (record, cells) in [
            ("", vec![""]),
            ("a,b", vec!["a", "b"]),
            (",,", vec!["", "", ""]),
            ("\"a,b\",c", vec!["a,b", "c"]),
            ("\"a\"\"b\",\"\"", vec!["a\"b", ""]),
            ("\"\"\"\",1", vec!["\"", "1"]),
            ("\"a\" ,b", vec!["a ", "b"]),
            ("\"a\nb\",c", vec!["a\nb", "c"]),
        ] {
            let cells: Vec<String> = cells.into_iter().map(String::from).collect();
            assert_eq!(split(record, LINES), Ok(cells.clone()), "{record}");
            assert_eq!(split(record, QUOTED), Ok(cells), "{record}");
        }
        for (record, cells) in [
            ("5\" nail,1", ["5\" nail", "1"]),
            ("\"a\"b,1", ["ab", "1"]),
            ("a, \"b\"", ["a", " \"b\""]),
        ] {
            let cells: Vec<String> = cells.into_iter().map(String::from).collect();
            assert_eq!(split(record, LINES), Ok(cells), "{record}");
            assert_eq!(split(record, QUOTED), Err(STRAY), "{record}");
        }
        for record in ["\"a,b", "a,\"b\"\"", "\""] {
            assert_eq!(split(record, LINES), Err(UNCLOSED), "{record}");
            assert_eq!(split(record, QUOTED), Err(UNCLOSED), "{record}");
        }
    }

    fn records(mut bytes: &[u8], dialect: Dialect) -> Vec<&[u8]> {
        let mut found = Vec::new();
        while let Some(end) = dialect.end(bytes) {
            found.push(content(&bytes[..end]));
            bytes = &bytes[end + 1..];
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

        /// What a proper writer wrote comes back, with line breaks in cells where declared.
        #[test]
        fn written_tables_come_back(table in vec(vec("[a\", \r\n]{0,5}", 1..4), 1..5)) {
            let quote = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quote).collect::<Vec<_>>().join(",");
            let lines: Vec<String> = table.iter().map(line).collect();
            let text = lines.join("\r\n") + "\r\n";
            let found = records(text.as_bytes(), QUOTED);
            prop_assert_eq!(found.len(), table.len());
            prop_assert_eq!(QUOTED.whole(text.as_bytes()), (text.len(), table.len()));
            for (record, row) in found.iter().zip(&table) {
                let record = std::str::from_utf8(record).unwrap();
                prop_assert_eq!(&split(record, QUOTED), &Ok(row.clone()));
                if !record.contains('\n') {
                    prop_assert_eq!(&split(record, LINES), &Ok(row.clone()));
                }
            }
        }

        /// Lines are records whatever is on them.
        #[test]
        fn no_byte_but_a_line_end_ends_a_record(lines in vec(vec(any::<u8>(), 0..20), 0..8)) {
            let lines: Vec<Vec<u8>> = lines
                .into_iter()
                .map(|line| line.into_iter().filter(|b| *b != b'\n').collect())
                .collect();
            let text: Vec<u8> = lines.iter().flat_map(|l| [&l[..], b"\n"].concat()).collect();
            let found = records(&text, LINES);
            prop_assert_eq!(found.len(), lines.len());
            prop_assert_eq!(LINES.whole(&text), (text.len(), lines.len()));
            for (found, line) in found.iter().zip(&lines) {
                prop_assert_eq!(*found, line.strip_suffix(b"\r").unwrap_or(line));
            }
        }
    }
}
