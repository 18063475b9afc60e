//! The promise: an offset of a table is added to the linear predictor with the coefficient 1 by
//! every sampler and every answer, and a wrong one is refused before anything is charged.

use serde_json::Value;

use crate::common::place::{Draws, Place, edit};

/// Counts that are about twice the exposure, whose spread is wide.
fn table(rows: usize) -> String {
    let mut text = String::from("events,years,age,sick,person\n");
    for i in 0..rows {
        let t = i as f64;
        let years = (2.3 * (1.7 * t).sin()).exp();
        let (age, noise) = (50.0 + 30.0 * (2.9 * t).sin(), 1.0 + 0.3 * (5.3 * t).cos());
        let events = (2.0 * years * noise).round();
        let sick = u8::from((0.37 * t).sin() + 0.5 * years.ln() > 0.0);
        text += &format!("{events},{years:.4},{age:.2},{sick},{}\n", i / 2);
    }
    text
}

const RUN: &str = r#"
[data]
file = "visits.csv"
[columns]
events = { count = 60 }
years = { clamp = [0.1, 10] }
age = { scale = [20, 80] }
[model]
kind = "poisson"
formula = "events ~ age + offset(log(years))"
prior = { kind = "normal", sd = 2 }
[sampler]
algorithm = "mh"
step = 0.05
[run]
iterations = 300
warmup = 100
seed = 3
[privacy]
not_private = true
"#;

const BLOCKS: &str = r#"
[data]
file = "visits.csv"
[data.label]
column = "events"
count = 60
[data.offset]
column = "years"
clamp = [0.1, 10]
transform = "log"
[[data.features]]
intercept = true
[[data.features]]
column = "age"
scale = [20, 80]
[model]
kind = "poisson"
prior = { kind = "normal", sd = 2 }
[sampler]
algorithm = "mh"
step = 0.05
[run]
iterations = 300
warmup = 100
seed = 3
[privacy]
not_private = true
"#;

fn place(run: &str) -> Place {
    let place = Place::new(run);
    place.write("visits.csv", &table(600));
    place
}

/// e to the intercept of the last draw.
fn rate(draws: &Draws) -> f64 {
    draws.rows.last().unwrap().2[0].exp()
}

/// A private run of this sampler.
fn private(algorithm: &str) -> String {
    let run = edit(RUN, "not_private = true", "epsilon = 8.0\ndelta = 1e-6");
    edit(&run, "algorithm = \"mh\"\nstep = 0.05", algorithm)
}

#[test]
fn a_formula_and_a_block_make_the_same_draws() {
    let (one, other) = (place(RUN), place(BLOCKS));
    for place in [&one, &other] {
        place.works("sample run.toml --out out --quiet");
        let check = place.works("check run.toml");
        assert!(
            check.contains("offset     log(years), cut off at 0.1 and 10; its coefficient is 1"),
            "{check}"
        );
        let summary = place.works("summary out");
        assert!(
            summary.contains("an offset to their linear predictor"),
            "{summary}"
        );
    }
    let (a, b) = (one.draws("out"), other.draws("out"));
    assert_eq!(a, b);
    // The rate is about 2 a year, whatever the exposures are: without them, about 5.
    let rate = rate(&a);
    assert!((1.7..2.4).contains(&rate), "{rate}");
}

