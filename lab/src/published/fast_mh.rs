//! DP-Fast MH (Zhang & Zhang 2023, Algorithm 2). Not private: row bounds, batches and noise
//! scales come from the rows. Nor reversible: the test B < K is not symmetric
//! (docs/proofs/guarantee.md says why, and what the sound form does).

use std::sync::Arc;

use ndarray::{Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Poisson, StandardNormal};
use statrs::distribution::DiscreteCDF;

use dpmc::data::PublicRows;
use dpmc::model::{Metric, Model, Moments, Support};
use dpmc::privacy::{
    Acceptance, AnchorNoise, Estimator, Expansion, FastMhSettings, GradientNoise, Halt,
    MomentNoise, Moves, Releases,
};

/// Largest expected batch.
const MOST_ROWS: f64 = 134_217_728.0;

/// The bound `c_i` of `|r_i|/‖θ'−θ‖` that the paper takes from a row itself.
#[derive(Clone, Copy, Debug)]
pub enum RowBound {
    /// Logistic regression: κ‖x‖.
    Norm,
    /// The mixture of the paper's section 5 with this variance: with `|θ_j| ≤ b_j`, κ times the
    /// norm of `((2|x| + 2b₁ + b₂)/σ², (|x| + b₁ + b₂)/σ²)`; the authors' code has 3 for both b.
    Mixture { variance: f64 },
}

impl RowBound {
    /// c of a row, nats a unit of θ; `None` where the model's support has no box.
    fn of(self, row: &[f64], model: &dyn Model) -> Option<f64> {
        match self {
            RowBound::Norm => {
                let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                Some(model.tempering() * norm)
            }
            RowBound::Mixture { variance } => {
                let Support::Box(b) = &model.prior().support else {
                    return None;
                };
                let x = row[0].abs();
                let second = x + b[0] + b[1];
                Some(model.tempering() * (x + b[0] + second).hypot(second) / variance)
            }
        }
    }
}

/// Decisions of Algorithm 2 over public rows, one chain after the other.
pub struct PublishedFastMh {
    settings: FastMhSettings,
    model: Arc<dyn Model>,
    /// N × d, row after row.
    rows: Vec<f64>,
    labels: Vec<f64>,
    /// `c_i`.
    bounds: Vec<f64>,
    /// C = Σ c_i.
    total: f64,
    largest: f64,
    table: WeightedAliasIndex<f64>,
    rng: ChaCha20Rng,
    /// Rows that its decisions read in expectation, so far.
    read: f64,
}

impl PublishedFastMh {
    /// # Errors
    /// A message where no row has a positive finite bound.
    pub fn new(
        rows: PublicRows<'_>,
        model: Arc<dyn Model>,
        bound: RowBound,
        settings: FastMhSettings,
        seed: u64,
    ) -> Result<Self, String> {
        if rows.width() != model.features() {
            return Err("rows with an offset cannot be bounded here".into());
        }
        let labels = match model.labelled() {
            true => rows.numbers(),
            false => Vec::new(),
        };
        let rows: Vec<f64> = rows.rows().into_iter().map(f64::from).collect();
        let each = rows.chunks(model.features());
        let bounds = each
            .map(|row| bound.of(row, &*model))
            .collect::<Option<_>>();
        let bounds: Vec<f64> = bounds.ok_or("the model's parameters need a box")?;
        let table = WeightedAliasIndex::new(bounds.clone())
            .map_err(|e| format!("rows cannot be drawn by their bounds: {e}"))?;
        Ok(PublishedFastMh {
            settings,
            model,
            rows,
            labels,
            total: bounds.iter().sum(),
            largest: bounds.iter().copied().fold(0.0, f64::max),
            bounds,
            table,
            rng: ChaCha20Rng::seed_from_u64(seed),
            read: 0.0,
        })
    }

    /// Rows that its decisions read in expectation over their batches, so far.
    pub fn rows_read(&self) -> f64 {
        self.read
    }

    fn log_ratio(&self, i: usize, (theta, proposal): (&[f64], &[f64])) -> f64 {
        let d = self.model.features();
        let label = self.labels.get(i).copied().unwrap_or(0.0);
        let row = &self.rows[i * d..(i + 1) * d];
        self.model.log_ratio(row, label, theta, proposal)
    }

