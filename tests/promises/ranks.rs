//! The promise: rows may lie on any number of ranks, and a seeded run draws the same bits, charges
//! the same ledger and says the same of itself but for how many ranks there were.

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::common::ranks::links;
use crate::common::tables::npy;
use dpmc::config::Plan;
use dpmc::data::Room;
use dpmc::data::Share;
use dpmc::run::{Coins, Leader, Place, Prepared, RunError, prepare, prepare_over, serve};

/// More rows than are dealt together, in some files of unequal length.
const ROWS: usize = 10_000;
const NAMES: [&str; 6] = ["a", "b", "y", "n", "person", "w"];
/// Of which a Parquet file has some groups.
const GROUP: usize = 1_500;

fn cells(i: usize) -> [f64; 6] {
    let turn = |rate: f64| (rate * i as f64).sin();
    let four = |v: f64| (v * 1e4).round() / 1e4;
    let (a, b) = (turn(1.3), turn(0.7) + 0.2 * turn(2.1));
    let noise = 0.5 * turn(12.9898 * i as f64);
    let y = f64::from(u8::from(0.8 * a - 0.5 * b + noise > 0.1));
    let count = (1.5 + a + noise).max(0.0).round();
    // Some persons have a row, others up to nine, anywhere in the table.
    let person = (i * i % 4_999) as f64;
    let bound = if i.is_multiple_of(7) { 1.0 } else { 0.3 };
    [four(a), four(b), y, count, person, bound]
}

fn line(i: usize) -> String {
    let cells = cells(i).map(|v| v.to_string());
    cells.join(",") + "\n"
}

