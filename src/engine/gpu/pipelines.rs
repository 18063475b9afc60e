//! Compute pipelines: shader texts concatenated, compiled once, kept.

use std::collections::HashMap;

use super::device::Device;
use crate::engine::EngineError;
use crate::model::RowFunction;

/// Chains of one read of the rows.
pub(super) const MAX_TILE: usize = 8;

const SOFTPLUS: &str = include_str!("../../../shaders/softplus.wgsl");
const REMAINDER: &str = include_str!("../../../shaders/remainder.wgsl");
const FIXED_POINT: &str = include_str!("../../../shaders/fixed_point.wgsl");
const RATIO_SUM: &str = include_str!("../../../shaders/ratio_sum.wgsl");
const RATIO_ROWS: &str = include_str!("../../../shaders/ratio_rows.wgsl");

/// A compute pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    /// Sums over all rows.
    RatioSum,
    /// Listed rows.
    RatioRows,
}

impl Pass {
    fn entry(self) -> &'static str {
        match self {
            Pass::RatioSum => "ratio_sum",
            Pass::RatioRows => "ratio_rows",
        }
    }

    /// Bindings after the uniform: read-only ones, then one writable.
    fn read_bindings(self) -> u32 {
        match self {
            Pass::RatioSum => 3,
            Pass::RatioRows => 4,
        }
    }
}

fn model_source(function: RowFunction) -> &'static str {
    match function {
        RowFunction::Logistic => include_str!("../../../shaders/model/logistic.wgsl"),
        RowFunction::Affine => include_str!("../../../shaders/model/gaussian_mean.wgsl"),
        RowFunction::Mixture => include_str!("../../../shaders/model/mixture.wgsl"),
        RowFunction::LogisticRemainder => {
            include_str!("../../../shaders/model/logistic_remainder.wgsl")
        }
        RowFunction::Linear => include_str!("../../../shaders/model/linear.wgsl"),
        // The engine hands networks to the CPU; without a row function this does not compile.
        RowFunction::Network(_) => "",
        RowFunction::Poisson => include_str!("../../../shaders/model/poisson.wgsl"),
    }
}

/// The whole text of a pass: constants, shared pieces, model, pass.
pub(super) fn source(pass: Pass, function: RowFunction, tile: usize) -> String {
    let k = function.forms();
    let pass_source = match pass {
        Pass::RatioSum => RATIO_SUM,
        Pass::RatioRows => RATIO_ROWS,
    };
    let shared = match function {
        RowFunction::LogisticRemainder => REMAINDER,
        _ => "",
    };
    format!(
        "const K: u32 = {k}u;\nconst T: u32 = {tile}u;\n{FIXED_POINT}\n{SOFTPLUS}\n{shared}\n{}\n{pass_source}",
        model_source(function)
    )
}

/// Pipelines made so far; one row function, several tile widths.
pub(super) struct Pipelines {
    workgroup: u32,
    made: HashMap<(Pass, RowFunction, usize), (wgpu::ComputePipeline, wgpu::BindGroupLayout)>,
}

impl Pipelines {
    pub fn new(workgroup: u32) -> Self {
        Pipelines {
            workgroup,
            made: HashMap::new(),
        }
    }

    /// The pipeline and its bind group layout, made on first use.
    pub fn get(
        &mut self,
        device: &Device,
        pass: Pass,
        function: RowFunction,
        tile: usize,
    ) -> Result<&(wgpu::ComputePipeline, wgpu::BindGroupLayout), EngineError> {
        let key = (pass, function, tile);
        if !self.made.contains_key(&key) {
            let made = make(device, pass, function, tile, self.workgroup)?;
            self.made.insert(key, made);
        }
        self.made
            .get(&key)
            .ok_or_else(|| EngineError::Device("pipeline vanished".into()))
    }
}

