//! What a move costs: from its public clip bound and settings alone, never from rows.

use super::Curator;
use crate::data::Population;
use crate::engine::Grid;
use crate::math::Correction;
use crate::privacy::accountant::{Alone, EventKey};
use crate::privacy::mechanism::{BatchNoise, DRAW_DELTA, LOGIT_ERROR, MAX_VARIANCE};
use crate::privacy::releases::{Acceptance, Estimator, Halt, Lambda};

impl Curator {
    /// The privacy event of one move with clip bound c (nats) over `rows`, a
    /// [`Population`] or a number of rows, and the δ of its coins; `None` where the rule is
    /// not private. On a Poisson minibatch a row's clip is w_i c, its own bound's share.
    ///
    /// # Errors
    /// [`Halt::Refused`] where the parameters have no finite cost.
    pub fn cost(
        rows: impl Into<Population>,
        clip_bound: f64,
        estimator: Estimator,
        rule: Acceptance,
    ) -> Result<Option<(EventKey, f64)>, Halt> {
        let population = rows.into();
        let rows = population.rows;
        let grid = Grid::new(clip_bound).map_err(|e| Halt::Refused(e.to_string()))?;
        let refuse = |what: &str| Halt::Refused(what.to_string());
        match (estimator, rule) {
            (Estimator::Poisson { lambda }, Acceptance::Metropolis) => {
                poisson_rates(population, grid, lambda).map(|_| None)
            }
            (Estimator::FullBatch, Acceptance::Metropolis) => Ok(None),
            (Estimator::FullBatch, Acceptance::Barker) => {
                // η = 2c (docs/proofs/guarantee.md).
                let eta = 2.0 * grid.clip_bound() + LOGIT_ERROR;
                let key =
                    EventKey::bounded_range(eta).ok_or_else(|| refuse("eta is not finite"))?;
                Ok(Some((key, 0.0)))
            }
            (Estimator::Poisson { lambda }, Acceptance::Barker) => {
                // By its flow; c is the widest row's, inflated for f64 arithmetic, and by half of
                // what the coin moves the logit, for the flow's speed is at least 2.
                let (lambda, big) = poisson_rates(population, grid, lambda)?;
                let slack = 1.0 + 1e-9;
                let clip = grid.clip_bound() * population.largest * slack + 0.5 * LOGIT_ERROR;
                let key = EventKey::poisson_barker(clip, big / lambda * slack)
                    .ok_or_else(|| refuse("the clip is not finite"))?;
                Ok(Some((key, draw_delta(lambda + big))))
            }
            (Estimator::FullBatch, Acceptance::Penalty { tau }) => {
                let steps = penalty_variance(grid, tau)?;
                // σ² = steps·γ.
                let sigma = (steps as f64 * grid.step()).sqrt();
                let key = EventKey::gaussian_of_rows(2.0 * grid.clip_bound(), sigma, Alone::Half)
                    .ok_or_else(|| refuse("the noise is not finite"))?;
                Ok(Some((key, 0.0)))
            }
            (Estimator::FullBatch, Acceptance::NoisyBarker { variance }) => {
                let units = noise_units(grid, variance)?;
                let sigma = (units as f64).sqrt() * grid.step();
                let key = EventKey::gaussian_of_rows(2.0 * grid.clip_bound(), sigma, Alone::Half)
                    .ok_or_else(|| refuse("the noise is not finite"))?;
                Ok(Some((key, 0.0)))
            }
            (Estimator::Poisson { lambda }, Acceptance::Penalty { tau }) => {
                noisy_minibatch(population, grid, lambda, tau).map(Some)
            }
            (Estimator::FixedBatch { batch }, Acceptance::NoisyBarker { variance }) => {
                batch_noise(rows, grid, batch, variance)?;
                let key = EventKey::heikkila(batch as u64, rows as u64).ok_or_else(|| {
                    refuse("a batch needs more than 10 rows, and no more than there are")
                })?;
                Ok(Some((key, 0.0)))
            }
            (Estimator::Poisson { .. }, Acceptance::NoisyBarker { .. }) => Err(refuse(
                "Barker's test with Gaussian noise is not built for Poisson minibatches; use barker acceptance, or a batch of fixed size",
            )),
            (Estimator::FixedBatch { .. }, _) => Err(refuse(
                "a batch of fixed size goes with Barker's test with Gaussian noise",
            )),
        }
    }
}

