//! Which engine runs, and what it says of itself.

use std::sync::Arc;
#[cfg(feature = "gpu")]
use std::time::Instant;

use serde::{Deserialize, Serialize};

#[cfg(feature = "gpu")]
use super::RatioQuery;
use super::cpu::{CpuEngine, InstructionSet};
use super::{Engine, EngineError};
use crate::data::Dataset;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSetup {
    /// What the user asks for.
    pub choice: EngineChoice,
    /// Whether the sampler asks for listed rows (minibatches). The CPU answers these, and what
    /// the GPU has no pass for.
    pub listed_rows: bool,
    /// Chains of one query, for `auto`'s measurement.
    pub chains: usize,
}

impl From<EngineChoice> for EngineSetup {
    fn from(choice: EngineChoice) -> Self {
        EngineSetup {
            choice,
            listed_rows: true,
            chains: 1,
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

/// Builds the engine asked for.
pub(in crate::trusted) fn open(
    setup: EngineSetup,
    data: Arc<Dataset>,
    model: &dyn Model,
) -> Result<Box<dyn Engine>, EngineError> {
    let cpu_only = model.row_function().shader().is_none();
    match setup.choice {
        EngineChoice::Cpu => Ok(Box::new(CpuEngine::new(data))),
        EngineChoice::Gpu if cpu_only => Err(EngineError::CpuOnly),
        EngineChoice::Gpu => open_gpu(setup, data),
        // Listed rows run on the CPU whatever sums do: nothing to measure.
        EngineChoice::Auto if setup.listed_rows || cpu_only => Ok(Box::new(CpuEngine::new(data))),
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

/// Times the sampler's own query at a public θ on both engines. A software adapter, or
/// any failure of the GPU, means the CPU.
#[cfg(feature = "gpu")]
fn faster(
    setup: EngineSetup,
    data: Arc<Dataset>,
    model: &dyn Model,
) -> Result<Box<dyn Engine>, EngineError> {
    let mut cpu = CpuEngine::new(data.clone());
    let limits = super::gpu::GpuLimits::default();
    let Ok(mut gpu) = super::gpu::GpuEngine::new(data, setup.listed_rows, limits) else {
        return Ok(Box::new(cpu));
    };
    if gpu.is_software() {
        return Ok(Box::new(cpu));
    }
    let (theta, proposal) = (vec![0.0; model.dim()], vec![1e-3; model.dim()]);
    let query = RatioQuery::new(
        model,
        &vec![&theta[..]; setup.chains],
        &vec![&proposal[..]; setup.chains],
        &vec![1.0; setup.chains],
    )?;
    let on_cpu = best_time(&mut cpu, &query)?;
    match best_time(&mut gpu, &query) {
        Ok(on_gpu) if on_gpu < on_cpu => Ok(Box::new(gpu)),
        _ => Ok(Box::new(cpu)),
    }
}

/// Fastest of three passes after one that compiles, seconds.
#[cfg(feature = "gpu")]
fn best_time(engine: &mut dyn Engine, query: &RatioQuery) -> Result<f64, EngineError> {
    engine.ratio_sums(query)?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        engine.ratio_sums(query)?;
        best = best.min(start.elapsed().as_secs_f64());
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
