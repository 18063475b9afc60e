//! Compute pipelines: shader texts concatenated, compiled once, kept.

use std::collections::HashMap;

use super::anchor::AnchorShape;
use super::device::Device;
use super::gradient_text::GradientShape;
use super::network::{self, Kernel};
use super::ratio_text::RatioShape;
use crate::engine::EngineError;
use crate::expression::Law;
use crate::model::RowFunction;

/// Chains of one read of the rows.
pub(super) const MAX_TILE: usize = 8;

/// Functions that expressions name.
pub(super) const EXPRESSION: &str = include_str!("../../../../shaders/expression.wgsl");
const SOFTPLUS: &str = include_str!("../../../../shaders/softplus.wgsl");
const REMAINDER: &str = include_str!("../../../../shaders/remainder.wgsl");
const CELLS_F32: &str = include_str!("../../../../shaders/cells_f32.wgsl");
const CELLS_I16: &str = include_str!("../../../../shaders/cells_i16.wgsl");
const FIXED_POINT: &str = include_str!("../../../../shaders/fixed_point.wgsl");
const RATIO_ROWS: &str = include_str!("../../../../shaders/ratio_rows.wgsl");

/// Bytes of coefficients that a uniform buffer takes. From there a card has them as operands of its
/// products; from storage each is read as a row is.
pub(super) const UNIFORM_BYTES: usize = 1 << 16;
const IN_STORAGE: &str = "var<storage, read> coefficients: array<vec4<f32>>";
const IN_UNIFORM: &str = "var<uniform> coefficients: array<vec4<f32>, 4096>";

/// Forms of four rows that a thread has in registers: with more of them fewer threads hide each
/// other's reads.
const MAX_FORMS: usize = 16;

/// Chains of a read of the rows, at most, by forms a chain. The text of a declared likelihood of
/// much work is not repeated for many of them: reads do not count beside it.
pub(super) fn most_chains(forms: usize, law: Option<Law>) -> usize {
    match law {
        Some(law) if law.is_long() => 1,
        Some(_) if forms > 2 => 2,
        _ => MAX_TILE.min(1 << (MAX_FORMS / forms.max(1)).ilog2()),
    }
}

/// A compute pass with everything its text depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Program {
    /// Log ratios summed over all rows.
    RatioSum(RatioShape),
    /// Log ratios of listed rows, which are packed or not.
    RatioRows(RowFunction, bool),
    /// Gradients summed over all rows.
    GradientSum(GradientShape),
    /// An anchor's gradient and curvature summed over all rows.
    AnchorSum(AnchorShape),
    /// A step of a network, over rows that are packed or not.
    Network(Kernel, bool),
}

