//! The promise that no damaged file makes a reader panic, at length: tables in every format
//! and variety, run files, and run directories. Ignored by default;
//! `fuzz_input.rs` is the short one.
//!
//! `DPMC_FUZZ_CASES=20000 cargo test --test command long_fuzz -- --ignored`; add `ulimit -v` to see
//! a reader that believes a damaged length.

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::place::{Place, RUN};
use dpmc::config::Plan;
use dpmc::engine::EngineChoice;
use dpmc::output::{RunDirectory, summarize_directory};
use dpmc::posterior_run::PosteriorRun;
use dpmc::privacy::{Curator, Ledger};
use dpmc::sampler::Chains;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

/// Longest time that a reader may take over a damaged table of a few kilobytes.
const PATIENCE: Duration = Duration::from_secs(60);

fn config() -> ProptestConfig {
    let cases = std::env::var("DPMC_FUZZ_CASES").ok();
    ProptestConfig {
        cases: cases.and_then(|n| n.parse().ok()).unwrap_or(2_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A run file over a table with a number, a text, a label and every kind of feature.
const TABLE: &str = r#"[data]
file = "FILE"
[data.label]
column = "y"
positive = ["1"]
[[data.features]]
intercept = true
[[data.features]]
column = "a"
scale = [-1, 1]
missing = 0.5
[[data.features]]
column = "a"
indicator = { above = 0.1 }
missing = 0.0
[[data.features]]
column = "s"
one_hot = ["x", "y y", "z\"z"]
[model]
kind = "logistic"
[sampler]
algorithm = "barker"
[privacy]
not_private = true
"#;

/// A run file over an NPY table with labels beside it.
const ARRAY: &str = r#"[data]
file = "FILE"
label_file = "labels.npy"
[[data.features]]
columns = ["x0", "x1"]
clamp = [-1, 1]
[model]
kind = "logistic"
[sampler]
algorithm = "barker"
[privacy]
not_private = true
"#;

/// Pieces that readers of text treat specially.
const PIECES: &str = "\"|,|\n|\r\n|\u{feff}|nan|-inf|1e999|0x1|''|\"\"\"|[[|]]|{|}|=|#|\\|\t|\0|é|\
    18446744073709551616|-0|inf|true|'|(|)|L|>f8|<f4||O8|fortran_order|shape|descr|None|1_0|\
    2024-01-01|[data]|a.b|.";

/// One piece of damage: kind, place, byte, second place.
type Damage = (u8, Index, u8, Index);

fn hits() -> impl Strategy<Value = Vec<Damage>> {
    vec(any::<Damage>(), 1..12)
}

fn damaged(good: &[u8], damage: &[Damage]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (kind, at, byte, other) in damage {
        let (at, other) = (at.index(bytes.len() + 1), other.index(bytes.len() + 1));
        let end = bytes.len().min(at + usize::from(*byte % 32));
        match kind % 10 {
            0 | 1 if at < bytes.len() => bytes[at] = *byte,
            2 if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
            3 => bytes.insert(at, *byte),
            4 => drop(bytes.drain(at..end)),
            5 => bytes.truncate(bytes.len() - (end - at)),
            // A stretch is doubled, or copied elsewhere.
            6 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(other..other, copy);
            }
            7 | 8 => {
                let pieces: Vec<&str> = PIECES.split('|').collect();
                let piece = pieces[usize::from(*byte) % pieces.len()];
                bytes.splice(at..at, piece.bytes());
            }
            9 => bytes[at..end].fill([0, 0x7f, 0x80, 0xff][usize::from(byte % 4)]),
            _ => {}
        }
    }
    bytes
}

fn csv() -> String {
    let row = |i: u32| {
        let s = ["x", "y y", "\"z\"\"z\"", "", "other"][i as usize % 5];
        format!("{:.2},{s},{}\n", f64::from(i % 9) / 4.0 - 1.0, i % 2)
    };
    (0..40).fold("a,s,y\n".into(), |text, i| text + &row(i))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Two row groups of an optional number, an optional text and an integer.
fn parquet(compression: Compression, dictionary: bool) -> Vec<u8> {
    let text = "message t { optional double a; optional binary s (UTF8); required int32 y; }";
    let schema = parse_message_type(text).unwrap().into();
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(dictionary)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties.into()).unwrap();
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        let present: Vec<i16> = (0..20).map(|i| i16::from(i % 4 != 0)).collect();
        let count = present.iter().filter(|p| **p == 1).count();
        let mut column = group.next_column().unwrap().unwrap();
        let a: Vec<f64> = (0..count).map(|i| i as f64 / 15.0).collect();
        let typed = column.typed::<DoubleType>();
        typed.write_batch(&a, Some(&present), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let s = |i| ByteArray::from(["x", "y y", "z\"z"][i % 3]);
        let s: Vec<ByteArray> = (0..count).map(s).collect();
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&s, Some(&present), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let y: Vec<i32> = (0..20).map(|i| i % 2).collect();
        let typed = column.typed::<Int32Type>();
        typed.write_batch(&y, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn parquets() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let codecs = [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(Default::default()),
            Compression::GZIP(Default::default()),
            Compression::BROTLI(Default::default()),
            Compression::LZ4,
            Compression::LZ4_RAW,
        ];
        codecs
            .into_iter()
            .flat_map(|c| [parquet(c, true), parquet(c, false)])
            .collect()
    })
}

fn npy(version: u8, kind: &str, shape: &str, bytes: usize) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    file.extend([0x76, 0]);
    file.extend(if version > 1 { &[0, 0][..] } else { &[] });
    file.extend(format!("{header:117}\n").bytes());
    file.extend((0..bytes).map(|i| (i % 2) as u8));
    file
}

/// Loads `bytes` as `file`, with `labels` beside it; the number of rows.
fn load(run: &str, file: &str, bytes: &[u8], labels: &[u8]) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), bytes).unwrap();
    std::fs::write(folder.path().join("labels.npy"), labels).unwrap();
    let text = run.replace("FILE", file);
    let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
    let start = Instant::now();
    let _ = dpmc::data::header(&folder.path().join(file), Default::default());
    let loaded = plan.load_data();
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    loaded.map(|set| set.rows()).map_err(|e| e.to_string())
}

