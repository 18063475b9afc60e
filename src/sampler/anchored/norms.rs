//! What a released profile of rows' norms says of a bound on them.

use super::path::STAGE_BOUND;
use crate::privacy::{Expansion, profile_thresholds};

/// Bias of down-weighted rows, mean square, where the profile is lost in its noise.
const UNSEEN_BIAS: f64 = 0.1;
/// Entries of a profile below this many sds of its noise are taken for empty: those of long rows
/// count by the square of their norm.
const LOUD: f64 = 4.0;
/// Bias of down-weighted rows, over what the model holding would make it.
const MISFIT: f64 = 2.0;

/// Rows' norms by a released profile: the norm of each range, and Σ κw in it.
pub(super) struct Norms<F: Fn(f64) -> f64> {
    ranges: Vec<(f64, f64)>,
    /// ω of a row of mean weight that is shortened by so much.
    omega: F,
}

impl<F: Fn(f64) -> f64> Norms<F> {
    pub(super) fn new(seen: &Expansion, bound: f64, omega: F) -> Self {
        let half = 2f64.powf(0.25);
        let mut ends = profile_thresholds();
        ends.extend(ends.last().map(|e| 1.4 * e));
        let pairs = ends.iter().zip(&seen.profile);
        let ranges = pairs
            .map(|(end, sum)| {
                let loud = *sum > LOUD * seen.profile_sd;
                (end * bound / half, if loud { *sum } else { 0.0 })
            })
            .collect();
        Norms { ranges, omega }
    }

    fn weight(&self, bound: f64, norm: f64) -> f64 {
        (self.omega)((bound / norm).min(1.0))
    }

    /// Mean square of the bias a coordinate, posterior sds, where rows beyond `bound` are weighted
    /// down: what they would have told.
    pub(super) fn bias(&self, bound: f64, d: usize) -> f64 {
        let lost = self.ranges.iter().map(|(norm, sum)| {
            let away = 1.0 - self.weight(bound, *norm);
            sum * norm * norm * away * away
        });
        MISFIT * lost.sum::<f64>() / d as f64
    }

    /// Share of the information that is kept.
    pub(super) fn kept(&self, bound: f64) -> f64 {
        let whole: f64 = self
            .ranges
            .iter()
            .map(|(norm, sum)| sum * norm * norm)
            .sum();
        if whole <= 0.0 {
            // Nothing was seen above the noise.
            return 1.0;
        }
        let kept = self
            .ranges
            .iter()
            .map(|(norm, sum)| sum * norm * norm * self.weight(bound, *norm));
        kept.sum::<f64>() / whole
    }

    /// The row bound of least expected error and its bias; `noise`: of a gradient at a bound.
    pub(super) fn best(&self, usual: f64, d: usize, noise: impl Fn(f64) -> f64) -> (f64, f64) {
        if self.ranges.iter().all(|(_, sum)| *sum <= 0.0) {
            return (STAGE_BOUND * usual, UNSEEN_BIAS);
        }
        let mut best = (f64::INFINITY, usual, 0.0);
        for k in 0..=12 {
            let bound = usual * 2f64.powf(0.25 * f64::from(k));
            let bias = self.bias(bound, d);
            let error = (noise(bound) / self.kept(bound).max(0.05)).powi(2) + bias;
            // Without privacy the widest.
            if error < best.0 || error == 0.0 {
                best = (error, bound, bias);
            }
        }
        (best.1, best.2)
    }
}
