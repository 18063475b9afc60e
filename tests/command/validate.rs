//! The promise: `dpmc validate` scores a protected held-out table under a budget and a ledger of
//! its own, says what it will cost before it does, and refuses what it cannot protect.

use serde_json::Value;

use crate::common::place::{Place, edit, repository};

fn table(rows: usize, turn: f64) -> String {
    let mut text = String::from("age,smoker,ill\n");
    for i in 0..rows {
        let t = i as f64 * turn;
        let age = 50.0 + 30.0 * (1.7 * t).sin();
        let smoker = if (2.9 * t).cos() > 0.3 {
            "daily"
        } else {
            "never"
        };
        let ill = u8::from(0.05 * (age - 50.0) + (0.37 * t).sin() > 0.2);
        text += &format!("{age:.2},{smoker},{ill}\n");
    }
    text
}

const RUN: &str = r#"
[data]
file = "people.csv"
[columns]
ill = {}
age = { scale = [20, 80] }
smoker = { indicator = { in = ["daily"] } }
[validate]
file = "others.csv"
clip = [-3, 0]
epsilon = 1.0
delta = 1e-6
share = 0.5
ledger = "others.ledger.json"
[model]
kind = "logistic"
formula = "ill ~ age + smoker"
prior = { kind = "normal", sd = 3 }
[sampler]
algorithm = "dp-laplace"
[run]
iterations = 300
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

