//! Regressions on a table in memory, exactly and without privacy: what reference, yardstick
//! and peers compute with.

use libm::lgamma;
use rayon::prelude::*;

use super::matrix;

/// Rows of one chunk: sums are added chunk after chunk, so that they are the same bits on any
/// number of threads.
const CHUNK: usize = 4096;

/// A regression's likelihood as a function of η = x·θ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// y is 0 or 1.
    Logistic,
    /// y ~ N(η, variance).
    Linear { variance: f64 },
    /// y ~ Poisson(e^η).
    Poisson,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Model::Logistic => "logistic",
            Model::Linear { .. } => "linear",
            Model::Poisson => "poisson",
        }
    }

    /// log p(y | η).
    pub fn log_density(self, eta: f64, y: f64) -> f64 {
        match self {
            Model::Logistic => y * eta - eta.max(0.0) - (-eta.abs()).exp().ln_1p(),
            Model::Linear { variance } => {
                -0.5 * ((y - eta).powi(2) / variance + (std::f64::consts::TAU * variance).ln())
            }
            Model::Poisson => y * eta - eta.exp() - lgamma(y + 1.0),
        }
    }

    /// d/dη of it.
    pub fn score(self, eta: f64, y: f64) -> f64 {
        match self {
            Model::Logistic => y - sigmoid(eta),
            Model::Linear { variance } => (y - eta) / variance,
            Model::Poisson => y - eta.exp(),
        }
    }

    /// −d²/dη².
    pub fn weight(self, eta: f64) -> f64 {
        match self {
            Model::Logistic => sigmoid(eta) * sigmoid(-eta),
            Model::Linear { variance } => 1.0 / variance,
            Model::Poisson => eta.exp(),
        }
    }

    /// −d³/dη³.
    pub fn third(self, eta: f64) -> f64 {
        match self {
            Model::Logistic => self.weight(eta) * (1.0 - 2.0 * sigmoid(eta)),
            Model::Linear { .. } => 0.0,
            Model::Poisson => eta.exp(),
        }
    }
}

pub fn sigmoid(eta: f64) -> f64 {
    1.0 / (1.0 + (-eta).exp())
}

/// Rows of features, zeros left out: most columns are indicators of levels.
#[derive(Clone, Debug, Default)]
pub struct Design {
    pub d: usize,
    ends: Vec<u32>,
    entries: Vec<(u16, f32)>,
}

impl Design {
    pub fn new(d: usize) -> Self {
        Design {
            d,
            ..Design::default()
        }
    }

    /// Adds a row; columns ascend. Values are rounded to f32, as `dpmc` stores them.
    pub fn push(&mut self, row: impl IntoIterator<Item = (usize, f64)>) {
        let stored = row.into_iter().map(|(j, v)| (j as u16, v as f32));
        self.entries.extend(stored.filter(|(_, v)| *v != 0.0));
        self.ends.push(self.entries.len() as u32);
    }

    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    pub fn row(&self, i: usize) -> &[(u16, f32)] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.entries[start as usize..self.ends[i] as usize]
    }

    pub fn dense(&self, i: usize) -> Vec<f64> {
        let mut x = vec![0.0; self.d];
        for &(j, v) in self.row(i) {
            x[j as usize] = f64::from(v);
        }
        x
    }

    pub fn eta(&self, i: usize, theta: &[f64]) -> f64 {
        let terms = self.row(i).iter();
        terms.map(|&(j, v)| f64::from(v) * theta[j as usize]).sum()
    }

    pub fn norm(&self, i: usize) -> f64 {
        let squares = self.row(i).iter().map(|(_, v)| f64::from(*v).powi(2));
        squares.sum::<f64>().sqrt()
    }

    /// Σ of `row(i, η_i)` = (value, score, weight): values, `score·x` and, where asked for,
    /// `weight·xxᵀ`.
    pub fn sums<F>(&self, theta: &[f64], curvature: bool, row: F) -> Sums
    where
        F: Fn(usize, f64) -> [f64; 3] + Sync,
    {
        let d = self.d;
        let chunks: Vec<Sums> = (0..self.rows().div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut sums = Sums::zero(d, curvature);
                for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(self.rows()) {
                    let [value, score, weight] = row(i, self.eta(i, theta));
                    sums.value += value;
                    let x = self.row(i);
                    for (a, &(j, v)) in x.iter().enumerate() {
                        let (j, v) = (j as usize, f64::from(v));
                        sums.gradient[j] += score * v;
                        if curvature {
                            let (line, wv) = (&mut sums.curvature[j * d..][..d], weight * v);
                            for &(k, u) in &x[..=a] {
                                line[k as usize] += wv * f64::from(u);
                            }
                        }
                    }
                }
                sums
            })
            .collect();
        let mut total = Sums::zero(d, curvature);
        for part in &chunks {
            total.value += part.value;
            add(&mut total.gradient, &part.gradient);
            add(&mut total.curvature, &part.curvature);
        }
        if curvature {
            for j in 0..d {
                for k in 0..j {
                    total.curvature[k * d + j] = total.curvature[j * d + k];
                }
            }
        }
        total
    }
}

