//! The promise: an anchored run does not claim what few rows do not tell. A column that is nearly
//! constant agrees with the cutpoints of an ordinal regression, and the noise hides how nearly.

use std::fmt::Write;

use crate::common::anchored_run::AnchoredRun;
use dpmc::config::Plan;
use dpmc::engine::EngineChoice;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

const RUNS: u64 = 24;

/// Ratings of 2,000 rows by a level and an amount, most of whose values are below a tenth of its
/// bound.
fn table() -> String {
    let mut rng = ChaCha20Rng::seed_from_u64(29);
    let mut text = String::from("level,amount,y\n");
    for i in 0..2_000 {
        let level = [0, 1, 0, 2, 0, 1, 0, 2, 0, 1][i % 10];
        let normal: f64 = StandardNormal.sample(&mut rng);
        let amount = normal.exp().min(30.0);
        let chance: f64 = rng.random_range(0.0..1.0);
        let eta =
            [0.0, -0.2, 1.0][level] + 2.8 * (amount / 15.0 - 1.0) + (chance / (1.0 - chance)).ln();
        let y = 1 + u8::from(eta > -3.1) + u8::from(eta > -1.6);
        writeln!(text, "{level},{amount},{y}").unwrap();
    }
    text
}

/// Of 24 runs at ε = 1 no more than 11 have a mean that is more than four of its stated sds from
/// that without privacy. Two or three do; at one in ten there would be 12 once in a million times.
/// 13 did where a curvature was drawn to what was believed before as if its noise were known better
/// than it is.
#[test]
fn what_noise_hides_of_columns_that_nearly_agree_is_not_claimed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), table()).unwrap();
    let run = |privacy: &str, seed| {
        let text = format!(
            "[data]\nfile = \"t.csv\"\n[data.label]\ncolumn = \"y\"\nlevels = [\"1\", \"2\", \"3\"]\n[[data.features]]\ncolumn = \"level\"\none_hot = [\"0\", \"1\", \"2\"]\nreference = \"0\"\nstrict = true\n[[data.features]]\ncolumn = \"amount\"\nscale = [0, 30]\n[model]\nkind = \"ordinal\"\nprior = {{ kind = \"normal\", sd = 3 }}\n[sampler]\nalgorithm = \"dp-laplace\"\n[run]\nchains = 1\niterations = 400\n{privacy}"
        );
        let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
        let data = plan.load_data().unwrap();
        AnchoredRun::of(&plan, data, EngineChoice::Cpu, seed).unwrap()
    };
    let exact = run("[privacy]\nnot_private = true\n", 1);
    let worst = |seed| {
        let found = run("[privacy]\nepsilon = 1.0\ndelta = 1e-6\n", seed);
        let away = |j: usize| (found.moments(j).0 - exact.moments(j).0) / found.noise[j].mean_sd;
        (0..found.noise.len())
            .map(|j| away(j).abs())
            .fold(0.0, f64::max)
    };
    let worst: Vec<f64> = (0..RUNS).map(worst).collect();
    println!("{worst:.1?}");
    let far = worst.iter().filter(|w| **w > 4.0).count();
    assert!(far <= 11, "{far}");
}
