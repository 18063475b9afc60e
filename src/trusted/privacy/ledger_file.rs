//! The durable half of a ledger: one file, locked itself for the time of a run and only ever
//! added to, cumulative over the runs on one named data set.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use same_file::Handle;

use super::accountant::Budget;
use super::accountant::Measure;
use super::accountant::Rho;
use super::event::Event;
use super::ledger_error::LedgerFileError;
use super::ledger_history::{self, Entry, EventEntry, FORMAT, History, Terms};

/// How often a file is opened anew that another process replaced at that moment.
const TRIES: u32 = 16;

/// Amounts on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Durable {
    pub spent: Rho,
    pub coins: f64,
}

/// Events of one session: count, and what all of them cost.
pub(super) type LegEvents = Vec<(Event, u64, Rho)>;

pub(super) struct LedgerFile {
    path: PathBuf,
    /// The file, open and locked, and which file that is.
    handle: Handle,
    /// What it held when it was last read or written.
    bytes: Vec<u8>,
    /// Bytes up to the end of the last record.
    end: usize,
    history: Option<History>,
    terms: Terms,
    start: Durable,
    run: String,
    session: u64,
    /// Made by this run, and nothing written to it yet.
    empty: bool,
}

impl LedgerFile {
    pub fn open(
        path: &Path,
        dataset: &str,
        rows: usize,
        budget: Budget,
        measure: Measure,
    ) -> Result<Self, LedgerFileError> {
        let (handle, made) = locked(path)?;
        let bytes = whole(handle.as_file()).map_err(|e| fail(path, "cannot be read", &e))?;
        let history = parse(path, &bytes)?;
        let mut file = LedgerFile {
            path: path.into(),
            handle,
            end: history.as_ref().map_or(0, |h| h.end),
            start: Durable {
                spent: Rho::from_units(history.as_ref().map_or(0, |h| h.spent)),
                coins: history.as_ref().map_or(0.0, |h| h.coins),
            },
            terms: Terms {
                format: FORMAT,
                id: identity(),
                dataset: dataset.into(),
                rows,
                neighbours: "substitution".into(),
                budget,
                measure,
            },
            bytes,
            history: None,
            run: identity(),
            session: 0,
            empty: made,
        };
        if let Some(history) = history {
            agree(&history.terms, path, (dataset, rows), budget, measure)?;
            file.terms = history.terms.clone();
            file.history = Some(history);
        }
        Ok(file)
    }

    pub fn id(&self) -> &str {
        &self.terms.id
    }

    pub fn durable(&self) -> Durable {
        self.start
    }

    /// Whether no run has written to it before.
    pub fn is_new(&self) -> bool {
        self.history.as_ref().is_none_or(|h| h.heads.len() < 2)
    }

    /// Whether no other run has written to it.
    pub fn is_of_this_run(&self) -> bool {
        let mut runs = self.history.iter().flat_map(|h| h.sessions.keys());
        runs.all(|run| *run == self.run)
    }

    /// The hash of the last record; empty where there is none.
    pub fn head(&self) -> &str {
        let last = self.history.as_ref().and_then(|h| h.heads.last());
        last.map_or("", String::as_str)
    }

    pub fn run(&self) -> &str {
        &self.run
    }

    /// Whether it holds a record of this hash.
    pub fn has(&self, head: &str) -> bool {
        let mut heads = self.history.iter().flat_map(|h| &h.heads);
        head.is_empty() || heads.any(|h| h == head)
    }

    /// The last session that it has seen of a run.
    pub fn last_session(&self, run: &str) -> Option<u64> {
        self.history.as_ref()?.sessions.get(run).copied()
    }

    /// What follows is of this session.
    pub fn begin_session(&mut self, run: &str, session: u64) {
        (self.run, self.session) = (run.into(), session);
    }

    pub fn reserve(&mut self, to: Durable) -> Result<(), LedgerFileError> {
        self.record(to, "open", Vec::new())
    }

    pub fn settle(&mut self, to: Durable, events: LegEvents) -> Result<(), LedgerFileError> {
        self.record(to, "settled", events)
    }

