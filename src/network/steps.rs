//! A network as the steps that a GPU takes over a batch of rows, one after the other, a thread for
//! each value of each row. Their twins are the entry points of `shaders/network_layers.wgsl` and
//! `shaders/network_pass.wgsl`.

use super::layer::{Operation, Stage};
use super::{Network, Volume};

/// What a step computes, named as its entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    Features,
    Sums,
    SumsInWeights,
    SumsInInput,
    Largest,
    LargestInInput,
    Means,
    MeansInInput,
    GroupMoments,
    GroupValues,
    GroupInWeights,
    GroupLevels,
    GroupInInput,
    Activations,
    ActivationsInInput,
    Density,
    Ratio,
    HeadErrors,
    /// A workgroup a row.
    Clip,
    /// A thread for each coordinate of all rows.
    AddUp,
}

impl Kernel {
    /// All of them.
    #[cfg(test)]
    pub const ALL: [Kernel; 20] = [
        Kernel::Features,
        Kernel::Sums,
        Kernel::SumsInWeights,
        Kernel::SumsInInput,
        Kernel::Largest,
        Kernel::LargestInInput,
        Kernel::Means,
        Kernel::MeansInInput,
        Kernel::GroupMoments,
        Kernel::GroupValues,
        Kernel::GroupInWeights,
        Kernel::GroupLevels,
        Kernel::GroupInInput,
        Kernel::Activations,
        Kernel::ActivationsInInput,
        Kernel::Density,
        Kernel::Ratio,
        Kernel::HeadErrors,
        Kernel::Clip,
        Kernel::AddUp,
    ];

    /// Entry point.
    pub fn entry(self) -> &'static str {
        match self {
            Kernel::Features => "features",
            Kernel::Sums => "sums",
            Kernel::SumsInWeights => "sums_in_weights",
            Kernel::SumsInInput => "sums_in_input",
            Kernel::Largest => "largest",
            Kernel::LargestInInput => "largest_in_input",
            Kernel::Means => "means",
            Kernel::MeansInInput => "means_in_input",
            Kernel::GroupMoments => "group_moments",
            Kernel::GroupValues => "group_values",
            Kernel::GroupInWeights => "group_in_weights",
            Kernel::GroupLevels => "group_levels",
            Kernel::GroupInInput => "group_in_input",
            Kernel::Activations => "activations",
            Kernel::ActivationsInInput => "activations_in_input",
            Kernel::Density => "density",
            Kernel::Ratio => "ratio",
            Kernel::HeadErrors => "head_errors",
            Kernel::Clip => "clip",
            Kernel::AddUp => "add_up",
        }
    }
}

/// A layer in the uniform of its steps; twin of the last part of `NetworkParams` in
/// `shaders/network_pass.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct LayerParams {
    input_at: u32,
    /// Height, width, channels and size.
    input: [u32; 4],
    output_at: u32,
    output: [u32; 4],
    first_weight: u32,
    kernel: [u32; 2],
    stride: u32,
    padding: u32,
    group_channels: u32,
    notes_at: u32,
    activation: u32,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub kernel: Kernel,
    /// Threads of a row.
    pub threads: usize,
    pub layer: LayerParams,
}

impl Step {
    /// A step that is no layer's.
    pub fn of(kernel: Kernel, threads: usize) -> Self {
        Step {
            kernel,
            threads,
            layer: LayerParams::default(),
        }
    }
}

impl Network {
    /// Values of a row between all layers.
    pub(crate) fn values(self) -> usize {
        self.0.values
    }

    /// Words that layers note down of a row, beside values, their derivatives and the gradient.
    pub(crate) fn notes(self) -> usize {
        self.0.stages.iter().map(notes).sum()
    }

    /// From a row's features to its outputs.
    pub(crate) fn forward_steps(self) -> Vec<Step> {
        let mut steps = vec![Step::of(Kernel::Features, self.features())];
        for (stage, layer) in self.stages() {
            let step = |kernel, threads| Step {
                kernel,
                threads,
                layer,
            };
            let kernel = match stage.operation {
                Operation::Sums(_) => Kernel::Sums,
                Operation::Largest(_) => Kernel::Largest,
                Operation::Mean(_) => Kernel::Means,
                Operation::Normalise(_) => {
                    steps.push(step(Kernel::GroupMoments, groups(stage)));
                    Kernel::GroupValues
                }
                Operation::Tanh | Operation::Relu | Operation::Softplus => Kernel::Activations,
            };
            let threads = match kernel {
                Kernel::Sums => places(stage.output) * quads(stage.output),
                _ => stage.output.size(),
            };
            steps.push(step(kernel, threads));
        }
        steps
    }

