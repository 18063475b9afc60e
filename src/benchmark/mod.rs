//! Measurements of this machine: every pass as a share of read (or copy) bandwidth
//! measured in the same run, so that noise of the machine cancels.

mod anchored;
#[cfg(feature = "gpu")]
mod card;
#[cfg(feature = "gpu")]
mod ceilings;
mod hamiltonian;
mod mixture;
mod network;
pub mod privacy;

pub use mixture::mixture_problem;

use std::sync::Arc;
use std::time::Instant;

use ndarray::Array2;
use rayon::prelude::*;
use serde::Serialize;

use crate::data::{Dataset, LabelKind, Storage};
use crate::engine::{EngineChoice, EngineInfo, EngineSetup};
use crate::expression::Law;
use crate::model::{Model, Prior, Regression};
use crate::privacy::{
    Acceptance, Batch, Curator, CuratorError, Estimator, GradientNoise, OpenCurator, Releases,
};
use crate::sampler::{Adapt, Adaptation, Chains, ClipNorm, ClipRule, Preconditioner, RandomWalk};
use crate::synthetic;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// What was measured.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Features.
    pub features: usize,
    /// Chains.
    pub chains: usize,
    /// Median milliseconds.
    pub median_ms: f64,
    /// Fastest milliseconds.
    pub best_ms: f64,
    /// Bytes of rows over time over the machine's bandwidth, medians of paired repeats;
    /// absent where it means nothing.
    pub share_of_bandwidth: Option<f64>,
    /// Products and sums of the row's forms over time over a card's peak; absent likewise.
    pub share_of_arithmetic: Option<f64>,
    /// Repetitions a second of one whole call, or of rows, charges and draws where it is their
    /// number.
    pub per_second: f64,
}

/// A report; `dpmc bench --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What computed.
    pub engine: EngineInfo,
    /// Bytes a second: parallel read (CPU) or device copy, read plus write (GPU).
    pub bandwidth: f64,
    /// f32 operations a second of a card, a fused product and sum counted as two.
    pub arithmetic: Option<f64>,
    /// Measurements.
    pub measurements: Vec<Measurement>,
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Parallel read of a large array: the floor of a pass over rows on this CPU.
pub struct ReadBandwidth {
    data: Vec<u64>,
}

impl Default for ReadBandwidth {
    /// 256 MiB.
    fn default() -> Self {
        ReadBandwidth {
            data: vec![1; 1 << 25],
        }
    }
}

impl ReadBandwidth {
    /// Bytes a second of one read.
    pub fn measure(&self) -> f64 {
        let mut sum = 0u64;
        let time = seconds(|| {
            sum = self
                .data
                .par_chunks(1 << 14)
                .map(|c| c.iter().fold(0u64, |a, &v| a.wrapping_add(v)))
                .sum();
        });
        assert_eq!(std::hint::black_box(sum), 1 << 25);
        (self.data.len() * 8) as f64 / time
    }
}

/// A logistic problem with N rows of d features, kept so, opened without privacy.
///
/// # Errors
/// [`CuratorError`] where the engine cannot be had.
pub fn logistic_problem(
    rows: usize,
    features: usize,
    storage: Storage,
    engine: EngineChoice,
) -> Result<(OpenCurator, Arc<dyn Model>), CuratorError> {
    let data = logistic_rows(rows, features, storage)?;
    let prior = Prior::normal(features, 10.0);
    let model = Regression::logistic(data.features(), data.row_norm(), prior, 1.0)
        .map_err(|e| CuratorError::Mismatch(e.to_string()))?;
    open(data, Arc::new(model), engine, false)
}

/// The same rows, with the logistic likelihood as an expression.
///
/// # Errors
/// [`CuratorError`] where the engine cannot be had.
pub fn declared_problem(
    rows: usize,
    features: usize,
    storage: Storage,
    engine: EngineChoice,
) -> Result<(OpenCurator, Arc<dyn Model>), CuratorError> {
    let data = logistic_rows(rows, features, storage)?;
    let prior = Prior::normal(features, 10.0);
    let law = Law::new("declared", "-log1p_exp(-y * eta)", &[], &[])
        .map_err(|e| CuratorError::Mismatch(e.to_string()))?;
    let (label, norm) = (LabelKind::Binary, data.row_norm());
    let model = Regression::declared(data.features(), law, label, norm, prior, 1.0)
        .map_err(|e| CuratorError::Mismatch(e.to_string()))?;
    open(data, Arc::new(model), engine, false)
}

