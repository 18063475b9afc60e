//! Adapter and device: finding them, saying what was tried, waiting no longer than a deadline,
//! noticing their loss and the end of their memory.

#[cfg(test)]
mod for_tests;

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::buffers::GpuLimits;
use crate::engine::{EngineError, EngineInfo};

/// The longest wait for one submission, after which the device counts as hung. A submission reads
/// [`PIECE`] bytes of rows, which Mesa's software adapter takes about a second for on two busy
/// cores, and some seconds more where a pipeline is compiled at its first use.
const DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of rows that one submission reads, at most, unless a single chunk is larger: a hundredth
/// of a second on a slow card, so that neither a watchdog nor [`DEADLINE`] meets it.
const PIECE: u64 = 1 << 29;
/// The same where the adapter computes in software.
const SOFTWARE_PIECE: u64 = 1 << 23;

/// How long a thread looks for what a card has done before it sleeps: to wake it takes as long as a
/// small table's pass. Not where the cores that look are those that compute.
const SPIN: Duration = Duration::from_micros(200);

/// Why a device cannot be used any more.
enum Loss {
    /// Its memory ended where wgpu gives the whole device up.
    Memory,
    Hung,
    Other(String),
}

/// A thread that submits: a driver in software may compute, or hang, before a submission returns.
struct Submitter {
    work: Sender<Vec<wgpu::CommandBuffer>>,
    submitted: Receiver<wgpu::SubmissionIndex>,
    thread: JoinHandle<()>,
}

