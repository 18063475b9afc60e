//! A table that Python hands over: an Arrow stream, or columns of NumPy.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyString};

use dpmc::data::{Frame, FrameColumn};

use crate::columns::{Doubles, Object, Objects, column};
use crate::input;

const STREAM: &CStr = c"arrow_array_stream";

/// Rows that are as private as a file's: nothing of them can be read back.
#[pyclass(frozen, module = "dpmc._dpmc")]
pub struct Table {
    pub frame: Arc<Frame>,
}

/// A column that Python made: float64 values, or objects.
#[derive(FromPyObject)]
enum Given<'py> {
    #[pyo3(transparent)]
    Numbers(Bound<'py, PyBytes>),
    #[pyo3(transparent)]
    Objects(Bound<'py, PyList>),
}

/// A cell by its own type. Python's words about one that has none would quote it.
fn object(cell: &Bound<'_, PyAny>) -> Object {
    if cell.is_none() {
        Object::Missing
    } else if let Ok(text) = cell.cast::<PyString>() {
        text.to_cow()
            .map_or(Object::Other, |t| Object::Text(t.into_owned()))
    } else {
        cell.extract().map_or(Object::Other, Object::Number)
    }
}

#[pymethods]
impl Table {
    /// The table of an Arrow C stream's capsule.
    #[staticmethod]
    fn of_stream(py: Python<'_>, capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let pointer = capsule
            .pointer_checked(Some(STREAM))
            .map_err(|_| input(py, "data=: its __arrow_c_stream__ gives no Arrow stream"))?;
        // The words of whoever made the stream may quote a cell.
        let bad = || input(py, "data=: the Arrow stream cannot be read");
        // SAFETY: by Arrow's PyCapsule interface a capsule of this name holds a stream; it is
        // moved out, and what is left there is marked as released.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
        let reader = RecordBatchStreamReader::try_new(stream).map_err(|_| bad())?;
        let schema = reader.schema();
        let names = schema.fields().iter().map(|f| f.name().clone());
        let (names, mut parts) = (names.collect(), Vec::new());
        for batch in reader {
            let batch = batch.map_err(|_| bad())?;
            let columns = batch.columns().iter().map(|array| column(array.as_ref()));
            parts.push((batch.num_rows(), columns.collect()));
        }
        let frame = Arc::new(Frame { names, parts });
        Ok(Table { frame })
    }

    /// The table of columns: of each its name, and float64 bytes (NaN counts as missing) or
    /// objects: texts, numbers, or `None` for a missing cell.
    #[staticmethod]
    fn of_columns(py: Python<'_>, columns: Vec<(String, Given<'_>)>) -> PyResult<Self> {
        let mut names = Vec::new();
        let mut made: Vec<Option<Box<dyn FrameColumn>>> = Vec::new();
        let mut lengths = Vec::new();
        for (name, given) in columns {
            match given {
                Given::Numbers(bytes) => {
                    let numbers = bytes.as_bytes().chunks_exact(8);
                    let numbers =
                        numbers.filter_map(|b| Some(f64::from_ne_bytes(b.try_into().ok()?)));
                    let numbers: Vec<f64> = numbers.collect();
                    lengths.push(numbers.len());
                    made.push(Some(Box::new(Doubles(numbers))));
                }
                Given::Objects(cells) => {
                    let cells: Vec<Object> = cells.iter().map(|cell| object(&cell)).collect();
                    lengths.push(cells.len());
                    made.push(Some(Box::new(Objects(cells))));
                }
            }
            names.push(name);
        }
        let rows = lengths.first().copied().unwrap_or(0);
        if lengths.iter().any(|length| *length != rows) {
            return Err(input(py, "data=: its columns differ in length"));
        }
        let parts = vec![(rows, made)];
        let frame = Arc::new(Frame { names, parts });
        Ok(Table { frame })
    }
}