/// Made-up rows of a logistic regression, kept so.
fn logistic_rows(rows: usize, features: usize, storage: Storage) -> Result<Dataset, CuratorError> {
    let theta: Vec<f64> = (0..features).map(|j| (j as f64 * 0.7).sin()).collect();
    let data = synthetic::logistic(rows, &theta, 1);
    let data = data.map_err(|e| CuratorError::Mismatch(e.to_string()))?;
    Ok(match storage {
        Storage::I16 => data.in_16_bits(),
        Storage::F32 => data,
    })
}

fn open(
    data: Dataset,
    model: Arc<dyn Model>,
    choice: EngineChoice,
    listed_rows: bool,
) -> Result<(OpenCurator, Arc<dyn Model>), CuratorError> {
    let setup = EngineSetup {
        listed_rows,
        ..choice.into()
    };
    Ok((Curator::not_private(data, model.clone(), setup, 1)?, model))
}

/// θ, θ' and clips of `chains` chains.
fn pairs(d: usize, chains: usize) -> (Vec<Vec<f64>>, Vec<Vec<f64>>, Vec<f64>) {
    let thetas: Vec<Vec<f64>> = (0..chains)
        .map(|c| (0..d).map(|j| ((c + j) as f64).sin()).collect())
        .collect();
    let proposals: Vec<Vec<f64>> = thetas
        .iter()
        .map(|t| {
            t.iter()
                .enumerate()
                .map(|(j, v)| v + 0.01 * (j as f64).cos())
                .collect()
        })
        .collect();
    (thetas, proposals, vec![0.1; chains])
}

/// One full-batch ratio pass for `chains` chains; a closure to time.
///
/// # Errors
/// None at set-up; an engine's failure shows as a `false` of the closure.
pub fn ratio_pass(curator: &mut OpenCurator, d: usize, chains: usize) -> impl FnMut() -> bool + '_ {
    let (thetas, proposals, clips) = pairs(d, chains);
    move || {
        let t: Vec<&[f64]> = thetas.iter().map(Vec::as_slice).collect();
        let p: Vec<&[f64]> = proposals.iter().map(Vec::as_slice).collect();
        curator.exact_log_ratios(&t, &p, &clips).is_ok()
    }
}

/// One full-batch gradient pass for `chains` chains, clipped at the model's bound and without
/// noise; a closure to time.
pub fn gradient_pass(
    curator: &mut OpenCurator,
    d: usize,
    chains: usize,
) -> impl FnMut() -> bool + '_ {
    let (thetas, _, _) = pairs(d, chains);
    let thetas = Array2::from_shape_fn((chains, d), |(c, j)| thetas[c][j]);
    let noise = GradientNoise {
        clip: Some(10.0),
        batch: Batch::All,
        sigma: 0.0,
    };
    move || curator.gradients(thetas.view(), noise).is_ok()
}

/// A random-walk sampler for benchmarks.
pub fn walk(
    model: &dyn Model,
    estimator: Estimator,
    acceptance: Acceptance,
    step: f64,
    rate: f64,
) -> RandomWalk {
    RandomWalk::new(
        model.prior().clone(),
        estimator,
        acceptance,
        Some(ClipRule {
            rate,
            norm: ClipNorm::Euclidean,
        }),
        step,
        Preconditioner::Identity,
        Adaptation::new(Adapt::None, 0.3, 0, model.dim()),
    )
}

/// Repeats of a bandwidth measurement and a pass, in turn.
fn paired(
    repeats: usize,
    bandwidth: impl FnMut() -> f64,
    mut pass: impl FnMut() -> bool,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let (floors, mut times) = in_turn(repeats, bandwidth, &mut [&mut pass])?;
    Some((floors, times.swap_remove(0)))
}

