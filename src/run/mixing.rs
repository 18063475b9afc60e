//! Whether a chain goes anywhere by what a budget pays for, from public numbers alone.

use crate::config::{ConfigError, Plan, SamplerSection};
use crate::data::Population;
use crate::math::normal;
use crate::model::Model;
use crate::sampler::{Algorithm, Sampler};

/// A chain stands where a penalty's noise accepts fewer moves than these.
const FEW: f64 = 0.01;
/// The standard deviation of a penalty's noise, nats, that accepts a third of moves to where the
/// posterior is as high.
const THIRD: f64 = 2.0;
/// Effective draws, at most, of a chain that hardly moves.
const HARDLY: f64 = 10.0;
/// Effective draws that a usual step of a random walk is worth, at most, times the dimension:
/// Metropolis's rule has 0.33 (Roberts & Rosenthal 2001), Barker's has half of that at short steps.
const WORTH: f64 = 0.33;

/// What to say of a private run whose chains will hardly leave their start. Anchored runs have a
/// forecast of their own.
pub(super) fn warning(
    plan: &Plan,
    sampler: &Sampler,
    model: &dyn Model,
    (rows, row_norm): (Population, f64),
) -> Result<Option<String>, ConfigError> {
    if plan.budget()?.is_none() {
        return Ok(None);
    }
    let d = model.dim();
    let length = plan.length()?;
    let steps = (length.iterations as f64 + length.warmup as f64) * plan.chains() as f64;
    let advice = match has_anchor(plan, model, rows, row_norm) {
        true => "; anchored-barker goes farther by the same budget",
        false => "",
    };
    if let Some(sd) = sampler.penalty_noise(d)
        && 2.0 * normal::above(sd / 2.0) < FEW
    {
        // By default decisions share the budget, and noise is the root of how many do.
        let fewer = match plan.config.sampler.tau {
            Some(_) => String::new(),
            None => format!(
                ". In place of {steps:.0} decisions the budget pays for about {:.0} with so little noise that a third of the moves may pass",
                steps * (THIRD / sd).powi(2)
            ),
        };
        return Ok(Some(format!(
            "the noise of a decision has a standard deviation of {sd:.2e} nats in a typical move, so that hardly a move is accepted and the draws stay at the start{fewer}{advice}"
        )));
    }
    // A step that was given is meant.
    if plan.config.sampler.step.is_some() {
        return Ok(None);
    }
    // The share of a usual move, and the effective draws that a usual one is worth at most.
    let (share, worth) = match sampler {
        Sampler::Walk(s) if s.anchoring.is_none() => {
            let usual = plan.usual_step(model, rows, row_norm);
            (s.step / usual, WORTH / d as f64)
        }
        Sampler::Hamiltonian(s) => {
            let usual = plan.usual_trajectory(model, rows, row_norm);
            let of = s.settings();
            (of.step * f64::from(of.leapfrog_steps) / usual, 1.0)
        }
        _ => return Ok(None),
    };
    let worth = length.iterations as f64 * share * share * worth;
    let short = share < 1.0 && worth < HARDLY;
    Ok(short.then(|| {
        format!(
            "the budget shortens moves to {share:.2e} of their usual length, so that the chain will hardly leave its start: {} of them are worth {worth:.1e} independent draws at most{advice}",
            length.iterations
        )
    }))
}

/// Whether `anchored-barker` takes the model and its rows.
fn has_anchor(plan: &Plan, model: &dyn Model, rows: Population, row_norm: f64) -> bool {
    let mut other = plan.clone();
    other.config.sampler = SamplerSection {
        algorithm: Some(Algorithm::AnchoredBarker),
        ..SamplerSection::default()
    };
    other.sampler(model, rows, row_norm).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare;

    /// 600 rows of norm at most 1, one feature: a run's own warnings on how it moves.
    fn warned(sampler: &str, epsilon: f64) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let table: String = (0..600)
            .map(|i| format!("{},{}\n", i % 3 - 1, i % 2))
            .collect();
        std::fs::write(folder.path().join("t.csv"), format!("a,y\n{table}")).unwrap();
        let text = format!(
            "[data]\nfile = \"t.csv\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\"]\nclamp = [-1, 1]\n[model]\nkind = \"logistic\"\nprior = {{ kind = \"normal\", sd = 1.0 }}\n[sampler]\n{sampler}\n[run]\niterations = 20000\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
        );
        let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
        let warnings = prepare(plan).unwrap().warnings;
        warnings.into_iter().find(|w| w.contains("start"))
    }

    /// Noise of 2cτ nats accepts 2Φ(−cτ) of moves, a hundredth at cτ = 2.5758.
    #[test]
    fn a_penalty_is_warned_of_where_a_hundredth_of_moves_pass() {
        // (One feature of size 1: a move is as long as its step, and c is the step.)
        let penalty = |product: f64| {
            let tau = product / 0.02;
            let sampler = format!("algorithm = \"dp-penalty\"\nstep = 0.02\ntau = {tau:?}");
            warned(&sampler, 100.0)
        };
        assert_eq!(penalty(2.56), None);
        let said = penalty(2.59).unwrap();
        assert!(
            said.contains("of 5.18e0 nats") && said.contains("anchored-barker"),
            "{said}"
        );
    }

    /// A decision of Barker's costs the square of a move, so a budget's ε² or so is the distance
    /// squared: 20,000 moves of the share s are worth 0.33·20,000·s² in one dimension.
    #[test]
    fn short_moves_are_warned_of_by_what_they_are_worth() {
        let sampler = "algorithm = \"barker\"";
        let said = warned(sampler, 0.1).unwrap();
        let number = |words: &str| -> f64 {
            let after = said.split(words).nth(1).unwrap();
            after.split(' ').next().unwrap().parse().unwrap()
        };
        let (share, worth) = (number("moves to "), number("are worth "));
        assert!(
            (worth / (0.33 * 20_000.0 * share * share) - 1.0).abs() < 0.06,
            "{said}"
        );
        // A usual step is 2.38 over the root of 1 (the prior's) and half of 600/4 (the rows').
        let usual = 2.38 / 76f64.sqrt();
        // ρ = c²/2 a step, for η = 2c: half of 20,000 of them are the budget's, or so.
        let rho = crate::privacy::Budget::new(0.1, 1e-6).unwrap();
        let rho = crate::privacy::Measure::Zcdp.limit(rho);
        let step = (2.0 * rho / 20_000.0).sqrt();
        assert!(
            (share * usual / step - 1.0).abs() < 0.02,
            "{said} {usual} {step}"
        );
        assert_eq!(warned(sampler, 30.0), None);
        assert_eq!(warned("algorithm = \"barker\"\nstep = 0.0001", 0.1), None);
    }
}
