//! Passes on a graphics card: as shares of what it copies and of what it multiplies and adds, by
//! chains, features and storage; and what a query takes over a small table.

use super::ceilings::Ceilings;
use super::{
    Measurement, Report, anchored, bits, declared_problem, gradient_pass, hamiltonian,
    logistic_rows, measurement, open, paired, ratio_pass, walk,
};
use std::sync::Arc;

use crate::data::{Dataset, Storage};
use crate::engine::EngineChoice;
use crate::model::{Model, Prior, Regression};
use crate::privacy::{Acceptance, CuratorError, Estimator, OpenCurator};
use crate::sampler::Chains;

/// Chains in lockstep.
const CHAINS: [usize; 3] = [1, 8, 64];
/// Rows where nothing but the way to the card and back takes time.
const SMALL: [usize; 2] = [10_000, 100_000];
/// Values of the large tables, and features of a row.
const VALUES: usize = 500_000_000;
const WIDTHS: [usize; 3] = [10, 200, 500];
/// What a software adapter takes of them.
const SOFTWARE: usize = 100;
const LOGISTIC: &str = "logistic";

struct Bench {
    ceilings: Ceilings,
    measurements: Vec<Measurement>,
}

impl Bench {
    /// A pass, with its shares where it is one over all rows.
    fn add(
        &mut self,
        name: &str,
        shape: (usize, usize, usize),
        rows_are: Option<Storage>,
        pass: impl FnMut() -> bool,
    ) {
        let copy = self.ceilings.copy;
        let repeats = if self.ceilings.software { 3 } else { 15 };
        let Some((floors, mut times)) = paired(repeats, || copy, pass) else {
            return;
        };
        let mut m = measurement(name, shape, &floors, &mut times, rows_are);
        let (rows, features, chains) = shape;
        // Two forms, or a form and a sum, of a product and a sum each.
        let operations = (4 * rows * features * chains) as f64;
        m.share_of_arithmetic =
            rows_are.map(|_| operations * m.per_second / self.ceilings.arithmetic);
        self.measurements.push(m);
    }

    fn passes(
        &mut self,
        curator: &mut OpenCurator,
        model: &str,
        (rows, d): (usize, usize),
        storage: Storage,
    ) {
        for chains in CHAINS {
            let shape = (rows, d, chains);
            let name = |what: &str| format!("{model}: {what} pass, rows in {}", bits(storage));
            let pass = ratio_pass(curator, d, chains);
            self.add(&name("ratio"), shape, Some(storage), pass);
            let pass = gradient_pass(curator, d, chains);
            self.add(&name("gradient"), shape, Some(storage), pass);
        }
    }

    /// One iteration of `mh`, and a trajectory of `dp-hmc`, one chain each.
    fn samplers(
        &mut self,
        curator: &mut OpenCurator,
        model: &dyn Model,
        (rows, d): (usize, usize),
    ) -> Result<(), CuratorError> {
        let (estimator, acceptance) = (Estimator::FullBatch, Acceptance::Metropolis);
        let mut sampler = walk(model, estimator, acceptance, 1e-3, 0.5);
        let mut chains = Chains::new(&[vec![0.0; d]], [1; 32]);
        let step = || sampler.step(&mut chains, curator).is_ok();
        self.add("mh iteration", (rows, d, 1), None, step);
        let mut sampler = hamiltonian::sampler(model)?;
        let mut chains = Chains::new(&[vec![0.0; d]], [1; 32]);
        let step = || sampler.step(&mut chains, curator).is_ok();
        self.add(&hamiltonian::name(), (rows, d, 1), None, step);
        Ok(())
    }
}

fn problem(data: Dataset, d: usize) -> Result<(OpenCurator, Arc<dyn Model>), CuratorError> {
    let prior = Prior::normal(d, 10.0);
    let model = Regression::logistic(data.features(), data.row_norm(), prior, 1.0)
        .map_err(|e| CuratorError::Mismatch(e.to_string()))?;
    open(data, Arc::new(model), EngineChoice::Gpu, false)
}

/// Everything but networks; `rows` of 50 features, if not as many as make a gigabyte.
pub(super) fn rates(ceilings: Ceilings, rows: Option<usize>) -> Result<Report, CuratorError> {
    let divisor = if ceilings.software { SOFTWARE } else { 1 };
    let mut bench = Bench {
        ceilings,
        measurements: Vec::new(),
    };
    let mut info = None;
    for rows in SMALL.map(|rows| rows / divisor) {
        let data = logistic_rows(rows, 50, Storage::I16)?;
        let (mut curator, model) = problem(data, 50)?;
        info.get_or_insert(curator.engine_info());
        let shape = (rows, 50, 1);
        let pass = ratio_pass(&mut curator, 50, 1);
        bench.add("small: ratio pass", shape, None, pass);
        let pass = gradient_pass(&mut curator, 50, 1);
        bench.add("small: gradient pass", shape, None, pass);
        bench.samplers(&mut curator, &*model, (rows, 50))?;
    }
    let shape = (rows.unwrap_or(VALUES / 50 / divisor), 50);
    let floats = logistic_rows(shape.0, 50, Storage::F32)?;
    let integers = floats.in_16_bits();
    bench.passes(&mut problem(floats, 50)?.0, LOGISTIC, shape, Storage::F32);
    let (mut curator, model) = problem(integers, 50)?;
    bench.passes(&mut curator, LOGISTIC, shape, Storage::I16);
    let pass = anchored::anchor_pass(&mut curator, 50);
    bench.add(anchored::ANCHOR, (shape.0, 50, 1), None, pass);
    bench.samplers(&mut curator, &*model, shape)?;
    drop(curator);
    let (mut curator, _) = declared_problem(shape.0, 50, Storage::I16, EngineChoice::Gpu)?;
    bench.passes(
        &mut curator,
        "logistic as an expression",
        shape,
        Storage::I16,
    );
    drop(curator);
    for d in WIDTHS {
        let shape = (VALUES / 4 / d / divisor, d);
        let data = logistic_rows(shape.0, d, Storage::I16)?;
        let (mut curator, _) = problem(data, d)?;
        bench.passes(&mut curator, LOGISTIC, shape, Storage::I16);
        let pass = anchored::anchor_pass(&mut curator, d);
        bench.add(anchored::ANCHOR, (shape.0, d, 1), None, pass);
    }
    Ok(Report {
        engine: info.ok_or_else(|| CuratorError::Mismatch("no size was measured".into()))?,
        bandwidth: ceilings.copy,
        arithmetic: Some(ceilings.arithmetic),
        measurements: bench.measurements,
    })
}
