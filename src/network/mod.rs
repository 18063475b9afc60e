//! Networks of layers: what a row's outputs, log likelihood and gradient are. Pure functions of
//! numbers, in f64 for one row and in f32 for the rows of a tile: privacy does not rest on them,
//! for the engines clip and round what comes out.

mod evaluate;
mod head;
mod layer;
#[cfg(feature = "gpu")]
mod steps;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Mutex;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::expression::Fast;
use evaluate::{backward, forward};
use layer::Stage;

pub use layer::{Layer, NetworkError, Volume};
#[cfg(feature = "gpu")]
pub(crate) use steps::{LayerKernel, LayerParams, LayerStep};

/// Rows that are computed side by side in f32: those of a tile.
pub(crate) const LANES: usize = 16;
/// Most parameters; gradients have at most as many coordinates.
pub const MOST_PARAMETERS: usize = 1 << 18;
/// Most values that a row has between all layers: its scratch memory stays small.
const MOST_VALUES: usize = 1 << 20;

/// A network: layers over a row's features, and a dense layer to its outputs. One output is the log
/// odds of the label +1; several are the log weights of as many classes. One value for each
/// declaration.
#[derive(Clone, Copy)]
pub struct Network(&'static Parts);

#[derive(Debug)]
struct Parts {
    input: Volume,
    layers: Vec<Layer>,
    outputs: usize,
    stages: Vec<Stage>,
    /// Values of a row between all layers, its features first.
    values: usize,
    parameters: usize,
}

/// Networks made so far: rows' functions are compared and copied all the time, so each is made once
/// and kept to the end.
static KNOWN: Mutex<Vec<&'static Parts>> = Mutex::new(Vec::new());

impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Network {}

impl std::hash::Hash for Network {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0).hash(state);
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?} {:?} {}",
            self.0.input, self.0.layers, self.0.outputs
        )
    }
}

/// As its declaration.
impl Serialize for Network {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.0.input, &self.0.layers, self.0.outputs).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (input, layers, outputs) = <(Volume, Vec<Layer>, usize)>::deserialize(from)?;
        Network::new(input, &layers, outputs).map_err(serde::de::Error::custom)
    }
}

impl Network {
    /// `input`: how a row's features are arranged; `outputs`: of the last dense layer, which is not
    /// one of `layers`: 1 for a binary label, else the number of classes.
    ///
    /// # Errors
    /// [`NetworkError`] naming the layer that does not fit, and what it gets.
    pub fn new(input: Volume, layers: &[Layer], outputs: usize) -> Result<Self, NetworkError> {
        let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
        let same =
            |p: &&&'static Parts| p.input == input && p.layers == layers && p.outputs == outputs;
        if let Some(parts) = known.iter().find(same) {
            return Ok(Network(parts));
        }
        let parts: &'static Parts = Box::leak(Box::new(Parts::new(input, layers, outputs)?));
        known.push(parts);
        Ok(Network(parts))
    }

    /// Features of a row.
    pub fn features(self) -> usize {
        self.0.input.size()
    }

    /// Number K of outputs.
    pub fn outputs(self) -> usize {
        self.0.outputs
    }

    /// Number d of parameters.
    pub fn parameters(self) -> usize {
        self.0.parameters
    }

    /// Names of the parameters, in order: layer by layer weights `[y, x, channel in, channel out]`,
    /// then biases; or scales and shifts by channel.
    pub fn names(self) -> Vec<String> {
        self.0.stages.iter().flat_map(Stage::names).collect()
    }

    /// For each parameter the number of values that its sum is over, and 0 for what starts at 0.
    pub(crate) fn summands(self) -> Vec<usize> {
        self.0.stages.iter().flat_map(Stage::summands).collect()
    }

    /// log p(y | x, θ) of a row, nats.
    pub fn log_likelihood(self, theta: &[f64], row: &[f64], label: f64) -> f64 {
        let mut values = vec![[0.0]; self.0.values];
        self.outputs_of::<f64, f64, 1>(theta, row.as_chunks().0, &mut values);
        let [value] = head::log_density::<f64, f64, 1>(self.last(&values), &[label]);
        value
    }

    /// ∇_θ log p(y | x, θ) of a row, d values.
    pub fn gradient(self, theta: &[f64], row: &[f64], label: f64) -> Vec<f64> {
        let mut room = Room::new(self);
        let mut gradient = vec![[0.0]; self.parameters()];
        self.differentiate::<f64, f64, 1>(
            theta,
            row.as_chunks().0,
            &[label],
            &mut room,
            &mut gradient,
        );
        gradient.into_flattened()
    }

    /// What the head says of rows, one after the other: the probability of the label +1, or of
    /// every class, K values a row. A last row that is not whole is left out.
    pub fn probabilities(self, theta: &[f64], rows: &[f32]) -> Vec<f64> {
        /// Rows side by side.
        const SIDE: usize = 8;
        let (features, outputs) = (self.features(), self.0.outputs);
        let mut values = vec![[0.0; SIDE]; self.0.values];
        let mut said = Vec::with_capacity(rows.len() / features * outputs);
        for some in rows.chunks(features * SIDE) {
            let live = some.len() / features;
            let feature = |j: usize| {
                let of = |i: usize| some.get(i * features + j).copied().unwrap_or(0.0);
                std::array::from_fn(|i| f64::from(of(i)))
            };
            let tile: Vec<[f64; SIDE]> = (0..features).map(feature).collect();
            self.outputs_of::<f64, f64, SIDE>(theta, &tile, &mut values);
            let last = self.last(&values);
            let of = |label: f64| head::log_density::<f64, f64, SIDE>(last, &[label; SIDE]);
            let laws: Vec<[f64; SIDE]> = match outputs {
                1 => vec![of(1.0)],
                classes => (0..classes).map(|k| of(k as f64)).collect(),
            };
            said.extend((0..live).flat_map(|i| laws.iter().map(move |law| law[i].exp())));
        }
        said
    }

