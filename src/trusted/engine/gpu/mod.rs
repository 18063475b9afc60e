//! The GPU engine (wgpu): rows on the device as they are stored, feature by feature, short
//! submissions and one read-back a query; chunks beyond device memory are streamed.

mod anchor;
mod buffers;
mod device;
#[cfg(test)]
mod for_tests;
mod gradient;
mod gradient_text;
mod memory;
mod network;
mod pipelines;
mod ratio;
mod ratio_text;
mod submit;
mod text;

use std::sync::Arc;

pub(in crate::trusted) use buffers::GpuLimits;
use buffers::{Chunk, RowBuffers, chunk_bytes, words};
use device::Device;
use pipelines::{Pipelines, UNIFORM_BYTES};

use super::cpu::CpuEngine;
use super::{
    AnchorParts, AnchorQuery, AnchorSums, Engine, EngineError, EngineInfo, GradientQuery,
    GradientSum, MomentSums, RatioQuery, RatioSum, Rows,
};
use crate::data::Dataset;
use crate::model::{GradientFunction, MomentBasis, Predictor, RowFunction};

/// Rows one thread may sum in an i32.
const ROWS_PER_THREAD: usize = 1024;
/// Workgroups wanted before each takes more rows.
const WORKGROUPS: usize = 4096;
/// Threads of a workgroup of the ratio passes: few, as tiles of eight chains fill the registers.
const WORKGROUP: u32 = 128;

/// Adapters of this machine.
pub(in crate::trusted) fn adapters() -> Vec<EngineInfo> {
    device::adapters()
}

/// The engine on one device.
pub(in crate::trusted) struct GpuEngine {
    cache: submit::Cache,
    /// Empty until they are placed, and after the device was lost.
    chunks: Vec<Chunk>,
    /// What chunks that are not resident go through, and how many rows it takes.
    stream: Option<(RowBuffers, usize)>,
    pipelines: Pipelines,
    device: Device,
    workgroup: u32,
    limits: GpuLimits,
    features: usize,
    /// Words of a row on the device.
    words: usize,
    /// Steps of the columns' grids, where rows are integers of 16 bits; else empty.
    steps: Vec<f32>,
    labelled: bool,
    /// Host rows: the device may have to give up its own.
    data: Arc<Dataset>,
    /// What answers for listed rows.
    listed: Option<CpuEngine>,
    /// Bytes of rows that may be resident.
    resident: u64,
    /// Bytes of a chunk.
    chunk_bytes: u64,
    /// Bytes of scratch memory that a network's rows may take.
    scratch: usize,
}

impl GpuEngine {
    /// Opens the best adapter and uploads `data`, which the host keeps too. With `listed_rows`
    /// the host answers listed rows.
    pub fn new(
        data: Arc<Dataset>,
        listed_rows: bool,
        limits: GpuLimits,
    ) -> Result<Self, EngineError> {
        let device = Device::open(limits)?;
        let workgroup = limits.workgroup.unwrap_or(WORKGROUP);
        let mut engine = GpuEngine {
            cache: submit::Cache::default(),
            chunks: Vec::new(),
            stream: None,
            pipelines: Pipelines::new(workgroup),
            workgroup,
            limits,
            features: data.width(),
            words: words(&data),
            steps: data.steps(),
            labelled: data.labelled(),
            listed: listed_rows.then(|| CpuEngine::new(data.clone()).holding_weights()),
            resident: limits.resident.unwrap_or(u64::MAX),
            chunk_bytes: chunk_bytes(&device, &data),
            scratch: network::SCRATCH_BYTES,
            data,
            device,
        };
        engine.with_memory(|_| Ok(()))?;
        Ok(engine)
    }

    /// Whether the adapter computes in software.
    pub fn is_software(&self) -> bool {
        self.device.software
    }
}

impl Drop for GpuEngine {
    /// What a hung device uses is left to the end of the process: its driver may hold locks that
    /// freeing would wait for.
    fn drop(&mut self) {
        if self.device.is_hung() {
            std::mem::forget((
                std::mem::take(&mut self.cache),
                std::mem::take(&mut self.chunks),
                self.stream.take(),
                std::mem::replace(&mut self.pipelines, Pipelines::new(self.workgroup)),
            ));
        }
    }
}

impl Engine for GpuEngine {
    fn info(&self) -> EngineInfo {
        self.device.info.clone()
    }

