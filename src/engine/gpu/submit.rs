//! One query: parameters up, one submission, answers back. Buffers and bind groups are
//! kept from query to query.

use std::sync::mpsc;

use super::GpuEngine;
use super::buffers::{Params, RowBuffers, upload};
use super::pipelines::{MAX_TILE, Pass};
use crate::engine::{EngineError, RatioQuery, RatioSum};

/// Distance of two uniforms in their buffer.
const PARAMS_STRIDE: usize = 256;
const MAX_GROUPS: u32 = 65_535;

/// Buffers that grow with the largest query seen.
#[derive(Default)]
pub(super) struct Cache {
    params: Option<wgpu::Buffer>,
    coefficients: Option<wgpu::Buffer>,
    entries: Option<wgpu::Buffer>,
    answers: Option<wgpu::Buffer>,
    readback: Option<wgpu::Buffer>,
    /// Bind groups of the last pass, one a chunk, and what they were made for.
    groups: Vec<wgpu::BindGroup>,
    made_for: Option<(Pass, usize)>,
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

/// Coefficients of a tile of `tile` chains from `first`, padded with silent chains:
/// scales, bounds, offsets, weights.
fn tile_coefficients(query: &RatioQuery, first: usize, tile: usize, out: &mut Vec<f32>) {
    let k = query.function().forms();
    let live = |c: usize| first + c < query.chains();
    out.extend((0..tile).map(|c| if live(c) { query.scale(first + c) } else { 0.0 }));
    out.extend((0..tile).map(|c| {
        if live(c) {
            query.grid(first + c).bound() as f32
        } else {
            1.0
        }
    }));
    for f in 0..k {
        out.extend((0..tile).map(|c| {
            if live(c) {
                query.offset(first + c, f)
            } else {
                0.0
            }
        }));
    }
    for j in 0..query.features() {
        for f in 0..k {
            out.extend((0..tile).map(|c| {
                if live(c) {
                    query.weight(first + c, f, j)
                } else {
                    0.0
                }
            }));
        }
    }
}

/// One dispatch: chunk, parameters, workgroups.
struct Dispatch {
    chunk: usize,
    params: Params,
    groups: u32,
}

impl GpuEngine {
    pub(super) fn submit_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        let tile = query.chains().next_power_of_two().min(MAX_TILE);
        let tiles = query.chains().div_ceil(tile);
        let mut coefficients = Vec::new();
        let mut dispatches = Vec::new();
        let mut slots = 0u32;
        for t in 0..tiles {
            let start = coefficients.len() as u32;
            tile_coefficients(query, t * tile, tile, &mut coefficients);
            for (index, chunk) in self.chunks.iter().enumerate() {
                let (groups, quads_per_thread) = self.shape(chunk);
                dispatches.push(Dispatch {
                    chunk: index,
                    groups,
                    params: Params {
                        rows: chunk.rows as u32,
                        quads: chunk.quads() as u32,
                        features: self.features as u32,
                        quads_per_thread,
                        first_slot: slots,
                        coefficients: start,
                        labelled: u32::from(self.labelled),
                        entries: 0,
                    },
                });
                slots += groups;
            }
        }
        let bytes = slots as usize * tile * 16;
        let answers = self.submit(
            Pass::RatioSum,
            query,
            tile,
            &coefficients,
            &[],
            &dispatches,
            bytes,
        )?;
        let answers: &[[i32; 4]] = bytemuck::cast_slice(&answers);
        let per_tile = slots as usize / tiles;
        Ok((0..query.chains())
            .map(|c| {
                let mut sum = RatioSum::default();
                for slot in (c / tile) * per_tile..(c / tile + 1) * per_tile {
                    let [low, high, saturated, _] = answers[slot * tile + c % tile];
                    sum.steps += i64::from(high) * 65_536 + i64::from(low);
                    sum.saturated += saturated as u64;
                }
                sum.steps *= i64::from(query.sign(c));
                sum
            })
            .collect())
    }

