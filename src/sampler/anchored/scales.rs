//! Draws of coefficients whose prior has standard deviations that are sampled too, from what was
//! released of the rows: a Gibbs sampler that asks no row (docs/proofs/anchors.md).

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use rand_distr::{Distribution, StandardNormal};

use super::algebra::{factor, forward, solve, solve_vector, square};
use crate::model::{Alone, Anchor, Blocks};
use crate::priors::Stretch;
use crate::privacy::Halt;
use crate::sampler::PublicRng;

/// Steps before the first draw: the start is one of the working prior's posterior.
const BURNED_IN: usize = 200;

/// The coefficients' law given what was released: a Gaussian likelihood times a prior in blocks.
#[derive(Clone, Debug)]
pub(super) struct Gibbs {
    /// Precision and pull of the likelihood, in θ.
    precision: DMatrix<f64>,
    pull: DVector<f64>,
    prior: Arc<Blocks>,
    /// Means of the prior's members.
    mean: DVector<f64>,
}

impl Gibbs {
    /// `None` where the anchor does not tell what the rows say alone.
    pub fn new(anchor: &Anchor, prior: Arc<Blocks>) -> Option<Self> {
        let d = anchor.at.len();
        let alone = anchor.alone.as_ref()?;
        // u = Lᵀ(θ − θ*).
        let l = square(anchor.metric.factor.entries(), d);
        let precision = &l * square(&alone.precision, d) * l.transpose();
        let at = DVector::from_column_slice(&anchor.at);
        let pull = &l * DVector::from_column_slice(&alone.pull) + &precision * at;
        let mean = DVector::from_vec(prior.working(d).0);
        Some(Gibbs {
            precision: (&precision + precision.transpose()) * 0.5,
            pull,
            prior,
            mean,
        })
    }

    /// A start of a chain: steps from `theta`, which are not kept.
    pub fn burn_in(&self, theta: &[f64], rng: &mut PublicRng) -> Vec<f64> {
        let mut theta = theta.to_vec();
        for _ in 0..BURNED_IN {
            theta = self.step(&theta, rng);
        }
        theta
    }

    /// One step: standard deviations given the coefficients, block by block, then all coefficients
    /// given them. Leaves the coefficients' law invariant; `theta` itself where numbers fail.
    pub fn step(&self, theta: &[f64], rng: &mut PublicRng) -> Vec<f64> {
        let mut at = DVector::from_column_slice(theta);
        let mut precisions = DVector::zeros(theta.len());
        for block in &self.prior.blocks {
            let stretch = self.stretch(&at, &block.members);
            let (own, ratio) = block.interweave(at.as_slice(), &stretch, rng);
            for (&j, precision) in block.members.iter().zip(own) {
                precisions[j] = precision;
                at[j] *= ratio;
            }
        }
        let drawn = self.coefficients(&precisions, rng);
        match drawn {
            Ok(drawn) if drawn.iter().all(|v| v.is_finite()) => drawn.as_slice().to_vec(),
            _ => theta.to_vec(),
        }
    }

    fn stretch(&self, at: &DVector<f64>, members: &[usize]) -> Stretch {
        let mut own = DVector::zeros(at.len());
        members.iter().for_each(|&j| own[j] = at[j]);
        let curvature = own.dot(&(&self.precision * &own));
        Stretch {
            slope: own.dot(&(&self.pull - &self.precision * at)) + curvature,
            curvature,
        }
    }

    /// A draw of the coefficients given the prior's precisions.
    fn coefficients(
        &self,
        precisions: &DVector<f64>,
        rng: &mut PublicRng,
    ) -> Result<DVector<f64>, Halt> {
        let d = precisions.len();
        // In units of the prior's sds, in which a small one is no larger a number than another.
        let scales = precisions.map(|p| (1.0 / p.sqrt()).clamp(1e-150, 1e150));
        let matrix = DMatrix::from_fn(d, d, |i, j| {
            let own = if i == j { 1.0 } else { 0.0 };
            own + scales[i] * self.precision[(i, j)] * scales[j]
        });
        let centre = self.mean.component_div(&scales);
        let pull = self.pull.component_mul(&scales) + centre;
        let root = factor(&matrix)?;
        let z = DVector::from_fn(d, |_, _| StandardNormal.sample(rng));
        let half = forward(&root, &pull)? + z;
        let drawn = root.tr_solve_lower_triangular(&half);
        let drawn = drawn.ok_or_else(|| Halt::Failed("no draw".into()))?;
        Ok(drawn.component_mul(&scales))
    }
}

/// What the rows say without a prior, in the anchor's coordinates: a gradient with this noise says
/// of θ what a Gaussian of precision H(H + Σ)⁻¹H about H⁻¹g says, H the `curvature`.
pub(super) fn alone(
    gradient: &DVector<f64>,
    curvature: &DMatrix<f64>,
    noise: &DMatrix<f64>,
) -> Result<Alone, Halt> {
    let (known, pull) = match noise.amax() > 0.0 {
        true => {
            let seen = curvature + noise;
            let known = curvature * solve(&seen, curvature)?;
            (known, curvature * solve_vector(&seen, gradient)?)
        }
        false => (curvature.clone(), gradient.clone()),
    };
    let known = (&known + known.transpose()) * 0.5;
    Ok(Alone {
        precision: known.transpose().iter().copied().collect(),
        pull: pull.iter().copied().collect(),
    })
}
