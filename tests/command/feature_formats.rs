//! The promise: CSV, gzip, Parquet and NPY tables give the same transformed columns, curves and
//! products.

use std::path::Path;

use crate::common::tables::{csv, edit, folder_with, gzip, parquet};
use dpmc::config::Plan;
use dpmc::engine::EngineChoice;
use dpmc::privacy::Curator;
use half::f16;
use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Over crate::common::tables::csv: a in [0, 1), b in (-1, 0], a label y of 0 and 1.
const NUMBERS: &str = r#"[data]
file = "t.csv"
[data.label]
column = "y"
clamp = [0, 1]
[[data.features]]
column = "a"
scale = [0, 1]
transform = "log1p"
[[data.features]]
column = "b"
scale = [-1, 0]
polynomial = 2
[[data.interactions]]
features = ["a", "b"]
[model]
kind = "linear"
variance = 0.5
box = 2.0
[sampler]
algorithm = "mh"
[privacy]
not_private = true
"#;

/// The log ratio of all rows from θ = 0 to θ = ½ in every coordinate.
fn total(folder: &Path, run: &str) -> f64 {
    let plan = Plan::parse(&folder.join("run.toml"), run.into()).unwrap();
    let data = plan.load_data().unwrap();
    let names = ["log1p(a)", "b", "b^2", "log1p(a):b", "log1p(a):b^2"];
    let names = names.map(|n| match run.contains("x0") {
        true => n.replace('a', "x0").replace('b', "x1"),
        false => n.to_string(),
    });
    assert_eq!(data.features(), names);
    assert_eq!(data.row_norm(), 5f64.sqrt());
    let model = plan.model(&data).unwrap();
    let mut open = Curator::not_private(data, model, EngineChoice::Cpu, 1).unwrap();
    let sums = open.exact_log_ratios(&[&[0.0; 5]], &[&[0.5; 5]], &[64.0]);
    sums.unwrap()[0].0
}

#[test]
fn every_format_gives_the_same_columns() {
    let rows = || (0..40).map(|i| (f64::from(i % 7) / 7.0, -f64::from(i % 5) / 5.0, i % 2));
    // −(y − η)² + y² for s² = ½.
    let want: f64 = rows()
        .map(|(a, b, y)| {
            let (u, v) = (2.0 * (1.0 + a).log2() - 1.0, 2.0 * b + 1.0);
            let curve = v + 0.5 * (3.0 * v * v - 1.0);
            let eta = 0.5 * (u + curve + u * curve);
            2.0 * eta * (f64::from(y) - 0.5 * eta)
        })
        .sum();
    let folder = folder_with("t.csv", csv().as_bytes());
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("t.csv.gz"), gzip(csv().as_bytes())).unwrap();
    std::fs::write(place("t.parquet"), parquet()).unwrap();
    // An NPY table has numbered columns, and its labels in a file of their own.
    let npy = |name: &str, shape: &str, values: Vec<f64>| {
        let mut bytes = crate::common::tables::npy(shape, 0);
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        std::fs::write(place(name), bytes).unwrap();
    };
    npy(
        "t.npy",
        "(40, 2)",
        rows().flat_map(|(a, b, _)| [a, b]).collect(),
    );
    npy(
        "y.npy",
        "(40,)",
        rows().map(|(.., y)| f64::from(y)).collect(),
    );
    for (file, tolerance) in [
        // Cells of the text are rounded to three digits.
        ("t.csv", 0.1),
        ("t.csv.gz", 0.1),
        ("t.parquet", 1e-3),
        ("t.npy", 1e-3),
    ] {
        let mut run = edit(NUMBERS, "t.csv", file);
        if file == "t.npy" {
            run = edit(&run, "\"t.npy\"", "\"t.npy\"\nlabel_file = \"y.npy\"");
            run = edit(&run, "column = \"y\"\n", "");
            run = edit(&edit(&run, "\"a\"", "\"x0\""), "\"b\"", "\"x1\"");
        }
        let found = total(folder.path(), &run);
        assert!(
            (found - want).abs() < tolerance,
            "{file}: {found} for {want}"
        );
    }
}

