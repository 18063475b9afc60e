//! What a graphics card can do at most: copy, and multiply and add. Passes are shares of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use wgpu::BufferUsages;

/// A card's ceilings, measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceilings {
    /// Bytes a second of a copy on the device, read plus write.
    pub copy: f64,
    /// f32 operations a second: a fused product and sum counts as two.
    pub arithmetic: f64,
    /// Whether the adapter computes in software.
    pub software: bool,
}

/// Threads of a workgroup, and workgroups along an axis.
const THREADS: u32 = 256;
const MOST_GROUPS: u32 = 65_535;
/// Independent vectors of four of a thread, and how often each is multiplied and added to in a turn
/// of the loop.
const VECTORS: u32 = 8;
const PRODUCTS: u32 = 8;

/// Seconds of a pass whose start and end do not count.
const ENOUGH: f64 = 0.02;

/// Repeats, of which the fastest counts.
const REPEATS: usize = 5;

/// Measures the adapter that the engine would open; `None` where there is none, or it fails.
pub(super) fn measure() -> Option<Ceilings> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..Default::default()
    };
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&options)).ok()?;
    let software = adapter.get_info().device_type == wgpu::DeviceType::Cpu;
    let opened = adapter.request_device(&wgpu::DeviceDescriptor {
        required_limits: adapter.limits(),
        ..Default::default()
    });
    let (device, queue) = pollster::block_on(opened).ok()?;
    let failed = Arc::new(AtomicBool::new(false));
    let flag = failed.clone();
    device.on_uncaptured_error(Arc::new(move |_| flag.store(true, Ordering::Relaxed)));
    let card = Card { device, queue };
    let ceilings = Ceilings {
        copy: card.copy(if software { 1 << 26 } else { 1 << 29 })?,
        arithmetic: card.arithmetic()?,
        software,
    };
    (!failed.load(Ordering::Relaxed)).then_some(ceilings)
}

struct Pass {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
}

impl Pass {
    fn encode(&self, encoder: &mut wgpu::CommandEncoder, width: u32, height: u32) {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        pass.dispatch_workgroups(width, height, 1);
    }
}

struct Card {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl Card {
    fn buffer(&self, size: u64, usage: BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    }

    /// Seconds of the fastest of some submissions of the same work.
    fn fastest(&self, encode: impl Fn(&mut wgpu::CommandEncoder)) -> Option<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..REPEATS {
            let mut encoder = self.device.create_command_encoder(&Default::default());
            encode(&mut encoder);
            let start = Instant::now();
            let index = self.queue.submit(Some(encoder.finish()));
            let wait = wgpu::PollType::Wait {
                submission_index: Some(index),
                timeout: None,
            };
            self.device.poll(wait).ok()?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Some(best)
    }

    /// The faster of the driver's own copy and a pass that copies: on some cards an engine beside
    /// the processors copies, at a fraction of what they do.
    fn copy(&self, wanted: u64) -> Option<f64> {
        const COPIES: usize = 16;
        let limits = self.device.limits();
        let most = (limits.max_buffer_size).min(limits.max_storage_buffer_binding_size);
        // Whole workgroups of vectors.
        let groups = (most.min(wanted) / (16 * u64::from(THREADS))) as u32;
        let bytes = 16 * u64::from(THREADS) * u64::from(groups);
        let from = self.buffer(bytes, BufferUsages::STORAGE | BufferUsages::COPY_SRC);
        let to = self.buffer(bytes, BufferUsages::STORAGE | BufferUsages::COPY_DST);
        let driver = self.fastest(|encoder| {
            for _ in 0..COPIES {
                encoder.copy_buffer_to_buffer(&from, 0, &to, 0, Some(bytes));
            }
        })?;
        let height = groups.div_ceil(MOST_GROUPS);
        let width = groups / height;
        let text = format!(
            "@group(0) @binding(0) var<storage, read> rows: array<vec4<u32>>;
            @group(0) @binding(1) var<storage, read_write> copy: array<vec4<u32>>;
            @compute @workgroup_size({THREADS})
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                let at = id.y * {}u + id.x;
                copy[at] = rows[at];
            }}",
            width * THREADS
        );
        let pass = self.pass(&text, &[&from, &to]);
        let own = self.fastest(|encoder| {
            for _ in 0..COPIES {
                pass.encode(encoder, width, height);
            }
        })?;
        let copied = f64::from(width * height) / f64::from(groups) * bytes as f64;
        let rate = |bytes: f64, time: f64| (2 * COPIES) as f64 * bytes / time;
        Some(rate(bytes as f64, driver).max(rate(copied, own)))
    }

    /// A compute pass over some buffers.
    fn pass(&self, text: &str, buffers: &[&wgpu::Buffer]) -> Pass {
        let device = &self.device;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        let entries: Vec<wgpu::BindGroupEntry> = (0..)
            .zip(buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        Pass { pipeline, group }
    }

    /// Chains of fused products and sums in registers, enough of them at once that none waits.
    fn arithmetic(&self) -> Option<f64> {
        let turns: u32 = 512;
        let vectors = |text: &dyn Fn(u32) -> String| (0..VECTORS).map(text).collect::<String>();
        let start = vectors(&|i| format!("var a{i} = vec4<f32>(f32(id.x + {i}u) * 1e-6);\n"));
        let step = vectors(&|i| format!("a{i} = fma(a{i}, b, c);\n")).repeat(PRODUCTS as usize);
        let sum: Vec<String> = (0..VECTORS).map(|i| format!("a{i}")).collect();
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<vec4<f32>>;
            @compute @workgroup_size({THREADS})
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                let b = vec4<f32>(0.999 + f32(id.y));
                let c = vec4<f32>(1e-3 + f32(id.z));
                {start}
                for (var i = 0u; i < {turns}u; i++) {{
                    {step}
                }}
                out[id.x % {THREADS}u] = {};
            }}",
            sum.join(" + ")
        );
        let out = self.buffer(16 * u64::from(THREADS), BufferUsages::STORAGE);
        let pass = self.pass(&text, &[&out]);
        // As many workgroups as take a fiftieth of a second: slow cards have watchdogs.
        let mut workgroups = 4u32;
        let mut time = self.fastest(|encoder| pass.encode(encoder, workgroups, 1))?;
        while time < ENOUGH && workgroups <= MOST_GROUPS / 2 {
            workgroups *= 2;
            time = self.fastest(|encoder| pass.encode(encoder, workgroups, 1))?;
        }
        let each = 8.0 * f64::from(VECTORS * PRODUCTS * turns);
        Some(each * f64::from(THREADS) * f64::from(workgroups) / time)
    }
}
