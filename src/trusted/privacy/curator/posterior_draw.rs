//! One posterior draw: a Metropolis chain inside the curator, of which the end alone is released
//! (Wang, Fienberg & Smola 2015).

use ndarray::ArrayView2;
use rand_distr::StandardNormal;

use super::Curator;
use super::cost::smallest_clip;
use crate::privacy::accountant::EventKey;
use crate::privacy::releases::{Acceptance, DrawRequest, Halt, Moves};

/// Covers the arithmetic of η, and that a stored row may be longer than declared by its rounding.
const ROUNDING: f64 = 1e-6;

/// Steps of a secret chain after which it looks whether it should stop.
const LONG: u64 = 16;

impl Curator {
    /// The privacy event of one draw from rows whose log-likelihood ratios have the true bound
    /// `rate` (κ included): over the box the log of the two posteriors' ratio ranges over at
    /// most `2·rate·2‖bounds‖`, whatever their normalisers are.
    ///
    /// # Errors
    /// [`Halt::Refused`] where η is not finite.
    pub fn draw_cost(rate: f64, request: &DrawRequest) -> Result<EventKey, Halt> {
        let radius = request.bounds.iter().map(|b| b * b).sum::<f64>().sqrt();
        EventKey::posterior_draw(4.0 * rate * radius * (1.0 + ROUNDING))
            .ok_or_else(|| Halt::Refused("a draw's eta is not finite".into()))
    }

    /// See `Releases::posterior_draw`.
    pub(super) fn release_draw(
        &mut self,
        start: &[f64],
        request: &DrawRequest,
    ) -> Result<Vec<f64>, Halt> {
        let rate = self.check_draw(start, request)?;
        if let Some(ledger) = &mut self.ledger {
            let key = Self::draw_cost(rate, request)?;
            ledger.charge(&[(key, 1)], 0.0)?;
        }
        let mut theta = start.to_vec();
        for made in 1..=request.steps {
            // Nothing has been released yet, and the charge stays: short chains are let finish.
            if made % LONG == 0 {
                self.stopped()?;
            }
            if let Some(next) = self.secret_move(&theta, request, rate)? {
                theta = next;
            }
        }
        Ok(theta)
    }

    /// The model's bound, where the request can be answered.
    fn check_draw(&self, start: &[f64], request: &DrawRequest) -> Result<f64, Halt> {
        let refuse = |what: String| Err(Halt::Refused(what));
        let d = self.model.dim();
        let positive = |v: &[f64]| v.len() == d && v.iter().all(|v| *v > 0.0 && v.is_finite());
        if !positive(&request.bounds) || !positive(&request.scale) || request.steps == 0 {
            return refuse(format!(
                "a posterior draw needs {d} positive bounds and scales, and at least one step"
            ));
        }
        let inside = start.len() == d
            && start
                .iter()
                .zip(&request.bounds)
                .all(|(t, b)| t.abs() <= *b)
            && self.model.prior().contains(start);
        if !inside {
            return refuse(format!(
                "a posterior draw starts at {d} values inside its box"
            ));
        }
        match self.model.ratio_rate() {
            Some(rate) => Ok(rate),
            None => refuse(format!(
                "model '{}' has no bound on its log ratios here, which one posterior draw needs; declare a parameter 'box'",
                self.model.name()
            )),
        }
    }

    /// One Metropolis step on all rows by secret coins; `None` where it was rejected.
    fn secret_move(
        &mut self,
        theta: &[f64],
        request: &DrawRequest,
        rate: f64,
    ) -> Result<Option<Vec<f64>>, Halt> {
        let mut next = theta.to_vec();
        for (t, s) in next.iter_mut().zip(&request.scale) {
            *t += s * self.secret.sample::<f64>(&StandardNormal);
        }
        let outside = next.iter().zip(&request.bounds).any(|(t, b)| t.abs() > *b);
        let prior = self.model.prior();
        let public = prior.log_density(&next) - prior.log_density(theta);
        let square: f64 = next.iter().zip(theta).map(|(a, b)| (a - b) * (a - b)).sum();
        let clip = rate * square.sqrt();
        let rule = Acceptance::Metropolis;
        if outside || public == f64::NEG_INFINITY || clip < smallest_clip(rule) {
            return Ok(None);
        }
        let shape = |e: ndarray::ShapeError| Halt::Failed(e.to_string());
        let moves = Moves {
            thetas: ArrayView2::from_shape((1, theta.len()), theta).map_err(shape)?,
            proposals: ArrayView2::from_shape((1, theta.len()), &next).map_err(shape)?,
            public: &[public],
            clip_bounds: None,
        };
        let mut accepted = [false];
        let query = self.query(&moves, &[0], &[clip])?;
        self.decide_full(&query, &moves, &[0], rule, &mut accepted)?;
        Ok(accepted[0].then_some(next))
    }
}
