//! The promise: declared bounds of labels may be a thousand times as wide as labels are. Where
//! these lie is asked first, so that coefficients are told as if bounds were narrow.

use std::fmt::Write;

use crate::common::anchored_run::AnchoredRun;
use dpmc::config::Plan;
use dpmc::engine::EngineChoice;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Exp1, Gamma, Poisson, StandardNormal};

const LEVELS: usize = 25;

/// 9,000 rows in 25 levels, of which the most frequent has eight times the rows of the least, and
/// what `draw` makes of a row's predictor.
pub fn table(names: &str, draw: impl Fn(&mut ChaCha20Rng, f64) -> String) -> String {
    let mut rng = ChaCha20Rng::seed_from_u64(17);
    let effects: Vec<f64> = (0..LEVELS)
        .map(|_| 0.35 * rng.sample::<f64, _>(StandardNormal))
        .collect();
    let mut text = format!("level,age,stay,urgent,{names}\n");
    for _ in 0..9_000 {
        let level = (8_f64.powf(rng.random_range(0.0..1.0)) - 1.0) / 7.0;
        let level = ((level * LEVELS as f64) as usize).min(LEVELS - 1);
        let age: f64 = rng.random_range(18.0..95.0);
        let stay: f64 = (3.0 * rng.sample::<f64, _>(Exp1)).min(30.0);
        let urgent = u8::from(rng.random_range(0.0..1.0) < 0.2);
        let eta = effects[level] + 0.9 * (age - 56.0) / 38.0 + 0.08 * stay;
        let drawn = draw(&mut rng, eta + 0.4 * f64::from(urgent));
        writeln!(text, "L{level},{age:.0},{stay:.1},{urgent},{drawn}").unwrap();
    }
    text
}

/// How far intercept, numbers and shared parameter are off from the run without privacy, and the
/// noise that is stated of them, in posterior sds, root mean square over six runs at ε = 3.
pub fn errors(table: &str, label: &str, model: &str, levels: &str) -> [f64; 2] {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), table).unwrap();
    let all: Vec<String> = (0..LEVELS).map(|i| format!("\"L{i}\"")).collect();
    let all = all.join(", ");
    let run = |privacy: &str, seed| {
        let text = format!(
            "[data]\nfile = \"t.csv\"\n[data.label]\n{label}\n[columns]\nlevel = {{ levels = [{all}], strict = true }}\nage = {{ scale = [18, 95] }}\nstay = {{ scale = [0, 30] }}\nurgent = {{ levels = [0, 1], strict = true }}\n[model]\n{model}\n{levels}\n[sampler]\nalgorithm = \"anchored-barker\"\n[run]\nchains = 1\niterations = 2000\n{privacy}"
        );
        let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
        let data = plan.load_data().unwrap();
        AnchoredRun::of(&plan, data, EngineChoice::Cpu, seed).unwrap()
    };
    let exact = run("[privacy]\nnot_private = true\n", 0);
    let asked: Vec<usize> = (0..4).chain([exact.noise.len() - 1]).collect();
    let mut squares = [0.0; 2];
    for seed in 0..6 {
        let noisy = run("[privacy]\nepsilon = 3.0\ndelta = 1e-6\n", seed);
        for j in &asked {
            let (mean, sd, _) = exact.moments(*j);
            let (off, stated) = (noisy.moments(*j).0 - mean, noisy.noise[*j].mean_sd);
            squares[0] += (off / sd).powi(2) / (6 * asked.len()) as f64;
            squares[1] += (stated / sd).powi(2) / (6 * asked.len()) as f64;
        }
    }
    squares.map(f64::sqrt)
}

/// Charges of 1,200 in the mean, which are declared to be anything up to a million.
#[test]
fn charges_far_below_their_bound_are_told() {
    let charges = table("charge", |rng, eta| {
        let gamma = Gamma::new(1.5, 800.0 * eta.exp() / 1.5).unwrap();
        format!("{:.2}", rng.sample(gamma).max(0.01))
    });
    let [off, stated] = errors(
        &charges,
        "column = \"charge\"\nclamp = [0.01, 1000000]",
        "kind = \"gamma\"\nparameters = { log_shape = { mean = 0, sd = 1 } }\nprior = { kind = \"normal\", sd = 5 }",
        "formula = \"charge ~ age + stay + urgent + level\"",
    );
    println!("{off:.2} {stated:.2}");
    assert!(off < 6.0 && stated < 10.0, "{off} {stated}");
}

/// Times, half of whose events are not seen, of levels that share a prior.
#[test]
fn times_far_below_their_bound_are_told() {
    let times = table("time,seen", |rng, eta| {
        let event = 2.0 * eta.exp() * rng.sample::<f64, _>(Exp1).powf(0.8);
        let end: f64 = rng.random_range(0.2..6.0);
        format!("{:.4},{}", event.min(end).max(0.01), u8::from(event <= end))
    });
    let [off, stated] = errors(
        &times,
        "column = \"time\"\nclamp = [0.01, 300]\nevent = { column = \"seen\", in = [\"1\"] }",
        "kind = \"weibull\"\nparameters = { log_shape = { mean = 0, sd = 1 } }\nprior = { kind = \"normal\", sd = 5 }",
        "formula = \"time ~ age + stay + urgent + (1 | level)\"\n[[model.hierarchy]]\nname = \"level\"\nscale = 1.0",
    );
    println!("{off:.2} {stated:.2}");
    assert!(off < 6.0 && stated < 6.0, "{off} {stated}");
}

/// Events of which a row has 0.15 in the mean, declared to be any number up to 30. Rows that noise
/// hides were taken for half of all rows, which left intervals far too wide: 56 posterior sds
/// were stated.
#[test]
fn rare_events_are_told() {
    let events = table("events", |rng, eta| {
        let events = Poisson::new((eta - 2.4).exp()).unwrap();
        format!("{:.0}", rng.sample(events).min(30.0))
    });
    let [off, stated] = errors(
        &events,
        "column = \"events\"\ncount = 30",
        "kind = \"poisson\"\nprior = { kind = \"normal\", sd = 5 }",
        "formula = \"events ~ age + stay + urgent\"",
    );
    println!("{off:.2} {stated:.2}");
    assert!(off < 2.5 && stated < 10.0, "{off} {stated}");
}

/// Times of which one in twelve ends with the event. Their weights were bounded as if all did, and
/// noise of the curvature left intervals far too wide: 12 posterior sds were stated.
#[test]
fn times_of_rare_events_are_told() {
    let times = table("time,seen", |rng, eta| {
        let event = 25.0 * (-0.5 * eta).exp() * rng.sample::<f64, _>(Exp1).powf(0.8);
        let end: f64 = rng.random_range(0.2..4.0);
        format!("{:.4},{}", event.min(end).max(0.01), u8::from(event <= end))
    });
    let [off, stated] = errors(
        &times,
        "column = \"time\"\nclamp = [0.01, 5]\nevent = { column = \"seen\", in = [\"1\"] }",
        "kind = \"weibull\"\nparameters = { log_shape = { mean = 0, sd = 1 } }\nprior = { kind = \"normal\", sd = 5 }",
        "formula = \"time ~ age + stay + urgent\"",
    );
    println!("{off:.2} {stated:.2}");
    assert!(off < 4.0 && stated < 8.0, "{off} {stated}");
}
