//! What tests do to a device.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Device;
use crate::engine::EngineError;

impl Device {
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.own.deadline = Some(deadline);
    }

    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// The next submission begins with work that takes years.
    pub fn hang(&self) -> Result<(), EngineError> {
        // Mesa ends a loop after 2^16 rounds, and what computes nothing goes.
        let text = "@group(0) @binding(0) var<storage, read_write> flags: array<atomic<u32>, 64>;
            @compute @workgroup_size(64) fn main() {
                for (var i = 0u; i < 60000u; i++) { atomicAdd(&flags[i % 64u], i); }
            }";
        let buffer = self.buffer("a hang", 256, wgpu::BufferUsages::STORAGE)?;
        let d = &self.device;
        let encoded = self.scoped(|| {
            let module = d.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(text.into()),
            });
            let pipeline = d.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: Default::default(),
                cache: None,
            });
            let group = d.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.get_bind_group_layout(0),
                entries: &[wgpu::BindGroupEntry {
                    binding: 0,
                    resource: buffer.as_entire_binding(),
                }],
            });
            let mut encoder = d.create_command_encoder(&Default::default());
            {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(65_535, 65_535, 1);
            }
            encoder.finish()
        })?;
        if let Ok(mut hang) = self.hang.lock() {
            *hang = Some(encoded);
        }
        Ok(())
    }
}
