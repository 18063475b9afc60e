//! The promise: the command does what `dpmc --help` and the README say of it.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::common::place::{Place, RUN, edit, number, releases, table};
use dpmc::config::Plan;
use serde_json::Value;

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

#[test]
fn init_writes_a_run_file_from_the_header_alone() {
    let place = Place::new(RUN);
    place.write("people.csv", "a,b,y\n0.12345,s3cret\n,,,,\n");
    place.works("init people.csv --out new.toml");
    let text = std::fs::read_to_string(place.path("new.toml")).unwrap();
    // A line a column, and paths as seen from the run file's folder.
    assert!(
        text.contains("\na = { scale = [LOW, HIGH] }\nb = { scale = [LOW, HIGH] }\n"),
        "{text}"
    );
    assert!(text.contains("\nformula = \"y ~ .\"\n"), "{text}");
    assert!(text.contains("\nfile = \"people.csv\"\n") && text.contains("# [test]"));
    assert!(
        !text.contains("0.123") && !text.contains("s3cret"),
        "{text}"
    );
    // Printed, it may come to lie anywhere.
    let whole = format!("file = \"{}\"", place.path("people.csv").display());
    let printed = place.works("init people.csv --no-interactive");
    assert_eq!(printed, edit(&text, "file = \"people.csv\"", &whole));
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
    let declared = text.replace("= { scale = [LOW, HIGH] }\n", "= { scale = [-1, 1] }\n");
    place.write("new.toml", &declared);
    assert!(place.refuses("check new.toml").contains("replace LEVEL"));
    let levels = "positive = [\"LEVEL\"], negative = [\"LEVEL\"]";
    place.write("new.toml", &edit(&declared, levels, ""));
    place.works("check new.toml --epsilon 10");
    // A lone column is declared once.
    place.write("lone.csv", "y\n1\n0\n");
    assert_eq!(place.works("init lone.csv").matches("\ny = {").count(), 1);
    // From another folder the table's path is whole.
    std::fs::create_dir(place.path("sub")).unwrap();
    place.works("init people.csv --out sub/new.toml");
    let moved = std::fs::read_to_string(place.path("sub/new.toml")).unwrap();
    assert!(moved.contains(&whole), "{moved}");
}

#[test]
fn answers_outlive_a_file_that_cannot_be_written() {
    let place = Place::new(RUN);
    let mut command = place.command("init people.csv --out none/new.toml --interactive");
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"y\nb\n0/1\nn\n-7\n7\na\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\na = { scale = [-7, 7] }\nb = { scale = [-7, 7] }\n"),
        "{text}"
    );
}

