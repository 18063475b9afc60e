//! The promise: bad input ends with exit code 2 and a message that names the file, line,
//! column or key at fault; it never panics, quotes no cell and leaves no output behind.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use dpmc::config::Plan;
use dpmc::data::{Feature, FeatureKind, Label, LabelLevels, Source};
use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tempfile::TempDir;

/// What an offending cell holds; no message may contain it.
const CELL: &str = "s3cretcell";

/// A run file without a fault; cases edit it.
const RUN: &str = r#"[data]
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
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

/// Text of the run file or of the table (`*`: the whole table, `--`: flags) => what stands
/// there instead => what is said; `@text` is the line of the run file that holds the text.
const CASES: &str = r#"
,                => ;                        => table.csv; 'a'; delimiter
0.571,-0.800,0   => 0.571,s3cretcell         => table.csv, line 6
0.571,-0.800,0   => 0,0,1,s3cretcell         => table.csv, line 6
0.857,-0.200,0   => 0.857,s3cretcell,0       => table.csv, line 8; 'b'
0.857,-0.200,0   => ,-0.200,0                => table.csv, line 8; 'a'; missing
0.857,-0.200,0   => 0.857,NAN,0              => table.csv, line 8; 'b'; NaN
0.857,-0.200,0   => -inf,-0.200,0            => table.csv, line 8; 'a'; infinity
0.857,-0.200,0   => 1e999,-0.200,0           => table.csv, line 8; 'a'; infinity
0.857,-0.200,0   => 0.857,-0.200,s3cretcell  => table.csv, line 8; 'y'
0.857,-0.200,0   => 0.857,-0.200,2           => table.csv, line 8; 'y'; 0 or 1
a,b,y            => a,c,y                    => table.csv; 'b'; nearest; 'c'
a,b,y            => a,b,z                    => table.csv; 'y'; nearest; 'z'
a,b,y            => a,a,y                    => table.csv; 'a'; twice
*                =>                          => table.csv; empty
*                => a,b,y\n                  => table.csv; 0 row
*                => a,b,y\n0.1,0.2,1\n       => table.csv; 1 row
"y"              => "y"\npositive = ["1"]\nnegative = ["-"] => table.csv, line 2; 'y'; declared
scale = [-1, 1]  => one_hot = ["0.000"]\nstrict = true => table.csv, line 3; 'a'; not declared
scale = [-1, 1]  => scale = [1, -1]          => run.toml, line; data.features[1]; reversed
scale = [-1, 1]  => clamp = [1, 1]           => run.toml, line; data.features[1]; equal
scale = [-1, 1]  => scale = [nan, 1]         => run.toml, line; data.features[1]; finite
scale = [-1, 1]  => scale = [1]              => @scale = [1]
scale = [-1, 1]  =>                          => run.toml, line; data.features[1]; missing
row_norm = 2.0   => row_norm = 0             => @row_norm; data.row_norm
row_norm = 2.0   => row_norm = -1            => @row_norm; data.row_norm
row_norm = 2.0   => row_norm = nan           => @row_norm; data.row_norm
epsilon = 5.0    => epsilon = 0              => @epsilon; privacy.epsilon
epsilon = 5.0    => epsilon = inf            => @epsilon; privacy.epsilon
delta = 1e-6     => delta = 0                => @delta; privacy.delta
delta = 1e-6     => delta = 1                => @delta; privacy.delta
delta = 1e-6     => delta = nan              => @delta; privacy.delta
chains = 1       => chains = 0               => @chains; run.chains
iterations = 20  => iterations = 0           => @iterations; run.iterations
tempering = 1.0  => tempering = 0.0          => @tempering; model.tempering
tempering = 1.0  => tempering = 1.01         => @tempering; model.tempering
tempering = 1.0  => tempering = nan          => @tempering; model.tempering
sd = 3.0         => sd = 0                   => @sd = 0; model.prior.sd
sd = 3.0         => sd = [1, 0, 1]           => @sd = [; model.prior.sd
"normal", sd = 3 => "laplace", scale = 0     => @laplace; model.prior.scale
"barker"         => "mh"                     => @"mh"; sampler.algorithm; --not-private
"barker"         => "tuna-mh"                => @"tuna-mh"; sampler.algorithm
delta = 1e-6     =>                          => @epsilon; delta
epsilon = 5.0\ndelta = 1e-6 =>               => no budget; --epsilon; --not-private
row_norm         => row_nrom                 => @row_nrom; nearest valid one is `row_norm`
tempering        => temperng                 => @temperng; nearest valid one is `tempering`
[privacy]        => [privcy]                 => @[privcy]; nearest valid one is `privacy`
"barker"         => "barkr"                  => @"barkr"; nearest valid one is `barker`
iterations = 20  => iterations = "few"       => @"few"
delta = 1e-6     => delta = 1e-6\nnot_private = true => @not_private; epsilon
epsilon = 5.0\ndelta = 1e-6 => not_private = true\nledger = "l" => @ledger; privacy.ledger
scale = [-1, 1]  => scale = [-1, 1]\nclamp = [-1, 1] => run.toml, line; data.features[1]
"barker"         => "barker"\nlambda = 3.0   => @lambda; sampler.lambda
"barker"         => "barker"\ntau = 3.0      => @tau; sampler.tau
"barker"         => "poisson-barker"\nlambda = 3.0\nchi = 2.0 => @chi; sampler.chi
"barker"         => "barker"\nscale = 1\ncovariance = [[1]] => @covariance; 'scale'
row_norm = 2.0   => label_file = "l.npy"     => @label_file; [data.label]
"logistic"       => "logistic"\nvariance = 2 => @variance; model.variance
"a", "b"         => "a", "a"                 => run.toml, line; data.features; 'a'
-- => --epsilon 0                            => epsilon
-- => --delta 1                              => delta
-- => --chains 0                             => chains
-- => --iterations 18446744073709551615      => iterations
-- => --algorithm mh                         => algorithm; --not-private
-- => --algorithm bark                       => --algorithm; barker
-- => --data no.csv                          => no.csv; no such file
-- => --not-private --epsilon 1              => --not-private; --epsilon
-- => --not-private --ledger l.json          => ledger
"#;

/// Replaces `from` in `text`; every edit must hit.
fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no '{from}' to edit");
    text.replace(from, to)
}

