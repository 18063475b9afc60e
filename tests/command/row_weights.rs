//! The promise: a row of weight w counts as w rows do, by every sampler, and a row of successes in
//! trials as a row for each trial; what is wrong is refused before anything is charged.

use serde_json::Value;

use crate::common::place::{Place, edit, repository};

/// Rows of weights 0 to 4 that follow no pattern of the others, of two for each person.
fn table(rows: usize) -> Vec<[String; 6]> {
    let row = |i: usize| {
        let t = i as f64;
        let weight = [0.0, 1.0, 1.0, 2.0, 4.0, 3.0, 1.0][i * i % 7];
        let age = 50.0 + 30.0 * (2.9 * t).sin();
        // Rows that weigh more have more visits.
        let eta = 0.4 + (age - 50.0) / 60.0 + 0.2 * weight;
        // More spread than a Poisson law's, so that rows tell a shape.
        let visits = (eta + 1.2 * (5.3 * t).cos()).exp().round();
        let sick = u8::from((7.7 * t).sin() + 0.8 * (eta - 1.0) > 0.0);
        [
            visits.to_string(),
            format!("{age:.2}"),
            sick.to_string(),
            weight.to_string(),
            (i / 2).to_string(),
            (i * 3 % 5).to_string(),
        ]
    };
    (0..rows).map(row).collect()
}

fn csv(rows: &[[String; 6]]) -> String {
    let head = "visits,age,sick,weight,person,site\n";
    let lines = rows.iter().map(|row| row.join(",") + "\n");
    lines.fold(head.to_string(), |text, line| text + &line)
}

const RUN: &str = r#"
[data]
file = "visits.csv"
[data.weights]
column = "weight"
most = 4
mean = 1.7
[columns]
visits = { count = 40 }
age = { scale = [20, 80] }
sick = {}
[model]
kind = "poisson"
formula = "visits ~ age"
prior = { kind = "normal", sd = 2 }
[sampler]
algorithm = "dp-laplace"
[run]
iterations = 2000
seed = 3
[privacy]
epsilon = 1000.0
delta = 1e-6
"#;

const BARE: &str = "[data.weights]\ncolumn = \"weight\"\nmost = 4\nmean = 1.7\n";

fn place(run: &str, rows: &[[String; 6]]) -> Place {
    let place = Place::new(run);
    place.write("visits.csv", &csv(rows));
    place
}

/// Mean and standard deviation of a parameter in the draws.
fn moments(place: &Place, k: usize) -> (f64, f64) {
    let draws = place.draws("out");
    let values: Vec<f64> = draws.rows.iter().map(|row| row.2[k]).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, (square / n).sqrt())
}

/// The first `d` parameters have the means of the other run, to within two fifths of a standard
/// deviation, and its standard deviations to within a quarter.
fn assert_same_posterior(one: &Place, other: &Place, d: usize, what: &str) {
    for k in 0..d {
        let [(a, sd), (b, other)] = [moments(one, k), moments(other, k)];
        let gap = (a - b) / other;
        assert!(gap.abs() < 0.4, "{what} {k}: {gap} sds apart");
        let ratio = sd / other;
        assert!((0.75..1.33).contains(&ratio), "{what} {k}: sds {ratio}");
    }
}

/// A table of 3,000 rows with weights, and the one in which every row stands as often as it weighs,
/// give the same posterior: with decisions and without, with a parameter that rows share, and by
/// samplers that are not private. Without the weights it is another: 2 sds off and more.
#[test]
#[ignore = "study"]
fn a_row_counts_as_often_as_it_weighs() {
    let rows = table(3_000);
    let often = rows.iter().flat_map(|row| {
        let times = row[3].parse::<usize>().unwrap();
        std::iter::repeat_n(row.clone(), times)
    });
    let often: Vec<_> = often.collect();
    let not_private = "epsilon = 1000.0\ndelta = 1e-6";
    let shared = "kind = \"negative-binomial\"\nparameters.log_shape = { mean = 1, sd = 1 }";
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("poisson", &[]),
        ("decided", &[("\"dp-laplace\"", "\"anchored-barker\"")]),
        ("shared", &[("kind = \"poisson\"", shared)]),
        (
            "logistic",
            &[
                ("kind = \"poisson\"", "kind = \"logistic\""),
                ("visits ~", "sick ~"),
            ],
        ),
        (
            "metropolis",
            &[
                ("\"dp-laplace\"", "\"mh\"\nstep = 0.06"),
                (not_private, "not_private = true"),
                ("iterations = 2000", "iterations = 4000\nwarmup = 500"),
            ],
        ),
        (
            "hamiltonian",
            &[
                ("\"dp-laplace\"", "\"hmc\""),
                (not_private, "not_private = true"),
                ("iterations = 2000", "iterations = 600\nwarmup = 200"),
            ],
        ),
    ];
    for (what, edits) in cases {
        let run = edits
            .iter()
            .fold(RUN.to_string(), |run, (from, to)| edit(&run, from, to));
        let weighed = place(&run, &rows);
        weighed.works("sample run.toml --out out --quiet");
        let bare = edit(&run, BARE, "");
        let repeated = place(&bare, &often);
        repeated.works("sample run.toml --out out --quiet");
        assert_same_posterior(&weighed, &repeated, 2, what);
        if what == "poisson" {
            let once = place(&bare, &rows);
            once.works("sample run.toml --out out --quiet");
            let [(a, sd), (b, _)] = [moments(&weighed, 0), moments(&once, 0)];
            assert!((a - b).abs() > 2.0 * sd);
        }
    }
}

