//! Decisions on batches of fixed size, drawn without replacement by secret coins.

use super::Curator;
use super::cost::batch_noise;
use super::full_batch::corrected;
use crate::engine::RatioQuery;
use crate::privacy::mechanism::{self, Secret};
use crate::privacy::releases::{Acceptance, Halt, Moves};

impl Curator {
    /// Decides the live moves, put in `query` and paid for, each on a batch of its own.
    pub(super) fn decide_fixed_batch(
        &mut self,
        query: &RatioQuery,
        moves: &Moves<'_>,
        live: &[usize],
        batch: usize,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        let Acceptance::NoisyBarker { variance } = rule else {
            // Its cost refuses it before anything is charged.
            return Err(Halt::Failed(
                "a batch of fixed size needs the noisy test".into(),
            ));
        };
        self.listed.resize_with(query.chains(), Vec::new);
        self.answers.resize_with(query.chains(), Vec::new);
        for rows in &mut self.listed {
            mechanism::draw_subset(&mut self.secret, self.population.rows, batch, rows);
        }
        self.engine
            .ratio_rows(query, &self.listed, &mut self.answers)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        for (k, &c) in live.iter().enumerate() {
            let grid = query.grid(k);
            let noise = batch_noise(self.population.rows, grid, batch, variance)?;
            let correction = corrected(&mut self.correction, variance)?;
            let steps = Secret::seal(std::mem::take(&mut self.answers[k]));
            let (rng, h) = (&mut self.secret, moves.public[c]);
            accepted[c] = mechanism::subsampled_barker(rng, &steps, grid, noise, correction, h);
            self.answers[k] = mechanism::recycle(steps);
        }
        Ok(())
    }
}
