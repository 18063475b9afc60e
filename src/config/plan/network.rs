//! `[model] input` and `layers`: a network as it is declared.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::{LayerEntry, SizedLayer};
use crate::data::LabelKind;
use crate::model::Layered;
use crate::network::{Layer, Network, Volume};

const BATCH_NORM: &str = "mixes the rows of a batch: no row has a gradient of its own then, which could be clipped, so that a private run has nothing to bound; take { group_norm = groups }, which a row has alone";

const LAYERS: &str = "a layer is \"tanh\", \"relu\" or \"softplus\", or has one of the keys dense, conv, max_pool, average_pool and group_norm";

impl Plan {
    /// The network over so many features.
    ///
    /// # Errors
    /// [`ConfigError`] naming the layer.
    pub fn layered_network(&self, features: usize) -> Result<Network, ConfigError> {
        let label = self.label_kind()?.unwrap_or(LabelKind::Binary);
        let outputs = Layered::outputs(label).ok_or_else(|| {
            self.refuse(
                &self.label_key(),
                "a network needs a binary label, or classes = k",
            )
        })?;
        let Some(entries) = &self.config.model.layers else {
            return Err(self.refuse(
                "model",
                "network needs 'layers', such as layers = [{ dense = 32 }, \"tanh\"]",
            ));
        };
        let layers = entries.iter().enumerate();
        let layers = layers.map(|(k, entry)| {
            layer(entry).map_err(|what| {
                self.refuse(
                    &format!("model.layers[{k}]"),
                    format!("layer {} {what}", k + 1),
                )
            })
        });
        let layers: Vec<Layer> = layers.collect::<Result<_, _>>()?;
        let input = self.input(features)?;
        Network::new(input, &layers, outputs).map_err(|e| {
            let key = match e.layer {
                Some(k) => format!("model.layers[{k}]"),
                None => "model.layers".into(),
            };
            self.refuse(&key, e.what)
        })
    }

    /// How a row's features are arranged.
    fn input(&self, features: usize) -> Result<Volume, ConfigError> {
        let sides = match self.config.model.input.as_deref() {
            None => return Ok(Volume::flat(features)),
            Some([height, width]) => [*height, *width, 1],
            Some([height, width, channels]) => [*height, *width, *channels],
            Some(_) => {
                return Err(self.refuse(
                    "model.input",
                    "is [height, width] or [height, width, channels]",
                ));
            }
        };
        let [height, width, channels] = sides;
        let size = sides
            .iter()
            .try_fold(1usize, |n, side| n.checked_mul(*side));
        if size == Some(features) {
            return Ok(Volume {
                height,
                width,
                channels,
            });
        }
        let size = size.map_or("far more".into(), |n| n.to_string());
        Err(self.refuse(
            "model.input",
            format!("{height} × {width} × {channels} are {size} values, and a row has {features} features"),
        ))
    }
}

/// A layer as declared; what is wrong with it, to go behind its number.
fn layer(entry: &LayerEntry) -> Result<Layer, String> {
    let sized = match entry {
        LayerEntry::Named(name) => {
            return match name.as_str() {
                "tanh" => Ok(Layer::Tanh),
                "relu" => Ok(Layer::Relu),
                "softplus" => Ok(Layer::Softplus),
                "batch_norm" | "batch-norm" | "batchnorm" => Err(format!("({name}) {BATCH_NORM}")),
                _ => Err(format!("is called '{name}'; {LAYERS}")),
            };
        }
        LayerEntry::Sized(sized) => sized,
    };
    let SizedLayer {
        kernel,
        stride,
        padding,
        ..
    } = *sized;
    let foreign = |name: &str, keys: &[(&str, Option<usize>)]| match keys
        .iter()
        .find(|(_, given)| given.is_some())
    {
        Some((key, _)) => Err(format!("({name}) has no use for '{key}'")),
        None => Ok(()),
    };
    let kinds = (
        sized.dense,
        sized.conv,
        sized.max_pool,
        sized.average_pool,
        sized.group_norm,
    );
    match kinds {
        (Some(units), None, None, None, None) => {
            let keys = [("kernel", kernel), ("stride", stride), ("padding", padding)];
            foreign("dense", &keys)?;
            Ok(Layer::Dense { units })
        }
        (None, Some(channels), None, None, None) => Ok(Layer::Conv {
            channels,
            kernel: kernel.ok_or("(conv) needs 'kernel', the side of its squares")?,
            stride: stride.unwrap_or(1),
            padding: padding.unwrap_or(0),
        }),
        (None, None, Some(side), None, None) => {
            foreign("max_pool", &[("kernel", kernel), ("padding", padding)])?;
            Ok(Layer::MaxPool {
                kernel: side,
                stride: stride.unwrap_or(side),
            })
        }
        (None, None, None, Some(side), None) => {
            foreign("average_pool", &[("kernel", kernel), ("padding", padding)])?;
            Ok(Layer::AveragePool {
                kernel: side,
                stride: stride.unwrap_or(side),
            })
        }
        (None, None, None, None, Some(groups)) => {
            let keys = [("kernel", kernel), ("stride", stride), ("padding", padding)];
            foreign("group_norm", &keys)?;
            Ok(Layer::GroupNorm { groups })
        }
        (None, None, None, None, None) => Err(format!("is none that is known; {LAYERS}")),
        _ => Err(format!("is several at once; {LAYERS}")),
    }
}
