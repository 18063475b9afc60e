//! Measurements of this machine: every pass as a share of read (or copy) bandwidth
//! measured in the same run, so that noise of the machine cancels.

mod anchored;
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
        per_second: 1.0 / median_s,
    }
}

/// Measures one engine: ratio and gradient passes at 1 and 8 chains, on the CPU over rows of
/// either storage in turn, on the GPU an anchor's, and a whole `mh` iteration.
///
/// # Errors
/// [`CuratorError`] where the engine cannot be had.
pub fn passes(
    engine: EngineChoice,
    rows: usize,
    features: usize,
    mut bandwidth: impl FnMut() -> f64,
) -> Result<Report, CuratorError> {
    let open = |storage| logistic_problem(rows, features, storage, engine);
    let (mut curator, model) = open(Storage::I16)?;
    // A GPU holds floats either way.
    let mut floats = match engine {
        EngineChoice::Gpu => None,
        _ => Some(open(Storage::F32)?.0),
    };
    let info = curator.engine_info();
    let kept = floats.as_ref().map_or(Storage::F32, |_| Storage::I16);
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
            let mut integers = pass(&mut curator);
            let mut floats = floats.as_mut().map(pass);
            let mut passes: Vec<&mut dyn FnMut() -> bool> = vec![&mut integers];
            passes.extend(floats.as_mut().map(|f| f as &mut dyn FnMut() -> bool));
            let Some((floors, times)) = in_turn(15, &mut bandwidth, &mut passes) else {
                continue;
            };
            for (mut times, storage) in times.into_iter().zip([kept, Storage::F32]) {
                let name = format!("{name}, rows in {}", bits(storage));
                let m = measurement(&name, shape, &floors, &mut times, Some(storage));
                measurements.push(m);
            }
            all_floors.extend(floors);
        }
    }
    // `anchored::rates` has the CPU's.
    if engine == EngineChoice::Gpu {
        let pass = anchored::anchor_pass(&mut curator, features);
        if let Some((floors, mut times)) = paired(7, &mut bandwidth, pass) {
            let shape = (rows, features, 1);
            let m = measurement(anchored::ANCHOR, shape, &floors, &mut times, Some(kept));
            measurements.push(m);
        }
    }
    let mut sampler = walk(
        &*model,
        Estimator::FullBatch,
        Acceptance::Metropolis,
        1e-3,
        0.5,
    );
    let mut chains = Chains::new(&[vec![0.0; features]], [1; 32]);
    let iteration = || sampler.step(&mut chains, &mut curator).is_ok();
    if let Some((floors, mut times)) = paired(15, &mut bandwidth, iteration) {
        let shape = (rows, features, 1);
        measurements.push(measurement(
            "mh iteration",
            shape,
            &floors,
            &mut times,
            Some(kept),
        ));
    }
    let mut sampler = hamiltonian::sampler(&*model)?;
    let mut chains = Chains::new(&[vec![0.0; features]], [1; 32]);
    let trajectory = || sampler.step(&mut chains, &mut curator).is_ok();
    if let Some((floors, mut times)) = paired(7, &mut bandwidth, trajectory) {
        let name = format!(
            "dp-hmc trajectory, {} gradients and 1 ratio",
            hamiltonian::LEAPFROG_STEPS + 1
        );
        let shape = (rows, features, 1);
        measurements.push(measurement(&name, shape, &floors, &mut times, None));
    }
    Ok(Report {
        engine: info,
        bandwidth: median(&mut all_floors),
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

/// Everything that this machine can measure. The GPU is measured where a hardware
/// adapter is found, at N = 1e7, or at N = 1e5 on a software one.
///
/// # Errors
/// [`CuratorError`] where the CPU engine fails; a missing GPU is no error.
pub fn all() -> Result<Vec<Report>, CuratorError> {
    let read = ReadBandwidth::default();
    let mut cpu = passes(EngineChoice::Cpu, 1_000_000, 50, || read.measure())?;
    cpu.measurements.extend(mixture::rates()?);
    cpu.measurements.extend(anchored::rates()?);
    cpu.measurements
        .extend(network::rates(EngineChoice::Cpu, 2_048)?);
    cpu.measurements.extend(privacy_core()?);
    #[allow(unused_mut)]
    let mut reports = vec![cpu];
    #[cfg(feature = "gpu")]
    if let Ok((copy, software)) = crate::engine::gpu_copy_bandwidth() {
        let rows = if software { 100_000 } else { 10_000_000 };
        let mut gpu = passes(EngineChoice::Gpu, rows, 50, || copy)?;
        let images = if software { 256 } else { 60_000 };
        let networks = network::rates(EngineChoice::Gpu, images)?;
        gpu.measurements.extend(networks);
        reports.push(gpu);
    }
    Ok(reports)
}
