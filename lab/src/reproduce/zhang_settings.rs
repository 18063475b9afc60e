//! Settings of Zhang & Zhang 2023, "DP-Fast MH: Private, fast, and accurate Metropolis–Hastings
//! for large-scale Bayesian inference" (ICML), and the methods that its figures compare here.

use super::study::{Method, Published};
use crate::published::RowBound;
use dpmc::privacy::FastMhSettings;

/// δ of all totals.
pub(super) const DELTA: f64 = 1e-5;
/// What DP-Fast MH claims for a step, at δ = 1e-5 a step.
pub(super) const CLAIMED_EPSILON: f64 = 0.05;
/// The claim, for tables.
pub(super) const CLAIM: &str = "0.05 at 1e-5";

/// λ = 10, and a step's ε and δ of both experiments.
pub(super) const fn at_cap(batch_cap: f64) -> FastMhSettings {
    FastMhSettings {
        lambda: 10.0,
        batch_cap,
        epsilon: CLAIMED_EPSILON,
        delta: 1e-5,
    }
}

/// What must be said beside it.
pub(super) const PUBLISHED_NOTE: &str = "DP-Fast MH as published is NOT private: with Metropolis acceptance a rejection can be impossible on one data set and possible on its neighbour (dpmc audit --algorithm dp-fast-mh --as-published), and batches and noise follow the rows' own norms.";

/// Rows of the mixture.
pub(super) const MIXTURE_ROWS: u64 = 50_000;
/// Iterations on the mixture.
pub(super) const MIXTURE_STEPS: u64 = 20_000;
/// T = 500; flat prior on ±3; rows truncated to ±3, as the paper says (its code does not).
pub(super) const MIXTURE: &str = r#"
[data]
file = "made up"
[[data.features]]
column = "x"
clamp = [-3, 3]
[model]
kind = "mixture"
tempering = 0.002
box = 3.0
"#;

/// Steps are the paper's code's: 0.06 for minibatches, 0.08 for all rows; so are λ = 10 and
/// K = 60 of DP-Fast MH, whose ε = 0.05 and δ = 1e-5 a step are the sampler's defaults.
pub(super) const MIXTURE_METHODS: &[Method<'_>] = &[
    Method::reference("mh, all rows", "algorithm = 'mh'\nstep = 0.08"),
    Method::reference(
        "tuna-mh, lambda = 10",
        "algorithm = 'tuna-mh'\nlambda = 10\nstep = 0.06",
    ),
    // τ = √(2 log(1.25/δ))/ε: the Gaussian mechanism of (0.05, 1e-5) for every step, on all
    // rows.
    Method::sound(
        "dp-penalty at (0.05, 1e-5)",
        "algorithm = 'dp-penalty'\ntau = 96.9\nstep = 0.08",
    )
    .claiming(CLAIM),
    Method::sound(
        "dp-barker, all rows, C = 2",
        "algorithm = 'dp-barker'\nvariance = 2.0\nstep = 0.08",
    ),
    Method::published(
        "dp-fast-mh, as published",
        "algorithm = 'mh'\nstep = 0.06",
        Published {
            settings: at_cap(60.0),
            bound: RowBound::Mixture { variance: 2.0 },
        },
    )
    .claiming(CLAIM),
    Method::sound(
        "dp-fast-mh, sound",
        "algorithm = 'dp-fast-mh'\nlambda = 10\nbatch_cap = 60\nstep = 0.06",
    )
    .claiming(CLAIM),
    Method::sound(
        "dp-fast-mh-full, sound",
        "algorithm = 'dp-fast-mh-full'\nstep = 0.08",
    )
    .claiming(CLAIM),
    Method::ours("barker, all rows", "algorithm = 'barker'\nstep = 0.08"),
    Method::ours(
        "poisson-barker, lambda = 300",
        "algorithm = 'poisson-barker'\nlambda = 300\nstep = 0.06",
    ),
    Method::ours(
        "poisson-barker, 10 x steps",
        "algorithm = 'poisson-barker'\nlambda = 300\nstep = 0.06",
    )
    .stretched(10),
    // Its price hardly grows with its steps.
    Method::ours(
        "anchored-barker, 10 x steps",
        "algorithm = 'anchored-barker'\nstep = 0.3",
    )
    .within(0.1)
    .stretched(10),
];

/// λ of the trade-off, at step 0.06.
pub(super) const LAMBDAS: [f64; 6] = [10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];
/// Runs of the trade-off that are averaged, and fewer where most steps read all rows.
pub(super) const TRADE_OFF_RUNS: u64 = 8;
pub(super) const CAP_RUNS: u64 = 2;
/// Steps of the trade-off, at λ = 300.
pub(super) const STEPS: [f64; 6] = [0.02, 0.06, 0.15, 0.4, 0.8, 1.6];

/// K of the trade-off, at λ = 10 and step 0.06: from moves that nearly all read all rows to
/// minibatches that get noise.
pub(super) const CAPS: [f64; 6] = [15.0, 30.0, 45.0, 60.0, 120.0, 240.0];

/// Iterations on MNIST.
pub(super) const MNIST_STEPS: u64 = 40_000;
