//! What a row is expected to tell of its predictor and of shared parameters: Fisher's information,
//! by sums over labels, tabulated in η.

use nalgebra::{DMatrix, linalg::Cholesky};

use super::Law;

/// The labels that there are, by declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelRange {
    /// These.
    Classes(Vec<f64>),
    /// 0, 1, … up to this.
    Counts(u32),
    /// All numbers between two.
    Numbers {
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
}

impl LabelRange {
    /// Labels that bounds are looked up at: all classes; of numbers a grid; of counts those up to a
    /// quarter of the largest, for few rates exceed that or counts would be clamped.
    pub fn typical(&self) -> Vec<f64> {
        match self {
            LabelRange::Classes(all) => all.clone(),
            LabelRange::Numbers { low, high } => grid(*low, *high, 32),
            LabelRange::Counts(max) => {
                let most = (max / 4).max(1);
                let mut counts = grid(0.0, f64::from(most), most.min(32));
                counts.iter_mut().for_each(|v| *v = v.round());
                counts
            }
        }
    }

    /// Whether labels are classes.
    pub fn is_classes(&self) -> bool {
        matches!(self, LabelRange::Classes(_))
    }
}

/// `parts` + 1 points from `low` to `high`.
fn grid(low: f64, high: f64, parts: u32) -> Vec<f64> {
    let at = |k| low + (high - low) * f64::from(k) / f64::from(parts);
    (0..=parts).map(at).collect()
}

/// Points of η in a table, less one.
const PARTS: u32 = 128;
/// Labels of one sum, less one; the same while the sum's range is looked for.
const NODES: u32 = 128;
const COARSE: u32 = 40;
/// Densities below this share of the largest do not count.
const NEGLIGIBLE: f64 = 1e-7;
/// Rounds of looking for where a density is.
const ROUNDS: usize = 20;
/// Labels are looked for this many times their declared range beyond its ends.
const FAR: f64 = 1e6;
/// Positive numbers are looked for down to this many e-folds below the largest.
const LOG_REACH: f64 = 80.0;
/// Log-odds of shares up to here: 1 − y is a number there.
const LOGIT_REACH: f64 = 34.0;
/// Blocks of counts that one stands for, over their distance from the smallest that matters.
const BLOCK_GROWTH: f64 = 0.04;

/// A law's expected information in (η, φ) at given φ: `E s sᵀ` over labels, s the scores, for η on
/// a grid, as Cholesky factors. Between grid points factors are interpolated, and beyond the ends
/// they stay: what is made of one is positive semi-definite anywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Information {
    low: f64,
    step: f64,
    size: usize,
    /// size × size values a grid point, row-major.
    factors: Vec<f64>,
    /// The labels there, where they are classes.
    outcomes: Vec<Vec<Outcome>>,
    of_positive_labels: bool,
}

impl Information {
    /// Of `law` at φ for η between two values.
    pub fn new(law: Law, labels: &LabelRange, shared: &[f64], [low, high]: [f64; 2]) -> Self {
        let size = 1 + shared.len();
        let (mut factors, mut classes) = (Vec::new(), Vec::new());
        let of_positive_labels = match labels {
            LabelRange::Numbers { low, .. } => *low < 0.0 && law.chooses(),
            _ => false,
        };
        for eta in grid(low, high, PARTS) {
            let outcomes = outcomes(law, labels, of_positive_labels, eta, shared);
            factors.extend(factor(expected(&outcomes, size)));
            if labels.is_classes() {
                classes.push(outcomes);
            }
        }
        Information {
            low,
            step: (high - low) / f64::from(PARTS),
            size,
            factors,
            outcomes: classes,
            of_positive_labels,
        }
    }

    /// 1 + the number of shared parameters.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether it is of some labels alone, those above 0, and so not what a row is expected to
    /// tell: a sign says that an event was not seen.
    pub fn is_partial(&self) -> bool {
        self.of_positive_labels
    }

    /// The lower triangular factor R of the information R Rᵀ at η, row-major; η that is no number
    /// counts as the lowest.
    pub fn factor(&self, eta: f64, out: &mut [f64]) {
        let (cell, share) = self.place(eta);
        let entries = self.size * self.size;
        let (below, above) = self.factors[cell * entries..].split_at(entries);
        for ((o, a), b) in out.iter_mut().zip(below).zip(above) {
            *o = a + share * (b - a);
        }
    }

    /// The grid point below η, and how far η is on the way to the next one.
    fn place(&self, eta: f64) -> (usize, f64) {
        let place = ((eta - self.low) / self.step).clamp(0.0, f64::from(PARTS));
        // NaN becomes 0 in the conversion.
        let cell = (place as usize).min(PARTS as usize - 1);
        let share = if place.is_nan() {
            0.0
        } else {
            place - cell as f64
        };
        (cell, share)
    }

