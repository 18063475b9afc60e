//! The promise: a run of a sampler on gradients that is interrupted or killed goes on where it
//! was. What it spent adds up, its certificate claims the budget, no fit and no start is paid for
//! twice, and a state that was damaged on disk is refused by field before anything is charged.
//! No test depends on secret coins: what is compared was drawn once, or is the same for all.

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::place::{Place, RUN, edit, number, releases};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

/// Sampler => what else stands in `[run]` => events of one step of one chain, of a fit or start
/// for all chains, of a start for each. Steps cost so little that only an interruption ends a run.
const RUNS: &str = r#"
algorithm = "dp-hmc"; step = 0.05; leapfrog_steps = 1; tau = 7e3; gradient = { tau = 7e3 } => => 3 0 0
algorithm = "dp-hmc"; step = 0.05; leapfrog_steps = 1; tau = 7e3; gradient = { tau = 7e3 } => start = { dpvi = { epsilon = 2.0, delta = 1e-6, steps = 30 } } => 3 30 0
algorithm = "barker-hmc"; step = 1e-6; leapfrog_steps = 2; gradient = { tau = 7e3 } => => 4 0 0
algorithm = "barker-hmc"; step = 1e-6; leapfrog_steps = 1; gradient = { tau = 7e3 } => start = { ops = { box = 0.005, steps = 5 } } => 3 0 1
algorithm = "dp-sgld"; step = 1e-9 => => 1 0 0
algorithm = "dp-sgld"; step = 1e-9; gradient = { rate = 0.1 } => => 1 0 0
algorithm = "dp-sghmc"; step = 1e-10 => => 1 0 0
algorithm = "dp-sghmc"; step = 1e-10 => start = { dpvi = { epsilon = 2.0, delta = 1e-6, steps = 30 } } => 1 30 0
algorithm = "dp-sgnht"; step = 1e-8 => => 1 0 0
algorithm = "dpvi"; steps = 30 => => 0 30 0
algorithm = "ops"; steps = 1 => => 1 0 0
"#;

/// Chains of a run: they fill a part file every 1024 iterations.
const CHAINS: i32 = 64;

struct Case {
    line: &'static str,
    file: String,
    /// Events of a step of all chains, and of what comes before the first.
    events: (f64, f64),
}

fn cases() -> Vec<Case> {
    let lines = RUNS.lines().filter(|l| !l.is_empty());
    lines.map(case).collect()
}

fn case(line: &'static str) -> Case {
    let cells: Vec<&str> = line.split("=>").map(str::trim).collect();
    let counts: Vec<f64> = cells[2].split(' ').map(|c| c.parse().unwrap()).collect();
    let chains = f64::from(CHAINS);
    Case {
        line,
        file: run_file(cells[0], cells[1]),
        events: (counts[0] * chains, counts[1] + counts[2] * chains),
    }
}

fn run_file(sampler: &str, run: &str) -> String {
    let walk = "algorithm = \"barker\"\nstep = 0.0001";
    let text = edit(RUN, walk, &sampler.replace("; ", "\n"));
    let text = edit(
        &text,
        "iterations = 300",
        &format!("iterations = 40\n{run}"),
    );
    if sampler.contains("ops") {
        return edit(&text, "tempering = 1.0", "tempering = 1.0\nbox = 0.0001");
    }
    text
}

/// A run that does not outlive its test.
struct Running(Child);

impl Running {
    /// Starts a run of no end and waits for its first draws.
    fn start(place: &Place, out: &str) -> Self {
        let arguments =
            format!("sample run.toml --chains {CHAINS} --iterations 100000000 --out {out} --quiet");
        let mut command = place.command(&arguments);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(command.spawn().unwrap());
        let start = Instant::now();
        while place.parts(out).is_empty() {
            let ended = running.0.try_wait().unwrap();
            assert!(ended.is_none(), "the run ended by itself: {ended:?}");
            assert!(start.elapsed() < Duration::from_secs(120), "no part");
            std::thread::sleep(Duration::from_millis(2));
        }
        running
    }

