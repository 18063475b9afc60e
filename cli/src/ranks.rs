//! Ranks of one run: what `mpirun -n 4 dpmc sample run.toml` starts four times.

use dpmc::run::Leader;

use super::CliError;

/// What this process is to a run.
#[cfg_attr(
    not(feature = "mpi"),
    expect(dead_code, reason = "without MPI it is alone")
)]
pub(super) enum Role {
    /// All of it.
    Alone,
    /// The one that makes it, with others that hold rows.
    Leading(Leader),
    /// One that held rows, until the run ended.
    Served,
}

/// Variables by which launchers say how many processes they have started, and which one this is:
/// Open MPI, MPICH and Intel MPI, Slurm's `srun`.
const LAUNCHERS: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"],
    ["PMI_SIZE", "PMI_RANK"],
    ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"],
];

/// How many processes were started, where that is more than one, and which this is.
fn launched() -> Option<[usize; 2]> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let both = |[size, rank]: [&str; 2]| Some([number(size)?, number(rank)?]);
    LAUNCHERS
        .into_iter()
        .find_map(both)
        .filter(|[size, _]| *size > 1)
}

/// Joins the run that a launcher has started, if one has.
#[cfg(feature = "mpi")]
pub(super) fn join() -> Result<Role, CliError> {
    use dpmc::engine::{Link, MpiLink};

    if launched().is_none() {
        return Ok(Role::Alone);
    }
    let failed = |e: dpmc::engine::LinkError| CliError::Failure(e.to_string());
    let link = MpiLink::start().map_err(failed)?;
    match (link.rank(), link.size()) {
        (_, 1) => Ok(Role::Alone),
        (0, _) => Ok(Role::Leading(Leader::new(std::sync::Arc::new(link)))),
        _ => {
            // Launchers hand signals to all; rank 0 says when it has ended what it was at.
            let _stop = super::signals::stop_flag()?;
            dpmc::run::serve(&link).map_err(failed)?;
            Ok(Role::Served)
        }
    }
}

/// Refuses to be one of several, all of which would make the same run.
#[cfg(not(feature = "mpi"))]
pub(super) fn join() -> Result<Role, CliError> {
    match launched() {
        None => Ok(Role::Alone),
        Some([size, 0]) => Err(CliError::Input(format!(
            "this is one of {size} processes that a launcher has started, and this dpmc was built without MPI; build it with `cargo install --path cli --features mpi`, or start one process"
        ))),
        // One of them has said so.
        Some(_) => Err(CliError::Input("see what rank 0 says".into())),
    }
}
