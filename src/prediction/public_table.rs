//! A public table as it is written, cell by cell: for answers that change a column (effects), or
//! add one (synthetic labels).

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::PredictionError;
use crate::data::{Cell, Frame, FrameColumn, TextFormat, is_missing};

/// A public cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text, which may be a number's.
    Text(String),
    /// A number.
    Number(f64),
    /// Nothing.
    Missing,
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Value::Text(text) => Cell::Text(text),
            Value::Number(v) => Cell::Number(*v),
            Value::Missing => Cell::Missing,
        }
    }

    /// The number that it is; `None` for what is missing, an error for another text.
    pub(super) fn number(&self) -> Result<Option<f64>, ()> {
        match self {
            Value::Number(v) if v.is_nan() => Ok(None),
            Value::Number(v) => Ok(Some(*v)),
            Value::Missing => Ok(None),
            Value::Text(text) if is_missing(Cell::Text(text)) => Ok(None),
            Value::Text(text) => text.trim().parse().map(Some).map_err(|_| ()),
        }
    }

    /// As a cell of a CSV file.
    pub(super) fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Number(v) => v.to_string(),
            Value::Missing => String::new(),
        }
    }
}

/// A column that a frame lends.
struct Shared(Arc<Vec<Value>>);

impl FrameColumn for Shared {
    fn cell(&self, row: usize) -> Cell<'_> {
        self.0.get(row).map_or(Cell::Missing, Value::cell)
    }
}

/// A table whose owner declares it public.
#[derive(Clone, Debug, Default)]
pub struct PublicTable {
    /// Names of columns.
    pub names: Vec<String>,
    /// Columns, all of the same length.
    pub columns: Vec<Arc<Vec<Value>>>,
}