fn make(
    device: &Device,
    pass: Pass,
    function: RowFunction,
    tile: usize,
    workgroup: u32,
) -> Result<(wgpu::ComputePipeline, wgpu::BindGroupLayout), EngineError> {
    device.scoped(|| {
        let d = &device.device;
        let module = d.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(pass.entry()),
            source: wgpu::ShaderSource::Wgsl(source(pass, function, tile).into()),
        });
        let reads = pass.read_bindings();
        let entries: Vec<wgpu::BindGroupLayoutEntry> = (0..reads + 2)
            .map(|binding| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: if binding == 0 {
                        wgpu::BufferBindingType::Uniform
                    } else {
                        wgpu::BufferBindingType::Storage {
                            read_only: binding <= reads,
                        }
                    },
                    has_dynamic_offset: binding == 0,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let layout = d.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(pass.entry()),
            entries: &entries,
        });
        let pipeline_layout = d.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(pass.entry()),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = d.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(pass.entry()),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(pass.entry()),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[("WORKGROUP", f64::from(workgroup))],
                ..Default::default()
            },
            cache: None,
        });
        (pipeline, layout)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    fn module(pass: Pass, function: RowFunction, tile: usize) -> naga::Module {
        let text = source(pass, function, tile);
        let module = naga::front::wgsl::parse_str(&text)
            .unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
        Validator::new(ValidationFlags::all(), Capabilities::empty())
            .validate(&module)
            .unwrap_or_else(|e| panic!("{pass:?} {function:?} {tile}: {e:?}"));
        module
    }

    const FUNCTIONS: [RowFunction; 6] = [
        RowFunction::Logistic,
        RowFunction::Affine,
        RowFunction::Mixture,
        RowFunction::LogisticRemainder,
        RowFunction::Linear,
        RowFunction::Poisson,
    ];

    #[test]
    fn every_combination_is_valid_wgsl() {
        for function in FUNCTIONS {
            for tile in [1, 2, 4, 8] {
                module(Pass::RatioSum, function, tile);
            }
            module(Pass::RatioRows, function, 1);
        }
    }

    /// Per-row clipping bounds a row's influence only if the row function sees one row:
    /// neither it nor anything it calls may reach a buffer.
    #[test]
    fn row_functions_reach_no_global() {
        fn globals(module: &naga::Module, function: &naga::Function) -> usize {
            let own = function
                .expressions
                .iter()
                .filter(|(_, e)| matches!(e, naga::Expression::GlobalVariable(_)))
                .count();
            let called: usize = function
                .expressions
                .iter()
                .filter_map(|(_, e)| match e {
                    naga::Expression::CallResult(f) => Some(&module.functions[*f]),
                    _ => None,
                })
                .map(|f| globals(module, f))
                .sum();
            own + called
        }
        for function in FUNCTIONS {
            let module = module(Pass::RatioSum, function, 2);
            let find = |name: &str| {
                module
                    .functions
                    .iter()
                    .find(|(_, f)| f.name.as_deref() == Some(name))
                    .map(|(_, f)| globals(&module, f))
            };
            assert_eq!(find("row_ratio"), Some(0));
            let entry = &module.entry_points[0].function;
            assert!(
                globals(&module, entry) > 0,
                "the check sees globals where they are"
            );
        }
    }

    /// The uniform's layout here and in the shaders.
    #[test]
    fn params_have_the_layout_of_their_twin() {
        use super::super::buffers::Params;
        for pass in [Pass::RatioSum, Pass::RatioRows] {
            let module = module(pass, RowFunction::Logistic, 1);
            let (_, ty) = module
                .types
                .iter()
                .find(|(_, t)| t.name.as_deref() == Some("Params"))
                .unwrap();
            let naga::TypeInner::Struct { members, span } = &ty.inner else {
                panic!("Params is a struct");
            };
            assert_eq!(*span as usize, std::mem::size_of::<Params>());
            let names: Vec<(&str, u32)> = members
                .iter()
                .map(|m| (m.name.as_deref().unwrap(), m.offset))
                .collect();
            let expected: Vec<(&str, u32)> = Params::FIELDS
                .iter()
                .enumerate()
                .map(|(i, &f)| (f, 4 * i as u32))
                .collect();
            assert_eq!(names, expected);
        }
    }
}