impl Program {
    fn entry(self) -> &'static str {
        match self {
            Program::RatioSum(..) => "ratio_sum",
            Program::RatioRows(..) => "ratio_rows",
            Program::GradientSum(_) => "gradient_sum",
            Program::AnchorSum(_) => "anchor_sum",
            Program::Network(kernel, _) => kernel.entry(),
        }
    }

    /// Whether rows' weights at an anchor are bound in the place of labels.
    pub fn is_weighted(self) -> bool {
        match self {
            Program::RatioSum(RatioShape { function, .. }) | Program::RatioRows(function, _) => {
                function.is_weighted()
            }
            _ => false,
        }
    }

    /// Whether a list of entries is bound after the coefficients.
    pub fn has_entries(self) -> bool {
        matches!(self, Program::RatioRows(..) | Program::Network(..))
    }

    /// Whether scratch memory is bound after the answers.
    pub fn has_scratch(self) -> bool {
        matches!(self, Program::Network(..))
    }

    /// Whether the rows that it reads are integers of 16 bits.
    fn is_packed(self) -> bool {
        match self {
            Program::RatioSum(shape) => shape.packed,
            Program::RatioRows(_, packed) => packed,
            Program::GradientSum(shape) => shape.packed,
            Program::AnchorSum(shape) => shape.packed,
            Program::Network(_, packed) => packed,
        }
    }

    /// Whether the workgroup size is a pipeline constant, not a part of the text.
    fn sized_late(self) -> bool {
        matches!(self, Program::RatioSum(..) | Program::RatioRows(..))
    }

    /// The whole text of the pass: constants, shared pieces, model, pass.
    pub fn source(self) -> String {
        let cells = [CELLS_F32, CELLS_I16][usize::from(self.is_packed())];
        let text = match self {
            Program::RatioSum(shape) => ratio_source(&shape.source(), shape.function, shape.tile),
            Program::RatioRows(function, _) => ratio_source(RATIO_ROWS, function, 1),
            Program::GradientSum(shape) => {
                let (constants, text) = shape.source();
                format!("{constants}{FIXED_POINT}\n{SOFTPLUS}\n{text}")
            }
            Program::AnchorSum(shape) => {
                format!("{}{SOFTPLUS}\n{}", shape.constants(), shape.source())
            }
            Program::Network(..) => format!("{FIXED_POINT}\n{SOFTPLUS}\n{}", network::source()),
        };
        let own = [IN_STORAGE, IN_UNIFORM][usize::from(self.is_uniform())];
        format!("{cells}\n{}", text.replace(IN_STORAGE, own))
    }

    /// Whether its coefficients are in a uniform buffer.
    pub fn is_uniform(self) -> bool {
        matches!(self, Program::RatioSum(shape) if shape.uniform)
    }
}

fn model_source(function: RowFunction) -> String {
    let text = match function {
        RowFunction::Logistic => include_str!("../../../../shaders/model/logistic.wgsl"),
        RowFunction::Affine => include_str!("../../../../shaders/model/gaussian_mean.wgsl"),
        RowFunction::Mixture => include_str!("../../../../shaders/model/mixture.wgsl"),
        RowFunction::LogisticRemainder => {
            include_str!("../../../../shaders/model/logistic_remainder.wgsl")
        }
        RowFunction::PoissonRemainder => {
            include_str!("../../../../shaders/model/poisson_remainder.wgsl")
        }
        RowFunction::Linear => include_str!("../../../../shaders/model/linear.wgsl"),
        RowFunction::MixtureRemainder { .. } => {
            include_str!("../../../../shaders/model/mixture_remainder.wgsl")
        }
        RowFunction::Poisson => include_str!("../../../../shaders/model/poisson.wgsl"),
        RowFunction::Declared(law) => return format!("{EXPRESSION}\n{}", law.ratio_shader()),
        RowFunction::DeclaredRemainder(law) => {
            return format!("{EXPRESSION}\n{}", law.remainder_shader());
        }
        // Their passes are others, or the CPU's; without a row function this does not compile.
        RowFunction::Network(_) | RowFunction::Layers(_) | RowFunction::NetworkRemainder(_) => "",
    };
    text.into()
}

/// What a row function is told beside its forms: the label, or in its place the weight at an
/// anchor.
const ONE_LABEL: &str = "alias Label = f32;
const LABELS: u32 = 1u;
fn label_of(first: f32, second: f32) -> Label {
    return first;
}";
/// Or the weight and, from behind all weights, the label.
const WEIGHT_AND_LABEL: &str = "alias Label = vec2<f32>;
const LABELS: u32 = 2u;
fn label_of(first: f32, second: f32) -> Label {
    return vec2<f32>(first, second);
}";

fn ratio_source(pass: &str, function: RowFunction, tile: usize) -> String {
    let k = function.forms();
    let c = function.offsets() - k;
    let shared = match function {
        RowFunction::LogisticRemainder | RowFunction::PoissonRemainder => REMAINDER,
        _ => "",
    };
    let labels = match function {
        RowFunction::DeclaredRemainder(_) => WEIGHT_AND_LABEL,
        _ => ONE_LABEL,
    };
    format!(
        "const K: u32 = {k}u;\nconst C: u32 = {c}u;\nconst T: u32 = {tile}u;\n{FIXED_POINT}\n{SOFTPLUS}\n{shared}\n{}\n{labels}\n{pass}",
        model_source(function)
    )
}

