//! What a move costs: from its public clip bound and settings alone, never from rows.

use super::Curator;
use crate::engine::Grid;
use crate::privacy::event_key::EventKey;
use crate::privacy::mechanism::{DRAW_DELTA, LOGIT_ERROR, MAX_VARIANCE};
use crate::privacy::releases::{Acceptance, Estimator, Halt, Lambda};

impl Curator {
    /// The privacy event of one move with clip bound c (nats), and the δ of its coins;
    /// `None` where the rule is not private.
    ///
    /// # Errors
    /// [`Halt::Refused`] where the parameters have no finite cost.
    pub fn cost(
        rows: usize,
        clip_bound: f64,
        estimator: Estimator,
        rule: Acceptance,
    ) -> Result<Option<(EventKey, f64)>, Halt> {
        let grid = Grid::new(clip_bound).map_err(|e| Halt::Refused(e.to_string()))?;
        let refuse = |what: &str| Halt::Refused(what.to_string());
        match (estimator, rule) {
            (Estimator::Poisson { lambda }, Acceptance::Metropolis) => {
                poisson_rates(rows, grid, lambda).map(|_| None)
            }
            (Estimator::FullBatch, Acceptance::Metropolis) => Ok(None),
            (Estimator::FullBatch, Acceptance::Barker) => {
                // η = 2c (mathematics, section 3).
                let eta = 2.0 * grid.clip_bound() + LOGIT_ERROR;
                let key =
                    EventKey::bounded_range(eta).ok_or_else(|| refuse("eta is not finite"))?;
                Ok(Some((key, 0.0)))
            }
            (Estimator::Poisson { lambda }, Acceptance::Barker) => {
                // η = c(2 + Λ/λ) (mathematics, section 4), inflated for f64 arithmetic.
                let (lambda, big) = poisson_rates(rows, grid, lambda)?;
                let eta = grid.clip_bound() * (2.0 + big / lambda) * (1.0 + 1e-9) + LOGIT_ERROR;
                let key =
                    EventKey::bounded_range(eta).ok_or_else(|| refuse("eta is not finite"))?;
                let blocks = ((lambda + big) / 4096.0).floor() + 1.0;
                Ok(Some((key, DRAW_DELTA * blocks)))
            }
            (Estimator::FullBatch, Acceptance::Penalty { tau }) => {
                let steps = penalty_variance(grid, tau)?;
                // σ² = steps·γ.
                let sigma = (steps as f64 * grid.step()).sqrt();
                let key = EventKey::discrete_gaussian(2.0 * grid.clip_bound(), sigma)
                    .ok_or_else(|| refuse("the noise is not finite"))?;
                Ok(Some((key, 0.0)))
            }
            (Estimator::FullBatch, Acceptance::NoisyBarker { variance }) => {
                let units = noise_units(grid, variance)?;
                let sigma = (units as f64).sqrt() * grid.step();
                let key = EventKey::discrete_gaussian(2.0 * grid.clip_bound(), sigma)
                    .ok_or_else(|| refuse("the noise is not finite"))?;
                Ok(Some((key, 0.0)))
            }
            (
                Estimator::Poisson { .. },
                Acceptance::Penalty { .. } | Acceptance::NoisyBarker { .. },
            ) => Err(refuse(
                "acceptance with Gaussian noise on a Poisson minibatch is not built; use barker acceptance or all rows",
            )),
        }
    }
}

/// (λ, Λ) of a Poisson minibatch on this grid.
pub(super) fn poisson_rates(rows: usize, grid: Grid, lambda: Lambda) -> Result<(f64, f64), Halt> {
    let big = rows as f64 * grid.clip_bound();
    // A floor keeps thinning probabilities well above 2^-64; public and symmetric.
    let value = lambda.value(big).max(1e-6 * big);
    let limit = f64::powi(2.0, 27);
    if !(value > 0.0 && value + big < limit && value < 65_536.0 * rows as f64) {
        return Err(Halt::Refused(format!(
            "a Poisson minibatch of lambda = {value:e}, Lambda = {big:e} cannot be drawn: their sum must stay under 2^27 rows; a smaller clip or lambda, or all rows"
        )));
    }
    Ok((value, big))
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

/// C in squared grid steps, rounded up.
pub(super) fn noise_units(grid: Grid, variance: f64) -> Result<u128, Halt> {
    let units = (variance / (grid.step() * grid.step())).ceil();
    if !(variance > 0.0 && grid.exponent() <= 0 && units < MAX_VARIANCE as f64) {
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

    /// ρ = Δ²/(2C) with Δ = 2c, rounded up a little; the noise has variance C.
    #[test]
    fn noisy_barker_costs_its_gaussian() {
        for (clip, variance) in [(0.3, 2.0), (1e-5, 1.0), (7.0, 3.0)] {
            let rule = Acceptance::NoisyBarker { variance };
            let (key, _) = Curator::cost(10, clip, Estimator::FullBatch, rule)
                .unwrap()
                .unwrap();
            let rho = 2.0 * clip * clip / variance;
            assert!(key.rho() >= rho * (1.0 - 1e-5) && key.rho() < rho * (1.0 + 1e-4));
            let grid = Grid::new(clip).unwrap();
            let units = noise_units(grid, variance).unwrap() as f64;
            assert!((units * grid.step() * grid.step() / variance - 1.0).abs() < 1e-9);
        }
        let tiny = Grid::new(1e-12).unwrap();
        assert!(noise_units(tiny, 2.0).is_err());
    }
}