/// Columns a, b and y of a table of 40 rows.
fn columns() -> [Vec<f64>; 3] {
    let column = |f: fn(i32) -> i32, by: f64| (0..40).map(|i| f64::from(f(i)) / by).collect();
    [
        column(|i| i % 7, 7.0),
        column(|i| -(i % 5), 5.0),
        column(|i| i % 2, 1.0),
    ]
}

fn csv() -> String {
    let [a, b, y] = columns();
    let row = |i: usize| format!("{:.3},{:.3},{}\n", a[i], b[i], y[i]);
    (0..40).fold("a,b,y\n".into(), |text, i| text + &row(i))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn parquet() -> Vec<u8> {
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
fn npy(shape: &str, values: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend([0.5f64.to_le_bytes()].repeat(values).concat());
    bytes
}

fn folder_with(file: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), bytes).unwrap();
    folder
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpmc"));
    command
        .current_dir(folder)
        .args(arguments.split_whitespace());
    command
}

fn dpmc(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Runs the command; asserts its exit code and every part (by `; `) of what it must say.
fn assert_refused(folder: &Path, arguments: &str, code: i32, says: &str) {
    let output = dpmc(folder, arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments} ({says}): {message}"
    );
    assert!(
        !message.contains("panicked") && !message.contains(CELL),
        "{message}"
    );
    for part in says.split("; ") {
        assert!(
            message.contains(part),
            "{arguments}: no '{part}': {message}"
        );
    }
}

/// `check` and `sample` refuse `run` with exit code 2 and leave nothing behind.
fn assert_both_refuse(folder: &Path, run: &str, flags: &str, says: &str) {
    std::fs::write(folder.join("run.toml"), run).unwrap();
    let mut says = says.to_string();
    if let Some((text, _)) = says
        .strip_prefix('@')
        .map(|s| s.split_once("; ").unwrap_or((s, "")))
    {
        let line = 1 + run.lines().position(|l| l.contains(text)).unwrap();
        says = says.replacen(&format!("@{text}"), &format!("run.toml, line {line}:"), 1);
    }
    assert_refused(folder, &format!("check run.toml {flags}"), 2, &says);
    assert_refused(
        folder,
        &format!("sample run.toml --out out {flags}"),
        2,
        &says,
    );
    assert!(!folder.join("out").exists(), "{says}: leaves output");
}