/// A Parquet file of these rows; `odd` has no number in column b.
fn parquet(rows: Range<usize>, odd: Option<usize>) -> Vec<u8> {
    let fields = NAMES.map(|name| format!("required double {name};"));
    let schema = parse_message_type(&format!("message t {{ {} }}", fields.concat())).unwrap();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema.into(), Default::default()).unwrap();
    for first in rows.clone().step_by(GROUP) {
        let mut group = writer.next_row_group().unwrap();
        for (j, name) in NAMES.into_iter().enumerate() {
            let cell = |i| match odd == Some(i) && name == "b" {
                true => f64::NAN,
                false => cells(i)[j],
            };
            let values: Vec<f64> = (first..rows.end.min(first + GROUP)).map(cell).collect();
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<DoubleType>();
            typed.write_batch(&values, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn tables(folder: &Path) {
    let text = |rows: std::ops::Range<usize>| -> String {
        let lines: Vec<String> = rows.map(line).collect();
        format!("{}\n{}", NAMES.join(","), lines.concat())
    };
    std::fs::write(folder.join("one.parquet"), parquet(0..ROWS, None)).unwrap();
    std::fs::create_dir(folder.join("two")).unwrap();
    std::fs::write(folder.join("two/0.parquet"), parquet(0..2_000, None)).unwrap();
    std::fs::write(folder.join("two/1.parquet"), parquet(2_000..ROWS, None)).unwrap();
    let bounds = |bytes: &mut Vec<u8>, i| bytes.extend(cells(i)[5].to_le_bytes());
    let mut bytes = npy(&format!("({ROWS},)"), 0);
    (0..ROWS).for_each(|i| bounds(&mut bytes, i));
    std::fs::write(folder.join("bounds.npy"), bytes).unwrap();
    std::fs::write(folder.join("one.csv"), text(0..ROWS)).unwrap();
    std::fs::create_dir(folder.join("many")).unwrap();
    for (file, rows) in [0..10, 10..5_000, 5_000..5_001, 5_001..9_000, 9_000..ROWS]
        .into_iter()
        .enumerate()
    {
        std::fs::write(folder.join(format!("many/{file}.csv")), text(rows)).unwrap();
    }
}

fn text(file: &str, model: &str, sampler: &str, privacy: &str) -> String {
    let label = match model.contains("poisson") || model.contains("negative-binomial") {
        true => "column = \"n\"\ncount = 9",
        false => "column = \"y\"",
    };
    let label = match model.contains("gaussian-mean") {
        true => String::new(),
        false => format!("[data.label]\n{label}\n[[data.features]]\nintercept = true\n"),
    };
    format!(
        "[data]\nfile = \"{file}\"\n{label}[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-1, 1]\n[model]\n{model}\n[sampler]\n{sampler}\n[run]\niterations = 40\nseed = 5\nengine = \"cpu\"\n{privacy}"
    )
}

/// Draws to the bit, and the certificate without what names the machine.
fn outcome(prepared: Prepared) -> (Vec<Vec<u64>>, serde_json::Value, String) {
    let mut run = prepared.begin(Place::Memory, Coins::Seeded(9)).unwrap();
    while *run.step() == dpmc::posterior_run::Status::Running {}
    let (draws, certificate) = run.take_draws();
    let bits = draws
        .iter()
        .map(|d| d.theta.iter().map(|v| v.to_bits()).collect());
    let mut certificate = serde_json::to_value(&certificate).unwrap();
    let driver = certificate["engine"]["driver"].take();
    (bits.collect(), certificate, driver.to_string())
}

fn plan(folder: &Path, text: &str) -> Plan {
    Plan::parse(&folder.join("run.toml"), text.into()).unwrap()
}

/// Prepares and makes a run over so many ranks, which are threads.
fn over<T>(size: usize, plan: Plan, made: impl FnOnce(Result<Prepared, RunError>) -> T) -> T {
    let mut links = links(size).into_iter();
    let first = links.next().unwrap();
    std::thread::scope(|scope| {
        for link in links {
            scope.spawn(move || {
                let served = std::panic::catch_unwind(AssertUnwindSafe(|| serve(&link)));
                // Others would wait for it forever.
                if !matches!(served, Ok(Ok(()))) {
                    std::process::abort();
                }
            });
        }
        let mut leader = Leader::new(Arc::new(first));
        let prepared = prepare_over(plan, &mut leader);
        made(prepared)
    })
}

const PRIVATE: &str = "[privacy]\nepsilon = 40.0\ndelta = 1e-6\n";
const OPEN: &str = "[privacy]\nnot_private = true\n";
const LOGISTIC: &str = "kind = \"logistic\"\nprior = { kind = \"normal\", sd = 2.0 }";
const POISSON: &str = "kind = \"poisson\"\nprior = { kind = \"normal\", sd = 2.0 }";
const NETWORK: &str = "kind = \"mlp\"\nhidden = 4\nprior = { kind = \"normal\", sd = 1.0 }";
const LAYERS: &str = "kind = \"network\"\nlayers = [{ dense = 4 }, \"tanh\"]\nprior = { kind = \"normal\", sd = 1.0 }";
const SHARED: &str = "kind = \"negative-binomial\"\nprior = { kind = \"normal\", sd = 2.0 }\nparameters = { log_shape = { mean = 0, sd = 2 } }";
const MEAN: &str = "kind = \"gaussian-mean\"\ncovariance = [[0.3, 0.0], [0.0, 0.3]]\nprior = { kind = \"normal\", sd = 1.0 }";

#[test]
fn any_number_of_ranks_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let step = "step = 1e-3";
    let clip = "gradient = { clip = 1.0 }";
    let batch = "gradient = { clip = 1.0, rate = 0.02 }";
    let cases = [
        (LOGISTIC, format!("algorithm = \"mh\"\n{step}"), OPEN),
        (LOGISTIC, format!("algorithm = \"barker\"\n{step}"), PRIVATE),
        (
            LOGISTIC,
            format!("algorithm = \"poisson-barker\"\n{step}"),
            PRIVATE,
        ),
        (POISSON, "algorithm = \"anchored-barker\"".into(), PRIVATE),
        (LOGISTIC, "algorithm = \"dp-laplace\"".into(), PRIVATE),
        (
            LOGISTIC,
            format!("algorithm = \"dp-hmc\"\nleapfrog_steps = 3\n{step}\n{clip}"),
            PRIVATE,
        ),
        (
            LOGISTIC,
            format!("algorithm = \"dp-sgld\"\n{batch}"),
            PRIVATE,
        ),
        (
            NETWORK,
            format!("algorithm = \"dp-sgld\"\n{batch}"),
            PRIVATE,
        ),
        (LAYERS, format!("algorithm = \"dp-sgld\"\n{batch}"), PRIVATE),
        (SHARED, "algorithm = \"anchored-barker\"".into(), PRIVATE),
        (SHARED, format!("algorithm = \"mh\"\n{step}"), OPEN),
        (
            MEAN,
            "algorithm = \"anchored-barker\"\nstep = 0.05".into(),
            PRIVATE,
        ),
    ];
    for (model, sampler, privacy) in cases {
        let files = [
            ("one.csv", 1),
            ("one.csv", 2),
            ("one.csv", 3),
            ("one.csv", 8),
            ("many", 2),
            ("many", 3),
        ];
        let text = |file: &str| text(file, model, &sampler, privacy);
        same_bits(folder.path(), &text, &files);
    }
}

/// Runs over a table's files, each on so many ranks, are those of one process over the first.
fn same_bits(folder: &Path, text: &dyn Fn(&str) -> String, files: &[(&str, usize)]) {
    let alone = outcome(prepare(plan(folder, &text(files[0].0))).unwrap());
    for (file, size) in files {
        let text = text(file);
        let (draws, certificate, driver) = over(*size, plan(folder, &text), |prepared| {
            outcome(prepared.unwrap())
        });
        assert_eq!(draws, alone.0, "{file}, {size} ranks: {text}");
        assert!(driver.contains(&format!("{size} ranks")), "{driver}");
        assert_eq!(certificate, alone.1, "{file}, {size} ranks: {text}");
    }
}

/// Each rank's rows lie in files of its own: of blocks, of files and of row groups, as they are made
/// and as they are found again.
#[test]
fn ranks_keep_their_rows_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let sampler = "algorithm = \"anchored-barker\"";
    let run = |file: &str, size: usize, cache: Option<&str>| {
        let mut plan = plan(folder.path(), &text(file, LOGISTIC, sampler, PRIVATE));
        let room = Room {
            memory: Some(1),
            cache: cache.map(|name| folder.path().join(name)),
        };
        plan.keep_rows(room);
        over(size, plan, |prepared| outcome(prepared.unwrap()))
    };
    let memory = text("one.csv", LOGISTIC, sampler, PRIVATE);
    let memory = outcome(prepare(plan(folder.path(), &memory)).unwrap());
    for (file, size) in [("one.csv", 2), ("many", 3), ("one.parquet", 3)] {
        let cache = format!("{file}-kept");
        for room in [None, Some(&*cache), Some(&*cache)] {
            let (draws, certificate, _) = run(file, size, room);
            assert_eq!(draws, memory.0, "{file}, {size} ranks, {room:?}");
            assert_eq!(certificate, memory.1, "{file}, {size} ranks, {room:?}");
        }
        let kept = std::fs::read_dir(folder.path().join(cache)).unwrap();
        assert_eq!(kept.count(), 3 * size, "{file}");
    }
}

#[test]
#[ignore = "study"]
fn persons_with_several_rows_lie_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let hmc = "algorithm = \"hmc\"\nleapfrog_steps = 3\nstep = 1e-3";
    for (model, sampler, privacy) in [
        (LOGISTIC, "algorithm = \"mh\"\nstep = 1e-3", OPEN),
        (POISSON, "algorithm = \"anchored-barker\"", PRIVATE),
        (LOGISTIC, "algorithm = \"dp-laplace\"", PRIVATE),
        (SHARED, "algorithm = \"anchored-barker\"", PRIVATE),
        (LOGISTIC, hmc, OPEN),
        (LOGISTIC, "algorithm = \"barker\"\nstep = 1e-3", PRIVATE),
        (
            LOGISTIC,
            "algorithm = \"poisson-barker\"\nstep = 1e-3",
            PRIVATE,
        ),
        (
            LOGISTIC,
            "algorithm = \"dp-sgld\"\ngradient = { clip = 1.0, rate = 0.02 }",
            PRIVATE,
        ),
    ] {
        for (rows, storage) in [(1, "f32"), (9, "i16")] {
            let text = |file: &str| {
                let keys = format!(
                    "[data]\nunit = \"person\"\nrows_per_unit = {rows}\nstorage = \"{storage}\"\n"
                );
                text(file, model, sampler, privacy).replace("[data]\n", &keys)
            };
            let files = [
                ("one.csv", 1),
                ("one.csv", 2),
                ("many", 3),
                ("one.parquet", 8),
            ];
            same_bits(folder.path(), &text, &files);
        }
    }
}