/// The log ratio of all rows from θ = 0 to distinct coordinates; rows, labels and their order
/// show in it.
fn fingerprint(folder: &Path, run: &str) -> (usize, f64) {
    let plan = Plan::parse(&folder.join("run.toml"), run.into()).unwrap();
    let data = plan.load_data().unwrap();
    let (rows, width) = (data.rows(), data.features().len());
    let model = plan.model(&data).unwrap();
    let mut open = Curator::not_private(data, model, EngineChoice::Cpu, 1).unwrap();
    let theta: Vec<f64> = (0..width).map(|j| 0.3 + 0.1 * j as f64).collect();
    let sums = open.exact_log_ratios(&[&vec![0.0; width]], &[&theta], &[64.0]);
    (rows, sums.unwrap()[0].0)
}

/// Numbers of every type, a text and a truth value; some cells are missing.
const KINDS: &str = r#"[data]
file = "k.csv"
[data.label]
column = "y"
positive = ["1"]
[[data.features]]
columns = ["i", "l", "u", "f", "h", "b"]
scale = [0, 8]
missing = 4
[[data.features]]
column = "s"
one_hot = ["x", "y y", ""]
strict = true
[model]
kind = "logistic"
[sampler]
algorithm = "mh"
[privacy]
not_private = true
"#;

const ROWS: usize = 37;

/// The number in row `i` of column `j`; none where it is missing.
fn number(i: usize, j: usize) -> Option<f64> {
    (!(i + j).is_multiple_of(5)).then(|| (i * (j + 3) % 8) as f64)
}

fn text(i: usize) -> Option<&'static str> {
    [Some("x"), Some("y y"), None][i % 3]
}

fn kinds_csv(delimiter: &str, break_in_cells: bool) -> String {
    let mut lines = vec![["i", "l", "u", "f", "h", "b", "s", "note", "y"].map(String::from)];
    for i in 0..ROWS {
        let mut cells: [String; 9] = Default::default();
        for (j, cell) in cells.iter_mut().enumerate().take(5) {
            *cell = number(i, j).map_or(String::new(), |v| v.to_string());
        }
        cells[5] = (i % 2).to_string();
        cells[6] = text(i).map_or(String::new(), |t| format!("\"{t}\""));
        let end = if break_in_cells { "\r\n" } else { " " };
        cells[7] = format!("\"a{delimiter}\"\"b\"\"{end}c\"");
        cells[8] = (i / 2 % 2).to_string();
        lines.push(cells);
    }
    let lines: Vec<String> = lines.iter().map(|l| l.join(delimiter)).collect();
    lines.join("\n") + "\n"
}

fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, cells: &[Option<T::T>]) {
    let levels: Vec<i16> = cells.iter().map(|c| i16::from(c.is_some())).collect();
    let values: Vec<T::T> = cells.iter().flatten().cloned().collect();
    let mut column = group.next_column().unwrap().unwrap();
    let typed = column.typed::<T>();
    typed.write_batch(&values, Some(&levels), None).unwrap();
    column.close().unwrap();
}

