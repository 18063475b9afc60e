//! Privacy efficiency: ρ spent per effective draw (bulk ESS of the worst parameter), every
//! sampler tuned to its best over a grid of steps, on six posteriors.
//!
//!     cargo run --release --example efficiency [mixture|mnist|adult|linear|poisson|network [anchored|walks]]
//!
//! The random walks are given what no private run could have: the exact posterior covariance
//! as preconditioner and a start inside the posterior, for free; their clip is five times the
//! root mean square of a row's ratio, which clips (and biases) a little. The anchored sampler
//! pays for its own start and anchor, and has no tuning. ρ of a step is that of its mean
//! square length; all costs but DP-Fast MH's noisy minibatches, which have no ρ and are not
//! reached at these settings.
//! Samplers on gradients are in `gradients.rs`.

mod anchored;
mod gradients;
mod network;

use std::path::Path;

use dpmc::config::Plan;
use dpmc::diagnostics::{ess_bulk, mean};
use dpmc::engine::EngineChoice;
use dpmc::posterior_run::{PosteriorRun, Status};
use dpmc::privacy::Curator;
use dpmc::sampler::Chains;

use anchored::Setting;

type Failure = Box<dyn std::error::Error>;
type Draws = Vec<Vec<f64>>;

/// A posterior, as the first half of a run file.
struct Problem {
    name: &'static str,
    settings: String,
    /// Iterations of a random walk: about a hundred effective draws.
    iterations: u64,
    /// Settings of anchored runs.
    anchored: Vec<Setting>,
    /// Keys of `[run]` that say where these start.
    start: &'static str,
}

/// Of the made-up regressions.
const SLOPES: [f64; 5] = [0.8, -0.5, 0.3, 0.0, 1.0];

/// Steps tried, in units of 2.38/√d.
const STEPS: [f64; 5] = [0.15, 0.3, 0.6, 1.0, 1.7];

fn main() -> Result<(), Failure> {
    let wanted = std::env::args().nth(1);
    let part = std::env::args().nth(2).unwrap_or_default();
    println!(
        "problem  sampler                        best step  draws  rows a step  rho per effective draw"
    );
    for problem in problems()? {
        if wanted.as_deref().is_none_or(|w| w == problem.name) {
            if part != "anchored" {
                study(&problem, part != "walks")?;
            }
            if part != "walks" {
                anchored::study(&problem)?;
            }
        }
    }
    Ok(())
}

fn problems() -> Result<Vec<Problem>, Failure> {
    let upto = |file: &str, section: &str| -> Result<String, Failure> {
        let text = std::fs::read_to_string(file)?;
        let end = text.find(section).ok_or("the example has changed")?;
        Ok(text[..end].into())
    };
    Ok(vec![
        Problem {
            name: "mixture",
            settings: "[data]\nfile = \"made up\"\n[[data.features]]\ncolumn = \"x\"\nclamp = [-3, 3]\n[model]\nkind = \"mixture\"\ntempering = 0.002\nbox = 3.0\n".into(),
            iterations: 20_000,
            anchored: [0.5, 1.0]
                .map(|step| Setting {
                    sampler: format!("algorithm = \"anchored-barker\"\nstep = {step:?}"),
                    epsilon: 0.3,
                    iterations: 1_000_000,
                })
                .into(),
            start: "",
        },
        Problem {
            name: "mnist",
            settings: upto("examples/mnist79.toml", "[model]")?
                + "[model]\nkind = \"logistic\"\nprior = { kind = \"normal\", sd = 1.0 }\n",
            iterations: 40_000,
            anchored: mnist(),
            start: "",
        },
        Problem {
            name: "adult",
            settings: upto("examples/adult_anchored.toml", "[sampler]")?,
            iterations: 15_000,
            anchored: vec![Setting {
                sampler: "algorithm = \"anchored-barker\"".into(),
                epsilon: 6.0,
                iterations: 15_000,
            }],
            start: "",
        },
        regression(
            ("linear", 3.0),
            "clamp = [-3, 3]",
            "kind = \"linear\"\nvariance = 0.36",
        ),
        regression(("poisson", 6.0), "count = 16", "kind = \"poisson\""),
        network::problem(),
    ])
}

/// All rows, since at such an ε minibatches cannot be paid for from δ; most of the budget for
/// the anchor.
fn mnist() -> Vec<Setting> {
    [(0.9, 5e-4), (0.95, 5e-4), (0.95, 2.5e-4)]
        .map(|(correlation, share)| Setting {
            sampler: format!(
                "estimator = \"all\"\nacceptance = \"barker\"\nanchored = true\nanchor = {{ start = 0.3, gradient = 0.3, curvature = 0.38 }}\nproposal = {{ autoregressive = {{ correlation = {correlation} }} }}\nclip = {{ share = {share:?} }}"
            ),
            epsilon: 95.0,
            iterations: 100_000,
        })
        .into()
}

