//! Scores of the posterior predictive on a held-out table that is declared **public**: on a private
//! one they would be an unpaid release.

use std::path::Path;

use super::{AnchorNoise, OutputError, read_draws};
use crate::data::{LabelKind, PublicRows};
use crate::diagnostics::{
    accuracy, class_accuracy, class_log_loss, declared_log_loss, layers_predictive,
    linear_log_loss, linear_predictive, log_loss, logistic_predictive, network_predictive,
    poisson_log_loss, root_mean_square_error, without_noise,
};
use crate::expression::Law;
use crate::model::NetworkShape;
use crate::network::Network;

/// Draws used for predictive averages; more change nothing that can be seen.
const PREDICTIVE_DRAWS: usize = 500;

/// What predicts a label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Predictive {
    /// σ(x·θ) of a binary label.
    Logistic,
    /// A network's head.
    Network(NetworkShape),
    /// The head of a network of layers.
    Layers(Network),
    /// `N(x·θ, variance)`.
    Linear {
        /// s² of the noise.
        variance: f64,
    },
    /// `Poisson(exp(x·θ))`.
    Poisson,
    /// A declared likelihood.
    Declared(Law),
}

/// Scores of a predictive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TestScores {
    /// Of binary labels and classes.
    pub accuracy: Option<f64>,
    /// Of numbers, in their units.
    pub rmse: Option<f64>,
    /// Mean negative log density, nats.
    pub log_loss: f64,
}

/// Scores on `test`, of classes by draws without the noise of an anchor's releases; `None` without
/// labels or draws, or where the draws are of another model.
///
/// # Errors
/// [`OutputError`] where the draws cannot be read.
pub fn test_scores(
    directory: &Path,
    test: PublicRows<'_>,
    predictive: Predictive,
) -> Result<Option<TestScores>, OutputError> {
    let table = read_draws(directory)?;
    let features = test.features().len();
    let parameters = match predictive {
        Predictive::Network(shape) => shape.parameters(),
        Predictive::Layers(network) => network.parameters(),
        Predictive::Declared(law) => features + law.shared().len(),
        _ => features,
    };
    let total: usize = table.chains.iter().map(|c| c[0].len()).sum();
    // Behind them stand the standard deviations that a prior samples.
    if table.parameters.len() < parameters || total == 0 {
        return Ok(None);
    }
    let stride = total.div_ceil(PREDICTIVE_DRAWS);
    let draws = |stride: usize| -> Vec<Vec<f64>> {
        let each = table.chains.iter().flat_map(|chain| {
            let own = &chain[..parameters];
            let draw = |i: usize| own.iter().map(|column| column[i]).collect();
            (0..chain[0].len()).step_by(stride).map(draw)
        });
        each.collect()
    };
    let classes = matches!(
        test.label_kind(),
        Some(LabelKind::Binary | LabelKind::Class { .. })
    );
    // The law of a number keeps the noise that its draws have.
    let quiet = match AnchorNoise::read(directory)? {
        AnchorNoise::InDraws(anchor) if classes => without_noise(&draws(1), &anchor, stride),
        _ => None,
    };
    let mut thetas = quiet.unwrap_or_else(|| draws(stride));
    if test.width() > features {
        // An offset behind the features has the coefficient 1.
        thetas
            .iter_mut()
            .for_each(|theta| theta.insert(features, 1.0));
    }
    let rows = test.rows();
    let binary = |p: Vec<f64>| {
        let labels = test.labels();
        TestScores {
            accuracy: Some(accuracy(&p, &labels)),
            rmse: None,
            log_loss: log_loss(&p, &labels),
        }
    };
    let classes = |p: Vec<f64>, outputs: usize| {
        let numbers = test.numbers().into_iter();
        let labels: Vec<usize> = numbers.map(|y| y as usize).collect();
        TestScores {
            accuracy: Some(class_accuracy(&p, outputs, &labels)),
            rmse: None,
            log_loss: class_log_loss(&p, outputs, &labels),
        }
    };
    Ok(Some(match (test.label_kind(), predictive) {
        (Some(LabelKind::Binary), Predictive::Logistic) => {
            binary(logistic_predictive(&thetas, &rows))
        }
        (Some(LabelKind::Binary), Predictive::Network(shape)) => {
            binary(network_predictive(&thetas, shape, &rows))
        }
        (Some(LabelKind::Class { .. }), Predictive::Network(shape)) => {
            classes(network_predictive(&thetas, shape, &rows), shape.outputs)
        }
        (Some(LabelKind::Binary), Predictive::Layers(network)) => {
            binary(layers_predictive(&thetas, network, &rows))
        }
        (Some(LabelKind::Class { .. }), Predictive::Layers(network)) => classes(
            layers_predictive(&thetas, network, &rows),
            network.outputs(),
        ),
        (Some(LabelKind::Number { .. }), Predictive::Linear { variance }) => {
            let labels = test.numbers();
            let means = linear_predictive(&thetas, &rows);
            TestScores {
                accuracy: None,
                rmse: Some(root_mean_square_error(&means, &labels)),
                log_loss: linear_log_loss(&thetas, variance, &rows, &labels),
            }
        }
        (Some(LabelKind::Count { .. }), Predictive::Poisson) => TestScores {
            accuracy: None,
            rmse: None,
            log_loss: poisson_log_loss(&thetas, &rows, &test.numbers()),
        },
        (Some(_), Predictive::Declared(law)) => TestScores {
            accuracy: None,
            rmse: None,
            log_loss: declared_log_loss(&thetas, law, &rows, &test.numbers()),
        },
        _ => return Ok(None),
    }))
}
