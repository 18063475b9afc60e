//! Four chains in lockstep that share one budget, until it is spent: how Räisä 2021 runs all
//! samplers.

use std::path::Path;

use rayon::prelude::*;

use super::ReproduceError;
use super::raisa_targets::Target;
use super::study::{Role, spent};
use dpmc::config::Plan;
use dpmc::diagnostics::{mean_error, r_hat, sd};
use dpmc::engine::EngineChoice;
use dpmc::privacy::{Budget, Curator, Halt};
use dpmc::sampler::Chains;

/// Chains of a run.
pub(super) const CHAINS: usize = 4;
/// Draws of a chain that scores look at, evenly spaced.
const SCORED: usize = 1_000;

/// One method of a comparison. To add one, add an entry to the table of its figure.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub label: &'static str,
    pub role: Role,
    /// The `[sampler]` section of its run file; `CLIP` stands for the constant clip bound at
    /// which decisions take `share` of the budget.
    pub sampler: String,
    /// That share.
    pub share: f64,
    /// Iterations of a chain after which it stops although its budget is not spent.
    pub most: u64,
    /// Independent runs that are averaged.
    pub repeats: u64,
}

impl Entry {
    /// A decision under a constant clip c costs `ρ = (2c)²/8`.
    fn settings(&self, budget: Option<Budget>) -> String {
        let rho = budget.map_or(0.0, Budget::rho);
        let steps = CHAINS as f64 * self.most as f64;
        let clip = (2.0 * self.share * rho / steps).sqrt();
        self.sampler.replace("CLIP", &format!("{clip:e}"))
    }
}

/// What one run of four chains says of the posterior.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Score {
    pub iterations: f64,
    /// ε spent; infinite without privacy.
    pub epsilon: f64,
    /// Share of accepted moves.
    pub acceptance: f64,
    pub mmd: f64,
    /// Standard error of the mean of that over repeats.
    pub mmd_error: f64,
    /// Euclidean error of the posterior mean.
    pub mean_error: f64,
    /// Largest R-hat over parameters.
    pub r_hat: f64,
}

/// Means over the repeats; without privacy where there is no budget.
///
/// # Errors
/// [`ReproduceError`] of the first run that fails.
pub(super) fn average(
    target: &Target,
    entry: &Entry,
    budget: Option<Budget>,
) -> Result<Score, ReproduceError> {
    let repeats = entry.repeats;
    let scores: Vec<Score> = (1..=repeats)
        .into_par_iter()
        .map(|repeat| run(target, entry, budget, repeat))
        .collect::<Result<_, _>>()?;
    let mean = |f: fn(&Score) -> f64| scores.iter().map(f).sum::<f64>() / repeats.max(1) as f64;
    Ok(Score {
        iterations: mean(|s| s.iterations),
        epsilon: mean(|s| s.epsilon),
        acceptance: mean(|s| s.acceptance),
        mmd: mean(|s| s.mmd),
        mmd_error: sd(&scores.iter().map(|s| s.mmd).collect::<Vec<_>>()) / (repeats as f64).sqrt(),
        mean_error: mean(|s| s.mean_error),
        r_hat: mean(|s| s.r_hat),
    })
}

/// One run, every coin from `repeat`.
fn run(
    target: &Target,
    entry: &Entry,
    budget: Option<Budget>,
    repeat: u64,
) -> Result<Score, ReproduceError> {
    let privacy = match budget {
        Some(b) => format!("epsilon = {:?}\ndelta = {:e}", b.epsilon(), b.delta()),
        None => "not_private = true".into(),
    };
    let text = format!(
        "{}\n[sampler]\n{}\n[run]\nchains = {CHAINS}\niterations = {}\n[privacy]\n{privacy}\n",
        target.settings,
        entry.settings(budget),
        entry.most
    );
    let plan = Plan::parse(Path::new(entry.label), text)?;
    let data = target.data()?;
    let model = plan.model(&data)?;
    let mut sampler = plan.sampler(&*model, data.rows(), data.row_norm())?;
    let seed = [repeat as u8; 32];
    let mut chains = Chains::new(&target.starts(CHAINS, repeat), seed);
    let mut curator = match plan.ledger(&sampler, &*model, data.rows())? {
        Some(ledger) => Curator::private(data, model, EngineChoice::Cpu, ledger, Some(repeat))?,
        None => Curator::not_private(data, model, EngineChoice::Cpu, repeat)?.into_curator(),
    };
    if let Some(walk) = sampler.walk_mut().filter(|w| w.wants_anchor()) {
        let anchor = walk.release_anchor(&mut curator)?;
        curator.set_anchor(anchor)?;
        walk.follow(curator.model().prior())?;
    }
    let mut draws: Vec<Vec<Vec<f64>>> = vec![Vec::new(); CHAINS];
    let mut made = 0;
    while made < entry.most {
        match sampler.step(&mut chains, &mut curator) {
            Ok(_) => made += 1,
            Err(Halt::BudgetSpent(_)) => break,
            Err(other) => return Err(other.into()),
        }
        for (chain, theta) in draws.iter_mut().zip(chains.thetas.rows()) {
            chain.push(theta.to_vec());
        }
    }
    let accepted = chains.accepted.iter().sum::<u64>() as f64;
    Ok(Score {
        iterations: made as f64,
        epsilon: spent(&curator)?,
        acceptance: accepted / (made.max(1) * CHAINS as u64) as f64,
        ..score(target, &draws)?
    })
}

/// Scores of the second half of all chains.
fn score(target: &Target, draws: &[Vec<Vec<f64>>]) -> Result<Score, ReproduceError> {
    let halves: Vec<Vec<Vec<f64>>> = draws.iter().map(|c| spaced(&c[c.len() / 2..])).collect();
    let together: Vec<Vec<f64>> = halves.concat();
    if together.len() < 2 {
        let nothing = f64::NAN;
        return Ok(Score {
            mmd: nothing,
            mean_error: nothing,
            r_hat: nothing,
            ..Score::default()
        });
    }
    let of_parameter = |j: usize| -> f64 {
        let values: Vec<Vec<f64>> = halves
            .iter()
            .map(|chain| chain.iter().map(|d| d[j]).collect())
            .collect();
        r_hat(&values)
    };
    Ok(Score {
        mmd: target.mmd(&together)?,
        mean_error: mean_error(&together, &target.exact_mean)?,
        r_hat: (0..target.exact_mean.len())
            .map(of_parameter)
            .fold(f64::NAN, f64::max),
        ..Score::default()
    })
}

fn spaced(draws: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let count = draws.len().min(SCORED);
    (0..count)
        .map(|i| draws[i * draws.len() / count].clone())
        .collect()
}
