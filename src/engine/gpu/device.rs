//! Adapter and device: finding them, saying what was tried, noticing their loss.

use std::sync::{Arc, Mutex, OnceLock};

use crate::engine::{EngineError, EngineInfo};

/// An open device with its queue.
pub(super) struct Device {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: EngineInfo,
    pub limits: wgpu::Limits,
    /// Whether the adapter is a software one.
    pub software: bool,
    lost: Arc<Mutex<Option<String>>>,
}

fn instance() -> &'static wgpu::Instance {
    // One for the process: drivers are loaded once.
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        wgpu::Instance::new(descriptor)
    })
}

fn describe(info: &wgpu::AdapterInfo) -> EngineInfo {
    EngineInfo {
        kind: "gpu".into(),
        adapter: info.name.clone(),
        driver: format!("{} {} ({})", info.driver, info.driver_info, info.backend),
    }
}

/// Every adapter of this machine.
pub(super) fn adapters() -> Vec<EngineInfo> {
    pollster::block_on(instance().enumerate_adapters(wgpu::Backends::all()))
        .iter()
        .map(|a| describe(&a.get_info()))
        .collect()
}

impl Device {
    /// Opens the fastest adapter, software Vulkan included.
    pub fn open() -> Result<Self, EngineError> {
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = pollster::block_on(instance().request_adapter(&options)).map_err(|e| {
            let found: Vec<String> = adapters().into_iter().map(|a| a.adapter).collect();
            EngineError::NoAdapter {
                tried: if found.is_empty() {
                    format!("Vulkan, Metal and DirectX 12 tried: {e}")
                } else {
                    format!("found {}, none usable: {e}", found.join(", "))
                },
            }
        })?;
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("dpmc"),
            required_limits: limits.clone(),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|e| EngineError::Device(e.to_string()))?;
        let lost = Arc::new(Mutex::new(None));
        let flag = lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            if let Ok(mut lost) = flag.lock() {
                *lost = Some(format!("{reason:?}: {message}"));
            }
        });
        let flag = lost.clone();
        // Without a handler an unscoped error panics; here it ends the run.
        device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| {
            if let Ok(mut lost) = flag.lock() {
                lost.get_or_insert(e.to_string());
            }
        }));
        let info = adapter.get_info();
        Ok(Device {
            device,
            queue,
            software: info.device_type == wgpu::DeviceType::Cpu,
            info: describe(&info),
            limits,
            lost,
        })
    }

    /// The loss or error reported so far.
    pub fn check(&self) -> Result<(), EngineError> {
        match self.lost.lock() {
            Ok(lost) => match &*lost {
                None => Ok(()),
                Some(why) => Err(EngineError::DeviceLost(why.clone())),
            },
            Err(_) => Err(EngineError::DeviceLost("its error handler failed".into())),
        }
    }

    /// Waits for a submission.
    pub fn wait(&self, index: wgpu::SubmissionIndex) -> Result<(), EngineError> {
        self.device
            .poll(wgpu::PollType::Wait {
                submission_index: Some(index),
                timeout: None,
            })
            .map_err(|e| EngineError::DeviceLost(e.to_string()))?;
        self.check()
    }

    /// Runs `make` and turns its validation and out-of-memory errors into ours.
    pub fn scoped<T>(&self, make: impl FnOnce() -> T) -> Result<T, EngineError> {
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = make();
        let errors = [
            pollster::block_on(validation.pop()),
            pollster::block_on(memory.pop()),
        ];
        self.check()?;
        match errors.into_iter().flatten().next() {
            None => Ok(made),
            Some(e) => Err(EngineError::Device(e.to_string())),
        }
    }
}
