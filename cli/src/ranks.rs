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
    use std::io::Write;

    use dpmc::engine::{Link, MpiLink};

    let Some([started, _]) = launched() else {
        return Ok(Role::Alone);
    };
    let link = MpiLink::start().map_err(|e| CliError::Failure(e.to_string()))?;
    if link.size() != started {
        // Each of them would make the whole run, and spend its budget.
        return Err(CliError::Failure(format!(
            "a launcher has started {started} processes, and MPI knows of {}: start dpmc by the launcher of the MPI that it was built with",
            link.size()
        )));
    }
    if link.rank() == 0 {
        return Ok(Role::Leading(Leader::new(std::sync::Arc::new(link))));
    }
    // Launchers hand signals to all; rank 0 says when it has ended what it was at.
    let _stop = super::signals::stop_flag()?;
    match dpmc::run::serve(&link) {
        Ok(()) => Ok(Role::Served),
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "dpmc: rank {}: {e}", link.rank());
            link.abort()
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
