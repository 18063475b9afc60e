//! Moves around an anchor: proposals from the public Gaussian that it implies, and the
//! clip bound of a remainder (docs/proofs/anchors.md).

use std::sync::Arc;

use ndarray::{ArrayView1, ArrayViewMut1};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::boxed::BoxedMoves;
use super::scales::Gibbs;
use crate::model::{Anchor, FLAT_CLIP, Lower, Prior};
use crate::sampler::PublicRng;

/// How anchored moves are proposed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnchoredProposal {
    /// `θ' = θ + s·A z`, AAᵀ the expansion's covariance.
    RandomWalk {
        /// s.
        step: f64,
    },
    /// `u' = m + r(u − m) + √(1−r²) z` in the expansion's own Gaussian N(m, S), which leaves
    /// that Gaussian invariant: only what it misses is left to decide (Neal 1998). r = 0
    /// proposes independent draws.
    Autoregressive {
        /// r ∈ (−1, 1).
        correlation: f64,
    },
}

/// Moves of one anchored run.
#[derive(Clone, Debug)]
pub struct AnchoredMoves {
    anchor: Arc<Anchor>,
    /// Centre of the expansion with the prior, in the anchor's coordinates.
    centre: Vec<f64>,
    /// K with KKᵀ its precision there.
    precision: Lower,
    proposal: AnchoredProposal,
    clip: RemainderClip,
    /// Factor of the covariance of what the releases' noise leaves unknown; `None` without noise.
    shift: Option<Lower>,
    /// What moves where the support is a box that cuts in.
    boxed: Option<BoxedMoves>,
    /// What draws where the prior's scales are sampled too.
    gibbs: Option<Box<Gibbs>>,
}

/// Public clip of remainders: `rate · max(‖u‖,‖u'‖)^power ‖u'−u‖`, nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemainderClip {
    /// 0 where rows have no remainders, for a constant clip that is next to free.
    pub rate: f64,
    /// 2, or 1 where remainders are of second order ([`crate::model::Slopes::remainder_power`]).
    pub power: i32,
}

impl AnchoredMoves {
    /// `prior`: the model's own (without the expansion). `None` where the expansion or the clip
    /// holds no usable numbers.
    pub fn new(
        anchor: Arc<Anchor>,
        prior: &Prior,
        proposal: AnchoredProposal,
        clip: RemainderClip,
    ) -> Option<Self> {
        let d = anchor.at.len();
        let gibbs = match prior.blocks() {
            Some(blocks) => Some(Box::new(Gibbs::new(&anchor, blocks.clone())?)),
            None => None,
        };
        let (precision, centre) = gaussian(&anchor, &prior.working(d), 0.0)?;
        let usable = precision.dim() == d && centre.iter().all(|v| v.is_finite());
        let size = anchor.spread.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let shift = match size > 0.0 {
            true => Some(Lower::of_regularised(&anchor.spread, d, 1e-12 * size)?),
            false => None,
        };
        let boxed = match usable && gibbs.is_none() {
            true => BoxedMoves::new(&anchor, prior, &precision, &centre),
            false => None,
        };
        (usable && clip.rate >= 0.0 && clip.rate.is_finite()).then_some(AnchoredMoves {
            anchor,
            centre,
            precision,
            proposal,
            clip,
            shift,
            boxed,
            gibbs,
        })
    }

    /// Public clip bound of a move, symmetric in its arguments to the bit.
    pub fn clip(&self, theta: &[f64], proposal: &[f64]) -> f64 {
        if self.clip.rate == 0.0 {
            return FLAT_CLIP;
        }
        let (a, b) = (
            self.anchor.coordinates(theta),
            self.anchor.coordinates(proposal),
        );
        let square = |u: &[f64]| -> f64 { u.iter().map(|v| v * v).sum() };
        let step: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
        let reach = square(&a).max(square(&b)).sqrt().powi(self.clip.power);
        self.clip.rate * reach * step.sqrt()
    }

