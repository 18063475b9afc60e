//! One query: parameters up, one submission, answers back. Buffers and bind groups are
//! kept from query to query.

use std::collections::HashMap;
use std::sync::mpsc;

use super::GpuEngine;
use super::buffers::{RowBuffers, upload};
use super::pipelines::Program;
use crate::engine::EngineError;

/// Distance of two uniforms in their buffer.
const PARAMS_STRIDE: usize = 256;
/// Bytes of a uniform as bound: room for every pass's.
const PARAMS_BYTES: usize = 64;
const MAX_GROUPS: u32 = 65_535;

/// Buffers that grow with the largest query seen.
#[derive(Default)]
pub(super) struct Cache {
    params: Option<wgpu::Buffer>,
    coefficients: Option<wgpu::Buffer>,
    entries: Option<wgpu::Buffer>,
    answers: Option<wgpu::Buffer>,
    readback: Option<wgpu::Buffer>,
    /// Bind groups of every program used, one a chunk; a new buffer empties this.
    groups: HashMap<Program, Vec<wgpu::BindGroup>>,
}

/// Makes or enlarges a buffer; true where it is new.
fn ensure(
    device: &wgpu::Device,
    slot: &mut Option<wgpu::Buffer>,
    bytes: usize,
    usage: wgpu::BufferUsages,
) -> bool {
    if slot.as_ref().is_some_and(|b| b.size() >= bytes as u64) {
        return false;
    }
    *slot = Some(device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("query"),
        size: bytes.next_power_of_two().max(256) as u64,
        usage,
        mapped_at_creation: false,
    }));
    true
}

/// One dispatch: chunk, parameters, workgroups.
pub(super) struct Dispatch {
    pub chunk: usize,
    pub params: [u8; PARAMS_BYTES],
    pub groups: u32,
}

/// A pass's uniform as it is uploaded, padded.
pub(super) fn uniform(params: &impl bytemuck::Pod) -> [u8; PARAMS_BYTES] {
    let bytes = bytemuck::bytes_of(params);
    let mut out = [0; PARAMS_BYTES];
    out[..bytes.len()].copy_from_slice(bytes);
    out
}

/// What one query runs.
pub(super) struct Job<'a> {
    pub program: Program,
    pub coefficients: &'a [f32],
    pub entries: &'a [u8],
    pub dispatches: &'a [Dispatch],
    /// Bytes of answers.
    pub answers: usize,
    /// Whether the dispatches add to answers that start at zero.
    pub zeroed: bool,
}

impl Cache {
    /// Bind groups are made anew for the next query.
    pub fn forget_groups(&mut self) {
        self.groups.clear();
    }
}

impl GpuEngine {
    /// Runs the dispatches and reads the answers back.
    pub(super) fn submit(&mut self, job: &Job<'_>) -> Result<Vec<u8>, EngineError> {
        self.device.check()?;
        let dispatches = job.dispatches;
        let mut params = vec![0u8; dispatches.len() * PARAMS_STRIDE];
        for (slot, dispatch) in params.chunks_mut(PARAMS_STRIDE).zip(dispatches) {
            slot[..PARAMS_BYTES].copy_from_slice(&dispatch.params);
        }
        self.prepare(job, params.len())?;
        let (device, cache) = (&self.device, &self.cache);
        let write = |buffer: &Option<wgpu::Buffer>, bytes: &[u8]| {
            if let (Some(buffer), false) = (buffer, bytes.is_empty()) {
                device.queue.write_buffer(buffer, 0, bytes);
            }
        };
        write(&cache.params, &params);
        write(&cache.coefficients, bytemuck::cast_slice(job.coefficients));
        write(&cache.entries, job.entries);
        let (pipeline, _) = self.pipelines.get(device, job.program)?;
        let (Some(bind_groups), Some(answers), Some(readback)) = (
            cache.groups.get(&job.program),
            &cache.answers,
            &cache.readback,
        ) else {
            return Err(EngineError::Device("buffers vanished".into()));
        };
        let bytes = job.answers as u64;
        // Resident chunks share one submission; streamed ones come first, each after its copy.
        let (resident, streamed): (Vec<usize>, Vec<usize>) = (0..dispatches.len())
            .partition(|&i| self.chunks[dispatches[i].chunk].buffers.is_some());
        let encode = |encoder: &mut wgpu::CommandEncoder, which: &[usize]| {
            let mut compute = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            compute.set_pipeline(pipeline);
            for &i in which {
                let d = &dispatches[i];
                compute.set_bind_group(0, &bind_groups[d.chunk], &[(i * PARAMS_STRIDE) as u32]);
                // Rows of equal width: hardly a workgroup is idle.
                let height = d.groups.div_ceil(MAX_GROUPS).max(1);
                compute.dispatch_workgroups(d.groups.div_ceil(height), height, 1);
            }
        };
        let mut encoder = device
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        if job.zeroed {
            encoder.clear_buffer(answers, 0, Some(bytes));
        }
        for same in streamed.chunk_by(|&a, &b| dispatches[a].chunk == dispatches[b].chunk) {
            let chunk = &self.chunks[dispatches[same[0]].chunk];
            if let (Some(host), Some(stream)) = (&self.host, &self.stream) {
                upload(device, host, chunk.first, chunk.rows, stream);
            }
            encode(&mut encoder, same);
            let fresh = device
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            device
                .queue
                .submit([std::mem::replace(&mut encoder, fresh).finish()]);
        }
        if !resident.is_empty() {
            encode(&mut encoder, &resident);
        }
        encoder.copy_buffer_to_buffer(answers, 0, readback, 0, Some(bytes));
        let (sender, receiver) = mpsc::channel();
        encoder.map_buffer_on_submit(readback, wgpu::MapMode::Read, ..bytes, move |r| {
            // The receiver outlives the poll below unless the device was lost.
            let _ = sender.send(r);
        });
        let index = device.queue.submit([encoder.finish()]);
        device.wait(index)?;
        match receiver.try_recv() {
            Ok(Ok(())) => {}
            Ok(Err(e)) => return Err(EngineError::DeviceLost(e.to_string())),
            Err(e) => return Err(EngineError::DeviceLost(e.to_string())),
        }
        let view = readback
            .get_mapped_range(..bytes)
            .map_err(|e| EngineError::Device(e.to_string()))?;
        let bytes = view.to_vec();
        drop(view);
        readback.unmap();
        Ok(bytes)
    }

