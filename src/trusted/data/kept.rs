//! Tables that take more memory than they may: their rows lie in files, in the engine's own tiles.
//! Such files hold rows, and only their owner may read them.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::values::Values;
use super::{DataError, Dataset, DatasetBuilder, Held, Part, Share, Source, TILE};
use crate::machine::{build, sha256};

/// How names of files that hold rows end: features, labels, weights, what they are the rows of, and
/// a file that is not complete.
pub const CACHE_ENDINGS: [&str; 5] = [
    ".dpmc-features",
    ".dpmc-labels",
    ".dpmc-weights",
    ".dpmc-table",
    ".dpmc-part",
];

/// How much memory a table's rows may take, and where they are beyond that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Bytes; what is available where it is not given.
    pub memory: Option<u64>,
    /// A folder where rows that take more are kept, for later runs too. Without it they lie beside
    /// the table, in files without a name that end with the run.
    pub cache: Option<PathBuf>,
}

/// Whether a table's rows go to files where they take more memory than they may.
pub(super) fn may_spill(source: &Source) -> bool {
    source.room != Room::default() && has_files(source)
}

/// Whether rows so declared could: units' rows are sorted, and rows' bounds are searched, in
/// memory.
pub(super) fn has_files(source: &Source) -> bool {
    source.unit.is_none() && source.bounds.is_none()
}

/// Where the rows of one table are kept.
pub(super) struct Kept<'a> {
    folder: &'a Path,
    /// Begins its files' names.
    name: String,
    /// A digest of all that rows follow from.
    key: String,
}

/// What a complete table is, and the part of its files' names that is drawn at random.
#[derive(Serialize, Deserialize)]
struct About {
    id: String,
    key: String,
    rows: usize,
    held: Held,
}

impl<'a> Kept<'a> {
    /// `None` where tables are not kept, or where their files cannot be looked at, which is for
    /// those to say who read them.
    pub fn of(
        source: &'a Source,
        parts: &[Part],
        share: Option<Share>,
        built: &DatasetBuilder,
    ) -> Option<Self> {
        let folder = source.room.cache.as_ref().filter(|_| may_spill(source))?;
        let mut declared = source.clone();
        declared.room = Room::default();
        let share = share.map(|share| (share.rank, share.size));
        let known = format!("{share:?} {declared:?}");
        let mut key = format!("{} {TILE} {:?} {known}", build(), built.set.cells.grids());
        let own = [source.path.as_path()];
        let paths = match parts {
            [] => own.to_vec(),
            parts => parts.iter().map(|part| part.path.as_path()).collect(),
        };
        for path in paths.into_iter().chain(source.label_file.as_deref()) {
            let about = path.metadata().ok()?;
            key += &format!(" {path:?} {} {:?}", about.len(), about.modified().ok()?);
        }
        let (name, key) = (sha256(known.as_bytes()), sha256(key.as_bytes()));
        Some(Kept { folder, name, key })
    }

    pub fn folder(&self) -> &Path {
        self.folder
    }

    /// Says what the table is that has these declarations.
    fn about(&self) -> PathBuf {
        self.folder.join(self.name.clone() + CACHE_ENDINGS[3])
    }

    /// Rows of one table alone: another one with these declarations has others.
    fn rows(&self, id: &str, ending: &str) -> String {
        format!("{}-{id}{ending}", self.name)
    }

    /// Refuses a table whose files changed while it was read.
    pub fn check(&self, now: Option<&Kept<'_>>, path: &Path) -> Result<(), DataError> {
        match now.is_some_and(|now| now.key == self.key) {
            true => Ok(()),
            false => Err(DataError::file(path, "was changed while it was read")),
        }
    }

    /// The table, if its rows are kept and its files have not changed since. Rows that it had
    /// before are deleted.
    pub fn find(&self, built: &DatasetBuilder) -> Option<(Dataset, Held)> {
        let about = std::fs::read(self.about()).ok();
        let about = about.and_then(|about| postcard::from_bytes::<About>(&about).ok());
        let about = about.filter(|about| about.key == self.key);
        self.sweep(about.as_ref());
        let about = about?;
        let mut set = built.like().set;
        let lanes = about.rows.checked_next_multiple_of(TILE)?;
        let file = |ending, bytes: usize| {
            let file = File::open(self.folder.join(self.rows(&about.id, ending))).ok()?;
            (file.metadata().ok()?.len() == bytes as u64).then_some(file)
        };
        let features = lanes.checked_mul(set.width() * set.cells.value_bytes())?;
        let features = file(CACHE_ENDINGS[0], features)?;
        set.cells.open(&features).ok()?;
        for (values, k) in [(&mut set.labels, 1), (&mut set.shares, 2)] {
            if let Some(values) = values {
                *values = Values::open(&file(CACHE_ENDINGS[k], lanes.checked_mul(4)?)?).ok()?;
            }
        }
        set.rows = about.rows;
        Some((set, about.held))
    }

