//! The methods that the figures of Räisä 2021 compare here, each at its settings.
//!
//! The paper's are those of its published code, whose τ is over √n, n = 100,000, and whose step
//! of SGLD and SGNHT is over n. Ours were chosen by trial on these made-up rows, which costs no
//! privacy; on real rows it would.

use super::raisa_run::Entry;
use super::raisa_targets::{Kind, as_toml, covariance};
use super::study::Role;

/// ε of the budgets: four of their seven.
pub(super) const EPSILONS: [f64; 4] = [2.0, 4.0, 8.0, 15.0];
/// Independent runs that are averaged, like theirs.
pub(super) const REPEATS: u64 = 10;
/// The same for stochastic gradients, whose runs are long.
pub(super) const FEW: u64 = 3;
/// Iterations of a chain that no budget of the paper's samplers reaches.
const MANY: u64 = 100_000;
/// Iterations of a chain after which stochastic gradients end, for time: on the banana their
/// budgets would pay for hundreds of thousands.
const ENOUGH: u64 = 9_000;
/// The same for ours.
const TRAJECTORIES: u64 = 300;
const WALK: u64 = 1_500;
const MOVES: u64 = 1_500;
const STEPS: u64 = 4_000;
/// Of a run on released sums, whose steps ask next to nothing of the rows.
const FREE: u64 = 20_000;
/// Share of the budget of `barker-hmc` on the banana that goes to decisions; most of the rest
/// goes to gradients.
const TO_DECISIONS: f64 = 0.35;

/// The methods of a problem over so many rows.
pub(super) fn methods(kind: Kind, rows: usize) -> Vec<Entry> {
    let table = match kind {
        Kind::Banana => BANANA,
        Kind::Gaussian => GAUSSIAN,
    };
    table
        .iter()
        .map(|(role, label, most, sampler)| Entry {
            label,
            role: *role,
            sampler: sampler.replace("SIGMA/N", &as_toml(&covariance(rows), rows as f64)),
            share: match *label {
                "barker-hmc" => TO_DECISIONS,
                _ => 0.995,
            },
            most: *most,
            repeats: match *label {
                "dp-sgld" | "dp-sgnht" => FEW,
                _ => REPEATS,
            },
        })
        .collect()
}

/// Role, label, most iterations, `[sampler]`.
type Row = (Role, &'static str, u64, &'static str);

const BANANA: &[Row] = &[
    (
        Role::Sound,
        "dp-hmc",
        MANY,
        "algorithm = 'dp-hmc'\ntau = 31.6228\nstep = 0.006\nleapfrog_steps = 25\njitter = [0.0, 1.0]\nclip = { rate = 0.1 }\ngradient = { clip = 0.05, tau = 173.925 }",
    ),
    (
        Role::Sound,
        "dp-penalty",
        MANY,
        "algorithm = 'dp-penalty'\ntau = 53.7587\nstep = 0.06\nclip = { rate = 0.15 }",
    ),
    // θ += (a/2)∇ + N(0, a) with their injected noise; their drift is twice this, which samples
    // the squared posterior.
    (
        Role::Sound,
        "dp-sgld",
        ENOUGH,
        "algorithm = 'dp-sgld'\nstep = 1e-5\ngradient = { clip = 0.2, rate = 0.01 }",
    ),
    (
        Role::Sound,
        "dp-sgnht",
        ENOUGH,
        "algorithm = 'dp-sgnht'\nstep = 1e-3\ndiffusion = 50\ngradient = { clip = 0.2, rate = 0.01 }",
    ),
    // A constant bound: a row's ratio between two draws of the posterior is of the order of
    // 0.006 however far apart they are along the parabola. It is as wide as the budget allows: the
    // wider it is, the less it biases.
    (
        Role::Ours,
        "barker-hmc",
        TRAJECTORIES,
        "algorithm = 'barker-hmc'\nstep = 0.02\nleapfrog_steps = 22\nclip = { rate = CLIP, norm = 'constant' }\ngradient = { clip = 0.02 }",
    ),
    (
        Role::Ours,
        "barker",
        WALK,
        "algorithm = 'barker'\nstep = 1.0\nscale = [0.1, 0.6]\nclip = { rate = CLIP, norm = 'constant' }",
    ),
    // The rows' sums, bought once, are all that the likelihood needs.
    (
        Role::Ours,
        "anchored-barker",
        FREE,
        "algorithm = 'anchored-barker'\nstep = 1.0\nscale = [0.1, 0.6]",
    ),
];

const GAUSSIAN: &[Row] = &[
    (
        Role::Sound,
        "dp-hmc",
        MANY,
        "algorithm = 'dp-hmc'\ntau = 31.6228\nstep = 0.00015\nleapfrog_steps = 12\njitter = [0.0, 1.0]\nclip = { rate = 6.0 }\ngradient = { clip = 10.0, tau = 79.0569 }",
    ),
    (
        Role::Sound,
        "dp-penalty",
        MANY,
        "algorithm = 'dp-penalty'\ntau = 15.8114\nstep = 0.0007\nclip = { rate = 10.0 }",
    ),
    (
        Role::Sound,
        "dp-sgld",
        ENOUGH,
        "algorithm = 'dp-sgld'\nstep = 8e-8\ngradient = { clip = 15.0, rate = 0.01 }",
    ),
    (
        Role::Sound,
        "dp-sgnht",
        ENOUGH,
        "algorithm = 'dp-sgnht'\nstep = 2e-6\ndiffusion = 30\ngradient = { clip = 12.0, rate = 0.01 }",
    ),
    // Σ is public here, and so is the posterior's covariance Σ/n: mass and proposal fit it, and
    // the clip is twice the root mean square of a row's ratio.
    (
        Role::Ours,
        "barker-hmc",
        MOVES,
        "algorithm = 'barker-hmc'\nstep = 0.4\nleapfrog_steps = 1\ncovariance = SIGMA/N\nclip = { rms = 2.0 }\ngradient = { clip = 0.3, tau = 150 }",
    ),
    (
        Role::Ours,
        "barker",
        STEPS,
        "algorithm = 'barker'\nstep = 0.3\ncovariance = SIGMA/N\nclip = { rms = 2.0 }",
    ),
    (
        Role::Ours,
        "anchored-barker",
        FREE,
        "algorithm = 'anchored-barker'\nstep = 0.6\ncovariance = SIGMA/N",
    ),
];
