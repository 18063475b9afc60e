//! Tests of text tables: which line an error names, and that no record bends another.

use std::io::Write;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::data::rows::{Rows, Rule};
use crate::data::{
    BadCells, DataError, Dataset, Feature, FeatureKind, Label, LabelValues, Source, Storage,
    TextFormat, load,
};

fn feature(column: &str, missing: Option<f64>) -> Feature {
    Feature {
        column: Some(column.into()),
        kind: FeatureKind::scale(-1.0, 1.0),
        missing,
    }
}

fn source(features: Vec<Feature>) -> Source {
    Source {
        path: "t.csv".into(),
        label_file: None,
        features,
        interactions: Vec::new(),
        offset: None,
        label: None,
        row_norm: None,
        weights: None,
        bounds: None,
        unit: None,
        text: TextFormat::default(),
        bad_cells: BadCells::Error,
        storage: Storage::F32,
        room: Default::default(),
    }
}

/// Loads `text` as a file of the source's name.
fn loaded(source: &Source, text: &[u8]) -> Result<Dataset, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(&source.path);
    std::fs::write(&path, text).unwrap();
    load(&Source {
        path,
        ..source.clone()
    })
}

/// The line that an error names in a table of columns a and b.
fn line_named(text: &str, format: TextFormat) -> u64 {
    let mut source = source(vec![feature("a", None), feature("b", None)]);
    source.text = format;
    match loaded(&source, text.as_bytes()) {
        Err(DataError::Cell { line, .. }) => line,
        other => panic!("{text:?}: {other:?}"),
    }
}

/// Line ends of each kind in front of a bad cell, a ragged row (too long, too short), a blank
/// line and an open quote.
#[test]
fn errors_name_the_line_that_an_editor_shows() {
    let lines = TextFormat::default();
    let quoted = TextFormat {
        quoted_newlines: true,
        ..lines
    };
    for bad in ["x,0", "1,1,1", "1", "", "\"1,1"] {
        for (text, line) in [
            (format!("a,b\n1,1\n1,1\n{bad}\n1,1\n"), 4),
            (format!("a,b\r\n1,1\r\n1,1\r\n{bad}\r\n1,1\r\n"), 4),
            (format!("\u{feff}a,b\r\n{bad}\r\n"), 2),
            (format!("a,b\n1\r,1\n{bad}\n1,1\n"), 3),
            (format!("a,b\n1,1\n{bad}\n{bad}\n"), 3),
        ] {
            assert_eq!(line_named(&text, lines), line, "{text:?}");
        }
    }
    for bad in ["x,0", "1,1,1", "1", "", "1,5\"", "\"1\"0,1"] {
        for (text, line) in [
            (format!("a,b\n\"1\n\n\",1\n{bad}\n"), 5),
            (format!("a,b\r\n\"1\r\n\r\n\",1\r\n{bad}\r\n"), 5),
            (format!("a,b\n1,\"1\n\n\"\n{bad}\n1,1\n"), 5),
        ] {
            assert_eq!(line_named(&text, quoted), line, "{text:?}");
        }
    }
    // A row that ends on a later line is named by its first; so is an open quote.
    assert_eq!(line_named("a,b\r\n1,1\r\n\"x\r\n\",0\r\n", quoted), 3);
    assert_eq!(line_named("a,b\n1,1\n1,\"1\n1,1", quoted), 3);
}

#[test]
fn lines_are_counted_in_what_gzip_holds() {
    let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    file.write_all(b"a\r\n1\r\n\xff\r\n").unwrap();
    let mut source = source(vec![feature("a", None)]);
    source.path = "t.csv.gz".into();
    let message = loaded(&source, &file.finish().unwrap()).unwrap_err();
    let message = message.to_string();
    assert!(message.contains("line 3, column 'a'"), "{message}");
}

