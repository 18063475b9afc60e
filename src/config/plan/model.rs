//! `[model]`: the model with its prior.

use std::sync::Arc;

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::{ModelKind, PriorEntry, PriorKind};
use crate::data::{Dataset, LabelKind};
use crate::model::{
    Banana, Density, GaussianMean, Mixture, Mlp, Model, ModelError, NetworkShape, Prior,
    Regression, Support,
};
use crate::output::Predictive;

impl Plan {
    /// The model over a loaded table.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn model(&self, data: &Dataset) -> Result<Arc<dyn Model>, ConfigError> {
        self.model_for(data.features(), data.row_norm())
    }

    /// What predicts the labels of a public table; `None` for models without labels.
    pub fn predictive(&self, data: &Dataset) -> Result<Option<Predictive>, ConfigError> {
        Ok(match self.config.model.kind {
            ModelKind::Logistic => Some(Predictive::Logistic),
            ModelKind::Linear => {
                let variance = self.config.model.variance;
                variance.map(|variance| Predictive::Linear { variance })
            }
            ModelKind::Poisson => Some(Predictive::Poisson),
            ModelKind::Mlp => self.network(data)?.map(Predictive::Network),
            _ => None,
        })
    }

    /// Widths of the network over a table, where the model is one.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn network(&self, data: &Dataset) -> Result<Option<NetworkShape>, ConfigError> {
        if self.config.model.kind != ModelKind::Mlp {
            return Ok(None);
        }
        let label = self.label_kind()?.unwrap_or(LabelKind::Binary);
        let shape = Mlp::shape(data.features().len(), self.hidden()?, label);
        shape.map(Some).map_err(|e| self.refuse(&e.key, e.what))
    }

    /// The model over features of these names, in rows of this norm; no table is needed.
    pub fn model_for(
        &self,
        features: &[String],
        row_norm: f64,
    ) -> Result<Arc<dyn Model>, ConfigError> {
        let model = self.declared_model(features, row_norm)?;
        self.check_bounds(&*model)?;
        Ok(model)
    }

    fn declared_model(
        &self,
        features: &[String],
        row_norm: f64,
    ) -> Result<Arc<dyn Model>, ConfigError> {
        self.check_names(features)?;
        let m = &self.config.model;
        let refuse = |e: ModelError| self.refuse(&e.key, e.what);
        self.check_kind()?;
        let label = self.label_kind()?.unwrap_or(LabelKind::Binary);
        let d = match m.kind {
            ModelKind::Mixture | ModelKind::Banana => 2,
            ModelKind::Mlp => {
                let shape = Mlp::shape(features.len(), self.hidden()?, label);
                shape.map_err(refuse)?.parameters()
            }
            _ => features.len(),
        };
        let prior = self.prior(d)?;
        Ok(match m.kind {
            ModelKind::Logistic => Arc::new(
                Regression::logistic(features, row_norm, prior, m.tempering).map_err(refuse)?,
            ),
            ModelKind::Linear => {
                let variance = m.variance.ok_or_else(|| {
                    self.refuse("model", "linear needs 'variance', that of the noise")
                })?;
                let model =
                    Regression::linear(features, variance, label, row_norm, prior, m.tempering);
                Arc::new(model.map_err(refuse)?)
            }
            ModelKind::Mlp => {
                let model = Mlp::new(features, self.hidden()?, label, prior, m.tempering);
                Arc::new(model.map_err(refuse)?)
            }
            ModelKind::Poisson => {
                let model = Regression::poisson(features, label, row_norm, prior, m.tempering);
                Arc::new(model.map_err(refuse)?)
            }
            ModelKind::Banana => {
                if features.len() != 2 {
                    return Err(self.refuse("data.features", "a banana needs exactly two features"));
                }
                let a = m.curvature.unwrap_or(20.0);
                let variances = m.variances.unwrap_or([20.0, 25.0]);
                Arc::new(Banana::new(a, variances, row_norm, prior, m.tempering).map_err(refuse)?)
            }
            ModelKind::Mixture => {
                if features.len() != 1 {
                    return Err(self.refuse("data.features", "a mixture needs exactly one feature"));
                }
                let variance = m.variance.unwrap_or(2.0);
                Arc::new(Mixture::new(variance, row_norm, prior, m.tempering).map_err(refuse)?)
            }
            ModelKind::GaussianMean => {
                let covariance = m.covariance.as_ref().ok_or_else(|| {
                    self.refuse("model", "gaussian-mean needs 'covariance = [[…]]'")
                })?;
                let flat = self.matrix("model.covariance", covariance, d)?;
                Arc::new(
                    GaussianMean::new(features, &flat, row_norm, prior, m.tempering)
                        .map_err(refuse)?,
                )
            }
        })
    }

    /// Width of a network.
    fn hidden(&self) -> Result<usize, ConfigError> {
        let hidden = self.config.model.hidden;
        hidden.ok_or_else(|| self.refuse("model", "mlp needs 'hidden', its number of hidden units"))
    }

    /// Names of features are columns of the draws.
    fn check_names(&self, features: &[String]) -> Result<(), ConfigError> {
        for (i, name) in features.iter().enumerate() {
            if features[..i].contains(name) || name == "chain" || name == "iteration" {
                return Err(self.refuse(
                    "data.features",
                    format!("feature name '{name}' is used twice or reserved"),
                ));
            }
        }
        Ok(())
    }

    /// Refuses keys of another kind of model, and a label that is missing or of another kind.
    fn check_kind(&self) -> Result<(), ConfigError> {
        use ModelKind as K;
        let m = &self.config.model;
        let keys: [(&str, bool, &[K], &str); 5] = [
            (
                "variance",
                m.variance.is_some(),
                &[K::Mixture, K::Linear],
                "\"mixture\" or \"linear\"",
            ),
            (
                "covariance",
                m.covariance.is_some(),
                &[K::GaussianMean],
                "\"gaussian-mean\"",
            ),
            ("hidden", m.hidden.is_some(), &[K::Mlp], "\"mlp\""),
            (
                "curvature",
                m.curvature.is_some(),
                &[K::Banana],
                "\"banana\"",
            ),
            (
                "variances",
                m.variances.is_some(),
                &[K::Banana],
                "\"banana\"",
            ),
        ];
        for (key, given, kinds, names) in keys {
            if given && !kinds.contains(&m.kind) {
                let what = format!("belongs to kind = {names} alone");
                return Err(self.refuse(&format!("model.{key}"), what));
            }
        }
        let needs = match m.kind {
            K::Logistic => "a logistic model needs a declared binary label",
            K::Linear => {
                "a linear model needs a numeric label: clamp = [low, high] or scale = [low, high]"
            }
            K::Poisson => "a Poisson model needs counts as its label: count = max",
            K::Mlp => "a network needs a binary label, or classes = k",
            K::GaussianMean | K::Mixture | K::Banana => return Ok(()),
        };
        let fits = match self.label_kind()? {
            Some(LabelKind::Binary) => matches!(m.kind, K::Logistic | K::Mlp),
            Some(LabelKind::Number { .. }) => m.kind == K::Linear,
            Some(LabelKind::Count { .. }) => m.kind == K::Poisson,
            Some(LabelKind::Class { .. }) => m.kind == K::Mlp,
            None => false,
        };
        if fits {
            Ok(())
        } else {
            Err(self.refuse("data.label", needs))
        }
    }

    fn prior(&self, d: usize) -> Result<Prior, ConfigError> {
        let m = &self.config.model;
        Ok(Prior {
            density: self.density(m.prior.as_ref(), d)?,
            support: m
                .support
                .as_ref()
                .map_or(Support::Unbounded, |b| Support::Box(b.expand(d))),
            anchor: None,
        })
    }

    fn density(&self, prior: Option<&PriorEntry>, d: usize) -> Result<Density, ConfigError> {
        let Some(p) = prior else {
            return Ok(Density::Flat);
        };
        let unused = |key: &str, present: bool| {
            if present {
                Err(self.refuse(
                    &format!("model.prior.{key}"),
                    "does not belong to this prior",
                ))
            } else {
                Ok(())
            }
        };
        match p.kind {
            PriorKind::Flat => {
                unused("mean", p.mean.is_some())?;
                unused("sd", p.sd.is_some())?;
                unused("scale", p.scale.is_some())?;
                Ok(Density::Flat)
            }
            PriorKind::Normal => {
                unused("scale", p.scale.is_some())?;
                let sd =
                    p.sd.as_ref()
                        .ok_or_else(|| self.refuse("model.prior", "a normal prior needs 'sd'"))?;
                let mean = p
                    .mean
                    .as_ref()
                    .map_or_else(|| vec![0.0; d], |m| m.expand(d));
                Ok(Density::Normal {
                    mean,
                    sd: sd.expand(d),
                })
            }
            PriorKind::Laplace => {
                unused("mean", p.mean.is_some())?;
                unused("sd", p.sd.is_some())?;
                let scale = p
                    .scale
                    .as_ref()
                    .ok_or_else(|| self.refuse("model.prior", "a laplace prior needs 'scale'"))?;
                Ok(Density::Laplace {
                    scale: scale.expand(d),
                })
            }
        }
    }
}
