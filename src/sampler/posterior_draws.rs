//! `ops`: every draw the end of a chain of its own inside the curator (Wang, Fienberg & Smola
//! 2015). Private only if those chains converge.

use ndarray::ArrayView1;

use super::{Chains, StepInfo};
use crate::privacy::{DrawRequest, Halt, Releases};

/// Releases independent posterior draws, each from where its chain stands before.
#[derive(Clone, Debug)]
pub struct PosteriorDraws {
    request: DrawRequest,
}

impl PosteriorDraws {
    /// Draws as requested.
    pub fn new(request: DrawRequest) -> Self {
        PosteriorDraws { request }
    }

    /// How a draw is made.
    pub fn request(&self) -> &DrawRequest {
        &self.request
    }

    /// Puts every chain at a new draw.
    ///
    /// # Errors
    /// [`Halt`]; the chains have not moved then.
    pub fn step(
        &mut self,
        chains: &mut Chains,
        releases: &mut dyn Releases,
    ) -> Result<StepInfo, Halt> {
        let starts: Vec<Vec<f64>> = chains
            .thetas
            .rows()
            .into_iter()
            .map(|t| t.to_vec())
            .collect();
        let draws = starts
            .iter()
            .map(|start| releases.posterior_draw(start, &self.request))
            .collect::<Result<Vec<_>, _>>()?;
        for (mut theta, draw) in chains.thetas.rows_mut().into_iter().zip(&draws) {
            theta.assign(&ArrayView1::from(draw));
        }
        chains.accepted.iter_mut().for_each(|a| *a += 1);
        Ok(StepInfo {
            accepted: vec![true; chains.len()],
        })
    }
}