#[test]
fn rows_with_bounds_of_their_own_lie_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    for (sampler, privacy) in [
        ("algorithm = \"poisson-barker\"\nstep = 1e-3", PRIVATE),
        ("algorithm = \"barker\"\nstep = 1e-3", PRIVATE),
        ("algorithm = \"tuna-mh\"\nstep = 1e-3", OPEN),
        ("algorithm = \"sgld\"\ngradient = { rate = 0.02 }", OPEN),
    ] {
        for bounds in ["column = \"w\"", "file = \"bounds.npy\""] {
            let text = |file: &str| {
                let keys = format!("[data.bounds]\n{bounds}\npublic = true\n[model]\n");
                text(file, LOGISTIC, sampler, privacy).replace("[model]\n", &keys)
            };
            let files = [
                ("one.csv", 1),
                ("one.csv", 3),
                ("many", 2),
                ("many", 8),
                ("one.parquet", 3),
            ];
            same_bits(folder.path(), &text, &files);
        }
    }
}

#[test]
fn row_groups_lie_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    for (sampler, privacy) in [
        ("algorithm = \"mh\"\nstep = 1e-3", OPEN),
        (
            "algorithm = \"dp-sgld\"\ngradient = { clip = 1.0, rate = 0.02 }",
            PRIVATE,
        ),
    ] {
        let text = |file: &str| text(file, LOGISTIC, sampler, privacy);
        // There are seven row groups; in two files eight.
        let files = [
            ("one.csv", 1),
            ("one.parquet", 1),
            ("one.parquet", 2),
            ("one.parquet", 3),
            ("one.parquet", 7),
            ("one.parquet", 8),
            ("two", 2),
            ("two", 3),
            ("two", 8),
            ("two", 9),
        ];
        same_bits(folder.path(), &text, &files);
    }
}

