//! A Bayesian neural network of nine parameters on 300,000 made-up rows, untempered.

use dpmc::data::{Dataset, LabelKind};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::anchored::Setting;
use super::{Failure, Problem};

const ROWS: usize = 300_000;
/// Two units' weights of two features, their biases, the output's weights and bias.
const TEACHER: [f64; 9] = [1.5, -1.0, 0.5, 1.2, 0.3, -0.5, 1.8, -1.6, 0.2];

/// A long chain on all rows, not private, whose clips nothing reaches.
pub const REFERENCE: &str = "[sampler]\nestimator = \"all\"\nacceptance = \"barker\"\nanchored = true\nanchor = { radius = 1000.0 }\nproposal = { autoregressive = { correlation = 0.9 } }\nclip = { rate = 1e3 }\n[run]\niterations = 20000\n";

/// Moves of the anchored runs, on all rows.
pub const UNCLIPPED: &str = "estimator = \"all\"\nacceptance = \"barker\"\nanchored = true";

/// From a public guess of the weights' signs. (From a prior draw it takes ε = 8 to find a mode.)
pub fn problem() -> Problem {
    let setting = |epsilon: f64| Setting {
        sampler: "algorithm = \"anchored-barker\"\nclip = { rate = 1.5 }".into(),
        epsilon,
        iterations: 1_000,
    };
    Problem {
        name: "network",
        settings: "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-2, 2]\n[model]\nkind = \"mlp\"\nhidden = 2\nprior = { kind = \"normal\", sd = 2.0 }\n".into(),
        iterations: 4_000,
        anchored: [2.0, 4.0].map(setting).into(),
        start: "start = { value = [1.0, -1.0, 0.0, 1.0, 0.0, 0.0, 1.0, -1.0, 0.0] }",
    }
}

/// Features uniform in the square, labels from the teacher.
pub fn rows() -> Result<Dataset, Failure> {
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    let names = vec!["a".to_string(), "b".to_string()];
    let mut set = Dataset::builder_with(names, Some(LabelKind::Binary), 8f64.sqrt())?;
    let t = TEACHER;
    for _ in 0..ROWS {
        let x = [0, 1].map(|_| 4.0 * rng.random::<f64>() - 2.0);
        let unit = |k: usize| (t[2 * k] * x[0] + t[2 * k + 1] * x[1] + t[4 + k]).tanh();
        let odds = t[6] * unit(0) + t[7] * unit(1) + t[8];
        let one = rng.random::<f64>() < 1.0 / (1.0 + (-odds).exp());
        set.push_value(&x.map(|v| v as f32), Some(if one { 1.0 } else { -1.0 }))?;
    }
    Ok(set.finish()?)
}