    /// Waits until the state of some step is on disk.
    fn saved(self, place: &Place, out: &str) -> Self {
        let start = Instant::now();
        while place.json(&format!("{out}/state.json"))["iteration"] == 0 {
            assert!(start.elapsed() < Duration::from_secs(120), "no state");
            std::thread::sleep(Duration::from_millis(2));
        }
        self
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn interrupt(mut self) {
        let mut shell = std::process::Command::new("sh");
        let sent = shell.args(["-c", &format!("kill -INT {}", self.0.id())]);
        assert!(sent.status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn events(certificate: &Value) -> f64 {
    let events = certificate["events"].as_array().unwrap();
    events.iter().map(|e| number(e, "count")).sum()
}

/// What a ledger counts as spent, in its own units.
fn units(place: &Place, out: &str) -> f64 {
    let ledger = place.ledger(&format!("{out}/ledger.json"));
    ledger["spent_units"].as_str().unwrap().parse().unwrap()
}

fn spent(place: &Place, out: &str) -> f64 {
    crate::common::place::spent(&place.json(&format!("{out}/ledger.json")))
}

/// What is true of a private directory after an interruption and after a resumption.
fn check(place: &Place, case: &Case, out: &str, status: &str) -> Value {
    let (certificate, draws) = (place.certificate(out), place.draws(out));
    assert_eq!(certificate["status"], status, "{}", case.line);
    assert_eq!(certificate["adaptive"], true, "{}", case.line);
    assert_eq!(number(&certificate, "epsilon"), 5.0, "{}", case.line);
    draws.assert_contiguous(CHAINS);
    assert!(
        number(&certificate, "epsilon_spent") <= 5.0,
        "{}",
        case.line
    );
    let made = number(&certificate, "iterations");
    assert_eq!(draws.last() as f64, made, "{}", case.line);
    let finite = draws.rows.iter().flat_map(|r| &r.2).all(|v| v.is_finite());
    assert!(finite, "{}", case.line);
    // A fit or a start is in there once.
    let expected = case.events.0 * made + case.events.1;
    assert_eq!(events(&certificate), expected, "{}", case.line);
    certificate
}

#[test]
fn an_interrupted_run_goes_on_and_its_spending_adds_up() {
    // Side by side, for they mostly wait for their first part.
    std::thread::scope(|scope| {
        for case in cases() {
            scope.spawn(move || goes_on(&case));
        }
    });
}

fn goes_on(case: &Case) {
    let place = Place::new(&case.file);
    Running::start(&place, "out").interrupt();
    let before = check(&place, case, "out", "interrupted");
    let (drawn, paid) = (place.draws("out"), units(&place, "out"));

    let more = number(&before, "iterations") as u64 + 50;
    place.works(&format!("sample --resume out --iterations {more} --quiet"));
    let after = check(&place, case, "out", "finished");
    let resumed = place.draws("out");
    assert_eq!(resumed.last() as u64, more, "{}", case.line);
    let end = drawn.last();
    let owned = resumed.rows.iter().filter(|r| r.1 <= end);
    assert!(owned.eq(drawn.rows.iter()), "{}", case.line);
    // Draws of a fit are free; everything else costs, and nothing is forgotten.
    let now = units(&place, "out");
    let free = case.events.0 == 0.0;
    assert!(now >= paid && (now == paid) == free, "{}", case.line);
    // At an order there is no rho to compare with; counts were compared above.
    if !case.line.contains("rate") {
        let ledger = spent(&place, "out");
        for (certificate, ledger) in [(&before, ledger * (paid / now)), (&after, ledger)] {
            let released = releases(certificate).1;
            assert!(
                (ledger / released - 1.0).abs() < 1e-6,
                "{}: {ledger} {released}",
                case.line
            );
        }
    }
}

/// A kill leaves what was reserved charged, and makes no second start: the certificate has each
/// release of the first one once, and no dearer event.
#[test]
fn a_killed_run_pays_for_no_second_start() {
    for case in cases().into_iter().filter(|c| c.events.1 > 0.0) {
        let place = Place::new(&case.file);
        Running::start(&place, "out").saved(&place, "out").kill();
        let covered = place.certificate("out");
        let owned = place.draws("out");
        owned.assert_contiguous(CHAINS);
        // What was paid for before the first step is saved with that step, whatever comes next.
        let first = File::open(&place.parts("out")[0]).unwrap();
        let first = SerializedFileReader::new(first).unwrap();
        let rows = first.metadata().file_metadata().num_rows();
        assert_eq!(rows, i64::from(CHAINS), "{}", case.line);
        let state = place.json("out/state.json")["iteration"].as_i64().unwrap();
        let before = spent(&place, "out");
        assert!(before >= releases(&covered).1, "{}", case.line);

        let more = number(&covered, "iterations") as u64 + 50;
        place.works(&format!("sample --resume out --iterations {more} --quiet"));
        let certificate = place.certificate("out");
        assert_eq!(certificate["status"], "finished", "{}", case.line);
        let draws = place.draws("out");
        draws.assert_contiguous(CHAINS);
        let kept = |d: &crate::common::place::Draws| -> Vec<_> {
            let rows = d.rows.iter().filter(|r| r.1 <= state);
            rows.cloned().collect()
        };
        assert_eq!(kept(&owned), kept(&draws), "{}", case.line);
        // Steps that the kill lost may be made again; what came before them is not.
        let released = events(&certificate) - case.events.1;
        let steps = case.events.0 * draws.last() as f64;
        assert!(released >= steps, "{}", case.line);
        let start = case.line.contains("dpvi");
        let fits = certificate["events"].as_array().unwrap().iter();
        let dearest = fits
            .map(|e| (releases(&serde_json::json!({ "events": [e] })), e))
            .map(|((count, rho), _)| (rho / count, count))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        let expected = if start { 30.0 } else { f64::from(CHAINS) };
        assert_eq!(dearest.1, expected, "{}", case.line);
        assert!(spent(&place, "out") >= releases(&certificate).1);
    }
}

/// Sampler and warm-up => pointer into `state.json` under `sampler` => damage => named field.
const DAMAGED: &str = r#"
H => hamiltonian/step => -1.0 => step
H => hamiltonian/step => 0.0 => step
H => hamiltonian/leapfrog_steps => 0 => leapfrog_steps
H => hamiltonian/leapfrog_steps => 4294967295 => leapfrog_steps
H => hamiltonian/mass => {"scalar":-1.0} => mass
H => hamiltonian/mass => {"diagonal":[1.0]} => mass
H => hamiltonian/mass => {"diagonal":[1.0,0.0,1.0]} => mass
H => hamiltonian/shift => 1.5 => shift
H => hamiltonian/shift => -0.5 => shift
H => hamiltonian/iteration => 18446744073709551615 => iteration
H => hamiltonian/divergent => 18446744073709551615 => divergent
H => hamiltonian/tuner/step/count => 18446744073709551615 => tuner
H => hamiltonian/tuner/step/averaged_log => 1e300 => tuner
H => hamiltonian/tuner/step/shortfall => -7.0 => tuner
H => hamiltonian/tuner/windows/mean => [] => tuner
H => hamiltonian/tuner/windows/scatter => [1.0] => tuner
H => hamiltonian/tuner/windows/count => 18446744073709551615 => tuner
H => hamiltonian/tuner/length/log_length => -1e300 => tuner
H => hamiltonian/tuner/length/second_moment => -1.0 => tuner
G => stochastic-gradient/momenta => [] => momenta
G => stochastic-gradient/momenta => [[0.0,0.0,0.0]] => momenta
G => stochastic-gradient/momenta => [[0.0],[0.0]] => momenta
G => stochastic-gradient/thermostats => [1.0] => thermostats
G => stochastic-gradient/second_moment => [1.0] => second_moment
G => stochastic-gradient/second_moment => [1.0,-1.0,1.0] => second_moment
G => stochastic-gradient/iteration => 18446744073709551615 => iteration
V => variational/posterior => null => posterior
V => variational/posterior/mean => [0.0] => posterior
V => variational/posterior/sd => [1.0,1.0] => posterior
V => variational/posterior/sd => [1.0,1.0,0.0] => posterior
V => variational/posterior/sd => [1.0,-1.0,1.0] => posterior
"#;

#[test]
fn a_damaged_state_is_refused_by_field() {
    for (letter, sampler, run) in [
        (
            'H',
            "algorithm = \"dp-hmc\"; step = 0.05; leapfrog_steps = 1; tau = 400.0; gradient = { tau = 400.0 }; adapt = \"full\"; adapt_length = true",
            "warmup = 1",
        ),
        ('G', "algorithm = \"dp-sgnht\"; step = 1e-8", ""),
        ('V', "algorithm = \"dpvi\"; steps = 30", ""),
        ('O', "algorithm = \"ops\"; steps = 1", ""),
    ] {
        let place = Place::new(&run_file(sampler, run));
        place.works("sample run.toml --out out --quiet --chains 2");
        let good = place.json("out/state.json");
        let files = ["out/certificate.json", "out/ledger.json"];
        let before = files.map(|f| place.json(f));
        let refused = |state: &Value, field: &str, line: &str| {
            place.write("out/state.json", &state.to_string());
            let message = place.refuses("sample --resume out --iterations 60 --quiet");
            assert!(message.contains(field), "{line}: {message}");
            assert_eq!(files.map(|f| place.json(f)), before, "{line}");
            assert_eq!(place.draws("out").last(), 40, "{line}");
        };
        for line in DAMAGED.lines().filter(|l| l.starts_with(letter)) {
            let cells: Vec<&str> = line.split(" => ").collect();
            let mut state = good.clone();
            let pointer = format!("/sampler/{}", cells[1]);
            *state.pointer_mut(&pointer).expect(line) = serde_json::from_str(cells[2]).unwrap();
            refused(&state, cells[3], line);
        }
        // The state of another sampler.
        let others = [
            serde_json::json!("posterior-draws"),
            serde_json::json!({ "variational": { "posterior": null } }),
        ];
        for (i, other) in others.into_iter().enumerate() {
            if (letter, i) != ('O', 0) && (letter, i) != ('V', 1) {
                let mut state = good.clone();
                state["sampler"] = other;
                refused(&state, "'sampler'", "another sampler's");
            }
        }
        place.write("out/state.json", &good.to_string());
        place.works("sample --resume out --iterations 60 --quiet");
        assert_eq!(place.draws("out").last(), 60);
    }
}
