//! One of the files that a table consists of.

use std::path::PathBuf;

use super::DataError;

const GONE: &str =
    "was there when files were listed, and is gone; leave them alone while they are read";

/// A file of a table. Folders such as `region=north` above it give its rows a column, so its path
/// may hold cells: messages name `shown`. It has no `Debug`.
#[derive(Clone)]
pub struct Part {
    /// Where it is.
    pub path: PathBuf,
    /// As messages show it.
    pub shown: PathBuf,
    /// Columns that its folders give, each once, with their cell; none for a missing one. They
    /// take the place of columns of the same name in the file.
    pub given: Vec<(String, Option<String>)>,
}

impl Part {
    /// An error of this file, by the name that is shown.
    pub fn at_fault(&self, mut error: DataError) -> DataError {
        if let DataError::File { path, .. } | DataError::Cell { path, .. } = &mut error {
            *path = self.shown.clone();
        }
        if let DataError::File { what, .. } = &mut error
            && !self.path.exists()
        {
            *what = GONE.into();
        }
        error
    }
}
