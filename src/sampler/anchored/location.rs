//! Where labels lie and how far they spread, which is asked before anything else: intercept and
//! shared parameters alone, as if rows had no other predictors (docs/proofs/anchors.md, "Where
//! labels lie").

use nalgebra::{DMatrix, DVector};

use super::Anchoring;
use super::algebra::{lower, solve_vector};
use super::columns::ASIDE;
use super::path::{Purse, row_norm};
use super::warm_start::inside;
use crate::expression::Location;
use crate::model::{Metric, Predictor, Prior};
use crate::privacy::{AnchorNoise, Halt, Releases};

/// Noise of a mean score is to be this, in sds of a row's score; each ask has at most such a share
/// of the whole, all have that one, and none is asked where noise would then be more than that.
const NOISE: f64 = 0.05;
const MOST_SHARE: f64 = 0.015;
const MOST_OF_ALL: f64 = 0.12;
const MOST_NOISE: f64 = 0.3;
/// A row's score is clipped at so many of its sds, that of a time, which has an end on one side and
/// falls off like an exponential law on the other, at so many.
const CLIP_SDS: f64 = 8.0;
const CLIP_SDS_OF_TIMES: f64 = 2.0;
/// No more events are taken to be seen than this many sds of the noise, if that is more than are.
const FEWEST: f64 = 1.5;
/// Asks at most. There is another as long as η changes by more than this, in large changes, or a
/// shared parameter by more than that.
const ASKS: usize = 16;
const SETTLED: f64 = 0.3;
const SHARED_SETTLED: f64 = 0.15;
/// A score tells on which side the answer lies where it is so many times its noise.
const TOLD: f64 = 3.0;
/// … and may be noise alone where it is no more than so many times that.
const NO_MORE: f64 = 1.5;
/// A shared parameter's step at most, how many times as long it is made where steps go on, and how
/// far it may go in all: labels that are all the same would take it without end.
const LONGEST: f64 = 2.0;
const LONGER: f64 = 4.0;
const FARTHEST: f64 = 6.0;

/// What one search knows of a number: between which two it lies, and the last step to it.
#[derive(Clone, Copy)]
struct Bracket {
    low: f64,
    high: f64,
    last: f64,
}

impl Bracket {
    const WHOLE: Bracket = Bracket {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        last: 0.0,
    };

    /// A score here, of which noise has this sd, says on which side it lies.
    fn narrow(&mut self, here: f64, score: f64, sd: f64) {
        match score {
            s if s > TOLD * sd => self.low = here,
            s if s < -TOLD * sd => self.high = here,
            _ => {}
        }
    }

    /// There; or where it is known not to lie there, in the middle, or at the only end.
    fn hold(&self, to: f64) -> f64 {
        let ends = self.low.is_finite() && self.high.is_finite();
        match (self.low..=self.high).contains(&to) {
            false if ends => 0.5 * (self.low + self.high),
            _ => to.max(self.low).min(self.high),
        }
    }

    /// A step on the way that the last one went is longer: where rows are all on one side, a
    /// Newton step is about 1 however far there is to go.
    fn go_on(&mut self, step: f64, settled: f64, longest: f64) -> f64 {
        let goes_on = self.last * step > 0.0 && step.abs() > settled;
        let by = match goes_on {
            true => (2.0 * (self.last / step)).clamp(1.0, LONGER),
            false => 1.0,
        };
        self.last = (by * step).clamp(-longest, longest);
        self.last
    }

    /// Whether a score said on which side of it the answer lies.
    fn is_narrowed(&self) -> bool {
        self.low.is_finite() || self.high.is_finite()
    }
}

/// Mean scores in η and in shared parameters, and the noise of each.
struct MeanScores {
    scores: DVector<f64>,
    sds: DVector<f64>,
}

impl MeanScores {
    /// Without what noise may have added: no label has less than the least score.
    fn heard(&self) -> DVector<f64> {
        let heard = |score: f64, sd: f64| score.signum() * (score.abs() - sd).max(0.0);
        self.scores.zip_map(&self.sds, heard)
    }

    /// A mean score in η, no nearer to those of the least and the largest label than noise: rare
    /// events are not told from none, which have no rate.
    fn off(&self, ends: Option<[f64; 2]>, score: f64) -> f64 {
        let sd = self.sds[0];
        match ends {
            Some([low, high]) if low + sd < high - sd => score.clamp(low + sd, high - sd),
            _ => score,
        }
    }

    fn is_noise(&self, k: usize) -> bool {
        self.scores[k].abs() < NO_MORE * self.sds[k]
    }
}

/// Where labels lie.
pub(super) struct Found {
    /// The start, with intercept and shared parameters where labels of these rows have them.
    pub start: Vec<f64>,
    /// Share of rows whose event is seen.
    pub events: f64,
}

