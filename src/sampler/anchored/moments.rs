//! Samplers on what released moments leave over: an ordinary random walk, whose rows are nearly
//! silent (docs/proofs/anchors.md).

use ndarray::{Array1, ArrayView1};

use super::warm_start::multiplier;
use crate::model::{AnchorRelease, Model, MomentBasis, remainder_bound};
use crate::privacy::{Halt, MomentNoise, Releases};
use crate::sampler::proposal::{ClipNorm, Preconditioner, propose};
use crate::sampler::{PublicRng, stream};

/// Moves tried for a typical price.
const TRIALS: u64 = 200;

/// Settings of a run on moments.
#[derive(Clone, Debug, PartialEq)]
pub struct MomentSettings {
    /// Highest Chebyshev degree; 1 for the columns' sums.
    pub degree: usize,
    /// ρ of the release; `None` in a non-private run.
    pub rho: Option<f64>,
    /// Clip of a remainder as a share of its true bound.
    pub share: f64,
    /// Clip bound expected of a move, nats: see [`typical_moment_clip`].
    pub typical_clip: f64,
}

impl MomentSettings {
    pub(super) fn release(&self, releases: &mut dyn Releases) -> Result<AnchorRelease, Halt> {
        let noise = self.rho.map(|rho| MomentNoise {
            tau: multiplier(rho),
        });
        let moments = releases.moments(self.degree, noise)?;
        Ok(moments.into())
    }
}

/// Median of a move's clip bound from points of the prior: public, nats. (Not a mean: far out in
/// a wide prior, where no posterior is, bounds are large.)
pub fn typical_moment_clip(
    model: &dyn Model,
    basis: &MomentBasis,
    step: f64,
    preconditioner: &Preconditioner,
) -> f64 {
    let mut rng: PublicRng = stream([0x6d; 32], 0);
    let mut bounds = Vec::new();
    for _ in 0..TRIALS {
        // An improper prior is tried at the origin.
        let drawn = model.prior().draw(&mut rng);
        let theta = drawn.unwrap_or_else(|| vec![0.0; model.dim()]);
        let mut proposal = Array1::zeros(theta.len());
        let view = ArrayView1::from(&theta);
        let norm = ClipNorm::Constant;
        propose(
            view,
            proposal.view_mut(),
            step,
            preconditioner,
            norm,
            &mut rng,
        );
        let end = proposal.to_vec();
        bounds.extend(remainder_bound(model, basis, &theta, &end));
    }
    bounds.sort_by(f64::total_cmp);
    bounds.get(bounds.len() / 2).copied().unwrap_or(0.0)
}
