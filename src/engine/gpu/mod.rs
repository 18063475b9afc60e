//! The GPU engine (wgpu): rows feature-major on the device, one submission and one
//! read-back a query; chunks beyond device memory are streamed.

mod anchor;
mod buffers;
mod device;
mod gradient;
mod pipelines;
mod ratio;
mod submit;

use std::sync::Arc;

pub(crate) use buffers::GpuLimits;
use buffers::{Chunk, RowBuffers, place, row_buffers, upload_weights};
use device::Device;
use pipelines::Pipelines;

use super::cpu::CpuEngine;
use super::{
    AnchorParts, AnchorQuery, AnchorSums, Engine, EngineError, EngineInfo, GradientQuery,
    GradientSum, MomentSums, RatioQuery, RatioSum, Rows,
};
use crate::data::Dataset;
use crate::model::{MomentBasis, Predictor};

/// Rows one thread may sum in an i32.
const ROWS_PER_THREAD: usize = 1024;
/// Workgroups wanted before threads take more rows.
const WORKGROUPS: usize = 2048;

/// Adapters of this machine.
pub(crate) fn adapters() -> Vec<EngineInfo> {
    device::adapters()
}

/// Device-to-device copy bandwidth in bytes a second, read plus write, and whether the
/// adapter is a software one.
pub(crate) fn copy_bandwidth() -> Result<(f64, bool), EngineError> {
    let device = Device::open()?;
    let wanted = if device.software { 1 << 26 } else { 1 << 31 };
    let bytes = device.limits.max_buffer_size.min(wanted) & !3;
    let buffer = |usage| {
        device.scoped(|| {
            device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("bandwidth"),
                size: bytes,
                usage,
                mapped_at_creation: false,
            })
        })
    };
    let from = buffer(wgpu::BufferUsages::COPY_SRC)?;
    let to = buffer(wgpu::BufferUsages::COPY_DST)?;
    let mut best = 0.0f64;
    for _ in 0..5 {
        let mut encoder = device.device.create_command_encoder(&Default::default());
        for _ in 0..8 {
            encoder.copy_buffer_to_buffer(&from, 0, &to, 0, Some(bytes));
        }
        let start = std::time::Instant::now();
        let index = device.queue.submit([encoder.finish()]);
        device.wait(index)?;
        best = best.max(16.0 * bytes as f64 / start.elapsed().as_secs_f64());
    }
    Ok((best, device.software))
}

/// The engine on one device.
pub(crate) struct GpuEngine {
    device: Device,
    pipelines: Pipelines,
    workgroup: u32,
    limits: GpuLimits,
    features: usize,
    labelled: bool,
    chunks: Vec<Chunk>,
    /// Host rows: for streamed chunks and, on the CPU, for listed rows.
    host: Option<Arc<Dataset>>,
    listed: Option<CpuEngine>,
    stream: Option<RowBuffers>,
    cache: submit::Cache,
}

impl GpuEngine {
    /// Opens the best adapter and uploads `data`. With `listed_rows` the CPU copy stays
    /// and answers listed rows; without, it is dropped once all rows are on the device.
    pub fn new(
        data: Arc<Dataset>,
        listed_rows: bool,
        limits: GpuLimits,
    ) -> Result<Self, EngineError> {
        let device = Device::open()?;
        let workgroup = limits.workgroup.unwrap_or(256);
        let chunks = place(&device, &data, limits)?;
        let streamed = chunks
            .iter()
            .filter(|c| c.buffers.is_none())
            .map(|c| c.rows)
            .max();
        let stream = match streamed {
            Some(rows) => Some(row_buffers(&device, &data, rows)?),
            None => None,
        };
        Ok(GpuEngine {
            pipelines: Pipelines::new(workgroup),
            workgroup,
            limits,
            features: data.features().len(),
            labelled: data.labelled(),
            chunks,
            listed: listed_rows.then(|| CpuEngine::new(data.clone())),
            host: (streamed.is_some()).then_some(data),
            stream,
            cache: submit::Cache::default(),
            device,
        })
    }

    /// Whether the adapter computes in software.
    pub fn is_software(&self) -> bool {
        self.device.software
    }

    /// Gives the device up, as a driver reset would.
    #[cfg(test)]
    pub fn lose(&self) {
        self.device.device.destroy();
    }

