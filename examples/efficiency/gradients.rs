//! The same for samplers on gradients, each at the best of a small grid of settings. Those
//! that decide keep their target; for the others the bias is printed beside the price: the
//! largest error of a mean, in reference standard deviations, and of a standard deviation,
//! relative (both with the Monte-Carlo error of the effective draws there are).
//!
//! Hamiltonian samplers get the exact covariance as mass, the others the exact standard
//! deviations as scale. ρ of a Poisson-subsampled or fixed-batch run, which has none, is the
//! one whose ε at δ = 1e-6 is the run's.

use dpmc::diagnostics::{mean, sd};
use dpmc::engine::EngineChoice;
use dpmc::privacy::accountant::{Question, Sequence, account_within};
use dpmc::privacy::{Curator, EventKey, Neighbours, rho_of_budget};
use dpmc::sampler::{Chains, Sampler};

use super::{Draws, Failure, Problem, covariance, data, plan, worst};

/// δ at which ρ stands for an ε.
const DELTA: f64 = 1e-6;
/// Fewer effective draws tell nothing.
const FEWEST: f64 = 20.0;

/// Nor do settings whose worst mean or standard deviation is off by so much.
const FARTHEST: f64 = 0.5;

/// One sampler's grid: a label, run-file lines a setting, iterations.
struct Grid {
    label: &'static str,
    settings: Vec<String>,
    iterations: u64,
}

/// What came of one setting.
struct Row {
    settings: String,
    draws: f64,
    rho_per_draw: f64,
    /// Worst mean and worst standard deviation.
    bias: (f64, f64),
}

/// Prints the best setting of every sampler that takes the problem.
pub fn study(problem: &Problem, reference: &Draws) -> Result<(), Failure> {
    for grid in grids(problem, reference)? {
        let mut best: Option<Row> = None;
        for settings in &grid.settings {
            let row = run(problem, settings, grid.iterations, reference)?;
            let told = row.draws >= FEWEST && row.bias.0 < FARTHEST && row.bias.1.abs() < FARTHEST;
            if told
                && best
                    .as_ref()
                    .is_none_or(|b| row.rho_per_draw < b.rho_per_draw)
            {
                best = Some(row);
            }
        }
        let (name, label) = (problem.name, grid.label);
        match best {
            Some(row) => println!(
                "{name:8} {label:33} {:6.0} {:12.3e}   bias {:.2} sd, {:+.2}   ({})",
                row.draws,
                row.rho_per_draw,
                row.bias.0,
                row.bias.1,
                row.settings.replace('\n', "; ")
            ),
            None => println!(
                "{name:8} {label:33} under {FEWEST} effective draws, or off by {FARTHEST} sd, at every setting"
            ),
        }
    }
    if problem.name != "mixture" {
        variational(problem, reference)?;
    }
    Ok(())
}

