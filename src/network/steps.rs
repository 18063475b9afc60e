//! A network as the steps that a GPU takes over a batch of rows, one after the other, a thread for
//! each value of each row. Their twins are the entry points of `shaders/network_layers.wgsl`.

use super::layer::{Operation, Stage, Window};
use super::{Network, Volume};

/// What a layer's step computes, named as its entry point. What lies between rows, layers and answers
/// has steps of its own, which the engine adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LayerKernel {
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
}

impl LayerKernel {
    /// All of them.
    #[cfg(test)]
    pub const ALL: [LayerKernel; 14] = [
        LayerKernel::Sums,
        LayerKernel::SumsInWeights,
        LayerKernel::SumsInInput,
        LayerKernel::Largest,
        LayerKernel::LargestInInput,
        LayerKernel::Means,
        LayerKernel::MeansInInput,
        LayerKernel::GroupMoments,
        LayerKernel::GroupValues,
        LayerKernel::GroupInWeights,
        LayerKernel::GroupLevels,
        LayerKernel::GroupInInput,
        LayerKernel::Activations,
        LayerKernel::ActivationsInInput,
    ];

    /// Entry point.
    pub fn entry(self) -> &'static str {
        match self {
            LayerKernel::Sums => "sums",
            LayerKernel::SumsInWeights => "sums_in_weights",
            LayerKernel::SumsInInput => "sums_in_input",
            LayerKernel::Largest => "largest",
            LayerKernel::LargestInInput => "largest_in_input",
            LayerKernel::Means => "means",
            LayerKernel::MeansInInput => "means_in_input",
            LayerKernel::GroupMoments => "group_moments",
            LayerKernel::GroupValues => "group_values",
            LayerKernel::GroupInWeights => "group_in_weights",
            LayerKernel::GroupLevels => "group_levels",
            LayerKernel::GroupInInput => "group_in_input",
            LayerKernel::Activations => "activations",
            LayerKernel::ActivationsInInput => "activations_in_input",
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

/// One step of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerStep {
    pub kernel: LayerKernel,
    /// Threads of a row.
    pub threads: usize,
    /// Turns of a thread's loops, at most.
    pub turns: usize,
    pub layer: LayerParams,
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
    pub(crate) fn forward_steps(self) -> Vec<LayerStep> {
        let mut steps = Vec::new();
        for (stage, layer) in self.stages() {
            let mut step = |kernel, threads, turns| {
                steps.push(LayerStep {
                    kernel,
                    threads,
                    turns,
                    layer,
                });
            };
            let outputs = stage.output.size();
            match stage.operation {
                Operation::Sums(w) => {
                    let threads = places(stage.output) * quads(stage.output);
                    step(LayerKernel::Sums, threads, turns(w, stage.input.channels));
                }
                Operation::Largest(w) => step(LayerKernel::Largest, outputs, w.size()),
                Operation::Mean(w) => step(LayerKernel::Means, outputs, w.size()),
                Operation::Normalise(channels) => {
                    let values = places(stage.input) * channels;
                    step(LayerKernel::GroupMoments, groups(stage), 2 * values);
                    step(LayerKernel::GroupValues, outputs, 0);
                }
                Operation::Tanh | Operation::Relu | Operation::Softplus => {
                    step(LayerKernel::Activations, outputs, 0);
                }
            }
        }
        steps
    }

    /// From the derivatives in a row's outputs to its gradient.
    pub(crate) fn backward_steps(self) -> Vec<LayerStep> {
        let mut steps = Vec::new();
        for (k, (stage, layer)) in self.stages().enumerate().rev() {
            let mut step = |kernel, threads, turns| {
                steps.push(LayerStep {
                    kernel,
                    threads,
                    turns,
                    layer,
                });
            };
            let (input, output) = (stage.input, stage.output);
            match stage.operation {
                Operation::Sums(w) => {
                    let threads = (w.size() * input.channels + 1) * quads(output);
                    let turns = output.height * (1 + output.width);
                    step(LayerKernel::SumsInWeights, threads, turns);
                }
                Operation::Normalise(_) => {
                    step(LayerKernel::GroupInWeights, input.channels, places(input));
                }
                _ => {}
            }
            if k == 0 {
                continue;
            }
            let inputs = input.size();
            match stage.operation {
                Operation::Sums(w) => {
                    let threads = places(input) * quads(input);
                    step(LayerKernel::SumsInInput, threads, turns(w, output.channels));
                }
                Operation::Largest(w) => {
                    let windows = w.kernel.map(|side| side.div_ceil(w.stride));
                    let turns = turns(w, 0) + w.size() * windows[0] * windows[1];
                    step(LayerKernel::LargestInInput, inputs, turns);
                }
                Operation::Mean(w) => step(LayerKernel::MeansInInput, inputs, turns(w, 0)),
                Operation::Normalise(channels) => {
                    let values = places(input) * channels;
                    step(LayerKernel::GroupLevels, groups(stage), values);
                    step(LayerKernel::GroupInInput, inputs, 0);
                }
                Operation::Tanh | Operation::Relu | Operation::Softplus => {
                    step(LayerKernel::ActivationsInInput, inputs, 0);
                }
            }
        }
        steps
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

/// Turns of loops over a window's rows, its columns and some channels of each place.
fn turns(window: Window, channels: usize) -> usize {
    window.kernel[0] + window.size() * (1 + channels)
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
