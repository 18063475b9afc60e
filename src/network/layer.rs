//! What layers there are, and how each fits behind the one before.

use serde::{Deserialize, Serialize};

use std::fmt;
use std::ops::Range;

/// Values in rows and columns of channels; of value (y, x, c) the number is
/// `(y · width + x) · channels + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Values at each place.
    pub channels: usize,
}

impl Volume {
    /// So many values in a line.
    pub fn flat(size: usize) -> Self {
        Volume {
            height: 1,
            width: 1,
            channels: size,
        }
    }

    /// Number of values.
    pub fn size(self) -> usize {
        self.height * self.width * self.channels
    }

    /// The same, where it is a number.
    pub(super) fn checked_size(self) -> Option<usize> {
        let area = self.height.checked_mul(self.width)?;
        area.checked_mul(self.channels)
    }
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {} × {}", self.height, self.width, self.channels)
    }
}

/// A layer of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layer {
    /// Weighted sums of all values, and a bias each.
    Dense {
        /// Number of sums.
        units: usize,
    },
    /// The same sums of every square of places.
    Conv {
        /// Number of sums a square.
        channels: usize,
        /// Side of a square.
        kernel: usize,
        /// Places from one square to the next.
        stride: usize,
        /// Zeros around the input on each side.
        padding: usize,
    },
    /// The largest value of each channel in every square of places.
    MaxPool {
        /// Side of a square.
        kernel: usize,
        /// Places from one square to the next.
        stride: usize,
    },
    /// The mean of each channel in every square of places.
    AveragePool {
        /// Side of a square.
        kernel: usize,
        /// Places from one square to the next.
        stride: usize,
    },
    /// Values of so many groups of channels less their mean, over their standard deviation, both
    /// over the group's values of the row (Wu & He 2018); then `(1 + scale) · v + shift` by channel.
    GroupNorm {
        /// Number of groups; it divides the channels.
        groups: usize,
    },
    /// `tanh` of every value.
    Tanh,
    /// The positive part of every value.
    Relu,
    /// `log(1 + e^v)` of every value.
    Softplus,
}

impl Layer {
    /// Its name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Dense { .. } => "dense",
            Layer::Conv { .. } => "conv",
            Layer::MaxPool { .. } => "max_pool",
            Layer::AveragePool { .. } => "average_pool",
            Layer::GroupNorm { .. } => "group_norm",
            Layer::Tanh => "tanh",
            Layer::Relu => "relu",
            Layer::Softplus => "softplus",
        }
    }
}

/// What is wrong with a network's declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct NetworkError {
    /// The layer at fault, from 0; none where it is the network as a whole.
    pub layer: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl NetworkError {
    pub(super) fn whole(what: String) -> Self {
        NetworkError {
            layer: None,
            what: format!("the network {what}"),
        }
    }
}

/// Squares, or rectangles, of places that slide over a volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Rows and columns.
    pub kernel: [usize; 2],
    pub stride: usize,
    pub padding: usize,
}

impl Window {
    /// Places in it.
    #[inline(always)]
    pub fn size(self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Places where a window of a side `kernel` fits into `size`; none where it does not.
    fn places(self, kernel: usize, size: usize) -> Option<usize> {
        let room = size.checked_add(self.padding.checked_mul(2)?)?;
        Some(room.checked_sub(kernel)? / self.stride + 1)
    }

    /// Rows (or columns) of the window at place `at` that lie within `size`.
    #[inline(always)]
    pub fn inside(self, kernel: usize, at: usize, size: usize) -> Range<usize> {
        let start = at * self.stride;
        let low = self.padding.saturating_sub(start);
        low..kernel
            .min((size + self.padding).saturating_sub(start))
            .max(low)
    }

    /// Places whose window has its row (or column) `k` within `size`, of so many.
    #[inline(always)]
    pub fn places_of(self, k: usize, size: usize, places: usize) -> Range<usize> {
        let low = self.padding.saturating_sub(k).div_ceil(self.stride);
        let high = match (size + self.padding).checked_sub(k + 1) {
            Some(last) => (last / self.stride + 1).min(places),
            None => 0,
        };
        low..high.max(low)
    }

    /// Where row (or column) `k` of the window at place `at` lies; it must lie inside.
    #[inline(always)]
    pub fn position(self, at: usize, k: usize) -> usize {
        at * self.stride + k - self.padding
    }
}

/// What a layer does to the values before it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// Weighted sums over windows: a dense layer's is the whole input.
    Sums(Window),
    Largest(Window),
    Mean(Window),
    /// Of so many channels a group.
    Normalise(usize),
    Tanh,
    Relu,
    Softplus,
}

/// A layer in its place.
#[derive(Debug)]
pub(super) struct Stage {
    pub operation: Operation,
    pub input: Volume,
    pub output: Volume,
    /// Where its input begins among a row's values, and its output.
    pub from: usize,
    pub to: usize,
    /// Its first parameter.
    pub first: usize,
    name: String,
}

