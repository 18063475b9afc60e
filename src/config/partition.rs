//! Folders such as `region=north`, whose names give the rows of files in them a column. The values
//! are cells, which no message shows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use crate::data::{DataError, Part};

/// What writers of partitions put in a folder's name for a missing value.
const MISSING: &str = "__HIVE_DEFAULT_PARTITION__";

/// A file below `base`; the `number`-th one, from 1.
pub(super) fn part(base: &Path, path: &Path, number: usize) -> Result<Part, DataError> {
    let folder = path.parent().unwrap_or(base);
    let mut shown = folder_shown(base, folder);
    let below = folder.strip_prefix(base).unwrap_or(Path::new(""));
    let mut given: Vec<(String, Option<String>)> = Vec::new();
    for name in below
        .components()
        .filter_map(|c| Partition::of(c.as_os_str()))
    {
        let fail = |what| DataError::File {
            path: shown.clone(),
            what,
        };
        let cell = name
            .cell()
            .ok_or_else(|| fail("a folder's name is not valid UTF-8; rename it".into()))?;
        if given.iter().any(|(key, _)| *key == name.key) {
            return Err(fail(format!(
                "two folders give the column '{}'; rename one",
                name.key
            )));
        }
        given.push((name.key, cell));
    }
    let file = path.file_name().unwrap_or_default();
    shown.push(file);
    if !given.is_empty() {
        // Folders are not told apart by what is shown.
        shown
            .as_mut_os_string()
            .push(format!(" (file {number} by name)"));
    }
    Ok(Part {
        path: path.into(),
        shown,
        given,
    })
}

/// A folder's name of the form `column=value`.
struct Partition {
    key: String,
    /// As it is written; `None` where it is no text.
    value: Option<String>,
}

impl Partition {
    fn of(name: &OsStr) -> Option<Partition> {
        let text = name.to_string_lossy();
        let (key, value) = text.split_once('=')?;
        Some(Partition {
            key: percent_decode_str(key).decode_utf8_lossy().into(),
            value: name.to_str().map(|_| value.into()),
        })
    }

    /// The cell, which may be missing; `None` where it is no text.
    fn cell(&self) -> Option<Option<String>> {
        let value = self.value.as_deref()?;
        if value == MISSING {
            return Some(None);
        }
        let text = percent_decode_str(value).decode_utf8().ok()?;
        Some(Some(text.into()))
    }
}

/// How messages show a folder that was found below `base`: without cells.
pub(super) fn folder_shown(base: &Path, folder: &Path) -> PathBuf {
    let mut shown = base.to_path_buf();
    for name in folder
        .strip_prefix(base)
        .unwrap_or(Path::new(""))
        .components()
    {
        match Partition::of(name.as_os_str()) {
            Some(Partition { key, .. }) => shown.push(format!("{key}=…")),
            None => shown.push(name),
        }
    }
    shown
}