/// Pipelines made so far.
pub(super) struct Pipelines {
    /// Threads of a workgroup of the ratio passes.
    workgroup: u32,
    made: HashMap<Program, (wgpu::ComputePipeline, wgpu::BindGroupLayout)>,
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
        program: Program,
    ) -> Result<&(wgpu::ComputePipeline, wgpu::BindGroupLayout), EngineError> {
        if !self.made.contains_key(&program) {
            let made = make(device, program, self.workgroup)?;
            self.made.insert(program, made);
        }
        self.made
            .get(&program)
            .ok_or_else(|| EngineError::Device("pipeline vanished".into()))
    }
}

fn make(
    device: &Device,
    program: Program,
    workgroup: u32,
) -> Result<(wgpu::ComputePipeline, wgpu::BindGroupLayout), EngineError> {
    device.scoped(|| {
        let d = &device.device;
        let module = d.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(program.entry()),
            source: wgpu::ShaderSource::Wgsl(program.source().into()),
        });
        // Read-only bindings follow the uniform, then writable ones.
        let reads = 3 + u32::from(program.has_entries());
        let entries: Vec<wgpu::BindGroupLayoutEntry> =
            (0..reads + 2 + u32::from(program.has_scratch()))
                .map(|binding| wgpu::BindGroupLayoutEntry {
                    binding,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer {
                        ty: if binding == 0 || binding == 3 && program.is_uniform() {
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
            label: Some(program.entry()),
            entries: &entries,
        });
        let pipeline_layout = d.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(program.entry()),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let size = [("WORKGROUP", f64::from(workgroup))];
        let pipeline = d.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(program.entry()),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(program.entry()),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: if program.sized_late() { &size } else { &[] },
                // The passes write what they read.
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        (pipeline, layout)
    })
}

#[cfg(test)]
mod tests {
    use super::super::anchor::SCORE_SHARES;
    use super::*;
    use crate::expression::FAMILIES;
    use crate::model::{GradientFunction, Score};
    use crate::network::LayerKernel;
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    fn module(program: Program) -> naga::Module {
        let text = program.source();
        assert!(!text.contains("//= "), "a line without its text: {text}");
        let module = naga::front::wgsl::parse_str(&text)
            .unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
        Validator::new(ValidationFlags::all(), Capabilities::empty())
            .validate(&module)
            .unwrap_or_else(|e| panic!("{program:?}: {e:?}"));
        module
    }

    /// Every named likelihood, and one of every function that expressions may name; their parameters
    /// are sampled, or are numbers.
    fn laws(sampled: bool) -> Vec<Law> {
        let own = "lgamma(exp(a) + y) + log(exp(a) + y) + sqrt(exp(eta) + 1) + log1p(exp(eta)) \
                   + expm1(eta) + log1p_exp(eta * y) + inv_logit(eta) + std_normal_lcdf(eta)";
        let own = ("own", own, vec!["a"]);
        let families = FAMILIES.iter().map(|f| {
            let names = f.parameters.iter().map(|(name, _)| *name).collect();
            (f.name, f.likelihood, names)
        });
        let law = |(name, text, names): (&str, &str, Vec<&str>)| {
            let names: Vec<String> = names.into_iter().map(String::from).collect();
            let numbers: Vec<_> = names.iter().map(|n| (n.clone(), 0.7)).collect();
            match sampled {
                true => Law::new(name, text, &names, &[]),
                false => Law::new(name, text, &[], &numbers),
            }
        };
        families.chain([own]).map(|f| law(f).unwrap()).collect()
    }

