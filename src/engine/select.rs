//! Which engine runs, and what it says of itself.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cpu::CpuEngine;
use super::{Engine, EngineError};
use crate::data::Dataset;
use crate::model::Model;

/// What the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// Measure and pick.
    #[default]
    Auto,
    /// The native CPU engine.
    Cpu,
    /// wgpu on any adapter.
    Gpu,
}

/// What computes, for certificates and reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineInfo {
    /// `cpu` or `gpu`.
    pub kind: String,
    /// Instruction set, or the adapter's name.
    pub adapter: String,
    /// Driver and its version.
    pub driver: String,
}

/// Builds the engine asked for. `auto` without a GPU adapter is the CPU.
pub(crate) fn open(
    choice: EngineChoice,
    data: Arc<Dataset>,
    model: &dyn Model,
) -> Result<Box<dyn Engine>, EngineError> {
    let _ = model;
    match choice {
        EngineChoice::Cpu | EngineChoice::Auto => Ok(Box::new(CpuEngine::new(data))),
        EngineChoice::Gpu => Err(EngineError::NotBuilt),
    }
}

/// Everything that could compute here, the CPU first.
pub fn devices() -> Vec<EngineInfo> {
    vec![EngineInfo {
        kind: "cpu".into(),
        adapter: super::cpu::InstructionSet::detect().name().into(),
        driver: format!("native, {} threads", rayon::current_num_threads()),
    }]
}
