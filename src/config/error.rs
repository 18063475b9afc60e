//! Errors of a run file: file, line, key, and the nearest valid key.

use std::path::{Path, PathBuf};

use toml::de::DeTable;

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
    Data(#[from] crate::data::DataError),
}

impl ConfigError {
    pub(crate) fn general(what: impl Into<String>) -> Self {
        ConfigError::General { what: what.into() }
    }

    /// From the TOML reader, with the nearest of the expected keys.
    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map_or(1, |s| line_of(text, s.start));
        let message = error.message();
        ConfigError::At {
            path: path.into(),
            line,
            what: format!("{message}{}", nearest_hint(message)),
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

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
}

/// `unknown field `stpe`, expected one of `step`, …` → the nearest of them.
fn nearest_hint(message: &str) -> String {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return String::new();
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next() else {
        return String::new();
    };
    quoted
        .max_by(|a, b| {
            strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown))
        })
        .map(|key| format!("; the nearest valid one is `{key}`"))
        .unwrap_or_default()
}

/// Whether a key of the text is the one that a message calls `name`: starts have two names.
fn names(key: &str, name: &str) -> bool {
    key == name || (key, name) == ("init", "start")
}

/// Line of the deepest part of `key` that the text has.
fn find_line(text: &str, key: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref().clone();
    let mut line = None;
    for part in key.split('.') {
        let (name, index) = match part.split_once('[') {
            Some((name, rest)) => (
                name,
                rest.trim_end_matches(|c| c != ']')
                    .strip_suffix(']')?
                    .parse::<usize>()
                    .ok(),
            ),
            None => (part, None),
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
    }

    #[test]
    fn the_nearest_key_is_named() {
        let hint = nearest_hint("unknown field `stpe`, expected one of `clip`, `step`, `tau`");
        assert!(hint.contains("`step`"), "{hint}");
    }
}