fn place(run: &str) -> Place {
    let place = Place::new(run);
    place.write("people.csv", &table(1500, 1.0));
    place.write("others.csv", &table(2000, 1.3));
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn scores_are_released_under_a_budget_of_their_own() {
    let place = place(RUN);
    let told = json(&place.works("check run.toml --json"));
    let expected = told["validate"]["log_score_sd"].as_f64().unwrap();
    let check = place.works("check run.toml");
    assert!(
        check.contains("validate   2000 held-out rows, (1, 1e-6)-DP"),
        "{check}"
    );
    // Nothing was opened or paid by that, nor is it by the run.
    place.works("sample run.toml --out out --quiet");
    assert!(!place.path("others.ledger.json").exists());
    let before = std::fs::read(place.path("out/ledger.json")).unwrap();
    let first = json(&place.works("validate out --json"));
    assert_eq!(first["rows"], 2000);
    let sd = first["log_score_sd"].as_f64().unwrap();
    assert!((sd / expected - 1.0).abs() < 1e-6, "{sd} {expected}");
    let spent = first["epsilon_spent"].as_f64().unwrap();
    assert!(spent > 0.3 && spent < 0.8, "{spent}");
    assert_eq!(
        before,
        std::fs::read(place.path("out/ledger.json")).unwrap()
    );
    // A model that knows the ages says more than a coin does, by far more than the noise.
    let score = first["log_score"].as_f64().unwrap();
    assert!(
        score > 0.5f64.ln() + 10.0 * sd && score < 0.0,
        "{score} {sd}"
    );
    let accuracy = first["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.6 && accuracy < 1.0, "{accuracy}");
    // The second half of the budget; the summary and the file hold both.
    let text = place.works("validate out");
    assert!(
        text.contains("log score") && text.contains("(1.0000, 1e-6)-DP"),
        "{text}"
    );
    let summary = json(&place.works("summary out --json"));
    assert_eq!(summary["held_out"].as_array().unwrap().len(), 2);
    let spent = summary["held_out"][1]["epsilon_spent"].as_f64().unwrap();
    assert!(spent > 0.99 && spent <= 1.0, "{spent}");
    assert!(place.works("summary out").contains("accuracy"));
    // Then it is spent, and says so before anything is made.
    let message = place.refuses("validate out");
    assert!(
        message.contains("budget is spent") && message.contains("share"),
        "{message}"
    );
    assert_eq!(
        place.json("out/validation.json").as_array().unwrap().len(),
        2
    );
}

/// Two models under one budget: the better one is told apart.
#[test]
fn two_models_are_compared_under_one_ledger() {
    let place = place(RUN);
    place.write(
        "bare.toml",
        &edit(RUN, "ill ~ age + smoker", "ill ~ smoker"),
    );
    place.works("sample run.toml --out whole --quiet");
    place.works("sample bare.toml --out bare --quiet");
    let score = |out: &str| {
        let told = json(&place.works(&format!("validate {out} --json")));
        let number = |key: &str| told[key].as_f64().unwrap();
        (number("log_score"), number("log_score_sd"))
    };
    let ((one, sd), (other, _)) = (score("whole"), score("bare"));
    assert!(one - other > 6.0 * sd, "{one} {other} {sd}");
    place.refuses("validate whole");
}

/// Two held-out tables that differ in one row leave the same names, keys, events and costs, and no
/// cell; only the noisy numbers differ.
#[test]
fn what_is_written_of_a_held_out_table_follows_its_release_alone() {
    let place = place(RUN);
    place.works("sample run.toml --out out --quiet");
    let others = table(2000, 1.3);
    let mut seen = Vec::new();
    for row in ["20.0,daily,1", "79.9,s3cret,0"] {
        let mut lines: Vec<&str> = others.lines().collect();
        lines[7] = row;
        place.write("others.csv", &(lines.join("\n") + "\n"));
        let _ = std::fs::remove_file(place.path("others.ledger.json"));
        let _ = std::fs::remove_file(place.path("out/validation.json"));
        let told = place.works("validate out");
        assert!(!told.contains("s3cret"));
        let mut report = place.json("out/validation.json");
        let keys = ["log_score", "accuracy"];
        for key in keys {
            report[0][key] = Value::Null;
        }
        let ledger = std::fs::read_to_string(place.path("others.ledger.json")).unwrap();
        assert!(!ledger.contains("s3cret") && !report.to_string().contains("s3cret"));
        let records = ledger.lines().count();
        let names = std::fs::read_dir(place.path("out")).unwrap();
        let mut names: Vec<String> = names
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        seen.push((report, records, names));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn what_cannot_be_protected_is_refused_before_anything_is_charged() {
    let units = "unit = \"smoker\"\nrows_per_unit = 2\n[columns]";
    for (from, to, words) in [
        ("\"others.csv\"", "\"people.csv\"", "is the table of [data]"),
        ("[-3, 0]", "[0, -3]", "LOW < HIGH"),
        ("clip = [-3, 0]\n", "", "clip"),
        ("share = 0.5", "share = 0", "(0, 1]"),
        ("share = 0.5", "share = 0.5\ndraws = 0", "1 to 10,000"),
        (
            "epsilon = 1.0\ndelta = 1e-6\nshare",
            "epsilon = 0\ndelta = 1e-6\nshare",
            "validate.epsilon",
        ),
        (
            "epsilon = 1.0\ndelta = 1e-6\nshare",
            "epsilon = 1.0\nshare",
            "delta",
        ),
        ("ledger = \"others.ledger.json\"\n", "", "ledger"),
        ("\"others.csv\"", "\"others*.csv\"", "validate.name"),
        ("[columns]", units, "protects single rows"),
        (
            "[validate]",
            "[test]\nfile = \"others.csv\"\npublic = true\n[validate]",
            "declared public",
        ),
        (
            "epsilon = 5.0",
            "ledger = \"others.ledger.json\"\nepsilon = 5.0",
            "is that of [privacy]",
        ),
    ] {
        let place = place(&edit(RUN, from, to));
        let message = place.refuses("sample run.toml --out out");
        assert!(message.contains(words), "{words}: {message}");
        assert!(!place.path("others.ledger.json").exists() && !place.path("out").exists());
    }
    let place = place(RUN);
    place.works("sample run.toml --out out --quiet");
    // A bad cell, by its line; a missing table; another table under the same ledger.
    place.write("others.csv", &(table(50, 1.3) + "ancient,daily,1\n"));
    let message = place.refuses("validate out");
    assert!(
        message.contains("line 52") && !message.contains("ancient"),
        "{message}"
    );
    std::fs::remove_file(place.path("others.csv")).unwrap();
    assert!(place.refuses("validate out").contains("no such file"));
    assert!(!place.path("others.ledger.json").exists());
    place.write("others.csv", &table(2000, 1.3));
    place.works("validate out");
    place.write("others.csv", &table(1999, 1.3));
    assert!(place.refuses("validate out").contains("2000"));
    // Runs without the section say what to do.
    let bare = Place::new(&edit(
        RUN,
        RUN.split("[validate]")
            .nth(1)
            .unwrap()
            .split("[model]")
            .next()
            .unwrap(),
        "\n",
    ));
    bare.write("people.csv", &table(300, 1.0));
    let text = std::fs::read_to_string(bare.path("run.toml")).unwrap();
    bare.write("run.toml", &edit(&text, "[validate]\n", ""));
    bare.works("sample run.toml --out out --quiet");
    assert!(bare.refuses("validate out").contains("is missing"));
    bare.refuses("validate nowhere");
}

/// Few rows, labels of one kind alone, counts beyond the clip.
#[test]
fn odd_tables_are_scored() {
    let counts = edit(RUN, "ill = {}", "ill = { count = 1 }");
    let counts = edit(&counts, "kind = \"logistic\"", "kind = \"poisson\"");
    for run in [RUN, &counts] {
        let place = place(run);
        place.write("others.csv", "age,smoker,ill\n30,daily,0\n90,never,0\n");
        place.works("sample run.toml --out out --quiet");
        let told = json(&place.works("validate out --json"));
        assert_eq!(told["accuracy"].is_null(), run != RUN);
        assert!(told["log_score"].as_f64().unwrap().is_finite());
    }
}

/// The run file of the guide's page runs.
#[test]
fn what_the_guide_shows_runs() {
    let page = std::fs::read_to_string(repository("docs/guide/held_out.md")).unwrap();
    let run = page
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let mut run = run.to_string();
    for file in [
        "examples/data/adult_train.csv.gz",
        "examples/data/adult_test.csv.gz",
    ] {
        run = edit(&run, file, &repository(file));
    }
    let place = Place::new(&run);
    place.works("check run.toml");
    place.works("sample run.toml --out out --quiet");
    place.works("validate out");
}

/// No answer takes the protected table for a public one, whatever the run's own table is.
#[test]
fn the_held_out_table_is_no_public_one() {
    let open = edit(
        RUN,
        "[privacy]\nepsilon = 5.0\ndelta = 1e-6",
        "[privacy]\nnot_private = true",
    );
    let open = edit(&open, "\"dp-laplace\"", "\"mh\"\nstep = 0.1");
    for run in [RUN, &open] {
        let place = place(run);
        place.works("sample run.toml --out out --quiet");
        for command in [
            "predict out --table others.csv --out told.csv",
            "effects out --table others.csv --shift age=10",
            "compare out --table others.csv",
            "synthesize out --table others.csv --out told.csv",
        ] {
            let message = place.refuses(command);
            assert!(
                message.contains("is the table of [validate]"),
                "{command}: {message}"
            );
            assert!(!place.path("told.csv").exists());
        }
    }
}

/// What could lose a paid score is found before it is paid for.
#[test]
fn a_damaged_report_and_a_ledger_of_one_run_are_refused_unpaid() {
    let place = place(RUN);
    place.works("sample run.toml --out out --quiet");
    place.write("out/validation.json", "[{");
    let output = place.dpmc("validate out");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && message.contains("validation.json"),
        "{message}"
    );
    assert!(!place.path("others.ledger.json").exists());
    std::fs::remove_file(place.path("out/validation.json")).unwrap();
    let text = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
    let given = text.lines().find(|l| l.contains("others.ledger.json"));
    let inside = edit(&text, given.unwrap(), "ledger = \"own.ledger.json\"");
    place.write("out/run.toml", &inside);
    let message = place.refuses("validate out");
    assert!(
        message.contains("validate.ledger") && message.contains("run's own directory"),
        "{message}"
    );
    assert!(!place.path("out/own.ledger.json").exists());
}

#[test]
fn a_score_says_what_it_is_of() {
    let loose = edit(
        RUN,
        "epsilon = 1.0\ndelta = 1e-6\nshare",
        "epsilon = 1.0\ndelta = 1e-2\nshare",
    );
    let numbers = edit(&loose, "ill = {}", "ill = { scale = [0, 1] }");
    let numbers = edit(
        &numbers,
        "kind = \"logistic\"",
        "kind = \"linear\"\nvariance = 0.3",
    );
    let place = place(&numbers);
    assert!(
        place
            .works("check run.toml")
            .contains("of [validate] exceeds 1/rows")
    );
    place.works("sample run.toml --out out --quiet");
    let told = place.works("validate out");
    for words in [
        "of [validate] exceeds 1/rows",
        "declare the label alike",
        "draws that the run had",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let report = &place.json("out/validation.json")[0];
    let (draws, kept) = (
        report["draws"].as_u64().unwrap(),
        report["kept"].as_u64().unwrap(),
    );
    assert!(draws == 150 && kept == 300, "{draws} {kept}");
}

/// Label files are compared like tables.
#[test]
fn held_out_labels_are_in_a_file_of_their_own() {
    let labels = edit(
        RUN,
        "[columns]\nill = {}\n",
        "label_file = \"people.y.csv\"\n[columns]\n",
    );
    let labels = edit(&labels, "ill ~ age", "~ age");
    let labels = edit(
        &labels,
        "\"others.csv\"",
        "\"others.csv\"\nlabel_file = \"people.y.csv\"",
    );
    let place = place(&labels);
    place.write("people.y.csv", "y\n1\n0\n");
    let message = place.refuses("sample run.toml --out out");
    assert!(
        message.contains("held-out rows are others, with labels"),
        "{message}"
    );
}
