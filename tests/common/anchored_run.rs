//! For tests of whole anchored runs, in the process of the test.

use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::diagnostics::{NoiseAware, ess_bulk, mean, noise_aware, sd};
use dpmc::engine::EngineChoice;
use dpmc::model::AnchorRelease;
use dpmc::posterior_run::{PosteriorRun, Status};
use dpmc::privacy::{Curator, CuratorError};
use dpmc::sampler::Chains;

/// Draws of the one chain, and what the anchor's noise does to their means.
pub struct AnchoredRun {
    columns: Vec<Vec<Vec<f64>>>,
    pub noise: Vec<NoiseAware>,
}

impl AnchoredRun {
    /// Makes the plan's run to its end, within its budget.
    pub fn of(
        plan: &Plan,
        data: Dataset,
        engine: EngineChoice,
        seed: u64,
    ) -> Result<Self, CuratorError> {
        let model = plan.model(&data).unwrap();
        let sampler = plan.sampler(&*model, data.rows(), data.row_norm()).unwrap();
        let chains = Chains::new(&plan.starts(&*model, [1; 32]).unwrap(), [1; 32]);
        let curator = match plan.ledger(&sampler, &*model, data.rows()).unwrap() {
            Some(ledger) => Curator::private(data, model, engine, ledger, Some(seed))?,
            None => Curator::not_private(data, model, engine, seed)?.into_curator(),
        };
        if engine != EngineChoice::Auto {
            let gpu = engine == EngineChoice::Gpu;
            assert_eq!(curator.engine_info().kind == "gpu", gpu);
        }
        let length = plan.length().unwrap();
        let mut run = PosteriorRun::new(curator, sampler, chains, length, String::new(), vec![]);
        while *run.step() == Status::Running {}
        assert!(
            matches!(run.status(), Status::Finished),
            "{:?}",
            run.status()
        );
        if let Some(ledger) = run.curator().ledger() {
            let (spent, limit) = (ledger.spent(), ledger.limit());
            assert!(spent <= limit, "{spent} of {limit}");
        }
        let Some(AnchorRelease::Expansion(anchor)) = run.state(0).anchor else {
            panic!("no expansion was released");
        };
        let (draws, _) = run.take_draws();
        let columns: Vec<Vec<Vec<f64>>> = (0..anchor.at.len())
            .map(|j| vec![draws.iter().map(|d| d.theta[j]).collect()])
            .collect();
        let noise = noise_aware(&columns, &anchor, true).unwrap();
        Ok(AnchoredRun { columns, noise })
    }

    /// Mean, sd and effective draws of parameter j.
    pub fn moments(&self, j: usize) -> (f64, f64, f64) {
        let column = &self.columns[j];
        (mean(&column[0]), sd(&column[0]), ess_bulk(column))
    }
}
