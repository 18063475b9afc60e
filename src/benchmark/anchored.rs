//! `anchored-barker` steps, and the pass that an anchor takes, on synthetic logistic rows.

use super::{Measurement, logistic_problem, logistic_rows, measurement, paired};
use crate::data::Storage;
use crate::engine::EngineChoice;
use crate::model::{Metric, Model, Slopes};
use crate::privacy::{
    Acceptance, AnchorNoise, Budget, Curator, CuratorError, Estimator, Halt, Lambda, Ledger,
    OpenCurator, Releases,
};
use crate::sampler::{
    Adapt, Adaptation, AnchorSplit, AnchoredProposal, AnchoredSettings, Anchoring, Chains,
    Decisions, Preconditioner, RandomWalk, Structure,
};

/// The size of Adult with 12 features, and a million rows of 50.
const SIZES: [(usize, usize); 2] = [(32_561, 12), (1_000_000, 50)];

/// What [`anchor_pass`] is called in reports.
pub(super) const ANCHOR: &str = "anchor: gradient and curvature";

/// One pass for an anchor at 0 without noise; a closure to time.
pub(super) fn anchor_pass(curator: &mut OpenCurator, d: usize) -> impl FnMut() -> bool + '_ {
    let (start, metric) = (vec![0.0; d], Metric::identity(d, 3.0));
    move || {
        curator
            .anchor(&start, &metric, AnchorNoise::expansion(0.0, 0.0))
            .is_ok()
    }
}

/// What the steps are paid from: large, so that none is refused.
const BUDGET: (f64, f64) = (30.0, 0.5);
/// Of which releases take so much, in ρ.
const SPLIT: AnchorSplit = AnchorSplit {
    refresh: 0.0,
    start: 0.2,
    gradient: 0.2,
    curvature: 0.1,
};

/// Private steps a second at λ = 4Λ around a released anchor, of so many rows as its clips ask for,
/// and exact anchors a second.
pub(super) fn rates() -> Result<Vec<Measurement>, CuratorError> {
    let mut measurements = Vec::new();
    for (rows, features) in SIZES {
        let fail = |e: Halt| CuratorError::Mismatch(e.to_string());
        let (mut curator, model) =
            logistic_problem(rows, features, Storage::I16, EngineChoice::Cpu)?;
        let start = vec![0.0; features];
        let pass = anchor_pass(&mut curator, features);
        if let Some((floors, mut times)) = paired(5, || 1.0, pass) {
            let shape = (rows, features, 1);
            measurements.push(measurement(ANCHOR, shape, &floors, &mut times, None));
        }
        let data = logistic_rows(rows, features, Storage::I16)?;
        let budget = Budget::new(BUDGET.0, BUDGET.1);
        let ledger = budget.map(Ledger::in_memory);
        let ledger = ledger.map_err(|e| CuratorError::Mismatch(e.to_string()))?;
        let cpu = EngineChoice::Cpu;
        let mut curator = Curator::private(data, model.clone(), cpu, ledger, Some(1))?;
        let mut sampler = sampler(&*model, rows);
        let anchor = sampler.release_anchor(&mut curator).map_err(fail)?;
        curator.set_anchor(anchor).map_err(fail)?;
        sampler.follow(model.prior()).map_err(fail)?;
        let mut chains = Chains::new(std::slice::from_ref(&start), [1; 32]);
        sampler.start_at_anchor(&mut chains);
        let steps = || (0..1000).all(|_| sampler.step(&mut chains, &mut curator).is_ok());
        if let Some((floors, mut times)) = paired(9, || 1.0, steps) {
            let name = "anchored-barker, private minibatches, 1000 steps";
            let shape = (rows, features, 1);
            let mut m = measurement(name, shape, &floors, &mut times, None);
            m.per_second *= 1000.0;
            measurements.push(m);
        }
    }
    Ok(measurements)
}

/// Settings of a run file that asks the rows about every move, but for the budget.
fn sampler(model: &dyn Model, rows: usize) -> RandomWalk {
    let d = model.dim();
    let size = d as f64;
    let settings = AnchoredSettings {
        anchoring: Anchoring {
            location: None,
            start: vec![0.0; d],
            stages: 6,
            rows,
            row_norm: 3.0,
            unit: 1.0,
            slopes: Slopes::logistic(),
            structure: Structure::default(),
            clip: None,
            radius: 4.0 * size.sqrt() + 4.0,
            split: Some(SPLIT),
            undecided: false,
        },
        proposal: AnchoredProposal::Autoregressive { correlation: 0.0 },
        share: (4.0 / size.powf(1.5)).min(1.0),
        refresh_after: None,
        decisions: Decisions::All,
    };
    RandomWalk::new(
        model.prior().clone(),
        Estimator::Poisson {
            lambda: Lambda::Ratio(4.0),
        },
        Acceptance::Barker,
        None,
        1.0,
        Preconditioner::Identity,
        Adaptation::new(Adapt::None, 0.2, 0, d),
    )
    .with_anchoring(settings)
}
