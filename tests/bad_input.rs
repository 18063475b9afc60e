//! The promise: bad input ends with exit code 2 and a message that names the file, line,
//! column or key at fault; it never panics, quotes no cell and leaves no output behind.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dpmc::config::Plan;
use dpmc::data::{Feature, FeatureKind, Label, LabelLevels, Source};
use parquet::data_type::DoubleType;
use parquet::file::metadata::ParquetMetaDataWriter;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use tempfile::TempDir;

/// What an offending cell holds; no message may contain it.
const CELL: &str = "s3cretcell";

/// A run file without a fault; cases edit it.
const RUN: &str = r#"[data]
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

fn rows() -> Vec<[String; 3]> {
    (0..40)
        .map(|i| {
            let (a, b) = (f64::from(i % 7) / 7.0, f64::from(i % 5) / -5.0);
            [format!("{a:.3}"), format!("{b:.3}"), (i % 2).to_string()]
        })
        .collect()
}

/// The table as CSV, its cell at (`row`, `column`), both from 0, replaced.
fn csv(replaced: Option<(usize, usize, &str)>) -> String {
    let mut rows = rows();
    if let Some((row, column, cell)) = replaced {
        rows[row][column] = cell.into();
    }
    let lines: Vec<String> = rows.iter().map(|r| r.join(",")).collect();
    format!("a,b,y\n{}\n", lines.join("\n"))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An NPY file whose header claims any shape.
fn npy(shape: &str, values: &[f64]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

/// The table as Parquet, y as a double.
fn parquet() -> Vec<u8> {
    let text = "message t { required double a; required double b; required double y; }";
    let schema = parse_message_type(text).unwrap();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema.into(), Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for j in 0..3 {
        let values: Vec<f64> = rows().iter().map(|r| r[j].parse().unwrap()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<DoubleType>();
        typed.write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// A Parquet file whose footer claims a column of negative size.
fn parquet_with_negative_size(folder: &Path) -> Vec<u8> {
    let path = folder.join("honest.parquet");
    std::fs::write(&path, parquet()).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let metadata = reader.metadata().clone();
    let mut group = metadata.row_group(0).clone().into_builder();
    let columns = group.take_columns().into_iter().map(|column| {
        let column = column.into_builder().set_total_compressed_size(-7);
        column.build().unwrap()
    });
    let group = group.set_column_metadata(columns.collect());
    let metadata = metadata.into_builder();
    let metadata = metadata
        .set_row_groups(vec![group.build().unwrap()])
        .build();
    let mut bytes = parquet();
    bytes.truncate(bytes.len() / 2);
    ParquetMetaDataWriter::new(&mut bytes, &metadata)
        .finish()
        .unwrap();
    bytes
}

fn dpmc(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpmc"));
    let command = command.current_dir(folder).args(arguments);
    command.output().unwrap()
}

/// Asserts exit code and message; a part `@text` stands for the line of `run` with `text`.
fn assert_refused(name: &str, run: &str, output: &Output, code: i32, says: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{name}: {message}");
    assert!(!message.contains("panicked"), "{name}: {message}");
    assert!(!message.contains(CELL), "{name}: quotes a cell: {message}");
    for part in says {
        let wanted = match part.strip_prefix('@') {
            Some(text) => {
                let line = run.lines().position(|l| l.contains(text));
                format!("run.toml, line {}:", line.unwrap() + 1)
            }
            None => (*part).to_string(),
        };
        assert!(
            message.contains(&wanted),
            "{name}: no '{wanted}': {message}"
        );
    }
}

/// `check` and `sample` refuse the run file, with exit code 2, and leave nothing behind.
fn assert_both_refuse(name: &str, folder: &Path, run: &str, flags: &[&str], says: &[&str]) {
    std::fs::write(folder.join("run.toml"), run).unwrap();
    let mut check = vec!["check", "run.toml"];
    check.extend(flags);
    assert_refused(name, run, &dpmc(folder, &check), 2, says);
    let mut sample = vec!["sample", "run.toml", "--out", "out"];
    sample.extend(flags);
    assert_refused(name, run, &dpmc(folder, &sample), 2, says);
    assert!(!folder.join("out").exists(), "{name}: leaves output");
}

/// Edits RUN; every edit must hit.
fn edited(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(RUN.to_string(), |text, (from, to)| {
        assert!(text.contains(from), "no '{from}' in the run file");
        text.replacen(from, to, 1)
    })
}

fn folder_with(file: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), bytes).unwrap();
    folder
}

#[test]
fn the_cases_differ_from_a_run_that_works() {
    let folder = folder_with("table.csv", csv(None).as_bytes());
    std::fs::write(folder.path().join("run.toml"), RUN).unwrap();
    let output = dpmc(folder.path(), &["sample", "run.toml", "--out", "out"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn bad_tables_are_refused_by_file_line_and_column() {
    let good = csv(None);
    let lines: Vec<&str> = good.lines().collect();
    let with_line = |line: &str| [&lines[..5], &[line], &lines[5..]].concat().join("\n");
    let ragged = |name, line: String| (name, with_line(&line), vec!["table.csv, line 6"]);
    let cell = |name, column: usize, text: &str| {
        let at = ["'a'", "'b'", "'y'"][column];
        (
            name,
            csv(Some((6, column, text))),
            vec!["table.csv, line 8", at],
        )
    };
    let table = |name, text: String, says: &[&'static str]| (name, text, says.to_vec());
    let cases = [
        table(
            "delimiter",
            good.replace(',', ";"),
            &["table.csv", "'a'", "delimiter"],
        ),
        ragged("too short", format!("0.1,{CELL}")),
        ragged("too long", format!("0.1,0.2,1,{CELL}")),
        cell("not a number", 1, CELL),
        cell("missing", 0, ""),
        cell("NaN", 0, "NAN"),
        cell("infinity", 1, "-inf"),
        cell("overflow", 1, "1e999"),
        cell("label is text", 2, CELL),
        cell("label is a number", 2, "2"),
        cell("label is missing", 2, ""),
        table("empty", String::new(), &["table.csv"]),
        table("header only", "a,b,y\n".into(), &["table.csv", "2"]),
        table("one row", "a,b,y\n0.1,0.2,1\n".into(), &["table.csv", "2"]),
        table(
            "unknown column",
            good.replace("a,b", "a,c"),
            &["table.csv", "'b'", "'c'"],
        ),
        table(
            "unknown label",
            good.replace('y', "z"),
            &["table.csv", "'y'", "'z'"],
        ),
        table(
            "column twice",
            good.replace("a,b", "a,a"),
            &["table.csv", "'a'"],
        ),
    ];
    for (name, text, says) in cases {
        let folder = folder_with("table.csv", text.as_bytes());
        assert_both_refuse(name, folder.path(), RUN, &[], &says);
    }
    let label = (
        "column = \"y\"",
        "column = \"y\"\npositive = [\"1\"]\nnegative = [\"0\"]",
    );
    let strict = ("scale = [-1, 1]", "one_hot = [\"0.000\"]\nstrict = true");
    for (name, edit, column) in [("named labels", label, 2), ("strict levels", strict, 1)] {
        let mut table = csv(Some((0, column, CELL)));
        if column == 1 {
            table = table.replace("a,b,y", "x,b,y");
        }
        let run = edited(&[edit]).replace("columns = [\"a\", \"b\"]", "column = \"b\"");
        let at = ["'a'", "'b'", "'y'"][column];
        let folder = folder_with("table.csv", table.as_bytes());
        assert_both_refuse(name, folder.path(), &run, &[], &["table.csv, line 2", at]);
    }
}

#[test]
fn damaged_and_missing_files_are_refused_by_name() {
    let (zipped, columnar) = (gzip(csv(None).as_bytes()), parquet());
    let folder = tempfile::tempdir().unwrap();
    let negative = parquet_with_negative_size(folder.path());
    let too_large = npy("(1000000000000, 2)", &[0.0; 8]);
    let too_wide = npy("(2, 1000000000000000000)", &[0.0; 8]);
    let half = |bytes: &[u8]| Some(bytes[..bytes.len() / 2].to_vec());
    let cases = [
        ("table.csv", None, "no such file"),
        ("table.xls", Some(csv(None).into_bytes()), ".csv"),
        (
            "table.csv",
            Some(b"a,b,y\n0.1,\xff\xfe,1\n".to_vec()),
            "line 2",
        ),
        ("table.csv.gz", half(&zipped), "truncated"),
        (
            "table.csv.gz",
            Some(zipped[..zipped.len() - 3].to_vec()),
            "truncated",
        ),
        ("table.csv.gz", Some(Vec::new()), "truncated"),
        ("table.csv.gz", Some(csv(None).into_bytes()), "gzip"),
        ("table.parquet", half(&columnar), "truncated"),
        ("table.parquet", Some(negative), "Parquet"),
        ("table.npy", Some(npy("(40, 3)", &[0.5; 60])), "NPY"),
        ("table.npy", half(&npy("(40, 3)", &[])), "NPY"),
        ("table.npy", Some(too_wide), ""),
        // Said before a row is read: the file holds none.
        ("table.npy", Some(too_large), "memory"),
    ];
    for (i, (file, bytes, says)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        if let Some(bytes) = bytes {
            std::fs::write(folder.path().join(file), bytes).unwrap();
        }
        let mut run = edited(&[("table.csv", file)]);
        if file == "table.npy" {
            run = run.replace("[data.label]\ncolumn = \"y\"\n", "");
            run = run.replace("\"a\", \"b\"", "\"x0\", \"x1\"");
            run = run.replace("\"logistic\"", "\"gaussian-mean\"");
            run = run.replace(
                "tempering",
                "box = 3\ncovariance = [[1,0,0],[0,1,0],[0,0,1]]\ntempering",
            );
        }
        assert_both_refuse(
            &format!("case {i}"),
            folder.path(),
            &run,
            &[],
            &[file, says],
        );
    }
}

#[test]
fn bad_keys_are_refused_by_line_and_key() {
    let scale = "scale = [-1, 1]";
    let prior = "sd = 3.0";
    let (epsilon, delta) = ("epsilon = 5.0", "delta = 1e-6");
    let algorithm = "\"barker\"";
    type Case = (&'static str, &'static str, &'static [&'static str]);
    let cases: &[Case] = &[
        (
            scale,
            "scale = [1, -1]",
            &["run.toml, line", "data.features[1]", "reversed"],
        ),
        (
            scale,
            "clamp = [1, 1]",
            &["run.toml, line", "data.features[1]"],
        ),
        (
            scale,
            "scale = [nan, 1]",
            &["run.toml, line", "data.features[1]", "finite"],
        ),
        (scale, "scale = [1]", &["@scale = [1]"]),
        (
            scale,
            "",
            &["run.toml, line", "data.features[1]", "bounds are missing"],
        ),
        (
            "row_norm = 2.0",
            "row_norm = 0",
            &["@row_norm", "data.row_norm"],
        ),
        (
            "row_norm = 2.0",
            "row_norm = -1",
            &["@row_norm", "data.row_norm"],
        ),
        (
            "row_norm = 2.0",
            "row_norm = nan",
            &["@row_norm", "data.row_norm"],
        ),
        (epsilon, "epsilon = 0", &["@epsilon", "privacy.epsilon"]),
        (epsilon, "epsilon = -0.5", &["@epsilon", "privacy.epsilon"]),
        (epsilon, "epsilon = inf", &["@epsilon", "privacy.epsilon"]),
        (delta, "delta = 0", &["@delta", "privacy.delta"]),
        (delta, "delta = 1", &["@delta", "privacy.delta"]),
        (delta, "delta = nan", &["@delta", "privacy.delta"]),
        (delta, "", &["@epsilon", "delta"]),
        (epsilon, "", &["@delta", "epsilon"]),
        (
            "epsilon = 5.0\ndelta = 1e-6",
            "",
            &["no budget", "--not-private"],
        ),
        (
            delta,
            "delta = 1e-6\nnot_private = true",
            &["@not_private", "epsilon"],
        ),
        (
            "epsilon = 5.0\ndelta = 1e-6",
            "not_private = true\nledger = 'l'",
            &["@ledger ="],
        ),
        ("chains = 1", "chains = 0", &["@chains", "run.chains"]),
        (
            "iterations = 20",
            "iterations = 0",
            &["@iterations", "run.iterations"],
        ),
        (
            "tempering = 1.0",
            "tempering = 0.0",
            &["@tempering", "model.tempering"],
        ),
        (
            "tempering = 1.0",
            "tempering = 1.01",
            &["@tempering", "model.tempering"],
        ),
        (
            "tempering = 1.0",
            "tempering = nan",
            &["@tempering", "model.tempering"],
        ),
        (prior, "sd = 0", &["@sd = 0", "model.prior.sd"]),
        (prior, "sd = [1, 0, 1]", &["@sd = [", "model.prior.sd"]),
        (
            "\"normal\", sd = 3.0",
            "\"laplace\", scale = 0",
            &["@laplace", "model.prior.scale"],
        ),
        (
            algorithm,
            "\"mh\"",
            &["@\"mh\"", "sampler.algorithm", "--not-private"],
        ),
        (
            algorithm,
            "\"tuna-mh\"",
            &["@\"tuna-mh\"", "sampler.algorithm"],
        ),
        // Unknown keys, with the nearest valid one.
        (
            "row_norm",
            "row_nrom",
            &["@row_nrom", "nearest valid one is `row_norm`"],
        ),
        (
            "tempering",
            "temperng",
            &["@temperng", "nearest valid one is `tempering`"],
        ),
        (
            "[privacy]",
            "[privcy]",
            &["@[privcy]", "nearest valid one is `privacy`"],
        ),
        (
            algorithm,
            "\"barkr\"",
            &["@\"barkr\"", "nearest valid one is `barker`"],
        ),
        ("iterations = 20", "iterations = \"few\"", &["@\"few\""]),
        ("[run]", "[run", &["@[run"]),
        // Contradictions.
        (
            scale,
            "scale = [-1, 1]\nclamp = [-1, 1]",
            &["run.toml, line", "data.features[1]"],
        ),
        ("step", "lambda = 3.0\nstep", &["@lambda", "sampler.lambda"]),
        ("step", "tau = 3.0\nstep", &["@tau", "sampler.tau"]),
        (
            algorithm,
            "\"poisson-barker\"\nlambda = 3.0\nchi = 2.0",
            &["@chi", "sampler.chi"],
        ),
        (
            "step",
            "scale = 1\ncovariance = [[1]]\nstep",
            &["@covariance", "'scale'"],
        ),
        (
            "row_norm",
            "label_file = 'l.npy'\nrow_norm",
            &["@label_file", "[data.label]"],
        ),
        (
            "\"logistic\"",
            "\"logistic\"\nvariance = 2",
            &["@variance", "model.variance"],
        ),
        (
            "\"a\", \"b\"",
            "\"a\", \"a\"",
            &["run.toml, line", "data.features", "'a'"],
        ),
    ];
    let folder = folder_with("table.csv", csv(None).as_bytes());
    for (from, to, says) in cases {
        assert_both_refuse(to, folder.path(), &edited(&[(from, to)]), &[], says);
    }
}

#[test]
fn bad_flags_are_refused() {
    let folder = folder_with("table.csv", csv(None).as_bytes());
    let cases: &[(&[&str], &str)] = &[
        (&["--epsilon", "0"], "epsilon"),
        (&["--epsilon=-1"], "epsilon"),
        (&["--delta", "1"], "delta"),
        (&["--chains", "0"], "chains"),
        (&["--iterations", "0"], "iterations"),
        (&["--iterations", "18446744073709551615"], "iterations"),
        (&["--algorithm", "mh"], "algorithm"),
        (&["--algorithm", "barkr"], "--algorithm"),
        (&["--not-private", "--epsilon", "1"], "--not-private"),
        (&["--not-private", "--ledger", "l.json"], "ledger"),
        (&["--data", "absent.csv"], "absent.csv"),
    ];
    for (flags, says) in cases {
        assert_both_refuse(&flags.join(" "), folder.path(), RUN, flags, &[says]);
    }
}

#[test]
fn a_budget_too_small_for_one_step_names_a_step_that_fits() {
    let folder = folder_with("table.csv", csv(None).as_bytes());
    let algorithms = [
        ("\"barker\"", 1e-4),
        ("\"barker\"", 7e-3),
        ("\"barker\"\nclip = { rms = 2.0 }", 3e-3),
        ("\"poisson-barker\"\nlambda_ratio = 0.5", 1e-3),
        ("\"poisson-barker\"\nlambda = 10.0", 1e-2),
        ("\"poisson-barker\"\nchi = 0.5", 0.2),
    ];
    for (algorithm, epsilon) in algorithms {
        let epsilon = format!("epsilon = {epsilon}");
        let run = |step: &str| {
            edited(&[
                ("\"barker\"", algorithm),
                ("step = 0.001", &format!("step = {step}")),
                ("epsilon = 5.0", &epsilon),
            ])
        };
        let says = ["@epsilon", "privacy.epsilon", "proposal step of "];
        assert_both_refuse(algorithm, folder.path(), &run("1.4"), &[], &says);
        let output = dpmc(folder.path(), &["check", "run.toml"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let step = message.split("proposal step of ").nth(1).unwrap();
        let step = step.split_whitespace().next().unwrap();
        std::fs::write(folder.path().join("run.toml"), run(step)).unwrap();
        let output = dpmc(folder.path(), &["check", "run.toml"]);
        assert!(
            output.status.success(),
            "{algorithm}: step {step}: {output:?}"
        );
    }
    // The cost of a penalty step does not depend on its size.
    let run = edited(&[
        ("\"barker\"", "\"dp-penalty\"\ntau = 1.0"),
        ("= 5.0", "= 0.01"),
    ]);
    assert_both_refuse("penalty", folder.path(), &run, &[], &["tau"]);
    let output = dpmc(folder.path(), &["check", "run.toml"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("proposal step"));
}

#[test]
fn a_missing_test_table_is_said_before_the_budget_is_spent() {
    let folder = folder_with("table.csv", csv(None).as_bytes());
    for (public, says) in [("true", "absent.csv"), ("false", "test.public")] {
        let run = format!("{RUN}[test]\nfile = \"absent.csv\"\npublic = {public}\n");
        std::fs::write(folder.path().join("run.toml"), &run).unwrap();
        let output = dpmc(folder.path(), &["sample", "run.toml", "--out", "out"]);
        assert_refused("test table", &run, &output, 2, &[says]);
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn output_that_cannot_be_written_or_is_taken_is_left_alone() {
    let folder = folder_with("table.csv", csv(None).as_bytes());
    let path = folder.path();
    std::fs::write(path.join("run.toml"), RUN).unwrap();
    std::fs::create_dir(path.join("taken")).unwrap();
    std::fs::write(path.join("taken/note"), "mine").unwrap();
    let sample = |out: &str| dpmc(path, &["sample", "run.toml", "--out", out]);
    assert_refused(
        "taken",
        RUN,
        &sample("taken"),
        2,
        &["taken", "not empty", "--resume"],
    );
    assert_eq!(std::fs::read_dir(path.join("taken")).unwrap().count(), 1);
    assert_refused(
        "below a file",
        RUN,
        &sample("table.csv/out"),
        1,
        &["table.csv/out"],
    );
    assert_refused("a file", RUN, &sample("table.csv"), 1, &["table.csv"]);
    assert_eq!(
        std::fs::read_to_string(path.join("table.csv")).unwrap(),
        csv(None)
    );
    let init = dpmc(path, &["init", "table.csv", "--out", "table.csv/run.toml"]);
    assert_refused("init", RUN, &init, 1, &["table.csv/run.toml"]);
    // Folders made for a run that is then refused are taken away again.
    let flags = ["--data", "absent.csv"];
    let arguments = [&["sample", "run.toml", "--out", "new/deep/out"][..], &flags].concat();
    assert_refused("nested", RUN, &dpmc(path, &arguments), 2, &["absent.csv"]);
    assert!(!path.join("new").exists());
    for arguments in [
        ["sample", "--resume", "absent"],
        ["summary", "absent", "--json"],
    ] {
        assert_refused("no run", RUN, &dpmc(path, &arguments), 2, &["absent"]);
    }
}

/// A child that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_foreign_damaged_or_locked_ledger_is_refused_and_unchanged() {
    let folder = folder_with("table.csv", csv(None).as_bytes());
    let path = folder.path();
    let short: Vec<String> = csv(None).lines().take(30).map(String::from).collect();
    std::fs::write(path.join("short.csv"), short.join("\n")).unwrap();
    std::fs::write(path.join("damaged.json"), "{}").unwrap();
    let named = edited(&[("file", "name = \"people\"\nfile")]);
    std::fs::write(path.join("run.toml"), &named).unwrap();
    let sample = |out: &str, flags: &[&str]| {
        let run = ["sample", "run.toml", "--quiet", "--out", out];
        dpmc(path, &[&run[..], flags].concat())
    };
    assert!(sample("first", &["--ledger", "l.json"]).status.success());
    let before = std::fs::read(path.join("l.json")).unwrap();
    let other = edited(&[("file", "name = \"others\"\nfile")]);
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            &other,
            &["--ledger", "l.json"],
            &["l.json", "'people'", "'others'"],
        ),
        (
            &named,
            &["--ledger", "l.json", "--data", "short.csv"],
            &["l.json", "40", "29"],
        ),
        (
            &named,
            &["--ledger", "l.json", "--epsilon", "2"],
            &["l.json", "budget"],
        ),
        (
            &named,
            &["--ledger", "damaged.json"],
            &["damaged.json", "damaged"],
        ),
        (&named, &["--ledger", "absent/l.json"], &["absent/l.json"]),
    ];
    for (run, flags, says) in cases {
        std::fs::write(path.join("run.toml"), run).unwrap();
        assert_refused("ledger", run, &sample("out", flags), 2, says);
        assert!(!path.join("out").exists());
    }
    assert_eq!(std::fs::read(path.join("l.json")).unwrap(), before);

    std::fs::write(path.join("run.toml"), edited(&[("0.001", "1e-7")])).unwrap();
    let long = "sample run.toml --quiet --out long --ledger held.json --iterations 1000000000";
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpmc"));
    let command = command.current_dir(path).args(long.split(' '));
    let _running = Running(command.stderr(Stdio::null()).spawn().unwrap());
    let start = Instant::now();
    while !path.join("held.json").exists() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "no ledger appears"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = sample("out", &["--ledger", "held.json"]);
    assert_refused("locked", RUN, &output, 2, &["held.json", "in use"]);
    assert!(!path.join("out").exists());
}

/// Loads `bytes` as `file` with declarations that fit the table above.
fn load(file: &str, bytes: &[u8]) -> Result<usize, String> {
    let folder = folder_with(file, bytes);
    let feature = |column: &str| Feature {
        column: Some(column.into()),
        kind: FeatureKind::Scale {
            low: -1.0,
            high: 1.0,
        },
        missing: None,
    };
    let numbered = file.ends_with(".npy");
    let source = Source {
        path: folder.path().join(file),
        label_file: None,
        features: vec![feature(if numbered { "x1" } else { "a" })],
        label: (!numbered).then(|| Label {
            column: "y".into(),
            levels: LabelLevels::ZeroOne,
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
    let mut panics = Vec::new();
    for i in 0..good.len() {
        for change in [0x01, 0x02, 0x10, 0x7f, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[i] ^= change;
            if std::panic::catch_unwind(|| load("t.parquet", &bytes)).is_err() {
                panics.push((i, change));
            }
        }
    }
    assert!(
        panics.is_empty(),
        "bytes (offset, xor) that panic: {panics:?}"
    );
}

/// Damage to a file or text: bytes replaced, put in, cut out, or the end cut off.
fn damage() -> impl Strategy<Value = Vec<(u8, prop::sample::Index, u8)>> {
    prop::collection::vec((0u8..4, any::<prop::sample::Index>(), any::<u8>()), 1..8)
}

fn damaged(good: &[u8], damage: &[(u8, prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (kind, at, byte) in damage {
        let at = at.index(bytes.len().max(1)).min(bytes.len());
        match kind {
            0 if at < bytes.len() => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            2 => drop(bytes.drain(at..(at + usize::from(*byte % 16)).min(bytes.len()))),
            3 if byte % 4 == 0 => bytes.truncate(at),
            _ => {}
        }
    }
    bytes
}

fn parse(text: String) {
    if let Ok(plan) = Plan::parse(&PathBuf::from("run.toml"), text) {
        let _ = (plan.check_declarations(), plan.resolved());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn arbitrary_text_is_no_reason_to_panic(text in "(?s).{0,200}") {
        let _ = load("t.csv", text.as_bytes());
        parse(text);
    }

    #[test]
    fn damaged_run_files_never_panic(hits in damage(), lines in any::<[prop::sample::Index; 2]>()) {
        parse(String::from_utf8_lossy(&damaged(RUN.as_bytes(), &hits)).into_owned());
        let mut swapped: Vec<&str> = RUN.lines().collect();
        let count = swapped.len();
        swapped.swap(lines[0].index(count), lines[1].index(count));
        parse(swapped.join("\n"));
    }

    #[test]
    fn odd_values_in_run_files_never_panic(line in any::<prop::sample::Index>(), value in prop::sample::select(vec![
        "0", "-1", "nan", "inf", "1e308", "5e-324", "9223372036854775807", "true", "''", "[]", "[[1]]", "[0, 1]", "{}",
        "{ kind = 'flat' }", "{ in = [] }", "'mixture'", "'gaussian-mean'", "'dp-penalty'",
    ])) {
        let mut lines: Vec<String> = RUN.lines().map(String::from).collect();
        let at = line.index(lines.len());
        if let Some((key, _)) = lines[at].clone().split_once(" = ") {
            lines[at] = format!("{key} = {value}");
        }
        parse(lines.join("\n"));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for file in ["t.csv", "t.tsv", "t.csv.gz", "t.npy", "t.parquet"] {
            let _ = load(file, &bytes);
        }
    }

    #[test]
    fn damaged_tables_never_panic(hits in damage()) {
        let text = csv(None);
        let _ = load("t.csv", &damaged(text.as_bytes(), &hits));
        let _ = load("t.csv.gz", &damaged(&gzip(text.as_bytes()), &hits));
        let _ = load("t.csv.gz", &gzip(&damaged(text.as_bytes(), &hits)));
        let _ = load("t.npy", &damaged(&npy("(20, 2)", &[0.5; 40]), &hits));
        let _ = load("t.parquet", &damaged(&parquet(), &hits));
    }

    #[test]
    fn lying_npy_headers_never_panic(shape in prop::collection::vec(prop::sample::select(vec![
        0, 1, 2, 20, 1 << 32, 1_000_000_000_000_000_000, u64::MAX,
    ]), 0..4)) {
        let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
        let _ = load("t.npy", &npy(&format!("({},)", shape.join(", ")), &[0.5; 40]));
    }
}
