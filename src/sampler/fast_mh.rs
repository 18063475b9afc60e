//! DP-Fast MH (Zhang & Zhang 2023) in its sound form: which estimator and which acceptance a
//! move gets, from its public clip bound alone (docs/proofs/guarantee.md).
//!
//! The paper's Algorithm 2 chooses by the drawn batch size, which is neither public nor
//! symmetric in θ and θ'; the rate λ + Λ is both. Where the paper adds no noise, Barker
//! acceptance takes the place of Metropolis, which is not private there.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::{ClipNorm, RandomWalk};
use crate::data::Population;
use crate::privacy::{Acceptance, Estimator, FastMhSettings, Halt, Lambda, Moves, Releases};

/// The dispatcher of `dp-fast-mh` and `dp-fast-mh-full`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastMh {
    /// λ, K and the ε, δ of a step; K = 0 is the full-batch form, which never draws a
    /// minibatch.
    pub settings: FastMhSettings,
    /// Rows, with their public bounds where they have some.
    pub population: Population,
}

impl FastMh {
    /// Estimator and acceptance of a move with clip bound c (nats), Λ = Nc, or c Σw_i where rows
    /// have bounds of their own: a Poisson minibatch where λ + Λ < K, else all rows; Barker
    /// acceptance where the paper adds no noise (`Δ₁ = 2 log(1 + Λ/λ) ≤ ε/(6pK)`, p = max w_i/Σw_i,
    /// 1/N without such bounds; `Δ₂ = 2c ≤ ε`), else noise σ₁Δ₁ or σ₂Δ₂ and its penalty.
    pub fn rule(&self, clip_bound: f64) -> (Estimator, Acceptance) {
        let s = &self.settings;
        let big = self.population.total * clip_bound;
        let (estimator, free, tau) = if s.lambda + big < s.batch_cap {
            let lambda = Lambda::Fixed(s.lambda);
            (
                Estimator::Poisson { lambda },
                self.is_free(big),
                s.sigma_minibatch(self.population.share()),
            )
        } else {
            let free = 2.0 * clip_bound <= s.epsilon;
            (Estimator::FullBatch, free, s.sigma_full())
        };
        let acceptance = if free {
            Acceptance::Barker
        } else {
            Acceptance::Penalty { tau }
        };
        (estimator, acceptance)
    }

    /// Whether a minibatch of this Λ gets no noise.
    fn is_free(&self, big: f64) -> bool {
        let s = &self.settings;
        2.0 * (big / s.lambda).ln_1p() <= s.occurrence_epsilon(self.population.share())
    }

    /// Clip bound of the largest move that gets a noisy minibatch, if there is one: without
    /// it every release has a ρ.
    pub fn largest_noisy_minibatch(&self) -> Option<f64> {
        let big = (self.settings.batch_cap - self.settings.lambda) * (1.0 - 1e-9);
        let clip = big / self.population.total;
        let noisy = |clip| {
            matches!(
                self.rule(clip),
                (Estimator::Poisson { .. }, Acceptance::Penalty { .. })
            )
        };
        (big > 0.0 && noisy(clip)).then_some(clip)
    }

    /// Clip bounds of the dearest moves on a minibatch: the largest with noise, and without.
    pub fn dearest_minibatches(&self) -> Vec<f64> {
        let s = &self.settings;
        let free = s.lambda * (0.5 * s.occurrence_epsilon(self.population.share())).exp_m1();
        let big = free.min(s.batch_cap - s.lambda) * (1.0 - 1e-9);
        let clip = (big > 0.0).then_some(big / self.population.total);
        self.largest_noisy_minibatch()
            .into_iter()
            .chain(clip)
            .collect()
    }
}

impl RandomWalk {
    /// Estimator and acceptance of a move with this clip bound, nats.
    pub fn rule(&self, clip_bound: f64) -> (Estimator, Acceptance) {
        match &self.fast_mh {
            Some(fast) => fast.rule(clip_bound),
            None => (self.estimator, self.acceptance),
        }
    }

    /// Whether every release has a ρ, so that a ledger of ρ can count them.
    pub fn has_rho(&self) -> bool {
        let noisy = self.fast_mh.and_then(|fast| fast.largest_noisy_minibatch());
        let fixed = matches!(
            (self.estimator, self.acceptance),
            (Estimator::FixedBatch { .. }, _)
                | (Estimator::Poisson { .. }, Acceptance::Penalty { .. })
        );
        noisy.is_none() && !fixed
    }

    /// Length of a move that all but one in 10^12 stay under, over ‖z‖ = √d: noise on a
    /// minibatch can be charged up to half of the rows, and longer moves would end the run.
    pub fn longest_move(&self, d: usize) -> f64 {
        if self.clip.is_some_and(|c| c.norm == ClipNorm::Constant) {
            return 1.0;
        }
        // Laurent & Massart 2000, Lemma 1: Pr[χ² ≥ d + 2√(dx) + 2x] ≤ e^−x.
        let (d, x) = (d as f64, 12.0 * std::f64::consts::LN_10);
        ((d + 2.0 * (d * x).sqrt() + 2.0 * x) / d).sqrt()
    }

