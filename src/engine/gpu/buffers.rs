//! Device buffers: rows in chunks that fit a binding, and the small ones of a query.

use std::sync::Arc;

use super::device::Device;
use crate::data::{Dataset, TILE};
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

impl Params {
    /// Field names, in order.
    #[cfg(test)]
    pub const FIELDS: [&'static str; 8] = [
        "rows",
        "quads",
        "features",
        "quads_per_thread",
        "first_slot",
        "coefficients",
        "labelled",
        "entries",
    ];
}

/// Some consecutive rows. Resident chunks own their buffers; a streamed chunk is copied
/// into shared ones for every pass.
pub(super) struct Chunk {
    pub first: usize,
    pub rows: usize,
    pub buffers: Option<RowBuffers>,
    /// Weights of the rows at an anchor, in the place of labels; always resident.
    pub weights: Option<wgpu::Buffer>,
}

/// Rows (and labels) on the device.
pub(super) struct RowBuffers {
    pub rows: wgpu::Buffer,
    pub labels: wgpu::Buffer,
}

impl Chunk {
    /// Quads of four rows.
    pub fn quads(&self) -> usize {
        self.rows.div_ceil(4)
    }
}

/// Buffers for `rows` rows of `data`'s width.
pub(super) fn row_buffers(
    device: &Device,
    data: &Dataset,
    rows: usize,
) -> Result<RowBuffers, EngineError> {
    let quads = rows.div_ceil(4);
    let storage = |label, bytes: usize| {
        device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes as u64,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    };
    device.scoped(|| RowBuffers {
        rows: storage("rows", 16 * quads * data.features().len()),
        labels: storage("labels", if data.labelled() { 16 * quads } else { 16 }),
    })
}

/// Copies rows `first .. first + rows` into `buffers`, feature-major. `first` is a
/// multiple of the tile.
pub(super) fn upload(
    device: &Device,
    data: &Dataset,
    first: usize,
    rows: usize,
    buffers: &RowBuffers,
) {
    let d = data.features().len();
    let padded = rows.div_ceil(4) * 4;
    let mut column = vec![0.0f32; padded];
    for j in 0..d {
        for (t, out) in column.chunks_mut(TILE).enumerate() {
            let tile = (first / TILE + t) * d * TILE + j * TILE;
            out.copy_from_slice(&data.tiles()[tile..tile + out.len()]);
        }
        let offset = (4 * j * padded) as u64;
        device
            .queue
            .write_buffer(&buffers.rows, offset, bytemuck::cast_slice(&column));
    }
    if data.labelled() {
        let labels = &data.labels()[first..first + padded];
        device
            .queue
            .write_buffer(&buffers.labels, 0, bytemuck::cast_slice(labels));
    }
}

/// Puts the weights of every chunk's rows on the device.
pub(super) fn upload_weights(
    device: &Device,
    chunks: &mut [Chunk],
    weight: impl Fn(usize) -> f32,
) -> Result<(), EngineError> {
    for chunk in chunks {
        let padded = 4 * chunk.quads();
        let weights: Vec<f32> = (chunk.first..chunk.first + padded).map(&weight).collect();
        let buffer = device.scoped(|| {
            device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("weights"),
                size: 4 * padded as u64,
                usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        })?;
        let bytes = bytemuck::cast_slice(&weights);
        device.queue.write_buffer(&buffer, 0, bytes);
        chunk.weights = Some(buffer);
    }
    Ok(())
}

/// Limits that tests set: to force chunking and streaming, or to break a float clip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GpuLimits {
    /// Largest binding, bytes; the device's own by default.
    pub binding: Option<u64>,
    /// Bytes of rows kept on the device; by default as many as it takes.
    pub resident: Option<u64>,
    /// Workgroup size; 256 by default.
    pub workgroup: Option<u32>,
    /// What an anchor's long rows are shrunk to, over the ball's radius. Above 1 the float clip
    /// is broken and integers alone hold a row.
    pub edge: Option<f32>,
}

/// Cuts the rows into chunks and makes as many resident as the device takes.
pub(super) fn place(
    device: &Device,
    data: &Arc<Dataset>,
    limits: GpuLimits,
) -> Result<Vec<Chunk>, EngineError> {
    let d = data.features().len();
    let binding = limits
        .binding
        .unwrap_or(u64::MAX)
        .min(device.limits.max_storage_buffer_binding_size)
        .min(device.limits.max_buffer_size);
    // Whole tiles, and few enough quads for u32 indices.
    let rows_per_chunk = (binding as usize / (4 * d)).min((u32::MAX as usize / d.max(1)) & !3);
    let rows_per_chunk = rows_per_chunk / TILE * TILE;
    if rows_per_chunk == 0 {
        return Err(EngineError::Device(format!(
            "{TILE} rows of {d} features exceed the largest binding ({binding} bytes)"
        )));
    }
    let mut chunks = Vec::new();
    let mut resident = limits.resident.unwrap_or(u64::MAX);
    let mut first = 0;
    while first < data.rows() {
        let rows = rows_per_chunk.min(data.rows() - first);
        let bytes = (rows.div_ceil(4) * 16 * d) as u64;
        let buffers = if bytes <= resident {
            // Out of memory: this chunk and the rest are streamed.
            row_buffers(device, data, rows).ok()
        } else {
            None
        };
        match &buffers {
            Some(buffers) => {
                upload(device, data, first, rows, buffers);
                resident -= bytes;
                // Bound the queue's staging memory.
                device.queue.submit([]);
            }
            None => resident = 0,
        }
        device.check()?;
        chunks.push(Chunk {
            first,
            rows,
            buffers,
            weights: None,
        });
        first += rows;
    }
    Ok(chunks)
}
