//! NPY arrays: a table of two or more dimensions with columns named `x0`, `x1`, …, or a
//! one-dimensional column of labels.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use npyz::{NpyHeader, Order};

use super::feature::Cell;
use super::load::{find_columns, open};
use super::npy_elements::Elements;
use super::rows::{BadCells, Rows};
use super::{DataError, Label};

/// Bytes of rows that are read at a time.
const WAVE: usize = 1 << 23;

/// Bytes of a file in which its header must end.
const LONGEST_HEADER: u64 = 1 << 17;
/// Curly and square ones in a header: it has one pair, and lists of fields have another.
const MOST_BRACKETS: usize = 4;

fn damaged(path: &Path, what: impl std::fmt::Display) -> DataError {
    DataError::file(path, format!("is not a readable NPY file: {what}"))
}

/// The text of a header, where all of it is in `start`.
fn header_text(start: &[u8]) -> Option<&[u8]> {
    let from = if *start.get(6)? == 1 { 10 } else { 12 };
    let (field, mut length) = (start.get(8..from)?, [0; 4]);
    length[..field.len()].copy_from_slice(field);
    start
        .get(from..)?
        .get(..u32::from_le_bytes(length) as usize)
}

/// The library multiplies a header's shape without a check; a hostile one overflows. And it takes
/// three times as long for each bracket in another.
fn check_header(path: &Path) -> Result<(), DataError> {
    let mut start = Vec::new();
    open(path)?
        .take(LONGEST_HEADER)
        .read_to_end(&mut start)
        .map_err(|e| damaged(path, e))?;
    let header = header_text(&start)
        .ok_or_else(|| damaged(path, "its header is cut off, or far too long"))?;
    let nests = |b: &&u8| matches!(**b, b'{' | b'[');
    if header.iter().filter(nests).count() > MOST_BRACKETS {
        return Err(damaged(
            path,
            "its header has more brackets than an array's",
        ));
    }
    let text = String::from_utf8_lossy(header);
    let Some((_, after)) = text.split_once("shape") else {
        return Err(damaged(path, "its header names no shape"));
    };
    let inside = after.split(['(', ')']).nth(1).unwrap_or("");
    let product = inside
        .split(',')
        .filter_map(|n| n.trim().trim_end_matches('L').parse::<u64>().ok())
        // A zero does not excuse the rest: strides are products of the others.
        .try_fold(1u64, |product, n| product.checked_mul(n.max(1)));
    match product {
        Some(n) if n < 1 << 48 => Ok(()),
        _ => Err(damaged(path, "its shape is beyond any memory")),
    }
}

/// An array of one or two dimensions.
struct Array<'a> {
    path: &'a Path,
    file: File,
    /// Where its elements start, in bytes.
    start: u64,
    elements: Elements,
    rows: u64,
    width: usize,
    dimensions: usize,
    /// Column by column instead of row by row.
    fortran: bool,
}

impl<'a> Array<'a> {
    fn open(path: &'a Path) -> Result<Self, DataError> {
        check_header(path)?;
        let mut file = BufReader::new(open(path)?);
        // The library's words could quote the file.
        let header = NpyHeader::from_reader(&mut file)
            .map_err(|_| damaged(path, "its header cannot be read"))?;
        let start = file.stream_position().map_err(|e| damaged(path, e))?;
        let elements = Elements::of(&header.dtype()).ok_or_else(|| {
            let what = "elements must be bool, integers of 8 to 64 bits or floats of 16, 32 or 64 bits, of either byte order";
            damaged(path, what)
        })?;
        let (rows, width) = match header.shape() {
            [rows] => (*rows, 1),
            [_, _, _, ..] if header.order() == Order::Fortran => {
                let what = "of three dimensions and more, rows must come first; save it in C order";
                return Err(damaged(path, what));
            }
            // Rows of images are read in the order of their elements.
            [rows, sides @ ..] => match sides.iter().product() {
                width @ 1..=0x10_0000 => (*rows, width as usize),
                columns => {
                    let what = format!("has {columns} columns; 1 to 2^20 are supported");
                    return Err(damaged(path, what));
                }
            },
            [] => return Err(damaged(path, "must have a dimension")),
        };
        Ok(Array {
            path,
            file: file.into_inner(),
            start,
            elements,
            rows,
            width,
            dimensions: header.shape().len(),
            fortran: header.order() == Order::Fortran,
        })
    }