    /// What clipping is expected to leave of the scores of classes: `E a(s)·s` over those of the law
    /// at η, a ≤ 1 the share to which scores of the norm (sᵀ G s)^½ are shortened where they may have
    /// the norm `most`. `gram`: G, size × size, row-major. Scores of other labels have none here.
    pub fn clipped_mean(&self, eta: f64, gram: &[f64], most: f64, out: &mut [f64]) {
        out.fill(0.0);
        let (cell, share) = self.place(eta);
        let around = self.outcomes.iter().skip(cell).take(2);
        for (outcomes, weight) in around.zip([1.0 - share, share]) {
            for outcome in outcomes {
                let rows = gram.chunks_exact(self.size).zip(&outcome.scores);
                let square: f64 = rows
                    .map(|(row, s)| {
                        let along = row.iter().zip(&outcome.scores);
                        s * along.map(|(g, s)| g * s).sum::<f64>()
                    })
                    .sum();
                // Scores have the mean 0, so what is cut is the other side of what is left.
                if square > most * most {
                    let cut = weight * outcome.chance * (1.0 - most / square.sqrt());
                    let sum = out.iter_mut().zip(&outcome.scores);
                    sum.for_each(|(o, s)| *o -= cut * s);
                }
            }
        }
    }

    /// R Rᵀ at each grid point.
    pub fn matrices(&self) -> impl Iterator<Item = DMatrix<f64>> + '_ {
        let each = self.factors.chunks_exact(self.size * self.size);
        each.map(|f| {
            let factor = DMatrix::from_row_slice(self.size, self.size, f);
            &factor * factor.transpose()
        })
    }
}

/// A triangular factor of a matrix that is positive semi-definite up to rounding.
fn factor(matrix: DMatrix<f64>) -> Vec<f64> {
    let size = matrix.nrows();
    let most = matrix.diagonal().max();
    let mut ridge = 1e-12 * most;
    for _ in 0..40 {
        let raised = &matrix + DMatrix::identity(size, size) * ridge;
        if let Some(found) = Cholesky::new(raised) {
            return found.l().transpose().iter().copied().collect();
        }
        ridge *= 10.0;
    }
    vec![0.0; size * size]
}

/// `E s sᵀ` at one (η, φ).
fn expected(outcomes: &[Outcome], size: usize) -> DMatrix<f64> {
    let mut sum = DMatrix::zeros(size, size);
    for outcome in outcomes {
        let scores = DMatrix::from_column_slice(size, 1, &outcome.scores);
        sum += &scores * scores.transpose() * outcome.chance;
    }
    sum
}

/// A label, or a few that one stands for: how often the law draws it, and what it says then.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    chance: f64,
    /// d log p in (η, φ).
    scores: Vec<f64>,
}

/// The labels of a law at one (η, φ); their chances add up to 1.
fn outcomes(
    law: Law,
    labels: &LabelRange,
    positive: bool,
    eta: f64,
    shared: &[f64],
) -> Vec<Outcome> {
    let nodes = match labels {
        LabelRange::Classes(all) => all.iter().map(|y| (*y, 1.0)).collect(),
        LabelRange::Counts(max) => counts(law, *max, eta, shared),
        LabelRange::Numbers { low, high } => {
            let value = |y: f64| law.log_likelihood(y, eta, shared);
            // What it says of other signs is another matter than a label's density.
            let positive = positive || *low >= 0.0 && law.chooses();
            numbers(value, [*low, *high], positive)
        }
    };
    let values: Vec<f64> = nodes
        .iter()
        .map(|(y, _)| law.log_likelihood(*y, eta, shared))
        .collect();
    let most = largest(&values);
    let mut outcomes = Vec::new();
    for ((y, weight), value) in nodes.iter().zip(values) {
        let chance = weight * (value - most).exp();
        let scores = law.scores(*y, eta, shared);
        if chance > 0.0 && scores.iter().all(|s| s.is_finite()) {
            outcomes.push(Outcome { chance, scores });
        }
    }
    let whole: f64 = outcomes.iter().map(|o| o.chance).sum();
    outcomes.iter_mut().for_each(|o| o.chance /= whole);
    outcomes
}

fn largest(values: &[f64]) -> f64 {
    let finite = values.iter().filter(|v| v.is_finite());
    finite.fold(f64::NEG_INFINITY, |m, v| m.max(*v))
}

/// Counts that are not negligible, each with the number of counts that it stands for: the smallest
/// ones one by one, larger ones by blocks that grow. 0, which some laws have a share of its own
/// for, is always one of them.
fn counts(law: Law, max: u32, eta: f64, shared: &[f64]) -> Vec<(f64, f64)> {
    let whole = |from: f64, to: f64| -> Vec<f64> {
        let parts = COARSE.min((to - from) as u32).max(1);
        let mut all = grid(from, to, parts);
        all.iter_mut().for_each(|v| *v = v.round());
        all.dedup();
        all
    };
    let range = [1.0, f64::from(max.max(1))];
    let [low, high] = narrowed(law, range, eta, shared, whole);
    let mut nodes = vec![(0.0, 1.0)];
    let mut first = low.floor();
    while first <= high {
        let block = (BLOCK_GROWTH * (first - low)).floor().max(1.0);
        let block = block.min(high.ceil() - first + 1.0);
        // Their middle, which is a count or half of one more.
        nodes.push((first + 0.5 * (block - 1.0), block));
        first += block;
    }
    nodes
}

