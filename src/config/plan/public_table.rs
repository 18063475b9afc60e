//! A public table of new rows, declared like the run's own: what predictions are made for.

use std::path::{Path, PathBuf};

use super::Plan;
use crate::config::ConfigError;
use crate::data::{self, Dataset, Frame, TextFormat};

impl Plan {
    /// Loads a public table by the declarations of `[data]`, with its labels or without. The path
    /// is relative to the working directory.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, line and column; also where it is the table that a private run
    /// protects.
    pub fn load_public(&self, table: &Path, labelled: bool) -> Result<Dataset, ConfigError> {
        let path = self.public_path(table)?;
        let mut source = self.source(&path, None)?;
        if !labelled {
            source.label = None;
        }
        Ok(data::load(&source)?)
    }

    /// As [`Plan::load_public`], with labels, of a table in memory that messages call `name`.
    ///
    /// # Errors
    /// As there; rows in place of lines.
    pub fn load_public_frame(
        &self,
        frame: &Frame,
        name: &str,
        labelled: bool,
    ) -> Result<Dataset, ConfigError> {
        let mut source = self.source(&self.config.data.file, None)?;
        if !labelled {
            source.label = None;
        }
        source.path = PathBuf::from(name);
        Ok(data::load_frame(&source, frame)?)
    }

    /// The absolute path of a public table that exists and is not the one that the run protects.
    ///
    /// # Errors
    /// [`ConfigError`] that says what else to give.
    pub fn public_path(&self, table: &Path) -> Result<PathBuf, ConfigError> {
        let path = std::path::absolute(table).unwrap_or_else(|_| table.into());
        if !path.exists() {
            let what = format!("{}: no such table", table.display());
            return Err(ConfigError::general(what));
        }
        let data = &self.config.data;
        if !self.config.privacy.not_private
            && self.is_any(&path, [Some(&data.file), data.label_file.as_ref()])
        {
            return Err(ConfigError::general(format!(
                "{}: is the table of [data], which the run protects: what is said of its rows would reveal them, and no ledger pays for it; give a public table",
                table.display()
            )));
        }
        // The held-out table has a ledger of its own, whatever the run's own table has.
        if let Some(held_out) = &self.config.validate
            && self.is_any(&path, [Some(&held_out.file), held_out.label_file.as_ref()])
        {
            return Err(ConfigError::general(format!(
                "{}: is the table of [validate], which is protected: what is said of its rows would reveal them; `dpmc validate` scores it at a price, and other answers need a public table",
                table.display()
            )));
        }
        Ok(path)
    }

    fn is_any(&self, path: &Path, files: [Option<&PathBuf>; 2]) -> bool {
        let mut files = files.into_iter().flatten();
        files.any(|file| self.same_file(path, file))
    }

    /// How a public table's text is written.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn public_text(&self) -> Result<TextFormat, ConfigError> {
        Ok(self.source(&self.config.data.file, None)?.text)
    }
}
