//! The network of Table 1 of Li 2019 over made-up images: clipped row gradients and log ratios a
//! second.

use std::sync::Arc;

use super::{Measurement, gradient_pass, measurement, open, paired, ratio_pass};
use crate::data::LabelKind;
use crate::engine::EngineChoice;
use crate::model::{Model, Prior};
use crate::models::Layered;
use crate::network::{Layer, Network, Volume};
use crate::privacy::CuratorError;
use crate::synthetic;

const CLASSES: u32 = 10;

/// Two convolutions and a dense layer over 28 × 28 values.
fn model() -> Result<Layered, CuratorError> {
    let conv = |channels, kernel, padding| Layer::Conv {
        channels,
        kernel,
        stride: 2,
        padding,
    };
    let pool = Layer::MaxPool {
        kernel: 2,
        stride: 1,
    };
    let input = Volume {
        height: 28,
        width: 28,
        channels: 1,
    };
    let layers = [
        conv(16, 8, 2),
        Layer::Tanh,
        pool,
        conv(32, 4, 0),
        Layer::Tanh,
        pool,
        Layer::Dense { units: 32 },
        Layer::Tanh,
    ];
    let fail = |e: String| CuratorError::Mismatch(e);
    let network =
        Network::new(input, &layers, CLASSES as usize).map_err(|e| fail(e.to_string()))?;
    let prior = Prior::normal(network.parameters(), 1.0);
    let label = LabelKind::Class { classes: CLASSES };
    Layered::new(network, label, prior, 1.0).map_err(|e| fail(e.to_string()))
}

/// Rows a second on one engine, of so many.
pub(super) fn rates(engine: EngineChoice, rows: usize) -> Result<Vec<Measurement>, CuratorError> {
    let model = model()?;
    let features = model.features();
    let d = model.dim();
    let theta: Vec<f64> = (0..features).map(|j| (j as f64 * 0.7).sin()).collect();
    let data = synthetic::classes(rows, &theta, CLASSES, 1);
    let data = data.map_err(|e| CuratorError::Mismatch(e.to_string()))?;
    let (mut curator, _) = open(data.in_16_bits(), Arc::new(model), engine, false)?;
    let mut measurements = Vec::new();
    for (name, gradient) in [
        ("network of Li 2019, clipped row gradients", true),
        ("network of Li 2019, log ratios", false),
    ] {
        let pass: Box<dyn FnMut() -> bool> = match gradient {
            true => Box::new(gradient_pass(&mut curator, d, 1)),
            false => Box::new(ratio_pass(&mut curator, d, 1)),
        };
        if let Some((floors, mut times)) = paired(5, || 1.0, pass) {
            let mut m = measurement(name, (rows, features, 1), &floors, &mut times, None);
            m.per_second *= rows as f64;
            measurements.push(m);
        }
    }
    Ok(measurements)
}
