//! Columns of a Parquet row group, decoded some rows at a time.

use std::ops::Range;

use half::f16;
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescriptor;

use super::feature::Cell;

const NOT_UTF8: &str = "is not valid UTF-8; convert the file";

/// How a column's values are cells; `None` for a type that is none.
pub(super) fn kind(column: &ColumnDescriptor) -> Option<Kind> {
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return None;
    }
    let logical = column.logical_type_ref();
    match (column.physical_type(), column.converted_type()) {
        (Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE, _) => Some(Kind::Signed),
        (Physical::INT32 | Physical::INT64, converted) => match converted {
            ConvertedType::NONE
                if !matches!(
                    logical,
                    None | Some(LogicalType::Integer(_) | LogicalType::Unknown)
                ) =>
            {
                None
            }
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64 => Some(Kind::Signed),
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Some(Kind::Unsigned),
            _ => None,
        },
        (Physical::BYTE_ARRAY, ConvertedType::UTF8 | ConvertedType::ENUM) => Some(Kind::Text),
        (Physical::BYTE_ARRAY, _) => match logical {
            Some(LogicalType::String | LogicalType::Enum) => Some(Kind::Text),
            _ => None,
        },
        (Physical::FIXED_LEN_BYTE_ARRAY, _) => match logical {
            Some(LogicalType::Float16) => Some(Kind::Signed),
            _ => None,
        },
        (Physical::INT96, _) => None,
    }
}

/// What a column's values are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Numbers; integers have a sign.
    Signed,
    /// Integers without a sign.
    Unsigned,
    /// Texts.
    Text,
}

/// A column of one row group.
pub(super) struct Column {
    reader: ColumnReader,
    nullable: bool,
    pub values: Values,
}

/// Some rows of a column.
pub(super) struct Values {
    kind: Kind,
    /// 0 for a null, which has no value.
    levels: Vec<i16>,
    numbers: Vec<f64>,
    texts: Vec<ByteArray>,
    /// Index of each row's value, where some are null.
    places: Vec<usize>,
}

impl Column {
    pub fn new(reader: ColumnReader, kind: Kind, nullable: bool) -> Self {
        Column {
            reader,
            nullable,
            values: Values {
                kind,
                levels: Vec::new(),
                numbers: Vec::new(),
                texts: Vec::new(),
                places: Vec::new(),
            },
        }
    }

    /// Decodes the next `rows` rows; `None` where the column has fewer.
    pub fn read(&mut self, rows: usize) -> Result<Option<()>, ParquetError> {
        let unsigned = self.values.kind == Kind::Unsigned;
        let levels = self.nullable.then_some(&mut self.values.levels);
        let numbers = &mut self.values.numbers;
        let read = match &mut self.reader {
            ColumnReader::BoolColumnReader(r) => {
                read_numbers(r, rows, levels, numbers, |v| f64::from(u8::from(*v)))
            }
            ColumnReader::Int32ColumnReader(r) if unsigned => {
                read_numbers(r, rows, levels, numbers, |v| f64::from(*v as u32))
            }
            ColumnReader::Int32ColumnReader(r) => {
                read_numbers(r, rows, levels, numbers, |v| f64::from(*v))
            }
            ColumnReader::Int64ColumnReader(r) if unsigned => {
                read_numbers(r, rows, levels, numbers, |v| *v as u64 as f64)
            }
            ColumnReader::Int64ColumnReader(r) => {
                read_numbers(r, rows, levels, numbers, |v| *v as f64)
            }
            ColumnReader::FloatColumnReader(r) => {
                read_numbers(r, rows, levels, numbers, |v| f64::from(*v))
            }
            ColumnReader::DoubleColumnReader(r) => read_numbers(r, rows, levels, numbers, |v| *v),
            ColumnReader::FixedLenByteArrayColumnReader(r) => {
                read_numbers(r, rows, levels, numbers, |v| match v.data() {
                    [a, b] => f64::from(f16::from_le_bytes([*a, *b])),
                    _ => f64::NAN,
                })
            }
            ColumnReader::ByteArrayColumnReader(r) => {
                read_values(r, rows, levels, &mut self.values.texts)
            }
            ColumnReader::Int96ColumnReader(_) => return Ok(None),
        }?;
        let whole = read == rows && self.values.place(rows);
        Ok(whole.then_some(()))
    }
}

impl Values {
    /// Finds the values of `rows` rows; whether there is one for each that is no null.
    fn place(&mut self, rows: usize) -> bool {
        let values = match self.kind {
            Kind::Text => self.texts.len(),
            _ => self.numbers.len(),
        };
        self.places.clear();
        if values == rows {
            return true;
        }
        let mut next = 0;
        self.places.extend(self.levels.iter().map(|level| {
            let place = next;
            next += usize::from(*level != 0);
            place
        }));
        next == values && self.places.len() == rows
    }

    /// The numbers of some rows among those that were read last, where none is null.
    pub fn numbers(&self, rows: Range<usize>) -> Option<&[f64]> {
        let whole = self.kind != Kind::Text && self.places.is_empty();
        self.numbers.get(rows).filter(|_| whole)
    }

    /// The cell of a row among those that were read last.
    #[inline]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        let row = match self.places.get(row) {
            None => row,
            Some(_) if self.levels[row] == 0 => return Cell::Missing,
            Some(place) => *place,
        };
        match self.kind {
            Kind::Text => match std::str::from_utf8(self.texts[row].data()) {
                Ok(text) => Cell::Text(text),
                Err(_) => Cell::Bad(NOT_UTF8),
            },
            _ => Cell::Number(self.numbers[row]),
        }
    }
}

/// Decodes the next `rows` rows; how many there were.
fn read_values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    mut levels: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> Result<usize, ParquetError> {
    values.clear();
    if let Some(levels) = &mut levels {
        levels.clear();
    }
    let mut read = 0;
    while read < rows {
        let (records, ..) =
            reader.read_records(rows - read, levels.as_deref_mut(), None, values)?;
        if records == 0 {
            break;
        }
        read += records;
    }
    Ok(read)
}

fn read_numbers<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: Option<&mut Vec<i16>>,
    numbers: &mut Vec<f64>,
    number: impl Fn(&T::T) -> f64,
) -> Result<usize, ParquetError> {
    let mut values = Vec::new();
    let read = read_values(reader, rows, levels, &mut values)?;
    numbers.clear();
    numbers.extend(values.iter().map(number));
    Ok(read)
}
