//! The durable half of a ledger: one JSON file, replaced atomically, locked for the
//! time of a run, cumulative over the runs on one named data set.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::event::Event;
use super::measure::Measure;
use super::rho::Rho;

/// What can be wrong with a ledger file.
#[derive(Debug, thiserror::Error)]
pub enum LedgerFileError {
    /// Another run holds it.
    #[error("{}: the ledger is in use by another run; wait until it ends", .0.display())]
    Locked(PathBuf),
    /// It belongs to another data set.
    #[error("{}: the ledger is of data set '{found}' with {rows} rows, not of '{asked}' with {asked_rows}; name the right ledger", path.display())]
    OtherDataSet {
        /// The file.
        path: PathBuf,
        /// Name in the file.
        found: String,
        /// Rows in the file.
        rows: usize,
        /// Name in the run file.
        asked: String,
        /// Rows of the table.
        asked_rows: usize,
    },
    /// Its budget differs from the run's.
    #[error("{}: the ledger's budget is epsilon {epsilon}, delta {delta:e}; a run that shares it must name the same budget", path.display())]
    OtherBudget {
        /// The file.
        path: PathBuf,
        /// ε in the file.
        epsilon: f64,
        /// δ in the file.
        delta: f64,
    },
    /// It counts another measure than the run.
    #[error("{}: the ledger is a {}, the run needs a {}; {}", path.display(), found.filter(), asked.filter(), remedy(*found))]
    OtherMeasure {
        /// The file.
        path: PathBuf,
        /// Measure in the file.
        found: Measure,
        /// Measure of the run.
        asked: Measure,
    },
    /// It cannot be read or written, or is damaged.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// How a run can share a ledger of this measure.
fn remedy(found: Measure) -> String {
    match found {
        Measure::Zcdp => {
            "drop 'order' and 'filter' from [privacy] and choose a sampler whose steps have a rho, or use another ledger".into()
        }
        Measure::Gaussian => {
            "state filter = \"gaussian\" in [privacy], or use another ledger".into()
        }
        Measure::Renyi { order } => {
            format!("state order = {order} in [privacy], or use another ledger")
        }
    }
}

/// Amounts on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Durable {
    pub spent: Rho,
    pub coins: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    format: u32,
    /// Drawn once, so that a run's state can name the ledger that paid for it.
    id: String,
    dataset: String,
    rows: usize,
    neighbours: String,
    budget: Budget,
    /// What is counted.
    #[serde(default)]
    measure: Measure,
    /// Counted as spent, reservations included, in units of 2^-96 nats.
    spent_units: String,
    /// The same in nats, for readers: ρ, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rho_spent: Option<f64>,
    /// … or μ²/2, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mu_squared_half_spent: Option<f64>,
    /// … or the divergence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    divergence_spent: Option<f64>,
    delta_coins: f64,
    runs: Vec<RunEntry>,
}