    fn check_length(&self) -> Result<(), DataError> {
        let length = self
            .file
            .metadata()
            .map_err(|e| damaged(self.path, e))?
            .len();
        let needed = self.rows * (self.width * self.elements.size) as u64;
        match length.saturating_sub(self.start).cmp(&needed) {
            Ordering::Equal => Ok(()),
            Ordering::Less => Err(damaged(self.path, "is shorter than its header says")),
            Ordering::Greater => Err(damaged(self.path, "is longer than its header says")),
        }
    }

    /// Appends `count` elements from the `first` on, in the file's order.
    fn read(&mut self, first: u64, count: usize, bytes: &mut Vec<u8>) -> Result<(), DataError> {
        let size = self.elements.size;
        let seek = SeekFrom::Start(self.start + first * size as u64);
        let before = bytes.len();
        bytes.resize(before + count * size, 0);
        self.file
            .seek(seek)
            .and_then(|_| self.file.read_exact(&mut bytes[before..]))
            .map_err(|e| damaged(self.path, e))
    }

    /// The rows from the `first` on, `count` of them, with the columns at `places`.
    fn wave(&mut self, first: u64, count: usize, places: &[usize]) -> Result<Wave, DataError> {
        let (size, mut bytes) = (self.elements.size, Vec::new());
        if self.fortran {
            for &place in places {
                self.read(place as u64 * self.rows + first, count, &mut bytes)?;
            }
            let places = (0..places.len()).map(|k| k * count * size).collect();
            return Ok(Wave {
                bytes,
                row: size,
                places,
                elements: self.elements,
            });
        }
        self.read(first * self.width as u64, count * self.width, &mut bytes)?;
        Ok(Wave {
            bytes,
            row: self.width * size,
            places: places.iter().map(|place| place * size).collect(),
            elements: self.elements,
        })
    }

    /// Rows of a wave.
    fn wave_rows(&self) -> usize {
        (WAVE / (self.width * self.elements.size)).max(1)
    }
}

/// Some rows in memory.
struct Wave {
    bytes: Vec<u8>,
    /// Bytes from a row to the next, and from a row's start to each wanted column.
    row: usize,
    places: Vec<usize>,
    elements: Elements,
}

impl Wave {
    fn cell(&self, row: usize, column: usize) -> Cell<'static> {
        let place = row * self.row + self.places[column];
        Cell::Number((self.elements.read)(
            &self.bytes[place..][..self.elements.size],
        ))
    }
}

pub(super) fn names(width: usize) -> Vec<String> {
    (0..width).map(|j| format!("x{j}")).collect()
}

pub(super) fn header(path: &Path) -> Result<Vec<String>, DataError> {
    Ok(names(Array::open(path)?.width))
}

/// The labels of a file of their own, as [`super::LabelKind::store`] takes them.
pub(super) fn labels(path: &Path, label: &Label, bad: BadCells) -> Result<Vec<f64>, DataError> {
    column(path, "labels", |cell| {
        bad.read(cell, |cell| label.stored(cell))
    })
}

/// The cells of a one-dimensional file, as `read` takes them; `what` they are.
pub(super) fn column(
    path: &Path,
    what: &str,
    read: impl Fn(Cell<'_>) -> Result<f64, String>,
) -> Result<Vec<f64>, DataError> {
    let mut array = Array::open(path)?;
    if array.dimensions != 1 {
        return Err(damaged(path, format!("{what} must have one dimension")));
    }
    array.check_length()?;
    let (mut cells, mut first) = (Vec::new(), 0);
    while first < array.rows {
        let count = array.wave_rows().min((array.rows - first) as usize);
        let wave = array.wave(first, count, &[0])?;
        for cell in (0..count).map(|i| wave.cell(i, 0)) {
            let line = cells.len() as u64 + 1;
            cells.push(read(cell).map_err(|what| DataError::line(path, line, what))?);
        }
        first += count as u64;
    }
    Ok(cells)
}

/// Number of rows.
pub(super) fn count(path: &Path) -> Result<u64, DataError> {
    Ok(Array::open(path)?.rows)
}

pub(super) fn rows(path: &Path, rows: &mut Rows<'_>) -> Result<(), DataError> {
    let mut array = Array::open(path)?;
    rows.expect(array.rows)?;
    let places = find_columns(array.path, &names(array.width), &rows.wanted)?;
    array.check_length()?;
    rows.reserve(array.rows);
    let mut first = 0;
    while first < array.rows {
        let count = array.wave_rows().min((array.rows - first) as usize);
        let wave = array.wave(first, count, &places)?;
        rows.extend_by_index(first, count, |_| Vec::new(), |i, k| wave.cell(i, k))?;
        first += count as u64;
    }
    Ok(())
}