#[test]
fn bad_tables_keys_and_flags_are_refused() {
    let good = folder_with("table.csv", csv().as_bytes());
    std::fs::write(good.path().join("run.toml"), RUN).unwrap();
    assert!(
        dpmc(good.path(), "sample run.toml --out out")
            .status
            .success()
    );
    for case in CASES.lines().filter(|l| !l.is_empty()) {
        let parts: Vec<String> = case
            .split("=>")
            .map(|p| p.trim().replace("\\n", "\n"))
            .collect();
        let [from, to, says] = parts.try_into().unwrap();
        let (mut table, mut run, mut flags) = (csv(), RUN.to_string(), "");
        match from.as_str() {
            "*" => table = to,
            "--" => flags = &to,
            _ if from != "," && RUN.contains(&from) => run = edit(RUN, &from, &to),
            _ => table = edit(&table, &from, &to),
        }
        let folder = folder_with("table.csv", table.as_bytes());
        assert_both_refuse(folder.path(), &run, flags, &says);
    }
}

#[test]
fn damaged_and_missing_files_are_refused_by_name() {
    let (zipped, columnar) = (gzip(csv().as_bytes()), parquet());
    let (half_zipped, half_columnar) = (zipped.len() / 2, columnar.len() / 2);
    let cases: [(&str, &[u8], &str); 13] = [
        ("table.xls", b"a,b,y\n", ".csv"),
        ("table.csv", b"a,b,y\n0,\xff,1\n", "line 2"),
        ("table.csv", b"a,b,y\n0,0,1\n0,\xff,1\n", "line 3"),
        ("table.csv.gz", &zipped[..half_zipped], "truncated"),
        ("table.csv.gz", &zipped[..zipped.len() - 3], "truncated"),
        ("table.csv.gz", b"", "truncated"),
        ("table.csv.gz", b"a,b,y\n0,0,1\n", "gzip"),
        ("table.parquet", &columnar[..half_columnar], "truncated"),
        ("table.parquet", b"", "truncated"),
        ("table.npy", &npy("(40, 2)", 79), "NPY"),
        ("table.npy", &npy("(40, 2)", 80)[..40], "NPY"),
        ("table.npy", &npy("(2, 1000000000000000000)", 80), "npy"),
        // Said before a row is read: there is none.
        (
            "table.npy",
            &npy("(1000000000000, 2)", 0),
            "memory; 1000000000000 rows",
        ),
    ];
    for (file, bytes, says) in cases {
        let folder = folder_with(file, bytes);
        let mut run = edit(RUN, "table.csv", file);
        if file.ends_with(".npy") {
            run = edit(&run, r#""a", "b""#, r#""x0", "x1""#);
            run = edit(&run, "[data.label]\ncolumn = \"y\"", "");
            run = edit(&run, r#""logistic""#, r#""gaussian-mean""#);
            run = edit(
                &run,
                "[sampler]",
                "box = 3\ncovariance = [[1,0,0],[0,1,0],[0,0,1]]\n[sampler]",
            );
        }
        assert_both_refuse(folder.path(), &run, "", &format!("{file}; {says}"));
    }
    let folder = tempfile::tempdir().unwrap();
    assert_both_refuse(folder.path(), RUN, "", "table.csv; no such file");
    assert_refused(folder.path(), "check no.toml", 2, "no.toml");
    assert_refused(folder.path(), "init no.csv", 2, "no.csv");
}

#[test]
fn a_budget_too_small_for_one_step_names_a_step_that_fits() {
    let folder = folder_with("table.csv", csv().as_bytes());
    let path = folder.path();
    for (algorithm, epsilon) in [
        (r#""barker""#, "1e-4"),
        (r#""barker""#, "7e-3"),
        ("\"barker\"\nclip = { rms = 2.0 }", "3e-3"),
        ("\"poisson-barker\"\nlambda_ratio = 0.5", "1e-3"),
        ("\"poisson-barker\"\nlambda = 10.0", "1e-2"),
        ("\"poisson-barker\"\nchi = 0.5", "0.2"),
    ] {
        let run = edit(&edit(RUN, "5.0", epsilon), r#""barker""#, algorithm);
        let says = "@epsilon; privacy.epsilon; too small; proposal step of ";
        assert_both_refuse(path, &edit(&run, "0.001", "1.4"), "", says);
        let message = String::from_utf8(dpmc(path, "check run.toml").stderr).unwrap();
        let step = message.split("proposal step of ").nth(1).unwrap();
        let step = step.split_whitespace().next().unwrap();
        std::fs::write(path.join("run.toml"), edit(&run, "0.001", step)).unwrap();
        let output = dpmc(path, "check run.toml");
        assert!(
            output.status.success(),
            "{algorithm}: step {step}: {output:?}"
        );
    }
    // The cost of a penalty step does not depend on its size.
    let penalty = edit(
        &edit(RUN, "5.0", "0.01"),
        r#""barker""#,
        "\"dp-penalty\"\ntau = 1.0",
    );
    assert_both_refuse(path, &penalty, "", "too small; tau");
    let message = String::from_utf8(dpmc(path, "check run.toml").stderr).unwrap();
    assert!(!message.contains("proposal step"), "{message}");
}

#[test]
fn a_bad_test_table_is_said_before_the_budget_is_spent() {
    let folder = folder_with("table.csv", csv().as_bytes());
    for (public, says) in [("true", "no.csv"), ("false", "test.public")] {
        let run = format!("{RUN}[test]\nfile = \"no.csv\"\npublic = {public}\n");
        std::fs::write(folder.path().join("run.toml"), &run).unwrap();
        assert_refused(folder.path(), "sample run.toml --out out", 2, says);
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn output_that_cannot_be_written_or_is_taken_is_left_alone() {
    let folder = folder_with("table.csv", csv().as_bytes());
    let path = folder.path();
    std::fs::write(path.join("run.toml"), RUN).unwrap();
    std::fs::create_dir(path.join("taken")).unwrap();
    std::fs::write(path.join("taken/note"), "mine").unwrap();
    assert_refused(
        path,
        "sample run.toml --out taken",
        2,
        "taken; not empty; --resume",
    );
    assert_eq!(std::fs::read_dir(path.join("taken")).unwrap().count(), 1);
    assert_refused(
        path,
        "sample run.toml --out table.csv/out",
        1,
        "table.csv/out",
    );
    assert_refused(path, "sample run.toml --out table.csv", 1, "table.csv");
    assert_refused(
        path,
        "init table.csv --out table.csv/x.toml",
        1,
        "table.csv/x.toml",
    );
    assert_eq!(
        std::fs::read_to_string(path.join("table.csv")).unwrap(),
        csv()
    );
    assert_refused(path, "sample --resume absent", 2, "absent");
    assert_refused(path, "summary absent --json", 2, "absent");
    // Folders made for a run that is then refused are taken away again.
    assert_refused(
        path,
        "sample run.toml --data no.csv --out new/deep/out",
        2,
        "no.csv",
    );
    assert!(!path.join("new").exists());
}

#[test]
fn a_foreign_damaged_or_locked_ledger_is_refused_and_unchanged() {
    let folder = folder_with("table.csv", csv().as_bytes());
    let path = folder.path();
    let short: Vec<String> = csv().lines().take(30).map(String::from).collect();
    std::fs::write(path.join("short.csv"), short.join("\n")).unwrap();
    std::fs::write(path.join("damaged.json"), "{}").unwrap();
    std::fs::write(path.join("run.toml"), RUN).unwrap();
    std::fs::write(path.join("others.toml"), edit(RUN, "people", "others")).unwrap();
    assert!(
        dpmc(path, "sample run.toml --out first --ledger l.json")
            .status
            .success()
    );
    let before = std::fs::read(path.join("l.json")).unwrap();
    let mut long = command(
        path,
        "sample run.toml --out long --ledger held.json --quiet",
    );
    let mut long = long
        .args(["--iterations", "100000000", "--epsilon", "1e6"])
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !path.join("held.json").exists() && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let refused = |arguments: &str, says: &str| {
        assert_refused(path, &format!("sample --out out {arguments}"), 2, says);
        assert!(!path.join("out").exists(), "{arguments}");
    };
    refused(
        "run.toml --ledger held.json --epsilon 1e6",
        "held.json; in use",
    );
    long.kill().unwrap();
    long.wait().unwrap();
    refused("others.toml --ledger l.json", "l.json; 'people'; 'others'");
    refused(
        "run.toml --ledger l.json --data short.csv",
        "l.json; 40; 29",
    );
    refused("run.toml --ledger l.json --epsilon 2", "l.json; budget");
    refused("run.toml --ledger damaged.json", "damaged.json");
    refused("run.toml --ledger absent/l.json", "absent/l.json");
    assert_eq!(std::fs::read(path.join("l.json")).unwrap(), before);
}

/// Loads `bytes` as a file of this name with declarations that fit the tables above.
fn load(file: &str, bytes: &[u8]) -> Result<usize, String> {
    let folder = folder_with(file, bytes);
    let (numbered, levels) = (file.ends_with(".npy"), LabelLevels::ZeroOne);
    let column = if numbered { "x1" } else { "a" };
    let kind = FeatureKind::Clamp {
        low: -1.0,
        high: 1.0,
    };
    let source = Source {
        path: folder.path().join(file),
        label_file: None,
        features: vec![Feature {
            column: Some(column.into()),
            kind,
            missing: None,
        }],
        label: (!numbered).then(|| Label {
            column: "y".into(),
            levels,
        }),
        row_norm: None,
    };
    let loaded = dpmc::data::load(&source);
    loaded.map(|set| set.rows()).map_err(|e| e.to_string())
}

/// Every byte of a small Parquet file is damaged in turn, several ways.
#[test]
fn no_damaged_byte_of_a_parquet_file_panics() {
    let good = parquet();
    assert_eq!(load("t.parquet", &good), Ok(40));
    let attempts = (0..good.len()).flat_map(|at| [1, 2, 0x7f, 0x80].map(|xor| (at, xor)));
    let panics = |(at, xor): &(usize, u8)| {
        let mut bytes = good.clone();
        bytes[*at] ^= xor;
        std::panic::catch_unwind(|| load("t.parquet", &bytes)).is_err()
    };
    let bad: Vec<(usize, u8)> = attempts.filter(panics).collect();
    assert!(bad.is_empty(), "(offset, xor) that panic: {bad:?}");
}

/// One piece of damage: a byte replaced, put in, some cut out, or the end cut off.
type Damage = (u8, Index, u8);

fn damaged(good: &[u8], damage: &[Damage]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (kind, at, byte) in damage {
        let at = at.index(bytes.len() + 1);
        let end = bytes.len().min(at + usize::from(*byte % 16));
        match kind % 8 {
            0..=3 if at < bytes.len() => bytes[at] = *byte,
            4 | 5 => bytes.insert(at, *byte),
            6 => drop(bytes.drain(at..end)),
            7 => bytes.truncate(bytes.len() - (end - at)),
            _ => {}
        }
    }
    bytes
}

fn parse(text: String) {
    if let Ok(plan) = Plan::parse(Path::new("run.toml"), text) {
        let _ = (plan.check_declarations(), plan.resolved());
    }
}

const ODD: [&str; 14] = [
    "-1",
    "nan",
    "inf",
    "1e308",
    "5e-324",
    "9223372036854775807",
    "true",
    "''",
    "[]",
    "[[1]]",
    "{ kind = 'flat' }",
    "{ in = [] }",
    "'mixture'",
    "'gaussian-mean'",
];
const SIZES: [u64; 7] = [0, 1, 2, 20, 1 << 32, 1_000_000_000_000_000_000, u64::MAX];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arbitrary_files_never_panic(text in "(?s).{0,200}", bytes: Vec<u8>) {
        for file in ["t.csv", "t.tsv", "t.csv.gz", "t.npy", "t.parquet"] {
            let _ = (load(file, &bytes), load(file, text.as_bytes()));
        }
        parse(text);
    }

    #[test]
    fn damaged_run_files_never_panic(hits: Vec<Damage>, at: [Index; 2], value in select(&ODD[..])) {
        parse(String::from_utf8_lossy(&damaged(RUN.as_bytes(), &hits)).into_owned());
        let mut lines: Vec<&str> = RUN.lines().collect();
        let [i, j] = at.map(|at| at.index(lines.len()));
        let odd = format!("{} = {value}", lines[i].split(" = ").next().unwrap_or_default());
        lines[i] = &odd;
        parse(lines.join("\n"));
        lines.swap(i, j);
        parse(lines.join("\n"));
    }

    #[test]
    fn damaged_tables_never_panic(hits: Vec<Damage>) {
        let _ = load("t.csv", &damaged(csv().as_bytes(), &hits));
        let _ = load("t.csv.gz", &damaged(&gzip(csv().as_bytes()), &hits));
        let _ = load("t.csv.gz", &gzip(&damaged(csv().as_bytes(), &hits)));
        let _ = load("t.npy", &damaged(&npy("(20, 2)", 40), &hits));
        // The end alone: the parquet crate takes half a minute over some damaged pages.
        let (pages, footer) = parquet().split_at(parquet().len() - 350);
        let _ = load("t.parquet", &[pages, &damaged(footer, &hits)].concat());
    }

    #[test]
    fn lying_npy_headers_never_panic(shape in prop::collection::vec(select(&SIZES[..]), 0..4)) {
        let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
        let _ = load("t.npy", &npy(&format!("({},)", shape.join(", ")), 40));
    }
}