    /// log p(y | x, θ') − log p(y | x, θ) of a tile's rows, features × 16 values; `weights`: θ,
    /// then θ'. The difference of two logarithms: off by some 1e-7 of them.
    #[inline(always)]
    pub(crate) fn ratios<const FMA: bool>(
        self,
        weights: &[f32],
        tile: &[[f32; LANES]],
        labels: &[f32; LANES],
    ) -> [f32; LANES] {
        let (theta, proposal) = weights.split_at(self.0.parameters);
        let mut values = vec![[0.0; LANES]; self.0.values];
        self.outputs_of::<Fast<FMA>, f32, LANES>(theta, tile, &mut values);
        let before = head::log_density::<Fast<FMA>, f32, LANES>(self.last(&values), labels);
        self.outputs_of::<Fast<FMA>, f32, LANES>(proposal, tile, &mut values);
        let mut ratios = head::log_density::<Fast<FMA>, f32, LANES>(self.last(&values), labels);
        for i in 0..LANES {
            ratios[i] -= before[i];
        }
        ratios
    }

    /// Gradients of a tile's rows: d × 16 values.
    #[inline(always)]
    pub(crate) fn gradients<const FMA: bool>(
        self,
        weights: &[f32],
        (tile, labels): (&[[f32; LANES]], &[f32; LANES]),
        room: &mut Room<f32, LANES>,
        gradients: &mut [[f32; LANES]],
    ) {
        self.differentiate::<Fast<FMA>, f32, LANES>(weights, tile, labels, room, gradients);
    }

    /// Values between all layers, up to the outputs.
    #[inline(always)]
    fn outputs_of<T: evaluate::Real<E>, E: evaluate::Element<T>, const L: usize>(
        self,
        weights: &[E],
        rows: &[[E; L]],
        values: &mut [[E; L]],
    ) {
        for (value, feature) in values.iter_mut().zip(&rows[..self.features()]) {
            *value = *feature;
        }
        for stage in &self.0.stages {
            forward::<T, E, L>(stage, weights, values);
        }
    }

    #[inline(always)]
    fn differentiate<T: evaluate::Real<E>, E: evaluate::Element<T>, const L: usize>(
        self,
        weights: &[E],
        rows: &[[E; L]],
        labels: &[E; L],
        room: &mut Room<E, L>,
        gradients: &mut [[E; L]],
    ) {
        self.outputs_of::<T, E, L>(weights, rows, &mut room.values);
        let last = self.0.values - self.0.outputs;
        let errors = &mut room.errors[last..];
        errors.copy_from_slice(&room.values[last..]);
        head::errors::<T, E, L>(errors, labels);
        for (k, stage) in self.0.stages.iter().enumerate().rev() {
            let (values, errors) = (&room.values, &mut room.errors);
            backward::<T, E, L>(stage, weights, values, errors, gradients, k > 0);
        }
    }

    #[inline(always)]
    fn last<E>(self, values: &[E]) -> &[E] {
        &values[self.0.values - self.0.outputs..]
    }
}

/// Scratch memory of a tile's gradients: all values between layers, and as many derivatives.
pub(crate) struct Room<E, const L: usize> {
    values: Vec<[E; L]>,
    errors: Vec<[E; L]>,
}

impl<E: Copy + Default, const L: usize> Room<E, L> {
    pub fn new(network: Network) -> Self {
        let zeros = vec![[E::default(); L]; network.0.values];
        Room {
            values: zeros.clone(),
            errors: zeros,
        }
    }
}

impl Parts {
    fn new(input: Volume, layers: &[Layer], outputs: usize) -> Result<Self, NetworkError> {
        let most = |what: &str, number: usize, most: usize| {
            NetworkError::whole(format!("has {number} {what}; at most {most} are possible"))
        };
        let size = input
            .checked_size()
            .filter(|s| (1..=MOST_VALUES).contains(s));
        let Some(mut values) = size else {
            return Err(NetworkError::whole(format!("has an input of {input}")));
        };
        let head = Layer::Dense { units: outputs };
        let (mut stages, mut parameters, mut volume) = (Vec::new(), 0, input);
        for (k, layer) in layers.iter().chain([&head]).enumerate() {
            let place = (k < layers.len()).then_some(k);
            let stage = Stage::fit(
                place,
                *layer,
                volume,
                (values - volume.size(), values, parameters),
            )?;
            volume = stage.output;
            values += volume.size();
            parameters += stage.parameters();
            if values > MOST_VALUES {
                return Err(most("values between its layers", values, MOST_VALUES));
            }
            if parameters > MOST_PARAMETERS {
                return Err(most("parameters", parameters, MOST_PARAMETERS));
            }
            stages.push(stage);
        }
        Ok(Parts {
            input,
            layers: layers.to_vec(),
            outputs,
            stages,
            values,
            parameters,
        })
    }
}
