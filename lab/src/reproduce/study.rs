//! Methods as entries of a table, and what one run of a method leaves.

use std::path::Path;

use rayon::prelude::*;

use super::ReproduceError;
use super::drawing::shown;
use super::meter::Meter;
use crate::published::{PublishedFastMh, RowBound};
use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::privacy::accountant::{Question, Sequence, account_without_losses};
use dpmc::privacy::{Budget, Curator, FastMhSettings, Halt, Ledger, Neighbours};
use dpmc::sampler::{Chains, Sampler};

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
    /// A paper's algorithm to the letter, whose claim of privacy is false.
    Published,
    /// A paper's algorithm to the letter, whose claim is false and whose true cost is charged.
    Repriced,
    /// A paper's method in a form whose guarantee holds.
    Sound,
    /// New here.
    Ours,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Reference => "reference",
            Role::Published => "as published",
            Role::Repriced => "as published, true cost",
            Role::Sound => "paper's, sound",
            Role::Ours => "ours",
        }
    }

    /// Whether a ledger pays for it.
    pub fn is_private(self) -> bool {
        matches!(self, Role::Repriced | Role::Sound | Role::Ours)
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
    /// The ε that the run divides in advance, where it does (an anchor): its price, and its end.
    pub budget: Option<f64>,
    /// Whether chains start at a prior draw, not at the origin.
    pub from_prior: bool,
    /// What decides the moves that its sampler proposes, where that is DP-Fast MH as published.
    pub published: Option<Published>,
}

/// DP-Fast MH to the letter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// λ, K and the ε, δ of a step.
    pub settings: FastMhSettings,
    /// The paper's bound of a row.
    pub bound: RowBound,
}

impl<'a> Method<'a> {
    const fn new(role: Role, label: &'a str, sampler: &'a str) -> Self {
        Method {
            label,
            role,
            claim: "",
            sampler,
            stretch: 1,
            budget: None,
            from_prior: false,
            published: None,
        }
    }

    /// One without privacy.
    pub const fn reference(label: &'a str, sampler: &'a str) -> Self {
        Self::new(Role::Reference, label, sampler)
    }

    /// DP-Fast MH to the letter, on the moves of random-walk Metropolis of this step.
    pub const fn published(label: &'a str, walk: &'a str, published: Published) -> Self {
        let mut method = Self::new(Role::Published, label, walk);
        method.published = Some(published);
        method
    }

    /// A paper's algorithm to the letter, at what it truly costs.
    pub const fn repriced(label: &'a str, sampler: &'a str) -> Self {
        Self::new(Role::Repriced, label, sampler)
    }

    /// A paper's method in a sound form.
    pub const fn sound(label: &'a str, sampler: &'a str) -> Self {
        Self::new(Role::Sound, label, sampler)
    }

    /// One that is new here.
    pub const fn ours(label: &'a str, sampler: &'a str) -> Self {
        Self::new(Role::Ours, label, sampler)
    }

    /// With what its paper claims for a step.
    pub const fn claiming(mut self, claim: &'a str) -> Self {
        self.claim = claim;
        self
    }

    /// With so many times the iterations.
    pub const fn stretched(mut self, stretch: u64) -> Self {
        self.stretch = stretch;
        self
    }

    /// From a draw of the prior.
    pub const fn starting_from_prior(mut self) -> Self {
        self.from_prior = true;
        self
    }

    /// With an ε to divide in advance.
    pub const fn within(mut self, epsilon: f64) -> Self {
        self.budget = Some(epsilon);
        self
    }
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
    /// ε spent by then, or all of the budget that was divided; infinite without privacy.
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
            e if e.is_infinite() => "NOT private".into(),
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
    let iterations = iterations * method.stretch;
    let (mut sampler, mut meter, mut chains) = set_up(problem, method, iterations, seed)?;
    let mut trace = Trace {
        draws: Vec::new(),
        stops: Vec::new(),
        acceptance: 0.0,
    };
    for iteration in 1..=iterations {
        match advance(&mut sampler, &mut meter, &mut chains) {
            Ok(()) => {}
            // The run is as long as its room allows; its last stop says so.
            Err(Halt::BudgetSpent(_)) => break,
            Err(other) => return Err(other.into()),
        }
        trace.draws.push(chains.thetas.row(0).to_vec());
        // A falling schedule has hundreds of kinds of events: its cost is asked for once.
        if is_stop(iteration, iterations) && method.role != Role::Repriced {
            trace.stops.push(stop(method, iteration, &meter)?);
        }
    }
    let made = trace.draws.len() as u64;
    // Also where not one step fitted: what was released before it is owed.
    if trace.stops.last().is_none_or(|s| s.iteration < made) {
        trace.stops.push(stop(method, made, &meter)?);
    }
    trace.acceptance = chains.accepted[0] as f64 / made.max(1) as f64;
    Ok(trace)
}

