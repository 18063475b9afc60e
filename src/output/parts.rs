//! Which part files a run directory is to hold, and whether it holds them as they were written.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::OutputError;
use crate::posterior_run::{PartFile, RunState};
use crate::privacy::Certificate;

/// Where the draws of part `number` lie.
pub(super) fn part(directory: &Path, number: u64) -> PathBuf {
    directory
        .join("draws.parquet")
        .join(format!("part-{number:06}.parquet"))
}

/// The saved state of a run directory.
pub(super) fn read_state(directory: &Path) -> Result<RunState, OutputError> {
    let path = directory.join("state.json");
    let text =
        std::fs::read_to_string(&path).map_err(|_| OutputError::NotARun(directory.into()))?;
    serde_json::from_str(&text).map_err(|e| OutputError::Read {
        path,
        what: e.to_string(),
    })
}

/// The state of a run directory and the part files that it owns, each of the length and hash that
/// the state says. One that comes after them is passed over while the run goes on, or where it
/// was killed: the next state would have owned it.
pub(super) fn checked_parts(directory: &Path) -> Result<(RunState, Vec<PathBuf>), OutputError> {
    // Before the state, which owns all but one of them, however the run goes on meanwhile.
    let listed = listed(directory)?;
    let state = read_state(directory)?;
    let altered = |path: &Path, what: &'static str| OutputError::Altered {
        path: path.into(),
        what,
    };
    if state.files.len() as u64 != state.parts {
        return Err(altered(
            &directory.join("state.json"),
            "'parts' is not the number of its 'files'",
        ));
    }
    let run_file = directory.join("run.toml");
    let settings = std::fs::read_to_string(&run_file).map(|text| settings_of(&text));
    if settings.is_ok_and(|now| !state.settings.is_empty() && now != state.settings) {
        return Err(altered(
            &run_file,
            "says other columns, another model or another sampler than the draws beside it were made by; put it back, or start a new run with it in a directory of its own",
        ));
    }
    let owned: Vec<PathBuf> = (0..state.parts).map(|n| part(directory, n)).collect();
    for (path, written) in owned.iter().zip(&state.files) {
        match PartFile::read(path) {
            Ok(found) if found == *written => {}
            Ok(_) => return Err(altered(path, "is not as it was written; put it back")),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(altered(path, "is missing; put it back"));
            }
            Err(e) => {
                return Err(OutputError::Read {
                    path: path.clone(),
                    what: e.to_string(),
                });
            }
        }
    }
    let next = part(directory, state.parts);
    let numbers: BTreeSet<&PathBuf> = owned.iter().collect();
    for path in listed {
        let known = numbers.contains(&path) || path == next && !has_ended(directory);
        if !known {
            return Err(altered(&path, "was not written by this run; take it away"));
        }
    }
    Ok((state, owned))
}

/// SHA-256 of what a resolved run file says of columns, model and sampler: what draws are draws of.
/// Where the table lies may change, and so may the length of the run and its engine.
pub(super) fn settings_of(run_file: &str) -> String {
    let mut all = run_file.parse::<toml::Table>().unwrap_or_default();
    all.retain(|key, _| ["data", "columns", "model", "sampler"].contains(&key));
    if let Some(toml::Value::Table(data)) = all.get_mut("data") {
        data.retain(|key, _| !["name", "file", "label_file", "bounds", "storage"].contains(&key));
    }
    hexadecimal(&Sha256::digest(all.to_string()))
}

/// All part files that are there.
fn listed(directory: &Path) -> Result<Vec<PathBuf>, OutputError> {
    let folder = directory.join("draws.parquet");
    let found = std::fs::read_dir(folder).map_err(|_| OutputError::NotARun(directory.into()))?;
    let paths = found.filter_map(|entry| entry.ok().map(|e| e.path()));
    Ok(paths
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .collect())
}

/// Whether the certificate is of a run that ended by itself or at its caller's wish.
fn has_ended(directory: &Path) -> bool {
    std::fs::read(directory.join("certificate.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Certificate>(&bytes).ok())
        .is_some_and(|c| c.status != "running")
}

impl PartFile {
    pub(super) fn of(bytes: &[u8]) -> Self {
        PartFile {
            bytes: bytes.len() as u64,
            sha256: hexadecimal(&Sha256::digest(bytes)),
        }
    }

    fn read(path: &Path) -> std::io::Result<Self> {
        let (mut file, mut digest, mut bytes) = (File::open(path)?, Sha256::new(), 0);
        let mut buffer = vec![0u8; 1 << 16];
        loop {
            let read = match file.read(&mut buffer) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                break;
            }
            digest.update(&buffer[..read]);
            bytes += read as u64;
        }
        Ok(PartFile {
            bytes,
            sha256: hexadecimal(&digest.finalize()),
        })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
