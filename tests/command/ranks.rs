//! The promise: processes that a launcher has started do not all make the same run.

use crate::common::place::{Place, RUN};

#[test]
#[cfg(not(feature = "mpi"))]
fn one_of_several_processes_is_refused_without_mpi() {
    let place = Place::new(RUN);
    for [size, rank] in [
        ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"],
        ["PMI_SIZE", "PMI_RANK"],
        ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"],
    ] {
        for (number, hint) in [("0", "--features mpi"), ("3", "rank 0")] {
            let mut command = place.command("sample run.toml --out out");
            let output = command.env(size, "4").env(rank, number).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains(hint), "{said}");
            assert!(!place.path("out").exists());
        }
        let mut command = place.command("check run.toml");
        let output = command.env(size, "4").env(rank, "0").output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    // A launcher's only process is as any other.
    let mut command = place.command("sample run.toml --out out --quiet");
    let command = command.env("PMI_SIZE", "1").env("PMI_RANK", "0");
    assert!(command.output().unwrap().status.success());
}
