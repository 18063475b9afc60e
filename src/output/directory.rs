//! The run directory. At any moment it holds only draws that its certificate covers:
//! certificate first, then the closed part file, then the state that owns the part.

use std::path::{Path, PathBuf};

use serde_json::to_vec_pretty;

use super::draws::write_part;
use super::parts::{checked_parts, part, settings_of};
use crate::posterior_run::{PartFile, PosteriorRun, RunState, Status};
use crate::privacy::{Certificate, replace_durably};

/// What can go wrong with a run directory.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// It holds something already.
    #[error("{}: is not empty; choose another --out or continue it with --resume", .0.display())]
    NotEmpty(PathBuf),
    /// Another process writes it.
    #[error("{}: is being written by another run", .0.display())]
    Locked(PathBuf),
    /// It is no run directory.
    #[error("{}: is not a run directory (no draws.parquet or no state.json in it)", .0.display())]
    NotARun(PathBuf),
    /// Its run was killed before the first step.
    #[error("{}: holds no draws yet: the run was stopped before its first step; start it again with --out {}", .0.display(), .0.display())]
    NotStarted(PathBuf),
    /// Its draws are not those that were written.
    #[error("{}: {what}", path.display())]
    Altered {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// It cannot be written.
    #[error("{}: cannot be written: {what}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// It cannot be read.
    #[error("{}: cannot be read: {what}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        what: String,
    },
}

impl OutputError {
    /// Whether the user's input is at fault (exit code 2).
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            OutputError::NotEmpty(_)
                | OutputError::NotARun(_)
                | OutputError::NotStarted(_)
                | OutputError::Locked(_)
                | OutputError::Altered { .. }
        )
    }
}

/// A run directory that is being written.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    files: Vec<PartFile>,
    /// Folders that `create` made, innermost first.
    created: Vec<PathBuf>,
    _lock: std::fs::File,
}

/// Takes the directory's lock, so that two runs never write it at once.
fn lock(path: &Path) -> Result<std::fs::File, OutputError> {
    let file = path.join("run.lock");
    let write = |e: std::io::Error| OutputError::Write {
        path: file.clone(),
        what: e.to_string(),
    };
    let lock = std::fs::File::create(&file).map_err(write)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(OutputError::Locked(path.into())),
        Err(std::fs::TryLockError::Error(e)) => Err(write(e)),
    }
}

/// What a run writes before its first step, in this order, under a temporary name first
/// (`.tmp`) but for the locks. Nothing is spent or drawn before `state.json` is there.
const BEFORE_THE_FIRST_STEP: [&str; 5] = [
    "run.lock",
    "ledger.json",
    "run.toml",
    "certificate.json",
    "state.json",
];

/// Whether the folder holds nothing, or only what a run that was killed before its first
/// step leaves: it may then be used as if it were empty.
fn is_unstarted(path: &Path) -> std::io::Result<bool> {
    let (mut locked, mut files) = (false, false);
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let (name, data) = (entry.file_name(), entry.metadata()?);
        let name = name.to_string_lossy();
        let ours = if name == "draws.parquet" {
            data.is_dir() && std::fs::read_dir(entry.path())?.next().is_none()
        } else if name == "run.lock" {
            locked = data.is_file() && data.len() == 0;
            locked
        } else {
            files = true;
            let known = BEFORE_THE_FIRST_STEP.contains(&name.trim_end_matches(".tmp"));
            data.is_file()
                && known
                && name != "state.json"
                && (name != "ledger.json" || data.len() == 0)
                && (name != "certificate.json" || covers_nothing(&entry.path()))
        };
        if !ours {
            return Ok(false);
        }
    }
    // Files without our lock are someone's own, such as the run file itself.
    Ok(locked || !files)
}

/// Whether a certificate is that of a run of no step. A damaged one is left alone.
fn covers_nothing(certificate: &Path) -> bool {
    std::fs::read(certificate)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Certificate>(&bytes).ok())
        .is_some_and(|c| c.iterations == 0)
}

