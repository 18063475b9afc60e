//! DP-Fast MH to the letter (Zhang & Zhang 2023, Algorithm 2) on real rows. Not private: row
//! bounds, batches and noise scales come from the rows (mathematics, section 12).

use super::Curator;
use super::full_batch::distance;
use crate::engine::RatioQuery;
use crate::privacy::mechanism::{self, RowRates, Secret};
use crate::privacy::releases::{FastMhSettings, Halt, Moves};

/// Largest expected batch.
const MOST_ROWS: f64 = 134_217_728.0;

impl Curator {
    /// Decides the live moves one by one.
    pub(super) fn decide_published(
        &mut self,
        moves: &Moves<'_>,
        live: &[usize],
        settings: FastMhSettings,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        if self.ledger.is_some() {
            return Err(Halt::Refused(
                "published DP-Fast MH is not private; leave 'as_published' out, or run it with --not-private".into(),
            ));
        }
        let rates = match self.row_rates.take() {
            Some(rates) => rates,
            None => self.measure_rows()?,
        };
        let done = live.iter().try_for_each(|&c| {
            accepted[c] = self.published_step(moves, c, settings, &rates)?;
            Ok(())
        });
        self.row_rates = Some(rates);
        done
    }

    /// One step of Algorithm 2.
    fn published_step(
        &mut self,
        moves: &Moves<'_>,
        chain: usize,
        s: FastMhSettings,
        rates: &RowRates,
    ) -> Result<bool, Halt> {
        let (length, h) = (distance(moves, chain), moves.public[chain]);
        let (big, clip) = (rates.total * length, rates.largest * length);
        if clip < f64::powi(2.0, -80) {
            return Ok(moves.thetas.row(chain) == moves.proposals.row(chain));
        }
        if !(s.lambda > 0.0 && s.lambda + big < MOST_ROWS) {
            return Err(Halt::Refused(format!(
                "a minibatch of lambda = {:e}, Lambda = {big:e} cannot be drawn; choose a smaller step or lambda",
                s.lambda
            )));
        }
        // A row at its own bound must not be clipped by the grid.
        let clip_bound = clip * (1.0 + 1e-5);
        let (theta, proposal) = (moves.thetas.row(chain), moves.proposals.row(chain));
        let (theta, proposal) = (theta.to_vec(), proposal.to_vec());
        let query = RatioQuery::new(&*self.model, &[&theta], &[&proposal], &[clip_bound])
            .map_err(|e| Halt::Refused(e.to_string()))?;
        let grid = query.grid(0);
        let share = rates.largest / rates.total;
        let failed = |e: crate::engine::EngineError| Halt::Failed(e.to_string());
        let size = self.poisson.draw(&mut self.secret, s.lambda + big);
        let (ratio, sensitivity, free, sigma) = if (size as f64) < s.batch_cap {
            self.listed.resize_with(1, Vec::new);
            self.answers.resize_with(1, Vec::new);
            rates.draw(&mut self.secret, size, &mut self.listed[0]);
            self.engine
                .ratio_rows(&query, &self.listed[..1], &mut self.answers[..1])
                .map_err(failed)?;
            let steps = Secret::seal(std::mem::take(&mut self.answers[0]));
            let rng = &mut self.secret;
            let ratio = rates.estimate(rng, &self.listed[0], &steps, grid, s.lambda, length);
            self.answers[0] = mechanism::recycle(steps);
            let sensitivity = 2.0 * (big / s.lambda).ln_1p();
            (
                ratio,
                sensitivity,
                s.occurrence_epsilon(share),
                s.sigma_minibatch(share),
            )
        } else {
            let sums = self.engine.ratio_sums(&query).map_err(failed)?;
            let ratio = mechanism::all_rows(Secret::seal(sums[0]), grid);
            (ratio, 2.0 * clip, s.epsilon, s.sigma_full())
        };
        let sd = if sensitivity <= free {
            0.0
        } else {
            sigma * sensitivity
        };
        if sd.is_nan() {
            return Err(Halt::Refused(
                "step_delta exceeds 2.5 K max(c)/C: the minibatch's noise has no scale; choose a smaller step_delta".into(),
            ));
        }
        let rng = &mut self.secret;
        Ok(mechanism::published_metropolis(rng, ratio, sd, h))
    }

    /// The rows' own bounds.
    fn measure_rows(&self) -> Result<RowRates, Halt> {
        let Some(data) = &self.exposed else {
            return Err(Halt::Refused(
                "published DP-Fast MH needs the rows on the host; use the cpu engine".into(),
            ));
        };
        let mut row = vec![0.0; data.features().len()];
        let each = (0..data.rows())
            .map(|i| {
                data.copy_row(i, &mut row);
                self.model.published_row_rate(&row)
            })
            .collect::<Option<Vec<f64>>>()
            .ok_or_else(|| {
                Halt::Refused(format!(
                    "model '{}' has no published bound of a row; published DP-Fast MH runs on the logistic model and on the mixture with a box",
                    self.model.name()
                ))
            })?;
        RowRates::new(each).map_err(Halt::Refused)
    }
}
