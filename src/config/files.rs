//! The files that a table's path names, where they are several: those of a folder, or those that
//! match a pattern. Names alone are looked at, and no file is opened.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::hash::Hash;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use glob::Pattern;

use super::partition::{folder_shown, part};
use crate::data::{DataError, Part, TextFormat, header, stem};

/// The files of a table in their order, by name; none where the path is that of one file, be it
/// there or not.
///
/// A folder stands for all files in it and in its folders of the form `column=value`. In a pattern
/// `*`, `?` and `[abc]` stand for characters of one name, `**` for any folders, and a folder that
/// matches for its files. A part of the path that exists as written is taken as written. Names
/// that begin with `.` or `_` are passed over, unless the pattern begins so.
///
/// # Errors
/// [`DataError::File`] where there is no such file, a folder cannot be read or leads back into
/// itself, or a file is found under two names.
pub fn table_files(path: &Path) -> Result<Vec<Part>, DataError> {
    let (base, rest) = existing(path);
    let fail = |what: String| DataError::File {
        path: path.into(),
        what,
    };
    let pieces = rest.iter().map(|name| Piece::of(name));
    let pieces = pieces.collect::<Result<Vec<Piece>, _>>().map_err(|e| {
        let what =
            format!("is no pattern: {e}; [*], [?] and [[] stand for the characters themselves");
        fail(what)
    })?;
    let plain = |piece: &Piece| matches!(piece, Piece::Name(_));
    if pieces.iter().all(plain) && (!rest.is_empty() || !base.is_dir()) {
        let slash = path
            .as_os_str()
            .to_string_lossy()
            .ends_with(std::path::is_separator);
        return match slash {
            true => Err(fail(
                "no such folder; paths in a run file are relative to the run file".into(),
            )),
            false => Ok(Vec::new()),
        };
    }
    let mut search = Search {
        folders_count: !pieces
            .iter()
            .any(|piece| matches!(piece, Piece::AnyFolders)),
        base,
        found: BTreeSet::new(),
        above: Vec::new(),
    };
    let start = search.base.clone();
    search.reach(start, &pieces)?;
    if search.found.is_empty() {
        return Err(fail(match pieces.is_empty() {
            true => "holds no files; names that begin with . or _ are passed over".into(),
            false => {
                "no file matches this pattern; paths in a run file are relative to the run file"
                    .into()
            }
        }));
    }
    let numbered = search.found.iter().zip(1..);
    let parts = numbered.map(|(path, number)| part(&search.base, path, number));
    let parts = parts.collect::<Result<Vec<Part>, _>>()?;
    check_distinct(&parts).map_err(fail)?;
    Ok(parts)
}

/// As [`header`], of a table of any number of files: the columns that folders give, and those of
/// the first file.
///
/// # Errors
/// As there and of [`table_files`].
pub fn table_header(path: &Path, text: TextFormat) -> Result<Vec<String>, DataError> {
    let parts = table_files(path)?;
    let Some(part) = parts.first() else {
        return header(path, text);
    };
    let own = header(&part.path, text).map_err(|e| part.at_fault(e))?;
    let given = part.given.iter().map(|(name, _)| name.clone());
    let mut names: Vec<String> = given.filter(|name| !own.contains(name)).collect();
    names.extend(own);
    Ok(names)
}

/// Whether a path has the characters of a pattern, and is not there as it is written.
pub(super) fn is_pattern(path: &Path) -> bool {
    let (_, rest) = existing(path);
    rest.iter()
        .any(|name| !matches!(Piece::of(name), Ok(Piece::Name(_))))
}

/// The part of a path that is there as it is written: all of it, or the folder that a pattern
/// begins with.
pub fn existing_part(path: &Path) -> PathBuf {
    existing(path).0
}

/// The longest part of a path that is there, and the names behind it.
fn existing(path: &Path) -> (PathBuf, Vec<OsString>) {
    // What a folder's name says of a column is a cell, which may look like a pattern: whether such
    // a folder is there must not decide what the path means.
    let is_value = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        name.contains('=') && name.contains(['*', '?', '['])
    };
    let there = |path: &&Path| !path.components().any(is_value) && path.symlink_metadata().is_ok();
    let base = path.ancestors().find(there).unwrap_or(Path::new(""));
    let rest = path.strip_prefix(base).unwrap_or(path).components();
    let rest = rest
        .map(|c: Component<'_>| c.as_os_str().to_os_string())
        .collect();
    match base.as_os_str().is_empty() {
        true => (PathBuf::from("."), rest),
        false => (base.into(), rest),
    }
}

/// One name of a path.
enum Piece {
    Name(OsString),
    Pattern(Pattern),
    /// `**`
    AnyFolders,
}

impl Piece {
    fn of(name: &OsStr) -> Result<Piece, glob::PatternError> {
        match name.to_str() {
            Some("**") => Ok(Piece::AnyFolders),
            Some(text) if text.contains(['*', '?', '[']) => Pattern::new(text).map(Piece::Pattern),
            _ => Ok(Piece::Name(name.into())),
        }
    }
}

/// Names such as `_SUCCESS` and `.part-0.crc`, which programs leave beside the files they write.
fn is_hidden(name: &OsStr) -> bool {
    match name.as_encoded_bytes() {
        [b'.', ..] => true,
        // A column may be called so.
        [b'_', rest @ ..] => !rest.contains(&b'='),
        _ => false,
    }
}

fn matches(pattern: &Pattern, name: &OsStr) -> bool {
    let same_start = pattern.as_str().as_bytes().first() == name.as_encoded_bytes().first();
    (same_start || !is_hidden(name)) && pattern.matches(&name.to_string_lossy())
}