    fn ratio_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        query.check(self.features, self.labelled)?;
        if let RowFunction::Layers(network) = query.function() {
            return self.with_memory(|engine| engine.network_sums(query, network));
        }
        if !query.function().on_gpu() {
            return match &mut self.listed {
                Some(cpu) => cpu.ratio_sums(query),
                None => Err(EngineError::CpuOnly),
            };
        }
        self.with_memory(|engine| engine.submit_sums(query))
    }

    fn ratio_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        self.device.check()?;
        query.check(self.features, self.labelled)?;
        if let RowFunction::Layers(network) = query.function() {
            return self.with_memory(|engine| engine.network_rows(query, network, rows, out));
        }
        match &mut self.listed {
            Some(cpu) => cpu.ratio_rows(query, rows, out),
            None if !query.function().on_gpu() => Err(EngineError::CpuOnly),
            None => self.with_memory(|engine| engine.submit_rows(query, rows, out)),
        }
    }

    /// All rows on the device; listed ones on the CPU copy, but for networks of layers, of which a
    /// row is work for a workgroup.
    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        query.check(self.features, self.labelled)?;
        if let GradientFunction::Layers(network) = query.function() {
            return self.with_memory(|engine| engine.network_gradients(query, network, rows));
        }
        if let Rows::All = rows {
            let sums = self.with_memory(|engine| match engine.gradient_shape(query) {
                Some(shape) => engine.submit_gradients(query, shape).map(Some),
                None => Ok(None),
            })?;
            if let Some(sums) = sums {
                return Ok(sums);
            }
        }
        self.device.check()?;
        match &mut self.listed {
            Some(cpu) => cpu.gradient_sums(query, rows),
            None => Err(EngineError::Query(
                "gradients of listed rows, and of models without a GPU pass, need the rows on the host: open the engine with listed_rows, or use the CPU engine".into(),
            )),
        }
    }

    /// On the device; rows too wide for its workgroup memory on the CPU copy.
    fn anchor_sums(&mut self, query: &AnchorQuery<'_>) -> Result<AnchorSums, EngineError> {
        query.check(self.data.features().len(), self.labelled)?;
        if !matches!(query.slopes.predictor, Predictor::Linear) {
            self.device.check()?;
            return self.on_host()?.anchor_sums(query);
        }
        let parts = query.parts;
        let sums = match parts.gradient || parts.curvature {
            true => self.with_memory(|engine| match engine.anchor_shape(&query.slopes) {
                Some(shape) => engine.submit_anchor(query, shape).map(Some),
                None => Ok(None),
            })?,
            false => Some(AnchorSums::zero(query.at.len())),
        };
        self.device.check()?;
        let Some(mut sums) = sums else {
            return self.on_host()?.anchor_sums(query);
        };
        // Profiles alone are summed on the host.
        if parts.profile.is_some() {
            let profile = AnchorQuery {
                parts: AnchorParts {
                    gradient: false,
                    curvature: false,
                    profile: parts.profile,
                },
                ..*query
            };
            sums.profile = self.on_host()?.anchor_sums(&profile)?.profile;
        }
        Ok(sums)
    }

    /// Made on the host: once a run.
    fn weigh_rows(&mut self, query: &AnchorQuery<'_>) -> Result<(), EngineError> {
        self.device.check()?;
        query.check(self.data.features().len(), self.labelled)?;
        self.on_host()?.weigh_rows(query)?;
        self.forget_weights();
        Ok(())
    }

    /// On the CPU copy: once a run.
    fn moment_sums(&mut self, basis: &MomentBasis) -> Result<MomentSums, EngineError> {
        self.on_host()?.moment_sums(basis)
    }
}

impl GpuEngine {
    /// Workgroups wanted before each takes more rows.
    fn groups(&self) -> usize {
        self.limits.groups.unwrap_or(WORKGROUPS)
    }

    /// Whether so many vectors of coefficients are read from a uniform buffer.
    fn is_uniform(&self, vectors: usize) -> bool {
        let most = self.device.limits.max_uniform_buffer_binding_size;
        16 * vectors <= UNIFORM_BYTES && UNIFORM_BYTES as u64 <= most.min(self.device.binding())
    }

    fn on_host(&mut self) -> Result<&mut CpuEngine, EngineError> {
        self.listed.as_mut().ok_or_else(|| {
            EngineError::Query(
                "moments, row weights and profiles at an anchor, and anchors of rows this wide, need the rows on the host: open the engine with listed_rows, or use the CPU engine".into(),
            )
        })
    }
}
