//! From a run file to data, model, sampler and budget, one file a section.

mod anchor;
mod bounds;
mod data;
mod declared;
mod estimator;
mod fast_mh;
mod features;
mod forecast;
mod gradient;
mod hierarchy;
mod ledger;
mod measure;
mod model;
mod moments;
mod network;
mod optimiser;
mod public_table;
mod range;
mod run;
mod sampler;
mod scale;
mod start;
mod stochastic;
mod structure;
mod terms;
mod validate;
mod weights;

pub use forecast::DECISIONS_A_DRAW;
pub use forecast::{Forecast, noise_of_means};
pub use hierarchy::Hierarchy;
pub use terms::{FormulaTerms, Term};
pub use validate::Validation;

use std::path::{Path, PathBuf};

use super::ConfigError;
use super::schema::RunConfig;
use crate::data::{Room, stem};

/// A run file with its place, checked piece by piece as it is used.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The settings, flags merged in.
    pub config: RunConfig,
    path: PathBuf,
    text: String,
    /// Keys whose value came from a flag, with that flag.
    flags: Vec<(&'static str, &'static str)>,
    room: Room,
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
                std::io::ErrorKind::InvalidData => {
                    "is not text in UTF-8; save it in that encoding".into()
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
            flags: Vec::new(),
            room: Room::default(),
        })
    }

    /// Notes that the value of `key` was given by `flag`, which errors then name.
    pub fn set_by_flag(&mut self, key: &'static str, flag: &'static str) {
        self.flags.push((key, flag));
    }

    /// An error at a key of this run file, or at the flag that overrides it.
    pub fn refuse(&self, key: &str, what: impl AsRef<str>) -> ConfigError {
        if let Some((_, flag)) = self.flags.iter().find(|(k, _)| *k == key) {
            return ConfigError::general(format!("{flag}: {}", what.as_ref()));
        }
        ConfigError::at_key(&self.path, &self.text, key, what.as_ref())
    }

    /// A path of the run file, relative to the run file's folder.
    pub fn locate(&self, file: &Path) -> PathBuf {
        let base = self.path.parent().unwrap_or(Path::new(""));
        let joined = base.join(file);
        std::path::absolute(&joined).unwrap_or(joined)
    }

    /// A d × d matrix, row-major, as declared at `key`.
    fn matrix(&self, key: &str, rows: &[Vec<f64>], d: usize) -> Result<Vec<f64>, ConfigError> {
        if let Some(i) = rows.iter().position(|row| row.len() != d) {
            return Err(self.refuse(
                &format!("{key}[{i}]"),
                format!("row {} is of length {}, not {d}", i + 1, rows[i].len()),
            ));
        }
        if rows.len() != d {
            return Err(self.refuse(key, format!("{} rows for a {d} × {d} matrix", rows.len())));
        }
        Ok(rows.concat())
    }

    /// Where the run file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The resolved run file: flags merged, paths absolute, chains stated.
    ///
    /// # Errors
    /// [`ConfigError`] where no run file can say so: a path that is not Unicode, but on Unix.
    pub fn resolved(&self) -> Result<String, ConfigError> {
        let mut config = self.config.clone();
        config.data.file = self.locate(&config.data.file);
        config.data.name = Some(self.dataset_name());
        config.data.label_file = config.data.label_file.map(|f| self.locate(&f));
        if let Some(bounds) = &mut config.data.bounds {
            bounds.file = bounds.file.take().map(|f| self.locate(&f));
        }
        if let Some(test) = &mut config.test {
            test.file = self.locate(&test.file);
            test.label_file = test.label_file.as_ref().map(|f| self.locate(f));
        }
        if let Some(validate) = &mut config.validate {
            validate.file = self.locate(&validate.file);
            validate.label_file = validate.label_file.as_ref().map(|f| self.locate(f));
            validate.ledger = self.locate(&validate.ledger);
        }
        config.privacy.ledger = config.privacy.ledger.map(|f| self.locate(&f));
        config.run.chains = Some(self.chains());
        toml::to_string(&config).map_err(|e| {
            ConfigError::general(format!(
                "no run file can hold these settings ({e}); give paths in Unicode"
            ))
        })
    }

    /// Name of the data set, for ledgers.
    pub fn dataset_name(&self) -> String {
        let data = &self.config.data;
        data.name.clone().unwrap_or_else(|| stem(&data.file))
    }

    /// What a ledger knows the table by: its name, and whose rows are where these are not protected
    /// one by one. A ledger counts what was learned of one kind of neighbours alone.
    pub fn ledger_name(&self) -> String {
        let name = self.dataset_name();
        let data = &self.config.data;
        match (&data.unit, data.rows_per_unit) {
            (Some(unit), Some(rows)) => format!("{name}, {rows} rows of each '{unit}'"),
            _ => name,
        }
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

    /// Checks all that can be checked without reading rows.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check_declarations(&self) -> Result<(), ConfigError> {
        self.check_name()?;
        self.resolved()?;
        self.budget()?;
        self.length()?;
        let data = &self.config.data;
        let source = self.source(&data.file, data.label_file.as_ref())?;
        self.bounds()?;
        self.unit()?;
        self.row_weights()?;
        self.public_test()?;
        self.validation()?;
        let norm = source.norm_bound();
        let model = self.model_for(&source.names(), norm)?;
        // Any number of rows: they scale clips and noise, and make nothing valid or not.
        self.sampler(&*model, 1000, norm)?;
        self.warm_start(&*model)?;
        Ok(())
    }
}
