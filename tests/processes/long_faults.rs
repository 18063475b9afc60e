//! The promise, at length: however runs are killed, starved of disk or crowded at one ledger,
//! nothing is published beyond the budget, the ledger is never under what was published, the
//! certificate covers every draw, and nothing panics. Linux, with a C compiler; ignored by
//! default, for it takes minutes:
//!
//! `DPMC_ROUNDS=20 cargo test --test processes long_faults -- --ignored --nocapture`
//!
//! `docs/reliability.md` has what came of it.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::common::place::{Place, RUN, edit, number, releases};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// Rounds of each kind.
fn rounds() -> u64 {
    let rounds = std::env::var("DPMC_ROUNDS").ok();
    rounds.and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// Samplers whose ledgers count rho: name and lines of `[sampler]`.
const SAMPLERS: [(&str, &str); 6] = [
    ("barker", "algorithm = \"barker\"\nstep = 0.0001"),
    (
        "poisson-barker",
        "algorithm = \"poisson-barker\"\nstep = 0.0001",
    ),
    (
        "dp-penalty",
        "algorithm = \"dp-penalty\"\ntau = 3000.0\nstep = 0.0001",
    ),
    (
        "dp-hmc",
        "algorithm = \"dp-hmc\"\nstep = 0.01\nleapfrog_steps = 2\ntau = 3000.0\ngradient = { tau = 3000.0 }",
    ),
    ("dp-sgld", "algorithm = \"dp-sgld\"\nstep = 1e-9"),
    ("anchored-barker", "algorithm = \"anchored-barker\""),
];

fn run_file(sampler: &str) -> String {
    let run = edit(RUN, "algorithm = \"barker\"\nstep = 0.0001", sampler);
    let run = edit(&run, "iterations = 300", "iterations = 2000000\nchains = 4");
    edit(&run, "delta = 1e-6", "delta = 1e-6\nfilter = \"zcdp\"")
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// What a run that has ended said.
fn said(output: &Output, context: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("panicked"), "{context}: {said}");
    said
}

/// Everything that must hold of a run directory at rest; what it published, in rho.
fn holds(place: &Place, out: &str, context: &str) -> f64 {
    if !place.path(out).join("state.json").exists() {
        assert!(place.parts(out).is_empty(), "{context}: draws of no state");
        return 0.0;
    }
    let (certificate, draws) = (place.certificate(out), place.draws(out));
    draws.assert_contiguous(4);
    assert!(
        draws.last() as f64 <= number(&certificate, "iterations"),
        "{context}: a draw that no certificate covers"
    );
    assert!(number(&certificate, "epsilon") <= 5.0, "{context}");
    releases(&certificate).1
}

/// The ledger is not under what was published, nor beyond its limit.
fn paid(place: &Place, ledger: &str, published: f64, context: &str) {
    let text = std::fs::read(place.path(ledger)).unwrap_or_default();
    if text.is_empty() {
        assert_eq!(published, 0.0, "{context}: no ledger paid");
        return;
    }
    // What a crash left of a line is not valid JSON: the last whole line counts.
    let text = String::from_utf8_lossy(&text).into_owned();
    let spent = text.lines().rev().find_map(|line| {
        let line = line.trim_end_matches(',');
        let record: serde_json::Value = serde_json::from_str(line).ok()?;
        record["rho_spent"].as_f64()
    });
    let spent = spent.unwrap_or(0.0);
    let limit = dpmc::privacy::Budget::new(5.0, 1e-6).unwrap().rho();
    assert!(
        published <= spent * (1.0 + 1e-6) && spent <= limit * (1.0 + 1e-12),
        "{context}: published {published}, counted {spent}, limit {limit}"
    );
}

/// Begins the run, or goes on with it.
fn next(place: &Place, out: &str, flags: &str) -> Command {
    match place.path(out).join("state.json").exists() {
        true => place.command(&format!("sample --quiet --resume {out}")),
        false => place.command(&format!("sample run.toml --quiet {flags} --out {out}")),
    }
}

/// Each sampler is killed at random moments and taken up again, over and over.
#[test]
#[ignore = "study"]
fn chains_of_kills() {
    let mut rng = SmallRng::seed_from_u64(1);
    for (name, sampler) in SAMPLERS {
        let place = Place::new(&run_file(sampler));
        let mut kills = 0;
        for round in 0..rounds() {
            let mut child = start(next(&place, "out", ""));
            std::thread::sleep(Duration::from_micros(rng.random_range(0..2_000_000)));
            let ended = child.try_wait().unwrap().is_some();
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            let context = format!("{name}, round {round}");
            let said = said(&output, &context);
            let spent = said.contains("budget is left") || said.contains("budget is spent");
            assert!(!ended || said.is_empty() || spent, "{context}: {said}");
            kills += u32::from(!ended);
            let published = holds(&place, "out", &context);
            paid(&place, "out/ledger.json", published, &context);
        }
        let made = place.json("out/state.json")["iteration"].clone();
        println!("{name}: {kills} kills of {}, {made} iterations", rounds());
    }
}

/// Two to eight runs at one ledger, some of them killed.
#[test]
#[ignore = "study"]
fn crowds_at_one_ledger() {
    let mut rng = SmallRng::seed_from_u64(2);
    let place = Place::new(&run_file(
        "algorithm = \"dp-penalty\"\ntau = 3000.0\nstep = 0.0001",
    ));
    let (mut directories, mut had) = (Vec::new(), 0);
    for round in 0..rounds() {
        let crowd = rng.random_range(2..=8);
        let mut children: Vec<(String, Child)> = (0..crowd)
            .map(|k| {
                // Some go on with a run, two of them perhaps with the same one.
                let old = directories.len();
                let out = match rng.random_bool(0.4) && old > 0 {
                    true => String::clone(&directories[rng.random_range(0..old)]),
                    false => format!("out{round}-{k}"),
                };
                let command = next(&place, &out, "--ledger l.json --iterations 20000");
                (out, start(command))
            })
            .collect();
        std::thread::sleep(Duration::from_micros(rng.random_range(0..500_000)));
        for (_, child) in &mut children {
            if rng.random_bool(0.5) {
                child.kill().unwrap();
            }
        }
        for (out, child) in children {
            let output = child.wait_with_output().unwrap();
            let said = said(&output, &out);
            let refused = [
                "another run",
                "is left",
                "is spent",
                "--resume",
                "no draws yet",
            ];
            assert!(
                said.is_empty() || refused.iter().any(|word| said.contains(word)),
                "{out}: {said}"
            );
            had += u32::from(said.is_empty());
            if place.path(&out).exists() && !directories.contains(&out) {
                directories.push(out);
            }
        }
        let context = format!("round {round}");
        let published = directories.iter().map(|out| holds(&place, out, &context));
        let published = published.sum();
        paid(&place, "l.json", published, &context);
    }
    println!(
        "{had} runs had the ledger, over {} directories",
        directories.len()
    );
}

/// The shim, compiled.
fn shim(place: &Place) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/faults.c");
    let to = place.path("faults.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&to)
        .arg(source);
    assert!(cc.arg("-ldl").status().unwrap().success(), "a C compiler");
    to
}

/// Each call that changes a file fails in turn, once or from then on.
#[test]
#[ignore = "study"]
fn faults_of_the_disk() {
    let run = run_file("algorithm = \"dp-penalty\"\ntau = 3000.0\nstep = 0.0001");
    let run = edit(&run, "iterations = 2000000", "iterations = 17000");
    let place = Place::new(&run);
    let shim = shim(&place);
    let (mut refused, mut unharmed) = (0, 0);
    for kind in ["ENOSPC", "EIO", "EMFILE", "SHORT"] {
        for stays in [false, true] {
            for at in 1..=4 * rounds() {
                let out = format!("{kind}-{stays}-{at}");
                let mut command = next(&place, &out, "");
                command.env("LD_PRELOAD", &shim).env("FAULT_KIND", kind);
                command.env("FAULT_AT", at.to_string());
                if stays {
                    command.env("FAULT_STAYS", "1");
                }
                let output = start(command).wait_with_output().unwrap();
                let message = said(&output, &out);
                let code = output.status.code();
                assert!(
                    matches!(code, Some(0)) || matches!(code, Some(1 | 2)) && !message.is_empty(),
                    "{out}: {output:?}"
                );
                assert!(
                    code == Some(0) || kind != "SHORT",
                    "{out}: a short write is gone on with: {message}"
                );
                refused += u32::from(code != Some(0));
                unharmed += u32::from(code == Some(0));
                let published = holds(&place, &out, &out);
                if code != Some(0) || place.path(&out).join("ledger.json").exists() {
                    paid(&place, &format!("{out}/ledger.json"), published, &out);
                }
                // On a sound disk it goes on, wherever it was.
                if code != Some(0) {
                    let output = start(next(&place, &out, "")).wait_with_output().unwrap();
                    let message = said(&output, &out);
                    assert!(output.status.success(), "{out}: {message}");
                    let published = holds(&place, &out, &out);
                    paid(&place, &format!("{out}/ledger.json"), published, &out);
                    assert_eq!(place.draws(&out).last(), 17_000, "{out}");
                }
                std::fs::remove_dir_all(place.path(&out)).unwrap_or_default();
            }
        }
    }
    println!("{refused} runs ended by a fault, {unharmed} unharmed");
}
