//! Errors of a run file: file, line, key, and the nearest valid key.

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::hints::explained;
use crate::data::DataError;

/// What is wrong with a run file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A key or value is at fault.
    #[error("{}, line {line}: {what}", path.display())]
    At {
        /// The run file.
        path: PathBuf,
        /// 1-based line.
        line: usize,
        /// What is wrong and what to do next.
        what: String,
    },
    /// Something that has no line (a missing key, a flag).
    #[error("{what}")]
    General {
        /// What is wrong and what to do next.
        what: String,
    },
    /// The file cannot be read.
    #[error("{}: {what}", path.display())]
    File {
        /// The run file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The table or its declarations.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl ConfigError {
    /// An error of no one key.
    pub fn general(what: impl Into<String>) -> Self {
        ConfigError::General { what: what.into() }
    }

    /// The key, flag or column at fault, where the message names one.
    pub fn key(&self) -> Option<&str> {
        let what = match self {
            ConfigError::At { what, .. }
            | ConfigError::General { what }
            | ConfigError::File { what, .. } => what,
            ConfigError::Data(DataError::Declaration { key, .. }) => return Some(key),
            ConfigError::Data(DataError::Cell { column, .. }) => return column.as_deref(),
            ConfigError::Data(_) => return None,
        };
        if let Some(unknown) = what.strip_prefix("unknown field `") {
            return unknown.split('`').next();
        }
        let (key, _) = what.split_once(": ")?;
        let mut outside = key.split('"').step_by(2);
        let is_key = !outside.any(|part| part.contains(char::is_whitespace));
        is_key.then_some(key)
    }

    /// From the TOML reader, with what to do about it.
    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |s| s.start);
        ConfigError::At {
            path: path.into(),
            line: line_of(text, offset),
            what: explained(text, offset, error.message()),
        }
    }

    /// At `key` (such as `sampler.lambda` or `data.features[2].scale`), its line found
    /// in the text; the key's parents where it is absent.
    pub(super) fn at_key(path: &Path, text: &str, key: &str, what: &str) -> Self {
        let what = format!("{key}: {what}");
        match find_line(text, key) {
            Some(line) => ConfigError::At {
                path: path.into(),
                line,
                what,
            },
            None => ConfigError::File {
                path: path.into(),
                what,
            },
        }
    }
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
}

/// Whether a key of the text is the one that a message calls `name`: starts have two names.
fn names(key: &str, name: &str) -> bool {
    key == name || (key, name) == ("init", "start")
}

/// The parts of a key, which are names in quotes or without dots.
fn parts_of(key: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    key.split(move |c| {
        inside ^= c == '"';
        c == '.' && !inside
    })
}

/// Line of the deepest part of `key` that the text has.
fn find_line(text: &str, key: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref().clone();
    let mut line = None;
    for part in parts_of(key) {
        let quoted = part.strip_prefix('"').and_then(|p| p.strip_suffix('"'));
        let (name, index) = match quoted.map_or_else(|| part.split_once('['), |_| None) {
            Some((name, rest)) => (
                name,
                rest.trim_end_matches(|c| c != ']')
                    .strip_suffix(']')?
                    .parse::<usize>()
                    .ok(),
            ),
            None => (quoted.unwrap_or(part), None),
        };
        let Some((found, value)) = table.iter().find(|(k, _)| names(k.get_ref(), name)) else {
            break;
        };
        line = Some(line_of(text, found.span().start));
        let mut value = value.clone();
        if let Some(index) = index {
            let Some(array) = value.get_ref().as_array() else {
                break;
            };
            let Some(element) = array.get(index).cloned() else {
                break;
            };
            line = Some(line_of(text, element.span().start));
            value = element;
        }
        match value.get_ref().as_table() {
            Some(inner) => table = inner.clone(),
            None => break,
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_keys_are_found() {
        let text = "[data]\nfile = 'x'\n[[data.features]]\nintercept = true\n[[data.features]]\ncolumn = 'a'\nscale = [1, 0]\n";
        assert_eq!(find_line(text, "data.file"), Some(2));
        assert_eq!(find_line(text, "data.features[1].scale"), Some(7));
        assert_eq!(find_line(text, "data.absent"), Some(1));
        assert_eq!(find_line(text, "absent"), None);
        let text = "[columns]\n'x.1' = { scale = [0, 1] }\n[columns.'a b[0]']\nscale = [0, 1]\n";
        assert_eq!(find_line(text, "columns.\"x.1\".scale"), Some(2));
        assert_eq!(find_line(text, "columns.\"a b[0]\".scale"), Some(4));
    }

    #[test]
    fn an_error_says_which_key_it_is_of() {
        let at = |what: &str| ConfigError::general(what).key().map(String::from);
        assert_eq!(
            at("data.features[2].scale: low"),
            Some("data.features[2].scale".into())
        );
        assert_eq!(at("unknown field `stpe`, expected"), Some("stpe".into()));
        assert_eq!(
            at("columns.\"n visits\".scale: low"),
            Some("columns.\"n visits\".scale".into())
        );
        assert_eq!(at("no budget: give --epsilon"), None);
        assert_eq!(at("nothing at all"), None);
    }
}