#[test]
fn every_sampler_takes_an_offset() {
    for (algorithm, kind) in [
        (
            "algorithm = \"barker\"\nstep = 0.01\nclip = { rate = 5 }",
            "poisson",
        ),
        (
            "algorithm = \"poisson-barker\"\nstep = 0.01\nclip = { rate = 5 }",
            "poisson",
        ),
        (
            "algorithm = \"dp-penalty\"\nstep = 0.01\nclip = { rate = 5 }",
            "poisson",
        ),
        ("algorithm = \"anchored-barker\"", "poisson"),
        ("algorithm = \"dp-laplace\"", "poisson"),
        ("algorithm = \"dp-laplace\"", "negative-binomial"),
        ("algorithm = \"anchored-barker\"", "negative-binomial"),
        (
            "algorithm = \"dp-hmc\"\nclip = { rate = 5 }\ngradient = { clip = 5 }",
            "poisson",
        ),
        (
            "algorithm = \"dp-sgld\"\ngradient = { clip = 5 }",
            "poisson",
        ),
        (
            "algorithm = \"dp-sgld\"\ngradient = { clip = 5 }",
            "negative-binomial",
        ),
        ("algorithm = \"dpvi\"\ngradient = { clip = 5 }", "poisson"),
    ] {
        let mut run = edit(&private(algorithm), "warmup = 100\n", "");
        if kind != "poisson" {
            let declared =
                "kind = \"negative-binomial\"\nparameters.log_shape = { mean = 0, sd = 1 }";
            run = edit(&run, "kind = \"poisson\"", declared);
        }
        for storage in ["i16", "f32"] {
            let run = edit(&run, "[data]", &format!("[data]\nstorage = \"{storage}\""));
            let place = place(&run);
            place.works("check run.toml");
            place.works("sample run.toml --out out --quiet --iterations 40");
            assert!(place.draws("out").last() >= 1, "{algorithm} {kind}");
        }
    }
    let hmc = edit(
        RUN,
        "algorithm = \"mh\"\nstep = 0.05",
        "algorithm = \"hmc\"",
    );
    let place = place(&hmc);
    place.works("sample run.toml --out out --quiet");
    let rate = rate(&place.draws("out"));
    assert!((1.7..2.4).contains(&rate), "{rate}");
}

/// With a budget that hides little, an anchor finds the rate: of rows and of persons, with a
/// parameter that rows share and without.
#[test]
fn anchors_find_the_rate_beside_the_offset() {
    let run = edit(
        &private("algorithm = \"dp-laplace\""),
        "epsilon = 8.0",
        "epsilon = 300.0",
    );
    let shared = "kind = \"negative-binomial\"\nparameters.log_shape = { mean = 0, sd = 1 }";
    let units = "unit = \"person\"\nrows_per_unit = 2\n[columns]";
    for kind in ["kind = \"poisson\"", shared] {
        for table in ["[columns]", units] {
            let run = edit(&run, "kind = \"poisson\"", kind);
            let place = place(&edit(&run, "[columns]", table));
            place.works("sample run.toml --out out --quiet");
            let draws = place.draws("out");
            let mean = draws.rows.iter().map(|r| r.2[0]).sum::<f64>() / draws.rows.len() as f64;
            // Without the offset it is about 5.
            assert!(
                (1.8..2.25).contains(&mean.exp()),
                "{kind} {table} {}",
                mean.exp()
            );
        }
    }
}

