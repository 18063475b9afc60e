//! Which engine runs, and what it says of itself.

use std::sync::Arc;
#[cfg(feature = "gpu")]
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::cpu::{CpuEngine, InstructionSet};
use super::ranks::Ranked;
#[cfg(feature = "gpu")]
use super::{AnchorParts, AnchorQuery, GradientQuery, RatioQuery, Rows};
use super::{Engine, EngineError};
use crate::data::Dataset;
#[cfg(feature = "gpu")]
use crate::model::Metric;
use crate::model::Model;

/// What the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// Measure and pick.
    #[default]
    Auto,
    /// The native CPU engine.
    Cpu,
    /// wgpu on any adapter.
    Gpu,
}

/// An engine and the work it will get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSetup {
    /// What the user asks for.
    pub choice: EngineChoice,
    /// Whether the sampler asks for listed rows (minibatches). The CPU answers these, and what
    /// the GPU has no pass for.
    pub listed_rows: bool,
    /// Chains of one query, for `auto`'s measurement.
    pub chains: usize,
    /// What it will be asked, for `auto`'s measurement.
    pub workload: Workload,
}

/// Queries over all rows that a run will ask, each of all of its chains together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Sums of log ratios.
    pub ratios: u64,
    /// Sums of gradients.
    pub gradients: u64,
    /// Gradients and curvatures of an anchor.
    pub anchors: u64,
    /// Gradients of minibatches.
    pub listed: u64,
    /// The share of all rows in a minibatch, in units of 2^-32.
    pub share: u32,
}

impl From<EngineChoice> for EngineSetup {
    fn from(choice: EngineChoice) -> Self {
        EngineSetup {
            choice,
            listed_rows: true,
            chains: 1,
            workload: Workload::default(),
        }
    }
}

/// What computes, for certificates and reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineInfo {
    /// `cpu` or `gpu`.
    pub kind: String,
    /// Instruction set, or the adapter's name.
    pub adapter: String,
    /// Driver and its version.
    pub driver: String,
}

/// Builds the engine asked for, of all ranks where there are several.
pub(in crate::trusted) fn open(
    setup: EngineSetup,
    data: Arc<Dataset>,
    model: &dyn Model,
) -> Result<Box<dyn Engine>, EngineError> {
    match data.ranks().cloned() {
        Some(ranks) => Ok(Box::new(Ranked::open(setup, data, model, ranks)?)),
        None => open_own(setup, data, model),
    }
}

/// Builds the engine asked for over the rows that are here.
pub(super) fn open_own(
    setup: EngineSetup,
    data: Arc<Dataset>,
    model: &dyn Model,
) -> Result<Box<dyn Engine>, EngineError> {
    // (Rows of a unit, and rows with weights, are added up on the CPU.)
    let cpu_only = !model.row_function().on_gpu() || data.units().is_some() || data.weighted();
    match setup.choice {
        // A rank may have no rows.
        _ if data.lines() == 0 => Ok(Box::new(CpuEngine::new(data))),
        EngineChoice::Cpu => Ok(Box::new(CpuEngine::new(data))),
        EngineChoice::Gpu if cpu_only => Err(EngineError::CpuOnly),
        EngineChoice::Gpu => open_gpu(setup, data),
        // Listed rows run on the CPU whatever sums do.
        EngineChoice::Auto if setup.workload == Workload::default() || cpu_only => {
            Ok(Box::new(CpuEngine::new(data)))
        }
        EngineChoice::Auto => faster(setup, data, model),
    }
}

#[cfg(feature = "gpu")]
fn open_gpu(setup: EngineSetup, data: Arc<Dataset>) -> Result<Box<dyn Engine>, EngineError> {
    let limits = super::gpu::GpuLimits::default();
    let engine = super::gpu::GpuEngine::new(data, setup.listed_rows, limits)?;
    Ok(Box::new(engine))
}

#[cfg(not(feature = "gpu"))]
fn open_gpu(_: EngineSetup, _: Arc<Dataset>) -> Result<Box<dyn Engine>, EngineError> {
    Err(EngineError::NotBuilt)
}

#[cfg(not(feature = "gpu"))]
fn faster(
    _: EngineSetup,
    data: Arc<Dataset>,
    _: &dyn Model,
) -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(CpuEngine::new(data)))
}