    /// Deletes rows of other tables with these declarations, which nobody would read again.
    fn sweep(&self, own: Option<&About>) {
        let begins = format!("{}-", self.name);
        let other = |rest: &str| own.is_none_or(|own| !rest.starts_with(&own.id));
        let entries = std::fs::read_dir(self.folder).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.strip_prefix(&begins).is_some_and(other) {
                // Where it cannot be deleted it stays, and `dpmc forget` says why.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Gives a table's files their names, the one that says that it is complete last.
    fn keep(&self, mut files: Vec<NamedTempFile>, rows: usize, held: &Held) -> io::Result<()> {
        let id = format!("{:032x}", rand::random::<u128>());
        let name = |k: usize| self.folder.join(self.rows(&id, CACHE_ENDINGS[k]));
        let mut names: Vec<PathBuf> = (0..files.len()).map(name).collect();
        let about = About {
            id,
            key: self.key.clone(),
            rows,
            held: held.clone(),
        };
        let mut bytes = postcard::to_stdvec(&about).map_err(io::Error::other)?;
        // So that their number does not follow how many rows each of the table's files has.
        bytes.resize(bytes.len().next_multiple_of(1 << 16), 0);
        let mut last = self.new_file()?;
        last.write_all(&bytes)?;
        files.push(last);
        names.push(self.about());
        for (file, name) in files.into_iter().zip(names) {
            file.as_file().sync_all()?;
            file.persist(name)?;
        }
        self.sweep(Some(&about));
        Ok(())
    }

    fn new_file(&self) -> io::Result<NamedTempFile> {
        let mut folder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        folder.recursive(true).create(self.folder)?;
        let mut file = tempfile::Builder::new();
        file.suffix(CACHE_ENDINGS[4]).tempfile_in(self.folder)
    }
}

/// The files of a table that is being read: features, labels and, where rows have some, weights.
pub(super) enum Spilled {
    /// Without names.
    Unnamed,
    /// To be kept.
    Named(Vec<NamedTempFile>),
}

impl Spilled {
    /// From now on the rows of `built` go to files.
    pub fn begin(
        kept: Option<&Kept<'_>>,
        folder: &Path,
        built: &mut DatasetBuilder,
    ) -> Result<Self, DataError> {
        let fail = |e| failed(folder, &e);
        let count = 2 + usize::from(built.set.weighted());
        let (files, spilled) = match kept {
            Some(kept) => {
                let named = (0..count).map(|_| kept.new_file());
                let named = named.collect::<io::Result<Vec<_>>>().map_err(fail)?;
                let files = named.iter().map(|of| of.as_file().try_clone());
                (files.collect(), Spilled::Named(named))
            }
            None => (
                (0..count).map(|_| unnamed(folder)).collect(),
                Spilled::Unnamed,
            ),
        };
        let files: io::Result<Vec<File>> = files;
        let mut files = files.map_err(fail)?.into_iter();
        if let Some(file) = files.next() {
            built.set.cells.spill(file);
        }
        let set = &mut built.set;
        for (values, file) in [&mut set.labels, &mut set.shares].into_iter().zip(files) {
            if let Some(values) = values {
                values.spill(file);
            }
        }
        Ok(spilled)
    }

    /// Keeps a table that is read, if it is to be kept.
    pub fn end(
        self,
        kept: Option<&Kept<'_>>,
        (data, held): (&Dataset, &Held),
    ) -> Result<(), DataError> {
        let (Spilled::Named(files), Some(kept)) = (self, kept) else {
            return Ok(());
        };
        kept.keep(files, data.rows, held)
            .map_err(|e| failed(kept.folder, &e))
    }
}

/// A new file without a name.
fn unnamed(folder: &Path) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// Rows cannot be written.
pub(super) fn failed(folder: &Path, e: &io::Error) -> DataError {
    DataError::Kept {
        folder: folder.into(),
        what: e.to_string(),
    }
}
