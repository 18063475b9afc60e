//! Settings of Zhang & Zhang 2023, "DP-Fast MH: Private, fast, and accurate Metropolis–Hastings
//! for large-scale Bayesian inference" (ICML), and the methods that its figures compare here.
//!
//! DP-Fast MH itself joins these tables when its samplers exist; until then its claim is
//! stated and its curves are left out.

use super::study::{Method, Role};

/// δ of all totals.
pub(super) const DELTA: f64 = 1e-5;
/// What DP-Fast MH claims for a step, at δ = 1e-5 a step.
pub(super) const CLAIMED_EPSILON: f64 = 0.05;
/// The claim, for tables.
pub(super) const CLAIM: &str = "0.05 at 1e-5";

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

/// Steps are the paper's code's: 0.06 for minibatches, 0.08 for all rows.
pub(super) const MIXTURE_METHODS: &[Method<'_>] = &[
    Method {
        label: "mh, all rows",
        role: Role::Reference,
        claim: "",
        sampler: "algorithm = 'mh'\nstep = 0.08",
        stretch: 1,
    },
    Method {
        label: "tuna-mh, lambda = 10",
        role: Role::Reference,
        claim: "",
        sampler: "algorithm = 'tuna-mh'\nlambda = 10\nstep = 0.06",
        stretch: 1,
    },
    Method {
        // τ = √(2 log(1.25/δ))/ε: the Gaussian mechanism of (0.05, 1e-5) for every step, on all
        // rows.
        label: "dp-penalty at (0.05, 1e-5)",
        role: Role::Sound,
        claim: CLAIM,
        sampler: "algorithm = 'dp-penalty'\ntau = 96.9\nstep = 0.08",
        stretch: 1,
    },
    Method {
        label: "dp-barker, all rows, C = 2",
        role: Role::Sound,
        claim: "",
        sampler: "algorithm = 'dp-barker'\nvariance = 2.0\nstep = 0.08",
        stretch: 1,
    },
    Method {
        label: "barker, all rows",
        role: Role::Ours,
        claim: "",
        sampler: "algorithm = 'barker'\nstep = 0.08",
        stretch: 1,
    },
    Method {
        label: "poisson-barker, lambda = 300",
        role: Role::Ours,
        claim: "",
        sampler: "algorithm = 'poisson-barker'\nlambda = 300\nstep = 0.06",
        stretch: 1,
    },
    Method {
        label: "poisson-barker, 10 x steps",
        role: Role::Ours,
        claim: "",
        sampler: "algorithm = 'poisson-barker'\nlambda = 300\nstep = 0.06",
        stretch: 10,
    },
];

/// λ of the trade-off, at step 0.06.
pub(super) const LAMBDAS: [f64; 6] = [10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];
/// Runs of the trade-off that are averaged.
pub(super) const TRADE_OFF_RUNS: u64 = 8;
/// Steps of the trade-off, at λ = 300.
pub(super) const STEPS: [f64; 6] = [0.02, 0.06, 0.15, 0.4, 0.8, 1.6];

/// Iterations on MNIST.
pub(super) const MNIST_STEPS: u64 = 40_000;
