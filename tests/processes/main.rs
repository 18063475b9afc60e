//! What holds when processes are killed, starved, interrupted or crowded at one ledger. A binary of
//! its own, so that nothing heavy runs beside tests that wait for a process.

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

mod cli_resume_and_ledger;
mod interrupted;
mod killed_early;
mod limits;
mod long_faults;
mod memory;
mod one_ledger;
mod records;
mod terminal;