/// Repeats of a bandwidth measurement and each of some passes, in turn: times by pass.
fn in_turn(
    repeats: usize,
    mut bandwidth: impl FnMut() -> f64,
    passes: &mut [&mut dyn FnMut() -> bool],
) -> Option<(Vec<f64>, Vec<Vec<f64>>)> {
    let (mut floors, mut times) = (Vec::new(), vec![Vec::new(); passes.len()]);
    for i in 0..=repeats {
        let floor = bandwidth();
        // The first round compiles and warms up.
        if i > 0 {
            floors.push(floor);
        }
        for (pass, times) in passes.iter_mut().zip(&mut times) {
            let mut fine = false;
            let time = seconds(|| fine = pass());
            if !fine {
                return None;
            }
            if i > 0 {
                times.push(time);
            }
        }
    }
    Some((floors, times))
}

fn bits(storage: Storage) -> &'static str {
    match storage {
        Storage::I16 => "16 bits",
        Storage::F32 => "32 bits",
    }
}

fn measurement(
    name: &str,
    (rows, features, chains): (usize, usize, usize),
    floors: &[f64],
    times: &mut [f64],
    rows_are: Option<Storage>,
) -> Measurement {
    let share = rows_are.map(|storage| {
        let value = match storage {
            Storage::I16 => 2,
            Storage::F32 => 4,
        };
        // And a label.
        let bytes = (rows * (features * value + 4)) as f64;
        let pairs = floors.iter().zip(times.iter());
        let mut shares: Vec<f64> = pairs.map(|(floor, time)| bytes / time / floor).collect();
        median(&mut shares)
    });
    let median_s = median(times);
    Measurement {
        name: name.into(),
        rows,
        features,
        chains,
        median_ms: 1e3 * median_s,
        best_ms: 1e3 * times.first().copied().unwrap_or(f64::NAN),
        share_of_bandwidth: share,
        share_of_arithmetic: None,
        per_second: 1.0 / median_s,
    }
}

/// Measures the CPU: ratio and gradient passes at 1 and 8 chains, over rows of either storage in
/// turn, a whole `mh` iteration and a trajectory.
fn passes(
    rows: usize,
    features: usize,
    mut bandwidth: impl FnMut() -> f64,
) -> Result<Report, CuratorError> {
    let open = |storage| logistic_problem(rows, features, storage, EngineChoice::Cpu);
    let (mut curator, model) = open(Storage::I16)?;
    let (mut floats, _) = open(Storage::F32)?;
    let info = curator.engine_info();
    let mut measurements = Vec::new();
    let mut all_floors = Vec::new();
    for chains in [1, 8] {
        let shape = (rows, features, chains);
        for (name, gradient) in [
            ("logistic ratio pass", false),
            ("logistic gradient pass", true),
        ] {
            let pass = |curator| -> Box<dyn FnMut() -> bool + '_> {
                match gradient {
                    true => Box::new(gradient_pass(curator, features, chains)),
                    false => Box::new(ratio_pass(curator, features, chains)),
                }
            };
            let (mut integers, mut floats) = (pass(&mut curator), pass(&mut floats));
            let mut passes: [&mut dyn FnMut() -> bool; 2] = [&mut integers, &mut floats];
            let Some((floors, times)) = in_turn(15, &mut bandwidth, &mut passes) else {
                continue;
            };
            for (mut times, storage) in times.into_iter().zip([Storage::I16, Storage::F32]) {
                let name = format!("{name}, rows in {}", bits(storage));
                let m = measurement(&name, shape, &floors, &mut times, Some(storage));
                measurements.push(m);
            }
            all_floors.extend(floors);
        }
    }
    let shape = (rows, features, 1);
    let (estimator, acceptance) = (Estimator::FullBatch, Acceptance::Metropolis);
    let mut sampler = walk(&*model, estimator, acceptance, 1e-3, 0.5);
    let mut chains = Chains::new(&[vec![0.0; features]], [1; 32]);
    let iteration = || sampler.step(&mut chains, &mut curator).is_ok();
    if let Some((floors, mut times)) = paired(15, &mut bandwidth, iteration) {
        let m = measurement(
            "mh iteration",
            shape,
            &floors,
            &mut times,
            Some(Storage::I16),
        );
        measurements.push(m);
    }
    let mut sampler = hamiltonian::sampler(&*model)?;
    let mut chains = Chains::new(&[vec![0.0; features]], [1; 32]);
    let trajectory = || sampler.step(&mut chains, &mut curator).is_ok();
    if let Some((floors, mut times)) = paired(7, &mut bandwidth, trajectory) {
        let m = measurement(&hamiltonian::name(), shape, &floors, &mut times, None);
        measurements.push(m);
    }
    Ok(Report {
        engine: info,
        bandwidth: median(&mut all_floors),
        arithmetic: None,
        measurements,
    })
}