impl Anchoring {
    /// Where labels lie; `None` where that is not asked, or not heard.
    ///
    /// # Errors
    /// [`Halt`] of the curator.
    pub(super) fn located(
        &self,
        prior: &Prior,
        purse: &mut Purse,
        releases: &mut dyn Releases,
    ) -> Result<Option<Found>, Halt> {
        let Some(location) = self.location.as_ref().filter(|_| self.stages > 0) else {
            return Ok(None);
        };
        let units = f64::from(self.slopes.rows_of_unit).sqrt();
        // Noise of a mean score, over a row's sd, at τ = 1.
        let each = 2.0 * self.clip_sds() * units / self.expected_weights();
        let Some(share) = purse.share_of(NOISE / each) else {
            return Ok(None);
        };
        let share = share.min(MOST_SHARE).max(purse.least_share());
        if each * purse.pays(share) > MOST_NOISE {
            return Ok(None);
        }
        let mut at = self.start.clone();
        let location = &Location {
            events: self.seen_events(location, &at, purse.pay(share), releases)?,
            ..location.clone()
        };
        // Scores are those of an event each, so that fewer are heard less.
        let heard = purse.share_of(NOISE * location.events / each);
        let share = heard.map_or(share, |heard| heard.min(MOST_SHARE).max(share));
        let shared = at.len() - self.shared(&at).len()..at.len();
        let mut place = Bracket::WHOLE;
        let mut spreads = vec![Bracket::WHOLE; shared.len()];
        // Shared parameters follow once the predictor is about where it belongs.
        let (mut all, mut found) = (false, false);
        for _ in 0..ASKS.min((MOST_OF_ALL / share) as usize) {
            let seen = self.mean_scores(location, &at, all, purse.pay(share), releases)?;
            let mut next = at.clone();
            let here = at[location.column] + location.offset;
            if all && self.slopes.waits() {
                // Where times lie follows from how they spread.
                (place.low, place.high) = (Bracket::WHOLE.low, Bracket::WHOLE.high);
            }
            place.narrow(here, seen.scores[0], seen.sds[0]);
            let shared_here = self.shared(&at);
            let settled = SETTLED * self.slopes.at(&at).eta_unit;
            let ends = location.ends(here, shared_here);
            let there = |score| location.predictor(seen.off(ends, score), here, shared_here);
            let to = place.hold(there(seen.heard()[0]));
            if !to.is_finite() {
                break;
            }
            // (A time that was waited for is no label that a mean score tells of at once.)
            let to = match all {
                true => to,
                false => {
                    let by = place.go_on(to - here, settled, f64::INFINITY);
                    place.hold(here + by)
                }
            };
            next[location.column] = to - location.offset;
            // A score that noise has made small says little of where it would go.
            let plain = there(seen.scores[0]);
            let far = if seen.is_noise(0) { to } else { plain } - here;
            let mut settled = far.abs() < settled;
            if all {
                let Some(steps) = self.shared_steps(&at, here, &seen, &mut spreads) else {
                    break;
                };
                for (k, to) in steps.into_iter().enumerate() {
                    let noise = self.slopes.waits() && seen.is_noise(1 + k);
                    settled &= noise || (to - at[shared.start + k]).abs() < SHARED_SETTLED;
                    next[shared.start + k] = to;
                }
            }
            at = inside(next, &at, prior);
            found |= settled;
            if settled && (all || shared.is_empty()) {
                break;
            }
            all = found;
        }
        // Where scores said on which side labels lie, it is nearer to them than the start at least.
        let events = location.events;
        Ok((found || place.is_narrowed()).then_some(Found { start: at, events }))
    }

    /// So many sds are scores clipped at.
    fn clip_sds(&self) -> f64 {
        match self.slopes.waits() {
            true => CLIP_SDS_OF_TIMES,
            false => CLIP_SDS,
        }
    }

    /// The share of rows whose event is seen: where all are early, rows have the score of an event
    /// or none. 1 of labels that are no times.
    fn seen_events(
        &self,
        location: &Location,
        start: &[f64],
        tau: f64,
        releases: &mut dyn Releases,
    ) -> Result<f64, Halt> {
        let Some((eta, score)) = location.early(self.shared(start)) else {
            return Ok(1.0);
        };
        let mut at = start.to_vec();
        at[location.column] = eta - location.offset;
        let seen = self.mean_scores(location, &at, false, tau, releases)?;
        let (share, sd) = (seen.scores[0] / score, seen.sds[0] / score.abs());
        Ok(share.max(FEWEST * sd).clamp(1e-6, 1.0))
    }

    /// Where shared parameters go from θ, whose η is `here`; `None` where the law tells nothing of
    /// some of them.
    fn shared_steps(
        &self,
        at: &[f64],
        here: f64,
        seen: &MeanScores,
        spreads: &mut [Bracket],
    ) -> Option<Vec<f64>> {
        let Predictor::Joint(joint) = self.slopes.predictor else {
            return Some(Vec::new());
        };
        let size = seen.scores.len();
        let mut factor = vec![0.0; size * size];
        joint.located(at).information.factor(here, &mut factor);
        let factor = DMatrix::from_row_slice(size, size, &factor);
        let steps = solve_vector(&(&factor * factor.transpose()), &seen.heard()).ok()?;
        let first = at.len() - spreads.len();
        let each = spreads.iter_mut().enumerate().map(|(k, bracket)| {
            let (from, start) = (at[first + k], self.start[first + k]);
            bracket.narrow(from, seen.scores[1 + k], seen.sds[1 + k]);
            let by = bracket.go_on(steps[1 + k], SHARED_SETTLED, LONGEST);
            start + (bracket.hold(from + by) - start).clamp(-FARTHEST, FARTHEST)
        });
        let to: Vec<f64> = each.collect();
        to.iter().all(|v| v.is_finite()).then_some(to)
    }