    fn record(
        &mut self,
        to: Durable,
        status: &str,
        events: LegEvents,
    ) -> Result<(), LedgerFileError> {
        let nats = |measure: bool| measure.then(|| to.spent.nats());
        let measure = self.terms.measure;
        let entry = Entry {
            run: self.run.clone(),
            session: self.session,
            status: status.into(),
            spent_units: to.spent.units().to_string(),
            leg_units: to.spent.minus(self.start.spent).units().to_string(),
            rho_spent: nats(measure == Measure::Zcdp),
            mu_squared_half_spent: nats(measure == Measure::Gaussian),
            divergence_spent: nats(matches!(measure, Measure::Renyi { .. })),
            delta_coins: to.coins,
            events: events
                .into_iter()
                .map(|(event, count, cost)| EventEntry {
                    event,
                    count,
                    units: cost.units().to_string(),
                })
                .collect(),
        };
        let damaged = |what: String| LedgerFileError::File {
            path: self.path.clone(),
            what,
        };
        let mut records = Vec::new();
        if self.history.is_none() {
            records.push(json(&self.terms).map_err(damaged)?);
        }
        records.push(json(&entry).map_err(damaged)?);
        let text = ledger_history::addition(self.head(), &records).map_err(damaged)?;
        let mut bytes = self.bytes[..self.end].to_vec();
        bytes.extend_from_slice(text.as_bytes());
        // What will be read is what is written.
        let history = parse(&self.path, &bytes)?;
        self.unchanged()?;
        if let Err(e) = self.write(text.as_bytes()) {
            self.put_back();
            return Err(fail(&self.path, "cannot be written", &e));
        }
        (self.bytes, self.end) = (bytes, history.as_ref().map_or(0, |h| h.end));
        (self.history, self.empty) = (history, false);
        Ok(())
    }

    /// The path still names this file, and it holds what this run last found or wrote there.
    fn unchanged(&self) -> Result<(), LedgerFileError> {
        let changed = |what| {
            Err(LedgerFileError::Changed {
                path: self.path.clone(),
                what,
            })
        };
        match Handle::from_path(&self.path) {
            Ok(found) if found == self.handle => {}
            Ok(_) => return changed("another file was put in the ledger's place during the run"),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return changed("the ledger was removed or moved during the run");
            }
            Err(e) => return Err(fail(&self.path, "cannot be found again", &e)),
        }
        let found = whole(self.handle.as_file());
        match found {
            Ok(found) if found == self.bytes => Ok(()),
            Ok(_) => changed("the ledger was written to by another hand during the run"),
            Err(e) => Err(fail(&self.path, "cannot be read", &e)),
        }
    }

    /// Writes `text` where the last record ends, durably.
    fn write(&self, text: &[u8]) -> std::io::Result<()> {
        let mut file = self.handle.as_file();
        file.seek(SeekFrom::Start(self.end as u64))?;
        file.write_all(text)?;
        let length = self.end + text.len();
        if self.bytes.len() > length {
            // What a crash left of a record, and not what another hand adds just now.
            file.set_len(length as u64)?;
        }
        file.sync_all()?;
        if self.history.is_none() {
            sync_folder(&self.path);
        }
        Ok(())
    }

    /// After a write that failed half-way: the bytes before it, which take no new room.
    fn put_back(&self) {
        let mut file = self.handle.as_file();
        // Best effort: a reader passes over half a record.
        let _ = file
            .seek(SeekFrom::Start(self.end as u64))
            .and_then(|_| file.write_all(&self.bytes[self.end..]))
            .and_then(|()| file.set_len(self.bytes.len() as u64))
            .and_then(|()| file.sync_all());
    }
}