/// (λ, Λ) of a Poisson minibatch on this grid: Λ = c Σ w_i.
pub(super) fn poisson_rates(
    population: Population,
    grid: Grid,
    lambda: Lambda,
) -> Result<(f64, f64), Halt> {
    let big = population.total * grid.clip_bound();
    // A floor keeps thinning probabilities well above 2^-64; public and symmetric.
    let value = lambda.value(big).max(1e-6 * big);
    let limit = f64::powi(2.0, 27);
    if !(value > 0.0 && value + big < limit && value < 65_536.0 * population.total) {
        return Err(Halt::Refused(format!(
            "a Poisson minibatch of lambda = {value:e}, Lambda = {big:e} cannot be drawn: their sum must stay under 2^27 rows; a smaller clip or lambda, or all rows"
        )));
    }
    Ok((value, big))
}

/// Event and coins of the noisy Poisson minibatch (section 6).
fn noisy_minibatch(
    population: Population,
    grid: Grid,
    lambda: Lambda,
    tau: f64,
) -> Result<(EventKey, f64), Halt> {
    let (lambda, big) = poisson_rates(population, grid, lambda)?;
    let weights = weight_grid(lambda, big)?;
    let sigma = (penalty_variance(weights, tau)? as f64 * weights.step()).sqrt();
    // Of the widest row; inflated for f64 arithmetic.
    let mean = (lambda + big) * population.share() * (1.0 + 1e-9);
    let key = EventKey::fast_mh_noisy(mean, weights.clip_bound(), sigma).ok_or_else(|| {
        Halt::Refused(format!(
            "noise cannot be charged on a minibatch of {:.0} of {} rows with sigma/W = {:.3e}: it must read at most half of the rows (of the widest, where they have bounds of their own), and sigma/W lie between 0.05 and 1e9",
            lambda + big,
            population.rows,
            sigma / weights.clip_bound()
        ))
    })?;
    Ok((key, draw_delta(lambda + big)))
}

/// Error of the secret Poisson draws of one minibatch of this rate.
fn draw_delta(rate: f64) -> f64 {
    DRAW_DELTA * ((rate / 4096.0).floor() + 1.0)
}

/// Grid of the weights of a Poisson minibatch: their bound is W = log(1 + Λ/λ).
pub(super) fn weight_grid(lambda: f64, big: f64) -> Result<Grid, Halt> {
    Grid::new((big / lambda).ln_1p()).map_err(|e| Halt::Refused(e.to_string()))
}

/// Noise of Heikkilä's subsampled test, where its theorem covers the move: C = 2 and
/// c ≤ √b/N, less a millionth for rounding (`docs/proofs/guarantee.md`).
pub(super) fn batch_noise(
    rows: usize,
    grid: Grid,
    batch: usize,
    variance: f64,
) -> Result<BatchNoise, Halt> {
    let refuse = |what: String| Err(Halt::Refused(what));
    let most = largest_batch_clip(batch, rows);
    if variance != 2.0 {
        return refuse(format!(
            "the subsampled test is private for a variance C = 2 alone, not {variance}"
        ));
    }
    if batch <= 10 || batch > rows {
        return refuse(format!(
            "a batch must have more than 10 rows and at most {rows}, not {batch}"
        ));
    }
    if grid.clip_bound() > most {
        return refuse(format!(
            "the subsampled test is private for clip bounds of at most sqrt(b)/N = {most:.6e} nats, not {:.6e}; clip there (the default), or take a larger batch",
            grid.clip_bound()
        ));
    }
    let factor = rows as f64 / batch as f64;
    let total = (variance / (grid.step() * factor).powi(2)).floor();
    if total >= MAX_VARIANCE as f64 {
        return refuse(format!(
            "a clip bound of {:e} nats is too small for the noise of the subsampled test",
            grid.clip_bound()
        ));
    }
    Ok(BatchNoise {
        total: total as u128,
        factor,
    })
}

/// `√b/N`, less 2^-20 of it.
pub(crate) fn largest_batch_clip(batch: usize, rows: usize) -> f64 {
    (batch as f64).sqrt() / rows as f64 * (1.0 - f64::powi(2.0, -20))
}

