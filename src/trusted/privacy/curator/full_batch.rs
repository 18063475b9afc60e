//! Decisions on all rows: exact clipped sums, sealed, and what a mechanism makes of them.

use super::Curator;
use super::cost::{noise_units, penalty_variance, smallest_clip};
use crate::engine::{RatioQuery, RatioSum};
use crate::math::Correction;
use crate::privacy::mechanism::{self, Secret};
use crate::privacy::releases::{Acceptance, Halt, Moves};

impl Curator {
    /// Decides the live moves, put in `query` and paid for, on all rows.
    pub(super) fn decide_full(
        &mut self,
        query: &RatioQuery,
        moves: &Moves<'_>,
        live: &[usize],
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        for (k, sum) in self.sums(query)?.into_iter().enumerate() {
            let (c, grid) = (live[k], query.grid(k));
            let h = moves.public[c];
            let rng = &mut self.secret;
            accepted[c] = match rule {
                Acceptance::Barker => mechanism::barker(rng, mechanism::full_batch(sum, grid), h),
                Acceptance::Metropolis => {
                    mechanism::metropolis(rng, mechanism::full_batch(sum, grid), h)
                }
                Acceptance::Penalty { tau } => {
                    let steps = penalty_variance(grid, tau)?;
                    mechanism::penalty(rng, sum, grid, steps, h)
                }
                Acceptance::NoisyBarker { variance } => {
                    let units = noise_units(grid, variance)?;
                    let correction = corrected(&mut self.correction, variance)?;
                    mechanism::noisy_barker(rng, sum, grid, units, correction, h)
                }
            };
        }
        Ok(())
    }

    /// Non-private runs without a given clip: double it until no row is clipped.
    pub(super) fn decide_unclipped(
        &mut self,
        moves: &Moves<'_>,
        live: &[usize],
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        if self.ledger.is_some() {
            return Err(Halt::Refused(
                "a private move needs a public clip bound".into(),
            ));
        }
        let mut clips: Vec<f64> = (0..moves.public.len())
            .map(|c| {
                (self.model.ratio_rate().unwrap_or(1.0) * distance(moves, c))
                    .max(smallest_clip(rule))
            })
            .collect();
        for &c in live {
            loop {
                let query = self.query(moves, &[c], &clips)?;
                let sum = self
                    .engine
                    .ratio_sums(&query)
                    .map_err(|e| Halt::Failed(e.to_string()))?;
                if sum[0].saturated == 0 || clips[c] > 1e20 {
                    break;
                }
                clips[c] *= 2.0;
            }
        }
        let query = self.query(moves, live, &clips)?;
        self.decide_full(&query, moves, live, rule, accepted)
    }

    /// The exact sums of the query, sealed.
    fn sums(&mut self, query: &RatioQuery) -> Result<Vec<Secret<RatioSum>>, Halt> {
        let sums = self
            .engine
            .ratio_sums(query)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        Ok(sums.into_iter().map(Secret::seal).collect())
    }
}

/// V_cor for this C, fitted once.
pub(super) fn corrected(
    cache: &mut Option<Correction>,
    variance: f64,
) -> Result<&Correction, Halt> {
    let kept = cache.take().filter(|c| c.variance() == variance);
    let fitted = kept.map_or_else(|| Correction::fit(variance), Ok);
    Ok(cache.insert(fitted.map_err(Halt::Refused)?))
}

/// ‖θ' − θ‖ of one chain's move.
pub(super) fn distance(moves: &Moves<'_>, chain: usize) -> f64 {
    moves
        .thetas
        .row(chain)
        .iter()
        .zip(moves.proposals.row(chain))
        .map(|(a, b)| (a - b) * (a - b))
        .sum::<f64>()
        .sqrt()
}