/// A regression on made-up rows of five features; ε of its anchored run.
fn regression((name, epsilon): (&'static str, f64), label: &str, model: &str) -> Problem {
    Problem {
        name,
        settings: format!(
            "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n{label}\n[[data.features]]\ncolumns = [\"a\", \"b\", \"c\", \"d\", \"e\"]\nclamp = [-3, 3]\n[model]\n{model}\nprior = {{ kind = \"normal\", sd = 3.0 }}\n"
        ),
        iterations: 15_000,
        anchored: vec![Setting {
            sampler: "algorithm = \"anchored-barker\"".into(),
            epsilon,
            iterations: 15_000,
        }],
        start: "",
    }
}

fn plan(problem: &Problem, rest: &str) -> Result<Plan, Failure> {
    let text = format!("{}{rest}", problem.settings);
    Ok(Plan::parse(Path::new("examples/efficiency.toml"), text)?)
}

fn data(plan: &Plan, problem: &Problem) -> Result<dpmc::data::Dataset, Failure> {
    Ok(match problem.name {
        "mixture" => dpmc::synthetic::mixture(50_000, Some(3.0), 1)?,
        "linear" => dpmc::synthetic::linear(30_000, &SLOPES, 0.6, 3.0, 1)?,
        "poisson" => dpmc::synthetic::poisson(30_000, &SLOPES, 16, 1)?,
        "network" => network::rows()?,
        _ => plan.load_data()?,
    })
}

/// Random walks, and samplers on gradients where they are wanted.
fn study(problem: &Problem, gradients: bool) -> Result<(), Failure> {
    let reference = reference(problem)?;
    if gradients && !["linear", "poisson", "network"].contains(&problem.name) {
        gradients::study(problem, &reference)?;
    }
    let mut walks = vec![
        ("barker", "algorithm = \"barker\""),
        (
            "poisson-barker, lambda = 4 Lambda",
            "algorithm = \"poisson-barker\"\nlambda_ratio = 4.0",
        ),
        ("dp-barker, C = 2", "algorithm = \"dp-barker\""),
        ("dp-penalty", "PENALTY"),
        ("dp-fast-mh, sound, lambda = 40 L", "FAST"),
        ("dp-fast-mh-full, sound", "algorithm = \"dp-fast-mh-full\""),
    ];
    if problem.name == "network" {
        walks.truncate(1);
    }
    for (label, sampler) in walks {
        let mut best: Option<(f64, f64, f64, f64)> = None;
        for step in STEPS {
            let row = walk(problem, sampler, step, &reference)?;
            if best.is_none_or(|b| row.3 < b.3) {
                best = Some(row);
            }
        }
        if let Some((step, ess, rows, cost)) = best.filter(|b| b.3.is_finite()) {
            println!(
                "{:8} {label:33} {step:6.2} {ess:6.0} {rows:12.0} {cost:12.3e}",
                problem.name
            );
        } else {
            println!(
                "{:8} {label:33} under 20 effective draws at every step",
                problem.name
            );
        }
    }
    Ok(())
}

/// A long chain on the posterior, non-private: for starts and covariances.
fn reference(problem: &Problem) -> Result<Draws, Failure> {
    let sampler = match problem.name {
        "mixture" => {
            "[sampler]\nalgorithm = \"tuna-mh\"\nlambda = 300\nstep = 0.3\n[run]\niterations = 200000\n"
        }
        "network" => network::REFERENCE,
        // In 50 dimensions unclipped remainders have wide bounds: minibatches of many times N.
        "mnist" => {
            "[sampler]\nestimator = \"all\"\nacceptance = \"barker\"\nanchored = true\nproposal = { autoregressive = { correlation = 0.8 } }\nanchor = { clip = 8.0, radius = 1000.0 }\n[run]\niterations = 40000\n"
        }
        _ => {
            "[sampler]\nalgorithm = \"anchored-barker\"\nanchor = { clip = 8.0, radius = 1000.0 }\n[run]\niterations = 20000\n"
        }
    };
    let plan = plan(
        problem,
        &format!(
            "{sampler}{}\n[privacy]\nnot_private = true\n",
            problem.start
        ),
    )?;
    let data = data(&plan, problem)?;
    let model = plan.model(&data)?;
    let sampler = plan.sampler(&*model, data.rows(), data.row_norm())?;
    let chains = Chains::new(&plan.starts(&*model, [1; 32])?[..1], [1; 32]);
    let curator = Curator::not_private(data, model, EngineChoice::Cpu, 1)?.into_curator();
    let length = plan.length()?;
    let run = PosteriorRun::new(curator, sampler, chains, length, String::new(), vec![]);
    Ok(finish(run)?.0)
}

/// One random walk: (step, effective draws, rows a step, ρ per effective draw). `scale` is
/// in units of 2.38/√d.
fn walk(
    problem: &Problem,
    sampler: &str,
    scale: f64,
    reference: &Draws,
) -> Result<(f64, f64, f64, f64), Failure> {
    let d = reference.len();
    let step = scale * 2.38 / (d as f64).sqrt();
    // The penalty's noise σ = 2cτ is one nat on a typical move, with c five times the root
    // mean square: τ = 1/(2c).
    let probe = plan(
        problem,
        "[sampler]\nalgorithm = \"mh\"\n[privacy]\nnot_private = true\n",
    )?;
    let rows = data(&probe, problem)?.rows();
    let typical = 5.0 * (probe.config.model.tempering / rows as f64).sqrt() * scale * 2.38;
    let sampler = match sampler {
        // λ so large against Λ that its minibatches need no noise at ε = 0.05 a step; where
        // that is more than K = N/6 it reads all rows.
        "FAST" => format!(
            "algorithm = \"dp-fast-mh\"\nlambda = {:e}",
            (41.0 * rows as f64 * typical).min(rows as f64 / 6.1)
        ),
        "PENALTY" => format!("algorithm = \"dp-penalty\"\ntau = {:e}", 0.5 / typical),
        other => other.to_string(),
    };
    let text = format!(
        "[sampler]\n{sampler}\nclip = {{ rms = 5.0 }}\nstep = {step}\ncovariance = {:?}\n[run]\niterations = {}\n[privacy]\nnot_private = true\n",
        covariance(reference),
        problem.iterations
    );
    let plan = plan(problem, &text)?;
    let data = data(&plan, problem)?;
    let model = plan.model(&data)?;
    let mut sampler = plan.sampler(&*model, rows, data.row_norm())?;
    let start: Vec<f64> = reference.iter().map(|c| c[c.len() - 1]).collect();
    let mut chains = Chains::new(&[start], [3; 32]);
    let mut curator = Curator::not_private(data, model, EngineChoice::Cpu, 5)?.into_curator();
    let mut draws: Draws = vec![Vec::new(); d];
    for _ in 0..problem.iterations {
        sampler.step(&mut chains, &mut curator)?;
        for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
            column.push(*v);
        }
    }
    let walk = sampler.walk().ok_or("no walk")?;
    let clip = walk.typical_clip(d).ok_or("no clip")?;
    let (estimator, acceptance) = walk.rule(clip);
    let cost = Curator::cost(rows, clip, estimator, acceptance)?
        .and_then(|(key, _)| key.rho())
        .unwrap_or(f64::INFINITY);
    let read = match estimator {
        dpmc::privacy::Estimator::Poisson { lambda } => {
            lambda.value(rows as f64 * clip) + rows as f64 * clip
        }
        _ => rows as f64,
    };
    // A chain that hardly moves has no effective draws that could be counted.
    let ess = worst(&draws);
    let ess = if ess >= 20.0 && ess.is_finite() {
        ess
    } else {
        0.0
    };
    Ok((step, ess, read, cost * problem.iterations as f64 / ess))
}

