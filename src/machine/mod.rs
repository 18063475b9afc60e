//! What this machine lets a process have. No row is seen from here.

mod memory;
mod threads;

pub use memory::available_memory;
pub use threads::start as start_threads;
