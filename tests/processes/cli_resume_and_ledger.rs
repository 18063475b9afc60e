//! The promise: at any moment, kill -9 included, a run directory holds only draws that its
//! certificate covers, and its ledger has paid for them; no coin is used twice.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::place::{Place, RUN, edit, number, releases, spent};

/// A run that does not outlive its test.
struct Running(Option<Child>);

impl Running {
    /// Starts a run that does not end by itself within a test.
    fn start(place: &Place, arguments: &str) -> Self {
        Running::run(&mut place.command(arguments))
    }

    fn run(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()))
    }

    fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn interrupt(self) -> Output {
        self.end_by("INT")
    }

    fn send(&self, signal: &str) {
        let child = self.0.as_ref().unwrap();
        let mut shell = Command::new("sh");
        let sent = shell.args(["-c", &format!("kill -{signal} {}", child.id())]);
        assert!(sent.status().unwrap().success());
    }

    fn end_by(mut self, signal: &str) -> Output {
        self.send(signal);
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until the run has published this many part files.
fn wait_for_parts(place: &Place, directory: &str, count: usize) {
    let start = Instant::now();
    while place.parts(directory).len() < count {
        assert!(start.elapsed() < Duration::from_secs(60), "no part appears");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_run_leaves_a_covered_directory_and_can_be_resumed() {
    let place = Place::new(RUN);
    for round in 0..3u64 {
        let out = format!("out{round}");
        // 64 chains fill a part file every 1024 iterations.
        let running = Running::start(
            &place,
            &format!("sample run.toml --chains 64 --iterations 10000000 --out {out}"),
        );
        wait_for_parts(&place, &out, 1);
        std::thread::sleep(Duration::from_millis(20 * round));
        running.kill();

        let (certificate, draws) = (place.certificate(&out), place.draws(&out));
        draws.assert_contiguous(64);
        let covered = number(&certificate, "iterations");
        let owned = place.json(&format!("{out}/state.json"))["iteration"].as_i64();
        let owned = owned.unwrap();
        assert!(draws.last() > 0 && draws.last() as f64 <= covered);
        assert_eq!(certificate["status"], "running");
        assert_eq!(certificate["private"], true);
        assert_eq!(number(&certificate, "epsilon"), 5.0);
        let (count, rho) = releases(&certificate);
        assert!(count >= 64.0 * draws.last() as f64);
        let before = spent(&place.json(&format!("{out}/ledger.json")));
        assert!(before >= rho, "the ledger holds {before} of {rho}");
        place.works(&format!("summary {out} --json"));
        let message = place.refuses(&format!("sample run.toml --out {out}"));
        assert!(message.contains("--resume"), "{message}");

        let more = covered as u64 + 500;
        place.works(&format!("sample --resume {out} --iterations {more}"));
        let (certificate, resumed) = (place.certificate(&out), place.draws(&out));
        resumed.assert_contiguous(64);
        assert_eq!(resumed.last() as u64, more);
        assert_eq!(certificate["status"], "finished");
        assert_eq!(certificate["adaptive"], true);
        assert_eq!(number(&certificate, "epsilon"), 5.0);
        let after = spent(&place.json(&format!("{out}/ledger.json")));
        let (_, released) = releases(&certificate);
        assert!(after > before && after >= released, "{before} {after}");
        // Draws that the saved state owns stay as they were.
        let mut kept = resumed.rows.iter().filter(|r| r.1 <= owned);
        let mut before = draws.rows.iter().filter(|r| r.1 <= owned);
        assert!(kept.by_ref().eq(before.by_ref()), "round {round}");
    }
}

/// Ctrl-C, and what batch systems, service managers, containers and closed terminals send.
#[test]
fn an_interrupted_run_ends_cleanly_with_what_was_drawn() {
    for signal in ["INT", "TERM", "HUP"] {
        let place = Place::new(RUN);
        // Whoever runs this test may have it ignore a signal.
        let reset = ["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_dpmc")];
        let running = Running::run(place.prepared(
            Command::new("env").args(reset),
            "sample run.toml --chains 64 --iterations 10000000 --out out",
        ));
        wait_for_parts(&place, "out", 1);
        let output = running.end_by(signal);
        assert_eq!(output.status.code(), Some(0), "{signal}: {output:?}");
        let (certificate, draws) = (place.certificate("out"), place.draws("out"));
        assert_eq!(certificate["status"], "interrupted");
        assert_eq!(certificate["adaptive"], true);
        assert_eq!(number(&certificate, "epsilon"), 5.0);
        draws.assert_contiguous(64);
        assert_eq!(draws.last() as f64, number(&certificate, "iterations"));
        // The reservation is settled: the ledger holds what was spent and no more.
        let (_, released) = releases(&certificate);
        let spent = spent(&place.json("out/ledger.json"));
        assert!((spent / released - 1.0).abs() < 1e-6, "{spent} {released}");
    }
}

/// `nohup dpmc …` goes on when its terminal closes.
#[test]
fn a_run_that_is_to_survive_its_terminal_does() {
    let place = Place::new(RUN);
    let running = Running::run(place.prepared(
        Command::new("nohup").arg(env!("CARGO_BIN_EXE_dpmc")),
        "sample run.toml --chains 64 --iterations 10000000 --out out",
    ));
    wait_for_parts(&place, "out", 1);
    running.send("HUP");
    wait_for_parts(&place, "out", place.parts("out").len() + 2);
    assert!(running.end_by("TERM").status.success());
}

/// A fit of ten million steps is the first step of its run; whoever stops it does not wait for it.
#[test]
fn a_fit_is_interrupted_with_what_it_spent() {
    let fit = edit(
        RUN,
        "algorithm = \"barker\"\nstep = 0.0001",
        "algorithm = \"dpvi\"\nsteps = 10000000",
    );
    let place = Place::new(&fit);
    let running = Running::start(&place, "sample run.toml --out out");
    let start = Instant::now();
    let charged = || std::fs::metadata(place.path("out/ledger.json")).is_ok_and(|m| m.len() > 0);
    while !charged() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no charge appears"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = running.interrupt();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let certificate = place.certificate("out");
    assert_eq!(certificate["status"], "interrupted");
    assert_eq!(
        (
            number(&certificate, "iterations"),
            number(&certificate, "epsilon")
        ),
        (0.0, 5.0)
    );
    let (count, released) = releases(&certificate);
    assert!(count > 0.0 && count < 1e7, "{count}");
    let spent = spent(&place.json("out/ledger.json"));
    assert!((spent / released - 1.0).abs() < 1e-6, "{spent} {released}");
    assert!(place.works("summary out").contains("interrupted"));
}

#[test]
fn a_run_that_is_still_going_cannot_be_resumed_nor_disturbed() {
    let place = Place::new(RUN);
    let running = Running::start(
        &place,
        "sample run.toml --chains 64 --iterations 10000000 --out out",
    );
    wait_for_parts(&place, "out", 1);
    while place.parts("out").len() < 6 {
        let message = place.refuses("sample --resume out");
        assert!(message.contains("another run"), "{message}");
    }
    assert!(running.interrupt().status.success());
    place.draws("out").assert_contiguous(64);
}

#[test]
fn a_resumed_run_counts_everything_its_directory_holds() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out out");
    let before = spent(&place.json("out/ledger.json"));
    place.works("sample --resume out --iterations 500");
    place.draws("out").assert_contiguous(1);
    let certificate = place.certificate("out");
    assert_eq!(certificate["adaptive"], true);
    assert_eq!(number(&certificate, "epsilon"), 5.0);
    assert_eq!(certificate["iterations"], 500);
    let (count, rho) = releases(&certificate);
    assert_eq!(count, 500.0, "events of all draws, not of the last process");
    let after = spent(&place.json("out/ledger.json"));
    assert!(
        after > before && (after / rho - 1.0).abs() < 1e-6,
        "{after} {rho}"
    );
}

/// The certificate covers every draw, so a directory cannot change its guarantee midway.
#[test]
fn resume_refuses_another_budget_ledger_or_model() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out private");
    place.works("sample run.toml --not-private --chains 1 --out open");
    place.write("other.toml", &edit(RUN, "sd = 3.0", "sd = 2.0"));
    for arguments in [
        "--resume open --epsilon 5 --delta 1e-6",
        "--resume private --ledger fresh.json",
        "--resume private --epsilon 6",
        "--resume private --chains 2",
        "--resume private other.toml",
    ] {
        let out = arguments.split(' ').nth(1).unwrap();
        let (certificate, draws) = (place.certificate(out), place.draws(out));
        place.refuses(&format!("sample {arguments} --iterations 600"));
        assert_eq!(place.certificate(out), certificate, "{arguments}");
        assert_eq!(place.draws(out), draws, "{arguments}");
    }
}

