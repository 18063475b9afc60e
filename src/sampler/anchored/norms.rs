//! What a released profile of rows' norms says of a bound on them.

use super::path::STAGE_BOUND;
use crate::math::normal::within;
use crate::model::{Predictor, Slopes};
use crate::privacy::{Expansion, profile_thresholds};

/// Bias of rows beyond the bound, mean square, where the profile is lost in its noise.
const UNSEEN_BIAS: f64 = 0.1;
/// Entries of a profile below this many sds of its noise are taken for empty: those of long rows
/// count by the square of their norm.
const LOUD: f64 = 4.0;
/// Bias of rows that are weighted down as a whole, mean square, over what the model holding would
/// make it; of scores that are, intervals count it so many times.
const MISFIT: f64 = 2.0;
/// Bias of clipped residuals, which are not quite symmetric, mean square, over what the model
/// holding would make it …
const SKEWED: f64 = 36.0;
/// … of those whose scores end of themselves, and of scores that are less what clipping is expected
/// to leave of them.
const CENTRED: f64 = 8.0;
/// Residuals can be more skewed than a choice of the bound should fear: in intervals the bias of
/// clipped ones counts so many times, mean square.
const SKEWED_IN_INTERVALS: f64 = 3.0;
/// What the predictors of rows whose scores are weighted down may be off by since the model does not
/// hold, nats, root mean square …
const OFF_SCORES: f64 = 0.2;
/// … those of rows that are weighted down as a whole, or of centred scores …
const OFF: f64 = 0.3;
/// … and those of times, whose law says how hazards grow too.
const OFF_TIMES: f64 = 1.2;
/// Share of the information that is taken to be kept at least.
pub(super) const LEAST_KEPT: f64 = 0.05;
/// Row bounds that are tried: 2^(j/4) of the usual norm, j in this range …
const TRIED: std::ops::RangeInclusive<i32> = -12..=12;
/// … and where curvatures have the same bound.
const TRIED_TOGETHER: std::ops::RangeInclusive<i32> = 0..=12;
/// … and where vectors of scores are clipped whole, whatever their row's norm.
const TRIED_OF_VECTORS: std::ops::RangeInclusive<i32> = -12..=24;

/// What becomes of a row beyond the bound.
enum Beyond {
    /// Its score counts less, whatever its label is.
    Weighted(Slopes),
    /// Its residual is clipped at the share of this many noise sds.
    Clipped { sds: f64, labels: Labels },
}

/// Whose residuals are clipped.
#[derive(Clone, Copy, PartialEq)]
enum Labels {
    Numbers,
    /// The same of a law with heavy tails.
    Tailed,
    /// Shares of successes, which lie within 0 and 1.
    Shares,
    /// Less what clipping is expected to leave of them.
    Classes,
    /// Waited for until so many events are expected: hazards add up to an exponential number.
    Times,
}

impl Labels {
    fn of(slopes: &Slopes) -> Self {
        match (slopes.centred, slopes.waits()) {
            (false, _) if slopes.ends => Labels::Tailed,
            (false, _) if slopes.trials > 1.0 => Labels::Shares,
            (false, _) => Labels::Numbers,
            (true, false) => Labels::Classes,
            (true, true) => Labels::Times,
        }
    }

    /// Share of the information of rows whose residuals are clipped at so many sds.
    fn kept(self, clip: f64) -> f64 {
        match self {
            Labels::Numbers | Labels::Tailed | Labels::Shares | Labels::Classes => within(clip),
            Labels::Times => 1.0 - (-clip).exp(),
        }
    }

    /// Mean square of what clipping moves them by where the model holds, a row, noise sds squared;
    /// `kept`: the share of all rows. E(ψ/M − r)² of a standard normal residual r; of times what
    /// estimates from less information differ by from those of all.
    fn away(self, clip: f64, kept: f64) -> f64 {
        if self == Labels::Times {
            let kept = self.kept(clip).max(1e-9);
            return (1.0 - kept) / kept;
        }
        let m = within(clip);
        let square = m - 2.0 * clip * density(clip) + clip * clip * (1.0 - m);
        (square / (kept * kept) - 2.0 * m / kept + 1.0).max(0.0)
    }

    /// What that counts, for the model does not hold; of times that is in what they are off by.
    fn misfit(self) -> f64 {
        match self {
            Labels::Numbers => SKEWED,
            Labels::Tailed | Labels::Shares | Labels::Classes => CENTRED,
            Labels::Times => 1.0,
        }
    }

    /// How much more bias intervals should have room for.
    fn doubt(self) -> f64 {
        match self {
            Labels::Numbers => SKEWED_IN_INTERVALS,
            Labels::Tailed | Labels::Shares | Labels::Classes | Labels::Times => 1.0,
        }
    }

    /// What predictors are off by, nats, root mean square.
    fn off(self) -> f64 {
        match self {
            Labels::Numbers | Labels::Tailed | Labels::Shares => 0.0,
            Labels::Classes => OFF,
            Labels::Times => OFF_TIMES,
        }
    }
}

