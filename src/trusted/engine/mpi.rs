//! Messages between ranks by MPI, which whoever starts the ranks (`mpirun`, Slurm) provides.

use std::sync::{Mutex, PoisonError};

use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
use mpi::topology::Communicator;
use mpi::traits::Root;
use mpi::{Threading, initialize_with_threading};

use super::{Link, LinkError};

/// The ranks of MPI's world. MPI ends all of them where one is gone.
pub struct MpiLink {
    /// MPI, which one thread calls at a time; it ends when this is dropped.
    universe: Mutex<Universe>,
    rank: usize,
    size: usize,
    beside: usize,
}

impl MpiLink {
    /// Starts MPI, once in a process.
    ///
    /// # Errors
    /// [`LinkError`] where it was started before, or knows no threads.
    pub fn start() -> Result<Self, LinkError> {
        let started = initialize_with_threading(Threading::Serialized);
        let (universe, threads) =
            started.ok_or_else(|| LinkError("MPI was started before".into()))?;
        if threads < Threading::Serialized {
            return Err(LinkError("this MPI cannot be called by threads".into()));
        }
        let world = universe.world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        let machine = world.split_shared(world.rank());
        let beside = machine.size() as usize;
        // Once, as MPI is started once.
        let _ = crate::machine::PLACE.set(machine.rank() as usize);
        Ok(MpiLink {
            universe: Mutex::new(universe),
            rank,
            size,
            beside,
        })
    }

    /// Ends all ranks at once: where this one cannot answer any more, others would wait forever.
    pub fn abort(&self) -> ! {
        let universe = self.universe.lock().unwrap_or_else(PoisonError::into_inner);
        universe.world().abort(1)
    }
}

impl Drop for MpiLink {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abort();
        }
    }
}

/// A message's length as MPI counts.
fn length(message: &[u8]) -> Result<u64, LinkError> {
    let length = i32::try_from(message.len());
    let large = |_| LinkError("a message has more than 2 GiB".into());
    length.map(|n| n as u64).map_err(large)
}

impl Link for MpiLink {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn beside(&self) -> usize {
        self.beside
    }

    fn broadcast(&self, mut message: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        let universe = self.universe.lock().unwrap_or_else(PoisonError::into_inner);
        let (world, mut count) = (universe.world(), length(&message)?);
        let root = world.process_at_rank(0);
        root.broadcast_into(&mut count);
        message.resize(count as usize, 0);
        root.broadcast_into(&mut message[..]);
        Ok(message)
    }

    fn gather(&self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, LinkError> {
        let universe = self.universe.lock().unwrap_or_else(PoisonError::into_inner);
        let (world, count) = (universe.world(), length(&message)?);
        let root = world.process_at_rank(0);
        if self.rank > 0 {
            root.gather_into(&count);
            root.send(&message[..]);
            return Ok(Vec::new());
        }
        let mut counts = vec![0u64; self.size];
        root.gather_into_root(&count, &mut counts[..]);
        let mut gathered = vec![message];
        for (rank, count) in counts.into_iter().enumerate().skip(1) {
            let mut message = vec![0u8; count as usize];
            let from = world.process_at_rank(rank as i32);
            from.receive_into(&mut message[..]);
            gathered.push(message);
        }
        Ok(gathered)
    }
}
