//! Run files whose anchor is released moments: through the command from the table to the summary,
//! resumed without paying twice; and what is refused, by key.

use crate::common::place::{Place, edit};

/// The mixture of one column; 500 rows between −1 and 1.
const RUN: &str = r#"[data]
file = "people.csv"
[[data.features]]
column = "a"
clamp = [-1, 1]
[model]
kind = "mixture"
variance = 0.5
box = 2.0
tempering = 0.5
[sampler]
algorithm = "anchored-barker"
step = 0.4
[run]
iterations = 3000
engine = "cpu"
[privacy]
epsilon = 2.0
delta = 1e-6
"#;

const GAUSSIAN: &str = r#"[data]
file = "people.csv"
[[data.features]]
columns = ["a", "b"]
clamp = [-1, 1]
[model]
kind = "gaussian-mean"
covariance = [[0.3, 0.0], [0.0, 0.3]]
prior = { kind = "normal", sd = 1.0 }
[sampler]
algorithm = "anchored-barker"
step = 0.05
adapt = "diagonal"
[run]
warmup = 500
iterations = 3000
engine = "cpu"
[privacy]
epsilon = 2.0
delta = 1e-6
"#;

#[test]
fn a_run_on_moments_is_paid_for_once_and_its_summary_holds_their_noise() {
    for (name, run, degree, moments) in [
        ("mixture", RUN.to_string(), 12, 12),
        ("gaussian-mean", GAUSSIAN.to_string(), 1, 2),
    ] {
        let place = Place::new(&run);
        let check = place.works("check run.toml");
        assert!(
            check.contains(&format!("moments up to degree {degree}")),
            "{check}"
        );
        let printed = place.works("sample run.toml --out out");
        assert!(
            printed.contains("with the anchor's noise"),
            "{name}: {printed}"
        );
        let state = place.json("out/state.json");
        assert_eq!(
            state["anchor"]["sums"].as_array().unwrap().len(),
            moments,
            "{name}"
        );
        let certificate = place.certificate("out");
        assert_eq!(certificate["status"], "finished", "{name}");
        assert_eq!(certificate["adaptive"], true);
        assert_eq!(certificate["epsilon"], 2.0);
        let spent = certificate["epsilon_spent"].as_f64().unwrap();
        assert!(spent > 1.5 && spent < 2.0, "{name}: {spent}");

        // Every mean has an interval. (What it should be: tests/promises/moments.rs.)
        let summary: serde_json::Value =
            serde_json::from_str(&place.works("summary out --json")).unwrap();
        for (row, noise) in summary["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .zip(summary["noise_aware"].as_array().unwrap())
        {
            let chain = row["sd"].as_f64().unwrap() / row["ess_bulk"].as_f64().unwrap().sqrt();
            let whole = noise["mean_sd"].as_f64().unwrap();
            assert!(
                whole > 0.2 * chain && whole < 10.0,
                "{name}: {whole} {chain}"
            );
        }

        let before = crate::common::place::spent(&place.json("out/ledger.json"));
        place.works("sample --resume out --iterations 6000");
        let after = crate::common::place::spent(&place.json("out/ledger.json"));
        assert!(
            after > before && after < before * 1.01,
            "{name}: {before} {after}"
        );
        let resumed = place.json("out/state.json");
        assert_eq!(resumed["anchor"], state["anchor"], "{name}: another anchor");
    }
}

#[test]
fn damaged_moments_are_refused_and_nothing_is_charged() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out out");
    let text = std::fs::read_to_string(place.path("out/state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&text).unwrap();
    let before = place.json("out/ledger.json");
    let mut damaged = Vec::new();
    for (key, value) in [
        ("sums", serde_json::json!([0.5])),
        ("sds", serde_json::json!(vec![-1.0; 12])),
        ("rows", serde_json::json!(0.0)),
    ] {
        let mut other = state.clone();
        other["anchor"][key] = value;
        damaged.push(other);
    }
    let mut other = state.clone();
    other["anchor"]["basis"]["degree"] = 0.into();
    damaged.push(other);
    for other in damaged {
        place.write("out/state.json", &other.to_string());
        let message = place.refuses("sample --resume out --iterations 6000");
        assert!(
            message.contains("moments") || message.contains("state.json"),
            "{message}"
        );
        assert_eq!(place.json("out/ledger.json"), before);
    }
}

#[test]
fn keys_of_the_other_anchor_and_impossible_moments_are_refused_by_key() {
    let anchored = "\"anchored-barker\"";
    for (run, from, to, words) in [
        (
            RUN,
            anchored,
            "anchor = { degree = 0 }",
            "sampler.anchor.degree; between 1 and 30",
        ),
        (
            RUN,
            anchored,
            "anchor = { degree = 31 }",
            "sampler.anchor.degree; not 31",
        ),
        (
            GAUSSIAN,
            anchored,
            "anchor = { degree = 2 }",
            "sampler.anchor.degree; leave it out",
        ),
        (
            RUN,
            anchored,
            "anchor = { moments = 1.5 }",
            "sampler.anchor.moments; share",
        ),
        (
            RUN,
            anchored,
            "anchor = { stages = 2 }",
            "sampler.anchor.stages; random walk",
        ),
        (
            RUN,
            anchored,
            "anchor = { radius = 2.0 }",
            "sampler.anchor.radius; random walk",
        ),
        (
            RUN,
            anchored,
            "proposal = { autoregressive = { correlation = 0.5 } }",
            "sampler.proposal; 'step'",
        ),
        (
            RUN,
            anchored,
            "clip = { rate = 1.0 }",
            "sampler.clip; share",
        ),
    ] {
        let place = Place::new(&edit(run, from, &format!("{from}\n{to}")));
        for command in ["check run.toml", "sample run.toml --out out"] {
            let message = place.refuses(command);
            for word in words.split(';').map(str::trim) {
                assert!(message.contains(word), "{to}: no '{word}': {message}");
            }
            assert!(!place.path("out").exists(), "{to}: leaves output");
        }
    }
}