impl Drop for LedgerFile {
    fn drop(&mut self) {
        // A run that is refused before it spends leaves no file behind. The lock is still held.
        if self.empty && Handle::from_path(&self.path).is_ok_and(|found| found == self.handle) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A random name.
fn identity() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn json<T: serde::Serialize>(record: &T) -> Result<String, String> {
    serde_json::to_string(record).map_err(|e| e.to_string())
}

fn fail(path: &Path, what: &str, e: &Error) -> LedgerFileError {
    LedgerFileError::File {
        path: path.into(),
        what: format!("{what}: {e}"),
    }
}

/// The file that `path` leads to through any links, made where there is none, and locked; whether
/// it was made. The lock is on the file itself: whatever name another run reaches it by, it finds
/// it locked.
fn locked(path: &Path) -> Result<(Handle, bool), LedgerFileError> {
    for _ in 0..TRIES {
        let (file, made) = open(path).map_err(|e| fail(path, "cannot be opened", &e))?;
        if !file.metadata().is_ok_and(|m| m.is_file()) {
            return Err(LedgerFileError::File {
                path: path.into(),
                what: "is not a file".into(),
            });
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LedgerFileError::Locked(path.into())),
            Err(TryLockError::Error(e)) => return Err(fail(path, "cannot be locked", &e)),
        }
        let handle = Handle::from_file(file).map_err(|e| fail(path, "cannot be opened", &e))?;
        match Handle::from_path(path) {
            Ok(found) if found == handle => return Ok((handle, made)),
            // Between opening and locking it was removed by a run that did not use it.
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => {
                if made {
                    let _ = std::fs::remove_file(path);
                }
                return Err(fail(path, "cannot be opened", &e));
            }
        }
    }
    Err(LedgerFileError::File {
        path: path.into(),
        what: "is being replaced all the time; find out by whom".into(),
    })
}

fn open(path: &Path) -> std::io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        // Also a link to a file that is not there yet, which is made.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            let file = options.create(true).truncate(false).open(path)?;
            Ok((file, false))
        }
        Err(e) => Err(e),
    }
}

fn whole(mut file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Option<History>, LedgerFileError> {
    ledger_history::read(bytes).map_err(|what| LedgerFileError::File {
        path: path.into(),
        what,
    })
}

/// Whether these are the terms that a run asks for.
fn agree(
    terms: &Terms,
    path: &Path,
    (dataset, rows): (&str, usize),
    budget: Budget,
    measure: Measure,
) -> Result<(), LedgerFileError> {
    if terms.dataset != dataset || terms.rows != rows {
        return Err(LedgerFileError::OtherDataSet {
            path: path.into(),
            found: terms.dataset.clone(),
            rows: terms.rows,
            asked: dataset.into(),
            asked_rows: rows,
        });
    }
    if terms.budget != budget {
        return Err(LedgerFileError::OtherBudget {
            path: path.into(),
            epsilon: terms.budget.epsilon(),
            delta: terms.budget.delta(),
        });
    }
    if terms.measure != measure {
        return Err(LedgerFileError::OtherMeasure {
            path: path.into(),
            found: terms.measure,
            asked: measure,
        });
    }
    Ok(())
}

/// Budget and measure of the ledger at `path`, unlocked; `None` where there is no file yet.
pub(super) fn terms(path: &Path) -> Result<Option<(Budget, Measure)>, LedgerFileError> {
    Ok(read(path)?.map(|h| (h.terms.budget, h.terms.measure)))
}

/// Identity and hashes of the ledger at `path`, unlocked; `None` where there is no file yet.
pub(super) fn records(path: &Path) -> Result<Option<(String, Vec<String>)>, LedgerFileError> {
    Ok(read(path)?.map(|h| (h.terms.id, h.heads)))
}

/// What the ledger at `path` counts as spent, unlocked, once it is found to be the one asked for.
pub(super) fn spent(
    path: &Path,
    data: (&str, usize),
    budget: Budget,
    measure: Measure,
) -> Result<Option<Rho>, LedgerFileError> {
    let Some(history) = read(path)? else {
        return Ok(None);
    };
    agree(&history.terms, path, data, budget, measure)?;
    Ok(Some(Rho::from_units(history.spent)))
}

/// What a ledger file holds; `None` where there is none, or nothing in it.
fn read(path: &Path) -> Result<Option<History>, LedgerFileError> {
    match std::fs::read(path) {
        Ok(bytes) => parse(path, &bytes),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(fail(path, "cannot be read", &e)),
    }
}

/// Writes a file so that a reader, or a crash, sees the old or the new one whole:
/// temporary name, fsync, rename, fsync of the folder.
pub fn replace_durably(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        // Half a file would only take room, of which there may be none left.
        let _ = std::fs::remove_file(&temporary);
    })?;
    sync_folder(path);
    Ok(())
}

/// Makes a rename in the folder of `path` durable, where the system allows it.
pub(crate) fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent()
        && let Ok(folder) = File::open(folder)
    {
        // Best effort: some file systems cannot sync a folder.
        let _ = folder.sync_all();
    }
}