/// Sampler, curator and one chain at its start.
fn set_up(
    problem: &Problem<'_>,
    method: &Method<'_>,
    iterations: u64,
    seed: u64,
) -> Result<(Sampler, Meter, Chains), ReproduceError> {
    let privacy = match method.budget {
        Some(epsilon) => format!("epsilon = {epsilon:?}\ndelta = {:e}", problem.delta),
        None => "not_private = true".into(),
    };
    let start = if method.from_prior { "prior" } else { "zero" };
    let text = format!(
        "{}\n[sampler]\n{}\n[run]\niterations = {iterations}\nstart = '{start}'\n[privacy]\n{privacy}\n",
        problem.settings, method.sampler
    );
    let plan = Plan::parse(Path::new(method.label), text)?;
    let data = (problem.data)()?;
    let model = plan.model(&data)?;
    let sampler = plan.sampler(&*model, data.rows(), data.row_norm())?;
    let public_seed = [seed as u8; 32];
    let starts = plan.starts(&*model, public_seed)?;
    let chains = Chains::new(&starts[..1], public_seed);
    let published = method
        .published
        .map(|p| PublishedFastMh::new(data.as_public(), model.clone(), p.bound, p.settings, seed));
    let published = published.transpose().map_err(ReproduceError::Failed)?;
    let curator = if method.role.is_private() {
        let algorithm = plan.family()?;
        // Only full-batch steps need no inexact coins.
        let room = method
            .budget
            .unwrap_or(match algorithm.reads_listed_rows() {
                true => MINIBATCH_ROOM,
                false => ROOM,
            });
        let budget = Budget::new(room, problem.delta)?;
        let measure = plan.measure(&sampler, &*model, data.rows(), budget)?;
        let ledger = Ledger::counting(budget, measure);
        Curator::private(data, model, EngineChoice::Cpu, ledger, Some(seed))?
    } else {
        Curator::not_private(data, model, EngineChoice::Cpu, seed)?.into_curator()
    };
    Ok((sampler, Meter::new(curator, published), chains))
}

/// The anchor first, where one is wanted; then one step.
fn advance(sampler: &mut Sampler, meter: &mut Meter, chains: &mut Chains) -> Result<(), Halt> {
    if let Some(walk) = sampler.walk_mut().filter(|w| w.wants_anchor()) {
        let anchor = walk.release_anchor(meter)?;
        meter.curator.set_anchor(anchor)?;
        walk.follow(meter.curator.model().prior())?;
        walk.start_at_anchor(chains);
    }
    sampler.step(chains, meter).map(|_| ())
}

fn stop(method: &Method<'_>, iteration: u64, meter: &Meter) -> Result<Stop, ReproduceError> {
    Ok(Stop {
        iteration,
        rows: meter.read,
        // What an anchor divides in advance is owed however early the run ends.
        epsilon: match method.budget {
            Some(epsilon) if method.role == Role::Ours => epsilon,
            // A stable step may leave some of it.
            Some(epsilon) => spent(&meter.curator)?.min(epsilon),
            None => spent(&meter.curator)?,
        },
    })
}

/// ε of everything released so far; infinite without privacy. Where the ledger counts one
/// Rényi order, that of the order which is best for what was spent: a run whose budget is
/// set to it has its order chosen for it too.
pub(super) fn spent(curator: &Curator) -> Result<f64, ReproduceError> {
    let Some(ledger) = curator.ledger() else {
        return Ok(f64::INFINITY);
    };
    if !ledger.measure().is_renyi() || ledger.events().is_empty() {
        return Ok(ledger.epsilon_spent());
    }
    let sequence = Sequence::new(Neighbours::Substitution, ledger.events())?;
    let question = Question::Epsilon {
        delta: ledger.budget().conversion_delta(),
    };
    Ok(account_without_losses(&sequence, question).upper)
}

/// Whether an iteration is one of [`STOPS`] evenly spaced ones, or of a few early ones.
fn is_stop(iteration: u64, iterations: u64) -> bool {
    let every = (iterations / STOPS).max(1);
    iteration == iterations
        || iteration.is_multiple_of(every)
        || (iteration < every && iteration >= every / 16 && iteration.is_power_of_two())
}

#[cfg(test)]
#[path = "study_tests.rs"]
mod tests;