/// Moves with a smaller clip bound than this are not put to the data: no grid is so fine,
/// or (Barker's test with noise) C is more squared grid steps than the sampler can draw.
pub(super) fn smallest_clip(rule: Acceptance) -> f64 {
    f64::powi(
        2.0,
        match rule {
            Acceptance::NoisyBarker { .. } => -28,
            _ => -80,
        },
    )
}

/// C in squared grid steps, rounded up; a C that no correction has is refused, and not paid for.
pub(super) fn noise_units(grid: Grid, variance: f64) -> Result<u128, Halt> {
    Correction::check_variance(variance).map_err(Halt::Refused)?;
    let units = (variance / (grid.step() * grid.step())).ceil();
    if !(grid.exponent() <= 0 && units < MAX_VARIANCE as f64) {
        return Err(Halt::Refused(format!(
            "noise of variance {variance} cannot be drawn for a clip bound of {:e} nats",
            grid.clip_bound()
        )));
    }
    Ok(units as u128)
}

/// σ² of the penalty in units of γ: (2cτ)² rounded up, so that σ²/γ is an integer and
/// the acceptance exactly reversible (section 5).
pub(super) fn penalty_variance(grid: Grid, tau: f64) -> Result<u64, Halt> {
    let refuse = |what: String| Err(Halt::Refused(what));
    if !(tau > 0.0 && tau.is_finite()) {
        return refuse(format!("tau must be positive, not {tau}"));
    }
    if grid.exponent() > 0 {
        return refuse("the penalty needs a clip bound of at most 2^20 nats".into());
    }
    let steps = ((2.0 * grid.clip_bound() * tau).powi(2) / grid.step()).ceil();
    let variance = steps * f64::powi(2.0, -grid.exponent());
    if !(steps < f64::powi(2.0, 62) && variance < MAX_VARIANCE as f64) {
        return refuse(format!(
            "tau = {tau:e} asks for more noise than the sampler can draw"
        ));
    }
    Ok(steps.max(1.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minibatch's decision is charged more than its flow, by what coin and rounding move the
    /// logit: where c is tiny, next to nothing but that.
    #[test]
    fn a_minibatch_pays_for_its_coin() {
        let lambda = Lambda::Ratio(2.0);
        for clip in [0.3, 1e-5, 1e-13] {
            let estimator = Estimator::Poisson { lambda };
            let (key, _) = Curator::cost(10, clip, estimator, Acceptance::Barker)
                .unwrap()
                .unwrap();
            let eta = key.event().eta().unwrap();
            let speed = 1.5 + 1.0 / 1.5;
            let (least, most) = (
                speed * clip + LOGIT_ERROR,
                speed * (clip + 0.5 * LOGIT_ERROR),
            );
            assert!(eta >= least && eta < 1.005 * most, "{clip}: {eta} {least}");
            let rho = (clip + 0.5 * LOGIT_ERROR).powi(2) * 0.503_1;
            assert!(key.rho().unwrap() >= rho && key.rho().unwrap() < 1.006 * rho);
        }
    }

    /// ρ = Δ²/(2C) with Δ = 2c, rounded up a little; the noise has variance C.
    #[test]
    fn noisy_barker_costs_its_gaussian() {
        for (clip, variance) in [(0.3, 2.0), (1e-5, 1.0), (7.0, 3.0)] {
            let rule = Acceptance::NoisyBarker { variance };
            let (key, _) = Curator::cost(10, clip, Estimator::FullBatch, rule)
                .unwrap()
                .unwrap();
            let rho = 2.0 * clip * clip / variance;
            let charged = key.rho().unwrap();
            assert!(charged >= rho * (1.0 - 1e-5) && charged < rho * (1.0 + 1e-4));
            let grid = Grid::new(clip).unwrap();
            let units = noise_units(grid, variance).unwrap() as f64;
            assert!((units * grid.step() * grid.step() / variance - 1.0).abs() < 1e-9);
        }
        for (clip, variance) in [(1e-12, 2.0), (0.3, 3.3), (0.3, 0.0), (0.3, f64::NAN)] {
            assert!(noise_units(Grid::new(clip).unwrap(), variance).is_err());
        }
    }
}
