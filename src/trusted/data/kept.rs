//! Tables that take more memory than they may: their rows lie in files, in the engine's own tiles.
//! Such files hold rows, and only their owner may read them.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::values::Values;
use super::{DataError, Dataset, DatasetBuilder, Held, Part, Share, Source, TILE};

/// How names of files that hold rows end: features, labels, what they are the rows of, and a file
/// that is not complete.
pub const CACHE_ENDINGS: [&str; 4] = [
    ".dpmc-features",
    ".dpmc-labels",
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

/// Whether a table's rows may go to files: units' rows are sorted, and rows' bounds are searched,
/// in memory.
pub(super) fn may_spill(source: &Source) -> bool {
    source.room != Room::default() && source.unit.is_none() && source.bounds.is_none()
}

/// Where the rows of one table are kept.
pub(super) struct Kept<'a> {
    folder: &'a Path,
    /// Begins its files' names.
    name: String,
    /// All that rows follow from.
    key: String,
}

/// What a complete table is.
#[derive(Serialize, Deserialize)]
struct About {
    key: String,
    rows: usize,
    held: Held,
}

impl<'a> Kept<'a> {
    /// `None` where tables are not kept.
    pub fn of(
        source: &'a Source,
        parts: &[Part],
        share: Option<Share>,
    ) -> Result<Option<Self>, DataError> {
        let Some(folder) = source.room.cache.as_ref().filter(|_| may_spill(source)) else {
            return Ok(None);
        };
        let mut declared = source.clone();
        declared.room = Room::default();
        let share = share.map(|share| (share.rank, share.size));
        let version = env!("CARGO_PKG_VERSION");
        let mut known = format!("{version} {TILE} {share:?} {declared:?}");
        let mut stamps = String::new();
        let own = Part {
            path: source.path.clone(),
            shown: source.path.clone(),
            given: Vec::new(),
        };
        let labels = source.label_file.iter().map(|path| Part {
            path: path.clone(),
            ..own.clone()
        });
        let tables = if parts.is_empty() {
            &[own.clone()]
        } else {
            parts
        };
        for part in tables.iter().cloned().chain(labels) {
            let stamp = part
                .path
                .metadata()
                .and_then(|m| Ok((m.len(), m.modified()?)));
            let fail = |e| DataError::file(&part.path, format!("cannot be looked at: {e}"));
            let stamp = stamp.map_err(|e| part.at_fault(fail(e)))?;
            known += &format!(" {:?} {:?}", part.path, part.given);
            stamps += &format!(" {stamp:?}");
        }
        let digest = Sha256::digest(known.as_bytes());
        Ok(Some(Kept {
            folder,
            name: digest.iter().take(12).map(|b| format!("{b:02x}")).collect(),
            key: known + &stamps,
        }))
    }

    pub fn folder(&self) -> &Path {
        self.folder
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }

    /// Refuses a table whose files changed while it was read.
    pub fn check(&self, now: Option<&Kept<'_>>, path: &Path) -> Result<(), DataError> {
        match now.is_some_and(|now| now.key == self.key) {
            true => Ok(()),
            false => Err(DataError::file(path, "was changed while it was read")),
        }
    }

    /// The table, if its rows are kept and its files have not changed since.
    pub fn find(&self, built: &DatasetBuilder) -> Option<(Dataset, Held)> {
        let about = std::fs::read(self.path(CACHE_ENDINGS[2])).ok()?;
        let about: About = postcard::from_bytes(&about).ok()?;
        if about.key != self.key {
            return None;
        }
        let mut set = built.like().set;
        let lanes = about.rows.next_multiple_of(TILE);
        let file = |ending, bytes: usize| {
            let file = File::open(self.path(ending)).ok()?;
            (file.metadata().ok()?.len() == bytes as u64).then_some(file)
        };
        let features = lanes * set.width() * set.cells.value_bytes();
        set.cells.open(&file(CACHE_ENDINGS[0], features)?).ok()?;
        if let Some(labels) = &mut set.labels {
            *labels = Values::open(&file(CACHE_ENDINGS[1], 4 * lanes)?).ok()?;
        }
        set.rows = about.rows;
        Some((set, about.held))
    }

    /// Gives a table's files their names, the one that says that it is complete last.
    fn keep(&self, files: [NamedTempFile; 2], rows: usize, held: &Held) -> io::Result<()> {
        let _ = std::fs::remove_file(self.path(CACHE_ENDINGS[2]));
        let (key, held) = (self.key.clone(), held.clone());
        let about = postcard::to_stdvec(&About { key, rows, held }).map_err(io::Error::other)?;
        let mut last = self.new_file()?;
        last.write_all(&about)?;
        for (file, ending) in files.into_iter().chain([last]).zip(CACHE_ENDINGS) {
            file.as_file().sync_all()?;
            file.persist(self.path(ending))?;
        }
        Ok(())
    }

    fn new_file(&self) -> io::Result<NamedTempFile> {
        let mut folder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        folder.recursive(true).create(self.folder)?;
        let mut file = tempfile::Builder::new();
        file.suffix(CACHE_ENDINGS[3]).tempfile_in(self.folder)
    }
}

/// The files of a table that is being read: features and labels.
pub(super) enum Spilled {
    /// Without names.
    Unnamed,
    /// To be kept.
    Named([NamedTempFile; 2]),
}

impl Spilled {
    /// From now on the rows of `built` go to files.
    pub fn begin(
        kept: Option<&Kept<'_>>,
        folder: &Path,
        built: &mut DatasetBuilder,
    ) -> Result<Self, DataError> {
        let fail = |e| failed(folder, &e);
        let (files, spilled) = match kept {
            Some(kept) => {
                let named = [
                    kept.new_file().map_err(fail)?,
                    kept.new_file().map_err(fail)?,
                ];
                let file = |of: &NamedTempFile| of.as_file().try_clone().map_err(fail);
                ([file(&named[0])?, file(&named[1])?], Spilled::Named(named))
            }
            None => {
                let file = || tempfile::tempfile_in(folder).map_err(fail);
                ([file()?, file()?], Spilled::Unnamed)
            }
        };
        let [features, labels] = files;
        built.set.cells.spill(features);
        if let Some(values) = &mut built.set.labels {
            values.spill(labels);
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

/// Rows cannot be written.
pub(super) fn failed(folder: &Path, e: &io::Error) -> DataError {
    let what = format!("rows cannot be kept there: {e}; --cache names another folder for them");
    DataError::file(folder, what)
}
