//! The promise: the command does what `dpmc --help` and the README say of it, and at any
//! moment, kill -9 included, a run directory holds only draws that its certificate covers.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dpmc::config::Plan;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use tempfile::TempDir;

/// Logistic regression on 500 rows; a step costs little of the budget.
const RUN: &str = r#"[data]
file = "people.csv"
[data.label]
column = "y"
[[data.features]]
intercept = true
[[data.features]]
columns = ["a", "b"]
scale = [-1, 1]
[model]
kind = "logistic"
prior = { kind = "normal", sd = 3.0 }
[sampler]
algorithm = "barker"
step = 0.0001
[run]
iterations = 300
engine = "cpu"
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

/// A second model: the mixture of Heikkilä 2019 in a box.
const MIXTURE: &str = r#"[data]
file = "people.csv"
[[data.features]]
column = "a"
clamp = [-1, 1]
[model]
kind = "mixture"
box = 3.0
prior = { kind = "normal", sd = 3.0 }
[sampler]
algorithm = "poisson-barker"
lambda_ratio = 1.0
step = 0.001
[run]
iterations = 300
engine = "cpu"
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

/// A folder with a table and the run file `run.toml`.
struct Place(TempDir);

impl Place {
    fn new(run: &str) -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        place.write("people.csv", &table(500));
        place.write("run.toml", run);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpmc"));
        command.current_dir(self.0.path());
        command.args(arguments.split_whitespace());
        command.stdin(Stdio::null());
        // Mesa's device-select layer complains on stderr where there is no Wayland.
        command.env("NODEVICE_SELECT", "1");
        command
    }

    fn dpmc(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must end well; its standard output.
    fn works(&self, arguments: &str) -> String {
        let output = self.dpmc(arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must refuse its input; its message.
    fn refuses(&self, arguments: &str) -> String {
        let output = self.dpmc(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn certificate(&self, directory: &str) -> Value {
        self.json(&format!("{directory}/certificate.json"))
    }

    /// Starts a run that does not end by itself within a test.
    fn start(&self, arguments: &str) -> Running {
        let mut command = self.command(arguments);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()))
    }

    fn parts(&self, directory: &str) -> Vec<PathBuf> {
        let folder = self.path(directory).join("draws.parquet");
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut parts: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        parts.sort();
        parts
    }

    /// Waits until the run has published this many part files.
    fn wait_for_parts(&self, directory: &str, count: usize) {
        let start = Instant::now();
        while self.parts(directory).len() < count {
            assert!(start.elapsed() < Duration::from_secs(60), "no part appears");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn draws(&self, directory: &str) -> Draws {
        Draws::read(&self.parts(directory))
    }
}

/// 500 or so people: a, b and a label that depends on them.
fn table(rows: u32) -> String {
    let mut text = String::from("a,b,y\n");
    for i in 0..rows {
        let (a, b) = (
            f64::from(i * 37 % 101) / 50.0 - 1.0,
            f64::from(i * 53 % 89) / 44.0 - 1.0,
        );
        let y = u32::from(2.0 * a - b + f64::from(i * 71 % 97) / 24.0 - 2.0 > 0.0);
        text += &format!("{a:.4},{b:.4},{y}\n");
    }
    text
}

fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no '{from}' to edit");
    text.replace(from, to)
}

/// A run that does not outlive its test.
struct Running(Option<Child>);

impl Running {
    fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn interrupt(mut self) -> Output {
        let child = self.0.take().unwrap();
        let mut shell = Command::new("sh");
        let sent = shell.args(["-c", &format!("kill -INT {}", child.id())]);
        assert!(sent.status().unwrap().success());
        child.wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Draws as a second reader finds them.
#[derive(Debug, PartialEq)]
struct Draws {
    columns: Vec<String>,
    rows: Vec<(i32, i64, Vec<f64>)>,
}

impl Draws {
    fn read(parts: &[PathBuf]) -> Self {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for part in parts {
            let file = std::fs::File::open(part).unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            let fields = reader.metadata().file_metadata().schema().get_fields();
            columns = fields.iter().map(|f| f.name().to_string()).collect();
            for row in reader.get_row_iter(None).unwrap() {
                let row = row.unwrap();
                let (mut chain, mut iteration, mut theta) = (-1, -1, Vec::new());
                for (name, field) in row.get_column_iter() {
                    match (name.as_str(), field) {
                        ("chain", Field::Int(v)) => chain = *v,
                        ("iteration", Field::Long(v)) => iteration = *v,
                        (_, Field::Double(v)) => theta.push(*v),
                        other => panic!("unexpected column {other:?}"),
                    }
                }
                rows.push((chain, iteration, theta));
            }
        }
        Draws { columns, rows }
    }

    fn last(&self) -> i64 {
        self.rows.iter().map(|r| r.1).max().unwrap_or(0)
    }

    /// Every chain has the iterations 1, 2, …, each once and in order.
    fn assert_contiguous(&self, chains: i32) {
        for chain in 0..chains {
            let mine = self.rows.iter().filter(|r| r.0 == chain).map(|r| r.1);
            assert!(mine.eq(1..=self.last()), "chain {chain}");
        }
        assert_eq!(self.rows.len() as i64, i64::from(chains) * self.last());
    }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no number '{key}' in {value}"))
}

/// Number of releases and their ρ, from a certificate's events.
fn releases(certificate: &Value) -> (f64, f64) {
    let events = certificate["events"].as_array().unwrap();
    events.iter().fold((0.0, 0.0), |(count, rho), event| {
        let one = match event["kind"].as_str().unwrap() {
            "bounded_range" => number(event, "eta").powi(2) / 8.0,
            _ => 0.5 / number(event, "noise_multiplier").powi(2),
        };
        let times = number(event, "count");
        (count + times, rho + times * one)
    })
}

#[test]
fn init_writes_a_run_file_from_the_header_alone() {
    let place = Place::new(RUN);
    place.write("people.csv", "a,b,y\n0.12345,s3cret\n,,,,\n");
    place.works("init people.csv --out new.toml");
    let text = std::fs::read_to_string(place.path("new.toml")).unwrap();
    assert!(text.contains("column = \"a\"") && text.contains("column = \"b\""));
    assert!(
        !text.contains("0.123") && !text.contains("s3cret"),
        "{text}"
    );
    assert_eq!(place.works("init people.csv"), text);
    let message = place.refuses("init people.csv --out new.toml");
    assert!(
        message.contains("new.toml") && message.contains("exists"),
        "{message}"
    );
    assert_eq!(
        std::fs::read_to_string(place.path("new.toml")).unwrap(),
        text
    );
    // Bounds are left to declare: as it is, the file is refused by line.
    let message = place.refuses("check new.toml");
    assert!(message.contains("new.toml, line"), "{message}");
    place.write("people.csv", &table(500));
    let declared = edit(&text, "[LOW, HIGH]", "[-1, 1]");
    place.write("new.toml", &edit(&declared, "positive = [\"LEVEL\"]", ""));
    place.works("check new.toml --epsilon 10");
}

#[test]
fn check_prints_cost_steps_and_memory_and_writes_nothing() {
    for run in [RUN, MIXTURE] {
        let place = Place::new(&edit(run, "[run]", "[run]\nwarmup = 5"));
        let entries = || std::fs::read_dir(place.path("")).unwrap().count();
        let before = entries();
        // However long the run: a sum of two such lengths once overflowed.
        for flags in ["", "--iterations 18446744073709551615"] {
            let text = place.works(&format!("check run.toml {flags}"));
            for word in ["500 rows", "MiB", "step costs rho", "affords", "algorithm"] {
                assert!(text.contains(word), "no '{word}': {text}");
            }
        }
        assert_eq!(entries(), before);
    }
}

#[test]
fn sample_leaves_draws_certificate_run_file_and_state() {
    for (run, columns) in [
        (
            RUN,
            ["chain", "iteration", "intercept", "a", "b"].as_slice(),
        ),
        (MIXTURE, &["chain", "iteration", "theta1", "theta2"]),
    ] {
        let place = Place::new(run);
        place.works("sample run.toml --out out");
        let names: Vec<String> = place.parts("out").iter().map(|p| name(p)).collect();
        let named = |n: &String| n.starts_with("part-") && n.ends_with(".parquet");
        assert!(!names.is_empty() && names.iter().all(named), "{names:?}");
        let draws = place.draws("out");
        assert_eq!(draws.columns, columns);
        draws.assert_contiguous(1);
        assert_eq!(draws.last(), 300);

        let certificate = place.certificate("out");
        for key in "private epsilon epsilon_spent adaptive delta rho neighbours rows chains \
            iterations events budget accountant engine version warnings"
            .split_whitespace()
        {
            assert!(!certificate[key].is_null(), "no '{key}' in {certificate}");
        }
        for key in ["adapter", "driver"] {
            assert!(certificate["engine"][key].is_string(), "{certificate}");
        }
        assert_eq!(certificate["private"], true);
        assert_eq!(certificate["rows"], 500);
        assert_eq!(certificate["covers"], "this run only");
        assert_eq!(releases(&certificate).0, 300.0);

        let state = place.json("out/state.json");
        assert_eq!(state["iteration"], 300);
        let theta = &state["chains"]["thetas"][0];
        assert_eq!(theta.as_array().unwrap().len(), columns.len() - 2);
        // The resolved run file stands on its own, wherever it is read.
        place.works("check out/run.toml");
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn flags_override_the_run_file() {
    let place = Place::new(&edit(RUN, "\"cpu\"", "\"gpu\""));
    place.write("others.csv", &table(300));
    place.works(
        "sample run.toml --data others.csv --algorithm dp-penalty --epsilon 2 --delta 1e-5 \
         --chains 3 --iterations 50 --engine cpu --seed 3 --ledger l.json --out out",
    );
    let certificate = place.certificate("out");
    assert_eq!(certificate["rows"], 300);
    assert_eq!(certificate["chains"], 3);
    assert_eq!(certificate["iterations"], 50);
    assert_eq!(certificate["engine"]["kind"], "cpu");
    assert_eq!(certificate["events"][0]["kind"], "discrete_gaussian");
    let budget = &certificate["budget"];
    assert_eq!(
        (number(budget, "epsilon"), number(budget, "delta")),
        (2.0, 1e-5)
    );
    assert!(place.path("l.json").exists());
    place.draws("out").assert_contiguous(3);
    let config = Plan::read(&place.path("out/run.toml")).unwrap().config;
    assert!(config.data.file.ends_with("others.csv"));
    assert_eq!((config.run.chains, config.run.iterations), (Some(3), 50));
    assert_eq!(config.privacy.epsilon, Some(2.0));

    place.works("sample run.toml --not-private --algorithm mh --iterations 40 --engine cpu");
    assert_eq!(place.certificate("run-run")["private"], false);
    assert_eq!(place.certificate("run-run")["chains"], 4);
}

#[test]
fn summary_prints_moments_quantiles_and_convergence_of_the_draws() {
    let place = Place::new(&edit(RUN, "0.0001", "0.3"));
    place.works("sample run.toml --not-private --chains 2 --iterations 400 --out out");
    let text = place.works("summary out --json");
    let summary: Value = serde_json::from_str(&text).unwrap();
    let (draws, parameters) = (
        place.draws("out"),
        summary["parameters"].as_array().unwrap(),
    );
    assert_eq!(parameters.len(), 3);
    for (j, parameter) in parameters.iter().enumerate() {
        assert_eq!(parameter["name"], draws.columns[j + 2].as_str());
        let keys = [
            "mean", "sd", "q5", "q50", "q95", "ess_bulk", "ess_tail", "r_hat",
        ];
        let [mean, sd, q5, q50, q95, bulk, tail, r_hat] = keys.map(|k| number(parameter, k));
        let values: Vec<f64> = draws.rows.iter().map(|r| r.2[j]).collect();
        let n = values.len() as f64;
        let average = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|v| (v - average).powi(2)).sum::<f64>();
        assert!((mean - average).abs() < 1e-9, "{mean} {average}");
        assert!((sd - (square / (n - 1.0)).sqrt()).abs() < 1e-9);
        assert!(q5 < q50 && q50 < q95 && q5 < mean && mean < q95);
        assert!(bulk > 1.0 && bulk <= n * n.log10() && tail > 1.0 && r_hat > 0.9);
    }
    let human = place.works("summary out");
    for word in ["intercept", "mean", "r_hat", "acceptance", "NOT private"] {
        assert!(human.contains(word), "no '{word}': {human}");
    }
}

#[test]
fn one_seed_gives_the_same_draws_on_any_number_of_threads() {
    // More rows than one block of work, so that threads do share it.
    let place = Place::new(RUN);
    place.write("people.csv", &table(20_000));
    for (algorithm, setting) in [
        ("mh", ""),
        ("tuna-mh", "lambda_ratio = 1.0"),
        ("barker", ""),
        ("poisson-barker", "lambda_ratio = 1.0"),
        ("dp-penalty", "tau = 5.0"),
    ] {
        let sampler = format!("\"{algorithm}\"\nadapt = \"full\"\n{setting}");
        let run = edit(RUN, "\"barker\"", &sampler);
        place.write("run.toml", &edit(&run, "[run]", "[run]\nwarmup = 60"));
        let run = |out: &str, seed: u32, threads: &str| {
            let out = format!("{algorithm}-{out}");
            let mut command = place.command("sample run.toml --not-private --quiet");
            command.args(["--chains", "4", "--iterations", "20", "--out", &out]);
            command.args(["--seed", &seed.to_string()]);
            command.env("RAYON_NUM_THREADS", threads);
            assert!(command.status().unwrap().success());
            place.draws(&out)
        };
        let first = run("a", 7, "2");
        assert_eq!(first.rows.len(), 80);
        assert_eq!(first, run("b", 7, "2"), "{algorithm}: the same seed again");
        assert_eq!(first, run("c", 7, "1"), "{algorithm}: one thread");
        assert_ne!(first, run("d", 8, "2"), "{algorithm}: another seed");
    }
}

#[test]
fn a_run_without_privacy_says_so() {
    let place = Place::new(RUN);
    let text = place.works("sample run.toml --not-private --algorithm mh --out out");
    assert!(text.contains("NOT private"), "{text}");
    let certificate = place.certificate("out");
    assert_eq!(certificate["private"], false);
    assert!(certificate["epsilon"].is_null() && certificate["budget"].is_null());
    assert!(certificate["warnings"].to_string().contains("NOT private"));
    assert!(!place.path("out/ledger.json").exists());
}

#[test]
fn epsilon_never_exceeds_the_budget() {
    for (algorithm, adapt) in [
        ("barker", "none"),
        ("poisson-barker", "none"),
        ("dp-penalty", "none"),
        ("poisson-barker", "diagonal"),
    ] {
        let run = edit(
            RUN,
            "\"barker\"",
            &format!("\"{algorithm}\"\nadapt = \"{adapt}\""),
        );
        let run = edit(&run, "0.0001", "0.004");
        let place = Place::new(&edit(&run, "[run]", "[run]\nwarmup = 40"));
        for (i, (epsilon, delta)) in [(0.5, 1e-6), (3.0, 1e-3)].into_iter().enumerate() {
            let budget = format!("--epsilon {epsilon} --delta {delta} --iterations 9000");
            place.works(&format!("sample run.toml {budget} --out {algorithm}{i}"));
            let certificate = place.certificate(&format!("{algorithm}{i}"));
            let [claimed, spent, rho] =
                ["epsilon", "epsilon_spent", "rho"].map(|key| number(&certificate, key));
            assert!(claimed <= epsilon && spent <= claimed, "{claimed} {spent}");
            let (count, released) = releases(&certificate);
            assert!(released <= rho * (1.0 + 1e-9), "{released} {rho}");
            assert_eq!(count, number(&certificate, "iterations"));
            // Costs that followed released values: the guarantee is the budget.
            let adaptive = adapt != "none";
            assert_eq!(certificate["adaptive"], adaptive);
            assert!(!adaptive || claimed == epsilon);
        }
    }
}

#[test]
fn a_killed_run_leaves_a_covered_directory_and_can_be_resumed() {
    let place = Place::new(RUN);
    for round in 0..3u64 {
        let out = format!("out{round}");
        // 64 chains fill a part file every 1024 iterations.
        let running = place.start(&format!(
            "sample run.toml --chains 64 --iterations 10000000 --out {out}"
        ));
        place.wait_for_parts(&out, 1);
        std::thread::sleep(Duration::from_millis(20 * round));
        running.kill();

        let (certificate, draws) = (place.certificate(&out), place.draws(&out));
        draws.assert_contiguous(64);
        let covered = number(&certificate, "iterations");
        let owned = place.json(&format!("{out}/state.json"))["iteration"].as_i64();
        let owned = owned.unwrap();
        assert!(draws.last() > 0 && draws.last() as f64 <= covered);
        assert_eq!(certificate["status"], "running");
        assert_eq!(certificate["private"], true);
        assert_eq!(number(&certificate, "epsilon"), 5.0);
        let (count, rho) = releases(&certificate);
        assert!(count >= 64.0 * draws.last() as f64);
        let before = number(&place.json(&format!("{out}/ledger.json")), "rho_spent");
        assert!(before >= rho, "the ledger holds {before} of {rho}");
        place.works(&format!("summary {out} --json"));
        let message = place.refuses(&format!("sample run.toml --out {out}"));
        assert!(message.contains("--resume"), "{message}");

        let more = covered as u64 + 500;
        place.works(&format!("sample --resume {out} --iterations {more}"));
        let (certificate, resumed) = (place.certificate(&out), place.draws(&out));
        resumed.assert_contiguous(64);
        assert_eq!(resumed.last() as u64, more);
        assert_eq!(certificate["status"], "finished");
        assert_eq!(certificate["adaptive"], true);
        assert_eq!(number(&certificate, "epsilon"), 5.0);
        let after = number(&place.json(&format!("{out}/ledger.json")), "rho_spent");
        let (_, released) = releases(&certificate);
        assert!(after > before && after >= released, "{before} {after}");
        // Draws that the saved state owns stay as they were.
        let mut kept = resumed.rows.iter().filter(|r| r.1 <= owned);
        let mut before = draws.rows.iter().filter(|r| r.1 <= owned);
        assert!(kept.by_ref().eq(before.by_ref()), "round {round}");
    }
}

#[test]
fn an_interrupted_run_ends_cleanly_with_what_was_drawn() {
    let place = Place::new(RUN);
    let running = place.start("sample run.toml --chains 64 --iterations 10000000 --out out");
    place.wait_for_parts("out", 1);
    let output = running.interrupt();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (certificate, draws) = (place.certificate("out"), place.draws("out"));
    assert_eq!(certificate["status"], "interrupted");
    assert_eq!(certificate["adaptive"], true);
    assert_eq!(number(&certificate, "epsilon"), 5.0);
    draws.assert_contiguous(64);
    assert_eq!(draws.last() as f64, number(&certificate, "iterations"));
    // The reservation is settled: the ledger holds what was spent and no more.
    let (_, released) = releases(&certificate);
    let spent = number(&place.json("out/ledger.json"), "rho_spent");
    assert!((spent / released - 1.0).abs() < 1e-6, "{spent} {released}");
}

#[test]
fn a_run_that_is_still_going_cannot_be_resumed_nor_disturbed() {
    let place = Place::new(RUN);
    let running = place.start("sample run.toml --chains 64 --iterations 10000000 --out out");
    place.wait_for_parts("out", 1);
    while place.parts("out").len() < 6 {
        let message = place.refuses("sample --resume out");
        assert!(message.contains("another run"), "{message}");
    }
    assert!(running.interrupt().status.success());
    place.draws("out").assert_contiguous(64);
}

#[test]
fn a_resumed_run_counts_everything_its_directory_holds() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out out");
    let before = number(&place.json("out/ledger.json"), "rho_spent");
    place.works("sample --resume out --iterations 500");
    place.draws("out").assert_contiguous(1);
    let certificate = place.certificate("out");
    assert_eq!(certificate["adaptive"], true);
    assert_eq!(number(&certificate, "epsilon"), 5.0);
    assert_eq!(certificate["iterations"], 500);
    let (count, rho) = releases(&certificate);
    assert_eq!(count, 500.0, "events of all draws, not of the last process");
    let after = number(&place.json("out/ledger.json"), "rho_spent");
    assert!(
        after > before && (after / rho - 1.0).abs() < 1e-6,
        "{after} {rho}"
    );
}

/// The certificate covers every draw, so a directory cannot change its guarantee midway.
#[test]
fn resume_refuses_another_budget_ledger_or_model() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out private");
    place.works("sample run.toml --not-private --chains 1 --out open");
    place.write("other.toml", &edit(RUN, "sd = 3.0", "sd = 2.0"));
    for arguments in [
        "--resume open --epsilon 5 --delta 1e-6",
        "--resume private --ledger fresh.json",
        "--resume private --epsilon 6",
        "--resume private --chains 2",
        "--resume private other.toml",
    ] {
        let out = arguments.split(' ').nth(1).unwrap();
        let (certificate, draws) = (place.certificate(out), place.draws(out));
        place.refuses(&format!("sample {arguments} --iterations 600"));
        assert_eq!(place.certificate(out), certificate, "{arguments}");
        assert_eq!(place.draws(out), draws, "{arguments}");
    }
}

/// Rows at the origin make every ratio zero, so that decisions are the coins themselves.
const COINS: &str = r#"[data]
file = "origin.csv"
[data.label]
column = "y"
[[data.features]]
column = "a"
scale = [-1, 1]
[model]
kind = "logistic"
[sampler]
algorithm = "barker"
step = 0.001
[run]
iterations = 200
engine = "cpu"
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

#[test]
fn neither_a_resumed_run_nor_a_second_one_reuses_coins() {
    let place = Place::new(COINS);
    place.write("origin.csv", &format!("a,y\n{}", "0,1\n0,0\n".repeat(20)));
    let decisions = |out: &str| {
        let mut last = 0.0;
        let rows = place.draws(out).rows;
        let moved = rows
            .iter()
            .map(|r| r.2[0] != std::mem::replace(&mut last, r.2[0]));
        moved.collect::<Vec<bool>>()
    };
    // 200 fair coins agree in 100 ± 7 places; beyond 50 or 150 has odds under 1e-11.
    let assert_fresh = |a: &[bool], b: &[bool]| {
        let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
        assert!((50..=150).contains(&equal), "{equal} of 200 coins again");
    };
    for (out, seed) in [("plain", ""), ("seeded", "--seed 7"), ("again", "--seed 7")] {
        place.works(&format!("sample run.toml --out {out} {seed}"));
        place.works(&format!("sample --resume {out} --iterations 400"));
        let decisions = decisions(out);
        assert_fresh(&decisions[..200], &decisions[200..]);
    }
    assert_fresh(&decisions("seeded")[..200], &decisions("again")[..200]);
}

#[test]
fn a_shared_ledger_is_cumulative_and_refuses_when_spent() {
    let run = edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 10.0");
    let place = Place::new(&run);
    let ledger = || number(&place.json("l.json"), "rho_spent");
    place.works("sample run.toml --iterations 30 --ledger l.json --out first");
    let (one, certificate) = (ledger(), place.certificate("first"));
    assert!((one / releases(&certificate).1 - 1.0).abs() < 1e-6);
    assert_eq!(certificate["covers"], "every run of the ledger file");

    place.works("sample run.toml --iterations 5000 --ledger l.json --out second");
    let (two, certificate) = (ledger(), place.certificate("second"));
    let own = releases(&certificate).1;
    assert!(
        (two / (one + own) - 1.0).abs() < 1e-6,
        "{one} + {own} is not {two}"
    );
    assert_eq!(certificate["status"], "budget spent");
    assert_eq!(certificate["adaptive"], true);
    assert_eq!(number(&certificate, "epsilon"), 5.0);
    let (spent, limit) = (
        number(&certificate, "epsilon_spent"),
        number(&certificate, "rho"),
    );
    assert!(spent > 4.9 && spent <= 5.0 && two <= limit, "{spent} {two}");

    let message = place.refuses("sample run.toml --ledger l.json --out third");
    assert!(message.contains("l.json"), "{message}");
    assert!(!place.path("third").exists());
    assert_eq!(ledger(), two);
    // Without the ledger file a run stands alone.
    place.works("sample run.toml --iterations 30 --out alone");
    assert_eq!(place.certificate("alone")["covers"], "this run only");
}

#[test]
fn no_progress_where_there_is_no_terminal_and_nothing_when_quiet() {
    let place = Place::new(RUN);
    let loud = place.dpmc("sample run.toml --engine auto --out loud");
    assert!(loud.status.success() && loud.stderr.is_empty(), "{loud:?}");
    let text = String::from_utf8(loud.stdout).unwrap();
    assert!(
        text.contains("intercept") && !text.contains(['\r', '\x1b']),
        "{text:?}"
    );
    let quiet = place.dpmc("sample run.toml --engine auto --out quiet --quiet");
    assert!(quiet.status.success(), "{quiet:?}");
    assert!(
        quiet.stdout.is_empty() && quiet.stderr.is_empty(),
        "{quiet:?}"
    );
    // Errors are said all the same.
    let failed = place.dpmc("sample run.toml --out quiet --quiet");
    assert!(!failed.stderr.is_empty());
}