/// Rows' norms by a released profile, times [`Slopes::larger_score`].
pub(super) struct Norms {
    /// The norm of each range, and Σ κw in it.
    ranges: Vec<(f64, f64)>,
    /// Σ κw ‖z‖² of all rows, whose norms alone are not seen where scores are multiplied.
    whole: f64,
    beyond: Beyond,
    /// Row bounds that are tried.
    tried: std::ops::RangeInclusive<i32>,
}

impl Norms {
    /// From a profile that was released at a row bound; `mean`: mean weight w of the rows, `usual`:
    /// their norm, root mean square.
    pub(super) fn new(
        seen: &Expansion,
        bound: f64,
        slopes: Slopes,
        [mean, usual]: [f64; 2],
    ) -> Self {
        let ranges = ranges(seen, bound);
        // (Of few long rows by these, of which the mean says little.)
        let least = if slopes.weights_scores { usual } else { 0.0 };
        let square = |n: f64| n.max(least).powi(2);
        let whole = ranges.iter().map(|(n, w)| w * square(*n)).sum();
        let beyond = match slopes.clips_residuals && !slopes.weights_scores {
            true => Beyond::Clipped {
                sds: slopes.largest_residual(mean),
                labels: Labels::of(&slopes),
            },
            false => Beyond::Weighted(slopes),
        };
        Norms {
            ranges,
            whole,
            beyond,
            tried: match slopes.predictor {
                _ if !slopes.clips_residuals => TRIED_TOGETHER,
                Predictor::Joint(_) if !slopes.centred => TRIED_OF_VECTORS,
                _ => TRIED,
            },
        }
    }

    /// Σ κw ‖z‖² f(‖z‖), over the same with f = 1; `None` where nothing was seen above the noise.
    fn mean(&self, f: impl Fn(f64) -> f64) -> Option<f64> {
        let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
            let terms = self.ranges.iter().map(|(n, w)| w * n * n * f(*n));
            terms.sum()
        };
        let whole = sum(&|_| 1.0);
        (whole > 0.0).then(|| sum(&f) / whole)
    }

    /// As [`Norms::bias`], as much as intervals should have room for.
    pub(super) fn bias_in_intervals(&self, bound: f64, d: usize) -> f64 {
        let doubt = match &self.beyond {
            Beyond::Weighted(slopes) if slopes.weights_scores => MISFIT,
            Beyond::Weighted(_) => 1.0,
            Beyond::Clipped { labels, .. } => labels.doubt(),
        };
        let seen = self.ranges.iter().any(|(_, sum)| *sum > 0.0);
        match seen {
            true => doubt * self.bias(bound, d),
            false => UNSEEN_BIAS,
        }
    }

    /// Mean square of the bias a coordinate, posterior sds, of what rows beyond `bound` do not
    /// tell.
    fn bias(&self, bound: f64, d: usize) -> f64 {
        let (whole, kept) = (self.whole, self.kept(bound));
        let lost = match &self.beyond {
            Beyond::Weighted(slopes) => {
                // One weight for all scores would change nothing, as they are divided by it.
                let (all, misfit, nats) = match slopes.weights_scores {
                    true => (kept, 1.0, OFF_SCORES),
                    false => (1.0, MISFIT, OFF),
                };
                let away = |n: f64| (1.0 - self.share(bound, n) / all).powi(2);
                // ‖Σκ(1−a)w e z‖² ≤ Σκ(1−a)²w e² for predictors off by e, as Σκw zzᵀ ≤ 1. Rows whose
                // class is settled are shortened the most, and off by more than others.
                let settled = |n: f64| (1.0 - (bound / n).min(1.0)).powi(2);
                let off: f64 = self.ranges.iter().map(|(n, w)| w * settled(*n)).sum();
                let off = nats * nats * off / whole.max(1e-300);
                misfit * self.mean(away).unwrap_or(0.0) + off
            }
            Beyond::Clipped { sds, labels } => {
                let clip = |n: f64| sds * (bound / n).min(1.0);
                let away = |n: f64| labels.away(clip(n), kept);
                // As of down-weighted rows: of predictors off by e the part of e that is clipped.
                let cut = |n: f64| (1.0 - labels.kept(clip(n))).powi(2);
                let off: f64 = self.ranges.iter().map(|(n, w)| w * cut(*n)).sum();
                labels.misfit() * self.mean(away).unwrap_or(0.0)
                    + labels.off().powi(2) * off / whole.max(1e-300)
            }
        };
        lost * whole / d as f64
    }

    /// Share of the information that is kept.
    pub(super) fn kept(&self, bound: f64) -> f64 {
        self.mean(|n| self.share(bound, n)).unwrap_or(1.0)
    }

    /// Share of it that rows far out lose, over what the shortest rows lose.
    pub(super) fn lost_far_out(&self, bound: f64) -> f64 {
        let seen = self.ranges.iter().filter(|(_, sum)| *sum > 0.0);
        let most = seen.map(|(n, _)| self.share(bound, *n)).reduce(f64::max);
        most.map_or(0.0, |most| 1.0 - self.kept(bound) / most.max(LEAST_KEPT))
    }

    /// Share of the information that is kept of rows of the norm n.
    fn share(&self, bound: f64, n: f64) -> f64 {
        match &self.beyond {
            Beyond::Weighted(_) => (bound / n).min(1.0),
            Beyond::Clipped { sds, labels } => labels.kept(sds * (bound / n).min(1.0)),
        }
    }

    /// The row bound of least expected error; `at`: noise of a gradient at a bound, and the bias,
    /// mean square, that was seen of it.
    pub(super) fn best(&self, usual: f64, d: usize, at: impl Fn(f64) -> (f64, f64)) -> f64 {
        if self.ranges.iter().all(|(_, sum)| *sum <= 0.0) {
            return STAGE_BOUND * usual;
        }
        let mut best = (f64::INFINITY, usual);
        for k in self.tried.clone() {
            let bound = usual * 2f64.powf(0.25 * f64::from(k));
            let (noise, seen) = at(bound);
            let noise = noise / self.kept(bound).max(LEAST_KEPT);
            let error = noise * noise + self.bias(bound, d).max(seen);
            // Without privacy the widest.
            if error < best.0 || error == 0.0 {
                best = (error, bound);
            }
        }
        best.1
    }
}