fn kinds_parquet(compression: Compression, dictionary: bool, group_rows: usize) -> Vec<u8> {
    let schema = "message t { optional int32 i; optional int64 l (UINT_64); \
        optional int32 u (UINT_8); optional float f; \
        optional fixed_len_byte_array(2) h (FLOAT16); optional boolean b; \
        optional binary s (UTF8); optional group nested { optional double z; } \
        optional double y; }";
    let schema = parse_message_type(schema).unwrap().into();
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(dictionary);
    let properties = properties.build().into();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let all: Vec<usize> = (0..ROWS).collect();
    for rows in all.chunks(group_rows) {
        let numbers = |j: usize| rows.iter().map(move |&i| number(i, j));
        let mut group = writer.next_row_group().unwrap();
        let whole = |j| -> Vec<_> { numbers(j).map(|v| v.map(|v| v as i32)).collect() };
        column::<Int32Type>(&mut group, &whole(0));
        let long: Vec<_> = numbers(1).map(|v| v.map(|v| v as i64)).collect();
        column::<Int64Type>(&mut group, &long);
        column::<Int32Type>(&mut group, &whole(2));
        let float: Vec<_> = numbers(3).map(|v| v.map(|v| v as f32)).collect();
        column::<FloatType>(&mut group, &float);
        let half = |v: f64| {
            let bytes = f16::from_f64(v).to_le_bytes().to_vec();
            FixedLenByteArray::from(ByteArray::from(bytes))
        };
        let halves: Vec<_> = numbers(4).map(|v| v.map(half)).collect();
        column::<FixedLenByteArrayType>(&mut group, &halves);
        let truth: Vec<_> = rows.iter().map(|i| Some(i % 2 == 1)).collect();
        column::<BoolType>(&mut group, &truth);
        let texts: Vec<_> = rows.iter().map(|&i| text(i).map(ByteArray::from)).collect();
        column::<ByteArrayType>(&mut group, &texts);
        column::<DoubleType>(&mut group, &vec![None; rows.len()]);
        let labels: Vec<_> = rows.iter().map(|i| Some((i / 2 % 2) as f64)).collect();
        column::<DoubleType>(&mut group, &labels);
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// CSV with any delimiter, and Parquet of every codec, with and without dictionaries, in row
/// groups of odd sizes: one table.
#[test]
fn delimiters_and_parquet_codecs_give_one_table() {
    let folder = folder_with("k.csv", kinds_csv(",", false).as_bytes());
    let place = |name: &str| folder.path().join(name);
    let want = fingerprint(folder.path(), KINDS);
    assert_eq!(want.0, ROWS);
    for (delimiter, key) in [
        (";", ";"),
        ("\t", "\\t"),
        ("|", "|"),
        (" ", " "),
        ("\0", "\\u0000"),
    ] {
        // A blank text cell at the end of a line needs its quotes where blanks part cells.
        std::fs::write(place("d.csv"), kinds_csv(delimiter, false)).unwrap();
        let run = edit(
            KINDS,
            "\"k.csv\"",
            &format!("\"d.csv\"\ndelimiter = \"{key}\""),
        );
        assert_eq!(fingerprint(folder.path(), &run), want, "{key}");
    }
    std::fs::write(place("q.csv"), kinds_csv(",", true)).unwrap();
    let run = edit(KINDS, "\"k.csv\"", "\"q.csv\"\nquoted_newlines = true");
    assert_eq!(fingerprint(folder.path(), &run), want);
    let run = edit(KINDS, "k.csv", "k.parquet");
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        for (dictionary, rows) in [(true, 100), (false, 100), (true, 10), (false, 7)] {
            std::fs::write(
                place("k.parquet"),
                kinds_parquet(compression, dictionary, rows),
            )
            .unwrap();
            assert_eq!(
                fingerprint(folder.path(), &run),
                want,
                "{compression:?} {rows}"
            );
        }
    }
}

/// Booleans of Parquet are 0 and 1, and what they are called.
#[test]
fn booleans_are_matched_by_their_names() {
    let plain = kinds_parquet(Compression::UNCOMPRESSED, false, 100);
    let folder = folder_with("k.parquet", &plain);
    let run = edit(KINDS, "k.csv", "k.parquet");
    let run = edit(&run, "\"h\", \"b\"]", "\"h\"]");
    let with = |levels: &str| {
        let column = format!("[[data.features]]\ncolumn = \"b\"\none_hot = {levels}\n[model]");
        fingerprint(folder.path(), &edit(&run, "[model]", &column))
    };
    let want = with("[\"0\", \"1\"]");
    assert_eq!(with("[\"false\", \"true\"]"), want);
    assert_eq!(with("[\"FALSE\", \"True\"]"), want);
    assert_ne!(with("[\"true\", \"false\"]"), want);
}

/// No library here writes LZO: the codec of a column is changed in the footer of a plain file,
/// which is Thrift's compact form (field 3, one path `i`; field 4, the codec: 0 is plain, 3 is
/// LZO).
#[test]
fn columns_compressed_by_lzo_are_refused_by_name() {
    let mut bytes = kinds_parquet(Compression::UNCOMPRESSED, false, 100);
    let plain = *b"\x19\x18\x01i\x15\x00\x16";
    let at: Vec<usize> = (0..bytes.len() - plain.len())
        .filter(|at| bytes[*at..].starts_with(&plain))
        .collect();
    assert_eq!(at.len(), 1, "the column's metadata is found");
    bytes[at[0] + 5] = 2 * 3;
    let folder = folder_with("k.parquet", &bytes);
    let run = edit(KINDS, "k.csv", "k.parquet");
    let plan = Plan::parse(&folder.path().join("run.toml"), run).unwrap();
    let Err(error) = plan.load_data() else {
        panic!("LZO was read");
    };
    let said = error.to_string();
    for word in ["k.parquet", "column 'i'", "LZO", "Zstandard"] {
        assert!(said.contains(word), "no '{word}': {said}");
    }
}

const ARRAY: &str = r#"[data]
file = "n.npy"
label_file = "y.npy"
[[data.features]]
columns = ["x0", "x2"]
scale = [0, 8]
[model]
kind = "logistic"
[sampler]
algorithm = "mh"
[privacy]
not_private = true
"#;

/// Every type of number, either byte order, row by row or column by column.
#[test]
fn npy_arrays_of_every_type_and_order_give_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let labels = |i: usize| u8::from(i % 3 == 1);
    let file = |descr: &str, fortran: bool, shape: &str, values: Vec<u8>| {
        let fortran = if fortran { "True" } else { "False" };
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:117}\n").bytes());
        bytes.extend(values);
        bytes
    };
    // 0 or 1, which every type holds; whole numbers where it can.
    let element = |descr: &str, v: u8| -> Vec<u8> {
        let little = match &descr[1..] {
            "b1" => vec![u8::from(v > 3)],
            "i1" | "u1" => vec![v],
            "i2" | "u2" => u16::from(v).to_le_bytes().to_vec(),
            "i4" | "u4" => u32::from(v).to_le_bytes().to_vec(),
            "i8" | "u8" => u64::from(v).to_le_bytes().to_vec(),
            "f2" => f16::from_f64(v.into()).to_le_bytes().to_vec(),
            "f4" => f32::from(v).to_le_bytes().to_vec(),
            _ => f64::from(v).to_le_bytes().to_vec(),
        };
        match descr.starts_with('>') {
            true => little.into_iter().rev().collect(),
            false => little,
        }
    };
    let value = |i: usize, j: usize| ((i * 5 + j * 3) % 8) as u8;
    let mut found = std::collections::BTreeMap::new();
    for kind in [
        "|b1", "|i1", "|u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8",
    ] {
        let orders = if kind.starts_with('|') {
            vec![""]
        } else {
            vec!["<", ">"]
        };
        for (order, fortran) in orders.iter().flat_map(|o| [(o, false), (o, true)]) {
            let descr = format!("{order}{kind}");
            let label: Vec<u8> = (0..50)
                .flat_map(|i| element(&descr, labels(i) * if kind == "|b1" { 7 } else { 1 }))
                .collect();
            std::fs::write(place("y.npy"), file(&descr, fortran, "(50,)", label)).unwrap();
            let cells: Vec<(usize, usize)> = match fortran {
                false => (0..50).flat_map(|i| (0..3).map(move |j| (i, j))).collect(),
                true => (0..3).flat_map(|j| (0..50).map(move |i| (i, j))).collect(),
            };
            let values = cells
                .iter()
                .flat_map(|&(i, j)| element(&descr, value(i, j)))
                .collect();
            std::fs::write(place("n.npy"), file(&descr, fortran, "(50, 3)", values)).unwrap();
            found.insert(
                format!("{descr} {fortran}"),
                fingerprint(folder.path(), ARRAY),
            );
        }
    }
    let truth = found["|b1 false"];
    let number = found["<f8 false"];
    assert_ne!(truth, number);
    for (name, print) in &found {
        assert_eq!(
            *print,
            if name.contains("b1") { truth } else { number },
            "{name}"
        );
    }
    // A byte order read wrongly, or a row for a column, would give another table.
    let odd: Vec<u8> = (0..150)
        .flat_map(|k| element("<f8", value(k / 3, (k + 1) % 3)))
        .collect();
    std::fs::write(place("n.npy"), file("<f8", false, "(50, 3)", odd)).unwrap();
    assert_ne!(fingerprint(folder.path(), ARRAY), number);
}
