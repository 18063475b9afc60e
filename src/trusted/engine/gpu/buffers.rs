//! Rows on the device, in chunks that fit a binding and a submission.

use std::time::Duration;

use rayon::prelude::*;

use super::device::{Buffer, Device};
use crate::data::{Dataset, Storage, TILE};
use crate::engine::EngineError;

/// Uniform of every pass; twin of `Params` in the shaders.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Params {
    pub rows: u32,
    pub quads: u32,
    pub features: u32,
    pub quads_per_thread: u32,
    pub first_slot: u32,
    pub coefficients: u32,
    pub labelled: u32,
    pub entries: u32,
}

/// Chunks at most, where they could be larger: uniforms, bind groups and sums count them.
const MOST_CHUNKS: u64 = 1024;

/// Some consecutive rows. Resident chunks own their buffers; a streamed chunk is copied
/// into shared ones for every pass.
pub(super) struct Chunk {
    pub first: usize,
    pub rows: usize,
    pub buffers: Option<RowBuffers>,
}

impl Chunk {
    /// Quads of four rows.
    pub fn quads(&self) -> usize {
        self.rows.div_ceil(4)
    }

    /// Bytes of its rows of so many words, without labels.
    pub fn bytes(&self, words: usize) -> u64 {
        (16 * self.quads() * words) as u64
    }
}

/// Rows with their labels and, from the first query that needs them on, weights at an anchor.
pub(super) struct RowBuffers {
    pub rows: Buffer,
    pub labels: Buffer,
    /// Behind them the labels again: some row functions take both.
    pub weights: Option<Buffer>,
}

impl RowBuffers {
    /// Buffers for `rows` rows of `data`'s width.
    pub fn new(device: &Device, data: &Dataset, rows: usize) -> Result<Self, EngineError> {
        let quads = rows.div_ceil(4);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let labels = if data.labelled() { 16 * quads } else { 16 };
        Ok(RowBuffers {
            rows: device.buffer("rows", (16 * quads * words(data)) as u64, usage)?,
            labels: device.buffer("labels", labels as u64, usage)?,
            weights: None,
        })
    }

    /// Room for the weights of `rows` rows.
    pub fn add_weights(&mut self, device: &Device, rows: usize) -> Result<(), EngineError> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let bytes = 32 * rows.div_ceil(4) as u64;
        self.weights = Some(device.buffer("weights", bytes, usage)?);
        Ok(())
    }

    /// Copies rows `first .. first + rows` in, word by word of all rows. `first` is a multiple of
    /// the tile.
    pub fn upload(&self, device: &Device, data: &Dataset, first: usize, rows: usize) {
        let padded = rows.div_ceil(4) * 4;
        // A word a thread at once; the device computes on rows before meanwhile.
        let mut columns = vec![vec![0u32; padded]; words(data).min(rayon::current_num_threads())];
        for k in (0..words(data)).step_by(columns.len().max(1)) {
            let columns = &mut columns[..(words(data) - k).min(rayon::current_num_threads())];
            let each = columns.par_iter_mut().enumerate();
            each.for_each(|(i, column)| data.copy_word(k + i, first / TILE, column));
            for (i, column) in columns.iter().enumerate() {
                let offset = (4 * (k + i) * padded) as u64;
                device.write(&self.rows, offset, bytemuck::cast_slice(column));
            }
        }
        if data.labelled() {
            let labels = &data.labels()[first..first + padded];
            device.write(&self.labels, 0, bytemuck::cast_slice(labels));
        }
    }

    /// Copies the weights of rows `first .. first + rows` in, where there is room for weights;
    /// `weights` of all rows, or empty where each is 1.
    pub fn upload_weights(
        &self,
        device: &Device,
        data: &Dataset,
        weights: &[f32],
        (first, rows): (usize, usize),
    ) {
        let Some(buffer) = &self.weights else {
            return;
        };
        let padded = rows.div_ceil(4) * 4;
        match weights.get(first..first + padded) {
            Some(weights) => device.write(buffer, 0, bytemuck::cast_slice(weights)),
            None => device.write(buffer, 0, bytemuck::cast_slice(&vec![1.0f32; padded])),
        }
        if data.labelled() {
            let labels = &data.labels()[first..first + padded];
            device.write(buffer, 4 * padded as u64, bytemuck::cast_slice(labels));
        }
    }
}

/// Limits that tests set: to force chunking and streaming, to emulate small and failing devices,
/// or to break a float clip.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::trusted) struct GpuLimits {
    /// Largest binding, bytes; the device's own by default.
    pub binding: Option<u64>,
    /// Largest buffer, bytes; the device's own by default.
    pub buffer: Option<u64>,
    /// Bytes of rows kept on the device; by default as many as it takes.
    pub resident: Option<u64>,
    /// Bytes of all buffers together, beyond which there is no memory for one.
    pub memory: Option<u64>,
    /// Bytes of all buffers and of a copy to the device, beyond which the device is lost, as
    /// wgpu does where it is out of memory for the copy.
    pub staging: Option<u64>,
    /// The longest wait for a submission.
    pub deadline: Option<Duration>,
    /// Bytes of rows that a submission reads.
    pub piece: Option<u64>,
    /// Workgroup size; each pass has its own by default.
    pub workgroup: Option<u32>,
    /// Workgroups wanted before each takes more rows.
    pub groups: Option<usize>,
    /// What an anchor's long rows are shrunk to, over the ball's radius. Above 1 the float clip
    /// is broken and integers alone hold a row.
    pub edge: Option<f32>,
}

/// Bytes of a chunk of `data`: what a binding and a submission take, or few enough chunks.
pub(super) fn chunk_bytes(device: &Device, data: &Dataset) -> u64 {
    device.piece().max(fewest(data)).min(device.binding())
}

/// Words of a row on the device: one a feature, or one for two features in 16 bits.
pub(super) fn words(data: &Dataset) -> usize {
    let features = data.width();
    match data.storage() {
        Storage::F32 => features,
        Storage::I16 => features.div_ceil(2),
    }
}

/// Words by which rows are cut: a row's weight and label are bound together.
fn cut_words(data: &Dataset) -> usize {
    words(data).max(2)
}

fn fewest(data: &Dataset) -> u64 {
    let tile = 4 * TILE * cut_words(data);
    (tile as u64).max(bytes_of(data) / MOST_CHUNKS)
}

fn bytes_of(data: &Dataset) -> u64 {
    4 * (data.lines() * cut_words(data)) as u64
}

/// The least that chunks can be made for want of memory: their uniforms, 256 bytes each, take no
/// more than one of them.
pub(super) fn least_chunk_bytes(data: &Dataset) -> u64 {
    fewest(data).max((256 * bytes_of(data)).isqrt())
}

/// Cuts the rows into chunks of at most so many bytes, none of them on the device yet.
pub(super) fn cut(data: &Dataset, bytes: u64) -> Result<Vec<Chunk>, EngineError> {
    let words = cut_words(data);
    // Whole tiles, and few enough quads for u32 indices.
    let most = (bytes as usize / (4 * words)).min((u32::MAX as usize / words) & !3);
    let most = most / TILE * TILE;
    if most == 0 {
        return Err(EngineError::Device(format!(
            "{TILE} rows of {} features exceed the largest binding ({bytes} bytes); use `--engine cpu`",
            data.width()
        )));
    }
    Ok((0..data.lines())
        .step_by(most)
        .map(|first| Chunk {
            first,
            rows: most.min(data.lines() - first),
            buffers: None,
        })
        .collect())
}