impl Stage {
    /// Layer `place` (from 0; `None`: the head) behind `input`; offsets of input, output and first
    /// parameter.
    pub fn fit(
        place: Option<usize>,
        layer: Layer,
        input: Volume,
        (from, to, first): (usize, usize, usize),
    ) -> Result<Self, NetworkError> {
        let refuse = |what: String| NetworkError {
            layer: place,
            what: match place {
                Some(k) => format!("layer {} ({}) {what}", k + 1, layer.name()),
                None => format!("the label {what}"),
            },
        };
        let positive = |name: &str, value: usize| match value {
            0 => Err(refuse(format!("has {name} = 0; it must be at least 1"))),
            _ => Ok(()),
        };
        let slide = |kernel: usize, stride: usize, padding: usize, channels: usize| {
            positive("a side", kernel)?;
            positive("stride", stride)?;
            let window = Window {
                kernel: [kernel; 2],
                stride,
                padding,
            };
            if padding >= kernel {
                let what = format!(
                    "has padding = {padding}, which must be less than its side of {kernel}"
                );
                return Err(refuse(what));
            }
            let sides = (
                window.places(kernel, input.height),
                window.places(kernel, input.width),
            );
            match sides {
                (Some(height), Some(width)) => Ok((
                    window,
                    Volume {
                        height,
                        width,
                        channels,
                    },
                )),
                _ => Err(refuse(format!(
                    "has squares of side {kernel}, and gets {input} values (height × width × channels), which hold none"
                ))),
            }
        };
        let (operation, output) = match layer {
            Layer::Dense { units } => {
                positive("units", units)?;
                let window = Window {
                    kernel: [input.height, input.width],
                    stride: 1,
                    padding: 0,
                };
                (Operation::Sums(window), Volume::flat(units))
            }
            Layer::Conv {
                channels,
                kernel,
                stride,
                padding,
            } => {
                positive("channels", channels)?;
                let (window, output) = slide(kernel, stride, padding, channels)?;
                (Operation::Sums(window), output)
            }
            Layer::MaxPool { kernel, stride } => {
                let (window, output) = slide(kernel, stride, 0, input.channels)?;
                (Operation::Largest(window), output)
            }
            Layer::AveragePool { kernel, stride } => {
                let (window, output) = slide(kernel, stride, 0, input.channels)?;
                (Operation::Mean(window), output)
            }
            Layer::GroupNorm { groups } => {
                positive("groups", groups)?;
                if !input.channels.is_multiple_of(groups) {
                    let what = format!(
                        "has {groups} groups, which do not divide the channels of {input} values (height × width × channels)"
                    );
                    return Err(refuse(what));
                }
                (Operation::Normalise(input.channels / groups), input)
            }
            Layer::Tanh => (Operation::Tanh, input),
            Layer::Relu => (Operation::Relu, input),
            Layer::Softplus => (Operation::Softplus, input),
        };
        let stage = Stage {
            operation,
            input,
            output,
            from,
            to,
            first,
            name: match place {
                Some(k) => format!("{}{}", layer.name(), k + 1),
                None => "head".into(),
            },
        };
        let counts = output.checked_size().zip(stage.checked_parameters());
        match counts {
            Some((values, parameters)) if values.max(parameters) < 1 << 40 => Ok(stage),
            _ => Err(refuse("is beyond any memory".into())),
        }
    }

    fn checked_parameters(&self) -> Option<usize> {
        let window = match self.operation {
            Operation::Sums(window) => window,
            Operation::Normalise(_) => return self.input.channels.checked_mul(2),
            _ => return Some(0),
        };
        let [rows, columns] = window.kernel;
        let sum = rows
            .checked_mul(columns)?
            .checked_mul(self.input.channels)?;
        sum.checked_add(1)?.checked_mul(self.output.channels)
    }

    /// Number of its parameters.
    pub fn parameters(&self) -> usize {
        self.checked_parameters().unwrap_or(0)
    }

    /// For each of them the number of values that its sum is over, and 0 for what starts at 0:
    /// biases, and scales and shifts of groups.
    pub fn summands(&self) -> Vec<usize> {
        if matches!(self.operation, Operation::Normalise(_)) {
            return vec![0; self.parameters()];
        }
        let outputs = self.output.channels.min(self.parameters());
        let weights = self.parameters() - outputs;
        let values = weights.checked_div(outputs).unwrap_or(0);
        let biases = std::iter::repeat_n(0, outputs);
        std::iter::repeat_n(values, weights).chain(biases).collect()
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        let window = match self.operation {
            Operation::Sums(window) => window,
            Operation::Normalise(_) => {
                let name = |what: &str, c| format!("{}.{what}[{c}]", self.name);
                let of = |what: &'static str| (0..self.input.channels).map(move |c| name(what, c));
                return of("scale").chain(of("shift")).collect();
            }
            _ => return Vec::new(),
        };
        let [rows, columns] = window.kernel;
        let (inputs, outputs) = (self.input.channels, self.output.channels);
        let mut names = Vec::with_capacity(self.parameters());
        for y in 0..rows {
            for x in 0..columns {
                for c in 0..inputs {
                    let name = |o| format!("{}.w[{y},{x},{c},{o}]", self.name);
                    names.extend((0..outputs).map(name));
                }
            }
        }
        names.extend((0..outputs).map(|o| format!("{}.b[{o}]", self.name)));
        names
    }
}