fn labels() -> Vec<u8> {
    npy(1, "|b1", "(20,)", 20)
}

#[test]
fn the_files_that_are_damaged_below_are_good() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("draws.parquet")).unwrap();
    for (name, bytes) in &run_files().0 {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    assert_eq!(resume_and_step(folder.path()), Some(()));
    assert_eq!(load(TABLE, "t.csv", csv().as_bytes(), &[]), Ok(40));
    assert_eq!(
        load(TABLE, "t.csv.gz", &gzip(csv().as_bytes()), &[]),
        Ok(40)
    );
    for bytes in parquets() {
        assert_eq!(load(TABLE, "t.parquet", bytes, &[]), Ok(40));
    }
    for (version, kind, size) in [(1, "<f8", 8), (2, "<f4", 4), (3, "|u1", 1)] {
        let bytes = npy(version, kind, "(20, 2)", 40 * size);
        assert_eq!(load(ARRAY, "t.npy", &bytes, &labels()), Ok(20), "{kind}");
    }
}

/// Parses, and checks all that needs no rows.
fn parse(text: String) {
    if let Ok(plan) = Plan::parse(Path::new("run.toml"), text) {
        let _ = plan.check_declarations();
        let resolved = plan.resolved().unwrap();
        let again = Plan::parse(Path::new("run.toml"), resolved.clone());
        assert!(again.is_ok(), "a resolved file is refused: {resolved}");
    }
}

/// Name and content.
type NamedFile = (String, Vec<u8>);

