//! What tests do to the engine, and ask of it.

use std::sync::Arc;

use super::buffers::chunk_bytes;
use super::network::Kernel;
use super::{GpuEngine, submit};
use crate::data::Dataset;
use crate::engine::EngineError;

impl GpuEngine {
    /// Gives the device up, as a driver reset would.
    pub fn lose(&self) {
        self.device.device.destroy();
    }

    /// Other rows of the same width and kind, with the pipelines made so far.
    pub fn reload(&mut self, data: &Arc<Dataset>) -> Result<(), EngineError> {
        self.cache = submit::Cache::default();
        self.chunks.clear();
        self.stream = None;
        self.data = data.clone();
        self.steps = data.steps();
        self.chunk_bytes = chunk_bytes(&self.device, data);
        self.with_memory(|_| Ok(()))
    }

    /// Work for the device that never ends.
    pub fn hang(&self) -> Result<(), EngineError> {
        self.device.hang()
    }

    /// Another deadline for the submissions from here on.
    pub fn set_deadline(&mut self, deadline: std::time::Duration) {
        self.device.set_deadline(deadline);
    }

    /// Bytes of all buffers.
    pub fn held(&self) -> u64 {
        self.device.held()
    }

    /// Resident chunks and all chunks.
    pub fn placement(&self) -> (usize, usize) {
        let resident = self.chunks.iter().filter(|c| c.buffers.is_some());
        (resident.count(), self.chunks.len())
    }
}

impl Kernel {
    /// All but the layers'.
    pub const BETWEEN: [Kernel; 7] = [
        Kernel::Features,
        Kernel::Weigh,
        Kernel::Density,
        Kernel::Ratio,
        Kernel::HeadErrors,
        Kernel::Clip,
        Kernel::AddUp,
    ];
}