/// The norm of each range of a profile that was released at a row bound, and Σ κw in it, 0 where
/// that is lost in noise.
pub(super) fn ranges(seen: &Expansion, bound: f64) -> Vec<(f64, f64)> {
    let half = 2f64.powf(0.25);
    let mut ends = profile_thresholds();
    ends.extend(ends.last().map(|e| 1.4 * e));
    let pairs = ends.iter().zip(&seen.profile);
    pairs
        .map(|(end, sum)| {
            let loud = *sum > LOUD * seen.profile_sd;
            (end * bound / half, if loud { *sum } else { 0.0 })
        })
        .collect()
}

/// Its density.
fn density(sds: f64) -> f64 {
    (-0.5 * sds * sds).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Norms by a profile with as much information in each of these ranges.
    fn norms(ranges: &[usize], slopes: Slopes) -> Norms {
        let mut profile = vec![0.0; profile_thresholds().len() + 1];
        ranges.iter().for_each(|k| profile[*k] = 100.0);
        let seen = Expansion {
            gradient: Vec::new(),
            curvature: Vec::new(),
            profile,
            gradient_sd: 0.0,
            curvature_sd: 0.0,
            profile_sd: 0.1,
        };
        Norms::new(&seen, 1.0, slopes, [0.16, ranges_end(7)])
    }

    /// Rows of one length may all count less: where the model holds that moves no mode. Where long
    /// rows count less than others it does, the more the narrower the bound is.
    #[test]
    fn weights_are_a_bias_where_they_differ() {
        let logistic = Slopes::logistic();
        let alike = norms(&[7], logistic);
        for bound in [0.05, 0.3, 1.0, 8.0] {
            // 0.2 nats for the model, of weights that sum up to 100.
            let off = 0.04 * 100.0 / 3.0 * (1.0 - (bound / ranges_end(7)).min(1.0)).powi(2);
            assert!((alike.bias(bound, 3) - off).abs() < 1e-9, "{bound}");
        }
        assert!(alike.kept(0.3) < 0.5 && alike.kept(2.0) == 1.0);
        assert!(alike.lost_far_out(0.3).abs() < 1e-12);
        let different = norms(&[5, 11], logistic);
        assert!(different.lost_far_out(1.0) > 0.2);
        let biases = [8.0, 2.0, 1.0].map(|b| different.bias(b, 3));
        assert_eq!(biases[0], 0.0);
        assert!(0.0 < biases[1] && biases[1] < biases[2], "{biases:?}");
        // A profile of two classes is of scores too: no more of them is lost than lies beyond.
        assert!((alike.kept(0.4 * ranges_end(7)) - 0.4).abs() < 1e-12);
    }

    /// The norm that a range stands for.
    fn ranges_end(k: usize) -> f64 {
        profile_thresholds()[k] / 2f64.powf(0.25)
    }

    /// Without noise the widest bound; noise makes it narrower, but not where curvatures have it
    /// too.
    #[test]
    fn noise_narrows_the_bound_of_gradients() {
        let logistic = norms(&[5, 7, 9, 11], Slopes::logistic());
        let wide = logistic.best(1.0, 4, |_| (0.0, 0.0));
        let narrow = logistic.best(1.0, 4, |b| (40.0 * b, 0.0));
        assert!(wide > 7.9 && narrow < 0.5, "{wide} {narrow}");
        let shape = crate::model::NetworkShape {
            features: 2,
            hidden: 2,
            outputs: 1,
        };
        let network = norms(&[5, 7, 9, 11], Slopes::network(shape));
        let together = network.best(1.0, 4, |b| (40.0 * b, 0.0));
        assert!(together >= 1.0, "{together}");
    }
}