    /// Buffers large enough and bind groups over them.
    fn prepare(&mut self, job: &Job<'_>, params: usize) -> Result<(), EngineError> {
        use wgpu::BufferUsages as Usage;
        let cache = &mut self.cache;
        let device = &self.device;
        let (coefficients, entries) = (4 * job.coefficients.len(), job.entries.len());
        let fresh = device.scoped(|| {
            let d = &device.device;
            let storage = Usage::STORAGE | Usage::COPY_DST;
            let uniform = Usage::UNIFORM | Usage::COPY_DST;
            let readable = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
            let mapped = Usage::MAP_READ | Usage::COPY_DST;
            [
                ensure(d, &mut cache.params, params, uniform),
                ensure(d, &mut cache.coefficients, coefficients, storage),
                ensure(d, &mut cache.entries, entries.max(16), storage),
                ensure(d, &mut cache.answers, job.answers, readable),
                ensure(d, &mut cache.readback, job.answers, mapped),
            ]
        })?;
        if fresh.iter().any(|f| *f) {
            cache.groups.clear();
        }
        if cache.groups.contains_key(&job.program) {
            return Ok(());
        }
        let (_, layout) = self.pipelines.get(device, job.program)?;
        let (Some(params), Some(coefficients), Some(entries), Some(answers)) = (
            &cache.params,
            &cache.coefficients,
            &cache.entries,
            &cache.answers,
        ) else {
            return Err(EngineError::Device("buffers vanished".into()));
        };
        let stream = self.stream.as_ref();
        let groups: Vec<wgpu::BindGroup> = device.scoped(|| {
            self.chunks
                .iter()
                .filter_map(|chunk| Some((chunk.buffers.as_ref().or(stream)?, &chunk.weights)))
                .map(|(rows, weights): (&RowBuffers, &Option<wgpu::Buffer>)| {
                    let labels = match weights {
                        Some(weights) if job.program.is_weighted() => weights,
                        _ => &rows.labels,
                    };
                    let uniform = wgpu::BufferBinding {
                        buffer: params,
                        offset: 0,
                        size: wgpu::BufferSize::new(PARAMS_BYTES as u64),
                    };
                    let mut bound = vec![
                        wgpu::BindingResource::Buffer(uniform),
                        rows.rows.as_entire_binding(),
                        labels.as_entire_binding(),
                        coefficients.as_entire_binding(),
                    ];
                    if job.program.has_entries() {
                        bound.push(entries.as_entire_binding());
                    }
                    bound.push(answers.as_entire_binding());
                    let entries: Vec<wgpu::BindGroupEntry<'_>> = bound
                        .into_iter()
                        .enumerate()
                        .map(|(i, resource)| wgpu::BindGroupEntry {
                            binding: i as u32,
                            resource,
                        })
                        .collect();
                    device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                        label: Some("query"),
                        layout,
                        entries: &entries,
                    })
                })
                .collect()
        })?;
        cache.groups.insert(job.program, groups);
        Ok(())
    }
}