/// How a density of positive numbers is spread out, so that it has one peak and light tails.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Plain,
    Log,
    /// Of shares, log y/(1 − y): their density may be largest at an end.
    Logit,
}

impl Scale {
    /// The number at t.
    fn label(self, t: f64) -> f64 {
        match self {
            Scale::Plain => t,
            Scale::Log => t.exp(),
            Scale::Logit => 1.0 / (1.0 + (-t).exp()),
        }
    }

    /// d label/dt.
    fn slope(self, t: f64) -> f64 {
        match self {
            Scale::Plain => 1.0,
            Scale::Log => t.exp(),
            Scale::Logit => {
                let y = self.label(t);
                y * self.label(-t)
            }
        }
    }
}

/// Numbers where a density of one peak is not negligible, close to each other at the peak and far
/// apart in the tails, with their weights; `value`: its logarithm. Where numbers below 0 have none,
/// these are even on a log scale, and where those above 1 have none either on that of log-odds.
fn numbers(value: impl Fn(f64) -> f64, [low, high]: [f64; 2], positive: bool) -> Vec<(f64, f64)> {
    // Labels beyond the range are clamped, and the law knows nothing of that.
    let width = FAR * (high - low);
    let none = |y: f64| !value(y).is_finite();
    let scale_of = match positive || low > 0.0 && none(-width) {
        false => Scale::Plain,
        true if high < 1.0 && none(1.0 + width) && none(2.0) => Scale::Logit,
        true => Scale::Log,
    };
    let label = |t: f64| scale_of.label(t);
    let density = |t: f64| value(label(t)) + scale_of.slope(t).ln();
    let [low, high] = match scale_of {
        Scale::Log => [high.ln() - LOG_REACH, high.ln() + FAR.ln()],
        // Beyond that 1 − y is no number any more.
        Scale::Logit => [-LOGIT_REACH, LOGIT_REACH],
        Scale::Plain => [low - width, high + width],
    };
    let (mut from, mut to) = (low, high);
    for _ in 0..ROUNDS {
        let points = grid(from, to, COARSE);
        let values: Vec<f64> = points.iter().map(|t| density(*t)).collect();
        let most = largest(&values);
        let Some(peak) = values.iter().position(|v| *v == most) else {
            break;
        };
        from = points[peak.saturating_sub(1)];
        to = points[(peak + 1).min(points.len() - 1)];
    }
    let peak = 0.5 * (from + to);
    let top = density(peak);
    let mut scale = 1e-14 * (high - low);
    while scale < high - low {
        let fallen = |t: f64| density(t).is_nan() || density(t) < top - 0.5;
        if fallen(peak - scale) || fallen(peak + scale) {
            break;
        }
        scale *= 2.0;
    }
    let place = |u: f64| peak + scale * u.sinh();
    let counts = |u: f64| {
        let t = place(u);
        let v = density(t);
        (low..=high).contains(&t) && v.is_finite() && v >= top + NEGLIGIBLE.ln()
    };
    let far = ((high - low) / scale).asinh();
    let whole = grid(-far, far, 4 * NODES);
    let first = whole.iter().find(|u| counts(**u)).copied().unwrap_or(0.0);
    let end = whole.iter().rfind(|u| counts(**u)).copied().unwrap_or(0.0);
    let each = grid(first, end, NODES).into_iter();
    each.map(|u| {
        let t = place(u);
        (label(t), u.cosh() * scale_of.slope(t))
    })
    .collect()
}

/// The part of a range in which a density of one peak is not negligible.
fn narrowed(
    law: Law,
    [mut low, mut high]: [f64; 2],
    eta: f64,
    shared: &[f64],
    nodes: impl Fn(f64, f64) -> Vec<f64>,
) -> [f64; 2] {
    for _ in 0..ROUNDS {
        let points = nodes(low, high);
        let values: Vec<f64> = points
            .iter()
            .map(|y| law.log_likelihood(*y, eta, shared))
            .collect();
        let least = largest(&values) + NEGLIGIBLE.ln();
        let counts = |v: &f64| v.is_finite() && *v >= least;
        let (Some(first), Some(last)) = (
            values.iter().position(counts),
            values.iter().rposition(counts),
        ) else {
            break;
        };
        let from = points[first.saturating_sub(1)];
        let to = points[(last + 1).min(points.len() - 1)];
        let settled = to - from > 0.7 * (high - low);
        (low, high) = (from, to);
        if settled {
            break;
        }
    }
    [low, high]
}