/// A finished run's directory, file by file, and the folder that holds its table.
fn run_files() -> &'static (Vec<NamedFile>, Place) {
    static FILES: OnceLock<(Vec<NamedFile>, Place)> = OnceLock::new();
    FILES.get_or_init(|| {
        let run = RUN.replace("[run]", "adapt = \"full\"\n[run]\nwarmup = 10\nchains = 2");
        let place = Place::new(&run);
        place.works("sample run.toml --iterations 20 --out out --quiet");
        let part = "draws.parquet/part-000000.parquet";
        let read = |name: &str| {
            let bytes = std::fs::read(place.path("out").join(name)).unwrap();
            (name.to_string(), bytes)
        };
        let names = [
            "certificate.json",
            "state.json",
            "ledger.json",
            "run.toml",
            part,
        ];
        (names.map(read).to_vec(), place)
    })
}

/// A JSON file with one leaf replaced, or one array emptied.
fn other_leaf(bytes: &[u8], leaf: &Index, odd: &Index) -> Vec<u8> {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(a) => 1 + a.iter().map(count).sum::<usize>(),
            Value::Object(o) => 1 + o.values().map(count).sum::<usize>(),
            _ => 1,
        }
    }
    fn set(value: &mut Value, at: &mut usize, to: &Value) {
        if *at == 0 {
            *value = to.clone();
        }
        *at = at.wrapping_sub(1);
        match value {
            Value::Array(a) => a.iter_mut().for_each(|v| set(v, at, to)),
            Value::Object(o) => o.values_mut().for_each(|v| set(v, at, to)),
            _ => {}
        }
    }
    let odds = format!(
        "[null, true, 0, -1, 1, 3, 0.5, 1e308, -1e-308, {}, {}, {}, \"\", \"x\", \"1\", \"running\", \"{}\", [], [1], [[0, 1]], {{}}]",
        u64::MAX,
        1u64 << 60,
        i32::MAX,
        u128::MAX
    );
    let odds: Vec<Value> = serde_json::from_str(&odds).unwrap();
    let mut tree: Value = serde_json::from_slice(bytes).unwrap();
    let mut at = leaf.index(count(&tree));
    set(&mut tree, &mut at, odd.get(&odds));
    serde_json::to_vec(&tree).unwrap()
}

