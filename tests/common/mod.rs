//! What several tests build on: tables, run directories, regressions, chains.

pub mod anchored_run;
pub mod bracket;
pub mod chains;
pub mod edit;
pub mod misfit;
pub mod moment_problems;
pub mod place;
pub mod ranks;
pub mod regression;
pub mod tables;