    /// φ, the end of θ; none where rows share none.
    fn shared<'a>(&self, theta: &'a [f64]) -> &'a [f64] {
        match self.slopes.predictor {
            Predictor::Joint(joint) => joint.shared(theta),
            Predictor::Linear | Predictor::Network(_) => &[],
        }
    }

    /// The mean score of rows in η, and where `all` are asked for in shared parameters, over the
    /// share of rows whose event is seen: a gradient in coordinates in which all other columns are
    /// next to nothing.
    fn mean_scores(
        &self,
        location: &Location,
        at: &[f64],
        all: bool,
        tau: f64,
        releases: &mut dyn Releases,
    ) -> Result<MeanScores, Halt> {
        let (_, scales) = self.slopes.and_scales(at);
        let first = at.len() - scales.len();
        let aside = ASIDE * row_norm(self.row_norm, &scales);
        let units = DVector::from_fn(at.len(), |j, _| match j.checked_sub(first) {
            None if j == location.column => 1.0,
            Some(k) if all => scales[k],
            _ => aside,
        });
        let asked = if all { scales.len() } else { 0 };
        let metric = Metric {
            factor: lower(&DMatrix::from_diagonal(&units))?,
            row_bound: row_norm(1.0, &vec![1.0; asked]) * self.clip_sds() / CLIP_SDS,
        };
        let noise = AnchorNoise {
            gradient: Some(tau),
            ..AnchorNoise::default()
        };
        let seen = releases.anchor(at, &metric, noise)?;
        let whole = self.unit * self.expected_weights() * location.events;
        let places: Vec<usize> = [location.column]
            .into_iter()
            .chain(first..at.len())
            .collect();
        let of = |value: &dyn Fn(usize) -> f64| {
            DVector::from_iterator(places.len(), places.iter().map(|j| value(*j)))
        };
        Ok(MeanScores {
            scores: of(&|j| seen.gradient[j] * units[j] / whole),
            sds: of(&|j| seen.gradient_sd * units[j] / whole),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores of three sds and more narrow the place, others do not.
    #[test]
    fn a_place_is_narrowed_by_what_noise_cannot_be() {
        let mut place = Bracket::WHOLE;
        place.narrow(4.0, -0.2, 0.1);
        assert_eq!(place.hold(7.0), 7.0);
        place.narrow(4.0, -0.4, 0.1);
        assert_eq!([-9.0, 7.0].map(|to| place.hold(to)), [-9.0, 4.0]);
        place.narrow(1.0, 0.4, 0.1);
        assert_eq!([0.0, 3.0, 7.0].map(|to| place.hold(to)), [2.5, 3.0, 2.5]);
        place.narrow(f64::NAN, f64::NAN, 0.1);
        assert_eq!(place.hold(3.0), 3.0);
    }

    /// A standard deviation that is e⁴ times too large, whose scores are −1 and information 2.
    #[test]
    fn steps_that_go_on_grow_and_then_do_not() {
        let mut bracket = Bracket::WHOLE;
        let mut log_sigma = 4.0f64;
        let mut steps = 0;
        while log_sigma.abs() > SHARED_SETTLED {
            let score = (-2.0 * log_sigma).exp() - 1.0;
            bracket.narrow(log_sigma, score, 0.01);
            let by = bracket.go_on(0.5 * score, SHARED_SETTLED, LONGEST);
            log_sigma = bracket.hold(log_sigma + by);
            steps += 1;
        }
        assert!(steps <= 6, "{steps}");
    }

    #[test]
    fn noise_is_taken_off_scores() {
        let seen = MeanScores {
            scores: DVector::from_vec(vec![-1.0, 0.3, 0.1]),
            sds: DVector::from_vec(vec![0.2, 0.1, 0.2]),
        };
        assert!((seen.heard() - DVector::from_vec(vec![-0.8, 0.2, 0.0])).amax() < 1e-12);
        assert_eq!([0, 1, 2].map(|k| seen.is_noise(k)), [false, false, true]);
        // Labels whose scores lie between −1 and 3.
        let off = |score| seen.off(Some([-1.0, 3.0]), score);
        assert_eq!([-2.0, -0.9, 0.5, 2.9].map(off), [-0.8, -0.8, 0.5, 2.8]);
        assert_eq!(seen.off(Some([0.0, 0.3]), 0.4), 0.4);
        assert_eq!(seen.off(None, -2.0), -2.0);
    }
}