impl PublicTable {
    /// Reads a CSV file (`.csv`, `.tsv`, `.txt`, each also with `.gz`) or a Parquet file. Whatever
    /// its declarations refuse has been refused before: this one only reads.
    ///
    /// # Errors
    /// [`PredictionError`] where it cannot be read, or is of another kind.
    pub fn read(path: &Path, text: TextFormat) -> Result<Self, PredictionError> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let fail = |what: String| {
            PredictionError::Input(format!("{}: cannot be read: {what}", path.display()))
        };
        let stem = name.strip_suffix(".gz").unwrap_or(&name);
        let is_text = [".csv", ".tsv", ".txt"].iter().any(|e| stem.ends_with(e));
        if is_text {
            let file = std::fs::File::open(path).map_err(|e| fail(e.to_string()))?;
            let input: Box<dyn Read> = match name.ends_with(".gz") {
                true => Box::new(flate2::read::MultiGzDecoder::new(std::io::BufReader::new(
                    file,
                ))),
                false => Box::new(file),
            };
            let tab = if stem.ends_with(".tsv") { b'\t' } else { b',' };
            let delimiter = text.delimiter.unwrap_or(tab);
            return Self::of_text(input, delimiter).map_err(|e| fail(e.to_string()));
        }
        if name.ends_with(".parquet") {
            let read = crate::data::without_panics(|| Self::of_parquet(path));
            let damaged = || Err("its pages contradict each other (damaged?)".into());
            return read.unwrap_or_else(damaged).map_err(fail);
        }
        Err(PredictionError::Input(format!(
            "{}: give a .csv, .csv.gz, .tsv or .parquet file here",
            path.display()
        )))
    }

    fn of_text(input: impl Read, delimiter: u8) -> Result<Self, csv::Error> {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(input);
        let plain = |name: &str| name.trim_start_matches('\u{feff}').trim().to_string();
        let names: Vec<String> = reader.headers()?.iter().map(plain).collect();
        let mut columns = vec![Vec::new(); names.len()];
        for record in reader.records() {
            let record = record?;
            for (k, column) in columns.iter_mut().enumerate() {
                let cell = record.get(k).unwrap_or_default();
                column.push(Value::Text(cell.trim().to_string()));
            }
        }
        let columns = columns.into_iter().map(Arc::new).collect();
        Ok(PublicTable { names, columns })
    }

    fn of_parquet(path: &Path) -> Result<Self, String> {
        let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
        let reader = SerializedFileReader::new(file).map_err(|e| e.to_string())?;
        let fields = reader.metadata().file_metadata().schema().get_fields();
        let names: Vec<String> = fields.iter().map(|f| f.name().to_string()).collect();
        let mut columns = vec![Vec::new(); names.len()];
        for row in reader.get_row_iter(None).map_err(|e| e.to_string())? {
            let row = row.map_err(|e| e.to_string())?;
            let cells = row.get_column_iter();
            for ((_, field), column) in cells.zip(&mut columns) {
                column.push(value(field));
            }
        }
        let columns = columns.into_iter().map(Arc::new).collect();
        Ok(PublicTable { names, columns })
    }

    /// The cells of a table in memory; a column of a type without cells is left out.
    pub fn of_frame(frame: &Frame) -> Self {
        let mut table = PublicTable::default();
        for (k, name) in frame.names.iter().enumerate() {
            let mut column = Vec::new();
            for (rows, columns) in &frame.parts {
                if let Some(Some(cells)) = columns.get(k) {
                    column.extend((0..*rows).map(|i| owned(cells.cell(i))));
                }
            }
            if column.len() == frame.parts.iter().map(|(rows, _)| rows).sum::<usize>() {
                table.names.push(name.clone());
                table.columns.push(Arc::new(column));
            }
        }
        table
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Arc<Vec<Value>>> {
        let k = self.names.iter().position(|n| n == name)?;
        self.columns.get(k)
    }

    /// The same with one column changed, or with a new one.
    #[must_use]
    pub fn with(&self, name: &str, column: Vec<Value>) -> Self {
        let mut table = self.clone();
        match table.names.iter().position(|n| n == name) {
            Some(k) => table.columns[k] = Arc::new(column),
            None => {
                table.names.push(name.into());
                table.columns.push(Arc::new(column));
            }
        }
        table
    }

    /// All rows, and then all rows again.
    pub(super) fn twice(&self) -> Self {
        let again = self.columns.iter().map(|column| {
            let cells = column.iter().chain(column.iter());
            Arc::new(cells.cloned().collect())
        });
        PublicTable {
            names: self.names.clone(),
            columns: again.collect(),
        }
    }

    /// As a table in memory, which declarations read.
    pub fn frame(&self) -> Frame {
        let lent = self.columns.iter().map(|column| {
            let column: Box<dyn FrameColumn> = Box::new(Shared(column.clone()));
            Some(column)
        });
        Frame {
            names: self.names.clone(),
            parts: vec![(self.rows(), lent.collect())],
        }
    }

    /// As CSV with a header.
    pub fn csv(&self) -> String {
        let mut out = csv::Writer::from_writer(Vec::new());
        // A Vec takes whatever is written.
        let _ = out.write_record(&self.names);
        for i in 0..self.rows() {
            let cells = self.columns.iter().map(|column| column[i].text());
            let _ = out.write_record(cells);
        }
        String::from_utf8_lossy(&out.into_inner().unwrap_or_default()).into_owned()
    }
}

fn owned(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Text(text) => Value::Text(text.trim().into()),
        Cell::Number(v) => Value::Number(v),
        Cell::Missing | Cell::Bad(_) => Value::Missing,
    }
}

fn value(field: &Field) -> Value {
    let number = |v: f64| Value::Number(v);
    match field {
        Field::Bool(v) => number(f64::from(u8::from(*v))),
        Field::Byte(v) => number(f64::from(*v)),
        Field::Short(v) => number(f64::from(*v)),
        Field::Int(v) => number(f64::from(*v)),
        Field::Long(v) => number(*v as f64),
        Field::UByte(v) => number(f64::from(*v)),
        Field::UShort(v) => number(f64::from(*v)),
        Field::UInt(v) => number(f64::from(*v)),
        Field::ULong(v) => number(*v as f64),
        Field::Float16(v) => number(f64::from(*v)),
        Field::Float(v) => number(f64::from(*v)),
        Field::Double(v) => number(*v),
        Field::Str(text) => Value::Text(text.clone()),
        _ => Value::Missing,
    }
}
