//! A network of declared layers as a Bayesian model: a Bernoulli head for a binary label, a softmax
//! head for classes.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::data::LabelKind;
use crate::model::{
    Forms, GradientFunction, Model, ModelError, Prior, RowFunction, check_tempering,
};
use crate::network::Network;

/// Seed of the usual start, which is public and the same for all.
const START_SEED: u64 = 0x7374_6172_7400;

/// A network over the features of a labelled table.
#[derive(Clone, Debug)]
pub struct Layered {
    parameters: Vec<String>,
    network: Network,
    label: LabelKind,
    prior: Prior,
    tempering: f64,
}

impl Layered {
    /// `label`: binary, or as many classes as the network has outputs; `tempering`: κ > 0. The
    /// prior has one law a parameter, in the order of [`Network::names`].
    ///
    /// # Errors
    /// [`ModelError`] for a label that the outputs do not fit, a bad prior or κ.
    pub fn new(
        network: Network,
        label: LabelKind,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        if Layered::outputs(label) != Some(network.outputs()) {
            return Err(ModelError::new(
                "data.label",
                "a network needs a binary label, or classes = k",
            ));
        }
        prior.validate(network.parameters())?;
        check_tempering(tempering)?;
        Ok(Layered {
            parameters: network.names(),
            network,
            label,
            prior,
            tempering,
        })
    }

    /// Outputs of a network for a label; `None` for labels that it cannot have.
    pub fn outputs(label: LabelKind) -> Option<usize> {
        match label {
            LabelKind::Binary => Some(1),
            LabelKind::Class { classes } => Some(classes as usize),
            _ => None,
        }
    }
}

impl Model for Layered {
    fn name(&self) -> &'static str {
        "network"
    }
    fn parameters(&self) -> &[String] {
        &self.parameters
    }
    fn features(&self) -> usize {
        self.network.features()
    }
    fn labelled(&self) -> bool {
        true
    }
    fn label(&self) -> Option<LabelKind> {
        Some(self.label)
    }
    fn tempering(&self) -> f64 {
        self.tempering
    }
    /// Weights of N(0, 2/n), n the values that a sum is over, from one public stream, and biases of
    /// 0 (He 2015): at the origin all units of a layer are alike.
    fn usual_start(&self) -> Vec<f64> {
        let mut rng = ChaCha20Rng::seed_from_u64(START_SEED);
        let draw = |n: usize| -> f64 {
            let z: f64 = StandardNormal.sample(&mut rng);
            match n {
                0 => 0.0,
                n => z * (2.0 / n as f64).sqrt(),
            }
        };
        self.network.summands().into_iter().map(draw).collect()
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// None: a move of one layer is felt through the others. Runs give a clip.
    fn ratio_rate(&self) -> Option<f64> {
        None
    }
    fn row_function(&self) -> RowFunction {
        RowFunction::Layers(self.network)
    }
    /// θ, then θ'.
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        Forms {
            offsets: Vec::new(),
            weights: [theta, proposal].concat(),
        }
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let at = |t: &[f64]| self.network.log_likelihood(t, row, label);
        self.tempering * (at(proposal) - at(theta))
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Layers(self.network)
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        Forms {
            offsets: Vec::new(),
            weights: theta.to_vec(),
        }
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        let mut gradient = self.network.gradient(theta, row, label);
        gradient.iter_mut().for_each(|g| *g *= self.tempering);
        gradient
    }
}
