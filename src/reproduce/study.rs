//! Methods as entries of a table, and what one run of a method leaves.

use std::path::Path;

use rayon::prelude::*;

use super::ReproduceError;
use super::drawing::shown;
use crate::config::Plan;
use crate::data::Dataset;
use crate::engine::EngineChoice;
use crate::privacy::{Budget, Curator, Estimator, Halt, Ledger};
use crate::sampler::{Chains, RandomWalk};

/// Room for whatever a method spends: figures report the cost, they do not limit it. The
/// inexact coins of minibatches are paid from δ/(1 + e^ε), which needs a finite one.
const ROOM: f64 = 1000.0;
const MINIBATCH_ROOM: f64 = 35.0;
/// Moments at which costs and scores are noted.
const STOPS: u64 = 40;

/// Where a method comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Without privacy, for comparison.
    Reference,
    /// A paper's method in a form whose guarantee holds.
    Sound,
    /// New here.
    Ours,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Reference => "reference",
            Role::Sound => "paper's, sound",
            Role::Ours => "ours",
        }
    }
}

/// One method of a comparison. To add one, add an entry to the table of its figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method<'a> {
    /// Name in legends and tables.
    pub label: &'a str,
    /// Where it comes from.
    pub role: Role,
    /// What its paper claims for a step, as text; empty where there is no claim.
    pub claim: &'a str,
    /// The `[sampler]` section of its run file.
    pub sampler: &'a str,
    /// Iterations for one of the others: above 1 where steps are cheap in rows and ε.
    pub stretch: u64,
}

/// What methods are run on.
pub(super) struct Problem<'a> {
    /// `[data]`, `[model]` and `[run]` of a run file.
    pub settings: &'a str,
    /// δ of all costs.
    pub delta: f64,
    /// The rows, the same each time.
    pub data: &'a (dyn Fn() -> Result<Dataset, ReproduceError> + Sync),
}

/// What was known after some iterations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// Iterations made.
    pub iteration: u64,
    /// Expected rows read by then.
    pub rows: f64,
    /// ε spent by then; infinite without privacy.
    pub epsilon: f64,
}

/// One run.
pub(super) struct Trace {
    /// Draws, one an iteration.
    pub draws: Vec<Vec<f64>>,
    /// At regular moments, the last at the end.
    pub stops: Vec<Stop>,
    /// Share of accepted moves.
    pub acceptance: f64,
}

impl Trace {
    /// The end of the run.
    pub fn end(&self) -> Stop {
        self.stops.last().copied().unwrap_or(Stop {
            iteration: 0,
            rows: 0.0,
            epsilon: 0.0,
        })
    }

    /// Expected rows a step.
    pub fn rows_a_step(&self) -> f64 {
        let end = self.end();
        end.rows / (end.iteration.max(1)) as f64
    }

    /// What it spent, for a table.
    pub fn spent(&self) -> String {
        match self.end().epsilon {
            e if e.is_infinite() => "not private".into(),
            e => shown(e),
        }
    }

    /// Draws of two parameters.
    pub fn pairs(&self) -> Vec<[f64; 2]> {
        self.draws.iter().map(|d| [d[0], d[1]]).collect()
    }
}

/// Runs every method from the same seed.
///
/// # Errors
/// [`ReproduceError`] of the first that fails.
pub(super) fn run_all(
    problem: &Problem<'_>,
    methods: &[Method<'_>],
    iterations: u64,
) -> Result<Vec<Trace>, ReproduceError> {
    methods
        .par_iter()
        .map(|method| run(problem, method, iterations, 1))
        .collect()
}

/// One run of one chain, every coin from `seed`, of `iterations` times the method's stretch.
///
/// # Errors
/// [`ReproduceError`] for bad settings, or a step that fails.
pub(super) fn run(
    problem: &Problem<'_>,
    method: &Method<'_>,
    iterations: u64,
    seed: u64,
) -> Result<Trace, ReproduceError> {
    let text = format!(
        "{}\n[sampler]\n{}\n[privacy]\nnot_private = true\n",
        problem.settings, method.sampler
    );
    let plan = Plan::parse(Path::new(method.label), text)?;
    let data = (problem.data)()?;
    let rows = data.rows();
    let model = plan.model(&data)?;
    let mut sampler = plan.sampler(&*model, rows, data.row_norm())?;
    let public_seed = [seed as u8; 32];
    let starts = plan.starts(&*model, public_seed)?;
    let mut chains = Chains::new(&starts[..1], public_seed);
    let algorithm = plan.combination()?;
    let mut curator = if algorithm.is_private() {
        let room = if algorithm.is_minibatch() {
            MINIBATCH_ROOM
        } else {
            ROOM
        };
        let ledger = Ledger::in_memory(Budget::new(room, problem.delta)?);
        Curator::private(data, model, EngineChoice::Cpu, ledger, Some(seed))?
    } else {
        Curator::not_private(data, model, EngineChoice::Cpu, seed)?.into_curator()
    };

    let mut trace = Trace {
        draws: Vec::new(),
        stops: Vec::new(),
        acceptance: 0.0,
    };
    let mut read = 0.0;
    let iterations = iterations * method.stretch;
    for iteration in 1..=iterations {
        let rows_of_step = expected_rows(&sampler, rows, chains.thetas.ncols());
        match sampler.step(&mut chains, &mut curator) {
            Ok(_) => {}
            // The run is as long as its room allows; its last stop says so.
            Err(Halt::BudgetSpent(_)) => break,
            Err(other) => return Err(other.into()),
        }
        read += rows_of_step;
        trace.draws.push(chains.thetas.row(0).to_vec());
        if is_stop(iteration, iterations) {
            trace.stops.push(Stop {
                iteration,
                rows: read,
                epsilon: spent(&curator),
            });
        }
    }
    trace.acceptance = chains.accepted[0] as f64 / trace.draws.len().max(1) as f64;
    Ok(trace)
}

/// ε of all steps so far; infinite without privacy.
fn spent(curator: &Curator) -> f64 {
    curator
        .ledger()
        .map_or(f64::INFINITY, |ledger| ledger.epsilon_spent())
}

/// Whether an iteration is one of [`STOPS`] evenly spaced ones, or of a few early ones.
fn is_stop(iteration: u64, iterations: u64) -> bool {
    let every = (iterations / STOPS).max(1);
    iteration == iterations
        || iteration.is_multiple_of(every)
        || (iteration < every && iteration >= every / 16 && iteration.is_power_of_two())
}

/// Mean number of rows that the next move reads, a move that leaves the support counted too:
/// N, or λ + Λ in the mean over the proposal.
fn expected_rows(sampler: &RandomWalk, rows: usize, d: usize) -> f64 {
    match (sampler.estimator, sampler.typical_clip(d)) {
        (Estimator::Poisson { lambda }, Some(clip)) => {
            // The typical move has ‖z‖ = √d; E‖z‖ = √2 Γ((d+1)/2)/Γ(d/2).
            let half = 0.5 * d as f64;
            let mean = 2f64.sqrt() * (libm::lgamma(half + 0.5) - libm::lgamma(half)).exp();
            let big = rows as f64 * clip * mean / (d as f64).sqrt();
            lambda.value(big) + big
        }
        _ => rows as f64,
    }
}