struct Search {
    base: PathBuf,
    found: BTreeSet<PathBuf>,
    /// The folders that the search is in, links followed.
    above: Vec<PathBuf>,
    /// Whether a folder that matches stands for its files.
    folders_count: bool,
}

impl Search {
    /// An error of a path that was found, which shows no cell.
    fn fail(&self, path: &Path, is_folder: bool, what: String) -> DataError {
        let parent = path.parent().unwrap_or(path);
        let path = match (is_folder, path.file_name()) {
            (false, Some(name)) => folder_shown(&self.base, parent).join(name),
            _ => folder_shown(&self.base, path),
        };
        DataError::File { path, what }
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, DataError> {
        path.metadata().map_err(|e| {
            let what = format!("is a link that leads nowhere, or cannot be looked at: {e}");
            // It may be a folder.
            self.fail(path, true, what)
        })
    }

    /// Names in a folder that was found.
    fn names(&self, folder: &Path) -> Result<Vec<OsString>, DataError> {
        let fail = |e| self.fail(folder, true, format!("the folder cannot be read: {e}"));
        let entries = folder.read_dir().map_err(fail)?;
        let names = entries.map(|entry| Ok(entry.map_err(fail)?.file_name()));
        names.collect()
    }

    /// Takes a path whose further names match `pieces`.
    fn reach(&mut self, path: PathBuf, pieces: &[Piece]) -> Result<(), DataError> {
        let kind = self.metadata(&path)?;
        match (kind.is_dir(), pieces.is_empty()) {
            (true, true) if self.folders_count => self.inside(&path, Self::folder),
            (true, false) => self.inside(&path, |search, path| search.pattern(path, pieces)),
            (false, true) if kind.is_file() => {
                self.found.insert(path);
                Ok(())
            }
            (false, true) => {
                let what = "is neither a file nor a folder; remove it, or give a pattern that leaves it out";
                Err(self.fail(&path, false, what.into()))
            }
            _ => Ok(()),
        }
    }

    /// Looks into a folder, unless the way there led through it already.
    fn inside(
        &mut self,
        folder: &Path,
        look: impl FnOnce(&mut Self, &Path) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let real = folder
            .canonicalize()
            .map_err(|e| self.fail(folder, true, format!("the folder cannot be read: {e}")))?;
        if self.above.contains(&real) {
            let what = "is a link to a folder that it lies in; remove it";
            return Err(self.fail(folder, true, what.into()));
        }
        self.above.push(real);
        look(self, folder)?;
        self.above.pop();
        Ok(())
    }

    /// All files of a folder.
    fn folder(&mut self, folder: &Path) -> Result<(), DataError> {
        for name in self.names(folder)? {
            if is_hidden(&name) {
                continue;
            }
            let path = folder.join(&name);
            let is_partition = name.as_encoded_bytes().contains(&b'=');
            if !is_partition && self.metadata(&path)?.is_dir() {
                let what = "is a folder that is not called column=value; give a pattern, such as \"FOLDER/**/*.csv\", that says which files are meant";
                return Err(self.fail(&path, true, what.into()));
            }
            self.reach(path, &[])?;
        }
        Ok(())
    }

    /// The files in a folder whose names match.
    fn pattern(&mut self, folder: &Path, pieces: &[Piece]) -> Result<(), DataError> {
        let Some((first, rest)) = pieces.split_first() else {
            return Ok(());
        };
        match first {
            Piece::Name(name) => {
                let path = folder.join(name);
                match path.symlink_metadata() {
                    Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                    _ => self.reach(path, rest),
                }
            }
            Piece::Pattern(pattern) => {
                let mut names = self.names(folder)?.into_iter();
                names.try_for_each(|name| match matches(pattern, &name) {
                    true => self.reach(folder.join(name), rest),
                    false => Ok(()),
                })
            }
            Piece::AnyFolders => {
                self.pattern(folder, rest)?;
                for name in self.names(folder)? {
                    let path = folder.join(&name);
                    if is_hidden(&name) {
                        continue;
                    }
                    match (self.metadata(&path)?.is_dir(), rest.is_empty()) {
                        (true, _) => self.reach(path, pieces)?,
                        // `**` at the end: whatever is there.
                        (false, true) => self.reach(path, &[])?,
                        (false, false) => {}
                    }
                }
                Ok(())
            }
        }
    }
}

/// Refuses a file that has two names, and one beside its compressed copy: their rows would count
/// twice.
fn check_distinct(parts: &[Part]) -> Result<(), String> {
    let twice = |one: &Part, other: &Part, what: &str| {
        let (one, other) = (one.shown.display(), other.shown.display());
        Err(format!(
            "{one} and {other} {what}; their rows would count twice: leave one out"
        ))
    };
    if let Some((one, other)) = repeated(parts, |part| identity(&part.path)) {
        return twice(one, other, "are one file");
    }
    let stem = |part: &Part| part.path.with_file_name(stem(&part.path));
    match repeated(parts, stem) {
        Some((one, other)) => twice(one, other, "differ in their endings alone"),
        None => Ok(()),
    }
}

/// The first two files of one key.
fn repeated<K: Hash + Eq>(parts: &[Part], key: impl Fn(&Part) -> K) -> Option<(&Part, &Part)> {
    let mut seen = HashMap::new();
    let pair = |part| seen.insert(key(part), part).map(|before| (before, part));
    parts.iter().find_map(pair)
}

/// What a file is, by whatever name.
#[cfg(unix)]
fn identity(path: &Path) -> Result<(u64, u64), PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata().map_err(|_| path.to_path_buf())?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or(path.into())
}