    /// TunaMH's estimate from `size` drawn rows (Zhang 2020, Algorithm 1), nats. `length` is
    /// ‖θ'−θ‖.
    fn estimate(&mut self, size: f64, ends: (&[f64], &[f64]), length: f64) -> f64 {
        let (big, lambda) = (self.total * length, self.settings.lambda);
        let mut sum = 0.0;
        for _ in 0..size as u64 {
            let i = self.table.sample(&mut self.rng);
            let rate = self.bounds[i];
            let ratio = self.log_ratio(i, ends);
            let keep = (lambda * rate + self.total * 0.5 * (rate * length - ratio))
                / (rate * (lambda + big));
            if self.rng.random::<f64>() < keep {
                sum += 2.0 * (self.total * ratio / (rate * (big + 2.0 * lambda))).atanh();
            }
        }
        sum
    }

    /// One step of Algorithm 2, with public part `h` of the log ratio.
    fn step(&mut self, ends: (&[f64], &[f64]), h: f64) -> Result<bool, Halt> {
        let s = self.settings;
        let gaps = ends.0.iter().zip(ends.1).map(|(a, b)| (a - b) * (a - b));
        let length = gaps.sum::<f64>().sqrt();
        if length == 0.0 {
            return Ok(true);
        }
        let big = self.total * length;
        if !(s.lambda > 0.0 && s.lambda + big < MOST_ROWS) {
            return Err(Halt::Refused(format!(
                "a minibatch of lambda = {:e}, Lambda = {big:e} cannot be drawn; choose a smaller step or lambda",
                s.lambda
            )));
        }
        let n = self.bounds.len();
        let share = self.largest / self.total;
        let batch = Poisson::new(s.lambda + big).map_err(|e| Halt::Failed(e.to_string()))?;
        let size = batch.sample(&mut self.rng);
        self.read += rows_of_step(&s, big, n as f64);
        let (ratio, sensitivity, free, sigma) = if size < s.batch_cap {
            let ratio = self.estimate(size, ends, length);
            let sensitivity = 2.0 * (big / s.lambda).ln_1p();
            let free = s.occurrence_epsilon(share);
            (ratio, sensitivity, free, s.sigma_minibatch(share))
        } else {
            let ratio = (0..n).map(|i| self.log_ratio(i, ends)).sum();
            let sensitivity = 2.0 * self.largest * length;
            (ratio, sensitivity, s.epsilon, s.sigma_full())
        };
        // Read literally the penalty would stay where the noise goes.
        let sd = match sensitivity <= free {
            true => 0.0,
            false => sigma * sensitivity,
        };
        if sd.is_nan() {
            return Err(Halt::Refused(
                "step_delta exceeds 2.5 K max(c)/C: the minibatch's noise has no scale; choose a smaller step_delta".into(),
            ));
        }
        let normal: f64 = StandardNormal.sample(&mut self.rng);
        let log_ratio = ratio + h + sd * normal - 0.5 * sd * sd;
        let u: f64 = self.rng.random();
        Ok(log_ratio >= 0.0 || u < log_ratio.exp())
    }
}

/// `E[B; B < K] + N Pr(B ≥ K)`, B ~ Poisson(λ + Λ).
fn rows_of_step(settings: &FastMhSettings, big: f64, rows: f64) -> f64 {
    let rate = settings.lambda + big;
    let Ok(batch) = statrs::distribution::Poisson::new(rate) else {
        return rows;
    };
    // The largest batch under K; E[B; B ≤ m] = rate · Pr(B ≤ m−1).
    let most = settings.batch_cap.ceil() - 1.0;
    let at_most = |m: f64| if m < 0.0 { 0.0 } else { batch.cdf(m as u64) };
    rate * at_most(most - 1.0) + rows * (1.0 - at_most(most))
}

fn decides_only<T>() -> Result<T, Halt> {
    Err(Halt::Refused(
        "DP-Fast MH as published decides moves and releases nothing else".into(),
    ))
}

/// Estimator, acceptance and clip bounds of a request are not looked at: the algorithm has its own.
impl Releases for PublishedFastMh {
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        _: Estimator,
        _: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        for (c, accepted) in accepted.iter_mut().enumerate() {
            let h = moves.public[c];
            let (theta, proposal) = (moves.thetas.row(c), moves.proposals.row(c));
            let (theta, proposal) = (theta.to_vec(), proposal.to_vec());
            *accepted = h > f64::NEG_INFINITY && self.step((&theta, &proposal), h)?;
        }
        Ok(())
    }

    fn anchor(&mut self, _: &[f64], _: &Metric, _: AnchorNoise) -> Result<Expansion, Halt> {
        decides_only()
    }

    fn moments(&mut self, _: usize, _: Option<MomentNoise>) -> Result<Moments, Halt> {
        decides_only()
    }

    fn gradients(&mut self, _: ArrayView2<'_, f64>, _: GradientNoise) -> Result<Array2<f64>, Halt> {
        decides_only()
    }
}

#[cfg(test)]
#[path = "fast_mh_tests.rs"]
mod tests;
