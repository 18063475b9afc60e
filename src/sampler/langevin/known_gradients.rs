//! For tests: gradients of rows with a known Gaussian likelihood, noise included. No engine.

use ndarray::{Array2, ArrayView1, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use crate::model::Metric;
use crate::privacy::{
    Acceptance, AnchorNoise, Batch, Estimator, Expansion, GradientNoise, Halt, Moves, Releases,
};
use crate::sampler::PublicRng;

/// Rows x_i with `log p(x_i|θ) = −½ (x_i − θ)ᵀ Λ (x_i − θ)`.
pub(in crate::sampler) struct KnownGradients {
    rows: Vec<Vec<f64>>,
    /// Λ, d × d.
    precision: Array2<f64>,
    /// Whether rows enter a Poisson batch at random; else the batch's sum is its mean.
    pub subsample: bool,
    /// The noise in units of σ, where it is not drawn.
    pub fixed: Option<Vec<f64>>,
    pub rng: PublicRng,
    /// What was asked for.
    pub asked: Vec<GradientNoise>,
}

impl KnownGradients {
    pub fn new(rows: Vec<Vec<f64>>, precision: Array2<f64>, seed: u64) -> Self {
        KnownGradients {
            rows,
            precision,
            subsample: false,
            fixed: None,
            rng: PublicRng::seed_from_u64(seed),
            asked: Vec::new(),
        }
    }

    /// `count` rows that all lie at `at`, with likelihoods of diagonal precision
    /// `precision_j / count`: the posterior under a flat prior has `precision`.
    pub fn diagonal(count: usize, at: &[f64], precision: &[f64], seed: u64) -> Self {
        let d = at.len();
        let share = Array2::from_shape_fn((d, d), |(i, j)| {
            if i == j {
                precision[i] / count as f64
            } else {
                0.0
            }
        });
        Self::new(vec![at.to_vec(); count], share, seed)
    }

    fn row_gradient(&self, row: &[f64], theta: ArrayView1<'_, f64>, clip: Option<f64>) -> Vec<f64> {
        let gap: Vec<f64> = row.iter().zip(theta).map(|(x, t)| x - t).collect();
        let gradient = self.precision.dot(&ArrayView1::from(&gap)).to_vec();
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let factor = clip.map_or(1.0, |b| (b / norm).min(1.0));
        gradient.iter().map(|g| g * factor).collect()
    }
}

impl Releases for KnownGradients {
    fn decide(
        &mut self,
        _moves: &Moves<'_>,
        _estimator: Estimator,
        _rule: Acceptance,
        _accepted: &mut [bool],
    ) -> Result<(), Halt> {
        Err(Halt::Refused("gradients alone".into()))
    }

    fn anchor(
        &mut self,
        _at: &[f64],
        _metric: &Metric,
        _noise: AnchorNoise,
    ) -> Result<Expansion, Halt> {
        Err(Halt::Refused("gradients alone".into()))
    }

    fn gradients(
        &mut self,
        thetas: ArrayView2<'_, f64>,
        noise: GradientNoise,
    ) -> Result<Array2<f64>, Halt> {
        self.asked.push(noise);
        let rate = match noise.batch {
            Batch::All => 1.0,
            Batch::Poisson { rate } => rate,
        };
        let mut out = Array2::zeros(thetas.dim());
        for (theta, mut sum) in thetas.rows().into_iter().zip(out.rows_mut()) {
            for i in 0..self.rows.len() {
                let weight = match (self.subsample, self.rng.random::<f64>() < rate) {
                    (false, _) => rate,
                    (true, kept) => f64::from(u8::from(kept)),
                };
                let gradient = self.row_gradient(&self.rows[i], theta, noise.clip);
                for (s, g) in sum.iter_mut().zip(gradient) {
                    *s += weight * g;
                }
            }
            for (j, s) in sum.iter_mut().enumerate() {
                let z = match &self.fixed {
                    Some(fixed) => fixed[j],
                    None => StandardNormal.sample(&mut self.rng),
                };
                *s = (*s + noise.sigma * z) / rate;
            }
        }
        Ok(out)
    }
}
