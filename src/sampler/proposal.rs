//! Random-walk proposals `θ' = θ + s·A z` and the public clip bound of a move.

use ndarray::{ArrayView1, ArrayViewMut1};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::PublicRng;

/// The public matrix A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preconditioner {
    /// The identity.
    Identity,
    /// A diagonal matrix.
    Diagonal(Vec<f64>),
    /// A lower Cholesky factor, row-major d×d.
    Full(Vec<f64>),
}

impl Preconditioner {
    /// `out = A z`.
    fn apply(&self, z: &[f64], out: &mut ArrayViewMut1<'_, f64>) {
        let d = z.len();
        for (i, o) in out.iter_mut().enumerate() {
            *o = match self {
                Preconditioner::Identity => z[i],
                Preconditioner::Diagonal(a) => a[i] * z[i],
                Preconditioner::Full(l) => (0..=i).map(|k| l[i * d + k] * z[k]).sum(),
            };
        }
    }
}

/// Norm in which the clip bound measures a move. Both are symmetric in θ, θ'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClipNorm {
    /// `‖θ'−θ‖₂`.
    Euclidean,
    /// `‖A⁻¹(θ'−θ)‖₂` with the proposal's own A: `s‖z‖`.
    Proposal,
    /// 1: the same bound for every move.
    Constant,
}

/// The public clip bound `c = rate · norm`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClipRule {
    /// Nats a unit of the norm.
    pub rate: f64,
    /// The norm.
    pub norm: ClipNorm,
}

/// Draws `proposal` from `theta`; returns the clip bound's norm of the move.
pub(super) fn propose(
    theta: ArrayView1<'_, f64>,
    mut proposal: ArrayViewMut1<'_, f64>,
    step: f64,
    preconditioner: &Preconditioner,
    norm: ClipNorm,
    rng: &mut PublicRng,
) -> f64 {
    let z: Vec<f64> = (0..theta.len())
        .map(|_| StandardNormal.sample(rng))
        .collect();
    preconditioner.apply(&z, &mut proposal);
    // Before θ is added: the bound then follows from public coins alone, to the last bit.
    let squares = match norm {
        ClipNorm::Proposal => z.iter().map(|v| v * v).sum::<f64>(),
        ClipNorm::Euclidean => proposal.iter().map(|v| v * v).sum(),
        ClipNorm::Constant => 0.0,
    };
    for (p, t) in proposal.iter_mut().zip(theta) {
        *p = t + step * *p;
    }
    match norm {
        ClipNorm::Constant => 1.0,
        _ => step * squares.sqrt(),
    }
}