    fn functions() -> Vec<RowFunction> {
        let mut all = vec![
            RowFunction::Logistic,
            RowFunction::Affine,
            RowFunction::Mixture,
            RowFunction::LogisticRemainder,
            RowFunction::PoissonRemainder,
            RowFunction::Linear,
            RowFunction::Poisson,
            RowFunction::MixtureRemainder { degree: 1 },
            RowFunction::MixtureRemainder { degree: 30 },
        ];
        all.extend(laws(true).into_iter().map(RowFunction::Declared));
        let thrice = laws(false)
            .into_iter()
            .filter(|law| law.has_remainder_shader());
        all.extend(thrice.map(RowFunction::DeclaredRemainder));
        // (All laws but that of beta, whose weights have no derivative here.)
        assert_eq!(all.len(), 9 + 15 + 14);
        all
    }

    fn gradients() -> Vec<GradientFunction> {
        let mut all = vec![GradientFunction::Affine, GradientFunction::Mixture];
        all.extend(scores_of_models().into_iter().map(GradientFunction::Score));
        all.extend(laws(true).into_iter().map(GradientFunction::Declared));
        all
    }

    fn scores_of_models() -> Vec<Score> {
        let mut all = vec![Score::Logistic, Score::Linear, Score::Poisson];
        all.extend(laws(false).into_iter().map(Score::Declared));
        all
    }

    fn kernels() -> impl Iterator<Item = Kernel> {
        let layers = LayerKernel::ALL.map(Kernel::Layer).into_iter();
        layers.chain(Kernel::BETWEEN)
    }

    fn sum(function: RowFunction, tile: usize, features: usize, packed: bool) -> Program {
        Program::RatioSum(RatioShape {
            function,
            tile,
            features,
            packed,
            uniform: packed,
        })
    }

    fn anchor(score: Score, features: usize, workgroup: usize, packed: bool) -> Program {
        Program::AnchorSum(AnchorShape {
            score,
            // The shapes below take turns.
            by: SCORE_SHARES[(features + workgroup) % SCORE_SHARES.len()],
            features,
            offset: packed,
            packed,
            workgroup,
        })
    }

    fn gradient(
        function: GradientFunction,
        tile: usize,
        (workgroup, kept): (usize, usize),
        packed: bool,
    ) -> Program {
        Program::GradientSum(GradientShape {
            function,
            tile,
            features: 4 * kept + 3,
            offset: packed,
            packed,
            workgroup,
            kept,
            straight: 4,
        })
    }

    /// The second pass of scores takes so many quads a turn.
    fn scores(tile: usize, features: usize, straight: usize, packed: bool) -> Program {
        Program::GradientSum(GradientShape {
            function: GradientFunction::Score(Score::Logistic),
            tile,
            features,
            offset: false,
            packed,
            // Few turns are unrolled by the driver, and then their number is not seen.
            workgroup: if tile == 1 { 1024 } else { 128 },
            kept: 0,
            straight,
        })
    }

