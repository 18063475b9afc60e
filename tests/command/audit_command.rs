//! The promise: `dpmc audit` refuses what means nothing, says what it found in words and in
//! JSON, and catches a paper's false claim.

use std::process::{Command, Output};

use serde_json::Value;

fn audit(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dpmc"))
        .arg("audit")
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

fn report(arguments: &str) -> Value {
    let output = audit(&format!("{arguments} --json"));
    assert!(output.status.success(), "{arguments}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn settings_without_meaning_are_refused_by_the_flags_name() {
    for (arguments, words) in [
        ("--algorithm barker --trials 0", "--trials"),
        ("--algorithm barker --trials 1", "--trials"),
        ("--algorithm barker --trials -5", "--trials"),
        ("--algorithm barker --trials 2000000000", "--trials"),
        ("--algorithm barker --steps 0", "--steps"),
        ("--algorithm barker --steps -1", "--steps"),
        ("--algorithm barker --steps 100000", "--steps"),
        ("--algorithm barker --steps 100001", "--steps"),
        ("--algorithm barker --delta 1", "--delta"),
        ("--algorithm barker --delta -0.1", "--delta"),
        ("--algorithm barker --delta nan", "--delta"),
        ("--algorithm barker --confidence 0", "--confidence"),
        ("--algorithm barker --confidence 1", "--confidence"),
        ("--algorithm barker --confidence inf", "--confidence"),
        ("--algorithm barker --engine abacus", "--engine"),
        ("--algorithm barker --as-published", "--as-published"),
        (
            "--algorithm dp-barker-subsampled --as-published",
            "--as-published",
        ),
        (
            "--algorithm dp-fast-mh --as-published --engine gpu",
            "--engine",
        ),
        ("--algorithm barker --row-bounds", "--row-bounds"),
        (
            "--algorithm dp-fast-mh --as-published --row-bounds",
            "--row-bounds",
        ),
        ("--algorithm mh", "nothing to audit"),
        ("--algorithm tuna-mh --as-published", "nothing to audit"),
        ("--algorithm barkr", "nearest valid one is 'barker'"),
        (
            "--algorithm poisonbarker",
            "nearest valid one is 'poisson-barker'",
        ),
        ("", "--algorithm"),
    ] {
        let output = audit(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(words), "{arguments}: {message}");
        assert!(!message.contains("panic"), "{message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn json_has_its_keys_and_a_seed_fixes_every_coin() {
    let arguments = "--algorithm barker --steps 3 --trials 5000 --delta 1e-4 --confidence 0.99";
    let one = report(&format!("{arguments} --seed 7"));
    for (key, value) in [
        ("algorithm", Value::from("barker")),
        ("as_published", false.into()),
        ("steps", 3.into()),
        ("trials", 5000.into()),
        ("delta", 1e-4.into()),
        ("confidence", 0.99.into()),
        ("verdict", "consistent".into()),
        ("engine", "cpu".into()),
    ] {
        assert_eq!(one[key], value, "{key}");
    }
    let (claim, lower) = (&one["claim"], &one["epsilon_lower"]);
    assert!(lower.as_f64().unwrap() < one["accountant"].as_f64().unwrap());
    assert!(one["accountant"].as_f64().unwrap() <= claim.as_f64().unwrap());
    assert_eq!(one, report(&format!("{arguments} --seed 7")));
    assert_ne!(
        one["event"],
        report(&format!("{arguments} --seed 8"))["event"]
    );
}

#[test]
fn rows_with_bounds_are_attacked_where_they_are_drawn_by_them() {
    for algorithm in ["poisson-barker", "dp-fast-mh"] {
        let arguments = format!("--algorithm {algorithm} --row-bounds --trials 2000 --seed 1");
        let found = report(&arguments);
        assert_eq!(
            (&found["row_bound"], &found["verdict"]),
            (&1.0.into(), &"consistent".into())
        );
        let parts = found["parts"].as_array().unwrap();
        assert!(parts.len() == 1 && parts[0]["row_bound"].as_f64().unwrap() < 1.0);
        let text = String::from_utf8(audit(&arguments).stdout).unwrap();
        assert!(text.contains("of bound 1 of the row norm"), "{text}");
    }
    assert!(
        report("--algorithm barker --trials 2")
            .get("row_bound")
            .is_none()
    );
}

#[test]
fn the_smallest_audit_says_nothing_and_does_not_fail() {
    for algorithm in [
        "barker",
        "poisson-barker",
        "anchored-barker",
        "dp-penalty",
        "dp-fast-mh --as-published",
    ] {
        for more in [
            "--trials 2",
            "--trials 3 --delta 0",
            "--trials 2 --confidence 1e-300",
        ] {
            let report = report(&format!("--algorithm {algorithm} {more} --steps 2"));
            assert!(report["epsilon_lower"].as_f64().unwrap() >= 0.0, "{report}");
            assert_eq!(report["steps"], 2);
            // Beside the steps: an anchor's gradient and curvature, of single rows, long ones,
            // units and heavy ones, its two profiles, and moments.
            let parts = report["parts"].as_array().map_or(0, Vec::len);
            assert_eq!(
                parts,
                if algorithm == "anchored-barker" {
                    11
                } else {
                    0
                }
            );
        }
    }
}

#[test]
fn the_published_privacy_for_free_is_caught() {
    let arguments = "--algorithm dp-fast-mh --as-published --trials 60000 --seed 1";
    let found = report(arguments);
    assert_eq!(found["verdict"], "violated");
    assert_eq!(found["claim"], 0.05);
    assert_eq!(found["as_published"], true);
    let lower = found["epsilon_lower"].as_f64().unwrap();
    assert!(lower > 1.0, "{lower}");
    // Many steps are no excuse: T·ε is claimed for them.
    let twenty = report("--algorithm dp-fast-mh --as-published --trials 6000 --steps 20 --seed 1");
    assert_eq!(
        (&twenty["verdict"], &twenty["claim"]),
        (&"violated".into(), &1.0.into())
    );

    let output = audit(arguments);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the claim is false: "), "{text}");
}

#[test]
fn the_table_names_claim_accountant_bound_and_verdict() {
    let output = audit("--algorithm dp-penalty --trials 2000 --seed 1");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["claim", "accountant", "at least", "verdict", "consistent"] {
        assert!(text.contains(word), "no '{word}': {text}");
    }
    // The largest δ and none at all.
    for delta in ["0", "0.999999"] {
        assert!(
            audit(&format!(
                "--algorithm dp-penalty --trials 500 --delta {delta}"
            ))
            .status
            .success()
        );
    }
}
