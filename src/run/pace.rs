//! How often a run is saved: by counts that follow from public settings, never by the clock, so
//! that part files tell nothing of how long steps took.

use crate::data::Population;
use crate::model::Model;
use crate::posterior_run::RunLength;
use crate::privacy::{Batch, Estimator};
use crate::sampler::{RandomWalk, Sampler};

/// Cells of the table that are read between two part files: a second or two of one core.
const CELLS: f64 = 1e9;
/// A step of a chain takes its time even where it reads next to no cell.
const LEAST_CELLS: f64 = 3000.0;
/// However little of that is true, a run has at most so many part files, beside those that end
/// because too many draws wait in memory.
const MOST_PARTS: u64 = 1024;

/// Iterations of all chains between two part files.
pub fn iterations_a_part(
    sampler: &Sampler,
    model: &dyn Model,
    population: Population,
    chains: usize,
    length: RunLength,
) -> u64 {
    let rows = rows_a_step(sampler, model.dim(), population);
    let cells = (rows * model.features() as f64).max(LEAST_CELLS) * chains.max(1) as f64;
    let total = length.iterations.saturating_add(length.warmup);
    // A quotient under one becomes 0 here, and 1 below.
    ((CELLS / cells) as u64).max(total / MOST_PARTS).max(1)
}

/// Rows that a step of one chain reads, as expected before the first one.
fn rows_a_step(sampler: &Sampler, d: usize, population: Population) -> f64 {
    let all = population.rows as f64;
    match sampler {
        // Free draws read nothing, nor do those of a fit.
        Sampler::Walk(walk) if !walk.decides() => 0.0,
        Sampler::Variational(_) => 0.0,
        Sampler::Walk(walk) => match walk.typical_clip(d) {
            Some(_) => rows_of_walk(walk, d, population),
            None => all,
        },
        Sampler::Hamiltonian(s) => all * (s.leapfrog_steps() as f64 + 2.0),
        Sampler::StochasticGradient(s) => match s.noise_of_step(1).batch {
            Batch::Poisson { rate } => all * rate,
            Batch::All => all,
        },
        Sampler::Optimiser(s) => match s.noise().batch {
            Batch::Poisson { rate } => all * rate,
            Batch::All => all,
        },
        Sampler::PosteriorDraws(s) => all * s.request().steps as f64,
    }
}

/// The same of a random walk whose clip bounds are known.
pub fn rows_of_walk(walk: &RandomWalk, d: usize, population: Population) -> f64 {
    let clips = walk.typical_clips(d);
    let read = clips.iter().map(|&clip| {
        let big = population.total * clip;
        match walk.rule(clip).0 {
            Estimator::Poisson { lambda } => lambda.value(big) + big,
            Estimator::FixedBatch { batch } => batch as f64,
            _ => population.rows as f64,
        }
    });
    read.sum::<f64>() / clips.len() as f64
}
