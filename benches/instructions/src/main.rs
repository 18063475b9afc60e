//! What Mesa's compiler makes of compute passes for AMD's GPUs: `instructions FOLDER` reads
//! every `NAME.wgsl` there, whose entry point is the text of NAME up to the first `-`, and prints a
//! line for each. No GPU is needed, only Mesa's driver: `benches/instructions.sh` sets what makes it
//! compile without one.
//!
//! All of Vulkan is unsafe to call. Every call here is on handles that this program made and
//! that live until the process ends, which is soon.

use std::error::Error;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use ash::vk;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A buffer that a pass binds, in set 0.
struct Bound {
    binding: u32,
    kind: vk::DescriptorType,
}

/// A pass as Vulkan takes it.
struct Pass {
    code: Vec<u32>,
    bound: Vec<Bound>,
}

/// What a module binds: uniforms with dynamic offsets, as the passes of dpmc have them, and storage.
fn bound(module: &naga::Module) -> Result<Vec<Bound>> {
    let mut found = Vec::new();
    for (_, variable) in module.global_variables.iter() {
        let Some(place) = &variable.binding else {
            continue;
        };
        let kind = match variable.space {
            naga::AddressSpace::Uniform => vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC,
            naga::AddressSpace::Storage { .. } => vk::DescriptorType::STORAGE_BUFFER,
            _ => return Err("a pass binds what is neither uniform nor storage".into()),
        };
        if place.group != 0 {
            return Err("a pass binds a buffer outside set 0".into());
        }
        found.push(Bound {
            binding: place.binding,
            kind,
        });
    }
    Ok(found)
}

/// SPIR-V as wgpu has naga write it for Vulkan: loops bounded, indices into arrays held in.
fn translated(text: &str, entry: &str) -> Result<Pass> {
    use naga::back::spv;
    let module = naga::front::wgsl::parse_str(text).map_err(|e| e.emit_to_string(text))?;
    let mut validator = naga::valid::Validator::new(
        naga::valid::ValidationFlags::all(),
        naga::valid::Capabilities::all(),
    );
    let info = validator.validate(&module)?;
    let mut constants = naga::back::PipelineConstants::default();
    if text.contains("override WORKGROUP") {
        constants.insert("WORKGROUP".into(), 128.0);
    }
    let stage = naga::ShaderStage::Compute;
    let (module, info) = naga::back::pipeline_constants::process_overrides(
        &module,
        &info,
        Some((stage, entry)),
        &constants,
    )?;
    let unchecked = naga::proc::BoundsCheckPolicy::Unchecked;
    let options = spv::Options {
        lang_version: (1, 3),
        flags: spv::WriterFlags::empty(),
        force_loop_bounding: true,
        bounds_check_policies: naga::proc::BoundsCheckPolicies {
            index: naga::proc::BoundsCheckPolicy::Restrict,
            // The driver's robust access holds these in.
            buffer: unchecked,
            image_load: unchecked,
            binding_array: unchecked,
        },
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        ..spv::Options::default()
    };
    let pipeline = spv::PipelineOptions {
        shader_stage: stage,
        entry_point: entry.into(),
    };
    Ok(Pass {
        code: spv::write_vec(&module, &info, &options, Some(&pipeline))?,
        bound: bound(&module)?,
    })
}

struct Compiler {
    _entry: ash::Entry,
    _instance: ash::Instance,
    device: ash::Device,
    executables: ash::khr::pipeline_executable_properties::Device,
}

impl Compiler {
    fn new() -> Result<Self> {
        // SAFETY: see the head of this file.
        unsafe {
            let entry = ash::Entry::load()?;
            let version = vk::make_api_version(0, 1, 3, 0);
            let application = vk::ApplicationInfo::default().api_version(version);
            let create = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&create, None)?;
            let physical = *instance
                .enumerate_physical_devices()?
                .first()
                .ok_or("no driver: install mesa-vulkan-drivers")?;
            let priorities = [1.0];
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
            let mut statistics =
                vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
                    .pipeline_executable_info(true);
            let mut memory = vk::PhysicalDeviceVulkan12Features::default()
                .vulkan_memory_model(true)
                .vulkan_memory_model_device_scope(true);
            let extensions = [vk::KHR_PIPELINE_EXECUTABLE_PROPERTIES_NAME.as_ptr()];
            let create = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&extensions)
                .push_next(&mut statistics)
                .push_next(&mut memory);
            let device = instance.create_device(physical, &create, None)?;
            let executables =
                ash::khr::pipeline_executable_properties::Device::new(&instance, &device);
            Ok(Compiler {
                _entry: entry,
                _instance: instance,
                device,
                executables,
            })
        }
    }

    /// The layout of a pass that binds these. A driver reads past the end of one that lacks any.
    fn layout(&self, bound: &[Bound]) -> Result<vk::PipelineLayout> {
        let bindings: Vec<_> = bound
            .iter()
            .map(|b| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(b.binding)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
                    .descriptor_type(b.kind)
            })
            .collect();
        let create = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: see the head of this file.
        unsafe {
            let sets = [self.device.create_descriptor_set_layout(&create, None)?];
            let create = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            Ok(self.device.create_pipeline_layout(&create, None)?)
        }
    }

    /// The driver's statistics of a pass, by their names.
    fn statistics(&self, pass: &Pass, entry: &str) -> Result<Vec<(String, f64)>> {
        use vk::PipelineExecutableStatisticFormatKHR as Format;
        let name = CString::new(entry)?;
        let layout = self.layout(&pass.bound)?;
        // SAFETY: see the head of this file; a statistic's value is read in its own format.
        unsafe {
            let create = vk::ShaderModuleCreateInfo::default().code(&pass.code);
            let module = self.device.create_shader_module(&create, None)?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(&name);
            let create = [vk::ComputePipelineCreateInfo::default()
                .layout(layout)
                .stage(stage)
                .flags(vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR)];
            let made =
                self.device
                    .create_compute_pipelines(vk::PipelineCache::null(), &create, None);
            let pipelines = made.map_err(|(_, e)| e)?;
            let pipeline = *pipelines.first().ok_or("no pipeline")?;
            let which = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline);
            let found = self
                .executables
                .get_pipeline_executable_statistics(&which)?;
            let value = |s: &vk::PipelineExecutableStatisticKHR<'_>| match s.format {
                Format::UINT64 => s.value.u64 as f64,
                Format::INT64 => s.value.i64 as f64,
                Format::FLOAT64 => s.value.f64,
                _ => f64::from(s.value.b32),
            };
            found
                .iter()
                .map(|s| Ok((s.name_as_c_str()?.to_str()?.to_string(), value(s))))
                .collect()
        }
    }
}

fn passes(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "wgsl") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("give the folder of the passes")?;
    let compiler = Compiler::new()?;
    println!(
        "{:<28} instructions  branches  vector registers  spilled",
        "pass"
    );
    for path in passes(Path::new(&folder))? {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let entry = name.split('-').next().unwrap_or(&name);
        let pass = translated(&std::fs::read_to_string(&path)?, entry)?;
        let found = compiler.statistics(&pass, entry)?;
        let of = |name: &str| {
            found
                .iter()
                .find(|(n, _)| n == name)
                .map_or(0.0, |(_, v)| *v)
        };
        println!(
            "{name:<28} {:>12} {:>9} {:>17} {:>8}",
            of("Instructions"),
            of("Branches"),
            of("VGPRs"),
            of("Spilled VGPRs") + of("Spilled SGPRs")
        );
    }
    Ok(())
}