impl Submitter {
    fn start(queue: wgpu::Queue) -> Result<Self, EngineError> {
        let (work, todo) = channel::<Vec<wgpu::CommandBuffer>>();
        let (done, submitted) = channel();
        let submit = move || {
            while let Ok(buffers) = todo.recv() {
                if done.send(queue.submit(buffers)).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("gpu".into())
            .spawn(submit)
            .map_err(|e| {
                EngineError::Device(format!(
                    "no thread could be had for it ({e}); use `--engine cpu`"
                ))
            })?;
        Ok(Submitter {
            work,
            submitted,
            thread,
        })
    }
}

/// An open device with its queue.
pub(super) struct Device {
    pub device: wgpu::Device,
    queue: wgpu::Queue,
    /// None where the adapter is no software, and once it is dropped.
    submitter: Option<Submitter>,
    /// What the next submission is to begin with.
    #[cfg(test)]
    hang: Mutex<Option<wgpu::CommandBuffer>>,
    pub info: EngineInfo,
    pub limits: wgpu::Limits,
    /// Whether the adapter is a software one.
    pub software: bool,
    own: GpuLimits,
    /// Bytes of the buffers that live.
    held: Arc<AtomicU64>,
    lost: Arc<Mutex<Option<Loss>>>,
}

/// A buffer, counted while it lives.
pub(super) struct Buffer {
    buffer: wgpu::Buffer,
    held: Arc<AtomicU64>,
}

impl Deref for Buffer {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.held.fetch_sub(self.buffer.size(), Ordering::Relaxed);
    }
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

/// The adapter, or the one of those like it that is this rank's: of several on a machine each takes
/// its own, in turn.
fn own_adapter(fastest: wgpu::Adapter, place: Option<usize>) -> wgpu::Adapter {
    let Some(place) = place else {
        return fastest;
    };
    let kind = |a: &wgpu::Adapter| {
        let info = a.get_info();
        (info.backend, info.device_type, info.name)
    };
    let mut alike = pollster::block_on(instance().enumerate_adapters(wgpu::Backends::all()));
    alike.retain(|a| kind(a) == kind(&fastest));
    match alike.len() {
        0 => fastest,
        count => alike.swap_remove(place % count),
    }
}

impl Device {
    /// Opens the fastest adapter, software Vulkan included.
    pub fn open(own: GpuLimits) -> Result<Self, EngineError> {
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
        let adapter = own_adapter(adapter, crate::machine::PLACE.get().copied());
        let mut limits = adapter.limits();
        // wgpu then refuses what a smaller adapter would.
        let lower = |limit: &mut u64, own: Option<u64>| {
            *limit = (*limit).min(own.unwrap_or(u64::MAX));
        };
        lower(&mut limits.max_storage_buffer_binding_size, own.binding);
        lower(&mut limits.max_buffer_size, own.buffer);
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
                lost.get_or_insert(Loss::Other(format!("{reason:?}: {message}")));
            }
        });
        let flag = lost.clone();
        // Without a handler an unscoped error panics; here it ends the run.
        device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| {
            if let Ok(mut lost) = flag.lock() {
                match (e, &*lost) {
                    (_, Some(Loss::Hung)) => {}
                    // Reported after the loss that it is the cause of.
                    (wgpu::Error::OutOfMemory { .. }, _) => *lost = Some(Loss::Memory),
                    (e, None) => *lost = Some(Loss::Other(e.to_string())),
                    (_, Some(_)) => {}
                }
            }
        }));
        let info = adapter.get_info();
        let software = info.device_type == wgpu::DeviceType::Cpu;
        let submitter = software.then(|| Submitter::start(queue.clone()));
        Ok(Device {
            submitter: submitter.transpose()?,
            #[cfg(test)]
            hang: Mutex::new(None),
            device,
            queue,
            software,
            info: describe(&info),
            limits,
            own,
            held: Arc::new(AtomicU64::new(0)),
            lost,
        })
    }

    /// The longest wait for one submission.
    pub fn deadline(&self) -> Duration {
        self.own.deadline.unwrap_or(DEADLINE)
    }

    /// Bytes of rows that one submission is to read.
    pub fn piece(&self) -> u64 {
        self.own.piece.unwrap_or(match self.software {
            true => SOFTWARE_PIECE,
            false => PIECE,
        })
    }

    /// Largest storage binding, bytes.
    pub fn binding(&self) -> u64 {
        let limits = &self.limits;
        limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size)
    }

    /// The loss or error reported so far.
    pub fn check(&self) -> Result<(), EngineError> {
        let Ok(lost) = self.lost.lock() else {
            return Err(EngineError::DeviceLost("its error handler failed".into()));
        };
        match &*lost {
            None => Ok(()),
            Some(Loss::Memory) => Err(EngineError::GpuMemory {
                what: "the driver's own use",
                asked: 0,
            }),
            Some(Loss::Hung) => Err(EngineError::Hung(self.deadline())),
            Some(Loss::Other(why)) => Err(EngineError::DeviceLost(why.clone())),
        }
    }

    /// Whether nothing can be done with it any more.
    pub fn is_lost(&self) -> bool {
        self.lost.lock().map_or(true, |lost| lost.is_some())
    }

    fn set_lost(&self, why: Loss) {
        if let Ok(mut lost) = self.lost.lock() {
            *lost = Some(why);
        }
    }

    /// Whether it was given up because it hangs.
    pub fn is_hung(&self) -> bool {
        !matches!(
            self.lost.lock().as_deref(),
            Ok(None | Some(Loss::Memory | Loss::Other(_)))
        )
    }

    /// Submits commands, after all that was written since the last submission.
    pub fn submit(
        &self,
        commands: Option<wgpu::CommandBuffer>,
    ) -> Result<wgpu::SubmissionIndex, EngineError> {
        #[allow(unused_mut)]
        let mut commands: Vec<_> = commands.into_iter().collect();
        #[cfg(test)]
        if let Ok(Some(hang)) = self.hang.lock().map(|mut hang| hang.take()) {
            commands.insert(0, hang);
        }
        let Some(submitter) = &self.submitter else {
            return Ok(self.queue.submit(commands));
        };
        let gone = || EngineError::DeviceLost("its queue failed".into());
        submitter.work.send(commands).map_err(|_| gone())?;
        match submitter.submitted.recv_timeout(self.deadline()) {
            Ok(index) => Ok(index),
            Err(RecvTimeoutError::Disconnected) => {
                self.check()?;
                Err(gone())
            }
            Err(RecvTimeoutError::Timeout) => {
                self.set_lost(Loss::Hung);
                Err(EngineError::Hung(self.deadline()))
            }
        }
    }

    /// Waits for a submission, at most until the deadline.
    pub fn wait(&self, index: wgpu::SubmissionIndex) -> Result<(), EngineError> {
        let poll = |time| {
            self.device.poll(wgpu::PollType::Wait {
                submission_index: Some(index.clone()),
                timeout: Some(time),
            })
        };
        let late = |waited: &_| matches!(waited, Err(wgpu::PollError::Timeout));
        let start = Instant::now();
        let mut waited = Err(wgpu::PollError::Timeout);
        let spin = [SPIN, Duration::ZERO][usize::from(self.software)];
        while late(&waited) && start.elapsed() < spin {
            waited = poll(Duration::ZERO);
        }
        if late(&waited) {
            waited = poll(self.deadline());
        }
        if late(&waited) {
            self.set_lost(Loss::Hung);
        }
        self.check()?;
        waited
            .map(|_| ())
            .map_err(|e| EngineError::DeviceLost(e.to_string()))
    }

    /// A buffer of so many bytes. `what` it is for is said where there is no memory.
    pub fn buffer(
        &self,
        what: &'static str,
        bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<Buffer, EngineError> {
        let short = EngineError::GpuMemory { what, asked: bytes };
        let held = self.held.load(Ordering::Relaxed);
        if self.own.memory.is_some_and(|most| held + bytes > most) {
            return Err(short);
        }
        let made = self.scoped(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(what),
                size: bytes,
                usage,
                mapped_at_creation: false,
            })
        });
        match made {
            Ok(buffer) => {
                self.held.fetch_add(buffer.size(), Ordering::Relaxed);
                Ok(Buffer {
                    buffer,
                    held: self.held.clone(),
                })
            }
            Err(EngineError::GpuMemory { .. }) => Err(short),
            Err(e) => Err(e),
        }
    }

    /// Copies bytes into a buffer, before whatever is submitted next.
    pub fn write(&self, buffer: &Buffer, offset: u64, bytes: &[u8]) {
        let held = self.held.load(Ordering::Relaxed) + bytes.len() as u64;
        if self.own.staging.is_some_and(|most| held > most) {
            // What wgpu does where a copy's own buffer cannot be had.
            self.set_lost(Loss::Memory);
            self.device.destroy();
        }
        self.queue.write_buffer(buffer, offset, bytes);
    }

    /// Runs `make` and turns its validation and out-of-memory errors into ours.
    pub fn scoped<T>(&self, make: impl FnOnce() -> T) -> Result<T, EngineError> {
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = make();
        let validation = pollster::block_on(validation.pop());
        if pollster::block_on(memory.pop()).is_some() {
            if self.is_lost() {
                self.set_lost(Loss::Memory);
            }
            return Err(EngineError::GpuMemory {
                what: "a pipeline",
                asked: 0,
            });
        }
        self.check()?;
        match validation {
            None => Ok(made),
            Some(e) => Err(EngineError::Device(e.to_string())),
        }
    }
}

impl Drop for Device {
    /// wgpu waits for all submitted work when the last handle of a queue is dropped, for ever
    /// where that work hangs. One handle of each is then left to the end of the process, which
    /// the system cleans up after.
    fn drop(&mut self) {
        let idle = || {
            self.device.poll(wgpu::PollType::Wait {
                submission_index: None,
                timeout: Some(self.deadline()),
            })
        };
        if self.is_hung() || idle().is_err() {
            std::mem::forget((self.device.clone(), self.queue.clone()));
            return;
        }
        if let Some(submitter) = self.submitter.take() {
            drop((submitter.work, submitter.submitted));
            let _ = submitter.thread.join();
        }
    }
}