impl RunDirectory {
    /// Creates an empty run directory, or takes over that of a run which was killed
    /// before its first step.
    ///
    /// # Errors
    /// [`OutputError`] where it is not empty or cannot be made.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let write = |e: std::io::Error| OutputError::Write {
            path: path.into(),
            what: e.to_string(),
        };
        let created: Vec<PathBuf> = path
            .ancestors()
            .take_while(|p| !p.as_os_str().is_empty() && !p.exists())
            .map(Path::to_path_buf)
            .collect();
        // Before the lock, so that nothing is put into a folder that is someone else's …
        if created.is_empty() && !is_unstarted(path).map_err(write)? {
            return Err(OutputError::NotEmpty(path.into()));
        }
        std::fs::create_dir_all(path).map_err(write)?;
        let lock = lock(path)?;
        // … and under it: another run may have begun here meanwhile.
        if !is_unstarted(path).map_err(write)? {
            return Err(OutputError::NotEmpty(path.into()));
        }
        for name in BEFORE_THE_FIRST_STEP {
            // Half-written by the run that was killed; there seldom is one.
            let _ = std::fs::remove_file(path.join(format!("{name}.tmp")));
        }
        std::fs::create_dir_all(path.join("draws.parquet")).map_err(write)?;
        Ok(RunDirectory {
            path: path.into(),
            files: Vec::new(),
            created,
            _lock: lock,
        })
    }

    /// Whether [`RunDirectory::resume`] would find a run's state.
    ///
    /// # Errors
    /// [`OutputError`] that says what to do instead.
    pub fn can_resume(path: &Path) -> Result<(), OutputError> {
        if path.join("state.json").exists() {
            Ok(())
        } else if path.is_dir() && is_unstarted(path).unwrap_or(false) {
            Err(OutputError::NotStarted(path.into()))
        } else {
            Err(OutputError::NotARun(path.into()))
        }
    }

    /// Opens a run directory to go on with it. Returns its state.
    ///
    /// # Errors
    /// [`OutputError`] where it is no run directory, its state is damaged, or its draws are not
    /// those that were written.
    pub fn resume(path: &Path) -> Result<(Self, RunState), OutputError> {
        Self::can_resume(path)?;
        let lock = lock(path)?;
        let (state, _) = checked_parts(path)?;
        let directory = RunDirectory {
            path: path.into(),
            files: state.files.clone(),
            created: Vec::new(),
            _lock: lock,
        };
        Ok((directory, state))
    }

    /// Removes what [`RunDirectory::create`] made, after a failure before the first step.
    pub fn discard(self) {
        // Best effort: a folder that someone else filled meanwhile stays.
        // The run's own ledger went with the run, if it could.
        let ledger = self.path.join("ledger.json");
        if std::fs::metadata(&ledger).is_ok_and(|data| data.len() == 0) {
            let _ = std::fs::remove_file(ledger);
        }
        for name in ["run.toml", "run.lock", "certificate.json", "state.json"] {
            let _ = std::fs::remove_file(self.path.join(name));
        }
        let _ = std::fs::remove_dir(self.path.join("draws.parquet"));
        for folder in &self.created {
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of part files.
    fn parts(&self) -> u64 {
        self.files.len() as u64
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        let path = self.path.join(name);
        replace_durably(&path, bytes).map_err(|e| OutputError::Write {
            path,
            what: e.to_string(),
        })
    }

    fn write_certificate(&self, certificate: &Certificate) -> Result<(), OutputError> {
        let bytes = to_vec_pretty(certificate).map_err(|e| OutputError::Write {
            path: self.path.join("certificate.json"),
            what: e.to_string(),
        })?;
        self.write("certificate.json", &bytes)
    }

    /// Publishes the run's pending draws: certificate, part, state, in this order.
    ///
    /// # Errors
    /// [`OutputError`]; draws not yet published are lost with the run.
    pub fn publish(&mut self, run: &mut PosteriorRun) -> Result<(), OutputError> {
        let parameters = run.parameters();
        // Where the part or the state cannot be written, or the run is killed in between, it can
        // be gone on with, so it has not ended.
        self.write_certificate(&run.certificate_before_the_end())?;
        let (draws, _) = run.take_draws();
        if !draws.is_empty() {
            let temporary = self.path.join(".part.tmp");
            let path = part(&self.path, self.parts());
            let written = write_part(&path, &temporary, &parameters, &draws)?;
            self.files.push(written);
        }
        let mut state = run.state(self.parts());
        state.files.clone_from(&self.files);
        state.settings = settings_of(run.resolved());
        let state = to_vec_pretty(&state).map_err(|e| OutputError::Write {
            path: self.path.join("state.json"),
            what: e.to_string(),
        })?;
        self.write("state.json", &state)
    }

    /// Before the first step: writes certificate and resolved run file, and removes parts
    /// that the state does not own (a crash between two files).
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn begin(&mut self, run: &mut PosteriorRun) -> Result<(), OutputError> {
        let mut extra = self.parts();
        while std::fs::remove_file(part(&self.path, extra)).is_ok() {
            extra += 1;
        }
        self.write("run.toml", run.resolved().as_bytes())?;
        self.publish(run)
    }

    /// Ends the run: last draws under the budget's guarantee, then the settled ledger,
    /// then the final certificate. Where the draws cannot be written the ledger is settled all
    /// the same.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn finish(&mut self, run: &mut PosteriorRun) -> Result<Certificate, OutputError> {
        let published = self.publish(run);
        let settled = self.settle(run);
        if published.is_err() {
            self.certify_spending(run);
        }
        published?;
        settled?;
        let certificate = run.certificate();
        self.write_certificate(&certificate)?;
        debug_assert!(*run.status() != Status::Running);
        Ok(certificate)
    }

    /// Has the certificate of a run that cannot go on say what was spent, if it can be written:
    /// what stopped the run may have been a larger file.
    pub fn certify_spending(&self, run: &PosteriorRun) {
        // Best effort; the ledger beside it says so too.
        let _ = self.write_certificate(&run.certificate_before_the_end());
    }

    /// Settles the ledger of a run that cannot go on: what was charged stays charged, what was
    /// only reserved goes back. Its last published state can be resumed.
    ///
    /// # Errors
    /// [`OutputError`]; the reservation stands.
    pub fn settle(&self, run: &mut PosteriorRun) -> Result<(), OutputError> {
        run.settle().map_err(|e| OutputError::Write {
            path: self.path.clone(),
            what: e.to_string(),
        })
    }
}