/// Times the run's own queries at a public θ on both engines. A software adapter, or any failure of
/// the GPU, means the CPU; so does a run that is over before a GPU were opened.
#[cfg(feature = "gpu")]
fn faster(
    setup: EngineSetup,
    data: Arc<Dataset>,
    model: &dyn Model,
) -> Result<Box<dyn Engine>, EngineError> {
    let mut cpu = CpuEngine::new(data.clone());
    let on_cpu = setup.seconds(&mut cpu, &data, model, f64::INFINITY)?;
    if on_cpu < WORTH_OPENING {
        return Ok(Box::new(cpu));
    }
    let opening = Instant::now();
    let limits = super::gpu::GpuLimits::default();
    let Ok(mut gpu) = super::gpu::GpuEngine::new(data.clone(), setup.listed_rows, limits) else {
        return Ok(Box::new(cpu));
    };
    if gpu.is_software() {
        return Ok(Box::new(cpu));
    }
    let opening = opening.elapsed().as_secs_f64();
    match setup.seconds(&mut gpu, &data, model, on_cpu) {
        Ok(on_gpu) if opening + on_gpu < on_cpu => Ok(Box::new(gpu)),
        _ => Ok(Box::new(cpu)),
    }
}

/// Seconds of a run on the CPU from which on a GPU is tried.
#[cfg(feature = "gpu")]
const WORTH_OPENING: f64 = 2.0;

/// Rows of a minibatch that is timed, at most.
#[cfg(feature = "gpu")]
const LISTED: f64 = 2048.0;

#[cfg(feature = "gpu")]
impl EngineSetup {
    /// Seconds that an engine takes for the run's queries over all rows, at θ = 0; measured no
    /// further than to `most`.
    pub(in crate::trusted::engine) fn seconds(
        &self,
        engine: &mut dyn Engine,
        data: &Dataset,
        model: &dyn Model,
        most: f64,
    ) -> Result<f64, EngineError> {
        let Workload {
            ratios,
            gradients,
            anchors,
            listed,
            share,
        } = self.workload;
        let theta = vec![0.0; model.dim()];
        let thetas = vec![&theta[..]; self.chains];
        let mut seconds = 0.0;
        if ratios > 0 {
            let proposal = vec![1e-3; model.dim()];
            let clips = vec![1.0; self.chains];
            let query = RatioQuery::new(model, &thetas, &vec![&proposal[..]; self.chains], &clips)?;
            seconds += ratios as f64 * best_time(|| engine.ratio_sums(&query).map(|_| ()))?;
        }
        if gradients > 0 && seconds < most {
            let query = GradientQuery::new(model, &thetas, 1.0)?;
            let ask = || engine.gradient_sums(&query, Rows::All).map(|_| ());
            seconds += gradients as f64 * best_time(ask)?;
        }
        // Other models' listed rows run on the CPU whatever sums do.
        if listed > 0 && seconds < most && model.row_function().lists_on_gpu() {
            let rows = data.lines() as f64;
            let batch = (rows * f64::from(share) / 4_294_967_296.0).clamp(1.0, rows);
            let some = batch.min(LISTED).ceil();
            let queries = listed as f64 * batch / some;
            let lists = vec![(0..some as u64).collect(); self.chains];
            let query = GradientQuery::new(model, &thetas, 1.0)?;
            let ask = || {
                engine
                    .gradient_sums(&query, Rows::Listed(&lists))
                    .map(|_| ())
            };
            seconds += queries * best_time(ask)?;
        }
        if let (Some(slopes), true) = (model.slopes(), anchors > 0 && seconds < most) {
            let query = AnchorQuery {
                at: &theta,
                metric: &Metric::identity(model.dim(), data.row_norm()),
                slopes: slopes.at(&theta),
                parts: AnchorParts {
                    gradient: true,
                    curvature: true,
                    profile: None,
                },
            };
            seconds += anchors as f64 * best_time(|| engine.anchor_sums(&query).map(|_| ()))?;
        }
        Ok(seconds)
    }
}

/// Fastest of three passes after one that compiles, or one pass alone that takes long, seconds.
#[cfg(feature = "gpu")]
fn best_time(mut ask: impl FnMut() -> Result<(), EngineError>) -> Result<f64, EngineError> {
    const LONG: f64 = 1.0;
    let mut time = || {
        let start = Instant::now();
        ask().map(|()| start.elapsed().as_secs_f64())
    };
    let mut best = time()?;
    for _ in 0..3 {
        if best < LONG {
            best = best.min(time()?);
        }
    }
    Ok(best)
}

/// Everything that could compute here, the CPU first.
pub fn devices() -> Vec<EngineInfo> {
    #[allow(unused_mut)]
    let mut devices = vec![EngineInfo {
        kind: "cpu".into(),
        adapter: InstructionSet::detect().name().into(),
        driver: format!("native, {} threads", rayon::current_num_threads()),
    }];
    #[cfg(feature = "gpu")]
    devices.extend(super::gpu::adapters());
    devices
}