    pub(super) fn submit_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        let mut coefficients = Vec::new();
        for c in 0..query.chains() {
            tile_coefficients(query, c, 1, &mut coefficients);
        }
        // Entries sorted by chunk; each remembers the place of its answer.
        let mut by_chunk: Vec<Vec<[u32; 4]>> = vec![Vec::new(); self.chunks.len()];
        let mut place = 0u32;
        for (c, rows) in rows.iter().enumerate() {
            for &row in rows {
                let chunk = self.chunks.partition_point(|k| k.first <= row as usize) - 1;
                let local = row as usize - self.chunks[chunk].first;
                by_chunk[chunk].push([local as u32, c as u32, place, 0]);
                place += 1;
            }
        }
        let mut dispatches = Vec::new();
        let mut first = 0u32;
        for (index, entries) in by_chunk.iter().enumerate().filter(|(_, e)| !e.is_empty()) {
            let chunk = &self.chunks[index];
            dispatches.push(Dispatch {
                chunk: index,
                groups: (entries.len() as u32).div_ceil(self.workgroup),
                params: Params {
                    rows: chunk.rows as u32,
                    quads: chunk.quads() as u32,
                    features: self.features as u32,
                    first_slot: first,
                    labelled: u32::from(self.labelled),
                    entries: entries.len() as u32,
                    ..Params::default()
                },
            });
            first += entries.len() as u32;
        }
        let entries: Vec<[u32; 4]> = by_chunk.concat();
        if entries.is_empty() {
            out.iter_mut().for_each(Vec::clear);
            return Ok(());
        }
        let bytes = 4 * place as usize;
        let answers = self.submit(
            Pass::RatioRows,
            query,
            1,
            &coefficients,
            bytemuck::cast_slice(&entries),
            &dispatches,
            bytes,
        )?;
        let mut answers = bytemuck::cast_slice::<u8, i32>(&answers).iter();
        for (c, (rows, out)) in rows.iter().zip(out).enumerate() {
            out.clear();
            out.extend(answers.by_ref().take(rows.len()).map(|q| q * query.sign(c)));
        }
        Ok(())
    }

    /// Runs the dispatches and reads `bytes` of answers back.
    #[allow(clippy::too_many_arguments)]
    fn submit(
        &mut self,
        pass: Pass,
        query: &RatioQuery,
        tile: usize,
        coefficients: &[f32],
        entries: &[u8],
        dispatches: &[Dispatch],
        bytes: usize,
    ) -> Result<Vec<u8>, EngineError> {
        self.device.check()?;
        let mut params = vec![0u8; dispatches.len() * PARAMS_STRIDE];
        for (slot, dispatch) in params.chunks_mut(PARAMS_STRIDE).zip(dispatches) {
            slot[..std::mem::size_of::<Params>()]
                .copy_from_slice(bytemuck::bytes_of(&dispatch.params));
        }
        self.prepare(
            pass,
            query,
            tile,
            coefficients.len() * 4,
            entries.len(),
            params.len(),
            bytes,
        )?;
        let (device, cache) = (&self.device, &self.cache);
        let write = |buffer: &Option<wgpu::Buffer>, bytes: &[u8]| {
            if let (Some(buffer), false) = (buffer, bytes.is_empty()) {
                device.queue.write_buffer(buffer, 0, bytes);
            }
        };
        write(&cache.params, &params);
        write(&cache.coefficients, bytemuck::cast_slice(coefficients));
        write(&cache.entries, entries);
        let (pipeline, _) = self.pipelines.get(device, pass, query.function(), tile)?;
        // Resident chunks share one submission; streamed ones follow, each after its copy.
        let (resident, streamed): (Vec<usize>, Vec<usize>) = (0..dispatches.len())
            .partition(|&i| self.chunks[dispatches[i].chunk].buffers.is_some());
        let encode = |encoder: &mut wgpu::CommandEncoder, which: &[usize]| {
            let mut compute = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            compute.set_pipeline(pipeline);
            for &i in which {
                let d = &dispatches[i];
                compute.set_bind_group(0, &cache.groups[d.chunk], &[(i * PARAMS_STRIDE) as u32]);
                let width = d.groups.min(MAX_GROUPS);
                compute.dispatch_workgroups(width, d.groups.div_ceil(width), 1);
            }
        };
        let encoder = || {
            device
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
        };
        for &i in &streamed {
            let chunk = &self.chunks[dispatches[i].chunk];
            if let (Some(host), Some(stream)) = (&self.host, &self.stream) {
                upload(device, host, chunk.first, chunk.rows, stream);
            }
            let mut one = encoder();
            encode(&mut one, &[i]);
            device.queue.submit([one.finish()]);
        }
        let mut last = encoder();
        if !resident.is_empty() {
            encode(&mut last, &resident);
        }
        let (Some(answers), Some(readback)) = (&cache.answers, &cache.readback) else {
            return Err(EngineError::Device("buffers vanished".into()));
        };
        last.copy_buffer_to_buffer(answers, 0, readback, 0, Some(bytes as u64));
        let (sender, receiver) = mpsc::channel();
        last.map_buffer_on_submit(readback, wgpu::MapMode::Read, ..bytes as u64, move |r| {
            // The receiver outlives the poll below unless the device was lost.
            let _ = sender.send(r);
        });
        let index = device.queue.submit([last.finish()]);
        device.wait(index)?;
        match receiver.try_recv() {
            Ok(Ok(())) => {}
            Ok(Err(e)) => return Err(EngineError::DeviceLost(e.to_string())),
            Err(e) => return Err(EngineError::DeviceLost(e.to_string())),
        }
        let view = readback
            .get_mapped_range(..bytes as u64)
            .map_err(|e| EngineError::Device(e.to_string()))?;
        let bytes = view.to_vec();
        drop(view);
        readback.unmap();
        Ok(bytes)
    }

    /// Buffers large enough and bind groups over them.
    #[allow(clippy::too_many_arguments)]
    fn prepare(
        &mut self,
        pass: Pass,
        query: &RatioQuery,
        tile: usize,
        coefficients: usize,
        entries: usize,
        params: usize,
        answers: usize,
    ) -> Result<(), EngineError> {
        use wgpu::BufferUsages as Usage;
        let cache = &mut self.cache;
        let device = &self.device;
        let fresh = device.scoped(|| {
            let d = &device.device;
            let storage = Usage::STORAGE | Usage::COPY_DST;
            [
                ensure(
                    d,
                    &mut cache.params,
                    params,
                    Usage::UNIFORM | Usage::COPY_DST,
                ),
                ensure(d, &mut cache.coefficients, coefficients, storage),
                ensure(d, &mut cache.entries, entries.max(16), storage),
                ensure(
                    d,
                    &mut cache.answers,
                    answers,
                    Usage::STORAGE | Usage::COPY_SRC,
                ),
                ensure(
                    d,
                    &mut cache.readback,
                    answers,
                    Usage::MAP_READ | Usage::COPY_DST,
                ),
            ]
        });
        let fresh = fresh?.iter().any(|f| *f);
        if !fresh && cache.made_for == Some((pass, tile)) {
            return Ok(());
        }
        let (_, layout) = self.pipelines.get(device, pass, query.function(), tile)?;
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
                .filter_map(|chunk| chunk.buffers.as_ref().or(stream))
                .map(|rows: &RowBuffers| {
                    let uniform = wgpu::BufferBinding {
                        buffer: params,
                        offset: 0,
                        size: wgpu::BufferSize::new(std::mem::size_of::<Params>() as u64),
                    };
                    let mut bound = vec![
                        wgpu::BindingResource::Buffer(uniform),
                        rows.rows.as_entire_binding(),
                        rows.labels.as_entire_binding(),
                        coefficients.as_entire_binding(),
                    ];
                    if pass == Pass::RatioRows {
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
        cache.groups = groups;
        cache.made_for = Some((pass, tile));
        Ok(())
    }
}
