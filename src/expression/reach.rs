//! Public bounds that labels of a declared range come to where a law fits them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use nalgebra::{DMatrix, DVector};

use super::information::uncertain;
use super::{Information, LabelRange, Law, Source};

/// How large scores, weights and third derivatives of rows that a law fits come to be: what an
/// anchor clips at (a choice, and no bound: privacy rests on none of it).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// What scores are clipped to …
    pub score: f64,
    /// … and the largest |score| of labels that are common, where there are two; else the same.
    pub common_score: f64,
    /// Largest weight that is usual.
    pub weight: f64,
    /// Largest |third derivative| that is usual.
    pub third: f64,
    /// Mean weight at η = 0.
    pub first_weight: f64,
    /// Newton steps on clipped scores from η = 0 to the farthest label.
    pub crossing: f64,
    /// Whether clipped scores are less what clipping is expected to leave of them.
    pub centred: bool,
    /// Whether scores of numbers end of themselves, as those of laws with heavy tails do.
    pub ends: bool,
    /// A change of η that is large: 1 where links bend, an sd where η is on the labels' own scale.
    pub eta_unit: f64,
}

/// What rows come to at given shared parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// Bounds; the weight is that of η and of scaled parameters alike.
    pub reach: Reach,
    /// What a shared parameter is to be divided by for rows to tell as much of it as of η: one a
    /// parameter, over which its scores come to those of η.
    pub scales: Vec<f64>,
    /// The information of rows.
    pub information: Information,
}

/// What was located last, the latest first: sampler, engine and forecast ask for the same in turn,
/// and it takes as long as a pass over many rows.
static LATEST: Mutex<VecDeque<(Question, Arc<Located>)>> = Mutex::new(VecDeque::new());
/// How many of these are kept.
const KEPT: usize = 8;

/// What is located: a law, its labels, and the bits of shared parameters.
type Question = (Law, LabelRange, Vec<u64>);

/// Sds of a class's score beyond which it is clipped.
const CLASS_SDS: f64 = 4.0;
/// Sds of other labels' scores (of noise, of counts) beyond which any is clipped; those of rows
/// beyond the row bound are clipped at the share of it.
pub(crate) const MOST_SDS: f64 = 8.0;
/// |η| of rows whose class is all but certain.
const CERTAIN: f64 = 8.0;
/// Chance of a class that is seldom seen.
const RARE: f64 = 0.05;
/// Labels of this chance or more are common ones.
const SELDOM: f64 = 0.1;
/// Sizes that a predictor is looked for at, less one: from 1e-3 to beyond the label.
const PLACES: u32 = 200;
/// Weights of labels that are not the best fitted come to this many times those that are.
const MOST_SPREAD: f64 = 4.0;
/// … and of classes, in all directions together, to this many times the usual one.
const CLASS_SPREAD: f64 = 2.5;

impl Law {
    /// For labels like these, without shared parameters.
    pub fn reach(self, labels: &LabelRange) -> Reach {
        let typical = labels.typical();
        let reach = match labels.is_classes() {
            true => self.class_reach(&typical),
            false => self.number_reach(&typical, &labels.seldom()),
        };
        let usable = |v: f64, least: f64| if v.is_finite() && v > least { v } else { least };
        let weight = usable(reach.weight, 1e-12);
        // What rounding leaves of a quadratic has none.
        let bends = reach.third.is_finite() && reach.third > 1e-6 * weight;
        let score = usable(reach.score, 1e-6 * weight.sqrt());
        Reach {
            score,
            common_score: usable(reach.common_score, 1e-3 * score),
            weight,
            third: if bends { reach.third } else { 0.0 },
            first_weight: usable(reach.first_weight, 1e-3 * weight).min(weight),
            crossing: usable(reach.crossing, 1.0),
            centred: false,
            ends: false,
            // Where η is on the labels' own scale, as for linear models.
            eta_unit: match bends && reach.crossing.is_nan() | (reach.crossing <= 1.0) {
                true => 1.0,
                false => 1.0 / weight.sqrt(),
            },
        }
    }

