//! `dpmc forget`: deletes tables that `--cache` has kept.

use serde::Serialize;

use super::CliError;
use super::answers::print_json;
use super::args::ForgetArguments;
use dpmc::data::CACHE_ENDINGS;

#[derive(Debug, Default, Serialize)]
struct Forgotten {
    files: usize,
    bytes: u64,
}

pub(super) fn run(a: &ForgetArguments) -> Result<(), CliError> {
    let folder = &a.directory;
    let fail = |e| CliError::Input(format!("{}: cannot be read: {e}", folder.display()));
    let mut forgotten = Forgotten::default();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !CACHE_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        let bytes = path.metadata().map_or(0, |m| m.len());
        let what = |e| CliError::Failure(format!("{}: cannot be deleted: {e}", path.display()));
        std::fs::remove_file(&path).map_err(what)?;
        forgotten.files += 1;
        forgotten.bytes += bytes;
    }
    if a.json {
        return print_json(&forgotten);
    }
    let mib = forgotten.bytes as f64 / f64::from(1 << 20);
    match forgotten.files {
        0 => println!("{}: no tables are kept there", folder.display()),
        files => println!("deleted {files} files, {mib:.1} MiB"),
    }
    Ok(())
}