/// What another rank has is not read.
#[test]
fn a_rank_reads_its_own_row_groups_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(
        "one.parquet",
        LOGISTIC,
        "algorithm = \"mh\"\nstep = 1e-3",
        OPEN,
    );
    let load = |rank, size| {
        let share = Share {
            rank,
            size,
            beside: size,
        };
        let loaded = plan(folder.path(), &text).load_share(share);
        loaded
            .map(|(data, _)| data.rows())
            .map_err(|e| e.to_string())
    };
    std::fs::write(folder.path().join("one.parquet"), parquet(0..ROWS, None)).unwrap();
    let rows = [0, 1, 2].map(|rank| load(rank, 3).unwrap());
    assert_eq!(rows, [3_000, 3_000, 4_000]);
    // Row 5,001 is of the fourth group, the second rank's. All read it where groups are too few.
    std::fs::write(
        folder.path().join("one.parquet"),
        parquet(0..ROWS, Some(5_000)),
    )
    .unwrap();
    assert_eq!(load(0, 3), Ok(3_000));
    assert_eq!(load(2, 3), Ok(4_000));
    let said = prepare(plan(folder.path(), &text))
        .err()
        .unwrap()
        .to_string();
    assert!(
        said.contains("one.parquet, line 5001, column 'b'"),
        "{said}"
    );
    assert_eq!(load(1, 3).unwrap_err(), said);
    assert_eq!(load(1, 8).unwrap_err(), said);
    assert_eq!(load(0, 8), Ok(4_096));
}

#[test]
fn what_goes_wrong_on_a_rank_is_said_and_all_end() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let said = |text: &str, size: usize| -> String {
        over(size, plan(folder.path(), text), |prepared| match prepared {
            Ok(_) => "nothing".into(),
            Err(e) => e.to_string(),
        })
    };
    let sampler = "algorithm = \"barker\"\nstep = 1e-3";
    let good = text("many", LOGISTIC, sampler, PRIVATE);
    assert_eq!(said(&good, 3), "nothing");
    // The last file is another rank's.
    std::fs::write(
        folder.path().join("many/4.csv"),
        "a,b,y,n,person,w\n0.1,secret,1,1,1,1\n",
    )
    .unwrap();
    let what = said(&good, 3);
    assert!(
        what.contains("rank 2") && what.contains("4.csv, line 2, column 'b'"),
        "{what}"
    );
    assert!(!what.contains("secret"), "{what}");
    // Units are found by every rank, so that rank 0 says it itself, as one process would.
    let anchored = text("many", LOGISTIC, "algorithm = \"anchored-barker\"", PRIVATE);
    let keys = "[data]\nunit = \"person\"\nrows_per_unit = 2\n";
    let what = said(&anchored.replace("[data]\n", keys), 3);
    assert!(what.contains("4.csv, line 2, column 'b'"), "{what}");
    assert!(!what.contains("rank") && !what.contains("secret"), "{what}");
    std::fs::write(folder.path().join("one.csv"), "a,b,y,n\n0.1,0.2,1,1\n").unwrap();
    let what = said(&text("one.csv", LOGISTIC, sampler, PRIVATE), 2);
    assert!(what.contains("1 row(s)"), "{what}");
}
