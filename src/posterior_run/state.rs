//! What a run saves of itself, all of it public: no coin of the curator's, no row.

use serde::{Deserialize, Serialize};

use crate::model::AnchorRelease;
use crate::privacy::PaidRun;
use crate::sampler::{ChainsState, SamplerState};

/// A part file of draws, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFile {
    /// Its length, bytes.
    pub bytes: u64,
    /// SHA-256 of it, hexadecimal.
    pub sha256: String,
}

/// Public state of a run, as `state.json` keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// Iterations made, warm-up included.
    pub iteration: u64,
    /// Whether the run was ever resumed.
    pub resumed: bool,
    /// How often it was: the coins of a seeded run without privacy follow it.
    #[serde(default)]
    #[serde(rename = "leg")]
    pub session: u64,
    /// Whether what puts the chains at their start was done.
    #[serde(default)]
    pub started: bool,
    /// Accepted moves after warm-up, all chains.
    pub kept_accepted: u64,
    /// Part files that belong to this state.
    pub parts: u64,
    /// What was written to each, in order.
    #[serde(default)]
    pub files: Vec<PartFile>,
    /// SHA-256 of what the run file says of columns, model and sampler, hexadecimal; empty in
    /// states of before it was kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// Which ledger paid for the draws so far; absent in a non-private run.
    pub paid: Option<PaidRun>,
    /// The released anchor of an anchored run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<AnchorRelease>,
    /// Whether draws have the noise of the anchor's releases in them.
    #[serde(default)]
    pub noise_aware: bool,
    /// Whether draws are an anchor's own Gaussian's, and no row was asked what that misses.
    #[serde(default)]
    pub free: bool,
    /// θ, counts and streams.
    pub chains: ChainsState,
    /// Step, preconditioner, warm-up.
    pub sampler: SamplerState,
}

impl RunState {
    /// Whether what puts the chains at their start is behind the run.
    pub fn is_started(&self) -> bool {
        self.started || self.iteration > 0 || self.anchor.is_some()
    }
}