/// What is predicted grows with the exposure, in proportion.
#[test]
fn answers_read_the_exposure_of_new_rows() {
    let place = place(RUN);
    place.works("sample run.toml --out out --quiet");
    place.write("new.csv", "years,age,events\n1,40,2\n4,40,8\n0.5,70,1\n");
    let json = |command: &str| -> Value { serde_json::from_str(&place.works(command)).unwrap() };
    let told = json("predict out --table new.csv --json");
    let mean: Vec<f64> = serde_json::from_value(told["columns"]["mean"].clone()).unwrap();
    assert!((mean[1] / mean[0] - 4.0).abs() < 1e-3, "{mean:?}");
    // The exposure's own effect, by the same draws.
    let told = json("effects out --table new.csv --contrast years=1:4 --json");
    let effect = told["effects"][0]["effect"].as_f64().unwrap();
    assert!((effect / mean[0] - 3.0).abs() < 0.2, "{told}");
    let told = json("compare out --table new.csv --json");
    assert_eq!(told["rows"], 3);
    place.write("bare.csv", "years,age\n1,40\n10,40\n0.2,70\n");
    place.works("synthesize out --table bare.csv --out made --seed 1");
    let without = edit(
        &std::fs::read_to_string(place.path("new.csv")).unwrap(),
        "years,",
        "yrs,",
    );
    place.write("without.csv", &without);
    let message = place.refuses("predict out --table without.csv");
    assert!(message.contains("'years'"), "{message}");
    place.works("prior run.toml");
    // Scores of a public test table add it too: a model without it scores worse.
    let loss = |run: &str| {
        let test = "[test]\nfile = \"new.csv\"\npublic = true\n[model]";
        let own = self::place(&edit(run, "[model]", test));
        own.write("new.csv", "years,age,events\n1,40,2\n8,40,16\n0.5,70,1\n");
        own.works("sample run.toml --out out --quiet");
        let told: Value = serde_json::from_str(&own.works("summary out --json")).unwrap();
        told["test_log_loss"].as_f64().unwrap()
    };
    let bare = edit(RUN, " + offset(log(years))", "");
    assert!(
        loss(RUN) + 0.5 < loss(&bare),
        "{} {}",
        loss(RUN),
        loss(&bare)
    );
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_charged() {
    let run = private("algorithm = \"dp-laplace\"");
    let blocks = edit(BLOCKS, "not_private = true", "epsilon = 8.0\ndelta = 1e-6");
    let blocks = edit(
        &blocks,
        "algorithm = \"mh\"\nstep = 0.05",
        "algorithm = \"dp-laplace\"",
    );
    for (run, from, to, words) in [
        (
            &run,
            "offset(log(years))",
            "offset(log(yeers))",
            "'yeers' is not declared",
        ),
        (
            &run,
            "years = { clamp = [0.1, 10] }",
            "years = { clamp = [0, 10] }",
            "a lower bound above 0",
        ),
        (
            &run,
            "years = { clamp = [0.1, 10] }",
            "years = { levels = [\"a\"] }",
            "is no number",
        ),
        (
            &run,
            "years = { clamp = [0.1, 10] }",
            "years = { clamp = [0.1, 10], standardize = { mean = 1, sd = 2 } }",
            "keeps its units",
        ),
        (
            &run,
            "[columns]",
            "bad_cells = \"missing\"\n[columns]",
            "column 'age' has none",
        ),
        (
            &run,
            "kind = \"poisson\"",
            "kind = \"mlp\"\nhidden = 2",
            "belongs to regressions",
        ),
        (
            &run,
            "[columns]",
            "[data.offset]\ncolumn = \"age\"\nclamp = [1, 2]\n[columns]",
            "declared twice",
        ),
        (
            &blocks,
            "clamp = [0.1, 10]\ntransform",
            "transform",
            "clamp",
        ),
        (
            &blocks,
            "clamp = [0.1, 10]",
            "clamp = [10, 0.1]",
            "reversed",
        ),
        (
            &blocks,
            "clamp = [0.1, 10]",
            "clamp = [0.1, 10]\nmissing = 20",
            "inside the declared bounds",
        ),
        (&blocks, "\"years\"", "\"events\"", "belongs to the label"),
        (&blocks, "\"years\"", "\"no\"", "is called 'no'"),
        (&blocks, "transform = \"log\"", "scale = [0, 1]", "scale"),
    ] {
        let place = place(&edit(run, from, to));
        let message = place.refuses("sample run.toml --out out --ledger l.json");
        assert!(message.contains(words), "{words}: {message}");
        assert!(!place.path("l.json").exists(), "{words}");
    }
    // A cell that is none, by its line and column; as a missing one where that is declared.
    for cell in ["", "many"] {
        let place = place(&run);
        let bad = table(600).replacen("\n", &format!("\n3,{cell},40,1,0\n"), 1);
        place.write("visits.csv", &bad);
        let message = place.refuses("sample run.toml --out out --ledger l.json");
        assert!(
            message.contains("line 2") && message.contains("years"),
            "{message}"
        );
        assert!(!message.contains("many"), "{message}");
        let told = edit(
            &edit(&run, "[columns]", "bad_cells = \"missing\"\n[columns]"),
            "clamp = [0.1, 10]",
            "clamp = [0.1, 10], missing = 1",
        );
        let told = edit(&told, "scale = [20, 80]", "scale = [20, 80], missing = 50");
        let told = edit(&told, "count = 60", "count = 60, missing = 0");
        place.write("told.toml", &told);
        place.works("sample told.toml --out told --quiet --iterations 20");
    }
}

/// Few rows, exposures of one size, and one that is thousands of times the others.
#[test]
fn odd_exposures_run() {
    let flat = "events,years,age,sick\n".to_string() + &"1,0.1,30,0\n0,10,70,1\n".repeat(20);
    let skewed =
        "events,years,age,sick\n".to_string() + &"0,0.001,30,0\n".repeat(50) + "60,1000000,50,1\n";
    for table in [flat, skewed] {
        for sampler in ["dp-laplace", "anchored-barker"] {
            let place = Place::new(&private(&format!("algorithm = \"{sampler}\"")));
            place.write("visits.csv", &table);
            place.works("sample run.toml --out out --quiet --iterations 100");
            let draws = place.draws("out");
            let finite = |row: &(i32, i64, Vec<f64>)| row.2.iter().all(|v| v.is_finite());
            assert!(draws.rows.iter().all(finite), "{sampler}");
        }
    }
}
