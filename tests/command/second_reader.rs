//! The promise: draws are plain Parquet. What a killed run leaves is read by a second,
//! independent reader, pyarrow, and fits its certificate. Without pyarrow this is skipped,
//! unless DPMC_REQUIRE_PYARROW=1.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::place::{Place, RUN, repository};
use serde_json::Value;

/// Prints, as JSON, what pyarrow finds in every part of `draws.parquet`.
const READ: &str = r#"
import json, pathlib, sys
import pyarrow.parquet as pq
parts = []
for path in sorted(pathlib.Path(sys.argv[1], "draws.parquet").glob("*.parquet")):
    table = pq.read_table(path)
    parts.append({
        "name": path.name,
        "columns": table.column_names,
        "types": [str(t) for t in table.schema.types],
        "nulls": sum(c.null_count for c in table.columns),
        "chain": table["chain"].to_pylist(),
        "iteration": table["iteration"].to_pylist(),
        "a": table["a"].to_pylist(),
    })
print(json.dumps(parts))
"#;

fn pyarrow() -> bool {
    let test = Command::new("python3")
        .args(["-c", "import pyarrow.parquet, pyarrow.compute"])
        .output();
    if test.is_ok_and(|o| o.status.success()) {
        return true;
    }
    let required = std::env::var("DPMC_REQUIRE_PYARROW").is_ok_and(|v| v == "1");
    assert!(
        !required,
        "DPMC_REQUIRE_PYARROW=1, but python3 has no pyarrow"
    );
    println!("skipped: python3 has no pyarrow (pip install pyarrow)");
    false
}

fn python(place: &Place, arguments: &[&str]) -> String {
    let mut command = Command::new("python3");
    command.current_dir(place.path("")).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Leaves `out` as a run of 64 chains killed by SIGKILL after a few parts.
fn killed_run(place: &Place) {
    let arguments = "sample run.toml --chains 64 --iterations 10000000 --quiet --out out";
    let mut child = place.command(arguments).spawn().unwrap();
    let start = Instant::now();
    let parts = || std::fs::read_dir(place.path("out/draws.parquet")).map_or(0, Iterator::count);
    while parts() < 3 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(parts() >= 3, "no part appears");
}

#[test]
fn pyarrow_reads_what_a_killed_run_leaves() {
    if !pyarrow() {
        return;
    }
    let place = Place::new(RUN);
    killed_run(&place);
    let certificate = place.json("out/certificate.json");
    let covered = certificate["iterations"].as_i64().unwrap();
    let parts: Vec<Value> = serde_json::from_str(&python(&place, &["-c", READ, "out"])).unwrap();
    assert!(parts.len() >= 3);
    let numbers = |part: &Value, key: &str| -> Vec<i64> {
        let values = part[key].as_array().unwrap().iter();
        values.map(|v| v.as_i64().unwrap()).collect()
    };
    let mut last = [0i64; 64];
    let mut rows = 0;
    for (i, part) in parts.iter().enumerate() {
        assert_eq!(part["name"], format!("part-{i:06}.parquet"));
        let columns = serde_json::json!(["chain", "iteration", "intercept", "a", "b"]);
        assert_eq!(part["columns"], columns);
        let types = serde_json::json!(["int32", "int64", "double", "double", "double"]);
        assert_eq!(part["types"], types);
        assert_eq!(part["nulls"], 0);
        let values = part["a"].as_array().unwrap();
        assert!(
            values
                .iter()
                .all(|v| v.as_f64().is_some_and(f64::is_finite))
        );
        let (chains, iterations) = (numbers(part, "chain"), numbers(part, "iteration"));
        for (chain, iteration) in chains.iter().zip(&iterations) {
            let last = &mut last[usize::try_from(*chain).unwrap()];
            assert_eq!(*iteration, *last + 1, "chain {chain}");
            *last = *iteration;
        }
        rows += iterations.len() as i64;
        assert!(
            rows <= covered * 64,
            "{rows} rows, {covered} iterations covered"
        );
    }
    assert!(
        last.iter().all(|l| *l == last[0] && *l <= covered),
        "{last:?}"
    );
    assert_eq!(certificate["chains"], 64);
    assert!(certificate["private"].as_bool().unwrap());
}

#[test]
fn the_example_in_python_finds_the_means_of_the_summary() {
    if !pyarrow() {
        return;
    }
    let place = Place::new(RUN);
    place.works("sample run.toml --out out");
    let example = &repository("examples/read_draws.py");
    let printed = python(&place, &[example, "out"]);
    assert!(
        printed.contains("300 draws of 1 chain(s), status: finished"),
        "{printed}"
    );
    let summary: Value = serde_json::from_str(&place.works("summary out --json")).unwrap();
    for parameter in summary["parameters"].as_array().unwrap() {
        let name = parameter["name"].as_str().unwrap();
        let line = printed.lines().find(|l| l.starts_with(name)).unwrap();
        for key in ["mean", "sd"] {
            let value = format!("{key} {:12.6}", parameter[key].as_f64().unwrap());
            assert!(line.contains(&value), "{line} {value}");
        }
    }
}

/// `python3 examples/read_draws.py run | head -1` ends without a traceback.
#[test]
fn the_example_in_python_ends_quietly_on_a_closed_pipe() {
    if !pyarrow() {
        return;
    }
    let place = Place::new(RUN);
    place.works("sample run.toml --out out --quiet");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new("python3");
    command
        .current_dir(place.path(""))
        .arg(repository("examples/read_draws.py"));
    command.arg("out").stdout(writer).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}
