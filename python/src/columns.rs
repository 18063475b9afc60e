//! Arrow arrays and lists as columns of a table, without a copy where there is an array.

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, BooleanArray, GenericStringArray, OffsetSizeTrait, PrimitiveArray, StringViewArray,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use dpmc::data::{Cell, FrameColumn};

/// The column of an array; `None` for a type that holds no cells, and for an array that is not
/// what its type says (text that is not UTF-8, codes without a level).
pub fn column(array: &dyn Array) -> Option<Box<dyn FrameColumn>> {
    let numbers = match array.data_type() {
        DataType::Int8 => numbers::<Int8Type>(array, f64::from),
        DataType::Int16 => numbers::<Int16Type>(array, f64::from),
        DataType::Int32 => numbers::<Int32Type>(array, f64::from),
        DataType::Int64 => numbers::<Int64Type>(array, |v| v as f64),
        DataType::UInt8 => numbers::<UInt8Type>(array, f64::from),
        DataType::UInt16 => numbers::<UInt16Type>(array, f64::from),
        DataType::UInt32 => numbers::<UInt32Type>(array, f64::from),
        DataType::UInt64 => numbers::<UInt64Type>(array, |v| v as f64),
        DataType::Float16 => numbers::<Float16Type>(array, |v| v.to_f64()),
        DataType::Float32 => numbers::<Float32Type>(array, f64::from),
        DataType::Float64 => numbers::<Float64Type>(array, |v| v),
        DataType::Boolean => return Some(Box::new(Booleans(array.as_boolean().clone()))),
        DataType::Null => return Some(Box::new(Nothing)),
        _ => return other(array),
    };
    Some(numbers)
}

/// Texts and codes of texts, whose bytes are checked: the program that made them may not have.
fn other(array: &dyn Array) -> Option<Box<dyn FrameColumn>> {
    array.to_data().validate_full().ok()?;
    Some(match array.data_type() {
        DataType::Utf8 => Box::new(Texts(array.as_string::<i32>().clone())),
        DataType::LargeUtf8 => Box::new(Texts(array.as_string::<i64>().clone())),
        DataType::Utf8View => Box::new(TextViews(array.as_string_view().clone())),
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => codes::<Int8Type>(array)?,
            DataType::Int16 => codes::<Int16Type>(array)?,
            DataType::Int32 => codes::<Int32Type>(array)?,
            DataType::Int64 => codes::<Int64Type>(array)?,
            DataType::UInt8 => codes::<UInt8Type>(array)?,
            DataType::UInt16 => codes::<UInt16Type>(array)?,
            DataType::UInt32 => codes::<UInt32Type>(array)?,
            DataType::UInt64 => codes::<UInt64Type>(array)?,
            _ => return None,
        },
        _ => return None,
    })
}

struct Numbers<T: ArrowPrimitiveType, F>(PrimitiveArray<T>, F);

fn numbers<T: ArrowPrimitiveType>(
    array: &dyn Array,
    number: impl Fn(T::Native) -> f64 + Send + Sync + 'static,
) -> Box<dyn FrameColumn> {
    Box::new(Numbers(array.as_primitive::<T>().clone(), number))
}

impl<T: ArrowPrimitiveType, F> FrameColumn for Numbers<T, F>
where
    F: Fn(T::Native) -> f64 + Send + Sync,
{
    fn cell(&self, row: usize) -> Cell<'_> {
        match self.0.is_null(row) {
            true => Cell::Missing,
            false => Cell::Number(self.1(self.0.value(row))),
        }
    }

    fn numbers(&self, rows: Range<usize>) -> Option<Cow<'_, [f64]>> {
        let values = self.0.values();
        let nulls = self.0.nulls().filter(|nulls| nulls.null_count() > 0);
        if nulls.is_some_and(|nulls| nulls.slice(rows.start, rows.len()).null_count() > 0) {
            return None;
        }
        if T::DATA_TYPE == DataType::Float64 {
            // As they are wanted: not copied.
            return values.inner().typed_data().get(rows).map(Cow::Borrowed);
        }
        let values = values.get(rows)?.iter();
        Some(Cow::Owned(values.map(|v| self.1(*v)).collect()))
    }
}

struct Booleans(BooleanArray);

impl FrameColumn for Booleans {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self.0.is_null(row) {
            true => Cell::Missing,
            false => Cell::Number(f64::from(u8::from(self.0.value(row)))),
        }
    }
}

/// A column of nulls.
struct Nothing;

impl FrameColumn for Nothing {
    fn cell(&self, _: usize) -> Cell<'_> {
        Cell::Missing
    }
}

struct Texts<O: OffsetSizeTrait>(GenericStringArray<O>);

impl<O: OffsetSizeTrait> FrameColumn for Texts<O> {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self.0.is_null(row) {
            true => Cell::Missing,
            false => Cell::Text(self.0.value(row)),
        }
    }
}

struct TextViews(StringViewArray);

impl FrameColumn for TextViews {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self.0.is_null(row) {
            true => Cell::Missing,
            false => Cell::Text(self.0.value(row)),
        }
    }
}

/// Codes of levels, such as pandas' and polars' categories.
struct Codes<K: ArrowPrimitiveType> {
    codes: PrimitiveArray<K>,
    levels: Box<dyn FrameColumn>,
}

fn codes<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Option<Box<dyn FrameColumn>> {
    let array = array.as_dictionary::<K>();
    Some(Box::new(Codes {
        codes: array.keys().clone(),
        levels: column(array.values().as_ref())?,
    }))
}

impl<K: ArrowDictionaryKeyType> FrameColumn for Codes<K> {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self.codes.is_null(row) {
            true => Cell::Missing,
            false => self.levels.cell(self.codes.value(row).as_usize()),
        }
    }
}

/// Numbers of a NumPy array, copied.
pub struct Doubles(pub Vec<f64>);

impl FrameColumn for Doubles {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self.0[row] {
            v if v.is_nan() => Cell::Missing,
            v => Cell::Number(v),
        }
    }
}

/// A cell of a list.
pub enum Object {
    Text(String),
    Number(f64),
    Missing,
    /// Of no type that cells have.
    Other,
}

/// Cells of a list, copied: each is of a type of its own, so that none decides about another.
pub struct Objects(pub Vec<Object>);

impl FrameColumn for Objects {
    fn cell(&self, row: usize) -> Cell<'_> {
        match &self.0[row] {
            Object::Text(text) => Cell::Text(text),
            Object::Number(v) if v.is_nan() => Cell::Missing,
            Object::Number(v) => Cell::Number(*v),
            Object::Missing => Cell::Missing,
            Object::Other => Cell::Bad("is neither boolean, integer, float nor text; convert it"),
        }
    }
}