    /// Draws `proposal` from `theta`; returns the log ratio of reverse to forward proposal
    /// density, nats.
    pub(in crate::sampler) fn propose(
        &self,
        theta: ArrayView1<'_, f64>,
        mut proposal: ArrayViewMut1<'_, f64>,
        rng: &mut PublicRng,
    ) -> f64 {
        let u = self.anchor.coordinates(&theta.to_vec());
        if let (Some(boxed), AnchoredProposal::Autoregressive { .. }) = (&self.boxed, self.proposal)
        {
            let landed = boxed.step(&theta.to_vec(), rng);
            proposal.assign(&ArrayView1::from(&landed));
            // Reversible with respect to the Gaussian inside the box.
            return self.log_gaussian(&u) - self.log_gaussian(&self.anchor.coordinates(&landed));
        }
        let z: Vec<f64> = (0..u.len()).map(|_| StandardNormal.sample(rng)).collect();
        let noise = self.precision.solve_transposed(&z);
        let (keep, spread) = match self.proposal {
            AnchoredProposal::RandomWalk { step } => (None, step),
            AnchoredProposal::Autoregressive { correlation } => {
                (Some(correlation), (1.0 - correlation * correlation).sqrt())
            }
        };
        let next: Vec<f64> = u
            .iter()
            .zip(&self.centre)
            .zip(&noise)
            .map(|((u, m), n)| keep.map_or(*u, |r| m + r * (u - m)) + spread * n)
            .collect();
        let landed = self.anchor.theta(&next);
        proposal.assign(&ArrayView1::from(&landed));
        if keep.is_none() {
            return 0.0;
        }
        // Reversible with respect to N(m, S): q(θ|θ')/q(θ'|θ) = φ(θ)/φ(θ'). From θ' as it was
        // rounded, so that the reverse move sees the same numbers.
        self.log_gaussian(&u) - self.log_gaussian(&self.anchor.coordinates(&landed))
    }

    /// log φ of the expansion's Gaussian, up to a constant.
    fn log_gaussian(&self, u: &[f64]) -> f64 {
        let gap: Vec<f64> = u.iter().zip(&self.centre).map(|(u, m)| u - m).collect();
        let z = self.precision.transposed_times(&gap);
        -0.5 * z.iter().map(|v| v * v).sum::<f64>()
    }

    /// Where one step of the Gibbs sampler leads, if there is one.
    pub(in crate::sampler) fn gibbs(&self, theta: &[f64], rng: &mut PublicRng) -> Option<Vec<f64>> {
        self.gibbs.as_ref().map(|gibbs| gibbs.step(theta, rng))
    }

    /// A draw of what the releases' noise moves θ by; zeros without noise, and where draws have it.
    pub(super) fn noise(&self, rng: &mut PublicRng) -> Vec<f64> {
        let shift = self.shift.as_ref().filter(|_| self.gibbs.is_none());
        let Some(shift) = shift else {
            return vec![0.0; self.centre.len()];
        };
        let z: Vec<f64> = (0..self.centre.len())
            .map(|_| StandardNormal.sample(rng))
            .collect();
        self.anchor.metric.factor.solve_transposed(&shift.times(&z))
    }

    /// Where a chain starts: a draw of the expansion's Gaussian inside the ellipsoid, and from
    /// there where a Gibbs sampler has forgotten it.
    pub(super) fn start(&self, prior: &Prior, rng: &mut PublicRng) -> Vec<f64> {
        let start = self.gaussian_start(prior, rng);
        match &self.gibbs {
            Some(gibbs) => gibbs.burn_in(&start, rng),
            None => start,
        }
    }

    fn gaussian_start(&self, prior: &Prior, rng: &mut PublicRng) -> Vec<f64> {
        if let Some(boxed) = &self.boxed {
            let start = boxed.start(rng);
            if self.anchor.contains(&start) {
                return start;
            }
        }
        for _ in 0..100 {
            let z: Vec<f64> = self
                .centre
                .iter()
                .map(|_| StandardNormal.sample(rng))
                .collect();
            let noise = self.precision.solve_transposed(&z);
            let u: Vec<f64> = self.centre.iter().zip(noise).map(|(m, n)| m + n).collect();
            let theta = self.anchor.theta(&u);
            if prior.contains(&theta) && self.anchor.contains(&theta) {
                return theta;
            }
        }
        self.anchor.at.clone()
    }
}

/// Precision factor and centre, in the anchor's coordinates, of the Gaussian that the
/// expansion and the prior make; `damping` is added to the precision of every parameter.
pub(super) fn gaussian(anchor: &Anchor, prior: &Prior, damping: f64) -> Option<(Lower, Vec<f64>)> {
    let d = anchor.at.len();
    let factor = &anchor.metric.factor;
    let (mut gradient, mut precision) = prior.slopes(&anchor.at);
    precision.iter_mut().for_each(|p| *p += damping);
    factor.solve(&mut gradient);
    let mut matrix = factor.congruent_inverse(&precision);
    for (m, c) in matrix.iter_mut().zip(&anchor.curvature) {
        *m += c;
    }
    for (g, a) in gradient.iter_mut().zip(&anchor.gradient) {
        *g += a;
    }
    let size = matrix
        .iter()
        .step_by(d + 1)
        .fold(0.0f64, |m, v| m.max(v.abs()));
    let lower = Lower::of_regularised(&matrix, d, 1e-3 * size.max(1e-300))?;
    lower.solve(&mut gradient);
    let centre = lower.solve_transposed(&gradient);
    Some((lower, centre))
}
