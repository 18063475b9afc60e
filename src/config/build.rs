//! From a run file to data, model, sampler and budget.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ConfigError;
use super::schema::{
    FeatureEntry, ModelKind, PriorEntry, PriorKind, RunConfig, SamplerSection, StartEntry,
};
use crate::data::{self, Condition, Dataset, Feature, FeatureKind, Label, LabelLevels, Source};
use crate::model::{
    Density, GaussianMean, Logistic, Mixture, Model, ModelError, Prior, Support, cholesky,
};
use crate::posterior_run::RunLength;
use crate::privacy::{Acceptance, Budget, Estimator, Lambda};
use crate::sampler::{
    Adaptation, Algorithm, ClipNorm, ClipRule, Preconditioner, RandomWalk, stream,
};

/// A run file with its place, checked piece by piece as it is used.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The settings, flags merged in.
    pub config: RunConfig,
    path: PathBuf,
    text: String,
}

impl Plan {
    /// Reads a run file.
    ///
    /// # Errors
    /// [`ConfigError`], naming the line and the nearest valid key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|e| ConfigError::File {
            path: path.into(),
            what: match e.kind() {
                std::io::ErrorKind::NotFound => {
                    "no such run file; `dpmc init DATA` makes one".into()
                }
                _ => format!("cannot be read: {e}"),
            },
        })?;
        Self::parse(path, text)
    }

    /// Parses the text of a run file that lies (or would lie) at `path`.
    ///
    /// # Errors
    /// As [`Plan::read`].
    pub fn parse(path: &Path, text: String) -> Result<Self, ConfigError> {
        let config = toml::from_str(&text).map_err(|e| ConfigError::from_toml(path, &text, &e))?;
        Ok(Plan {
            config,
            path: path.into(),
            text,
        })
    }

    /// An error at a key of this run file.
    pub fn refuse(&self, key: &str, what: impl AsRef<str>) -> ConfigError {
        ConfigError::at_key(&self.path, &self.text, key, what.as_ref())
    }

    /// A path of the run file, relative to the run file's folder.
    pub fn locate(&self, file: &Path) -> PathBuf {
        let base = self.path.parent().unwrap_or(Path::new(""));
        let joined = base.join(file);
        std::path::absolute(&joined).unwrap_or(joined)
    }

    /// The resolved run file: flags merged, paths absolute, chains stated.
    pub fn resolved(&self) -> String {
        let mut config = self.config.clone();
        config.data.file = self.locate(&config.data.file);
        config.data.name = Some(self.dataset_name());
        config.data.label_file = config.data.label_file.map(|f| self.locate(&f));
        if let Some(test) = &mut config.test {
            test.file = self.locate(&test.file);
            test.label_file = test.label_file.as_ref().map(|f| self.locate(f));
        }
        config.privacy.ledger = config.privacy.ledger.map(|f| self.locate(&f));
        config.run.chains = Some(self.chains());
        toml::to_string(&config).unwrap_or_default()
    }

    /// Name of the data set, for ledgers.
    pub fn dataset_name(&self) -> String {
        self.config.data.name.clone().unwrap_or_else(|| {
            let file = self.config.data.file.file_name();
            let name = file.map(|n| n.to_string_lossy().into_owned());
            name.unwrap_or_default()
                .split('.')
                .next()
                .unwrap_or_default()
                .into()
        })
    }

    /// Chains: as declared, else 1 in a private run and 4 in others.
    pub fn chains(&self) -> usize {
        let default = if self.config.privacy.not_private {
            4
        } else {
            1
        };
        self.config.run.chains.unwrap_or(default)
    }

    /// The budget; `None` for a non-private run.
    ///
    /// # Errors
    /// [`ConfigError`] where there is none, both, or a bad one.
    pub fn budget(&self) -> Result<Option<Budget>, ConfigError> {
        let p = &self.config.privacy;
        match (p.epsilon, p.delta, p.not_private) {
            (None, None, true) if p.ledger.is_some() => Err(self.refuse(
                "privacy.ledger",
                "a non-private run has no ledger; drop one of the two",
            )),
            (None, None, true) => Ok(None),
            (Some(epsilon), Some(delta), false) => Budget::new(epsilon, delta)
                .map(Some)
                .map_err(|e| self.refuse(e.key, e.what)),
            (None, None, false) => Err(ConfigError::general(
                "no budget: give --epsilon E --delta D (or [privacy] epsilon and delta), or --not-private",
            )),
            (_, _, true) => Err(self.refuse(
                "privacy.not_private",
                "contradicts epsilon and delta; keep one of the two",
            )),
            (Some(_), None, false) => Err(self.refuse(
                "privacy.epsilon",
                "needs delta beside it (smaller than 1/N)",
            )),
            (None, Some(_), false) => Err(self.refuse("privacy.delta", "needs epsilon beside it")),
        }
    }

    /// Lengths of the run.
    ///
    /// # Errors
    /// [`ConfigError`] for zeros.
    pub fn length(&self) -> Result<RunLength, ConfigError> {
        let run = &self.config.run;
        for (key, value) in [
            ("run.iterations", run.iterations),
            ("run.thin", run.thin),
            ("run.chains", self.chains() as u64),
        ] {
            if value == 0 {
                return Err(self.refuse(key, "must be at least 1"));
            }
        }
        if self.chains() > 65_536 {
            return Err(self.refuse("run.chains", "at most 65,536"));
        }
        Ok(RunLength {
            iterations: run.iterations,
            warmup: run.warmup,
            thin: run.thin,
        })
    }

    fn source(&self, file: &Path, label_file: Option<&PathBuf>) -> Result<Source, ConfigError> {
        let data = &self.config.data;
        let mut features = Vec::new();
        for (i, entry) in data.features.iter().enumerate() {
            let key = format!("data.features[{i}]");
            for feature in feature(entry).map_err(|what| self.refuse(&key, what))? {
                feature.validate(&key).map_err(|e| {
                    self.refuse(
                        &key,
                        e.to_string()
                            .trim_start_matches(&key)
                            .trim_start_matches(": "),
                    )
                })?;
                features.push(feature);
            }
        }
        if features.is_empty() {
            return Err(self.refuse("data.features", "declare at least one [[data.features]]"));
        }
        if let Some(norm) = data.row_norm
            && !(norm > 0.0 && norm.is_finite())
        {
            return Err(self.refuse("data.row_norm", format!("must be positive, not {norm}")));
        }
        if data.label.is_some() && data.label_file.is_some() {
            return Err(self.refuse("data.label_file", "contradicts [data.label]; keep one"));
        }
        Ok(Source {
            path: self.locate(file),
            label_file: label_file.map(|f| self.locate(f)),
            features,
            label: data.label.as_ref().map(|l| Label {
                column: l.column.clone(),
                levels: if l.positive.is_empty() {
                    LabelLevels::ZeroOne
                } else {
                    LabelLevels::Named {
                        positive: l.positive.clone(),
                        negative: l.negative.clone(),
                    }
                },
            }),
            row_norm: data.row_norm,
        })
    }

    /// Loads the sensitive table.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key, or file, line and column.
    pub fn load_data(&self) -> Result<Dataset, ConfigError> {
        let data = &self.config.data;
        let source = self.source(&data.file, data.label_file.as_ref())?;
        Ok(data::load(&source)?)
    }

    /// Loads the public held-out table, if one is declared.
    ///
    /// # Errors
    /// [`ConfigError`], also where the table is not declared public.
    pub fn load_test(&self) -> Result<Option<Dataset>, ConfigError> {
        let Some(test) = &self.config.test else {
            return Ok(None);
        };
        if !test.public {
            return Err(self.refuse(
                "test.public",
                "the guarantee does not cover the test table; set public = true if its rows may be revealed, or drop [test]",
            ));
        }
        let source = self.source(&test.file, test.label_file.as_ref())?;
        Ok(Some(data::load(&source)?))
    }

    /// Checks all that can be checked without reading rows.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check_declarations(&self) -> Result<(), ConfigError> {
        self.budget()?;
        self.length()?;
        let data = &self.config.data;
        let source = self.source(&data.file, data.label_file.as_ref())?;
        if let Some(test) = &self.config.test
            && !test.public
        {
            self.load_test()?;
        }
        let names: Vec<String> = source.features.iter().flat_map(Feature::names).collect();
        let norm = source.row_norm.unwrap_or_else(|| {
            let square: f64 = source.features.iter().map(Feature::max_square).sum();
            square.sqrt()
        });
        let model = self.model_for(&names, norm)?;
        self.sampler(&*model, 1000)?;
        Ok(())
    }

    /// The model over a loaded table.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn model(&self, data: &Dataset) -> Result<Arc<dyn Model>, ConfigError> {
        self.model_for(data.features(), data.row_norm())
    }

    fn model_for(&self, features: &[String], row_norm: f64) -> Result<Arc<dyn Model>, ConfigError> {
        for (i, name) in features.iter().enumerate() {
            if features[..i].contains(name) || name == "chain" || name == "iteration" {
                return Err(self.refuse(
                    "data.features",
                    format!("feature name '{name}' is used twice or reserved"),
                ));
            }
        }
        let m = &self.config.model;
        let refuse = |e: ModelError| self.refuse(&e.key, e.what);
        let d = match m.kind {
            ModelKind::Mixture => 2,
            _ => features.len(),
        };
        let prior = Prior {
            density: self.density(m.prior.as_ref(), d)?,
            support: m
                .support
                .as_ref()
                .map_or(Support::Unbounded, |b| Support::Box(b.expand(d))),
        };
        if m.variance.is_some() && m.kind != ModelKind::Mixture {
            return Err(self.refuse("model.variance", "belongs to kind = \"mixture\" alone"));
        }
        if m.covariance.is_some() && m.kind != ModelKind::GaussianMean {
            return Err(self.refuse(
                "model.covariance",
                "belongs to kind = \"gaussian-mean\" alone",
            ));
        }
        let needs_label = m.kind == ModelKind::Logistic;
        if needs_label && self.config.data.label.is_none() && self.config.data.label_file.is_none()
        {
            return Err(self.refuse("data.label", "a logistic model needs a declared label"));
        }
        Ok(match m.kind {
            ModelKind::Logistic => {
                Arc::new(Logistic::new(features, row_norm, prior, m.tempering).map_err(refuse)?)
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
                let flat: Vec<f64> = covariance.iter().flatten().copied().collect();
                Arc::new(
                    GaussianMean::new(features, &flat, row_norm, prior, m.tempering)
                        .map_err(refuse)?,
                )
            }
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

    /// The sampler over `rows` rows.
    ///
    /// # Errors
    /// [`ConfigError`] for keys that are missing, bad, or foreign to the algorithm.
    pub fn sampler(&self, model: &dyn Model, rows: usize) -> Result<RandomWalk, ConfigError> {
        let s = &self.config.sampler;
        let d = model.dim();
        let positive = |key: &str, value: Option<f64>| match value {
            Some(v) if !(v > 0.0 && v.is_finite()) => Err(self.refuse(
                &format!("sampler.{key}"),
                format!("must be positive, not {v}"),
            )),
            _ => Ok(()),
        };
        for (key, value) in [
            ("lambda", s.lambda),
            ("lambda_ratio", s.lambda_ratio),
            ("chi", s.chi),
            ("tau", s.tau),
            ("step", s.step),
        ] {
            positive(key, value)?;
        }
        if !s.algorithm.is_private() && !self.config.privacy.not_private {
            return Err(self.refuse(
                "sampler.algorithm",
                format!(
                    "'{}' is a non-private reference; choose barker, poisson-barker or dp-penalty, or run it with --not-private",
                    s.algorithm.name()
                ),
            ));
        }
        let estimator = self.estimator(s)?;
        let acceptance = match s.algorithm {
            Algorithm::Mh | Algorithm::TunaMh => Acceptance::Metropolis,
            Algorithm::Barker | Algorithm::PoissonBarker => Acceptance::Barker,
            Algorithm::DpPenalty => Acceptance::Penalty { tau: self.tau(s)? },
        };
        if s.tau.is_some() && s.algorithm != Algorithm::DpPenalty {
            return Err(self.refuse("sampler.tau", "belongs to dp-penalty alone"));
        }
        let target = s.target_acceptance.unwrap_or(s.algorithm.default_target());
        if !(target > 0.0 && target < 1.0) {
            return Err(self.refuse("sampler.target_acceptance", "must lie between 0 and 1"));
        }
        let length = self.length()?;
        Ok(RandomWalk::new(
            model.prior().clone(),
            estimator,
            acceptance,
            self.clip(s, model, rows)?,
            s.step.unwrap_or(2.38 / (d as f64).sqrt()),
            self.preconditioner(s, d)?,
            Adaptation::new(s.adapt, target, length.warmup, d),
        ))
    }

    fn estimator(&self, s: &SamplerSection) -> Result<Estimator, ConfigError> {
        let given: Vec<(&str, Lambda)> = [
            ("lambda", s.lambda.map(Lambda::Fixed)),
            ("lambda_ratio", s.lambda_ratio.map(Lambda::Ratio)),
            ("chi", s.chi.map(Lambda::Chi)),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
        match (s.algorithm.is_minibatch(), given.as_slice()) {
            (false, []) => Ok(Estimator::FullBatch),
            (false, [(key, _), ..]) => Err(self.refuse(
                &format!("sampler.{key}"),
                format!(
                    "'{}' reads all rows and has no minibatch",
                    s.algorithm.name()
                ),
            )),
            (true, [(_, lambda)]) => Ok(Estimator::Poisson { lambda: *lambda }),
            (true, []) => Ok(Estimator::Poisson {
                lambda: Lambda::Ratio(1.0),
            }),
            (true, [_, (key, _), ..]) => Err(self.refuse(
                &format!("sampler.{key}"),
                "lambda, lambda_ratio and chi exclude each other",
            )),
        }
    }

    /// τ as given, or the smallest that lets all planned steps fit the budget.
    fn tau(&self, s: &SamplerSection) -> Result<f64, ConfigError> {
        if let Some(tau) = s.tau {
            return Ok(tau);
        }
        let Some(budget) = self.budget()? else {
            return Err(self.refuse("sampler.algorithm", "a non-private dp-penalty needs 'tau'"));
        };
        let length = self.length()?;
        let steps = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        // The slack covers the rounding of σ² and of the event grid, both upwards.
        Ok((steps / (2.0 * budget.rho())).sqrt() * (1.0 + 2e-5))
    }

    fn clip(
        &self,
        s: &SamplerSection,
        model: &dyn Model,
        rows: usize,
    ) -> Result<Option<ClipRule>, ConfigError> {
        let Some(clip) = &s.clip else {
            let bound = model.ratio_rate().map(|rate| ClipRule {
                rate,
                norm: ClipNorm::Euclidean,
            });
            if bound.is_none() && (s.algorithm.is_private() || s.algorithm.is_minibatch()) {
                return Err(self.refuse(
                    "sampler",
                    format!(
                        "model '{}' has no bound on its log ratios here; declare a parameter 'box' in [model] or 'clip = {{ rate = … }}' in [sampler]",
                        model.name()
                    ),
                ));
            }
            return Ok(bound);
        };
        let norm = clip.norm.unwrap_or(match clip.rms {
            Some(_) => ClipNorm::Proposal,
            None => ClipNorm::Euclidean,
        });
        let rate = match (clip.rate, clip.rms) {
            (Some(rate), None) => rate,
            (None, Some(_)) if norm == ClipNorm::Euclidean => {
                return Err(self.refuse("sampler.clip", "rms goes with norm = \"proposal\""));
            }
            (None, Some(rms)) => rms * (model.tempering() / rows as f64).sqrt(),
            _ => return Err(self.refuse("sampler.clip", "give exactly one of rate and rms")),
        };
        if !(rate > 0.0 && rate.is_finite()) {
            return Err(self.refuse("sampler.clip", format!("must be positive, not {rate}")));
        }
        Ok(Some(ClipRule { rate, norm }))
    }

    fn preconditioner(&self, s: &SamplerSection, d: usize) -> Result<Preconditioner, ConfigError> {
        match (&s.scale, &s.covariance) {
            (None, None) => Ok(Preconditioner::Identity),
            (Some(scale), None) => {
                let values = scale.expand(d);
                if values.len() != d || values.iter().any(|v| !(*v > 0.0 && v.is_finite())) {
                    return Err(self.refuse(
                        "sampler.scale",
                        format!("needs a positive number, or {d} of them"),
                    ));
                }
                Ok(Preconditioner::Diagonal(values))
            }
            (None, Some(rows)) => {
                let flat: Vec<f64> = rows.iter().flatten().copied().collect();
                cholesky(&flat, d)
                    .map(Preconditioner::Full)
                    .map_err(|what| self.refuse("sampler.covariance", what))
            }
            _ => Err(self.refuse("sampler.covariance", "contradicts 'scale'; keep one")),
        }
    }

    /// Starting points of all chains.
    ///
    /// # Errors
    /// [`ConfigError`] where the start is outside the support, or the prior is improper.
    pub fn starts(&self, model: &dyn Model, seed: [u8; 32]) -> Result<Vec<Vec<f64>>, ConfigError> {
        let (d, prior) = (model.dim(), model.prior());
        let refuse = |what: &str| Err(self.refuse("run.start", what));
        let point = match &self.config.run.start {
            StartEntry::Zero => vec![0.0; d],
            StartEntry::Value(v) if v.len() == d => v.clone(),
            StartEntry::Value(v) => {
                return refuse(&format!("{} values for {d} parameters", v.len()));
            }
            StartEntry::Prior => {
                // Streams above the chains' own, so that no coin is used twice.
                return (0..self.chains())
                    .map(|c| {
                        let mut rng = stream(seed, (1 << 32) + c as u64);
                        prior.draw(&mut rng).ok_or_else(|| {
                            self.refuse("run.start", "the prior is improper; start from a value")
                        })
                    })
                    .collect();
            }
        };
        if !prior.contains(&point) {
            return refuse("lies outside the model's box");
        }
        Ok(vec![point; self.chains()])
    }
}

/// One entry's features, one a column.
fn feature(entry: &FeatureEntry) -> Result<Vec<Feature>, String> {
    let kinds = [
        entry.intercept.is_some(),
        entry.scale.is_some(),
        entry.clamp.is_some(),
        entry.one_hot.is_some(),
        entry.indicator.is_some(),
    ];
    if kinds.iter().filter(|k| **k).count() != 1 {
        return Err(
            "bounds are missing or contradict: give exactly one of intercept, scale = [low, high], clamp = [low, high], one_hot = […], indicator = { … }"
                .into(),
        );
    }
    if entry.strict.is_some() && entry.one_hot.is_none() {
        return Err("'strict' belongs to one_hot".into());
    }
    if entry.intercept.is_some() {
        if entry.intercept == Some(false) || entry.column.is_some() || entry.columns.is_some() {
            return Err("write 'intercept = true' alone".into());
        }
        return Ok(vec![Feature {
            column: None,
            kind: FeatureKind::Intercept,
            missing: None,
        }]);
    }
    let columns = match (&entry.column, &entry.columns) {
        (Some(column), None) => vec![column.clone()],
        (None, Some(columns)) if !columns.is_empty() => columns.clone(),
        _ => return Err("give 'column' or 'columns'".into()),
    };
    let kind = if let Some([low, high]) = entry.scale {
        FeatureKind::Scale { low, high }
    } else if let Some([low, high]) = entry.clamp {
        FeatureKind::Clamp { low, high }
    } else if let Some(levels) = &entry.one_hot {
        FeatureKind::OneHot {
            levels: levels.clone(),
            strict: entry.strict.unwrap_or(false),
        }
    } else {
        let i = entry.indicator.clone().unwrap_or_default();
        FeatureKind::Indicator(match (i.one_of, i.above, i.below) {
            (Some(levels), None, None) => Condition::OneOf(levels),
            (None, Some(v), None) => Condition::Above(v),
            (None, None, Some(v)) => Condition::Below(v),
            _ => return Err("indicator needs exactly one of in, above, below".into()),
        })
    };
    Ok(columns
        .into_iter()
        .map(|column| Feature {
            column: Some(column),
            kind: kind.clone(),
            missing: entry.missing,
        })
        .collect())
}