    #[test]
    fn every_combination_is_valid_wgsl() {
        for packed in [false, true] {
            for function in functions() {
                for tile in [1, 2, 4, 8] {
                    for features in [1, 3, 8, 50] {
                        module(sum(function, tile, features, packed));
                    }
                }
                module(Program::RatioRows(function, packed));
            }
            for function in gradients() {
                for tile in [1, 2, 4, 8] {
                    for memory in [(16, 0), (128, 0), (128, 1), (64, 35)] {
                        module(gradient(function, tile, memory, packed));
                    }
                }
            }
            // All steps have one text.
            module(Program::Network(Kernel::Clip, packed));
            for score in scores_of_models() {
                for (features, workgroup) in [(1, 64), (4, 5), (50, 64), (200, 32)] {
                    module(anchor(score, features, workgroup, packed));
                }
            }
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
        let ratios = functions().into_iter().map(|f| sum(f, 2, 3, true));
        let gradients = gradients().into_iter();
        let gradients = gradients.map(|f| gradient(f, 2, (64, 1), true));
        let anchors = scores_of_models().into_iter();
        let anchors = anchors.map(|s| anchor(s, 5, 64, true));
        for program in ratios.chain(gradients).chain(anchors) {
            let module = module(program);
            let named = ["row_ratio", "row_gradient", "score", "scores", "slopes"];
            let seen: Vec<usize> = module
                .functions
                .iter()
                .filter(|(_, f)| f.name.as_deref().is_some_and(|n| named.contains(&n)))
                .map(|(_, f)| globals(&module, f))
                .collect();
            // (Of rows with an offset it is made of another.)
            assert!(
                !seen.is_empty() && seen.iter().all(|n| *n == 0),
                "{program:?}"
            );
            let entry = &module.entry_points[0].function;
            assert!(
                globals(&module, entry) > 0,
                "the check sees globals where they are"
            );
        }
    }

    /// The same of a network's layers: one function alone makes an index into its scratch memory, and
    /// the layers reach neither rows nor labels.
    #[test]
    fn layers_reach_no_other_row() {
        let text = include_str!("../../../../shaders/network_layers.wgsl");
        let by_word = ["scratch[word(row, ", "scratch[note_at("];
        for (at, _) in text.match_indices("scratch[") {
            assert!(by_word.iter().any(|way| text[at..].starts_with(way)));
        }
        for private in ["rows[", "labels[", "entries[", "answers["] {
            assert!(!text.contains(private), "{private}");
        }
        let module = module(Program::Network(Kernel::Clip, true));
        let known: Vec<&str> = module.entry_points.iter().map(|e| &*e.name).collect();
        for kernel in kernels() {
            assert!(known.contains(&kernel.entry()), "{}", kernel.entry());
        }
    }

    /// The uniforms' layouts here and in the shaders.
    #[test]
    fn params_have_the_layout_of_their_twin() {
        use super::super::{
            anchor::AnchorParams, buffers::Params, gradient::GradientParams,
            network::NetworkParams, ratio::SumParams,
        };
        use std::mem::offset_of;
        macro_rules! fields {
            ($params:ident: $($field:ident)*) => {
                (
                    stringify!($params),
                    vec![$((stringify!($field), offset_of!($params, $field))),*],
                    size_of::<$params>(),
                )
            };
        }
        let rows = fields!(Params: rows quads features quads_per_thread first_slot coefficients labelled entries);
        let sums = fields!(SumParams: rows quads first_quad end_quad quads_per_thread slots tiles labelled);
        let gradients = fields!(GradientParams: rows stride features dim vectors labelled slots answers shares first_group bound_high bound_low scale limit edge);
        let anchors = fields!(AnchorParams: rows stride slots edge score_scale weight_scale);
        let (name, mut fields, size) = fields!(NetworkParams: row_stride first items listed labelled steps weights first_answer bound_high bound_low bound scale limit room features values parameters outputs);
        let layer = "input_at input_height input_width input_channels input_size output_at output_height output_width output_channels output_size first_weight kernel_height kernel_width stride padding group_channels notes_at activation";
        let first = offset_of!(NetworkParams, layer);
        let layer = layer.split(' ').enumerate();
        fields.extend(layer.map(|(i, field)| (field, first + 4 * i)));
        let networks = (name, fields, size);
        for (program, (name, fields, size)) in [
            (sum(RowFunction::Logistic, 1, 3, false), sums),
            (Program::RatioRows(RowFunction::Logistic, false), rows),
            (
                gradient(GradientFunction::Affine, 1, (128, 0), false),
                gradients,
            ),
            (anchor(Score::Linear, 3, 64, false), anchors),
            (Program::Network(Kernel::Clip, false), networks),
        ] {
            let module = module(program);
            let (_, ty) = module
                .types
                .iter()
                .find(|(_, t)| t.name.as_deref() == Some(name))
                .unwrap();
            let naga::TypeInner::Struct { members, span } = &ty.inner else {
                panic!("{name} is a struct");
            };
            assert_eq!(*span as usize, size);
            let names: Vec<(&str, u32, bool)> = members
                .iter()
                .map(|m| {
                    let scalar = module.types[m.ty].inner.scalar_kind();
                    let float = scalar == Some(naga::ScalarKind::Float);
                    (m.name.as_deref().unwrap(), m.offset, float)
                })
                .collect();
            let is_float = |f: &str| f.ends_with("scale") || f == "limit" || f == "edge";
            let expected: Vec<(&str, u32, bool)> = fields
                .iter()
                .map(|&(f, offset)| (f, offset as u32, is_float(f)))
                .collect();
            assert_eq!(names, expected);
        }
    }

    /// The passes whose instructions `benches/instructions.sh` counts, in the folder that it names.
    #[test]
    #[ignore = "for benches/instructions.sh"]
    fn passes_to_count_instructions_of() {
        let folder = std::env::var("DPMC_PASSES").unwrap();
        let write = |name: String, program: Program| {
            let path = format!("{folder}/{}-{name}.wgsl", program.entry());
            std::fs::write(path, program.source()).unwrap();
        };
        for kernel in kernels() {
            write("network".into(), Program::Network(kernel, true));
        }
        let (left, tile) = (RowFunction::LogisticRemainder, most_chains(3, None));
        write(format!("left-{tile}x50-i16"), sum(left, tile, 50, true));
        // A logistic regression as an expression, and likelihoods whose rows are work, with their
        // parameters sampled and held.
        let logistic = Law::new("expression", "-log1p_exp(-y * eta)", &[], &[]).unwrap();
        let named = |sampled, name| {
            laws(sampled)
                .into_iter()
                .find(|l| l.name() == name)
                .unwrap()
        };
        let of = |sampled| ["negative-binomial", "student-t"].map(|name| named(sampled, name));
        for law in of(true).into_iter().chain([logistic]) {
            let (name, tile) = (law.name(), most_chains(2, Some(law)));
            let ratio = sum(RowFunction::Declared(law), tile, 50, true);
            write(format!("{name}-{tile}x50-i16"), ratio);
        }
        for law in of(true) {
            let shape = GradientShape {
                function: GradientFunction::Declared(law),
                tile: most_chains(1, Some(law)),
                features: 50,
                offset: false,
                packed: true,
                workgroup: 128,
                kept: 0,
                straight: 1,
            };
            let name = format!("{}-{}x50-i16", law.name(), shape.tile);
            write(name, Program::GradientSum(shape));
        }
        for law in of(false).into_iter().chain([logistic]) {
            let (name, tile) = (law.name(), most_chains(3, Some(law)));
            let left = sum(RowFunction::DeclaredRemainder(law), tile, 50, true);
            write(format!("{name}-left-{tile}x50-i16"), left);
            let anchor = anchor(Score::Declared(law), 50, 64, true);
            write(format!("{name}-50-i16"), anchor);
        }
        for (packed, name) in [(false, "f32"), (true, "i16")] {
            for tile in [1, 4, 8] {
                for features in [6, 14, 50] {
                    let name = format!("{tile}x{features:02}-{name}");
                    write(name, sum(RowFunction::Logistic, tile, features, packed));
                }
            }
            for tile in [1, 8] {
                // A rest, and the same after a turn of the loop: they differ by what the turn
                // costs. As do one quad of rows a turn and two; four is what one chain takes.
                let (rest, turn) = (6, 14);
                for (features, straight) in [(rest, 1), (turn, 1), (50, 1), (50, 2), (50, 4)] {
                    let name = format!("{tile}x{features:02}by{straight}-{name}");
                    write(name, scores(tile, features, straight, packed));
                }
            }
            for (features, workgroup) in [(50, 64), (200, 32)] {
                let program = anchor(Score::Logistic, features, workgroup, packed);
                write(format!("{features}-{name}"), program);
            }
        }
    }
}