fn grids(problem: &Problem, reference: &Draws) -> Result<Vec<Grid>, Failure> {
    let rows = rows(problem)? as f64;
    let d = reference.len() as f64;
    let sds = sds(reference);
    let rms = (tempering(problem)? / rows).sqrt();
    let mut trajectories = [Vec::new(), Vec::new()];
    for leapfrog in [1u32, 3] {
        for (time, share) in [(0.4, 0.3), (0.4, 0.1), (0.9, 0.1)] {
            // Noise that changes the energy by about so many nats over a trajectory: its sd on
            // a whitened gradient is that over η√(L + 1)√d, for momenta of length √d; the sum's
            // is this over the largest sd. A wrong gradient costs no bias, so clips are a share
            // of the true bound.
            for nats in [2.0, 6.0] {
                let step = time / f64::from(leapfrog);
                let noise = nats / (step * (f64::from(leapfrog + 1) * d).sqrt());
                let largest = sds.iter().copied().fold(0.0, f64::max);
                let tau = noise / largest / (2.0 * share * gradient_bound(problem)?);
                let clip = 5.0 * rms * time * d.sqrt();
                let common = format!(
                    "leapfrog_steps = {leapfrog}\nstep = {step:.4}\nclip = {{ rms = 5.0 }}\ngradient = {{ share = {share}, tau = {tau:.4} }}"
                );
                trajectories[0].push(format!(
                    "algorithm = \"dp-hmc\"\ntau = {:.4}\n{common}",
                    0.5 / clip
                ));
                trajectories[1].push(format!("algorithm = \"barker-hmc\"\n{common}"));
            }
        }
    }
    let [penalty, barker] = trajectories;
    let mut grids = vec![
        Grid {
            label: "dp-hmc",
            settings: penalty,
            iterations: 2000,
        },
        Grid {
            label: "barker-hmc",
            settings: barker,
            iterations: 2000,
        },
    ];
    if problem.name == "mixture" {
        let steps = [0.15, 0.3, 0.6, 1.0];
        let walk = |s: f64| {
            format!(
                "algorithm = \"dp-barker-subsampled\"\nbatch = 1000\nstep = {:.4}",
                s * 2.38 / d.sqrt()
            )
        };
        grids.push(Grid {
            label: "dp-barker-subsampled, b = 1000",
            settings: steps.into_iter().map(walk).collect(),
            iterations: problem.iterations,
        });
        return Ok(grids);
    }
    let scale = format!("scale = {sds:?}");
    let dynamics = |name: &str, steps: &[f64], extra: &str| -> Vec<String> {
        let line = |a: &f64| format!("algorithm = \"{name}\"\nstep = {a}\n{extra}{scale}");
        steps.iter().map(line).collect()
    };
    for (label, settings, iterations) in [
        (
            "dp-sgld",
            dynamics("dp-sgld", &[0.03, 0.1, 0.3], ""),
            10_000,
        ),
        (
            "dp-sgld, Poisson q = 0.1",
            dynamics(
                "dp-sgld",
                &[0.003, 0.01, 0.03, 0.1],
                "gradient = { rate = 0.1 }\n",
            ),
            20_000,
        ),
        (
            "dp-sghmc",
            dynamics("dp-sghmc", &[0.01, 0.03, 0.1], "friction = 0.3\n"),
            10_000,
        ),
        (
            "dp-sgnht",
            dynamics("dp-sgnht", &[0.1, 0.2, 0.4], "diffusion = 1.0\n"),
            10_000,
        ),
    ] {
        grids.push(Grid {
            label,
            settings,
            iterations,
        });
    }
    Ok(grids)
}

/// One chain from inside the posterior: draws, and the price of each.
fn run(
    problem: &Problem,
    settings: &str,
    iterations: u64,
    reference: &Draws,
) -> Result<Row, Failure> {
    // Stochastic-gradient samplers have their scale already.
    let shape = match settings.contains("scale = ") {
        true => String::new(),
        false => format!("\ncovariance = {:?}", covariance(reference)),
    };
    let text = format!(
        "[sampler]\n{settings}{shape}\n[run]\niterations = {iterations}\n[privacy]\nnot_private = true\n"
    );
    let plan = plan(problem, &text)?;
    let data = data(&plan, problem)?;
    let rows = data.rows();
    let model = plan.model(&data)?;
    let d = model.dim();
    let mut sampler = plan.sampler(&*model, rows, data.row_norm())?;
    let events = match &sampler {
        Sampler::Walk(walk) => {
            let clip = walk.typical_clip(d).ok_or("no clip")?;
            let (estimator, acceptance) = walk.rule(clip);
            let event = Curator::cost(rows, clip, estimator, acceptance)?;
            event.map(|(key, _)| (key, 1.0)).into_iter().collect()
        }
        other => other.step_cost(rows, &*model, (iterations, 1))?.events,
    };
    let start: Vec<f64> = reference.iter().map(|c| c[c.len() - 1]).collect();
    let mut chains = Chains::new(&[start], [3; 32]);
    let mut curator = Curator::not_private(data, model, EngineChoice::Cpu, 5)?.into_curator();
    let mut draws: Draws = vec![Vec::new(); d];
    for _ in 0..iterations {
        sampler.step(&mut chains, &mut curator)?;
        for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
            column.push(*v);
        }
    }
    let effective = worst(&draws);
    Ok(Row {
        settings: settings.split("\nscale").next().unwrap_or_default().into(),
        draws: if effective.is_finite() {
            effective
        } else {
            0.0
        },
        rho_per_draw: rho(&events, iterations)? / effective,
        bias: bias(&draws, reference),
    })
}