    /// From the derivatives in a row's outputs to its gradient.
    pub(crate) fn backward_steps(self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (k, (stage, layer)) in self.stages().enumerate().rev() {
            let mut step = |kernel, threads| {
                steps.push(Step {
                    kernel,
                    threads,
                    layer,
                });
            };
            let inputs = stage.input.size();
            match stage.operation {
                Operation::Sums(w) => step(
                    Kernel::SumsInWeights,
                    (w.size() * stage.input.channels + 1) * quads(stage.output),
                ),
                Operation::Normalise(_) => step(Kernel::GroupInWeights, stage.input.channels),
                _ => {}
            }
            if k == 0 {
                continue;
            }
            match stage.operation {
                Operation::Sums(_) => {
                    step(
                        Kernel::SumsInInput,
                        places(stage.input) * quads(stage.input),
                    );
                }
                Operation::Largest(_) => step(Kernel::LargestInInput, inputs),
                Operation::Mean(_) => step(Kernel::MeansInInput, inputs),
                Operation::Normalise(_) => {
                    step(Kernel::GroupLevels, groups(stage));
                    step(Kernel::GroupInInput, inputs);
                }
                Operation::Tanh | Operation::Relu | Operation::Softplus => {
                    step(Kernel::ActivationsInInput, inputs);
                }
            }
        }
        steps
    }

    /// Turns of the loops of the thread that has most of them, at most.
    pub(crate) fn longest_loop(self) -> usize {
        let of = |stage: &Stage| {
            let (input, output) = (stage.input, stage.output);
            match stage.operation {
                Operation::Sums(w) => {
                    let rows = w.kernel[0] + w.size();
                    let forward = rows + w.size() * input.channels;
                    let back = rows + w.size() * output.channels;
                    forward.max(back).max(output.height * (1 + output.width))
                }
                Operation::Largest(w) | Operation::Mean(w) => w.size() * (2 + w.size()),
                Operation::Normalise(size) => 2 * input.height * input.width * size,
                _ => 0,
            }
        };
        self.0.stages.iter().map(of).max().unwrap_or(0)
    }

    /// Layers with what their steps are told of them.
    fn stages(
        self,
    ) -> impl DoubleEndedIterator<Item = (&'static Stage, LayerParams)> + ExactSizeIterator {
        let mut notes_at = 2 * self.0.values + self.0.parameters;
        let mut layers = Vec::new();
        for stage in &self.0.stages {
            layers.push((stage, params(stage, notes_at)));
            notes_at += notes(stage);
        }
        layers.into_iter()
    }
}

/// Places of a volume.
fn places(volume: Volume) -> usize {
    volume.height * volume.width
}

/// Fours of its channels, each of which is one thread's.
fn quads(volume: Volume) -> usize {
    volume.channels.div_ceil(4)
}

/// Groups of a layer that normalises them.
fn groups(stage: &Stage) -> usize {
    match stage.operation {
        Operation::Normalise(channels) => stage.input.channels / channels,
        _ => 0,
    }
}

/// Words that a layer notes down: four a group.
fn notes(stage: &Stage) -> usize {
    4 * groups(stage)
}

fn params(stage: &Stage, notes_at: usize) -> LayerParams {
    let (kernel, stride, padding) = match stage.operation {
        Operation::Sums(w) | Operation::Largest(w) | Operation::Mean(w) => {
            (w.kernel, w.stride, w.padding)
        }
        _ => ([1; 2], 1, 0),
    };
    let volume = |v: Volume| [v.height, v.width, v.channels, v.size()].map(|number| number as u32);
    LayerParams {
        input_at: stage.from as u32,
        input: volume(stage.input),
        output_at: stage.to as u32,
        output: volume(stage.output),
        first_weight: stage.first as u32,
        kernel: kernel.map(|side| side as u32),
        stride: stride as u32,
        padding: padding as u32,
        group_channels: match stage.operation {
            Operation::Normalise(channels) => channels as u32,
            _ => 1,
        },
        notes_at: notes_at as u32,
        activation: match stage.operation {
            Operation::Relu => 1,
            Operation::Softplus => 2,
            _ => 0,
        },
    }
}
