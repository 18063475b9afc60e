//! The promise: no run file and no table makes a panic, whatever its bytes.

use std::path::Path;

use crate::common::tables::{RUN, csv, edit, folder_with, gzip, npy, parquet, run_over};
use dpmc::config::Plan;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Values that few keys can take.
const ODD: &str = "-1|nan|inf|1e308|5e-324|9223372036854775807|true|''|[]|[[1]]|[0, 1]|{}|\
    { kind = 'flat' }|{ in = [] }|'mixture'|'gaussian-mean'|'dp-penalty'";

/// Every key of features and products, in place of those of RUN.
const FEATURES: &str = r#"column = "a"
scale = [0.5, 1]
transform = "log"
spline = { knots = [0.7, 0.8] }
missing = 0.6
[[data.features]]
column = "b"
clamp = [-1, 1]
transform = "asinh"
standardize = { mean = 0.1, sd = 0.5 }
[[data.features]]
column = "c"
scale = [0, 1]
polynomial = 3
[[data.features]]
column = "d"
one_hot = ["u", "v"]
groups = { w = ["x", "y"] }
reference = "w"
[[data.interactions]]
features = ["a", "d"]
"#;

/// Columns and a formula, in place of label and features of RUN.
const COLUMNS: &str = r#"[columns]
a = { scale = [0.5, 1], missing = 0.6 }
"b b" = { clamp = [-1, 1], standardize = { mean = 0.1, sd = 0.5 } }
c = { indicator = { above = 3 } }
d = { levels = ["u", "v"], groups = { w = ["x", "y"] }, reference = "w" }
y = { positive = ["1"], negative = ["0"] }
[model]
formula = "y ~ ns(log(a), knots = [0.7, 0.8]) * d + (`b b` + c)^2 + I(e in ['p']) - 1"
"#;

/// Loads `bytes` as a file of this name; the number of rows.
fn load(file: &str, bytes: &[u8]) -> Result<usize, String> {
    let folder = folder_with(file, bytes);
    let plan = Plan::parse(&folder.path().join("run.toml"), run_over(file)).unwrap();
    let loaded = plan.load_data();
    loaded.map(|set| set.rows()).map_err(|e| e.to_string())
}

/// RUN with a formula.
fn formula() -> String {
    let (head, rest) = RUN.split_once("[data.label]").unwrap();
    let (_, model) = rest.split_once("[model]\n").unwrap();
    format!("{head}{COLUMNS}{model}")
}

fn parse(text: String) {
    if let Ok(plan) = Plan::parse(Path::new("run.toml"), text) {
        let _ = (plan.check_declarations(), plan.resolved());
        let _ = (plan.notes_on_features(), plan.formula_terms());
    }
}

/// What is damaged below is whole.
#[test]
fn the_run_file_with_a_formula_is_without_a_fault() {
    let run = edit(&formula(), "formula = ", "# formula = ");
    let columns = |run: String| Plan::parse(Path::new("run.toml"), run).unwrap().columns();
    assert!(columns(run).is_err());
    let run = edit(&formula(), " - 1\"", "\"");
    let plan = Plan::parse(Path::new("run.toml"), run.clone()).unwrap();
    plan.check_declarations().unwrap();
    assert_eq!(columns(run).unwrap(), ["a", "d", "b b", "c", "e", "y"]);
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

/// The NPY library takes three times as long for each: of 40 it would never come to an end.
#[test]
fn brackets_in_brackets_are_refused_at_once() {
    for brackets in ["{".repeat(12), "[".repeat(40)] {
        let good = npy("(20, 2)", 40);
        let text = b"'shape'";
        let at = good.windows(text.len()).position(|w| w == text).unwrap();
        let mut bytes = good;
        bytes.splice(at..at + brackets.len(), brackets.bytes());
        let message = load("t.npy", &bytes).unwrap_err();
        assert!(message.contains("brackets"), "{message}");
    }
}

/// One piece of damage: a byte replaced, put in, some cut out, or the end cut off.
type Damage = (u8, Index, u8);

fn hits() -> impl Strategy<Value = Vec<Damage>> {
    vec(any::<Damage>(), 1..8)
}

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

const SIZES: [u64; 6] = [0, 1, 2, 20, 1_000_000_000_000_000_000, u64::MAX];

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
    fn damaged_run_files_never_panic(hits in hits(), at: [Index; 2], odd: Index, rich in 0..3) {
        let plain = "columns = [\"a\", \"b\"]\nscale = [-1, 1]\n";
        let run = match rich {
            0 => RUN.to_string(),
            1 => edit(RUN, plain, FEATURES),
            _ => formula(),
        };
        parse(String::from_utf8_lossy(&damaged(run.as_bytes(), &hits)).into_owned());
        let mut lines: Vec<&str> = run.lines().collect();
        let [i, j] = at.map(|at| at.index(lines.len()));
        let odd = odd.get(&ODD.split('|').collect::<Vec<_>>()).to_string();
        let odd = format!("{} = {odd}", lines[i].split(" = ").next().unwrap_or_default());
        lines[i] = &odd;
        parse(lines.join("\n"));
        lines.swap(i, j);
        parse(lines.join("\n"));
    }

    #[test]
    fn damaged_tables_never_panic(hits in hits(), shape in vec(select(&SIZES[..]), 0..4)) {
        let _ = load("t.csv", &damaged(csv().as_bytes(), &hits));
        let _ = load("t.csv.gz", &damaged(&gzip(csv().as_bytes()), &hits));
        let _ = load("t.csv.gz", &gzip(&damaged(csv().as_bytes(), &hits)));
        let _ = load("t.npy", &damaged(&npy("(20, 2)", 40), &hits));
        let shape = format!("{shape:?}").replace('[', "(").replace(']', ",)");
        let _ = load("t.npy", &npy(&shape, 40));
        // The end alone: the parquet crate takes half a minute over some damaged pages.
        let mut bytes = parquet();
        let footer = bytes.split_off(bytes.len() - 350);
        bytes.extend(damaged(&footer, &hits));
        let _ = load("t.parquet", &bytes);
    }
}
