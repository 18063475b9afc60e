//! For the tests of bad input: a run file and tables without a fault, in every format.

use std::io::Write;

use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tempfile::TempDir;

pub use super::edit::edit;

/// A run file without a fault; cases edit it.
pub const RUN: &str = r#"[data]
name = "people"
file = "table.csv"
row_norm = 2.0
[data.label]
column = "y"
[[data.features]]
intercept = true
[[data.features]]
columns = ["a", "b"]
scale = [-1, 1]
[model]
kind = "logistic"
tempering = 1.0
prior = { kind = "normal", sd = 3.0 }
[sampler]
algorithm = "barker"
step = 0.001
[run]
chains = 1
warmup = 5
iterations = 20
engine = "cpu"
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

/// RUN over another file; an NPY table has numbered columns and no label.
pub fn run_over(file: &str) -> String {
    let model = "\"gaussian-mean\"\nbox = 3\ncovariance = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]";
    let mut run = edit(RUN, "table.csv", file);
    if file.ends_with(".npy") {
        run = edit(&run, "[data.label]\ncolumn = \"y\"\n", "");
        run = edit(&run, r#""a", "b""#, r#""x0", "x1""#);
        run = edit(&run, r#""logistic""#, model);
    }
    run
}

/// Columns a, b and y of a table of 40 rows.
fn columns() -> [Vec<f64>; 3] {
    let column = |n, by| (0..40).map(|i| f64::from(i) % n / by).collect();
    [column(7.0, 7.0), column(5.0, -5.0), column(2.0, 1.0)]
}

pub fn csv() -> String {
    let [a, b, y] = columns();
    let row = |i: usize| format!("{:.3},{:.3},{}\n", a[i], b[i], y[i]);
    (0..40).fold("a,b,y\n".into(), |text, i| text + &row(i))
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn parquet() -> Vec<u8> {
    let text = "message t { required double a; required double b; required double y; }";
    let schema = parse_message_type(text).unwrap().into();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for values in columns() {
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<DoubleType>();
        typed.write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// An NPY file of doubles whose header claims any shape.
pub fn npy(shape: &str, values: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:117}\n").bytes());
    bytes.extend([0.5f64.to_le_bytes()].repeat(values).concat());
    bytes
}

pub fn folder_with(file: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), bytes).unwrap();
    folder
}
