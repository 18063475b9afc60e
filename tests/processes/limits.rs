//! The promise: a limit on threads, on address space or on the size of a file ends a run with a
//! message, or makes it slower; never with a panic, and what it leaves can be resumed. Unix.
#![cfg(unix)]

use std::process::{Command, Output};

use crate::common::place::{Place, RUN, edit, number, releases, spent};

/// Runs the command under a shell's limits.
fn limited(place: &Place, limit: &str, arguments: &str) -> Output {
    let script = format!("{limit}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_dpmc")]);
    place.prepared(&mut shell, arguments).output().unwrap()
}

fn says(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// Rows enough that sums over them are made by several threads.
fn wide() -> Place {
    let place = Place::new(&edit(RUN, "iterations = 300", "iterations = 20"));
    place.write("people.csv", &crate::common::place::table(60_000));
    place
}

/// No thread can be had where each asks for more stack than there are addresses.
#[test]
fn without_threads_the_command_computes_on_its_own() {
    let place = wide();
    let none = "export RUST_MIN_STACK=100000000000000";
    for arguments in [
        "check run.toml",
        "sample run.toml --quiet --out out",
        "summary out",
        "account events.json --delta 1e-6",
    ] {
        let events = r#"{"neighbours":"substitution","events":[{"kind":"bounded_range","eta":0.1,"count":3}]}"#;
        place.write("events.json", events);
        let output = limited(&place, none, arguments);
        let said = says(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments}: {said}");
    }
    let driver = &place.certificate("out")["engine"]["driver"];
    assert_eq!(driver, "native, 1 threads");
}

/// A table that the address space does not hold is refused before it is read.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_address_space_counts_as_memory() {
    let place = wide();
    let available = |limit: &str| {
        let output = limited(&place, limit, "check run.toml --json");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        number(&report["memory"], "available_bytes")
    };
    assert!(available("ulimit -v 1000000") < 1000.0 * 1024.0 * 1000.0);
    for mib in [8, 16, 24, 32, 48, 64] {
        let limit = format!("ulimit -v {}", mib * 1024);
        let output = limited(&place, &limit, "check run.toml");
        // So little that not even the program's own start may fit, which the system says.
        says(&output);
    }
}

/// A file that may not grow is a disk that is full.
#[test]
fn a_write_that_fails_leaves_what_can_be_resumed() {
    let place = Place::new(&edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 3000.0"));
    // In blocks of 512 or 1024 bytes: neither a part of 65,536 draws fits, nor, in the second
    // case, the state.
    for (blocks, starts) in [(64, true), (1, false)] {
        let out = format!("out{blocks}");
        let output = limited(
            &place,
            &format!("ulimit -f {blocks}"),
            &format!("sample run.toml --chains 64 --iterations 1000000 --quiet --out {out}"),
        );
        let said = says(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains(&out) && said.contains("cannot be written"),
            "{said}"
        );
        let stray = std::fs::read_dir(place.path(&out)).unwrap();
        let stray = stray.map(|e| e.unwrap().file_name().into_string().unwrap());
        let stray: Vec<String> = stray.filter(|name| name.contains("tmp")).collect();
        assert!(stray.is_empty(), "{stray:?}");
        if !starts {
            place.works(&format!("sample run.toml --quiet --out {out}"));
            continue;
        }
        // What was charged is settled, beyond what was published.
        let ledger = place.ledger(&format!("{out}/ledger.json"));
        assert_eq!(ledger["status"], "settled");
        assert!(number(&ledger, "mu_squared_half_spent") > 0.0);
        place.works(&format!("sample --resume {out} --iterations 40 --quiet"));
        let draws = place.draws(&out);
        draws.assert_contiguous(64);
        assert_eq!(draws.last(), 40);
        let counted = spent(&place.json(&format!("{out}/ledger.json")));
        assert!(counted >= releases(&place.certificate(&out)).1);
    }
}

/// Where certificate and state could not be written any more, the ledger could.
#[test]
fn what_the_ledger_holds_beyond_the_certificate_is_said() {
    let place = Place::new(&edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 3000.0"));
    place.works("sample run.toml --quiet --out out");
    let spent = |json: &str| -> Option<f64> {
        let summary: serde_json::Value = serde_json::from_str(json).unwrap();
        summary["epsilon_spent_by_ledger"].as_f64()
    };
    assert_eq!(spent(&place.works("summary out --json")), None);
    assert!(!place.works("summary out").contains("ledger.json"));
    let published = number(&place.certificate("out"), "epsilon_spent");
    place.copy("out", "old");
    place.works("sample --resume out --iterations 600 --quiet");
    let paid = number(&place.certificate("out"), "epsilon_spent");
    std::fs::copy(place.path("out/ledger.json"), place.path("old/ledger.json")).unwrap();
    let found = spent(&place.works("summary old --json")).unwrap();
    assert!(
        found > published && (found / paid - 1.0).abs() < 1e-6,
        "{published} {found} {paid}"
    );
    let said = place.works("summary old");
    assert!(said.contains("as ledger.json counts"), "{said}");
    place.works("report old --out page.html");
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("by ledger.json, \u{3b5} = "));
    // A ledger that cannot be read is no reason to say nothing.
    place.write("old/ledger.json", "[\n{}\n");
    let said = place.works("summary old");
    assert!(said.contains("is not known"), "{said}");
}