/// Rows at the origin make every ratio zero, so that decisions are the coins themselves.
const COINS: &str = r#"[data]
file = "origin.csv"
[data.label]
column = "y"
[[data.features]]
column = "a"
scale = [-1, 1]
[model]
kind = "logistic"
[sampler]
algorithm = "barker"
step = 0.001
[run]
iterations = 200
engine = "cpu"
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

#[test]
fn neither_a_resumed_run_nor_a_second_one_reuses_coins() {
    let place = Place::new(COINS);
    place.write("origin.csv", &format!("a,y\n{}", "0,1\n0,0\n".repeat(20)));
    let decisions = |out: &str| {
        let mut last = 0.0;
        let rows = place.draws(out).rows;
        let moved = rows
            .iter()
            .map(|r| r.2[0] != std::mem::replace(&mut last, r.2[0]));
        moved.collect::<Vec<bool>>()
    };
    // 200 fair coins agree in 100 ± 7 places; beyond 50 or 150 has odds under 1e-11.
    let assert_fresh = |a: &[bool], b: &[bool]| {
        let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
        assert!((50..=150).contains(&equal), "{equal} of 200 coins again");
    };
    for (out, seed) in [("plain", ""), ("seeded", "--seed 7"), ("again", "--seed 7")] {
        place.works(&format!("sample run.toml --out {out} {seed}"));
        place.works(&format!("sample --resume {out} --iterations 400"));
        let decisions = decisions(out);
        assert_fresh(&decisions[..200], &decisions[200..]);
    }
    assert_fresh(&decisions("seeded")[..200], &decisions("again")[..200]);
}

