#![no_main]
//! No bytes make a reader of ledgers panic. One that is taken can be written to, is read again as
//! it was, and never counts less than before.

use std::path::Path;

use dpmc::privacy::{Budget, Ledger, LedgerFileError};
use sha2::{Digest, Sha256};

/// As the ledger of `fixtures` says.
const ROWS: usize = 40;

fn open(path: &Path) -> Result<Ledger, LedgerFileError> {
    let budget = Ledger::budget_of(path)?.or(Budget::new(50.0, 1e-6).ok());
    let measure = Ledger::measure_of(path)?.unwrap_or(dpmc::privacy::Measure::Zcdp);
    let Some(budget) = budget else {
        unreachable!("a budget that can be made");
    };
    Ledger::open(path, "people", ROWS, budget, measure)
}

fn read(bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else {
        return;
    };
    let path = folder.path().join("ledger.json");
    if std::fs::write(&path, bytes).is_err() {
        return;
    }
    let Ok(mut ledger) = open(&path) else {
        return;
    };
    let spent = ledger.spent();
    let _ = (ledger.epsilon_spent(), ledger.limit(), ledger.paid_run());
    ledger
        .settle()
        .expect("a ledger that was taken is written to");
    drop(ledger);
    let again = open(&path).expect("a ledger that was written is read again");
    assert_eq!(again.spent(), spent);
}

/// Every line with the hash that it should have, so that what is behind the hashes is reached.
fn chained(bytes: &[u8]) -> Vec<u8> {
    let (mut text, mut head) = (b"[\n".to_vec(), String::new());
    for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let cut = line.windows(10).position(|w| w == b",\"chain\":\"");
        let body = &line[..cut.unwrap_or(line.len())];
        let digest = Sha256::new()
            .chain_update(&head)
            .chain_update(body)
            .finalize();
        head = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if i > 0 {
            text.extend(b",\n");
        }
        text.extend(body);
        text.extend(format!(",\"chain\":\"{head}\"}}").bytes());
    }
    text.extend(b"\n]\n");
    text
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    let lines = bytes.strip_prefix(b"[\n").unwrap_or(bytes);
    read(&chained(lines.strip_suffix(b"\n]\n").unwrap_or(lines)));
});
