//! Minibatch samplers on the mixture of Zhang & Zhang 2023: N = 50,000 truncated to [−3, 3],
//! T = 500, step 0.06, 1 chain.

use std::sync::Arc;

use super::{Measurement, measurement, open, paired, walk};
use crate::engine::EngineChoice;
use crate::model::{Mixture, Model, Prior};
use crate::privacy::{Acceptance, CuratorError, Estimator, FastMhSettings, Lambda, OpenCurator};
use crate::sampler::{Chains, FastMh, RandomWalk};
use crate::synthetic;

const ROWS: usize = 50_000;
/// Settings of the authors' code.
const PUBLISHED: FastMhSettings = FastMhSettings {
    lambda: 10.0,
    batch_cap: 60.0,
    epsilon: 0.05,
    delta: 1e-5,
};

type Problem = (OpenCurator, RandomWalk, Chains);

/// `poisson-barker` at λ = 300.
///
/// # Errors
/// [`CuratorError`] where data or engine fail.
pub fn mixture_problem() -> Result<Problem, CuratorError> {
    problem(poisson(300.0), Acceptance::Barker)
}

fn poisson(lambda: f64) -> Estimator {
    Estimator::Poisson {
        lambda: Lambda::Fixed(lambda),
    }
}

fn problem(estimator: Estimator, acceptance: Acceptance) -> Result<Problem, CuratorError> {
    let fail = |e: String| CuratorError::Mismatch(e);
    let data = synthetic::mixture(ROWS, Some(3.0), 1).map_err(|e| fail(e.to_string()))?;
    let model = Mixture::new(2.0, 3.0, Prior::flat_box(2, 3.0), 1.0 / 500.0)
        .map_err(|e| fail(e.to_string()))?;
    let rate = model.ratio_rate().unwrap_or(1.0);
    let (curator, model) = open(data, Arc::new(model), EngineChoice::Cpu, true)?;
    let sampler = walk(&*model, estimator, acceptance, 0.06, rate);
    Ok((curator, sampler, Chains::new(&[vec![0.3, 0.1]], [1; 32])))
}

/// Iterations a second.
pub(super) fn rates() -> Result<Vec<Measurement>, CuratorError> {
    let metropolis = Acceptance::Metropolis;
    let mut fast = problem(Estimator::FullBatch, Acceptance::Barker)?;
    fast.1.fast_mh = Some(FastMh {
        settings: PUBLISHED,
        population: ROWS.into(),
    });
    Ok(vec![
        rate("poisson-barker, lambda = 300", mixture_problem()?)?,
        rate(
            "poisson-barker, lambda = 10",
            problem(poisson(10.0), Acceptance::Barker)?,
        )?,
        rate("tuna-mh, lambda = 10", problem(poisson(10.0), metropolis)?)?,
        rate("dp-fast-mh, lambda = 10, K = 60", fast)?,
    ])
}

fn rate(
    name: &str,
    (mut curator, mut sampler, mut chains): Problem,
) -> Result<Measurement, CuratorError> {
    let mut failure = None;
    let block = || {
        (0..1000).all(|_| match sampler.step(&mut chains, &mut curator) {
            Ok(_) => true,
            Err(e) => {
                failure = Some(e.to_string());
                false
            }
        })
    };
    let repeats = paired(9, || 1.0, block);
    let (floors, mut times) = repeats.ok_or_else(|| {
        CuratorError::Mismatch(failure.unwrap_or_else(|| "the sampler stopped".into()))
    })?;
    let name = format!("{name}, mixture, 1000 steps");
    let mut m = measurement(&name, (ROWS, 1, 1), &floors, &mut times, None);
    m.per_second *= 1000.0;
    Ok(m)
}
