//! `[model]`: the model with its prior.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::{ModelKind, NormalEntry, PriorEntry, PriorKind};
use crate::data::{Dataset, LabelKind, Offset};
use crate::expression::{
    Family, Labels, Law, ORDINAL_CLASSES, SUCCESSES, ordinal, ordinal_parameters,
};
use crate::model::{
    Banana, Density, GaussianMean, Layered, Mixture, Mlp, Model, ModelError, NetworkShape, Prior,
    Regression, Support,
};
use crate::output::Predictive;

/// Standard deviations and scales of priors: as the bounds of columns, whose squares f32 holds.
const SPREADS: RangeInclusive<f64> = 1e-18..=1e18;

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
            // What is predicted is the outcome of one trial.
            ModelKind::Binomial if self.has_trials() => Some(Predictive::Logistic),
            ModelKind::Mlp => self.network(data)?.map(Predictive::Network),
            ModelKind::Network => {
                let network = self.layered_network(data.features().len())?;
                Some(Predictive::Layers(network))
            }
            _ => self.law()?.map(Predictive::Declared),
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
        let law = self.law()?;
        if m.kind == ModelKind::Ordinal && features.iter().any(|f| f == "intercept") {
            return Err(self.refuse(
                "data.features",
                "the cutpoints of an ordinal model are its intercepts; leave intercept = true out",
            ));
        }
        for name in law.iter().flat_map(|law| law.shared()) {
            if features.contains(name) {
                let what = format!("'{name}' is a feature's name too");
                return Err(self.refuse("model.parameters", what));
            }
        }
        let label = self.label_kind()?.unwrap_or(LabelKind::Binary);
        let d = match m.kind {
            ModelKind::Mixture | ModelKind::Banana => 2,
            ModelKind::Mlp => {
                let shape = Mlp::shape(features.len(), self.hidden()?, label);
                shape.map_err(refuse)?.parameters()
            }
            ModelKind::Network => self.layered_network(features.len())?.parameters(),
            _ => features.len() + law.map_or(0, |law| law.shared().len()),
        };
        let prior = self.prior(features, d, law)?;
        let tempering = self.tempering()?;
        let offset = self.offset()?.as_ref().map(Offset::of).transpose();
        let offset = offset.map_err(|what| self.refuse("data.offset", what))?;
        let trials = self.most_trials();
        let regression = |model: Result<Regression, ModelError>| {
            let model = model.map_err(refuse)?;
            let model = match offset {
                Some(offset) => model.with_offset(offset),
                None => model,
            };
            let model = match trials {
                Some(most) => model.with_trials(most),
                None => model,
            };
            Ok::<Arc<dyn Model>, ConfigError>(Arc::new(model))
        };
        Ok(match m.kind {
            ModelKind::Logistic => {
                regression(Regression::logistic(features, row_norm, prior, tempering))?
            }
            ModelKind::Linear => {
                let variance = m.variance.ok_or_else(|| {
                    self.refuse("model", "linear needs 'variance', that of the noise")
                })?;
                let model =
                    Regression::linear(features, variance, label, row_norm, prior, tempering);
                regression(model)?
            }
            ModelKind::Mlp => {
                let model = Mlp::new(features, self.hidden()?, label, prior, tempering);
                Arc::new(model.map_err(refuse)?)
            }
            ModelKind::Network => {
                let network = self.layered_network(features.len())?;
                Arc::new(Layered::new(network, label, prior, tempering).map_err(refuse)?)
            }
            ModelKind::Poisson => {
                let model = Regression::poisson(features, label, row_norm, prior, tempering);
                regression(model)?
            }
            ModelKind::Banana => {
                if features.len() != 2 {
                    return Err(
                        self.refuse(self.features_key(), "a banana needs exactly two features")
                    );
                }
                let a = m.curvature.unwrap_or(20.0);
                let variances = m.variances.unwrap_or([20.0, 25.0]);
                Arc::new(Banana::new(a, variances, row_norm, prior, tempering).map_err(refuse)?)
            }
            ModelKind::Mixture => {
                if features.len() != 1 {
                    return Err(
                        self.refuse(self.features_key(), "a mixture needs exactly one feature")
                    );
                }
                let variance = m.variance.unwrap_or(2.0);
                Arc::new(Mixture::new(variance, row_norm, prior, tempering).map_err(refuse)?)
            }
            ModelKind::GaussianMean => {
                let covariance = m.covariance.as_ref().ok_or_else(|| {
                    self.refuse("model", "gaussian-mean needs 'covariance = [[…]]'")
                })?;
                let flat = self.matrix("model.covariance", covariance, d)?;
                Arc::new(
                    GaussianMean::new(features, &flat, row_norm, prior, tempering)
                        .map_err(refuse)?,
                )
            }
            _ => {
                let law = law.ok_or_else(|| self.refuse("model.kind", "has no likelihood"))?;
                let model = Regression::declared(features, law, label, row_norm, prior, tempering);
                regression(model)?
            }
        })
    }

    /// The likelihood of a model that is declared by an expression.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key, and the character of the expression.
    pub fn law(&self) -> Result<Option<Law>, ConfigError> {
        let m = &self.config.model;
        let (name, text) = match (m.kind.family(), &m.likelihood) {
            _ if m.kind == ModelKind::Ordinal => ("ordinal", ordinal(self.ordered_classes()?)),
            _ if self.has_trials() => (SUCCESSES.0, SUCCESSES.1.to_string()),
            (Some(family), _) => (family.name, family.likelihood.to_string()),
            (None, Some(text)) => ("declared", text.clone()),
            (None, None) => return Ok(None),
        };
        if let Some(family) = m.kind.family().filter(|_| !self.has_trials()) {
            self.check_parameters(family)?;
        }
        let parameters = self.shared_parameters()?;
        let shared: Vec<String> = parameters.keys().cloned().collect();
        let fixed: Vec<(String, f64)> = m.constants.clone().into_iter().collect();
        if let Some((name, _)) = fixed.iter().find(|(_, v)| !v.is_finite()) {
            let key = format!("model.constants.{name}");
            return Err(self.refuse(&key, "must be a finite number"));
        }
        for (name, entry) in &m.parameters {
            if !(entry.sd.is_finite() && entry.sd > 0.0 && entry.mean.is_finite()) {
                let key = format!("model.parameters.{name}");
                return Err(self.refuse(&key, "needs a finite mean and an sd above 0"));
            }
            self.check_spreads(&format!("model.parameters.{name}.sd"), &[entry.sd])?;
        }
        let law = Law::new(name, &text, &shared, &fixed);
        law.map(Some)
            .map_err(|e| self.refuse("model.likelihood", e.to_string()))
    }

    /// The parameters that rows share and that are sampled, with their priors: as given, and of an
    /// ordinal model those that are not.
    fn shared_parameters(&self) -> Result<BTreeMap<String, NormalEntry>, ConfigError> {
        let m = &self.config.model;
        let mut all = m.parameters.clone();
        if m.kind == ModelKind::Ordinal {
            let known = ordinal_parameters(self.ordered_classes()?);
            let given = m.parameters.keys().map(|n| ("parameters", n));
            let mut given = given.chain(m.constants.keys().map(|n| ("constants", n)));
            let stranger = given.find(|(_, name)| known.iter().all(|(k, _)| k != *name));
            if let Some((table, name)) = stranger {
                let what = "is no parameter of kind = \"ordinal\" with so many classes";
                return Err(self.refuse(&format!("model.{table}.{name}"), what));
            }
            for (name, [mean, sd]) in known {
                if !m.constants.contains_key(&name) {
                    all.entry(name).or_insert(NormalEntry { mean, sd });
                }
            }
        }
        Ok(all)
    }

    /// Classes of an ordinal model's label.
    fn ordered_classes(&self) -> Result<u32, ConfigError> {
        let classes = match self.label_kind()? {
            Some(LabelKind::Class { classes }) => classes,
            Some(LabelKind::Binary) => 2,
            _ => 0,
        };
        match ORDINAL_CLASSES.contains(&classes) {
            true => Ok(classes),
            false => Err(self.refuse(
                &self.label_key(),
                "an ordinal model needs ordered classes, two to nine: levels = [\"low\", …, \"high\"], or classes = k",
            )),
        }
    }

    /// Every parameter of a family is sampled or held fixed, and there are no others.
    fn check_parameters(&self, family: &Family) -> Result<(), ConfigError> {
        let m = &self.config.model;
        for (name, what) in family.parameters {
            if !m.parameters.contains_key(*name) && !m.constants.contains_key(*name) {
                let number = what.contains("a number in [model.constants]");
                let advice = match number {
                    true => format!("needs '{name}' ({what}): constants = {{ {name} = … }}"),
                    false => format!(
                        "needs '{name}' ({what}): parameters = {{ {name} = {{ mean = 0, sd = 1 }} }} samples it, constants = {{ {name} = … }} holds it fixed"
                    ),
                };
                return Err(self.refuse("model", format!("kind = \"{}\" {advice}", family.name)));
            }
        }
        let given = m.parameters.keys().map(|n| ("parameters", n));
        let given = given.chain(m.constants.keys().map(|n| ("constants", n)));
        for (table, name) in given {
            if family.parameters.iter().all(|(known, _)| known != name) {
                return Err(self.refuse(
                    &format!("model.{table}.{name}"),
                    format!("is no parameter of kind = \"{}\"", family.name),
                ));
            }
        }
        for (name, value) in &m.constants {
            self.check_constant(name, *value)?;
        }
        Ok(())
    }

    /// A family's constant lies where its law is one.
    fn check_constant(&self, name: &str, value: f64) -> Result<(), ConfigError> {
        let most = match self.label_kind()? {
            Some(LabelKind::Count { max }) => f64::from(max),
            _ => 0.0,
        };
        let what = match name {
            "nu" if value <= 0.0 => "degrees of freedom must be above 0; 4 is usual".into(),
            "share" if value <= 0.0 || value >= 1.0 => {
                "must lie between 0 and 1: 0.9 is the quantile that nine labels in ten are under"
                    .into()
            }
            "width" if value <= 0.0 => "must be above 0, in units of the label".into(),
            "trials" if value < 1.0 || value.fract() != 0.0 => {
                "must be a whole number from 1".into()
            }
            "trials" if value < most => format!(
                "rows have {value} trials, and up to {most} successes are declared: 'count' may be no more than 'trials'"
            ),
            _ => return Ok(()),
        };
        Err(self.refuse(&format!("model.constants.{name}"), what))
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
                    self.features_key(),
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
        let declares = m.kind.family().is_some_and(|f| !f.parameters.is_empty());
        let own = m.kind == K::Declared;
        for (key, given) in [
            ("parameters", !m.parameters.is_empty()),
            ("constants", !m.constants.is_empty()),
        ] {
            if given && !own && !declares && m.kind != K::Ordinal {
                let what = match m.kind {
                    K::Linear => {
                        "of kind = \"linear\" the variance is known, variance = NUMBER, and nothing is drawn beside coefficients; kind = \"gaussian\" draws its log_sigma"
                    }
                    _ => {
                        "belongs to kind = \"declared\" and to kinds with parameters beside their coefficients"
                    }
                };
                return Err(self.refuse(&format!("model.{key}"), what));
            }
        }
        if own && m.likelihood.is_none() {
            let what = "kind = \"declared\" needs 'likelihood', an expression such as \"y * eta - exp(eta)\"";
            return Err(self.refuse("model", what));
        }
        let keys: [(&str, bool, &[K], &str); 8] = [
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
            ("input", m.input.is_some(), &[K::Network], "\"network\""),
            ("layers", m.layers.is_some(), &[K::Network], "\"network\""),
            (
                "likelihood",
                m.likelihood.is_some(),
                &[K::Declared],
                "\"declared\"",
            ),
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
        self.check_event()?;
        self.check_weights()?;
        let needs = match m.kind {
            K::Logistic => "a logistic model needs a declared binary label",
            K::Linear => {
                "a linear model needs a numeric label: clamp = [low, high] or scale = [low, high]"
            }
            K::Poisson => "a Poisson model needs counts as its label: count = max",
            K::Mlp | K::Network => "a network needs a binary label, or classes = k",
            K::GaussianMean | K::Mixture | K::Banana => return Ok(()),
            _ => return self.check_label(),
        };
        let fits = match self.label_kind()? {
            Some(LabelKind::Binary) => matches!(m.kind, K::Logistic | K::Mlp | K::Network),
            Some(LabelKind::Number { .. }) => m.kind == K::Linear,
            Some(LabelKind::Count { .. }) => m.kind == K::Poisson,
            Some(LabelKind::Class { .. }) => matches!(m.kind, K::Mlp | K::Network),
            None => false,
        };
        if fits {
            Ok(())
        } else {
            Err(self.refuse(&self.label_key(), needs))
        }
    }

    /// Whether rows have their own numbers of trials.
    pub fn has_trials(&self) -> bool {
        let label = self.config.data.label.as_ref();
        label.is_some_and(|label| label.trials.is_some())
    }

    /// The model's name as a run file has it: one of successes in trials has a law of its own.
    pub fn model_name(&self, model: &dyn Model) -> &'static str {
        match self.has_trials() {
            true => "binomial",
            false => model.name(),
        }
    }

    /// Only regressions know weights, only the binomial law knows what trials are, and scores of
    /// rows know neither.
    fn check_weights(&self) -> Result<(), ConfigError> {
        let config = &self.config;
        let others = [
            ModelKind::Mixture,
            ModelKind::Banana,
            ModelKind::GaussianMean,
            ModelKind::Mlp,
            ModelKind::Network,
        ];
        if config.data.weights.is_some() && others.contains(&config.model.kind) {
            let what = "belongs to regressions; drop it";
            return Err(self.refuse("data.weights", what));
        }
        if !self.has_trials() {
            return Ok(());
        }
        if config.model.kind != ModelKind::Binomial {
            let what = "belongs to kind = \"binomial\"";
            return Err(self.refuse("data.label.trials", what));
        }
        if let Some(name) = config.model.constants.keys().next() {
            let what = "every row has its own number of trials; drop it here";
            return Err(self.refuse(&format!("model.constants.{name}"), what));
        }
        match (&config.test, &config.validate) {
            (None, None) => Ok(()),
            (test, _) => Err(self.refuse(
                if test.is_some() { "test" } else { "validate" },
                "scores are of single outcomes, and rows with trials hold many; drop the section, or write a row for each trial",
            )),
        }
    }

    /// Only laws of times know what a time means whose event was not seen.
    fn check_event(&self) -> Result<(), ConfigError> {
        let m = &self.config.model;
        let of_times = [
            ModelKind::Weibull,
            ModelKind::LogNormalSurvival,
            ModelKind::Declared,
        ];
        let event = self
            .declared_label()?
            .is_some_and(|(_, l)| l.event.is_some());
        match event && !of_times.contains(&m.kind) {
            true => Err(self.refuse(
                &format!("{}.event", self.label_key()),
                "belongs to times: kind = \"weibull\", \"log-normal-survival\" or a likelihood of your own",
            )),
            false => Ok(()),
        }
    }

    /// The label of a declared likelihood.
    fn check_label(&self) -> Result<(), ConfigError> {
        let m = &self.config.model;
        let Some(label) = self.label_kind()? else {
            return Err(self.refuse(&self.label_key(), "a regression needs a declared label"));
        };
        if m.kind == ModelKind::Ordinal {
            return self.ordered_classes().map(|_| ());
        }
        let Some(family) = m.kind.family().filter(|_| !self.has_trials()) else {
            return Ok(());
        };
        let (fits, needs) = match (family.label, label) {
            (Labels::Binary, _) => (label == LabelKind::Binary, "a binary label"),
            (Labels::Count, _) => (
                matches!(label, LabelKind::Count { .. }),
                "counts as its label: count = max",
            ),
            (Labels::Number, _) => (
                matches!(label, LabelKind::Number { .. }),
                "a numeric label: clamp = [low, high]",
            ),
            (Labels::Positive, _) => (
                matches!(label, LabelKind::Number { low, .. } if low > 0.0),
                "a positive label: clamp = [low, high] with low > 0",
            ),
            (Labels::Share, _) => (
                matches!(label, LabelKind::Number { low, high } if low > 0.0 && high < 1.0),
                "a label between 0 and 1: clamp = [low, high] with 0 < low and high < 1",
            ),
        };
        match fits {
            true => Ok(()),
            false => {
                let what = format!("kind = \"{}\" needs {needs}", family.name);
                Err(self.refuse(&self.label_key(), what))
            }
        }
    }

    fn prior(&self, features: &[String], d: usize, law: Option<Law>) -> Result<Prior, ConfigError> {
        let m = &self.config.model;
        let shared = match law {
            Some(law) if !law.shared().is_empty() => self.shared_parameters()?,
            _ => BTreeMap::new(),
        };
        let density = match self.prior_in_blocks(features, d, &shared)? {
            Some(blocks) => blocks,
            None => self.beside(&shared, d)?,
        };
        Ok(Prior {
            density,
            support: m
                .support
                .as_ref()
                .map_or(Support::Unbounded, |b| Support::Box(b.expand(d))),
            anchor: None,
        })
    }

    /// The prior of the coefficients, followed by that of `shared` parameters, d in all.
    fn beside(
        &self,
        shared: &BTreeMap<String, NormalEntry>,
        d: usize,
    ) -> Result<Density, ConfigError> {
        let own = self.density(self.config.model.prior.as_ref(), d - shared.len())?;
        match own {
            own if shared.is_empty() => Ok(own),
            Density::Normal { mut mean, mut sd } => {
                mean.extend(shared.values().map(|p| p.mean));
                sd.extend(shared.values().map(|p| p.sd));
                Ok(Density::Normal { mean, sd })
            }
            _ => Err(self.refuse(
                "model.prior",
                "coefficients need a normal prior beside [model.parameters]: prior = { kind = \"normal\", sd = … }",
            )),
        }
    }

    /// `[model.prior]` of d coefficients, where it is no mixture of normals.
    pub(super) fn density(
        &self,
        prior: Option<&PriorEntry>,
        d: usize,
    ) -> Result<Density, ConfigError> {
        let Some(p) = prior else {
            return Ok(Density::Flat);
        };
        self.check_prior_keys(p)?;
        let missing = |what: &str| self.refuse("model.prior", what);
        match p.kind {
            PriorKind::Flat => Ok(Density::Flat),
            PriorKind::Normal => {
                let sd = p.sd.as_ref();
                let sd = sd.ok_or_else(|| missing("a normal prior needs 'sd'"))?;
                let mean = p
                    .mean
                    .as_ref()
                    .map_or_else(|| vec![0.0; d], |m| m.expand(d));
                let sd = sd.expand(d);
                self.check_spreads("model.prior.sd", &sd)?;
                Ok(Density::Normal { mean, sd })
            }
            PriorKind::Laplace => {
                let scale = p.scale.as_ref();
                let scale = scale.ok_or_else(|| missing("a laplace prior needs 'scale'"))?;
                let scale = scale.expand(d);
                self.check_spreads("model.prior.scale", &scale)?;
                Ok(Density::Laplace { scale })
            }
            // They are made of blocks.
            PriorKind::StudentT | PriorKind::Horseshoe => {
                Err(missing("this prior is for coefficients one by one"))
            }
        }
    }

    /// Refuses standard deviations and scales whose squares, or those of draws in their units,
    /// could not be computed with. Those that are not positive are refused where they are used.
    pub(super) fn check_spreads(&self, key: &str, values: &[f64]) -> Result<(), ConfigError> {
        let extreme = |v: &&f64| **v > 0.0 && v.is_finite() && !SPREADS.contains(*v);
        match values.iter().find(extreme) {
            Some(v) => {
                let what = format!(
                    "must lie between {:e} and {:e}, not {v:e}",
                    SPREADS.start(),
                    SPREADS.end()
                );
                Err(self.refuse(key, what))
            }
            None => Ok(()),
        }
    }

    /// Refuses keys of another kind of prior.
    pub(super) fn check_prior_keys(&self, p: &PriorEntry) -> Result<(), ConfigError> {
        use PriorKind as K;
        for (key, given, kinds) in [
            ("mean", p.mean.is_some(), &[K::Normal, K::StudentT][..]),
            ("sd", p.sd.is_some(), &[K::Normal]),
            (
                "scale",
                p.scale.is_some(),
                &[K::Laplace, K::StudentT, K::Horseshoe],
            ),
            ("degrees", p.degrees.is_some(), &[K::StudentT]),
            ("intercept_sd", p.intercept_sd.is_some(), &[K::Horseshoe]),
        ] {
            if given && !kinds.contains(&p.kind) {
                return Err(self.refuse(
                    &format!("model.prior.{key}"),
                    "does not belong to this prior",
                ));
            }
        }
        Ok(())
    }
}
