//! The noise of a released anchor in the draws of its run.

use std::path::Path;

use super::OutputError;
use super::parts::read_state;
use crate::model::{Anchor, AnchorRelease};

/// Whether draws have the noise of an anchor's releases in them.
#[derive(Clone, Debug, PartialEq)]
pub enum AnchorNoise {
    /// There is no expansion that draws could have the noise of.
    None,
    /// They have the noise of this one.
    InDraws(Anchor),
    /// They take this one for exact.
    Missing(Anchor),
}

impl AnchorNoise {
    /// That of the run in `directory`.
    ///
    /// # Errors
    /// [`OutputError`] where it is no run directory.
    pub fn read(directory: &Path) -> Result<Self, OutputError> {
        let state = read_state(directory)?;
        Ok(match state.anchor {
            // Without a covariance of its centre no draw has the noise in it.
            Some(AnchorRelease::Expansion(a)) if state.noise_aware && !a.spread.is_empty() => {
                AnchorNoise::InDraws(a)
            }
            Some(AnchorRelease::Expansion(a)) => AnchorNoise::Missing(a),
            _ => AnchorNoise::None,
        })
    }
}