#[test]
fn a_shared_ledger_is_cumulative_and_refuses_when_spent() {
    let run = edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 10.0");
    let place = Place::new(&run);
    let ledger = || spent(&place.json("l.json"));
    place.works("sample run.toml --iterations 30 --ledger l.json --out first");
    let (one, certificate) = (ledger(), place.certificate("first"));
    assert!((one / releases(&certificate).1 - 1.0).abs() < 1e-6);
    assert_eq!(certificate["covers"], "every run of the ledger file");
    // What one run of several spent would be taken for what all did.
    assert!(certificate["epsilon_zero_out"].is_null());

    place.works("sample run.toml --iterations 5000 --ledger l.json --out second");
    let (two, certificate) = (ledger(), place.certificate("second"));
    let own = releases(&certificate).1;
    assert!(
        (two / (one + own) - 1.0).abs() < 1e-6,
        "{one} + {own} is not {two}"
    );
    assert_eq!(certificate["status"], "budget spent");
    assert_eq!(certificate["adaptive"], true);
    assert_eq!(number(&certificate, "epsilon"), 5.0);
    let (spent, limit) = (
        number(&certificate, "epsilon_spent"),
        number(&certificate, "rho"),
    );
    assert!(spent > 4.9 && spent <= 5.0 && two <= limit, "{spent} {two}");

    let message = place.refuses("sample run.toml --ledger l.json --out third");
    assert!(message.contains("l.json"), "{message}");
    assert!(!place.path("third").exists());
    assert_eq!(ledger(), two);
    // Without the ledger file a run stands alone.
    place.works("sample run.toml --iterations 30 --out alone");
    assert_eq!(place.certificate("alone")["covers"], "this run only");
}