/// ρ of so many steps, or the one whose ε is theirs.
fn rho(events: &[(EventKey, f64)], steps: u64) -> Result<f64, Failure> {
    let each: Option<f64> = events.iter().map(|(key, n)| Some(key.rho()? * n)).sum();
    if let Some(each) = each {
        return Ok(each * steps as f64);
    }
    let counts = events
        .iter()
        .map(|(key, n)| (key.event(), (n * steps as f64).round() as u64));
    let sequence = Sequence::new(Neighbours::Substitution, counts.collect())?;
    let epsilon = account_within(&sequence, Question::Epsilon { delta: DELTA }, 0.1).upper;
    Ok(rho_of_budget(epsilon, DELTA))
}

fn bias(draws: &Draws, reference: &Draws) -> (f64, f64) {
    let (mut of_means, mut of_sds) = (0.0f64, 0.0f64);
    for (column, exact) in draws.iter().zip(reference) {
        let (m, s) = (mean(exact), sd(exact));
        of_means = of_means.max((mean(column) - m).abs() / s);
        let relative = sd(column) / s - 1.0;
        if relative.abs() > of_sds.abs() {
            of_sds = relative;
        }
    }
    (of_means, of_sds)
}

/// Draws of a fit are free and independent: its price is that of the whole run.
fn variational(problem: &Problem, reference: &Draws) -> Result<(), Failure> {
    for epsilon in [0.2, 1.0, 6.0] {
        let text = format!(
            "[sampler]\nalgorithm = \"dpvi\"\n[run]\niterations = 4000\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
        );
        let plan = plan(problem, &text)?;
        let data = data(&plan, problem)?;
        let model = plan.model(&data)?;
        let sampler = plan.sampler(&*model, data.rows(), data.row_norm())?;
        let chains = Chains::new(&plan.starts(&*model, [1; 32])?, [1; 32]);
        let budget = plan.budget()?.ok_or("no budget")?;
        let ledger = dpmc::privacy::Ledger::in_memory(budget);
        let curator = Curator::private(data, model, EngineChoice::Cpu, ledger, Some(1))?;
        let length = plan.length()?;
        let run = dpmc::posterior_run::PosteriorRun::new(
            curator,
            sampler,
            chains,
            length,
            String::new(),
            vec![],
        );
        let (draws, _) = super::finish(run)?;
        let (means, sds) = bias(&draws, reference);
        println!(
            "{:8} {:33} rho {:.2e} in all, draws free   bias {means:.2} sd, {sds:+.2}   (epsilon {epsilon})",
            problem.name,
            "dpvi",
            budget.rho()
        );
    }
    Ok(())
}

fn sds(reference: &Draws) -> Vec<f64> {
    reference.iter().map(|c| sd(c)).collect()
}

fn rows(problem: &Problem) -> Result<usize, Failure> {
    let probe = probe(problem)?;
    Ok(data(&probe, problem)?.rows())
}

fn tempering(problem: &Problem) -> Result<f64, Failure> {
    Ok(probe(problem)?.config.model.tempering)
}

/// True bound of a row's gradient.
fn gradient_bound(problem: &Problem) -> Result<f64, Failure> {
    let probe = probe(problem)?;
    let data = data(&probe, problem)?;
    Ok(probe.model(&data)?.ratio_rate().ok_or("no bound")?)
}

fn probe(problem: &Problem) -> Result<dpmc::config::Plan, Failure> {
    plan(
        problem,
        "[sampler]\nalgorithm = \"mh\"\n[privacy]\nnot_private = true\n",
    )
}