fn finish(mut run: PosteriorRun) -> Result<(Draws, PosteriorRun), Failure> {
    while *run.step() == Status::Running {}
    if let Status::Failed(what) = run.status() {
        return Err(what.clone().into());
    }
    let (draws, _) = run.take_draws();
    let d = draws.first().map_or(0, |draw| draw.theta.len());
    let columns = (0..d).map(|j| draws.iter().map(|draw| draw.theta[j]).collect());
    Ok((columns.collect(), run))
}

fn worst(draws: &Draws) -> f64 {
    draws
        .iter()
        .map(|c| ess_bulk(std::slice::from_ref(c)))
        .fold(f64::INFINITY, f64::min)
}

fn covariance(draws: &Draws) -> Vec<Vec<f64>> {
    let means: Vec<f64> = draws.iter().map(|c| mean(c)).collect();
    let n = draws[0].len() as f64;
    let entry = |i: usize, j: usize| -> f64 {
        let pairs = draws[i].iter().zip(&draws[j]);
        pairs
            .map(|(a, b)| (a - means[i]) * (b - means[j]))
            .sum::<f64>()
            / n
    };
    (0..draws.len())
        .map(|i| {
            (0..draws.len())
                .map(|j| entry(i.max(j), i.min(j)))
                .collect()
        })
        .collect()
}