fn add(to: &mut [f64], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
}

/// Sums over rows.
pub struct Sums {
    pub value: f64,
    pub gradient: Vec<f64>,
    pub curvature: Vec<f64>,
}

impl Sums {
    fn zero(d: usize, curvature: bool) -> Self {
        Sums {
            value: 0.0,
            gradient: vec![0.0; d],
            curvature: vec![0.0; if curvature { d * d } else { 0 }],
        }
    }
}

/// Rows, labels, model and prior N(0, 1/precision) of each coefficient.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    pub design: &'a Design,
    pub y: &'a [f64],
    pub model: Model,
    /// Public bound on a row's norm.
    pub row_norm: f64,
    /// Public bounds on a label.
    pub label: [f64; 2],
    /// Of the prior.
    pub precision: f64,
}

impl Problem<'_> {
    /// Log posterior up to a constant, its gradient and, where asked for, minus its Hessian.
    pub fn sums(&self, theta: &[f64], curvature: bool) -> Sums {
        let (model, y) = (self.model, self.y);
        let mut sums = self.design.sums(theta, curvature, |i, eta| {
            let weight = if curvature { model.weight(eta) } else { 0.0 };
            [model.log_density(eta, y[i]), model.score(eta, y[i]), weight]
        });
        sums.value -= 0.5 * self.precision * matrix::dot(theta, theta);
        for (g, t) in sums.gradient.iter_mut().zip(theta) {
            *g -= self.precision * t;
        }
        if curvature {
            sums.curvature = matrix::with_ridge(&sums.curvature, self.design.d, self.precision);
        }
        sums
    }

    /// Log posterior alone.
    pub fn value(&self, theta: &[f64]) -> f64 {
        let rows = 0..self.design.rows().div_ceil(CHUNK);
        let parts: Vec<f64> = rows
            .into_par_iter()
            .map(|chunk| {
                let rows = chunk * CHUNK..((chunk + 1) * CHUNK).min(self.design.rows());
                rows.map(|i| {
                    let eta = self.design.eta(i, theta);
                    self.model.log_density(eta, self.y[i])
                })
                .sum()
            })
            .collect();
        parts.iter().sum::<f64>() - 0.5 * self.precision * matrix::dot(theta, theta)
    }

    /// Where log posterior − tilt·θ is largest, by Newton steps from the origin, halved until
    /// the objective grows. The tilt is objective perturbation's.
    pub fn mode(&self, tilt: &[f64]) -> Option<Vec<f64>> {
        let mut theta = vec![0.0; self.design.d];
        let mut last = f64::NEG_INFINITY;
        for _ in 0..200 {
            let sums = self.sums(&theta, true);
            let value = sums.value - matrix::dot(tilt, &theta);
            let slope: Vec<f64> = sums.gradient.iter().zip(tilt).map(|(g, b)| g - b).collect();
            let l = matrix::cholesky(&sums.curvature, self.design.d)?;
            let mut step = matrix::solve(&l, &slope);
            // What the step promises, in nats.
            let gain = 0.5 * matrix::dot(&step, &slope);
            if !gain.is_finite() {
                return None;
            }
            // The rounding of a sum of many rows is all that is left to gain.
            if gain < 1e-9 || (gain < 1e-6 && value <= last) {
                return Some(theta);
            }
            last = value;
            let here = theta.clone();
            for _ in 0..60 {
                theta = here.iter().zip(&step).map(|(t, s)| t + s).collect();
                let there = self.value(&theta) - matrix::dot(tilt, &theta);
                if there >= value - 1e-9 * value.abs() {
                    break;
                }
                step.iter_mut().for_each(|s| *s *= 0.5);
            }
        }
        None
    }
}

/// Mean of −log p(y | draws) over the rows of a test table, nats: of the draws' average
/// density.
pub fn log_loss(model: Model, design: &Design, y: &[f64], draws: &[Vec<f64>]) -> f64 {
    let losses: Vec<f64> = (0..design.rows())
        .into_par_iter()
        .map(|i| {
            let densities = draws
                .iter()
                .map(|theta| model.log_density(design.eta(i, theta), y[i]).exp());
            let average = densities.sum::<f64>() / draws.len() as f64;
            // One row that a wild estimate calls impossible must not make the mean infinite.
            -average.max(1e-12).ln()
        })
        .collect();
    losses.iter().sum::<f64>() / losses.len() as f64
}
