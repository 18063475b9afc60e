//! The same for anchored samplers: their start and anchor are paid for and count. Beside the
//! price stands what their clips do: the chain's means and standard deviations against an
//! unclipped chain at the same anchor (in its sds; relative), to the Monte-Carlo error of both.

use dpmc::diagnostics::{mean, sd};
use dpmc::engine::EngineChoice;
use dpmc::model::AnchorRelease;
use dpmc::posterior_run::PosteriorRun;
use dpmc::privacy::{Curator, Ledger};
use dpmc::sampler::Chains;

use super::network;
use super::{Draws, Failure, Problem, data, finish, plan, worst};

/// One setting that is tried.
pub struct Setting {
    /// Keys of `[sampler]`.
    pub sampler: String,
    /// ε at δ = 1e-6.
    pub epsilon: f64,
    /// Iterations of its one chain.
    pub iterations: u64,
}

struct Row {
    draws: f64,
    rho: f64,
    /// Expected rows a step.
    read: f64,
    /// Worst mean and worst standard deviation against the unclipped chain.
    bias: (f64, f64),
}

/// Prints every setting's row.
pub fn study(problem: &Problem) -> Result<(), Failure> {
    for setting in &problem.anchored {
        let row = run(problem, setting)?;
        let keys = setting.sampler.replace('\n', ", ").replace('"', "");
        println!(
            "{:8} {:33} {:6.0} {:12.0} {:12.3e}   (rho {:.4} in total; clips move means by {:.2} sd, sds by {:+.3}; {keys})",
            problem.name,
            "anchored-barker",
            row.draws,
            row.read,
            row.rho / row.draws,
            row.rho,
            row.bias.0,
            row.bias.1,
        );
    }
    Ok(())
}

fn run(problem: &Problem, setting: &Setting) -> Result<Row, Failure> {
    let (sampler, iterations) = (&setting.sampler, setting.iterations);
    let text = format!(
        "[sampler]\n{sampler}\n[run]\niterations = {iterations}\n{}\n[privacy]\nfilter = \"zcdp\"\nepsilon = {}\ndelta = 1e-6\n",
        problem.start, setting.epsilon
    );
    let plan = plan(problem, &text)?;
    let data = data(&plan, problem)?;
    let rows = data.rows() as f64;
    let model = plan.model(&data)?;
    let sampler = plan.sampler(&*model, data.rows(), data.row_norm())?;
    let walk = sampler.walk().ok_or("no walk")?;
    let clip = walk.typical_clip(model.dim()).ok_or("no clip")?;
    let (estimator, _) = walk.rule(clip);
    let read = match estimator {
        dpmc::privacy::Estimator::Poisson { lambda } => lambda.value(rows * clip) + rows * clip,
        _ => rows,
    };
    let chains = Chains::new(&plan.starts(&*model, [1; 32])?, [1; 32]);
    let ledger = Ledger::in_memory(plan.budget()?.ok_or("no budget")?);
    let curator = Curator::private(data, model, EngineChoice::Cpu, ledger, Some(1))?;
    let length = plan.length()?;
    let run = PosteriorRun::new(curator, sampler, chains, length, String::new(), vec![]);
    let (draws, run) = finish(run)?;
    let anchor = run.state(0).anchor.ok_or("no anchor was released")?;
    let unclipped = unclipped(problem, setting, anchor)?;
    Ok(Row {
        draws: worst(&draws),
        rho: run.curator().ledger().map_or(0.0, Ledger::spent),
        read,
        bias: bias(&draws, &unclipped),
    })
}

/// A chain of the same moves at the same anchor, not private, whose clips nothing reaches.
fn unclipped(
    problem: &Problem,
    setting: &Setting,
    anchor: AnchorRelease,
) -> Result<Draws, Failure> {
    let keys: Vec<&str> = setting
        .sampler
        .lines()
        .filter(|line| !line.starts_with("clip"))
        .collect();
    let (keys, clip) = match problem.name {
        "network" => (network::UNCLIPPED.to_string(), "rate = 1e3"),
        _ => (keys.join("\n"), "share = 1.0"),
    };
    let text = format!(
        "[sampler]\n{keys}\nclip = {{ {clip} }}\n[run]\niterations = 1\n{}\n[privacy]\nnot_private = true\n",
        problem.start
    );
    let plan = plan(problem, &text)?;
    let data = data(&plan, problem)?;
    let model = plan.model(&data)?;
    let mut sampler = plan.sampler(&*model, data.rows(), data.row_norm())?;
    let mut chains = Chains::new(&plan.starts(&*model, [2; 32])?, [2; 32]);
    let mut open = Curator::not_private(data, model, EngineChoice::Cpu, 2)?;
    open.set_anchor(anchor)?;
    let walk = sampler.walk_mut().ok_or("no walk")?;
    walk.follow(open.model().prior())?;
    walk.start_at_anchor(&mut chains);
    let mut draws: Draws = vec![Vec::new(); chains.thetas.ncols()];
    for _ in 0..setting.iterations {
        sampler.step(&mut chains, &mut open)?;
        for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
            column.push(*v);
        }
    }
    Ok(draws)
}

/// Largest difference of means, in sds, and of sds, relative.
fn bias(draws: &Draws, reference: &Draws) -> (f64, f64) {
    let mut largest = (0.0f64, 0.0f64);
    for (a, b) in draws.iter().zip(reference) {
        largest.0 = largest.0.max((mean(a) - mean(b)).abs() / sd(b));
        let spread = sd(a) / sd(b) - 1.0;
        if spread.abs() > largest.1.abs() {
            largest.1 = spread;
        }
    }
    largest
}