/// Weights beyond the largest are cut off at it, and a row of no weight says nothing.
#[test]
fn weights_are_cut_off_and_nothing_counts_nothing() {
    let run = edit(RUN, "most = 4", "most = 2");
    let run = edit(&run, "\"dp-laplace\"", "\"mh\"\nstep = 0.06");
    let run = edit(&run, "epsilon = 1000.0\ndelta = 1e-6", "not_private = true");
    let run = edit(&run, "iterations = 2000", "iterations = 200\nwarmup = 20");
    let rows = table(600);
    let mut cut = rows.clone();
    for row in &mut cut {
        match row[3].parse::<f64>().unwrap() {
            w if w > 2.0 => row[3] = "2".into(),
            0.0 => row[0] = "40".into(),
            _ => {}
        }
    }
    let [one, other] = [rows, cut].map(|rows| {
        let place = place(&run, &rows);
        place.works("sample run.toml --out out --quiet");
        place.draws("out")
    });
    assert!(one == other, "the draws differ");
}

/// Weights over 300, where 300 is one row, are the weights.
#[test]
fn weights_count_in_units_of_one_row() {
    let run = edit(RUN, "\"dp-laplace\"", "\"mh\"\nstep = 0.06");
    let run = edit(&run, "epsilon = 1000.0\ndelta = 1e-6", "not_private = true");
    let run = edit(&run, "iterations = 2000", "iterations = 200\nwarmup = 20");
    let rows = table(600);
    let mut large = rows.clone();
    for row in &mut large {
        row[3] = (300.0 * row[3].parse::<f64>().unwrap()).to_string();
    }
    let units = "most = 1200\none = 300\nmean = 510";
    let one = place(&run, &rows);
    let other = place(&edit(&run, "most = 4\nmean = 1.7", units), &large);
    let [one, other] = [one, other].map(|place| {
        place.works("sample run.toml --out out --quiet");
        place.draws("out")
    });
    assert!(one == other, "the draws differ");
}

#[test]
fn every_sampler_takes_weights_and_says_so() {
    let rows = table(400);
    for (algorithm, kind) in [
        ("\"barker\"\nstep = 0.01\nclip = { rate = 5 }", "poisson"),
        (
            "\"poisson-barker\"\nstep = 0.01\nclip = { rate = 5 }",
            "poisson",
        ),
        (
            "\"dp-penalty\"\nstep = 0.01\nclip = { rate = 5 }",
            "poisson",
        ),
        ("\"anchored-barker\"", "poisson"),
        ("\"anchored-barker\"", "negative-binomial"),
        (
            "\"dp-hmc\"\nclip = { rate = 5 }\ngradient = { clip = 5 }",
            "poisson",
        ),
        ("\"dp-sgld\"\ngradient = { clip = 5 }", "poisson"),
        ("\"dp-sgld\"\ngradient = { clip = 5 }", "negative-binomial"),
        ("\"dp-sghmc\"\ngradient = { clip = 5 }", "poisson"),
        ("\"dp-barker\"\nstep = 0.01\nclip = { rate = 5 }", "poisson"),
        ("\"dp-adam\"\ngradient = { clip = 5 }", "poisson"),
        ("\"dpvi\"\ngradient = { clip = 5 }", "poisson"),
    ] {
        let run = edit(RUN, "\"dp-laplace\"", algorithm);
        let run = edit(&run, "epsilon = 1000.0", "epsilon = 8.0");
        let mut run = edit(&run, "iterations = 2000\n", "iterations = 40\n");
        if kind != "poisson" {
            let declared =
                "kind = \"negative-binomial\"\nparameters.log_shape = { mean = 0, sd = 1 }";
            run = edit(&run, "kind = \"poisson\"", declared);
        }
        for storage in ["i16", "f32"] {
            let run = edit(&run, "[data]", &format!("[data]\nstorage = \"{storage}\""));
            let place = place(&run, &rows);
            let check = place.works("check run.toml");
            let words =
                "weights    weight, up to 4, over 1: a row's log likelihood counts that often";
            assert!(check.contains(words), "{check}");
            place.works("sample run.toml --out out --quiet");
            assert!(place.draws("out").last() >= 1, "{algorithm} {kind}");
            let summary = place.works("summary out");
            assert!(summary.contains("rows have weights"), "{summary}");
        }
    }
}

