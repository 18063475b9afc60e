//! What can go wrong in an engine.

use super::LinkError;

/// An engine's failure. Its text holds no value derived from rows, and no size of a query: a
/// minibatch's follows secret coins.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No adapter could be had.
    #[error(
        "no GPU adapter was found ({tried}). Install a Vulkan driver (Debian's software driver: `apt-get install mesa-vulkan-drivers libvulkan1`) or use `--engine cpu`"
    )]
    NoAdapter {
        /// Backends and adapters tried.
        tried: String,
    },
    /// The engine was not compiled in.
    #[error("this build has no GPU engine; build with feature `gpu` or use `--engine cpu`")]
    NotBuilt,
    /// The model has no GPU form.
    #[error(
        "this model (mlp, or a likelihood with numbers beyond a 32-bit float's), or a table with data.unit or [data.weights], is computed on the CPU alone; use `--engine cpu` (or engine = \"auto\", which picks it)"
    )]
    CpuOnly,
    /// The device went away; the run ends with what was drawn.
    #[error("the GPU device was lost ({0}); draws up to here are kept")]
    DeviceLost(String),
    /// The device did not finish a submission in time; the run ends with what was drawn.
    #[error(
        "the GPU has not finished a piece of work within {0:?} and is taken to hang; draws up to here are kept. Go on with `--resume`, on the CPU by `--engine cpu`; other programs that keep the GPU busy, or the driver's log, may tell the cause"
    )]
    Hung(std::time::Duration),
    /// The device has no memory for a query, with no rows left on it that could make room.
    #[error(
        "the GPU has no memory for {what}, with no rows left on it to make room; draws up to here are kept. End what else holds its memory, ask for fewer chains, or use `--engine cpu`"
    )]
    GpuMemory {
        /// What it was for.
        what: &'static str,
        /// Bytes asked for; 0 where the driver does not say.
        asked: u64,
    },
    /// The device refused a request.
    #[error("GPU error: {0}")]
    Device(String),
    /// Ranks lost each other.
    #[error(transparent)]
    Ranks(#[from] LinkError),
    /// Another rank's engine failed.
    #[error("rank {rank}: {what}")]
    Rank {
        /// Which rank.
        rank: usize,
        /// What it says.
        what: String,
    },
    /// A query that does not fit model or rows.
    #[error("{0}")]
    Query(String),
    /// A clip bound outside the range that the grid supports.
    #[error("clip bound {0:e} is outside [2^-80, 2^80]; change the step or the clip rate")]
    ClipRange(f64),
}
