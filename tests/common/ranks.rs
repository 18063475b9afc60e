//! Ranks that are threads of one process.

use std::sync::{Arc, Barrier, Mutex};

use dpmc::engine::{Link, LinkError};

/// What they share.
struct Shared {
    all: Barrier,
    message: Mutex<Vec<u8>>,
    gathered: Mutex<Vec<Vec<u8>>>,
}

/// One of them.
pub struct ThreadLink {
    rank: usize,
    size: usize,
    shared: Arc<Shared>,
}

/// Links of so many ranks, in order.
pub fn links(size: usize) -> Vec<ThreadLink> {
    let shared = Arc::new(Shared {
        all: Barrier::new(size),
        message: Mutex::default(),
        gathered: Mutex::new(vec![Vec::new(); size]),
    });
    let link = |rank| ThreadLink {
        rank,
        size,
        shared: shared.clone(),
    };
    (0..size).map(link).collect()
}

impl Link for ThreadLink {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn beside(&self) -> usize {
        self.size
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        if self.rank == 0 {
            *self.shared.message.lock().unwrap() = message;
        }
        self.shared.all.wait();
        let message = self.shared.message.lock().unwrap().clone();
        self.shared.all.wait();
        Ok(message)
    }

    fn gather(&self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, LinkError> {
        self.shared.gathered.lock().unwrap()[self.rank] = message;
        self.shared.all.wait();
        let gathered = match self.rank {
            0 => self.shared.gathered.lock().unwrap().clone(),
            _ => Vec::new(),
        };
        self.shared.all.wait();
        Ok(gathered)
    }
}