impl Contents {
    /// What was counted as spent, of a file that is the ledger which a run asks for.
    fn agree(
        &self,
        path: &Path,
        (dataset, rows): (&str, usize),
        budget: Budget,
        measure: Measure,
    ) -> Result<Rho, LedgerFileError> {
        if self.dataset != dataset || self.rows != rows {
            return Err(LedgerFileError::OtherDataSet {
                path: path.into(),
                found: self.dataset.clone(),
                rows: self.rows,
                asked: dataset.into(),
                asked_rows: rows,
            });
        }
        if self.budget != budget {
            return Err(LedgerFileError::OtherBudget {
                path: path.into(),
                epsilon: self.budget.epsilon(),
                delta: self.budget.delta(),
            });
        }
        if self.measure != measure {
            return Err(LedgerFileError::OtherMeasure {
                path: path.into(),
                found: self.measure,
                asked: measure,
            });
        }
        let units = self.spent_units.parse().map(Rho::from_units);
        units.map_err(|_| LedgerFileError::File {
            path: path.into(),
            what: "'spent_units' is not a number".into(),
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunEntry {
    /// `open` while reserved; `settled` after a clean end; an `open` entry found later is
    /// a crash and its whole reservation counts.
    status: String,
    /// Nats of the ledger's measure.
    #[serde(alias = "rho")]
    spent: f64,
    events: Vec<EventEntry>,
}

#[derive(Serialize, Deserialize)]
struct EventEntry {
    #[serde(flatten)]
    event: Event,
    count: u64,
}

pub(super) struct LedgerFile {
    path: PathBuf,
    contents: Contents,
    start: Rho,
    /// Whether the last entry of `runs` is this run's.
    entered: bool,
    _lock: File,
}

impl LedgerFile {
    pub fn open(
        path: &Path,
        dataset: &str,
        rows: usize,
        budget: Budget,
        measure: Measure,
    ) -> Result<Self, LedgerFileError> {
        // A link is followed first: the rename below would replace it and leave the
        // ledger behind it unchanged.
        let path = &canonical(path);
        let fail = |what: String| LedgerFileError::File {
            path: path.into(),
            what,
        };
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|e| fail(format!("the lock file beside it cannot be opened: {e}")))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(LedgerFileError::Locked(path.into()));
            }
            Err(std::fs::TryLockError::Error(e)) => {
                return Err(fail(format!("cannot be locked: {e}")));
            }
        }
        let mut contents = match read(path)? {
            Some(contents) => contents,
            None => Contents {
                format: 1,
                id: format!("{:032x}", rand::random::<u128>()),
                dataset: dataset.into(),
                rows,
                neighbours: "substitution".into(),
                budget,
                measure,
                spent_units: "0".into(),
                rho_spent: None,
                mu_squared_half_spent: None,
                divergence_spent: None,
                delta_coins: 0.0,
                runs: Vec::new(),
            },
        };
        let start = contents.agree(path, (dataset, rows), budget, measure)?;
        for run in &mut contents.runs {
            if run.status == "open" {
                run.status = "crashed: its whole reservation counts".into();
            }
        }
        Ok(LedgerFile {
            path: path.into(),
            contents,
            start,
            entered: false,
            _lock: lock,
        })
    }

    pub fn id(&self) -> String {
        self.contents.id.clone()
    }

    pub fn durable(&self) -> Durable {
        Durable {
            spent: self.start,
            coins: self.contents.delta_coins,
        }
    }

    pub fn reserve(&mut self, to: Durable) -> Result<(), LedgerFileError> {
        self.record(to, "open", Vec::new())
    }

    pub fn settle(&mut self, to: Durable, events: &[(Event, u64)]) -> Result<(), LedgerFileError> {
        let events = events
            .iter()
            .map(|&(event, count)| EventEntry { event, count })
            .collect();
        self.record(to, "settled", events)
    }

    fn record(
        &mut self,
        to: Durable,
        status: &str,
        events: Vec<EventEntry>,
    ) -> Result<(), LedgerFileError> {
        let entry = RunEntry {
            status: status.into(),
            spent: (to.spent.nats() - self.start.nats()).max(0.0),
            events,
        };
        // The last entry is this run's once it has written one.
        if self.entered {
            self.contents.runs.pop();
        }
        self.contents.runs.push(entry);
        self.entered = true;
        self.contents.spent_units = to.spent.units().to_string();
        let nats = Some(to.spent.nats());
        match self.contents.measure {
            Measure::Zcdp => self.contents.rho_spent = nats,
            Measure::Gaussian => self.contents.mu_squared_half_spent = nats,
            Measure::Renyi { .. } => self.contents.divergence_spent = nats,
        }
        self.contents.delta_coins = to.coins;
        let fail = |what: String| LedgerFileError::File {
            path: self.path.clone(),
            what,
        };
        let text = serde_json::to_string_pretty(&self.contents).map_err(|e| fail(e.to_string()))?;
        replace_durably(&self.path, text.as_bytes())
            .map_err(|e| fail(format!("cannot be written: {e}")))
    }
}

/// Budget and measure of the ledger at `path`, unlocked; `None` where there is no file yet.
pub(super) fn terms(path: &Path) -> Result<Option<(Budget, Measure)>, LedgerFileError> {
    Ok(read(path)?.map(|c| (c.budget, c.measure)))
}

/// What the ledger at `path` counts as spent, unlocked, once it is found to be the one asked for.
pub(super) fn spent(
    path: &Path,
    data: (&str, usize),
    budget: Budget,
    measure: Measure,
) -> Result<Option<Rho>, LedgerFileError> {
    let contents = read(path)?;
    let spent = contents.map(|c| c.agree(path, data, budget, measure));
    spent.transpose()
}

/// What a ledger file holds; `None` where there is none.
fn read(path: &Path) -> Result<Option<Contents>, LedgerFileError> {
    let fail = |what: String| LedgerFileError::File {
        path: path.into(),
        what,
    };
    let contents = match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str::<Contents>(&text)
            .map_err(|e| fail(format!("is damaged or not a ledger: {e}")))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(fail(format!("cannot be read: {e}"))),
    };
    match contents.format {
        1 => Ok(Some(contents)),
        other => Err(fail(format!("has unknown format {other}"))),
    }
}

/// The file behind links; where it does not exist yet, the folder behind links.
fn canonical(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    match (
        folder.unwrap_or(Path::new(".")).canonicalize(),
        path.file_name(),
    ) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.into(),
    }
}

/// Writes a file so that a reader, or a crash, sees the old or the new one whole:
/// temporary name, fsync, rename, fsync of the folder.
pub(crate) fn replace_durably(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
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
