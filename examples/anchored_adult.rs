//! How good an anchored run is, against what it claims to draw from: on Adult,
//! `examples/adult_anchored.toml`, over many anchors.
//!
//!     cargo run --release --example anchored_adult [ANCHORS]
//!
//! Prints, over the anchors (200 by default): effective draws and ε; the chain's means and
//! sds against its own target, the posterior times the anchor's tilt on the ellipsoid (by
//! reweighting draws of an exact, non-private chain); how often noise-aware 90 % intervals
//! cover the exact posterior mean; steps a second on this core.

use std::path::Path;
use std::time::Instant;

use dpmc::config::Plan;
use dpmc::diagnostics::{ess_bulk, mean, noise_aware, sd};
use dpmc::engine::EngineChoice;
use dpmc::model::{Anchor, AnchorRelease, Metric};
use dpmc::posterior_run::{PosteriorRun, Status};
use dpmc::privacy::{AnchorNoise, Curator, Ledger, Releases};
use dpmc::sampler::Chains;

type Failure = Box<dyn std::error::Error>;

/// One chain's draws, `draws[parameter][iteration]`.
type Draws = Vec<Vec<f64>>;

fn main() -> Result<(), Failure> {
    let anchors: u64 = std::env::args().nth(1).map_or(Ok(200), |a| a.parse())?;
    let text = std::fs::read_to_string("examples/adult_anchored.toml")?;
    let reference = reference(&text)?;
    let d = reference.len();
    let exact: Vec<(f64, f64)> = reference.iter().map(|c| (mean(c), sd(c))).collect();
    let plan = plan(&text)?;
    let (mut covered, mut total) = (vec![0u64; d], 0u64);
    let (mut worst_mean, mut worst_sd) = (Vec::new(), Vec::new());
    let (mut ess, mut shift, mut rates, mut spent) = (Vec::new(), Vec::new(), Vec::new(), 0.0f64);
    for seed in 0..anchors {
        let (draws, anchor, rate, epsilon) = private_run(&plan, seed)?;
        rates.push(rate);
        spent = spent.max(epsilon);
        let chains: Vec<Vec<Vec<f64>>> = draws.iter().map(|c| vec![c.clone()]).collect();
        let aware = noise_aware(&chains, &anchor, true).ok_or("the anchor does not fit")?;
        total += 1;
        for (j, a) in aware.iter().enumerate() {
            let inside = (a.mean_interval[0]..=a.mean_interval[1]).contains(&exact[j].0);
            covered[j] += u64::from(inside);
            shift.push(((mean(&draws[j]) - exact[j].0) / exact[j].1).powi(2));
        }
        ess.push(
            chains
                .iter()
                .map(|c| ess_bulk(c))
                .fold(f64::INFINITY, f64::min),
        );
        if seed < 20 {
            let target = tilted(&plan, &reference, &anchor)?;
            let gaps = draws.iter().zip(&target);
            let gap = |f: fn(&[f64], (f64, f64)) -> f64| -> f64 {
                gaps.clone().map(|(c, t)| f(c, *t)).fold(0.0, f64::max)
            };
            worst_mean.push(gap(|c, t| ((mean(c) - t.0) / t.1).abs()));
            worst_sd.push(gap(|c, t| (sd(c) / t.1 - 1.0).abs()));
        }
    }
    let all: u64 = covered.iter().sum();
    println!("{anchors} anchors, epsilon spent at most {spent:.3}");
    println!("effective draws (worst parameter): {}", spread(&mut ess));
    println!(
        "worst of 12 means against the chain's target, sds: {}",
        spread(&mut worst_mean)
    );
    println!(
        "worst of 12 sds against it, relative: {}",
        spread(&mut worst_sd)
    );
    println!(
        "released mean against the exact posterior mean, root mean square: {:.3} posterior sds",
        mean(&shift).sqrt()
    );
    println!(
        "90 % intervals cover the exact mean: {:.1} % of {} (by parameter {:.0} to {:.0} %)",
        100.0 * all as f64 / (total * d as u64) as f64,
        total * d as u64,
        100.0 * *covered.iter().min().unwrap_or(&0) as f64 / total as f64,
        100.0 * *covered.iter().max().unwrap_or(&0) as f64 / total as f64,
    );
    println!("steps a second after the anchor: {}", spread(&mut rates));
    Ok(())
}

fn spread(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
    format!(
        "median {:.4}, from {:.4} to {:.4}",
        at(0.5),
        at(0.0),
        at(1.0)
    )
}

