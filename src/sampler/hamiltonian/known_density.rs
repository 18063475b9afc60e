//! For tests: a curator of no data, with a known density for its likelihood. It decides by the
//! exact formulas, answers gradients as wrong as wanted, and counts what it is asked.

use ndarray::{Array2, ArrayView2};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::model::Metric;
use crate::privacy::{
    Acceptance, AnchorNoise, Estimator, Expansion, GradientNoise, Halt, Moves, Releases,
};
use crate::sampler::{PublicRng, stream};

/// Noise on gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Noise {
    None,
    /// N(0, sd²).
    Gaussian(f64),
    /// Gradients cut to a coarse lattice of this step, plus a rounded N(0, 2²) on it.
    Lattice(f64),
}

/// log p(x|θ), θ of d values.
pub(super) type Density = fn(&[f64]) -> f64;
/// Its gradient.
pub(super) type Gradient = fn(&[f64]) -> Vec<f64>;
/// h to use instead, from (h, θ, θ').
pub(super) type Tamper = fn(f64, &[f64], &[f64]) -> f64;

/// The fake curator.
pub(super) struct KnownDensity {
    pub log_likelihood: Density,
    pub gradient: Gradient,
    pub noise: Noise,
    /// Factor on gradients; 1 is right.
    pub scale: f64,
    /// Bound on the norm of a gradient.
    pub clip: f64,
    /// Changes h before it is used: for samplers broken on purpose.
    pub tamper: Tamper,
    /// Noise to add instead of fresh one, in this order; scripted noise is used up.
    pub script: Vec<Array2<f64>>,
    /// Noise of every call so far.
    pub drawn: Vec<Array2<f64>>,
    pub gradient_calls: usize,
    pub decide_calls: usize,
    /// (h, c) of every move of the last call.
    pub asked: Vec<(f64, f64)>,
    rng: PublicRng,
}

impl KnownDensity {
    pub(super) fn new(log_likelihood: Density, gradient: Gradient, seed: u8) -> Self {
        KnownDensity {
            log_likelihood,
            gradient,
            noise: Noise::None,
            scale: 1.0,
            clip: f64::INFINITY,
            tamper: |h, _, _| h,
            script: Vec::new(),
            drawn: Vec::new(),
            gradient_calls: 0,
            decide_calls: 0,
            asked: Vec::new(),
            rng: stream([seed; 32], u64::MAX),
        }
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.rng)
    }

    fn fresh_noise(&mut self, shape: (usize, usize)) -> Array2<f64> {
        let noise = self.noise;
        Array2::from_shape_simple_fn(shape, || match noise {
            Noise::None => 0.0,
            Noise::Gaussian(sd) => sd * self.normal(),
            Noise::Lattice(step) => step * (2.0 * self.normal()).round(),
        })
    }
}

impl Releases for KnownDensity {
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        _estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        self.decide_calls += 1;
        self.asked.clear();
        for (c, accepted) in accepted.iter_mut().enumerate() {
            let (from, to) = (
                moves.thetas.row(c).to_vec(),
                moves.proposals.row(c).to_vec(),
            );
            let clip = moves.clip_bounds.map_or(f64::NAN, |c_all| c_all[c]);
            self.asked.push((moves.public[c], clip));
            let ratio = (self.log_likelihood)(&to) - (self.log_likelihood)(&from);
            let z = ratio + (self.tamper)(moves.public[c], &from, &to);
            let chance = match rule {
                Acceptance::Metropolis => z.exp(),
                Acceptance::Barker => 1.0 / (1.0 + (-z).exp()),
                Acceptance::Penalty { tau } => {
                    let sigma = 2.0 * clip * tau;
                    (z + sigma * self.normal() - 0.5 * sigma * sigma).exp()
                }
                Acceptance::NoisyBarker { .. } => {
                    return Err(Halt::Refused("not of this fake".into()));
                }
            };
            *accepted = self.rng.random::<f64>() < chance;
        }
        Ok(())
    }

    fn anchor(
        &mut self,
        _at: &[f64],
        _metric: &Metric,
        _noise: AnchorNoise,
    ) -> Result<Expansion, Halt> {
        Err(Halt::Refused(
            "a known density has no rows to anchor".into(),
        ))
    }

    fn gradients(
        &mut self,
        thetas: ArrayView2<'_, f64>,
        _noise: GradientNoise,
    ) -> Result<Array2<f64>, Halt> {
        assert!(thetas.iter().all(|t| t.is_finite()), "asked at {thetas}");
        self.gradient_calls += 1;
        let noise = if self.script.is_empty() {
            self.fresh_noise(thetas.dim())
        } else {
            self.script.remove(0)
        };
        let mut answer = noise.clone();
        for (mut row, theta) in answer.rows_mut().into_iter().zip(thetas.rows()) {
            let mut g = (self.gradient)(&theta.to_vec());
            let length = g.iter().map(|g| g * g).sum::<f64>().sqrt();
            let factor = self.scale * (self.clip / length).min(1.0);
            g.iter_mut().for_each(|g| *g *= factor);
            if let Noise::Lattice(step) = self.noise {
                g.iter_mut().for_each(|g| *g = step * (*g / step).trunc());
            }
            row.iter_mut().zip(g).for_each(|(r, g)| *r += g);
        }
        self.drawn.push(noise);
        Ok(answer)
    }
}
