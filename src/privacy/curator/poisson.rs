//! Decisions on Poisson minibatches: rows drawn by secret coins, evaluated and thinned.

use super::Curator;
use super::cost::poisson_rates;
use crate::engine::RatioQuery;
use crate::privacy::mechanism::{self, SealedRatio, Secret};
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
        let ratios = self.poisson_ratios(query, lambda)?;
        for (&c, ratio) in live.iter().zip(ratios) {
            let h = moves.public[c];
            accepted[c] = match rule {
                Acceptance::Barker => mechanism::barker(&mut self.secret, ratio, h),
                Acceptance::Metropolis => mechanism::metropolis(&mut self.secret, ratio, h),
                Acceptance::Penalty { .. } | Acceptance::NoisyBarker { .. } => {
                    // Its cost refuses it before anything is charged.
                    return Err(Halt::Failed(
                        "penalty on a Poisson minibatch is not built".into(),
                    ));
                }
            };
        }
        Ok(())
    }

    /// Draws each chain's batch, evaluates its rows and thins them (section 4, 1–3).
    fn poisson_ratios(
        &mut self,
        query: &RatioQuery,
        lambda: Lambda,
    ) -> Result<Vec<SealedRatio>, Halt> {
        let chains = query.chains();
        self.listed.resize_with(chains, Vec::new);
        self.answers.resize_with(chains, Vec::new);
        let mut rates = Vec::with_capacity(chains);
        for (k, rows) in self.listed.iter_mut().enumerate() {
            let (lambda, big) = poisson_rates(self.rows, query.grid(k), lambda)?;
            mechanism::draw_rows(
                &mut self.secret,
                &self.poisson,
                lambda + big,
                self.rows,
                rows,
            );
            rates.push(lambda / self.rows as f64);
        }
        self.engine
            .ratio_rows(query, &self.listed, &mut self.answers)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        let mut ratios = Vec::with_capacity(chains);
        for (k, answers) in self.answers.iter_mut().enumerate() {
            let steps = Secret::seal(std::mem::take(answers));
            ratios.push(mechanism::poisson_estimate(
                &mut self.secret,
                &steps,
                query.grid(k),
                rates[k],
            ));
            *answers = mechanism::recycle(steps);
        }
        Ok(ratios)
    }
}