fn plan(text: &str) -> Result<Plan, Failure> {
    Ok(Plan::parse(
        Path::new("examples/adult_anchored.toml"),
        text.into(),
    )?)
}

/// A long chain on the exact posterior: exact anchor, nothing clipped.
fn reference(text: &str) -> Result<Draws, Failure> {
    let text = text
        .replace("epsilon = 6.0\ndelta = 1e-6", "not_private = true")
        .replace("iterations = 15000", "iterations = 150000")
        .replace(
            "algorithm = \"anchored-barker\"",
            "algorithm = \"anchored-barker\"\nclip = { share = 1.0 }\nlambda_ratio = 1.0\nanchor = { clip = 100.0, radius = 1000.0 }",
        );
    Ok(run_to_its_end(&plan(&text)?, 0)?.0)
}

/// A private run with its anchor, steps a second and ε spent.
fn private_run(plan: &Plan, seed: u64) -> Result<(Draws, Anchor, f64, f64), Failure> {
    let (draws, (run, rate)) = run_to_its_end(plan, seed)?;
    let Some(AnchorRelease::Expansion(anchor)) = run.state(0).anchor else {
        return Err("no anchor was released".into());
    };
    let epsilon = run.curator().ledger().map_or(0.0, Ledger::epsilon_spent);
    Ok((draws, anchor, rate, epsilon))
}

/// The plan's run from its start to its end, private where the plan is, with fixed seeds.
fn run_to_its_end(plan: &Plan, seed: u64) -> Result<(Draws, (PosteriorRun, f64)), Failure> {
    let data = plan.load_data()?;
    let model = plan.model(&data)?;
    let sampler = plan.sampler(&*model, data.rows(), data.row_norm())?;
    let public = [seed as u8 + 1; 32];
    let chains = Chains::new(&plan.starts(&*model, public)?[..1], public);
    let engine = EngineChoice::Cpu;
    let curator = match plan.ledger(&sampler, &*model, data.rows())? {
        Some(ledger) => Curator::private(data, model, engine, ledger, Some(seed + 1))?,
        None => Curator::not_private(data, model, engine, seed + 1)?.into_curator(),
    };
    let length = plan.length()?;
    let run = PosteriorRun::new(curator, sampler, chains, length, String::new(), vec![]);
    finish(run)
}

fn finish(mut run: PosteriorRun) -> Result<(Draws, (PosteriorRun, f64)), Failure> {
    run.step();
    let start = Instant::now();
    while *run.step() == Status::Running {}
    let seconds = start.elapsed().as_secs_f64();
    if let Status::Failed(what) = run.status() {
        return Err(what.clone().into());
    }
    let (draws, _) = run.take_draws();
    let d = draws.first().map_or(0, |draw| draw.theta.len());
    let columns = (0..d)
        .map(|j| draws.iter().map(|draw| draw.theta[j]).collect())
        .collect();
    let rate = run.progress().0 as f64 / seconds;
    Ok((columns, (run, rate)))
}

/// Mean and sd of each parameter under the posterior times the tilt, on the ellipsoid.
fn tilted(plan: &Plan, reference: &Draws, anchor: &Anchor) -> Result<Vec<(f64, f64)>, Failure> {
    let data = plan.load_data()?;
    let norm = data.row_norm();
    let model = plan.model(&data)?;
    let mut open = Curator::not_private(data, model, EngineChoice::Cpu, 1)?;
    // The same expansion without noise, and with a row bound that clips nothing.
    let factor = anchor.metric.factor.clone();
    let row_bound = norm * factor.inverse_norm();
    let expansion = open.anchor(
        &anchor.at,
        &Metric { factor, row_bound },
        AnchorNoise::expansion(0.0, 0.0),
    )?;
    let exact = Anchor {
        gradient: expansion.gradient,
        curvature: expansion.curvature,
        ..anchor.clone()
    };
    let n = reference[0].len();
    let mut logs = Vec::with_capacity(n);
    for i in 0..n {
        let theta: Vec<f64> = reference.iter().map(|c| c[i]).collect();
        logs.push(if anchor.contains(&theta) {
            anchor.log_density(&theta) - exact.log_density(&theta)
        } else {
            f64::NEG_INFINITY
        });
    }
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|l| (l - top).exp()).collect();
    let mass: f64 = weights.iter().sum();
    Ok(reference
        .iter()
        .map(|column| {
            let moment = |power: i32| -> f64 {
                let terms = column.iter().zip(&weights).map(|(v, w)| w * v.powi(power));
                terms.sum::<f64>() / mass
            };
            let m = moment(1);
            (m, (moment(2) - m * m).sqrt())
        })
        .collect())
}