    /// Other rows of the same width and kind, with the pipelines made so far.
    #[cfg(test)]
    pub fn reload(&mut self, data: &Arc<Dataset>) -> Result<(), EngineError> {
        self.chunks = place(&self.device, data, self.limits)?;
        self.cache = submit::Cache::default();
        Ok(())
    }

    /// Workgroups of a chunk and quads each thread takes.
    fn shape(&self, chunk: &Chunk) -> (u32, u32) {
        let group = self.workgroup as usize;
        let per_thread = chunk
            .quads()
            .div_ceil(WORKGROUPS * group)
            .clamp(1, ROWS_PER_THREAD / 4);
        let groups = chunk.quads().div_ceil(per_thread * group);
        (groups as u32, per_thread as u32)
    }
}

impl Engine for GpuEngine {
    fn info(&self) -> EngineInfo {
        self.device.info.clone()
    }

    fn ratio_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        query.check(self.features, self.labelled)?;
        if query.function().shader().is_none() {
            return match &mut self.listed {
                Some(cpu) => cpu.ratio_sums(query),
                None => Err(EngineError::CpuOnly),
            };
        }
        self.submit_sums(query)
    }

    fn ratio_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        self.device.check()?;
        query.check(self.features, self.labelled)?;
        match &mut self.listed {
            Some(cpu) => cpu.ratio_rows(query, rows, out),
            None if query.function().shader().is_none() => Err(EngineError::CpuOnly),
            None => self.submit_rows(query, rows, out),
        }
    }

    /// All rows on the device; listed ones on the CPU copy.
    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        self.device.check()?;
        query.check(self.features, self.labelled)?;
        if let (Rows::All, Some(shape)) = (rows, self.gradient_shape(query)) {
            return self.submit_gradients(query, shape);
        }
        match &mut self.listed {
            Some(cpu) => cpu.gradient_sums(query, rows),
            None => Err(EngineError::Query(
                "gradients of listed rows, and of models without a GPU pass, need the rows on the host: open the engine with listed_rows, or use the CPU engine".into(),
            )),
        }
    }

    /// On the device; rows too wide for its workgroup memory on the CPU copy.
    fn anchor_sums(&mut self, query: &AnchorQuery<'_>) -> Result<AnchorSums, EngineError> {
        self.device.check()?;
        query.check(self.features, self.labelled)?;
        let shape = self.anchor_shape(query.slopes.score);
        let (Predictor::Linear, Some(shape)) = (query.slopes.predictor, shape) else {
            return self.on_host()?.anchor_sums(query);
        };
        let parts = query.parts;
        // Norms alone are summed on the host.
        let profile = match parts.profile {
            true => {
                let norms = AnchorQuery {
                    parts: AnchorParts {
                        gradient: false,
                        curvature: false,
                        profile: true,
                    },
                    ..*query
                };
                Some(self.on_host()?.anchor_sums(&norms)?.profile)
            }
            false => None,
        };
        let mut sums = match parts.gradient || parts.curvature {
            true => self.submit_anchor(query, shape)?,
            false => AnchorSums::zero(self.features),
        };
        if let Some(profile) = profile {
            sums.profile = profile;
        }
        Ok(sums)
    }

    /// Made on the host: once a run.
    fn weigh_rows(&mut self, query: &AnchorQuery<'_>) -> Result<(), EngineError> {
        self.device.check()?;
        query.check(self.features, self.labelled)?;
        let host = self.on_host()?;
        host.weigh_rows(query)?;
        let weights = host.weights().to_vec();
        let weight = |i: usize| weights.get(i).copied().unwrap_or(0.0);
        upload_weights(&self.device, &mut self.chunks, weight)?;
        self.cache.forget_groups();
        Ok(())
    }

    /// On the CPU copy: once a run.
    fn moment_sums(&mut self, basis: &MomentBasis) -> Result<MomentSums, EngineError> {
        self.on_host()?.moment_sums(basis)
    }
}

impl GpuEngine {
    fn on_host(&mut self) -> Result<&mut CpuEngine, EngineError> {
        self.listed.as_mut().ok_or_else(|| {
            EngineError::Query(
                "moments, row weights and profiles at an anchor, and anchors of rows this wide, need the rows on the host: open the engine with listed_rows, or use the CPU engine".into(),
            )
        })
    }
}
