//! Promise: `dpmc account` and `dpmc calibrate` answer in JSON, refuse what is no sequence
//! of events by index and field, and never overspend.

use std::process::{Command, Output};

use serde_json::{Value, json};

fn dpmc(events: &Value, arguments: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.json");
    std::fs::write(&file, events.to_string()).unwrap();
    let (verb, flags) = arguments.split_once(' ').unwrap();
    Command::new(env!("CARGO_BIN_EXE_dpmc"))
        .arg(verb)
        .arg(&file)
        .args(flags.split(' '))
        .output()
        .unwrap()
}

fn answer(events: &Value, arguments: &str) -> Value {
    let out = dpmc(events, arguments);
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Every kind of the documented format.
fn all_kinds() -> Value {
    json!({"neighbours": "substitution", "events": [
        {"kind": "gaussian", "sensitivity": 1, "sigma": 20, "count": 10},
        {"kind": "discrete_gaussian", "sensitivity": 1, "sigma": 20, "step": 1e-6},
        {"kind": "poisson_gaussian", "rate": 0.01, "sensitivity": 2, "sigma": 1, "count": 100},
        {"kind": "fixed_batch_gaussian", "batch": 500, "rows": 50000, "sensitivity": 1, "sigma": 2},
        {"kind": "bounded_range", "eta": 0.05, "count": 100},
        {"kind": "poisson_barker", "clip": 0.02, "ratio": 1, "count": 100},
        {"kind": "pure", "epsilon": 0.1, "count": 2},
        {"kind": "heikkila", "batch": 1000, "rows": 1000000, "form": "tightened", "count": 20},
        {"kind": "fast_mh_noisy", "mean": 0.001, "sensitivity": 1, "sigma": 8, "count": 10},
    ]})
}

#[test]
fn answers_have_bounds_and_one_entry_per_accountant() {
    let answer = answer(&all_kinds(), "account --delta 1e-6 --json");
    let number = |key: &str| answer[key].as_f64().unwrap();
    assert_eq!(number("epsilon"), number("upper"));
    assert_eq!(number("delta"), 1e-6);
    assert!(number("lower") <= number("upper") && number("upper") < 10.0);
    assert!(answer["method"].is_string());
    let first = &answer["accountants"][0];
    for key in ["method", "lower", "upper", "adaptive"] {
        assert!(!first[key].is_null(), "{key}: {first}");
    }
}

#[test]
fn delta_and_epsilon_answer_each_other() {
    let events = json!({"neighbours": "add-remove", "events": [
        {"kind": "poisson_gaussian", "rate": 0.01, "sensitivity": 1, "sigma": 1, "count": 10000}]});
    let there = answer(&events, "account --delta 1e-5 --json");
    let epsilon = there["epsilon"].as_f64().unwrap();
    assert!(epsilon > 6.187 && epsilon < 6.2, "{epsilon}");
    let back = answer(&events, &format!("account --epsilon {epsilon} --json"));
    let delta = back["delta"].as_f64().unwrap();
    assert!(delta <= 1e-5 * 1.01 && delta > 0.98e-5, "{delta}");
}

/// A blank row is one that substitution may bring: all kinds have a price, which is no larger, and
/// that of sums over Poisson samples is the one of add/remove.
#[test]
fn zero_out_prices_every_kind() {
    let mut events = all_kinds();
    // But this one, whose theorem needs what a substitution changes.
    let fixed = events["events"].as_array_mut().unwrap().remove(3);
    assert_eq!(fixed["kind"], "fixed_batch_gaussian");
    let refused = dpmc(
        &json!({"neighbours": "zero-out", "events": [fixed]}),
        "account --delta 1e-6",
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("zero-out neighbours"));
    let cost = |events: &Value| {
        let answer = answer(events, "account --delta 1e-6 --json");
        answer["epsilon"].as_f64().unwrap()
    };
    let substitution = cost(&events);
    events["neighbours"] = json!("zero-out");
    // Sensitivities are those of the relation: of one row here, of two before.
    events["events"][2]["sensitivity"] = json!(1);
    assert!(cost(&events) <= substitution * (1.0 + 1e-9));
    let mut sums = json!({"neighbours": "zero-out", "events": [
        {"kind": "poisson_gaussian", "rate": 0.01, "sensitivity": 1, "sigma": 1, "count": 1000}]});
    let blank = cost(&sums);
    sums["neighbours"] = json!("add-remove");
    assert_eq!(blank, cost(&sums));
    sums["neighbours"] = json!("substitution");
    assert!(cost(&sums) != blank);
}

#[test]
fn an_infinite_answer_is_null() {
    let events = json!({"neighbours": "substitution", "events": [
        {"kind": "gaussian", "sensitivity": 1, "sigma": 1}]});
    assert!(answer(&events, "account --delta 0 --json")["epsilon"].is_null());
}

#[test]
fn calibration_never_overspends() {
    let events = all_kinds();
    for name in ["2.sigma", "4.eta", "4.count", "2.rate"] {
        let flags = format!("calibrate --epsilon 3 --delta 1e-6 --solve {name} --json");
        let found = answer(&events, &flags);
        assert!(found["upper"].as_f64().unwrap() <= 3.0, "{name}");
        // What it found costs that, and not much less.
        let (index, field) = name.split_once('.').unwrap();
        let mut solved = events.clone();
        let value = &found["solution"]["value"];
        solved["events"][index.parse::<usize>().unwrap()][field] = match field {
            "count" => json!(value.as_f64().unwrap() as u64),
            _ => value.clone(),
        };
        let cost = answer(&solved, "account --delta 1e-6 --json")["epsilon"]
            .as_f64()
            .unwrap();
        assert!(cost <= 3.0 && cost > 2.97, "{name}: {cost}");
    }
}

#[test]
fn bad_events_are_named_by_index_and_field() {
    let with = |event: Value| {
        json!({"neighbours": "add-remove", "events": [
        {"kind": "pure", "epsilon": 1}, event]})
    };
    for (events, says) in [
        (
            json!({"neighbours": "substitution", "events": []}),
            "'events' is empty",
        ),
        (json!({"events": []}), "'neighbours' is missing"),
        (json!({"neighbours": "sub", "events": []}), "'neighbours'"),
        (json!([1]), "'neighbours' and 'events'"),
        (
            with(json!({"kind": "gaussian", "sensitivity": 1, "sigma": 0})),
            "events[1]: 'sigma'",
        ),
        (
            with(json!({"kind": "gaussian", "sensitivity": 1, "sigma": -1})),
            "events[1]: 'sigma'",
        ),
        (
            with(json!({"kind": "gaussian", "sensitivity": -1, "sigma": 1})),
            "'sensitivity'",
        ),
        (
            with(json!({"kind": "gaussian", "sensitivity": 1, "sigma": "NaN"})),
            "events[1]",
        ),
        (
            with(json!({"kind": "gaussian", "sensitivity": 1})),
            "missing field `sigma`",
        ),
        (
            with(json!({"kind": "gaussian", "sensitivity": 1, "sigma": 1, "sgima": 1})),
            "sgima",
        ),
        (
            with(json!({"kind": "gauss", "sensitivity": 1, "sigma": 1})),
            "events[1]: 'gauss'",
        ),
        (
            with(json!({"sensitivity": 1, "sigma": 1})),
            "events[1]: 'kind'",
        ),
        (
            with(json!({"kind": "pure", "epsilon": 1, "count": 0})),
            "events[1]: 'count'",
        ),
        (
            with(json!({"kind": "pure", "epsilon": 1, "count": 1.5})),
            "events[1]: 'count'",
        ),
        (
            with(json!({"kind": "pure", "epsilon": 1, "count": 1_000_000_000_000_000_000u64})),
            "events[1]: 'count'",
        ),
        (
            with(json!({"kind": "poisson_gaussian", "rate": 1.1, "sensitivity": 1, "sigma": 1})),
            "events[1]: 'rate'",
        ),
        (
            with(
                json!({"kind": "fixed_batch_gaussian", "batch": 2, "rows": 5, "sensitivity": 1, "sigma": 1}),
            ),
            "add-remove",
        ),
        (
            with(json!({"kind": "heikkila", "batch": 100, "rows": 5000, "form": "published"})),
            "events[1]: 'kind'",
        ),
        (
            json!({"neighbours": "substitution", "events": [
            {"kind": "fixed_batch_gaussian", "batch": 6, "rows": 5, "sensitivity": 1, "sigma": 1}]}),
            "events[0]: 'batch'",
        ),
        (
            json!({"neighbours": "substitution", "events": [
            {"kind": "heikkila", "batch": 10, "rows": 5000, "form": "published"}]}),
            "events[0]: 'batch'",
        ),
    ] {
        let out = dpmc(&events, "account --delta 1e-6");
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{events}: {err}");
        assert!(
            err.contains(says) && err.contains("events.json"),
            "{events}: {err}"
        );
        assert!(out.stdout.is_empty());
    }
    let good = all_kinds();
    for (flags, says) in [
        ("account --delta 1", "--delta"),
        ("account --delta -1", "--delta"),
        ("account --delta nan", "--delta"),
        ("account --epsilon -2", "--epsilon"),
        (
            "calibrate --epsilon 0 --delta 1e-6 --solve 2.sigma",
            "--epsilon",
        ),
        (
            "calibrate --epsilon 1 --delta 1e-6 --solve sigma",
            "say which",
        ),
        (
            "calibrate --epsilon 1 --delta 1e-6 --solve wibble",
            "wibble",
        ),
        (
            "calibrate --epsilon 1 --delta 1e-6 --solve 9.sigma",
            "events[9]",
        ),
        (
            "calibrate --epsilon 1e-9 --delta 1e-12 --solve 2.sigma",
            "no sigma",
        ),
    ] {
        let out = dpmc(&good, flags);
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{flags}: {err}");
        assert!(err.contains(says), "{flags}: {err}");
    }
}