/// Persons with several rows each, which have weights. For noise alone means of the two runs differ
/// by 0.04 standard deviations, root mean square; the test allows ten times that.
#[test]
fn rows_of_persons_have_weights_too() {
    let rows = table(15_000);
    let units = "unit = \"person\"\nrows_per_unit = 8\n[data.weights]";
    let run = edit(RUN, "[data.weights]", units);
    let weighed = place(&run, &rows);
    weighed.works("sample run.toml --out out --quiet");
    // As many copies as the weight says, of the same person.
    let often = rows.iter().flat_map(|row| {
        let times = row[3].parse::<usize>().unwrap();
        std::iter::repeat_n(row.clone(), times)
    });
    let often: Vec<_> = often.collect();
    let repeated = place(&edit(&run, BARE, ""), &often);
    repeated.works("sample run.toml --out out --quiet");
    assert_same_posterior(&weighed, &repeated, 2, "persons");
}

const TRIALS: &str = r#"
[data]
file = "trials.csv"
[data.label]
column = "hits"
trials = { column = "shots", most = 12 }
[[data.features]]
intercept = true
[[data.features]]
column = "range"
scale = [0, 10]
[model]
kind = "binomial"
prior = { kind = "normal", sd = 3 }
[sampler]
algorithm = "dp-laplace"
[run]
iterations = 2000
seed = 3
[privacy]
epsilon = 1000.0
delta = 1e-6
"#;

/// Successes in trials, by row and by trial; rows without a trial too.
fn shots(rows: usize) -> [String; 2] {
    let [mut by_row, mut by_shot] = ["hits,shots,range\n".to_string(), "hit,range\n".to_string()];
    for i in 0..rows {
        let (shots, range) = (i * i % 13, 5.0 + 5.0 * (2.9 * i as f64).sin());
        let chance = 1.0 / (1.0 + (0.4 * range - 1.5).exp());
        let noise = 0.8 * (5.3 * i as f64).sin();
        let hits = (shots as f64 * chance + noise).round().max(0.0) as usize;
        let hits = hits.min(shots);
        by_row += &format!("{hits},{shots},{range:.3}\n");
        for k in 0..shots {
            by_shot += &format!("{},{range:.3}\n", u8::from(k < hits));
        }
    }
    [by_row, by_shot]
}