/// An empty cell of a one-column table is a row wherever it stands.
#[test]
fn blank_lines_are_rows() {
    let source = source(vec![feature("a", Some(0.5))]);
    let rows = |text: &str| loaded(&source, text.as_bytes()).map(|set| set.rows());
    for text in [
        "a\n1\n1\n1\n",
        "a\n\n1\n1\n",
        "a\n1\n\n1\n",
        "a\n1\n1\n\n",
        "a\r\n\r\n\r\n\r\n",
        "a\n \n\t\n\"\"\n",
    ] {
        assert_eq!(rows(text).unwrap(), 3, "{text:?}");
    }
    // Without a line end behind it an empty last row would not be one.
    let message = rows("a\n1\n1\n1").unwrap_err().to_string();
    assert!(message.contains("end in a line break"), "{message}");
    let message = rows("a\r1\r1\r").unwrap_err().to_string();
    assert!(message.contains("without a line feed"), "{message}");
}

/// Nor would an empty record of several columns, which is a row where bad records are missing ones.
#[test]
fn a_last_record_that_may_be_empty_needs_its_line_end() {
    let rows = |bad, text: &str| loaded(&people(bad), text.as_bytes()).map(|set| set.rows());
    let (whole, open) = (
        "a,note,b,y\n0,x,0,1\n1,x,0,0\n",
        "a,note,b,y\n0,x,0,1\n1,x,0,0",
    );
    assert_eq!(rows(BadCells::Missing, whole).unwrap(), 2);
    let emptied = rows(BadCells::Missing, "a,note,b,y\n0,x,0,1\n\n");
    assert_eq!(emptied.unwrap(), 2);
    let message = rows(BadCells::Missing, open).unwrap_err().to_string();
    assert!(message.contains("end in a line break"), "{message}");
    assert_eq!(rows(BadCells::Error, open).unwrap(), 2);
}

#[test]
fn chunks_lose_no_row() {
    let mut source = source(vec![feature("a", None), feature("b", None)]);
    let row = |i: usize| format!("{},{:e}\r\n", i % 3, 0.25 * (i % 7) as f64);
    for count in [1_000, 400_000] {
        let text = (0..count).fold("a,b\r\n".to_string(), |text, i| text + &row(i));
        for (quoted, last) in [(false, 0), (false, 2), (true, 0), (true, 2)] {
            source.text.quoted_newlines = quoted;
            let set = loaded(&source, &text.as_bytes()[..text.len() - last]).unwrap();
            assert_eq!(set.rows(), count);
            let rows = set.public_rows();
            let wrong = (0..count).find(|&i| {
                let (a, b) = ((i % 3).min(1) as f32, (0.25 * (i % 7) as f32).min(1.0));
                rows[2 * i..][..2] != [a, b]
            });
            assert_eq!(wrong, None, "of {count}");
        }
    }
}

/// A table too large for memory is refused by its number of rows alone.
#[test]
fn the_refusal_for_size_knows_no_record_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |cell: &str, available: u64| {
        let mut source = source(vec![feature("a", None)]);
        source.path = folder.path().join("t.csv");
        let text = format!("a,note\n{}", format!("1,{cell}\n").repeat(5_000));
        std::fs::write(&source.path, text).unwrap();
        let rule = Rule::new(&source, None).unwrap();
        let builder = Dataset::builder(vec!["a".into()], false, 1.0).unwrap();
        let mut rows = Rows::new(&rule, builder, Some(available), 1, None);
        super::rows(&source.path, source.text, &mut rows).map_err(|e| e.to_string())
    };
    let short = refusal("", 16_000).unwrap_err();
    assert!(short.contains("4001 rows or more × 1 features"), "{short}");
    assert_eq!(refusal(&"x".repeat(3_000), 16_000), Err(short));
    assert_eq!(refusal("x", 5_008 * 4), Ok(()));
}