/// The anchor is released once: a resumed run goes on with it, and pays for steps alone.
#[test]
fn a_resumed_run_keeps_its_anchor() {
    let text = RUN.replace(
        "algorithm = \"barker\"\nstep = 0.0001",
        "estimator = \"all\"\nacceptance = \"barker\"\nanchored = true\nclip = { share = 1e-3 }\nanchor = { radius = 1000.0 }",
    );
    // Enough for the anchor to be found and, as a step's price goes with the square of its clip, for
    // every step to be made, whatever the coins.
    let text = text.replace("epsilon = 5.0", "epsilon = 300.0");
    let place = Place::new(&text);
    place.works("sample run.toml --iterations 10 --out out");
    let state = place.json("out/state.json");
    let anchor = state["anchor"].clone();
    assert!(anchor["gradient"].is_array(), "{state}");
    let events = |c: &serde_json::Value| -> (f64, f64) {
        let count = |kind: &str| -> f64 {
            let events = c["events"].as_array().unwrap();
            let of_kind = events.iter().filter(|e| e["kind"] == kind);
            of_kind.map(|e| number(e, "count")).sum()
        };
        (count("discrete_gaussian"), count("bounded_range"))
    };
    // Two curvatures at the start, stages of three parts, the last profile, four gradients and a
    // curvature: how many stages, the noise decides.
    let (released, decided) = events(&place.certificate("out"));
    assert!(
        released >= 8.0 && (released - 8.0) % 3.0 == 0.0,
        "{released}"
    );
    assert_eq!(decided, 10.0);
    place.works("sample --resume out --iterations 25");
    assert_eq!(place.json("out/state.json")["anchor"], anchor);
    assert_eq!(events(&place.certificate("out")), (released, 25.0));
    let certificate = place.certificate("out");
    assert_eq!(number(&certificate, "epsilon"), 300.0);
    let summary = place.works("summary out --json");
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["noise_aware"].as_array().unwrap().len(), 3);
}

/// Paths are bytes on Unix: `run.toml` holds those that are no text, and a run resumes by it.
#[cfg(unix)]
#[test]
fn a_path_that_is_no_text_is_sampled_and_resumed() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new(RUN);
    let name = std::ffi::OsStr::from_bytes(b"peo\\ple\xff\xfe.csv");
    let folder = place.path("").join(std::ffi::OsStr::from_bytes(b"\xc3"));
    std::fs::create_dir(&folder).unwrap();
    let table = folder.join(name);
    std::fs::rename(place.path("people.csv"), &table).unwrap();
    let run = |arguments: &str, path: &std::path::Path| {
        let output = place.command(arguments).arg(path).output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let out = folder.join("out");
    let sample = "sample run.toml --quiet --ledger shared.json --out";
    let mut command = place.command(sample);
    let output = command.arg(&out).arg("--data").arg(&table).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    run("sample --quiet --iterations 400 --resume", &out);
    let state = std::fs::read_to_string(out.join("run.toml")).unwrap();
    assert!(state.contains("\\xff\\xfe.csv"), "{state}");
    let certificate = std::fs::read(out.join("certificate.json")).unwrap();
    let certificate: serde_json::Value = serde_json::from_slice(&certificate).unwrap();
    assert_eq!(certificate["iterations"], 400);
    run("summary", &out);
    // What `init` writes names the same file.
    let text = run("init", &table);
    assert!(text.contains("\\xff\\xfe.csv"), "{text}");
}
