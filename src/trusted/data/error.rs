//! What can be wrong with a table or with what was declared about it.
//!
//! Messages name file, line and column, never the content of a cell.

use std::path::{Path, PathBuf};

/// An error of the data layer. Positions are public; cell contents never appear.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file cannot be opened or read.
    #[error("{}: {what}", path.display())]
    File {
        /// The file at fault.
        path: PathBuf,
        /// What went wrong and what to do next.
        what: String,
    },
    /// A cell or line does not fit the declarations.
    #[error("{}, line {line}{}: {what}", path.display(), column.as_ref().map(|c| format!(", column '{c}'")).unwrap_or_default())]
    Cell {
        /// The file at fault.
        path: PathBuf,
        /// 1-based line on which the row starts, as an editor shows it (CSV), or row
        /// (Parquet, NPY).
        line: u64,
        /// The column's name, where one is at fault.
        column: Option<String>,
        /// What is wrong and what to do next; never the cell's content.
        what: String,
    },
    /// A row handed to the builder does not fit.
    #[error("row {row}: {what}")]
    Row {
        /// 1-based row number.
        row: usize,
        /// What is wrong.
        what: String,
    },
    /// A key of the run file declares something impossible.
    #[error("{key}: {what}")]
    Declaration {
        /// The key at fault.
        key: String,
        /// What is wrong and what to do next.
        what: String,
    },
    /// Fewer than two rows.
    #[error("the table has {rows} row(s), or units; at least 2 are needed")]
    TooFewRows {
        /// Rows found.
        rows: usize,
    },
    /// Rows cannot be put on disk.
    #[error("{}: rows cannot be kept there: {what}; --cache names another folder for them", folder.display())]
    Kept {
        /// Where they were to be.
        folder: PathBuf,
        /// What the system says.
        what: String,
    },
    /// The table would not fit in memory.
    #[error(
        "{}: {rows} rows or more × {features} features need {needed_mib} MiB or more, but may take {available_mib} MiB of memory; {advice}", path.display()
    )]
    TooLarge {
        /// The file at fault.
        path: PathBuf,
        /// The smallest number of rows that would not fit.
        rows: u64,
        /// Declared features.
        features: usize,
        /// Needed memory in MiB.
        needed_mib: u64,
        /// Memory that they may take, in MiB.
        available_mib: u64,
        /// What to do next.
        advice: &'static str,
    },
}

impl DataError {
    pub(in crate::trusted) fn file(path: &Path, what: impl Into<String>) -> Self {
        let (path, what) = (path.into(), what.into());
        DataError::File { path, what }
    }

    pub(in crate::trusted) fn line(path: &Path, line: u64, what: impl Into<String>) -> Self {
        let (path, column, what) = (path.into(), None, what.into());
        DataError::Cell {
            path,
            line,
            column,
            what,
        }
    }

    pub(in crate::trusted) fn declaration(key: &str, what: String) -> Self {
        let key = key.into();
        DataError::Declaration { key, what }
    }
}
