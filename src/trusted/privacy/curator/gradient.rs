//! Release of noisy clipped gradient sums, charged before any row is looked at.

use ndarray::{Array2, ArrayView2};

use super::Curator;
use crate::engine::{GradientQuery, GradientSum, Grid, Rows};
use crate::model::Model;
use crate::privacy::accountant::{Alone, EventKey};
use crate::privacy::mechanism::{self, MAX_VARIANCE, SampleRate, Secret};
use crate::privacy::releases::{Batch, GradientNoise, Halt};

/// Clip that a non-private run without one starts from, where the model has no bound.
const FIRST_CLIP: f64 = 1.0;
/// No gradient is widened for beyond this.
const LAST_CLIP: f64 = 1e20;

impl Curator {
    /// Checks that gradients with this noise can be released at all, without privacy too.
    ///
    /// # Errors
    /// [`Halt::Refused`] for a clip, noise or rate that no grid holds or nothing draws.
    pub fn can_release(noise: GradientNoise, model: &dyn Model) -> Result<(), Halt> {
        let first = || model.ratio_rate().unwrap_or(FIRST_CLIP);
        let clip = noise.clip.unwrap_or_else(first);
        let grid = Grid::new(clip).map_err(|e| Halt::Refused(e.to_string()))?;
        variance(grid, noise.sigma)?;
        if let Batch::Poisson { rate } = noise.batch {
            sample_rate(rate)?;
        }
        Ok(())
    }

    /// The privacy event of one chain's gradient.
    ///
    /// # Errors
    /// [`Halt::Refused`] for a clip, noise or rate that cannot be drawn or charged.
    pub fn gradient_cost(noise: GradientNoise) -> Result<EventKey, Halt> {
        let refuse = |what: String| Err(Halt::Refused(what));
        let Some(clip) = noise.clip else {
            return refuse("a private gradient needs a clip".into());
        };
        let grid = Grid::new(clip).map_err(|e| Halt::Refused(e.to_string()))?;
        let sensitivity = 2.0 * grid.clip_bound();
        let sigma = (variance(grid, noise.sigma)? as f64).sqrt() * grid.step();
        let key = match noise.batch {
            Batch::All => EventKey::gaussian_of_rows(sensitivity, sigma, Alone::Half),
            Batch::Poisson { rate } => {
                sample_rate(rate)?;
                EventKey::poisson_gaussian(rate, sensitivity, sigma)
            }
        };
        let ratio = sigma / sensitivity;
        if !(0.05..=1e9).contains(&ratio) {
            return refuse(format!(
                "a gradient's noise over its sensitivity (twice the clip) must lie between 0.05 and 1e9, not {ratio:.3e}"
            ));
        }
        key.ok_or_else(|| Halt::Refused("the gradient's noise is not finite".into()))
    }

    /// See `Releases::gradients`.
    pub(super) fn release_gradients(
        &mut self,
        thetas: ArrayView2<'_, f64>,
        noise: GradientNoise,
    ) -> Result<Array2<f64>, Halt> {
        let (chains, d) = thetas.dim();
        if d != self.model.dim() || thetas.iter().any(|t| !t.is_finite()) {
            return Err(Halt::Refused(format!(
                "gradients need {} finite parameters a chain",
                self.model.dim()
            )));
        }
        let rows: Vec<Vec<f64>> = thetas.rows().into_iter().map(|t| t.to_vec()).collect();
        let points: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        if self.ledger.is_some() && noise.sigma <= 0.0 {
            return Err(Halt::Refused("a private gradient needs noise".into()));
        }
        // Both before the charge, for they may be refused; they touch no row.
        let query = match noise.clip {
            Some(clip) => Some(self.gradient_query(&points, clip)?),
            None if self.ledger.is_some() => {
                return Err(Halt::Refused("a private gradient needs a clip".into()));
            }
            None => None,
        };
        if let Some(ledger) = &mut self.ledger {
            let key = Self::gradient_cost(noise)?;
            ledger.charge(&[(key, chains as u64)], 0.0)?;
        }
        let rate = self.draw_batches(noise.batch, chains)?;
        let (query, sums) = match query {
            Some(query) => {
                let sums = self.gradient_sums(&query, noise.batch)?;
                (query, sums)
            }
            None => self.unclipped_gradients(&points, noise.batch)?,
        };
        let grid = query.grid();
        let variance = variance(grid, noise.sigma)?;
        let mut out = Array2::zeros((chains, d));
        for (mut row, sum) in out.rows_mut().into_iter().zip(sums) {
            let noisy = mechanism::noisy_gradient(&mut self.secret, Secret::seal(sum), variance);
            for (value, steps) in row.iter_mut().zip(noisy) {
                *value = steps * grid.step() / rate;
            }
        }
        Ok(out)
    }

    /// Draws each chain's batch; the rate that it was drawn at.
    fn draw_batches(&mut self, batch: Batch, chains: usize) -> Result<f64, Halt> {
        let Batch::Poisson { rate } = batch else {
            return Ok(1.0);
        };
        let rate = sample_rate(rate)?;
        self.listed.resize_with(chains, Vec::new);
        for rows in &mut self.listed {
            mechanism::draw_poisson_rows(&mut self.secret, self.population.rows, rate, rows);
        }
        Ok(rate.value())
    }

    fn gradient_query(&self, points: &[&[f64]], clip: f64) -> Result<GradientQuery, Halt> {
        GradientQuery::new(&*self.model, points, clip).map_err(|e| Halt::Refused(e.to_string()))
    }

    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        batch: Batch,
    ) -> Result<Vec<GradientSum>, Halt> {
        let rows = match batch {
            Batch::All => Rows::All,
            Batch::Poisson { .. } => Rows::Listed(&self.listed[..query.chains()]),
        };
        self.engine
            .gradient_sums(query, rows)
            .map_err(|e| Halt::Failed(e.to_string()))
    }

    /// Without privacy and without a clip: doubled until no row is clipped, and kept there.
    fn unclipped_gradients(
        &mut self,
        points: &[&[f64]],
        batch: Batch,
    ) -> Result<(GradientQuery, Vec<GradientSum>), Halt> {
        let bound = self.model.ratio_rate();
        let mut clip = self.widest_gradient.unwrap_or(bound.unwrap_or(FIRST_CLIP));
        loop {
            let query = self.gradient_query(points, clip)?;
            let sums = self.gradient_sums(&query, batch)?;
            if clip > LAST_CLIP || sums.iter().all(|s| s.clipped == 0) {
                self.widest_gradient = Some(clip);
                return Ok((query, sums));
            }
            clip *= 2.0;
        }
    }
}

fn sample_rate(rate: f64) -> Result<SampleRate, Halt> {
    SampleRate::new(rate).ok_or_else(|| {
        Halt::Refused(format!(
            "a batch's rate must lie between 0 and 1, both excluded, not {rate}; for all rows ask for all"
        ))
    })
}

/// σ² in squared grid steps, rounded up; 0 for σ = 0.
fn variance(grid: Grid, sigma: f64) -> Result<u128, Halt> {
    let units = (sigma / grid.step()).powi(2).ceil();
    if !(sigma >= 0.0 && units < MAX_VARIANCE as f64) {
        return Err(Halt::Refused(format!(
            "noise of standard deviation {sigma:e} cannot be drawn for gradients clipped at {:e}",
            grid.clip_bound()
        )));
    }
    Ok(units as u128)
}
