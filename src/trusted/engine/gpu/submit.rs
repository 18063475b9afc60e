//! One query: parameters up, submissions that are short each, answers back. Buffers and bind
//! groups are kept from query to query.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc;

use super::GpuEngine;
use super::buffers::{Chunk, RowBuffers};
use super::device::{Buffer, Device};
use super::pipelines::{Program, UNIFORM_BYTES};
use crate::engine::EngineError;

/// Distance of two uniforms in their buffer.
const PARAMS_STRIDE: usize = 256;
/// Bytes of a uniform as bound: room for every pass's.
const PARAMS_BYTES: usize = 144;
pub(super) const MAX_GROUPS: u32 = 65_535;
/// Submissions under way, at most: a driver whose queue is full waits, and no deadline ends that.
/// And where each has a copy of a chunk, which is in the host's memory until it is done.
const QUEUED: [usize; 2] = [8, 2];

/// Buffers that grow with the largest query seen.
#[derive(Default)]
pub(super) struct Cache {
    params: Option<Buffer>,
    coefficients: Option<Buffer>,
    entries: Option<Buffer>,
    answers: Option<Buffer>,
    readback: Option<Buffer>,
    scratch: Option<Buffer>,
    /// Bind groups of every program used, one a chunk; a new buffer empties this.
    groups: HashMap<Program, Vec<wgpu::BindGroup>>,
}

/// The programs of these dispatches, each once.
fn programs(dispatches: &[Dispatch]) -> HashSet<Program> {
    dispatches.iter().map(|d| d.program).collect()
}

fn short(slot: &Option<Buffer>, bytes: usize) -> bool {
    slot.as_ref().is_none_or(|b| b.size() < bytes as u64)
}

/// Bytes of the largest buffer for this.
fn largest(device: &Device, usage: wgpu::BufferUsages) -> u64 {
    match usage.contains(wgpu::BufferUsages::STORAGE) {
        true => device.binding(),
        false => device.limits.max_buffer_size,
    }
}

/// Makes or enlarges a buffer.
fn ensure(
    device: &Device,
    slot: &mut Option<Buffer>,
    what: &'static str,
    bytes: usize,
    usage: wgpu::BufferUsages,
) -> Result<(), EngineError> {
    if short(slot, bytes) {
        // Room for larger queries to come.
        let wanted = (bytes as u64).next_power_of_two().max(256);
        let wanted = wanted.min(largest(device, usage));
        *slot = None;
        *slot = Some(device.buffer(what, wanted, usage)?);
    }
    Ok(())
}

/// Some dispatches of one submission, after the copy of a streamed chunk that they read.
struct Piece {
    upload: Option<usize>,
    dispatches: Vec<usize>,
}

/// One dispatch: what it runs and reads, parameters, workgroups.
pub(super) struct Dispatch {
    pub program: Program,
    pub chunk: usize,
    /// Bytes of rows that it reads, each tile for itself.
    pub bytes: u64,
    pub params: [u8; PARAMS_BYTES],
    /// Tiles of chains, side by side, and workgroups of each.
    pub tiles: u32,
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
    pub coefficients: &'a [f32],
    pub entries: &'a [u8],
    pub dispatches: &'a [Dispatch],
    /// Bytes of answers.
    pub answers: usize,
    /// Whether the dispatches add to answers that start at zero.
    pub zeroed: bool,
    /// Bytes of scratch memory, if the program has any.
    pub scratch: usize,
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
        let write = |buffer: &Option<Buffer>, bytes: &[u8]| {
            if let (Some(buffer), false) = (buffer, bytes.is_empty()) {
                device.write(buffer, 0, bytes);
            }
        };
        write(&cache.params, &params);
        write(&cache.coefficients, bytemuck::cast_slice(job.coefficients));
        write(&cache.entries, job.entries);
        let mut pipelines = HashMap::new();
        for program in programs(dispatches) {
            let pipeline = self.pipelines.get(device, program)?.0.clone();
            let Some(groups) = cache.groups.get(&program) else {
                return Err(EngineError::Device("bind groups vanished".into()));
            };
            pipelines.insert(program, (pipeline, groups));
        }
        let (Some(answers), Some(readback)) = (&cache.answers, &cache.readback) else {
            return Err(EngineError::Device("buffers vanished".into()));
        };
        let bytes = job.answers as u64;
        let encode = |encoder: &mut wgpu::CommandEncoder, which: &[usize]| {
            let mut compute = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let mut set = None;
            for &i in which {
                let d = &dispatches[i];
                let (pipeline, groups) = &pipelines[&d.program];
                if set != Some(d.program) {
                    compute.set_pipeline(pipeline);
                    set = Some(d.program);
                }
                compute.set_bind_group(0, &groups[d.chunk], &[(i * PARAMS_STRIDE) as u32]);
                // Rows of equal length: hardly a workgroup is idle.
                let height = d.groups.div_ceil(MAX_GROUPS).max(1);
                compute.dispatch_workgroups(d.tiles, d.groups.div_ceil(height), height);
            }
        };
        let mut submitted: Vec<wgpu::SubmissionIndex> = Vec::new();
        let (sender, receiver) = mpsc::channel();
        let pieces = self.pieces(dispatches);
        for (i, piece) in pieces.iter().enumerate() {
            let queued = QUEUED[usize::from(piece.upload.is_some())];
            if let Some(older) = submitted.len().checked_sub(queued) {
                device.wait(submitted[older].clone())?;
            }
            if let Some(chunk) = piece.upload {
                self.upload(&self.chunks[chunk]);
            }
            let mut encoder = device.device.create_command_encoder(&Default::default());
            if i == 0 && job.zeroed {
                encoder.clear_buffer(answers, 0, Some(bytes));
            }
            encode(&mut encoder, &piece.dispatches);
            if i + 1 == pieces.len() {
                encoder.copy_buffer_to_buffer(answers, 0, readback, 0, Some(bytes));
                let sender = sender.clone();
                encoder.map_buffer_on_submit(readback, wgpu::MapMode::Read, ..bytes, move |r| {
                    // The receiver outlives the poll below unless the device was lost.
                    let _ = sender.send(r);
                });
            }
            submitted.push(device.submit(Some(encoder.finish()))?);
        }
        // One by one: each has the whole deadline, from when the one before it was done.
        for index in submitted {
            device.wait(index)?;
        }
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