/// What `dpmc sample --resume` does with a directory, for a few steps.
fn resume_and_step(path: &Path) -> Option<()> {
    let (_, folder) = run_files();
    let plan = Plan::read(&folder.path("run.toml")).unwrap();
    let (data, mut length) = (plan.load_data().unwrap(), plan.length().unwrap());
    length.iterations += 100;
    let (rows, budget) = (data.rows(), plan.budget().unwrap().unwrap());
    let model = plan.model(&data).unwrap();
    let sampler = plan.sampler(&*model, rows, data.row_norm()).unwrap();
    let measure = plan.measure(&sampler, &*model, rows, budget).unwrap();
    let chains = Chains::new(&[vec![0.0; 3], vec![0.0; 3]], [7; 32]);
    let (mut directory, state) = RunDirectory::resume(path).ok()?;
    let ledger = Ledger::open(&path.join("ledger.json"), "people", rows, budget, measure).ok()?;
    let curator = Curator::private(data, model, EngineChoice::Cpu, ledger, None).unwrap();
    let mut run = PosteriorRun::new(curator, sampler, chains, length, String::new(), vec![]);
    run.resume(&state).ok()?;
    directory.begin(&mut run).ok()?;
    for _ in 0..3 {
        run.step();
    }
    run.interrupt();
    directory.finish(&mut run).ok()?;
    let _ = (run.acceptance(), summarize_directory(path));
    Some(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    #[ignore = "study"]
    fn csv_and_gzip(hits in hits(), inner in hits()) {
        let text = damaged(csv().as_bytes(), &hits);
        let _ = (load(TABLE, "t.csv", &text, &[]), load(TABLE, "t.tsv", &text, &[]));
        let _ = load(TABLE, "t.csv.gz", &gzip(&text), &[]);
        let _ = load(TABLE, "t.csv.gz", &damaged(&gzip(csv().as_bytes()), &inner), &[]);
        let members = [gzip(&text), gzip(csv().as_bytes())].concat();
        let _ = load(TABLE, "t.csv.gz", &damaged(&members, &inner), &[]);
    }

    /// Behind the header N is the number of lines, whatever is on them.
    #[test]
    #[ignore = "study"]
    fn lines_are_rows(hits in hits()) {
        let run = TABLE.replace("\"FILE\"", "\"FILE\"\nbad_cells = \"missing\"");
        let run = run.replace("[\"1\"]", "[\"1\"]\nnegative = [\"0\", \"\"]");
        let text = csv();
        let (header, rows) = text.split_once('\n').unwrap();
        let rows = damaged(rows.trim_end().as_bytes(), &hits);
        let lines = 1 + rows.iter().filter(|b| **b == b'\n').count();
        let text = [header.as_bytes(), b"\n", &rows, b"\n"].concat();
        let found = [
            load(&run, "t.csv", &text, &[]),
            load(&run, "t.csv.gz", &gzip(&text), &[]),
        ];
        match lines {
            1 => prop_assert!(found.iter().all(Result::is_err)),
            _ => prop_assert_eq!(found, [Ok(lines), Ok(lines)]),
        }
    }

    #[test]
    #[ignore = "study"]
    fn npy_tables_and_labels(hits in hits(), version in 0u8..5, other in hits()) {
        for (kind, size) in [("<f8", 8), (">f4", 4), ("|u1", 1), ("<i8", 8), (">f2", 2), ("<u2", 2)] {
            let mut good = npy(version, kind, "(20, 2)", 40 * size);
            if other.len() % 2 == 0 {
                let place = good.windows(5).position(|w| w == b"False").unwrap();
                good.splice(place..place + 5, *b"True ");
            }
            let _ = load(ARRAY, "t.npy", &damaged(&good, &hits), &labels());
            // Damage in the header alone, where most of it is decided.
            let (header, rest) = good.split_at(128);
            let bytes = [damaged(header, &hits), rest.to_vec()].concat();
            let _ = load(ARRAY, "t.npy", &bytes, &damaged(&labels(), &other));
        }
    }

    #[test]
    #[ignore = "study"]
    fn parquet_tables(hits in hits(), which: Index, footer in 0usize..600) {
        let mut bytes = which.get(parquets()).clone();
        let _ = load(TABLE, "t.parquet", &damaged(&bytes, &hits[..1]), &[]);
        let end = bytes.split_off(bytes.len().saturating_sub(footer));
        bytes.extend(damaged(&end, &hits));
        let _ = load(TABLE, "t.parquet", &bytes, &[]);
    }

    #[test]
    #[ignore = "study"]
    fn run_files_of_any_text(hits in hits(), which in 0usize..4, text in "(?s).{0,100}") {
        let adult = include_str!("../../examples/adult.toml");
        let good = [RUN, TABLE, ARRAY, adult][which];
        parse(String::from_utf8_lossy(&damaged(good.as_bytes(), &hits)).into_owned());
        parse(text);
    }

    #[test]
    #[ignore = "study"]
    fn run_directories(hits in hits(), which in 0usize..5, leaf: Index, odd: Index, tree: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir(path.join("draws.parquet")).unwrap();
        for (i, (name, bytes)) in run_files().0.iter().enumerate() {
            let bytes = match i == which {
                true if tree && name.ends_with(".json") => other_leaf(bytes, &leaf, &odd),
                true => damaged(bytes, &hits),
                false => bytes.clone(),
            };
            std::fs::write(path.join(name), bytes).unwrap();
        }
        let start = Instant::now();
        let _ = summarize_directory(path);
        resume_and_step(path);
        let _ = RunDirectory::create(path);
        prop_assert!(start.elapsed() < PATIENCE);
    }
}
