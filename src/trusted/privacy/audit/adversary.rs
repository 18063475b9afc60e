//! What an adversary who sees every release of a run makes of it: the log likelihood ratio
//! of D against D', added up release by release. No event tells the two apart better than a
//! threshold on it (Neyman & Pearson).

use ndarray::{Array2, ArrayView2};

use crate::math::normal::below;
use crate::model::{Metric, Moments};
use crate::privacy::curator::Curator;
use crate::privacy::releases::{
    Acceptance, AnchorNoise, Batch, Estimator, Expansion, GradientNoise, Halt, MomentNoise, Moves,
    Releases,
};

/// Probabilities are not taken to be smaller, so that no score is infinite.
const LEAST: f64 = 1e-300;

/// A private curator and the scores of what it released. On D the row that differs has the
/// gradient `+b` along the first parameter and favours moves along it; on D' the opposite.
pub(super) struct Adversary {
    curator: Curator,
    scores: Vec<f64>,
}

impl Adversary {
    pub fn new(curator: Curator) -> Self {
        Adversary {
            curator,
            scores: Vec::new(),
        }
    }

    pub fn curator(&self) -> &Curator {
        &self.curator
    }

    /// The score of every chain since the last call, nats.
    pub fn take_scores(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.scores)
    }

    /// Asks, on a fresh ledger where the last one is spent (nothing was charged then).
    fn ask<T>(
        &mut self,
        mut question: impl FnMut(&mut Curator) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        match question(&mut self.curator) {
            Err(Halt::BudgetSpent(_)) => {
                if let Some(ledger) = self.curator.ledger_mut() {
                    *ledger = ledger.renewed();
                }
                question(&mut self.curator)
            }
            other => other,
        }
    }

    fn add(&mut self, chain: usize, score: f64) {
        if self.scores.len() <= chain {
            self.scores.resize(chain + 1, 0.0);
        }
        self.scores[chain] += score;
    }
}

impl Releases for Adversary {
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        self.ask(|curator| curator.decide(moves, estimator, rule, accepted))?;
        let clips = moves.clip_bounds.unwrap_or_default();
        let ends = moves.thetas.rows().into_iter().zip(moves.proposals.rows());
        let public = moves.public.iter().zip(accepted.iter());
        for (c, (((theta, proposal), (&h, &bit)), &clip)) in ends.zip(public).zip(clips).enumerate()
        {
            let ratio = clip * (proposal[0] - theta[0]).signum();
            self.add(c, bit_score(rule, ratio, h, bit));
        }
        Ok(())
    }

    fn anchor(
        &mut self,
        at: &[f64],
        metric: &Metric,
        noise: AnchorNoise,
    ) -> Result<Expansion, Halt> {
        self.ask(|curator| curator.anchor(at, metric, noise))
    }

    fn moments(&mut self, degree: usize, noise: Option<MomentNoise>) -> Result<Moments, Halt> {
        self.ask(|curator| curator.moments(degree, noise))
    }

    fn gradients(
        &mut self,
        thetas: ArrayView2<'_, f64>,
        noise: GradientNoise,
    ) -> Result<Array2<f64>, Halt> {
        let released = self.ask(|curator| curator.gradients(thetas, noise))?;
        let shift = noise.clip.unwrap_or_default() / noise.sigma;
        for (c, row) in released.rows().into_iter().enumerate() {
            self.add(c, gradient_score(noise.batch, shift, row[0] / noise.sigma));
        }
        Ok(released)
    }
}

/// Of a released gradient: `value` is its first coordinate over σ, `shift` is b over σ.
fn gradient_score(batch: Batch, shift: f64, value: f64) -> f64 {
    match batch {
        Batch::All => 2.0 * shift * value,
        Batch::Poisson { rate } => {
            let y = rate * value;
            let log = |y: f64| (rate * (shift * y - 0.5 * shift * shift).exp_m1()).ln_1p();
            log(y) - log(-y)
        }
    }
}

/// Of an accept bit whose log ratio is `ratio` on D and its negation on D'.
fn bit_score(rule: Acceptance, ratio: f64, h: f64, accepted: bool) -> f64 {
    let log = |ratio: f64| {
        let p = acceptance(rule, ratio, h);
        let p = if accepted { p } else { 1.0 - p };
        p.max(LEAST).ln()
    };
    log(ratio) - log(-ratio)
}

/// Probability with which a move is accepted.
fn acceptance(rule: Acceptance, ratio: f64, h: f64) -> f64 {
    let z = ratio + h;
    match rule {
        Acceptance::Barker => 1.0 / (1.0 + (-z).exp()),
        // E min(1, e^{m + ξ}), ξ ~ N(0, σ²), m = z − σ²/2.
        Acceptance::Penalty { tau } => {
            let sigma = 2.0 * ratio.abs() * tau;
            let m = z - 0.5 * sigma * sigma;
            let rest = z.exp() * below(-m / sigma - sigma);
            below(m / sigma) + if rest.is_finite() { rest } else { 0.0 }
        }
        // Not told apart by this adversary.
        Acceptance::Metropolis | Acceptance::NoisyBarker { .. } => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores are log likelihood ratios: their exponentials have mean 1 under D', here by
    /// quadrature over the mixture, and for the bit by its two outcomes.
    #[test]
    fn scores_are_log_likelihood_ratios() {
        let normal = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        for (batch, q, shift) in [
            (Batch::All, 1.0, 0.4),
            (Batch::Poisson { rate: 0.3 }, 0.3, 1.5),
        ] {
            let h = 1e-3;
            let (mut off, mut odd) = (0.0, 0.0);
            for i in -12_000..12_000 {
                let y = h * f64::from(i);
                let score = gradient_score(batch, shift, y / q);
                off += h * score.exp() * ((1.0 - q) * normal(y) + q * normal(y + shift));
                odd += h * score * normal(y);
            }
            assert!((off - 1.0).abs() < 1e-9 && odd.abs() < 1e-4, "{off} {odd}");
        }
        for rule in [Acceptance::Barker, Acceptance::Penalty { tau: 0.7 }] {
            for h in [-3.0, 0.0, 2.0] {
                let other = |bit| {
                    let p = acceptance(rule, -0.8, h);
                    if bit { p } else { 1.0 - p }
                };
                let mean: f64 = [true, false]
                    .map(|bit| other(bit) * bit_score(rule, 0.8, h, bit).exp())
                    .iter()
                    .sum();
                assert!((mean - 1.0).abs() < 1e-12);
                // Detailed balance: a(z) = e^z a(−z).
                let balance = acceptance(rule, 0.8, h) / acceptance(rule, -0.8, -h);
                assert!((balance / (0.8 + h).exp() - 1.0).abs() < 1e-12, "{rule:?}");
            }
        }
    }
}