    /// Clip bounds that stand for a step's: one of ‖z‖ = √d where all moves have the same
    /// rule, else the 16 middle quantiles of ‖z‖. Empty without a clip.
    pub fn typical_clips(&self, d: usize) -> Vec<f64> {
        let typical: Vec<f64> = self.typical_clip(d).into_iter().collect();
        let Ok(law) = ChiSquared::new(d as f64) else {
            return typical;
        };
        if self.fast_mh.is_none() {
            return typical;
        }
        let shares =
            (0..16).map(|i| (law.inverse_cdf((f64::from(i) + 0.5) / 16.0) / d as f64).sqrt());
        shares
            .flat_map(|share| typical.iter().map(move |c| c * share))
            .collect()
    }

    /// Asks for all decisions: at once, or once for every rule among the moves, where the
    /// other chains' are rejected at no cost. A later request that finds the budget spent
    /// leaves the earlier ones charged and unpublished.
    pub(super) fn decide(
        &self,
        moves: &Moves<'_>,
        releases: &mut dyn Releases,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        let (Some(fast), Some(clips)) = (&self.fast_mh, moves.clip_bounds) else {
            return releases.decide(moves, self.estimator, self.acceptance, accepted);
        };
        let rules: Vec<_> = clips.iter().map(|&c| fast.rule(c)).collect();
        for (first, &rule) in rules.iter().enumerate() {
            if rules[..first].contains(&rule) {
                continue;
            }
            let mine = |c: usize| {
                if rules[c] == rule {
                    moves.public[c]
                } else {
                    f64::NEG_INFINITY
                }
            };
            let public: Vec<f64> = (0..rules.len()).map(mine).collect();
            let mut part = vec![false; rules.len()];
            let moves = Moves {
                public: &public,
                ..*moves
            };
            releases.decide(&moves, rule.0, rule.1, &mut part)?;
            for (all, one) in accepted.iter_mut().zip(part) {
                *all |= one;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K = 20 of 100 rows, λ = 2, ε = 0.5: εN/(6K) = 0.4167, so minibatches are free up to
    /// Λ = 2(e^0.2083 − 1) = 0.4633 and drawn up to Λ = 18; all rows are free up to c = 0.25.
    #[test]
    fn branches_lie_where_the_paper_puts_them() {
        let settings = FastMhSettings {
            lambda: 2.0,
            batch_cap: 20.0,
            epsilon: 0.5,
            delta: 1e-5,
        };
        let fast = FastMh {
            settings,
            population: 100.into(),
        };
        let lambda = Lambda::Fixed(2.0);
        let poisson = Estimator::Poisson { lambda };
        let sigma1 =
            6.0 * 20.0 / (0.5 * 100.0) * (2.0 * (2.5 * 20.0 / (1e-5 * 100.0f64)).ln()).sqrt();
        let sigma2 = (2.0 * (1.25f64 / 1e-5).ln()).sqrt() / 0.5;
        let is = |clip: f64, estimator, tau: Option<f64>| {
            let (e, a) = fast.rule(clip);
            let close = match (a, tau) {
                (Acceptance::Barker, None) => true,
                (Acceptance::Penalty { tau: t }, Some(tau)) => (t / tau - 1.0).abs() < 1e-12,
                _ => false,
            };
            assert!(e == estimator && close, "{clip}: {e:?} {a:?}");
        };
        is(0.0046, poisson, None);
        is(0.0047, poisson, Some(sigma1));
        is(0.1799, poisson, Some(sigma1));
        is(0.1801, Estimator::FullBatch, None);
        is(0.2499, Estimator::FullBatch, None);
        is(0.2501, Estimator::FullBatch, Some(sigma2));
        let edge = fast.largest_noisy_minibatch().unwrap();
        assert!((edge - 0.18).abs() < 1e-6);
        let dearest = fast.dearest_minibatches();
        assert!(dearest[0] == edge && (dearest[1] - 0.004_633).abs() < 1e-6);
        is(dearest[1], poisson, None);
        // The papers' mixture: no move ever gets noise on a minibatch.
        let mixture = FastMh {
            settings: FastMhSettings {
                lambda: 10.0,
                batch_cap: 60.0,
                epsilon: 0.05,
                delta: 1e-5,
            },
            population: 50_000.into(),
        };
        assert_eq!(mixture.largest_noisy_minibatch(), None);
        let full = FastMh {
            settings: FastMhSettings {
                batch_cap: 0.0,
                ..settings
            },
            population: 100.into(),
        };
        assert_eq!(full.rule(1e-9).0, Estimator::FullBatch);
        assert_eq!(full.largest_noisy_minibatch(), None);
        assert!(full.dearest_minibatches().is_empty());
    }
}
