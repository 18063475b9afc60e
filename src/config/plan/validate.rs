//! `[validate]`: a held-out table that is protected, its budget, and what a score of it costs.

use std::path::PathBuf;

use super::Plan;
use crate::config::ConfigError;
use crate::config::files::{is_pattern, table_files};
use crate::config::schema::ModelKind;
use crate::data::{self, Dataset, stem};
use crate::privacy::{Budget, Measure};

/// A held-out table's settings, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// What its ledger calls the table.
    pub name: String,
    /// The ledger file.
    pub ledger: PathBuf,
    /// The budget of all scores of this table.
    pub budget: Budget,
    /// Share of it that one release takes.
    pub share: f64,
    /// A row's score is cut off at these, nats.
    pub clip: [f64; 2],
    /// Most draws that rows are scored by.
    pub draws: usize,
}

/// What is added to a price when it is rounded up, at most, of itself.
const ROUNDING: f64 = 2e-4;

impl Validation {
    /// What its ledger counts: all of its releases are Gaussian noise.
    pub const MEASURE: Measure = Measure::Gaussian;

    /// τ of the noise of each of so many sums of a release.
    pub fn tau(&self, sums: usize) -> f64 {
        let rho = self.share * Self::MEASURE.limit(self.budget) * (1.0 - ROUNDING);
        (0.5 * sums as f64 / rho).sqrt()
    }

    /// What is to be said of a δ that a table of so many rows is too small for.
    pub fn warning(delta: f64, rows: usize) -> Option<String> {
        (delta > 1.0 / rows as f64).then(|| {
            format!(
                "delta {delta:e} of [validate] exceeds 1/rows of the held-out table: it permits publishing some of them outright"
            )
        })
    }

    /// Standard deviations of the noise of the mean score, and of an accuracy if there is one.
    pub fn noise(&self, rows: usize, has_accuracy: bool) -> (f64, Option<f64>) {
        let sd = self.tau(1 + usize::from(has_accuracy)) / rows as f64;
        let [low, high] = self.clip;
        ((high - low) * sd, has_accuracy.then_some(sd))
    }
}

impl Plan {
    /// `[validate]`, if there is one.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn validation(&self) -> Result<Option<Validation>, ConfigError> {
        let Some(section) = &self.config.validate else {
            return Ok(None);
        };
        let refuse = |key: &str, what: &str| Err(self.refuse(&format!("validate.{key}"), what));
        let m = &self.config.model;
        if matches!(
            m.kind,
            ModelKind::GaussianMean
                | ModelKind::Mixture
                | ModelKind::Banana
                | ModelKind::Mlp
                | ModelKind::Network
        ) {
            return Err(self.refuse(
                "validate",
                "held-out scores are of regressions; drop the section, or score a public [test] table",
            ));
        }
        if self.config.data.unit.is_some() {
            return Err(self.refuse(
                "validate",
                "a held-out score protects single rows, and data.unit says that persons have several; drop the section",
            ));
        }
        let [low, high] = section.clip;
        if !(low < high && (high - low).is_finite()) {
            return refuse(
                "clip",
                "is [LOW, HIGH] in nats, LOW < HIGH, such as [-3, 0]",
            );
        }
        if !(section.share > 0.0 && section.share <= 1.0) {
            return refuse("share", "must lie in (0, 1]");
        }
        if !(1..=10_000).contains(&section.draws) {
            return refuse("draws", "must lie in 1 to 10,000");
        }
        let budget = Budget::new(section.epsilon, section.delta);
        let budget = budget.map_err(|e| {
            let key = e.key.replace("privacy", "validate");
            self.refuse(&key, e.what)
        })?;
        let has_own = !is_pattern(&self.locate(&section.file));
        if section.name.is_none() && !has_own {
            return refuse(
                "name",
                "is missing: a pattern has no name that a ledger could know it by",
            );
        }
        if self.same_file(&section.file, &self.config.data.file) {
            return refuse(
                "file",
                "is the table of [data], whose rows the draws were fitted to; held-out rows are others",
            );
        }
        let test = self.config.test.as_ref();
        if test.is_some_and(|test| self.same_file(&section.file, &test.file)) {
            return refuse(
                "file",
                "is the table of [test], which is declared public; keep one of them",
            );
        }
        let data_labels = self.config.data.label_file.as_ref();
        let test_labels = test.and_then(|test| test.label_file.as_ref());
        for (labels, whose) in [(data_labels, "[data]"), (test_labels, "[test]")] {
            let both = section.label_file.as_ref().zip(labels);
            if both.is_some_and(|(own, other)| self.same_file(own, other)) {
                let what = format!(
                    "is that of {whose}; held-out rows are others, with labels of their own"
                );
                return refuse("label_file", &what);
            }
        }
        if section.label_file.is_some() && self.label()?.is_some_and(|l| l.column.is_some()) {
            return refuse("label_file", "contradicts the label's column; keep one");
        }
        let shared = self.shared_ledger();
        if shared.is_some_and(|path| path == self.locate(&section.ledger)) {
            return refuse(
                "ledger",
                "is that of [privacy], which counts what is published of another table; give the held-out table one of its own",
            );
        }
        Ok(Some(Validation {
            name: section.name.clone().unwrap_or_else(|| stem(&section.file)),
            ledger: self.locate(&section.ledger),
            budget,
            share: section.share,
            clip: section.clip,
            draws: section.draws,
        }))
    }

    /// Loads the held-out table by the declarations of `[data]`.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key, or file, line and column.
    pub fn load_validation(&self) -> Result<Option<Dataset>, ConfigError> {
        let Some(section) = &self.config.validate else {
            return Ok(None);
        };
        let source = self.source(&section.file, section.label_file.as_ref())?;
        let parts = table_files(&source.path)?;
        Ok(Some(data::load_parts(&source, &parts)?))
    }
}