    /// Dispatches in the order of their submissions: streamed chunks first, each after its copy.
    fn pieces(&self, dispatches: &[Dispatch]) -> Vec<Piece> {
        let chunk = |i: usize| &self.chunks[dispatches[i].chunk];
        let (resident, streamed): (Vec<usize>, Vec<usize>) =
            (0..dispatches.len()).partition(|&i| chunk(i).buffers.is_some());
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut bytes, mut copied) = (0, None);
        for i in streamed.into_iter().chain(resident) {
            let own = dispatches[i].bytes;
            let streamed = chunk(i).buffers.is_none().then_some(dispatches[i].chunk);
            let upload = streamed.filter(|_| streamed != copied);
            match pieces.last_mut() {
                Some(piece) if upload.is_none() && bytes + own <= self.device.piece() => {
                    piece.dispatches.push(i);
                    bytes += own;
                }
                _ => {
                    pieces.push(Piece {
                        upload,
                        dispatches: vec![i],
                    });
                    bytes = own;
                }
            }
            copied = streamed;
        }
        pieces
    }

    /// Copies a chunk to where it is streamed through.
    fn upload(&self, chunk: &Chunk) {
        if let Some((stream, _)) = &self.stream {
            stream.upload(&self.device, &self.data, chunk.first, chunk.rows);
            let weights = self.listed.as_ref().map_or(&[][..], |cpu| cpu.weights());
            stream.upload_weights(&self.device, &self.data, weights, (chunk.first, chunk.rows));
        }
    }

    /// Buffers large enough and bind groups over them.
    fn prepare(&mut self, job: &Job<'_>, params: usize) -> Result<(), EngineError> {
        use wgpu::BufferUsages as Usage;
        let cache = &mut self.cache;
        let device = &self.device;
        let storage = Usage::STORAGE | Usage::COPY_DST;
        let uniform = Usage::UNIFORM | Usage::COPY_DST;
        let readable = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
        let mapped = Usage::MAP_READ | Usage::COPY_DST;
        let uniforms = job.dispatches.iter().any(|d| d.program.is_uniform());
        let least = [0, UNIFORM_BYTES][usize::from(uniforms)];
        let (coefficients, answers) = (least.max(4 * job.coefficients.len()), job.answers);
        let entries = job.entries.len().max(16);
        let wanted = [
            (&mut cache.params, "a query's uniforms", params, uniform),
            (
                &mut cache.coefficients,
                "a query's parameters",
                coefficients,
                storage | Usage::UNIFORM,
            ),
            (&mut cache.entries, "listed rows", entries, storage),
            (&mut cache.answers, "answers", answers, readable),
            (&mut cache.readback, "answers read back", answers, mapped),
            (
                &mut cache.scratch,
                "values of rows",
                job.scratch,
                Usage::STORAGE,
            ),
        ];
        for (_, what, bytes, usage) in &wanted {
            let most = largest(device, *usage);
            if *bytes as u64 > most {
                return Err(EngineError::Device(format!(
                    "{what} take more bytes than it allows at once; ask for fewer chains, or use `--engine cpu`"
                )));
            }
        }
        if wanted.iter().any(|(slot, _, bytes, _)| short(slot, *bytes)) {
            // They keep the buffers that they name.
            cache.groups.clear();
        }
        for (slot, what, bytes, usage) in wanted {
            ensure(device, slot, what, bytes, usage)?;
        }
        for program in programs(job.dispatches) {
            self.prepare_groups(program)?;
        }
        Ok(())
    }

    /// Bind groups of a program, one a chunk.
    fn prepare_groups(&mut self, program: Program) -> Result<(), EngineError> {
        let (device, cache) = (&self.device, &mut self.cache);
        if cache.groups.contains_key(&program) {
            return Ok(());
        }
        let (_, layout) = self.pipelines.get(device, program)?;
        let (Some(params), Some(coefficients), Some(entries), Some(answers), Some(scratch)) = (
            &cache.params,
            &cache.coefficients,
            &cache.entries,
            &cache.answers,
            &cache.scratch,
        ) else {
            return Err(EngineError::Device("buffers vanished".into()));
        };
        let stream = self.stream.as_ref().map(|(stream, _)| stream);
        let all = const { std::num::NonZeroU64::new(UNIFORM_BYTES as u64).unwrap() };
        let groups: Vec<wgpu::BindGroup> = device.scoped(|| {
            self.chunks
                .iter()
                .filter_map(|chunk| chunk.buffers.as_ref().or(stream))
                .map(|rows: &RowBuffers| {
                    let labels = match &rows.weights {
                        Some(weights) if program.is_weighted() => weights,
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
                        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                            buffer: coefficients,
                            offset: 0,
                            size: program.is_uniform().then_some(all),
                        }),
                    ];
                    if program.has_entries() {
                        bound.push(entries.as_entire_binding());
                    }
                    bound.push(answers.as_entire_binding());
                    if program.has_scratch() {
                        bound.push(scratch.as_entire_binding());
                    }
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
        cache.groups.insert(program, groups);
        Ok(())
    }
}
