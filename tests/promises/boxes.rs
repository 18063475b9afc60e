//! The promise: where a prior's box cuts into the posterior, anchored runs sample what is left of it
//! inside, with and without privacy.

use std::fmt::Write;

use crate::common::anchored_run::AnchoredRun;
use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

const ROWS: usize = 20_000;
const BOX: [f64; 2] = [3.5, 3.0];
const PRIOR_SD: f64 = 3.0;

/// Rows by level of either column, and those of them with a label of 1.
type Counts = [[[f64; 2]; 5]; 5];

fn level(k: usize) -> f64 {
    k as f64 / 2.0 - 1.0
}

/// Labels of slopes 5, which the box does not hold, and −1; columns agree.
fn table() -> (String, Counts) {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let (mut text, mut counts) = (String::from("a,b,y\n"), Counts::default());
    for _ in 0..ROWS {
        let i: usize = rng.random_range(0..5);
        let j: usize = if rng.random_bool(0.5) {
            i
        } else {
            rng.random_range(0..5)
        };
        let eta = 5.0 * level(i) - level(j);
        let y = rng.random_bool(1.0 / (1.0 + (-eta).exp()));
        counts[i][j][0] += 1.0;
        counts[i][j][1] += f64::from(u8::from(y));
        writeln!(text, "{},{},{}", level(i), level(j), u8::from(y)).unwrap();
    }
    (text, counts)
}

fn log_density(counts: &Counts, theta: [f64; 2]) -> f64 {
    let mut value = -0.5 * theta.iter().map(|t| (t / PRIOR_SD).powi(2)).sum::<f64>();
    for (i, row) in counts.iter().enumerate() {
        for (j, [all, ones]) in row.iter().enumerate() {
            let eta = theta[0] * level(i) + theta[1] * level(j);
            value += ones * eta - all * (eta.max(0.0) + (-eta.abs()).exp().ln_1p());
        }
    }
    value
}

/// Means and sds inside the box, by sums over a grid.
fn quadrature(counts: &Counts) -> [(f64, f64); 2] {
    // The mass lies by the first edge: ten sds and more are inside the grid.
    let cells = 500;
    let at = |i: usize, j: usize| {
        let part = |k: usize| (k as f64 + 0.5) / cells as f64;
        [BOX[0] - 0.3 * part(i), 1.2 * (part(j) - 0.5)]
    };
    let pairs = (0..cells).flat_map(|i| (0..cells).map(move |j| (i, j)));
    let logs: Vec<([f64; 2], f64)> = pairs
        .map(|(i, j)| (at(i, j), log_density(counts, at(i, j))))
        .collect();
    let top = logs.iter().map(|l| l.1).fold(f64::NEG_INFINITY, f64::max);
    let whole: f64 = logs.iter().map(|l| (l.1 - top).exp()).sum();
    [0, 1].map(|j| {
        let moment = |power: i32| -> f64 {
            let terms = logs.iter().map(|(t, l)| t[j].powi(power) * (l - top).exp());
            terms.sum::<f64>() / whole
        };
        (moment(1), (moment(2) - moment(1).powi(2)).sqrt())
    })
}

fn run(table: &str, algorithm: &str, privacy: &str, seed: u64) -> AnchoredRun {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), table).unwrap();
    let text = format!(
        "[data]\nfile = \"t.csv\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\", \"b\"]\nscale = [-1, 1]\n[model]\nkind = \"logistic\"\nprior = {{ kind = \"normal\", sd = {PRIOR_SD} }}\nbox = [{}, {}]\n[sampler]\nalgorithm = \"{algorithm}\"\n[run]\nchains = 1\niterations = 20000\n[privacy]\n{privacy}\n",
        BOX[0], BOX[1]
    );
    let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
    let data: Dataset = plan.load_data().unwrap();
    AnchoredRun::of(&plan, data, EngineChoice::Cpu, seed).unwrap()
}

/// Without privacy means and sds lie within six standard errors of 2,000 effective draws, of which
/// there are more. At ε = 20 the noise is a quarter of a posterior sd: means lie within two, draws
/// are no wider than 1.5 times. A way to the mode that stops at the edge is fifteen sds off.
#[test]
fn draws_fill_what_a_box_leaves() {
    let (table, counts) = table();
    let exact = quadrature(&counts);
    let found = run(&table, "anchored-barker", "not_private = true", 1);
    for (j, (mean, sd)) in exact.into_iter().enumerate() {
        let (m, s, ess) = found.moments(j);
        println!("{j}: {mean:.4} ± {sd:.4}, found {m:.4} ± {s:.4} of {ess:.0}");
        assert!(ess > 2000.0, "{ess}");
        assert!((m - mean).abs() < 6.0 * sd / 2000f64.sqrt(), "{m} {mean}");
        // The variance of an exponential law's sd is twice that of its mean.
        assert!(
            (s - sd).abs() < 6.0 * sd * (2.0 / 2000f64).sqrt(),
            "{s} {sd}"
        );
    }
    for algorithm in ["anchored-barker", "dp-laplace"] {
        for seed in 0..4 {
            let found = run(&table, algorithm, "epsilon = 20\ndelta = 1e-6", seed);
            let (m, s, _) = found.moments(1);
            println!("{algorithm}: {:.4?} {m:.4} ± {s:.4}", found.moments(0));
            assert!((m - exact[1].0).abs() < 2.0 * exact[1].1, "{m}");
            assert!(s < 1.5 * exact[1].1, "{s}");
            assert!((found.moments(0).0 - BOX[0]).abs() < 0.05);
            for (noise, edge) in found.noise.iter().zip(BOX) {
                let all = [noise.interval, noise.mean_interval].concat();
                assert!(all.iter().all(|v| v.abs() <= edge), "{all:?}");
            }
        }
    }
}
