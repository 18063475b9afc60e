//! Paths in a run file: texts, or `{ bytes = 'table\xff.csv' }` where a path is no UTF-8 (Unix).

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path as a run file has it.
struct Entry(PathBuf);

/// How a run file writes a path, as TOML.
pub fn quoted(path: &Path) -> Result<String, toml::ser::Error> {
    let value = toml::Value::try_from(Entry(path.into()))?;
    Ok(value.to_string())
}

pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    Entry(path.into()).serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(Entry::deserialize(from)?.0)
}

/// Paths that may be left out.
pub(super) mod optional {
    use super::*;

    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.clone().map(Entry).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Some(Entry::deserialize(from)?.0))
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some(text) = self.0.to_str() else {
            let mut map = to.serialize_map(Some(1))?;
            let bytes = bytes(&self.0).ok_or_else(|| serde::ser::Error::custom("a path"))?;
            map.serialize_entry("bytes", &escaped(bytes))?;
            return map.end();
        };
        to.serialize_str(text)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Forms)
    }
}

struct Forms;

impl<'de> Visitor<'de> for Forms {
    type Value = Entry;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a path in quotes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Entry, E> {
        Ok(Entry(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let entry: Option<(String, String)> = map.next_entry()?;
        let bytes = match entry {
            Some((key, text)) if key == "bytes" => unescaped(&text),
            _ => None,
        };
        let path = bytes.and_then(path_of);
        path.map(Entry).ok_or_else(|| {
            A::Error::custom("give a path in quotes, or { bytes = '…' } with \\xNN for each byte that is no UTF-8")
        })
    }
}

#[cfg(unix)]
fn bytes(path: &Path) -> Option<&[u8]> {
    use std::os::unix::ffi::OsStrExt;
    Some(path.as_os_str().as_bytes())
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn bytes(_: &Path) -> Option<&[u8]> {
    None
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Bytes as text: `\xNN` for one that is no UTF-8, `\\` for a backslash.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += &chunk.valid().replace('\\', "\\\\");
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    while let Some(part) = parts.next() {
        match part.strip_prefix('x') {
            Some(rest) => {
                bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                bytes.extend(&rest.as_bytes()[2..]);
            }
            // A doubled backslash splits into an empty part and what follows it.
            None if part.is_empty() => {
                bytes.push(b'\\');
                bytes.extend(parts.next()?.as_bytes());
            }
            None => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_bytes_come_back(bytes: Vec<u8>, text in "[\\\\x0-9a-f]{0,12}") {
            prop_assert_eq!(unescaped(&escaped(&bytes)), Some(bytes));
            prop_assert_eq!(unescaped(&escaped(text.as_bytes())), Some(text.clone().into_bytes()));
            // Any text is read or refused.
            let _ = unescaped(&text);
        }
    }
}
