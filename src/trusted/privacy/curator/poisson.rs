//! Decisions on Poisson minibatches: rows drawn by secret coins, evaluated and thinned.

use super::Curator;
use super::cost::{penalty_variance, poisson_rates, weight_grid};
use crate::engine::RatioQuery;
use crate::privacy::mechanism::{self, Drawn, Secret};
use crate::privacy::releases::{Acceptance, Halt, Lambda, Moves};

impl Curator {
    /// Decides the live moves, put in `query` and paid for, on a minibatch of each chain's
    /// own.
    pub(super) fn decide_poisson(
        &mut self,
        query: &RatioQuery,
        moves: &Moves<'_>,
        live: &[usize],
        lambda: Lambda,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        let rates = self.draw_minibatches(query, lambda)?;
        for (k, &c) in live.iter().enumerate() {
            let (h, grid) = (moves.public[c], query.grid(k));
            let steps = Secret::seal(std::mem::take(&mut self.answers[k]));
            let per_row = rates[k].0 / self.population.total;
            let rng = &mut self.secret;
            let drawn = Drawn {
                steps: &steps,
                rows: &self.listed[k],
                shares: self.shares.as_ref(),
            };
            accepted[c] = match rule {
                Acceptance::Barker => {
                    let ratio = mechanism::poisson_estimate(rng, &drawn, grid, per_row);
                    mechanism::barker(rng, ratio, h)
                }
                Acceptance::Metropolis => {
                    let ratio = mechanism::poisson_estimate(rng, &drawn, grid, per_row);
                    mechanism::metropolis(rng, ratio, h)
                }
                Acceptance::Penalty { tau } => {
                    let weights = weight_grid(rates[k].0, rates[k].1)?;
                    let variance = penalty_variance(weights, tau)?;
                    let sum = mechanism::poisson_weights(rng, &drawn, grid, per_row, weights);
                    mechanism::penalty(rng, sum, weights, variance, h)
                }
                Acceptance::NoisyBarker { .. } => {
                    // Its cost refuses it before anything is charged.
                    return Err(Halt::Failed(
                        "the noisy test on a Poisson minibatch is not built".into(),
                    ));
                }
            };
            self.answers[k] = mechanism::recycle(steps);
        }
        Ok(())
    }

    /// Draws each chain's batch and evaluates its rows (section 4, 1); (λ, Λ) of each.
    fn draw_minibatches(
        &mut self,
        query: &RatioQuery,
        lambda: Lambda,
    ) -> Result<Vec<(f64, f64)>, Halt> {
        let chains = query.chains();
        self.listed.resize_with(chains, Vec::new);
        self.answers.resize_with(chains, Vec::new);
        let mut rates = Vec::with_capacity(chains);
        for (k, rows) in self.listed.iter_mut().enumerate() {
            let (lambda, big) = poisson_rates(self.population, query.grid(k), lambda)?;
            mechanism::draw_rows(
                &mut self.secret,
                &self.poisson,
                lambda + big,
                (self.population.rows, self.shares.as_ref()),
                rows,
            );
            rates.push((lambda, big));
        }
        self.engine
            .ratio_rows(query, &self.listed, &mut self.answers)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        Ok(rates)
    }
}
