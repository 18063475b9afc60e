//! The promise: CSV, gzip, Parquet and NPY tables give the same transformed columns, curves and
//! products.

#[path = "common/tables.rs"]
#[allow(dead_code)]
mod tables;

use std::path::Path;

use dpmc::config::Plan;
use dpmc::engine::EngineChoice;
use dpmc::privacy::Curator;
use tables::{csv, edit, folder_with, gzip, parquet};

/// Over tables::csv: a in [0, 1), b in (-1, 0], a label y of 0 and 1.
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
        let mut bytes = tables::npy(shape, 0);
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