/// A row of successes in trials is as many rows of one trial each, and predictions are of one.
#[test]
fn a_row_of_trials_is_a_row_for_each() {
    let [by_row, by_shot] = shots(1_500);
    for algorithm in ["\"dp-laplace\"", "\"anchored-barker\""] {
        let run = edit(TRIALS, "\"dp-laplace\"", algorithm);
        let one = Place::new(&run);
        one.write("trials.csv", &by_row);
        let check = one.works("check run.toml");
        assert!(check.contains("shots, up to 12 trials of a row"), "{check}");
        assert!(check.contains("model      binomial with "), "{check}");
        one.works("sample run.toml --out out --quiet");
        let run = edit(&run, "kind = \"binomial\"", "kind = \"logistic\"");
        let label = "column = \"hits\"\ntrials = { column = \"shots\", most = 12 }";
        let other = Place::new(&edit(&run, label, "column = \"hit\""));
        other.write("trials.csv", &by_shot);
        other.works("sample run.toml --out out --quiet");
        assert_same_posterior(&one, &other, 2, algorithm);
        one.write("new.csv", "range\n2\n9\n");
        let told: Value =
            serde_json::from_str(&one.works("predict out --table new.csv --json")).unwrap();
        let chances = &told["columns"];
        assert!(chances.to_string().contains("0."), "{told}");
        one.works("effects out --table new.csv --shift range=1");
        one.write("labelled.csv", "range,shots,hits\n2,4,1\n9,5,5\n");
        for command in ["compare out", "synthesize out --out made --seed 1"] {
            let message = one.refuses(&format!("{command} --table labelled.csv"));
            assert!(message.contains("several outcomes"), "{message}");
        }
    }
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_charged() {
    let rows = table(60);
    for (from, to, words) in [
        ("most = 4", "most = 0", "must be a positive number"),
        ("most = 4", "most = -1", "must be a positive number"),
        ("mean = 1.7", "one = 200000", "in the column's units"),
        ("most = 4", "most = 1e40", "in the column's units"),
        ("mean = 1.7", "mean = 1e-300", "at most 'most'"),
        ("mean = 1.7", "mean = 5", "at most 'most'"),
        ("mean = 1.7", "one = 0", "must be a positive number"),
        ("column = \"weight\"", "column = \"no\"", "is called 'no'"),
        ("most = 4\n", "", "most"),
        (
            "[data.weights]",
            "bad_cells = \"missing\"\n[data.weights]",
            "[data.weights]",
        ),
        (
            "kind = \"poisson\"",
            "kind = \"mlp\"\nhidden = 2",
            "belongs to regressions",
        ),
        (
            "[data.weights]",
            "unit = \"weight\"\nrows_per_unit = 2\n[data.weights]",
            "says whose a row is",
        ),
        (
            "[columns]",
            "[data.bounds]\ncolumn = \"weight\"\npublic = true\n[columns]",
            "weights are protected",
        ),
        ("algorithm = ", "engine = \"gpu\"\nalgorithm = ", "engine"),
    ] {
        let mut run = edit(RUN, from, to);
        if words == "[data.weights]" {
            run = edit(&run, "count = 40", "count = 40, missing = 0");
            run = edit(&run, "scale = [20, 80]", "scale = [20, 80], missing = 50");
        }
        let place = place(&run, &rows);
        let message = place.refuses("sample run.toml --out out --ledger l.json");
        assert!(message.contains(words), "{words}: {message}");
        assert!(!place.path("l.json").exists(), "{words}");
    }
    for cell in ["", "-2.75", "heavy", "inf"] {
        let mut rows = rows.clone();
        rows[40][3] = cell.into();
        let place = place(RUN, &rows);
        let message = place.refuses("sample run.toml --out out --ledger l.json");
        assert!(
            message.contains("line 42") && message.contains("weight"),
            "{message}"
        );
        assert!(!message.contains("2.75") && !message.contains("heavy"));
    }
    for (from, to, words) in [
        (
            "\"binomial\"",
            "\"probit\"",
            "belongs to kind = \"binomial\"",
        ),
        (
            "kind = \"binomial\"",
            "kind = \"binomial\"\nconstants = { trials = 3 }",
            "own number of trials",
        ),
        (
            "[[data.features]]\nintercept",
            "[data.weights]\ncolumn = \"range\"\nmost = 1\n[[data.features]]\nintercept",
            "drop [data.weights]",
        ),
        ("\"hits\"\n", "\"hits\"\ncount = 12\n", "contradict"),
        ("most = 12", "most = 12, one = 2", "counts as one row"),
        (
            "[model]",
            "[test]\nfile = \"others.csv\"\npublic = true\n[model]",
            "single outcomes",
        ),
        ("\"range\"", "\"shots\"", "belongs to the label"),
        ("\"shots\"", "\"hits\"", "is the label's column"),
    ] {
        let place = Place::new(&edit(TRIALS, from, to));
        place.write("trials.csv", &shots(60)[0]);
        let message = place.refuses("sample run.toml --out out --ledger l.json");
        assert!(message.contains(words), "{words}: {message}");
        assert!(!place.path("l.json").exists(), "{words}");
    }
    for row in ["7,5,2", "1.5,5,2", ",5,2", "-1,5,2", "1,,2", "0,-3,2"] {
        let place = Place::new(TRIALS);
        place.write("trials.csv", &format!("hits,shots,range\n0,0,1\n{row}\n"));
        let message = place.refuses("sample run.toml --out out --ledger l.json");
        assert!(message.contains("line 3"), "{row}: {message}");
        for cell in row.split(',').filter(|c| c.len() > 1) {
            assert!(!message.contains(cell), "{message}");
        }
    }
}

/// The guide's run files run, on the guide's table and on one of clinics.
#[test]
fn what_the_guide_shows_runs() {
    let page = std::fs::read_to_string(repository("docs/guide/weights.md")).unwrap();
    let runs: Vec<&str> = page.split("```toml\n").skip(1).collect();
    let [survey, clinics] = runs[..] else {
        panic!("two run files")
    };
    let survey = survey.split("```").next().unwrap();
    let file = repository("examples/data/adult_train.csv.gz");
    let place = Place::new(&edit(survey, "examples/data/adult_train.csv.gz", &file));
    place.works("check run.toml");
    place.works("sample run.toml --out out --quiet --iterations 50");
    assert!(place.draws("out").last() >= 1);
    let place = Place::new(clinics.split("```").next().unwrap());
    let mut table = String::from("recovered,treated,beds,teaching\n");
    for row in 0..2000 {
        let (treated, teaching) = (row % 31, if row % 3 == 0 { "yes" } else { "no" });
        table += &format!(
            "{},{treated},{},{teaching}\n",
            treated * (row % 7) / 9,
            row % 500
        );
    }
    place.write("clinics.csv", &table);
    place.works("check run.toml");
    place.works("sample run.toml --out out --quiet --iterations 50");
    assert!(place.draws("out").last() >= 1);
}
