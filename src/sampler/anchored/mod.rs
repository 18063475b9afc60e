//! Samplers on rows' remainders at a released anchor (mathematics, section 4.1): how the anchor is
//! found, and moves around it.

mod moves;
mod walk;
mod warm_start;

pub use moves::{AnchoredMoves, AnchoredProposal};
pub use walk::AnchoredSettings;
pub use warm_start::{AnchorSplit, Anchoring};