/// Rows of all files count, whichever of them would fit alone.
#[test]
fn the_refusal_for_size_adds_files_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = source(vec![feature("a", None)]);
    source.path = folder.path().join("t.csv");
    std::fs::write(&source.path, format!("a\n{}", "1\n".repeat(3_000))).unwrap();
    let rule = Rule::new(&source, None).unwrap();
    let read = |files: usize, available: u64| {
        let builder = Dataset::builder(vec!["a".into()], false, 1.0).unwrap();
        let mut rows = Rows::new(&rule, builder, Some(available), 1, None);
        let mut files = (0..files).map(|_| super::rows(&source.path, source.text, &mut rows));
        files.try_for_each(|read| read.map_err(|e| e.to_string()))
    };
    assert_eq!(read(1, 16_000), Ok(()));
    let refused = read(2, 16_000).unwrap_err();
    assert!(refused.contains("4001 rows or more"), "{refused}");
    assert_eq!(read(2, 6_000 * 4), Ok(()));
    // Those whose files say their number are refused before they are read.
    let builder = Dataset::builder(vec!["a".into()], false, 1.0).unwrap();
    let mut rows = Rows::new(&rule, builder, Some(16_000), 1, None);
    super::rows(&source.path, source.text, &mut rows).unwrap();
    assert!(rows.expect(1_000).is_ok() && rows.expect(1_001).is_err());
}

/// Two features, a text that nothing reads and a label, with a rule for each missing cell.
fn people(bad_cells: BadCells) -> Source {
    let names = |levels: &[&str]| levels.iter().map(|l| l.to_string()).collect();
    let mut source = source(vec![feature("a", Some(0.5)), feature("b", Some(-0.5))]);
    source.label = Some(Label {
        column: Some("y".into()),
        values: LabelValues::Named {
            positive: names(&["1"]),
            negative: names(&["0", ""]),
        },
        missing: None,
        event: None,
    });
    source.bad_cells = bad_cells;
    source
}

const RECORDS: [&str; 5] = [
    "0.1,x,-0.2,1",
    "0.2,\"y, y\",0,0",
    "-0.3,,0.4,",
    ",,1,1",
    "1,z,1,0",
];

fn people_table(at: usize, record: &[u8], line_end: &str) -> Vec<u8> {
    let mut text = format!("a,note,b,y{line_end}").into_bytes();
    for (i, good) in RECORDS.iter().enumerate() {
        text.extend(if i == at { record } else { good.as_bytes() });
        text.extend(line_end.as_bytes());
    }
    text
}

/// Bytes of a record: anything but a line feed, and often what readers treat specially.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(b"\",\r\t ;\0'\xff\xef1-.".to_vec());
    let byte = prop_oneof![any::<u8>(), special];
    vec(byte, 0..30).prop_map(|bytes| bytes.into_iter().filter(|b| *b != b'\n').collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    /// Whatever stands in one record, N and all other rows stay; without a rule for bad cells a
    /// record may be refused, by its own line.
    #[test]
    fn one_record_changes_its_own_row_alone(
        at in 0..RECORDS.len(),
        record in record(),
        crlf: bool,
    ) {
        let line_end = if crlf { "\r\n" } else { "\n" };
        let good = people_table(usize::MAX, b"", line_end);
        let good = loaded(&people(BadCells::Error), &good).unwrap();
        let table = people_table(at, &record, line_end);
        let others = |set: &Dataset| {
            let mut rows: Vec<_> = set.public_rows().chunks(2).map(<[f32]>::to_vec).collect();
            let mut labels = set.as_public().labels();
            rows.remove(at);
            labels.remove(at);
            (rows, labels)
        };
        let set = loaded(&people(BadCells::Missing), &table).unwrap();
        prop_assert_eq!(set.rows(), RECORDS.len());
        prop_assert_eq!(others(&set), others(&good));
        match loaded(&people(BadCells::Error), &table) {
            Ok(set) => prop_assert_eq!(others(&set), others(&good)),
            Err(DataError::Cell { line, .. }) => prop_assert_eq!(line, at as u64 + 2),
            Err(e) => return Err(TestCaseError::fail(e.to_string())),
        }
    }

    /// The same of a table with one column, where an empty record is a row too.
    #[test]
    fn one_record_of_a_column_is_a_row(at in 0usize..5, record in record()) {
        let mut text = b"a\n".to_vec();
        for i in 0..5 {
            text.extend(if i == at { &record } else { &b"0.5"[..] });
            text.push(b'\n');
        }
        let mut source = source(vec![feature("a", Some(0.0))]);
        source.bad_cells = BadCells::Missing;
        let rows = loaded(&source, &text).unwrap().public_rows();
        prop_assert_eq!(rows.len(), 5);
        prop_assert!((0..5).all(|i| i == at || rows[i] == 0.5), "{rows:?}");
    }
}