/// Accountants, ledger and exact noise.
fn privacy_core() -> Result<Vec<Measurement>, CuratorError> {
    let sequence = |s: Option<crate::privacy::accountant::Sequence>| {
        s.ok_or_else(|| CuratorError::Mismatch("a benchmark's sequence is invalid".into()))
    };
    let (one, many) = (
        sequence(privacy::subsampled())?,
        sequence(privacy::schedule())?,
    );
    let mut measurements = Vec::new();
    let mut add = |name: &str, repeats: usize, units: f64, work: &mut dyn FnMut() -> bool| {
        if let Some((floors, mut times)) = paired(repeats, || 1.0, work) {
            let mut m = measurement(name, (0, 0, 0), &floors, &mut times, None);
            m.per_second *= units;
            measurements.push(m);
        }
    };
    add("account, q = 0.01, sigma = 1, T = 1e4", 7, 1.0, &mut || {
        privacy::epsilon(&one).upper < 7.0
    });
    add("account, 1e4 distinct sigmas", 3, 1.0, &mut || {
        privacy::epsilon(&many).upper < 1.0
    });
    add("ledger, 1e6 charges", 5, 1e6, &mut || {
        privacy::ledger_charges(1_000_000) == 1_000_000
    });
    add("discrete Gaussian, 1e6 draws", 5, 1e6, &mut || {
        privacy::discrete_gaussians(1_000_000) != 0
    });
    Ok(measurements)
}

/// What the CPU makes of N = 1e6 rows of 50 features and of smaller samplers.
fn cpu() -> Result<Report, CuratorError> {
    let read = ReadBandwidth::default();
    let mut report = passes(1_000_000, 50, || read.measure())?;
    report.measurements.extend(mixture::rates()?);
    report.measurements.extend(anchored::rates()?);
    let networks = network::rates(EngineChoice::Cpu, 2_048)?;
    report.measurements.extend(networks);
    report.measurements.extend(privacy_core()?);
    Ok(report)
}

/// What the GPU makes of tables of a gigabyte, or of a hundredth of that on a software adapter;
/// `None` without one.
fn gpu(rows: Option<usize>) -> Result<Option<Report>, CuratorError> {
    #[cfg(not(feature = "gpu"))]
    return Ok(rows.and(None));
    #[cfg(feature = "gpu")]
    {
        let Some(ceilings) = ceilings::measure() else {
            return Ok(None);
        };
        let mut report = card::rates(ceilings, rows)?;
        let images = if ceilings.software { 256 } else { 60_000 };
        let networks = network::rates(EngineChoice::Gpu, images)?;
        report.measurements.extend(networks);
        Ok(Some(report))
    }
}

/// Measures the engines of this machine, or the one of them that is chosen. `rows` is the number of
/// rows of 50 features on the GPU, where the default is not wanted.
///
/// # Errors
/// [`CuratorError`] where an engine fails; a missing GPU is one only where it was chosen.
pub fn all(engine: EngineChoice, rows: Option<usize>) -> Result<Vec<Report>, CuratorError> {
    let mut reports = Vec::new();
    if engine != EngineChoice::Gpu {
        reports.push(cpu()?);
    }
    if engine != EngineChoice::Cpu {
        let report = gpu(rows)?;
        if report.is_none() && engine == EngineChoice::Gpu {
            return Err(CuratorError::Mismatch(
                "no GPU adapter was found, or what was found could not be measured; `dpmc devices` lists them".into(),
            ));
        }
        reports.extend(report);
    }
    Ok(reports)
}
