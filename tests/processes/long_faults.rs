//! The promise, at length: however runs are killed, starved of disk or crowded at one ledger,
//! nothing is published beyond the budget, the ledger is never under what was published, the
//! certificate covers every draw, and nothing panics. Linux, with a C compiler; ignored by
//! default, for it takes minutes:
//!
//! `DPMC_ROUNDS=256 cargo test --test processes long_faults -- --ignored --nocapture`
//!
//! `docs/results/reliability.md` has what came of it.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::place::{Place, RUN, edit, number, releases, repository};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// Lives of each sampler, and rounds at one ledger.
fn rounds() -> u64 {
    let rounds = std::env::var("DPMC_ROUNDS").ok();
    rounds.and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// A directory is killed so often before the next one is begun, so that first lives count.
const CHAIN: u64 = 12;

/// Calls of a life among which one is chosen to be killed at; a run makes ten in its first
/// moments and twelve a part file.
const CALLS: u64 = 60;

/// So long a life is waited for that call.
const CALL_COMES: Duration = Duration::from_secs(4);

const ANCHOR: &str = "anchor = { start = 0.05, gradient = 0.05, curvature = 0.05 }";

/// Name and lines of `[sampler]`. Steps cost so little that lives do not end by the budget.
const SAMPLERS: [(&str, &str); 8] = [
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
    ("anchored-barker on moments", MIXTURE),
    ("dp-fast-mh", "algorithm = \"dp-fast-mh\"\nstep = 0.00001"),
];

/// An anchor of released moments is a mixture's.
const MIXTURE: &str =
    "algorithm = \"anchored-barker\"\nstep = 0.0001\nanchor = { degree = 4, moments = 0.05 }";

fn run_file(sampler: &str) -> String {
    let lines = match sampler.ends_with("\"anchored-barker\"") {
        true => format!("{sampler}\n{ANCHOR}"),
        false => sampler.to_string(),
    };
    let run = edit(RUN, "algorithm = \"barker\"\nstep = 0.0001", &lines);
    let run = edit(&run, "iterations = 300", "iterations = 2000000\nchains = 4");
    if sampler.contains("dp-fast-mh") {
        // Its ledger counts the divergence of one order.
        return run;
    }
    let run = edit(&run, "delta = 1e-6", "delta = 1e-6\nfilter = \"zcdp\"");
    if sampler != MIXTURE {
        return run;
    }
    let (from, to) = (run.find("[data.label]"), run.find("[sampler]"));
    let model = "[[data.features]]\ncolumn = \"a\"\nclamp = [-1, 1]\n[model]\nkind = \"mixture\"\nvariance = 0.5\nbox = 2.0\ntempering = 0.5\n";
    format!("{}{model}{}", &run[..from.unwrap()], &run[to.unwrap()..])
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

/// Everything that must hold of a run directory at rest; what it published, in its ledger's
/// measure.
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
    match certificate["order"].as_f64() {
        None => releases(&certificate).1,
        // The state's own account: only a ledger prices events at an order.
        Some(_) => {
            let paid = place.json(&format!("{out}/state.json"))["paid"]["spent_units"].take();
            paid.as_str().unwrap().parse::<f64>().unwrap() / 2f64.powi(96)
        }
    }
}

/// The ledger is not under what was published, nor beyond its limit.
fn paid(place: &Place, ledger: &str, published: f64, context: &str) {
    let text = std::fs::read(place.path(ledger)).unwrap_or_default();
    // What a crash left of a line is not valid JSON: the last whole line counts.
    let text = String::from_utf8_lossy(&text).into_owned();
    let records = text.lines().filter_map(|line| {
        let line = line.trim_end_matches(',');
        serde_json::from_str::<serde_json::Value>(line).ok()
    });
    let records: Vec<_> = records.filter(serde_json::Value::is_object).collect();
    let amount = |key: &str| records.last().and_then(|record| record[key].as_f64());
    let budget = dpmc::privacy::Budget::new(5.0, 1e-6).unwrap();
    let (spent, limit) = match amount("divergence_spent") {
        Some(spent) => {
            let measure = records[0]["measure"].clone();
            let measure: dpmc::privacy::Measure = serde_json::from_value(measure).unwrap();
            (spent, measure.limit(budget))
        }
        None => (amount("rho_spent").unwrap_or(0.0), budget.rho()),
    };
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

/// A command under the shim: the `at`-th call that changes a file fails as `kind` says. The
/// second is made when it does.
fn faulty(mut command: Command, shim: &Path, kind: &str, at: u64) -> (Command, PathBuf) {
    let mark = shim.with_extension("happened");
    let _ = std::fs::remove_file(&mark);
    command.env("LD_PRELOAD", shim).env("FAULT_KIND", kind);
    command.env("FAULT_AT", at.to_string());
    command.env("FAULT_MARK", &mark);
    (command, mark)
}

/// Where in a call that changes a file a process ends.
const KILLS: [&str; 3] = ["KILL-BEFORE", "KILL-HALF", "KILL-AFTER"];

/// Each sampler is killed over and over and taken up again: every other time at a random moment,
/// and at a chosen call in between.
#[test]
#[ignore = "study"]
fn chains_of_kills() {
    let mut rng = SmallRng::seed_from_u64(1);
    for (name, sampler) in SAMPLERS {
        let place = Place::new(&run_file(sampler));
        let shim = shim(&place);
        let (mut at_moments, mut at_calls, mut refused) = (0, 0, 0);
        let (mut out, mut directories) = (String::from("out0"), 1);
        for round in 0..rounds() {
            let context = format!("{name}, round {round} in {out}");
            let kind = KILLS[rng.random_range(0..3)];
            let (command, mark) = match round % 2 {
                0 => (next(&place, &out, ""), place.path("none")),
                _ => {
                    let at = rng.random_range(1..=CALLS);
                    faulty(next(&place, &out, ""), &shim, kind, at)
                }
            };
            let mut child = start(command);
            let moment = Duration::from_micros(rng.random_range(0..700_000));
            let begun = Instant::now();
            let patience = if round % 2 == 0 { moment } else { CALL_COMES };
            while child.try_wait().unwrap().is_none() && begun.elapsed() < patience {
                std::thread::sleep(Duration::from_micros(500));
            }
            let ended = child.try_wait().unwrap().is_some();
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            let said = said(&output, &context);
            let spent = said.contains("is left") || said.contains("is spent");
            assert!(said.is_empty() || spent, "{context}: {said}");
            let by_call = mark.exists();
            assert!(!ended || spent || by_call, "{context}: {output:?}");
            at_calls += u32::from(by_call);
            at_moments += u32::from(!by_call && !ended);
            refused += u32::from(spent);
            let published = holds(&place, &out, &context);
            paid(&place, &format!("{out}/ledger.json"), published, &context);
            if spent || round % CHAIN == CHAIN - 1 {
                // Its draws are checked; they take room.
                std::fs::remove_dir_all(place.path(&out)).unwrap();
                out = format!("out{directories}");
                directories += 1;
            }
        }
        println!(
            "{name}: {at_moments} kills at random moments, {at_calls} at calls, {refused} lives without budget, {directories} directories"
        );
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
    let source = repository("tests/common/faults.c");
    let to = place.path("faults.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&to)
        .arg(source);
    assert!(cc.arg("-ldl").status().unwrap().success(), "a C compiler");
    to
}

#[test]
#[ignore = "study"]
fn faults_of_a_full_disk() {
    faults_at_each_call(&["ENOSPC"], &[false, true]);
}

#[test]
#[ignore = "study"]
fn faults_of_a_broken_disk() {
    faults_at_each_call(&["EIO"], &[false, true]);
}

#[test]
#[ignore = "study"]
fn faults_where_no_file_can_be_opened() {
    faults_at_each_call(&["EMFILE"], &[false, true]);
}

#[test]
#[ignore = "study"]
fn faults_where_no_lock_is_left() {
    faults_at_each_call(&["ENOLCK"], &[false, true]);
}

#[test]
#[ignore = "study"]
fn faults_of_short_writes() {
    faults_at_each_call(&["SHORT"], &[false, true]);
}

#[test]
#[ignore = "study"]
fn faults_of_kills_at_calls() {
    faults_at_each_call(&KILLS, &[false]);
}

/// Each call that changes a file fails in turn, in each of these ways, once or, where that is asked
/// for, from then on, up to the run's last one.
fn faults_at_each_call(kinds: &[&str], staying: &[bool]) {
    let run = run_file("algorithm = \"dp-penalty\"\ntau = 3000.0\nstep = 0.0001");
    let run = edit(&run, "iterations = 2000000", "iterations = 17000");
    let place = Place::new(&run);
    let shim = shim(&place);
    let records = place.path("records");
    let next = |out: &str| {
        let mut command = next(&place, out, "");
        command.env("DPMC_RECORDS", &records);
        command
    };
    // A short study tries some calls of each part of a run, a long one all.
    let stride = if rounds() < 100 { 7 } else { 1 };
    let cases = kinds
        .iter()
        .flat_map(|kind| staying.iter().map(move |stays| (*kind, *stays)));
    for (kind, stays) in cases {
        let (mut ended, mut unharmed) = (0, 0);
        let killed = kind.starts_with("KILL");
        for at in (1..).step_by(stride) {
            let out = format!("{kind}-{stays}-{at}");
            let (mut command, mark) = faulty(next(&out), &shim, kind, at);
            if stays {
                command.env("FAULT_STAYS", "1");
            }
            let output = start(command).wait_with_output().unwrap();
            let message = said(&output, &out);
            let code = output.status.code();
            assert!(
                match code {
                    Some(0) => !killed || !mark.exists(),
                    Some(1 | 2) => !message.is_empty(),
                    _ => killed,
                },
                "{out}: {output:?}"
            );
            assert!(
                code == Some(0) || kind != "SHORT",
                "{out}: a short write is gone on with: {message}"
            );
            let published = holds(&place, &out, &out);
            paid(&place, &format!("{out}/ledger.json"), published, &out);
            // On a sound disk it goes on, wherever it was.
            if code != Some(0) {
                let output = start(next(&out)).wait_with_output().unwrap();
                let message = said(&output, &out);
                assert!(output.status.success(), "{out}: {message}");
                let published = holds(&place, &out, &out);
                paid(&place, &format!("{out}/ledger.json"), published, &out);
                assert_eq!(place.draws(&out).last(), 17_000, "{out}");
            }
            std::fs::remove_dir_all(place.path(&out)).unwrap_or_default();
            std::fs::remove_dir_all(&records).unwrap_or_default();
            if !mark.exists() {
                assert_eq!(code, Some(0), "{out}: {message}");
                break;
            }
            ended += u32::from(code != Some(0));
            unharmed += u32::from(code == Some(0));
        }
        let from_then_on = if stays { ", from then on" } else { "" };
        println!("{kind}{from_then_on}: {ended} runs ended by it, {unharmed} unharmed");
        assert!(ended + unharmed > 0, "{kind}: never happened");
    }
}
