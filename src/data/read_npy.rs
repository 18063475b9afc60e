//! NPY arrays: a two-dimensional table with columns named `x0`, `x1`, …, or a
//! one-dimensional column of labels.

use std::io::{BufReader, Read};
use std::path::Path;

use npyz::{NpyFile, Order, TypeChar};

use super::feature::Cell;
use super::load::{Position, RowSink, Wanted, find_columns, open};
use super::{DataError, Label};

fn damaged(path: &Path, what: impl std::fmt::Display) -> DataError {
    DataError::File {
        path: path.into(),
        what: format!("is not a readable NPY file: {what}"),
    }
}

/// The library multiplies a header's shape without a check; a hostile one overflows.
fn check_shape(path: &Path) -> Result<(), DataError> {
    let mut start = Vec::new();
    open(path)?
        .take(1 << 16)
        .read_to_end(&mut start)
        .map_err(|e| damaged(path, e))?;
    let text = String::from_utf8_lossy(&start);
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

fn array(path: &Path) -> Result<NpyFile<BufReader<std::fs::File>>, DataError> {
    check_shape(path)?;
    NpyFile::new(BufReader::new(open(path)?)).map_err(|e| damaged(path, e))
}

/// Calls `each(index, value)` for every element in file order.
fn values(
    path: &Path,
    npy: NpyFile<BufReader<std::fs::File>>,
    mut each: impl FnMut(u64, f64) -> Result<(), DataError>,
) -> Result<(), DataError> {
    fn walk<T: npyz::Deserialize, R: Read>(
        path: &Path,
        npy: NpyFile<R>,
        to: impl Fn(T) -> f64,
        each: &mut dyn FnMut(u64, f64) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let data = npy.data::<T>().map_err(|e| damaged(path, e))?;
        for (i, v) in data.enumerate() {
            // The library's message may quote the element.
            let v = v.map_err(|_| damaged(path, format!("element {} cannot be read", i + 1)))?;
            each(i as u64, to(v))?;
        }
        Ok(())
    }
    let npyz::DType::Plain(kind) = npy.dtype() else {
        return Err(damaged(path, "structured arrays are not supported"));
    };
    let each = &mut each;
    match (kind.type_char(), kind.size_field()) {
        (TypeChar::Float, 4) => walk::<f32, _>(path, npy, f64::from, each),
        (TypeChar::Float, 8) => walk::<f64, _>(path, npy, |v| v, each),
        (TypeChar::Uint, 1) => walk::<u8, _>(path, npy, f64::from, each),
        (TypeChar::Int, 1) => walk::<i8, _>(path, npy, f64::from, each),
        (TypeChar::Int, 4) => walk::<i32, _>(path, npy, f64::from, each),
        (TypeChar::Int, 8) => walk::<i64, _>(path, npy, |v| v as f64, each),
        (TypeChar::Bool, _) => walk::<bool, _>(path, npy, |v| f64::from(u8::from(v)), each),
        _ => Err(damaged(
            path,
            "elements must be float32, float64, int8, int32, int64, uint8 or bool",
        )),
    }
}

fn shape(path: &Path, npy: &NpyFile<impl Read>) -> Result<(u64, u64), DataError> {
    if npy.order() == Order::Fortran {
        return Err(damaged(path, "is in Fortran order; save it in C order"));
    }
    match npy.shape() {
        [_, columns] if *columns == 0 || *columns > 1 << 20 => Err(damaged(
            path,
            format!("has {columns} columns; 1 to 2^20 are supported"),
        )),
        [rows] => Ok((*rows, 1)),
        [rows, columns] => Ok((*rows, *columns)),
        _ => Err(damaged(path, "must have one or two dimensions")),
    }
}

pub(super) fn header(path: &Path) -> Result<Vec<String>, DataError> {
    let (_, columns) = shape(path, &array(path)?)?;
    Ok((0..columns).map(|j| format!("x{j}")).collect())
}

/// The labels of a file of their own, as [`super::LabelKind::store`] takes them.
pub(super) fn labels(path: &Path, label: &Label) -> Result<Vec<f64>, DataError> {
    column(path, "labels", |cell| {
        let value = label.read(cell);
        value.and_then(|y| label.kind().store(y).map(f64::from))
    })
}

/// The cells of a one-dimensional file, as `read` takes them; `what` they are.
pub(super) fn column(
    path: &Path,
    what: &str,
    read: impl Fn(Cell<'_>) -> Result<f64, String>,
) -> Result<Vec<f64>, DataError> {
    let npy = array(path)?;
    if npy.shape().len() != 1 {
        return Err(damaged(path, format!("{what} must have one dimension")));
    }
    let mut cells = Vec::new();
    values(path, npy, |i, v| {
        cells.push(read(Cell::Number(v)).map_err(|what| DataError::Cell {
            path: path.into(),
            line: i + 1,
            column: None,
            what,
        })?);
        Ok(())
    })?;
    Ok(cells)
}

pub(super) fn rows(
    path: &Path,
    wanted: &Wanted,
    fits: &dyn Fn(u64) -> Result<(), DataError>,
    sink: &mut RowSink<'_>,
) -> Result<(), DataError> {
    let npy = array(path)?;
    let (count, width) = shape(path, &npy)?;
    fits(count)?;
    let header: Vec<String> = (0..width).map(|j| format!("x{j}")).collect();
    let columns = find_columns(path, &header, wanted)?;
    let width = header.len();
    let mut row = vec![0.0; width];
    let mut seen = 0u64;
    values(path, npy, |i, v| {
        let j = i as usize % width;
        row[j] = v;
        if j + 1 < width {
            return Ok(());
        }
        seen += 1;
        let cells: Vec<Cell<'_>> = columns.iter().map(|&c| Cell::Number(row[c])).collect();
        sink(&Position { path, line: seen }, &cells)
    })?;
    if seen != count {
        return Err(damaged(path, "is shorter than its header says"));
    }
    Ok(())
}
