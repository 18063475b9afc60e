//! Files of bytes such as MNIST's (`…-idx3-ubyte`, `….idx1-ubyte`, also `.gz`): images, a row
//! each, with columns named `x0`, `x1`, … in the order of their bytes, or a column of labels.

use std::io::{BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;

use super::feature::Cell;
use super::load::{find_columns, open};
use super::rows::{BadCells, Rows};
use super::{DataError, Label, read_npy};

/// Bytes of rows that are read at a time.
const WAVE: usize = 1 << 23;

fn damaged(path: &Path, what: &str) -> DataError {
    DataError::file(path, format!("is not a readable idx file: {what}"))
}

/// A file after its header.
struct Bytes<'a> {
    path: &'a Path,
    rest: Box<dyn Read>,
    rows: u64,
    /// Bytes of a row.
    width: usize,
    dimensions: u8,
}

impl<'a> Bytes<'a> {
    fn open(path: &'a Path) -> Result<Self, DataError> {
        let file = BufReader::new(open(path)?);
        let mut rest: Box<dyn Read> = match path.extension().is_some_and(|e| e == "gz") {
            true => Box::new(BufReader::new(GzDecoder::new(file))),
            false => Box::new(file),
        };
        let mut number = || -> Result<[u8; 4], DataError> {
            let mut bytes = [0; 4];
            let read = rest.read_exact(&mut bytes);
            read.map_err(|_| damaged(path, "its header is cut off"))?;
            Ok(bytes)
        };
        let [0, 0, 8, dimensions @ 1..=4] = number()? else {
            let what = "it must begin with 0, 0, 8 (unsigned bytes) and 1 to 4 dimensions";
            return Err(damaged(path, what));
        };
        let rows = u64::from(u32::from_be_bytes(number()?));
        let sides = (1..dimensions).map(|_| Ok(u32::from_be_bytes(number()?) as usize));
        let sides = sides.collect::<Result<Vec<usize>, DataError>>()?;
        let width = sides.iter().try_fold(1usize, |w, s| w.checked_mul(*s));
        let Some(width @ 1..=0x10_0000) = width else {
            return Err(damaged(path, "1 to 2^20 bytes a row are supported"));
        };
        Ok(Bytes {
            path,
            rest,
            rows,
            width,
            dimensions,
        })
    }

    /// Hands the rows to `take` by their first one's number, some at a time; refuses a file of
    /// another length than its header says.
    fn read(
        mut self,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let (wave, mut first) = ((WAVE / self.width).max(1), 0);
        while first < self.rows {
            let count = wave.min((self.rows - first) as usize);
            let mut bytes = vec![0; count * self.width];
            let read = self.rest.read_exact(&mut bytes);
            read.map_err(|_| damaged(self.path, "it is shorter than its header says"))?;
            take(first, &bytes)?;
            first += count as u64;
        }
        match self.rest.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(damaged(self.path, "it is longer than its header says")),
            Err(_) => Err(damaged(self.path, "it is cut off before its end")),
        }
    }
}

pub(super) fn header(path: &Path) -> Result<Vec<String>, DataError> {
    Ok(read_npy::names(Bytes::open(path)?.width))
}

/// Number of rows.
pub(super) fn count(path: &Path) -> Result<u64, DataError> {
    Ok(Bytes::open(path)?.rows)
}

/// The labels of a file of their own, as [`super::LabelKind::store`] takes them.
pub(super) fn labels(path: &Path, label: &Label, bad: BadCells) -> Result<Vec<f64>, DataError> {
    let file = Bytes::open(path)?;
    if file.dimensions != 1 {
        return Err(damaged(path, "labels must have one dimension"));
    }
    let mut cells = Vec::new();
    file.read(|_, bytes| {
        for byte in bytes {
            let cell = bad.read(Cell::Number(f64::from(*byte)), |cell| label.stored(cell));
            let line = cells.len() as u64 + 1;
            cells.push(cell.map_err(|what| DataError::line(path, line, what))?);
        }
        Ok(())
    })?;
    Ok(cells)
}

pub(super) fn rows(path: &Path, rows: &mut Rows<'_>) -> Result<(), DataError> {
    let file = Bytes::open(path)?;
    rows.expect(file.rows)?;
    let width = file.width;
    let places = find_columns(path, &read_npy::names(width), &rows.wanted)?;
    rows.reserve(file.rows);
    file.read(|first, bytes| {
        rows.extend_by_index(
            first,
            bytes.len() / width,
            |_| Vec::new(),
            |i, k| Cell::Number(f64::from(bytes[i * width + places[k]])),
        )
    })
}