    /// For labels like these at given shared parameters: where typical labels are best fitted.
    pub fn located(self, labels: &LabelRange, shared: &[f64]) -> Arc<Located> {
        let bits = shared.iter().map(|v| v.to_bits()).collect();
        let question: Question = (self, labels.clone(), bits);
        let latest = || LATEST.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, known)) = latest().iter().find(|(asked, _)| *asked == question) {
            return known.clone();
        }
        let located = Arc::new(self.locate(labels, shared));
        let mut latest = latest();
        latest.push_front((question, located.clone()));
        latest.truncate(KEPT);
        located
    }

    fn locate(self, labels: &LabelRange, shared: &[f64]) -> Located {
        let best = self.best_fits(labels, shared);
        let low = best.iter().fold(f64::INFINITY, |m, e| m.min(*e));
        let high = best.iter().fold(f64::NEG_INFINITY, |m, e| m.max(*e));
        let (low, high) = if low < high { (low, high) } else { (-1.0, 1.0) };
        let [low, high] = match labels.is_classes() {
            true => uncertain(self, labels, shared, [low, high]),
            false => [low, high],
        };
        let information = Information::new(self, labels, shared, [low, high]);
        let size = information.size();
        let mut most = vec![0.0f64; size];
        for matrix in information.matrices() {
            most.iter_mut()
                .enumerate()
                .for_each(|(k, m)| *m = m.max(matrix[(k, k)]));
        }
        let least = |v: f64, least: f64| if v.is_finite() && v > least { v } else { least };
        let whole = least(most[0], 1e-30);
        let scales: Vec<f64> = most
            .iter()
            .map(|m| least((m / whole).sqrt(), 1e-6))
            .collect();
        let scaled = |matrix: &DMatrix<f64>| {
            DMatrix::from_fn(size, size, |i, j| matrix[(i, j)] / (scales[i] * scales[j]))
        };
        let weights = information
            .matrices()
            .map(|m| scaled(&m).symmetric_eigenvalues().max());
        let weight = least(weights.fold(0.0, f64::max), 1e-30);
        let mut factor = vec![0.0; size * size];
        let mut at = |eta: f64| {
            information.factor(eta, &mut factor);
            let factor = DMatrix::from_row_slice(size, size, &factor);
            &factor * factor.transpose()
        };
        let middle = scaled(&at(median(&best).unwrap_or(0.0)));
        let inner = best.iter().skip(1).take(best.len().saturating_sub(2));
        let rarest = inner.map(|e| at(*e)[(0, 0)]).fold(f64::INFINITY, f64::min);
        let alike = !labels.is_classes() && rarest > 0.5 * most[0];
        let sds = if labels.is_classes() {
            CLASS_SDS
        } else {
            MOST_SDS
        };
        let usually = sds * weight.sqrt();
        let most = information.largest_scores().iter().zip(&scales);
        let end = most.map(|(m, s)| (m / s).powi(2)).sum::<f64>().sqrt();
        let expected = information.source() == Source::Expected && !labels.is_classes();
        let ends = expected && end < usually;
        let score = if ends {
            least(end, 1e-6 * usually)
        } else {
            usually
        };
        let usual = middle.trace() / size as f64;
        let weight = if information.source() != Source::Expected {
            // What was observed varies more than what is expected.
            MOST_SPREAD * weight
        } else if labels.is_classes() {
            // Cutpoints lie in directions of their own: no row has all of it in the largest.
            weight.min(CLASS_SPREAD * usual)
        } else {
            weight
        };
        Located {
            reach: Reach {
                score,
                common_score: score,
                weight,
                third: weight.powf(1.5),
                first_weight: least(usual, 1e-3 * weight).min(weight),
                crossing: if alike {
                    (0.5 * (high - low) * weight / score).max(1.0)
                } else {
                    1.0
                },
                centred: information.is_centred(),
                ends,
                eta_unit: if alike { 1.0 / weight.sqrt() } else { 1.0 },
            },
            scales: scales[1..].to_vec(),
            information,
        }
    }

    /// The predictors that fit typical labels best.
    fn best_fits(self, labels: &LabelRange, shared: &[f64]) -> Vec<f64> {
        let typical = self.telling(labels);
        let best = typical.iter().map(|y| self.best(*y, shared));
        best.filter(|e| e.is_finite()).collect()
    }

    /// Typical labels, but for those whose sign says that an event was not seen.
    fn telling(self, labels: &LabelRange) -> Vec<f64> {
        let mut typical = labels.typical();
        if matches!(labels, LabelRange::Numbers { .. }) && self.chooses() {
            typical.retain(|y| *y > 0.0);
        }
        typical
    }

    /// The predictor and shared parameters that fit labels best which are spread evenly over what
    /// is typical of a declared range, a row each: where runs start, of declarations alone. The
    /// predictor stays at 0 unless it `moves`. Shared parameters have normal priors of these means
    /// and sds, which decide where such labels do not: a few small counts spread less than a
    /// Poisson law, and would take a shape without end. The search begins at the means.
    pub fn fit_to_range(
        self,
        labels: &LabelRange,
        moves: bool,
        shared: &[(f64, f64)],
    ) -> (f64, Vec<f64>) {
        let typical = self.telling(labels);
        let size = 1 + shared.len();
        let means: Vec<f64> = shared.iter().map(|(mean, _)| *mean).collect();
        let mut at = DVector::from_vec([&[0.0], &means[..]].concat());
        let value = |at: &DVector<f64>| -> f64 {
            let own = &at.as_slice()[1..];
            let rows = typical.iter().map(|y| self.log_likelihood(*y, at[0], own));
            let priors = own.iter().zip(shared);
            let priors = priors.map(|(v, (mean, sd))| -0.5 * ((v - mean) / sd).powi(2));
            (rows.sum::<f64>() + priors.sum::<f64>()) / typical.len().max(1) as f64
        };
        if moves {
            let middle = typical.get(typical.len() / 2).copied().unwrap_or(0.0);
            at[0] = self.best(middle, &means);
        }
        let mut here = value(&at);
        // One coordinate after another, in steps that grow where they help and shrink where not.
        let first = if moves { 0 } else { 1 };
        let mut steps = at.map(|v| 0.5 * v.abs().max(1.0));
        for _ in 0..400 {
            for k in first..size {
                let tried = [steps[k], -steps[k]].map(|step| {
                    let mut to = at.clone();
                    to[k] += step;
                    (value(&to), to)
                });
                // (By less than that, rounding has it.)
                let better = tried.into_iter().find(|(value, _)| *value > here + 1e-12);
                steps[k] *= if better.is_some() { 2.0 } else { 0.5 };
                if let Some((value, to)) = better {
                    (here, at) = (value, to);
                }
            }
            if steps
                .iter()
                .skip(first)
                .zip(at.iter().skip(first))
                .all(|(s, v)| *s < 1e-6 * v.abs().max(1.0))
            {
                break;
            }
        }
        (at[0], at.as_slice()[1..].to_vec())
    }

    /// The law itself says how often a label is seen: rare ones do not count.
    fn class_reach(self, labels: &[f64]) -> Reach {
        let (mut score, mut weight, mut third, mut first) = (0.0f64, 0.0f64, 0.0f64, 0.0);
        let (mut common, mut most_told) = (0.0f64, 0.0f64);
        for k in -160..=160 {
            let eta = CERTAIN * f64::from(k) / 160.0;
            let chances = labels
                .iter()
                .map(|y| self.log_likelihood(*y, eta, &[]).exp());
            let chances: Vec<f64> = chances.collect();
            let whole: f64 = chances.iter().sum();
            let mut told = 0.0;
            for (y, p) in labels.iter().zip(&chances) {
                let (s, w) = self.slopes(*y, eta, &[]);
                told += p / whole * s * s;
                score = score.max(s.abs());
                if *p >= SELDOM * whole {
                    common = common.max(s.abs());
                }
                if *p >= RARE * whole {
                    weight = weight.max(w);
                    third = third.max(self.third(*y, eta, 1e-3).abs());
                }
                if k == 0 {
                    first += p / whole * w;
                }
            }
            most_told = most_told.max(told);
        }
        let score = score.min(CLASS_SDS * weight.sqrt());
        let two = labels == [-1.0, 1.0];
        Reach {
            score,
            common_score: if two { common.min(score) } else { score },
            // What one label bends by may be far more than both are expected to.
            weight: if two { weight.min(most_told) } else { weight },
            third,
            first_weight: first,
            crossing: 1.0,
            centred: false,
            ends: false,
            eta_unit: 1.0,
        }
    }

    /// Weights of labels where they are best fitted, and a few sds beside; scores of all that may
    /// be seen there.
    fn number_reach(self, labels: &[f64], all: &[f64]) -> Reach {
        let best: Vec<f64> = labels.iter().map(|y| self.best(*y, &[])).collect();
        let fitted = labels
            .iter()
            .zip(&best)
            .map(|(y, e)| self.slopes(*y, *e, &[]).1);
        let fitted: Vec<f64> = fitted.filter(|w| w.is_finite()).collect();
        let weight = fitted.iter().fold(0.0f64, |m, w| m.max(*w));
        let least = fitted.iter().fold(f64::INFINITY, |m, w| m.min(*w));
        let sd = 1.0 / weight.sqrt();
        let (mut score, mut third, mut beside) = (0.0f64, 0.0f64, weight);
        let larger = |m: f64, v: f64| if v.is_finite() { m.max(v.abs()) } else { m };
        for (y, e) in labels.iter().zip(&best) {
            for k in [-1.5, -0.75, 0.0, 0.75, 1.5] {
                third = larger(third, self.third(*y, e + k * sd, 1e-3 * sd));
                beside = larger(beside, self.slopes(*y, e + k * sd, &[]).1.max(0.0));
            }
        }
        for y in all {
            for e in &best {
                score = larger(score, self.slopes(*y, *e, &[]).0);
            }
        }
        let firsts = labels.iter().map(|y| self.slopes(*y, 0.0, &[]).1.max(0.0));
        let first_weight = firsts.sum::<f64>() / labels.len().max(1) as f64;
        // η itself is on the labels' scale where weights are all the same.
        let low = best.iter().fold(f64::INFINITY, |m, e| m.min(*e));
        let high = best.iter().fold(f64::NEG_INFINITY, |m, e| m.max(*e));
        let far = (high - low).max(high.abs()).max(low.abs());
        let score = score.min(MOST_SDS * weight.sqrt());
        let alike = least > 0.5 * weight;
        let weight = beside.min(MOST_SPREAD * weight);
        Reach {
            score,
            common_score: score,
            weight,
            third,
            first_weight,
            crossing: if alike { far * weight / score } else { 1.0 },
            centred: false,
            ends: false,
            eta_unit: 1.0,
        }
    }

    /// The predictor that fits a label best.
    pub(super) fn best(self, label: f64, shared: &[f64]) -> f64 {
        let far = (1.1 * label.abs()).max(30.0);
        let sizes =
            (0..=PLACES).map(|k| far * (1e-3 / far).powf(1.0 - f64::from(k) / f64::from(PLACES)));
        let sizes: Vec<f64> = sizes.collect();
        let mut places: Vec<f64> = sizes.iter().rev().map(|v| -v).collect();
        places.push(0.0);
        places.extend(sizes);
        let value = |eta: f64| {
            let value = self.log_likelihood(label, eta, shared);
            if value.is_nan() {
                f64::NEG_INFINITY
            } else {
                value
            }
        };
        let values: Vec<f64> = places.iter().map(|e| value(*e)).collect();
        let most = values.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
        let Some(k) = values.iter().position(|v| *v == most) else {
            return 0.0;
        };
        // One peak lies between the neighbours: thirds of what is left are taken away.
        let (mut low, mut high) = (
            places[k.saturating_sub(1)],
            places[(k + 1).min(places.len() - 1)],
        );
        for _ in 0..60 {
            let third = (high - low) / 3.0;
            let (a, b) = (low + third, high - third);
            match value(a) < value(b) {
                true => low = a,
                false => high = b,
            }
        }
        0.5 * (low + high)
    }

    fn third(self, label: f64, eta: f64, h: f64) -> f64 {
        (self.slopes(label, eta + h, &[]).1 - self.slopes(label, eta - h, &[]).1) / (2.0 * h)
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(0.5 * (values[last / 2] + values[last.div_ceil(2)]))
}
