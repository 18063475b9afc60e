//! Making room: rows leave the device where its memory ends, and queries run again.
//!
//! A query's own buffers come before rows, which can be copied in anew for every pass. Room is
//! made in this order: resident chunks are given up, from the last on; then chunks are halved, and
//! with them the buffers that they are streamed through. Where wgpu gives up the whole device for
//! want of memory (copies, pipelines, submissions), it is opened again with half of the rows.
//! Nothing of a query that failed is used: it runs again from its start.

use super::GpuEngine;
use super::buffers::{RowBuffers, chunk_bytes, cut, least_chunk_bytes};
use super::device::Device;
use super::pipelines::Pipelines;
use super::submit::Cache;
use crate::engine::EngineError;

/// Bytes of scratch memory under which a network is not tried.
const LEAST_SCRATCH: usize = 1 << 16;

impl GpuEngine {
    /// Runs a query with its rows in place, again after each time that room was made for it.
    pub(super) fn with_memory<T>(
        &mut self,
        mut query: impl FnMut(&mut Self) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        loop {
            match self.place().and_then(|()| query(self)) {
                Err(EngineError::GpuMemory { what, asked }) => {
                    if !self.free_memory(asked)? {
                        self.start_over();
                        return Err(EngineError::GpuMemory { what, asked });
                    }
                }
                other => return other,
            }
        }
    }

    /// A query that asks for less may find room for more rows.
    fn start_over(&mut self) {
        self.cache = Cache::default();
        self.chunks.clear();
        self.stream = None;
        self.resident = self.limits.resident.unwrap_or(u64::MAX);
        self.chunk_bytes = chunk_bytes(&self.device, &self.data);
    }

    /// Rows cut into chunks, as many of them on the device as it takes, and buffers that the others
    /// are streamed through.
    fn place(&mut self) -> Result<(), EngineError> {
        self.device.check()?;
        if self.chunks.is_empty() {
            self.load()?;
        }
        let streamed = self.chunks.iter().filter(|c| c.buffers.is_none());
        let Some(rows) = streamed.map(|c| c.rows).max() else {
            return Ok(());
        };
        if self.stream.as_ref().is_none_or(|(_, room)| *room < rows) {
            self.cache.forget_groups();
            self.stream = None;
            self.stream = Some((RowBuffers::new(&self.device, &self.data, rows)?, rows));
        }
        Ok(())
    }

    /// Cuts the rows and makes as many chunks resident as the device takes.
    fn load(&mut self) -> Result<(), EngineError> {
        self.chunks = cut(&self.data, self.chunk_bytes)?;
        let mut left = self.resident;
        for chunk in &mut self.chunks {
            let bytes = chunk.bytes(self.words);
            if bytes > left {
                break;
            }
            let buffers = match RowBuffers::new(&self.device, &self.data, chunk.rows) {
                Ok(buffers) => chunk.buffers.insert(buffers),
                // This chunk and the rest are streamed.
                Err(EngineError::GpuMemory { .. }) => break,
                Err(e) => return Err(e),
            };
            buffers.upload(&self.device, &self.data, chunk.first, chunk.rows);
            left -= bytes;
            // One chunk's copies in host memory at a time.
            self.device.wait(self.device.submit(None)?)?;
        }
        Ok(())
    }

    /// Gives up at least so many bytes of rows, and some in any case; false where there is nothing
    /// left to give.
    fn free_memory(&mut self, asked: u64) -> Result<bool, EngineError> {
        // Made anew by the next try, as large as that needs.
        self.cache = Cache::default();
        let resident = self.chunks.iter().filter(|c| c.buffers.is_some());
        let resident: u64 = resident.map(|c| c.bytes(self.words)).sum();
        if self.device.is_lost() {
            // Half a chunk is none.
            let half = resident / 2;
            let possible = self.lower(resident, half * u64::from(half >= self.chunk_bytes));
            if possible {
                self.reopen()?;
            }
            return Ok(possible);
        }
        let mut left = resident;
        for chunk in self.chunks.iter_mut().rev() {
            if left < resident && resident - left >= asked {
                break;
            }
            if chunk.buffers.take().is_some() {
                left -= chunk.bytes(self.words);
            }
        }
        if resident == 0 {
            self.chunks.clear();
            self.stream = None;
        }
        // Frees what was dropped.
        let _ = self.device.device.poll(wgpu::PollType::Poll);
        Ok(self.lower(resident, left))
    }

    /// From here on so many bytes may be resident, or, where none were, chunks are half as large, and
    /// then a network's scratch memory. False where all are at their least.
    fn lower(&mut self, resident: u64, left: u64) -> bool {
        if resident > 0 {
            self.resident = left;
            return true;
        }
        let least = least_chunk_bytes(&self.data);
        let possible = self.chunk_bytes > least || self.scratch > LEAST_SCRATCH;
        match self.chunk_bytes > least {
            true => self.chunk_bytes = (self.chunk_bytes / 2).max(least),
            false => self.scratch /= 2,
        }
        possible
    }

    /// A device in the place of one that was lost, with nothing on it yet.
    fn reopen(&mut self) -> Result<(), EngineError> {
        self.cache = Cache::default();
        self.chunks.clear();
        self.stream = None;
        self.pipelines = Pipelines::new(self.workgroup);
        self.device = Device::open(self.limits)?;
        self.chunk_bytes = self.chunk_bytes.min(chunk_bytes(&self.device, &self.data));
        Ok(())
    }

    /// Room for weights in all row buffers, with the weights of resident rows in it.
    pub(super) fn ensure_weights(&mut self) -> Result<(), EngineError> {
        let weights = self.listed.as_ref().map_or(&[][..], |cpu| cpu.weights());
        for chunk in &mut self.chunks {
            if let Some(buffers) = &mut chunk.buffers
                && buffers.weights.is_none()
            {
                self.cache.forget_groups();
                buffers.add_weights(&self.device, chunk.rows)?;
                buffers.upload_weights(
                    &self.device,
                    &self.data,
                    weights,
                    (chunk.first, chunk.rows),
                );
            }
        }
        if let Some((stream, rows)) = &mut self.stream
            && stream.weights.is_none()
        {
            self.cache.forget_groups();
            stream.add_weights(&self.device, *rows)?;
        }
        Ok(())
    }

    /// Rows were weighed anew: what the device holds of their weights is old.
    pub(super) fn forget_weights(&mut self) {
        self.cache.forget_groups();
        let resident = self.chunks.iter_mut().filter_map(|c| c.buffers.as_mut());
        for buffers in resident.chain(self.stream.as_mut().map(|(stream, _)| stream)) {
            buffers.weights = None;
        }
    }
}