/// Runs `init` with these answers; what it asked.
fn answered(place: &Place, arguments: &str, answers: &str) -> String {
    let mut command = place.command(arguments);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    // Answers fit into the pipe.
    let mut input = child.stdin.take().unwrap();
    input.write_all(answers.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn init_asks_for_bounds_and_levels_and_shows_no_cell() {
    let place = Place::new(RUN);
    let answers = "y\nb\n0/1\nn\n-1\nx\n1\n=\n";
    let said = answered(
        &place,
        "init people.csv --out new.toml --interactive",
        answers,
    );
    assert!(
        said.contains("lowest 'a'") && said.contains("a number with a decimal point"),
        "{said}"
    );
    let first_cell = std::fs::read_to_string(place.path("people.csv")).unwrap();
    let first_cell = first_cell
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    assert!(!said.contains(first_cell), "{said}");
    let text = std::fs::read_to_string(place.path("new.toml")).unwrap();
    assert!(
        text.contains("\na = { scale = [-1, 1] }\nb = { scale = [-1, 1] }\n"),
        "{text}"
    );
    place.works("check new.toml --epsilon 10");
    // Each way to leave something open is refused with what is to be done.
    for (name, answers, refusal) in [
        ("end", "", "replace LOW and HIGH"),
        ("bounds", "y\nb\n0/1\nn\n\n1\nd\n", "replace LOW and HIGH"),
        ("levels", "y\nb\n0/1\nl\n\nd\n", "replace LEVEL"),
        ("indicator", "y\nb\n0/1\ni\n\nd\n", "replace LEVEL"),
        ("label", "y\nb\n\nn\n-1\n1\nd\n", "replace LEVEL"),
        (
            "number",
            "y\nn\n\n\n1\nn\n-1\n1\nd\n",
            "replace LOW and HIGH",
        ),
        ("count", "y\nc\n\nn\n-1\n1\nd\n", "replace MAX"),
    ] {
        answered(
            &place,
            &format!("init people.csv --out {name}.toml --interactive"),
            answers,
        );
        let message = place.refuses(&format!("check {name}.toml"));
        assert!(message.contains(refusal), "{name}: {message}");
    }
    // Whole answers for each kind of label are a whole run file.
    for (name, label) in [
        ("linear", "n\n0\n1\n0.5\n"),
        ("gaussian", "n\n0\n1\n\n"),
        ("poisson", "c\n4\n"),
    ] {
        let answers = format!("3\n{label}n\n-1\n1\nd\n");
        answered(
            &place,
            &format!("init people.csv --out {name}.toml --interactive"),
            &answers,
        );
        let said = place.works(&format!("check {name}.toml --epsilon 10"));
        assert!(said.contains(name), "{said}");
    }
    // A file that is there is never written over.
    assert!(
        place
            .refuses("init people.csv --out new.toml --interactive")
            .contains("exists")
    );
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

/// A ledger follows the name: two tables must not share one by a shortened name.
#[test]
fn a_data_set_is_named_by_its_file_without_the_known_ending() {
    for (file, name) in [
        ("people.csv", "people"),
        ("survey.2020.csv", "survey.2020"),
        ("survey.2021.csv.gz", "survey.2021"),
        ("folder.d/Survey.TSV", "Survey"),
        ("survey.txt.gz", "survey"),
        ("survey.v1.parquet", "survey.v1"),
        ("survey.npy", "survey"),
        (".x.csv", ".x"),
        (".csv", ".csv"),
        ("survey", "survey"),
        ("survey.parquet.gz", "survey.parquet.gz"),
    ] {
        let run = edit(RUN, "people.csv", file);
        let plan = Plan::parse(Path::new("run.toml"), run).unwrap();
        assert_eq!(plan.dataset_name(), name, "{file}");
    }
}

/// The seed of a private run fixes public streams alone, whose seed `state.json` holds in
/// any case: it may be published, and the certificate does not speak of secrecy.
#[test]
fn the_seed_of_a_private_run_is_public() {
    let place = Place::new(RUN);
    let help = place.works("sample --help");
    let help = help.split("--seed").nth(1).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("published"), "{help}");
    place.works("sample run.toml --seed 258 --out out");
    let config = Plan::read(&place.path("out/run.toml")).unwrap().config;
    assert_eq!(config.run.seed, Some(258));
    let state = place.json("out/state.json");
    let seed = state["chains"]["public_seed"].as_str().unwrap();
    assert_eq!(seed, format!("0201{:060}", 0));
    let warnings = place.certificate("out")["warnings"].to_string();
    assert_eq!(warnings, "[]");
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
        ("dp-barker", "variance = 1.5"),
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
        ("dp-barker", "none"),
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
            let [claimed, spent] =
                ["epsilon", "epsilon_spent"].map(|key| number(&certificate, key));
            // Gaussian noise is counted as Gaussian DP, decisions by a coin as rho.
            let rho = match algorithm {
                "barker" | "poisson-barker" => number(&certificate, "rho"),
                _ => 0.5 * number(&certificate, "mu").powi(2),
            };
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

/// A run of a few releases, whose costs followed public coins alone, claims what the
/// tightest accountant gives: for one bit its exact profile, under η and under zCDP. (Of a long move
/// Rényi divergence gives the same to ten digits, so the move is fixed.)
#[test]
fn short_runs_claim_the_tightest_bound() {
    let place = Place::new(RUN);
    for (iterations, method) in [(1, "exact profile"), (40, "")] {
        let out = format!("out-{iterations}");
        place.works(&format!(
            "sample run.toml --seed 3 --iterations {iterations} --out {out} --quiet"
        ));
        let certificate = place.json(&format!("{out}/certificate.json"));
        let (count, rho) = releases(&certificate);
        assert_eq!(count, f64::from(iterations));
        let epsilon = number(&certificate, "epsilon");
        assert!(certificate["adaptive"] == false && epsilon > 0.0);
        // A 1024th of δ pays for coins.
        let zcdp = dpmc::privacy::epsilon_of_rho(rho, 1e-6 * (1.0 - f64::powi(2.0, -10)));
        assert!(epsilon <= zcdp * (1.0 + 1e-9), "{certificate}");
        // A single bit has a closed form, which is strictly less.
        assert!(iterations > 1 || epsilon < zcdp, "{certificate}");
        let accountant = certificate["accountant"].as_str().unwrap();
        assert!(accountant.contains(method), "{accountant}");
    }
}

/// What `--help` names is what there is.
#[test]
fn help_names_every_algorithm() {
    let place = Place::new(RUN);
    for command in ["sample", "check"] {
        let help = place.works(&format!("{command} --help"));
        for algorithm in dpmc::sampler::Algorithm::ALL {
            let name = algorithm.name();
            let words = help.split(|c: char| !(c.is_alphanumeric() || c == '-'));
            assert!(words.into_iter().any(|w| w == name), "{command}: {name}");
        }
    }
}
