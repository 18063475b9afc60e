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
                counts_up_to(most)
            }
        }
    }

    /// Labels that may be seen where typical ones are expected: all counts, for these lie on both
    /// sides of their rate.
    pub fn seldom(&self) -> Vec<f64> {
        match self {
            LabelRange::Counts(max) => counts_up_to(*max),
            _ => self.typical(),
        }
    }

    /// Whether labels are classes.
    pub fn is_classes(&self) -> bool {
        matches!(self, LabelRange::Classes(_))
    }
}

/// Counts up to this, at most 33 of them.
fn counts_up_to(most: u32) -> Vec<f64> {
    let mut counts = grid(0.0, f64::from(most), most.min(32));
    counts.iter_mut().for_each(|v| *v = v.round());
    counts
}

/// `parts` + 1 points from `low` to `high`.
fn grid(low: f64, high: f64, parts: u32) -> Vec<f64> {
    let at = |k| low + (high - low) * f64::from(k) / f64::from(parts);
    (0..=parts).map(at).collect()
}

/// A label below 0 is a time without its event where its likelihood is no farther than this from
/// the chance of all later events.
const UNLIKE: f64 = 0.02;
/// Points of η in a table, less one; the same of classes, which take little time.
const PARTS: u32 = 128;
const CLASS_PARTS: u32 = 1024;
/// Where a label tells less than this of the most that one can, its class is all but certain.
const CERTAIN: f64 = 1e-6;
/// Labels of one sum, less one; the same while the sum's range is looked for.
const NODES: u32 = 128;
const COARSE: u32 = 40;
/// Densities below this share of the largest do not count.
const NEGLIGIBLE: f64 = 1e-7;
/// Nats that a density's logarithm differs by where its peak is found.
const FLAT: f64 = 0.01;
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
    parts: u32,
    size: usize,
    /// size × size values a grid point, row-major.
    factors: Vec<f64>,
    /// What labels tell there, where clipped scores are centred: of classes, or of times, the
    /// shortest first.
    outcomes: Vec<Vec<Outcome>>,
    /// Largest score of any label, in η and in each shared parameter.
    largest: Vec<f64>,
    source: Source,
}

/// What a row's information is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// As the law expects it at η.
    Expected,
    /// Of an event at the time t z zᵀ, z the derivatives of its log hazard, and nothing where the
    /// event was not seen: the mean is Fisher's, whatever ends the waiting.
    Events,
    /// As observed, for the law does not say what signs of labels, or a label of 0, stand for: it
    /// may be indefinite.
    Observed,
}

impl Information {
    /// Of `law` at φ for η between two values.
    pub fn new(law: Law, labels: &LabelRange, shared: &[f64], [low, high]: [f64; 2]) -> Self {
        let size = 1 + shared.len();
        let (mut factors, mut told) = (Vec::new(), Vec::new());
        let (positive, from_zero) = match labels {
            LabelRange::Numbers { low, .. } => {
                (*low < 0.0 && law.chooses(), *low == 0.0 && law.chooses())
            }
            _ => (false, false),
        };
        let centre = 0.5 * (low + high);
        let zero = match from_zero {
            true => Zero::of(law, labels, centre, shared),
            false => Zero::Density,
        };
        let parts = match labels.is_classes() {
            true => CLASS_PARTS,
            false => PARTS,
        };
        let all: Vec<Vec<Outcome>> = grid(low, high, parts)
            .into_iter()
            .map(|eta| outcomes(law, labels, (positive, zero), eta, shared))
            .collect();
        let mut largest = vec![0.0f64; size];
        for outcomes in &all {
            factors.extend(factor(expected(outcomes, size)));
            for outcome in outcomes {
                let all = largest.iter_mut().zip(&outcome.scores);
                all.for_each(|(most, score)| *most = most.max(score.abs()));
            }
        }
        let source = match positive {
            false if zero == Zero::Unclear => Source::Observed,
            false => Source::Expected,
            true if tells_times(law, &all[parts as usize / 2], centre, shared) => Source::Events,
            true => Source::Observed,
        };
        if labels.is_classes() {
            told = all;
        } else if source == Source::Events {
            let etas = grid(low, high, parts);
            let each = all.into_iter().zip(etas);
            told = each.map(|(o, eta)| hazards(law, o, eta, shared)).collect();
        }
        Information {
            low,
            step: (high - low) / f64::from(parts),
            parts,
            size,
            factors,
            outcomes: told,
            largest,
            source,
        }
    }

    /// The largest score in η, and in each shared parameter, of labels that the law expects.
    pub fn largest_scores(&self) -> &[f64] {
        &self.largest
    }

    /// 1 + the number of shared parameters.
    pub fn size(&self) -> usize {
        self.size
    }

    /// What a row's is.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Whether clipped scores are less what clipping is expected to leave of them.
    pub fn is_centred(&self) -> bool {
        !self.outcomes.is_empty()
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
        let place = ((eta - self.low) / self.step).clamp(0.0, f64::from(self.parts));
        // NaN becomes 0 in the conversion.
        let cell = (place as usize).min(self.parts as usize - 1);
        let share = if place.is_nan() {
            0.0
        } else {
            place - cell as f64
        };
        (cell, share)
    }

    /// What a row's information is made of; what is no number counts as 0.
    pub fn split(&self, law: Law, [label, eta]: [f64; 2], shared: &[f64], parts: &mut Parts) {
        let size = self.size;
        parts.minus.fill(false);
        match self.source {
            Source::Expected => {
                let mut factor = vec![0.0; size * size];
                self.factor(eta, &mut factor);
                for j in 0..size {
                    for k in 0..size {
                        parts.columns[j * size + k] = factor[k * size + j];
                    }
                }
            }
            Source::Events => {
                parts.columns.fill(0.0);
                if label > 0.0 {
                    let event = law.hazard_scores(label, eta, shared);
                    let all = parts.columns.iter_mut().zip(event);
                    all.for_each(|(c, z)| *c = if z.is_finite() { z } else { 0.0 });
                }
            }
            Source::Observed => {
                let mut triangle = law.bends(label, eta, shared).into_iter();
                let mut matrix = DMatrix::zeros(size, size);
                for k in 0..size {
                    for l in 0..=k {
                        let value = triangle.next().filter(|v| v.is_finite());
                        matrix[(k, l)] = value.unwrap_or(0.0);
                        matrix[(l, k)] = matrix[(k, l)];
                    }
                }
                let eigen = matrix.symmetric_eigen();
                for j in 0..size {
                    let value = eigen.eigenvalues[j];
                    parts.minus[j] = value < 0.0;
                    for k in 0..size {
                        parts.columns[j * size + k] =
                            eigen.eigenvectors[(k, j)] * value.abs().sqrt();
                    }
                }
            }
        }
    }

    /// The scores of a row, clipped, and less what clipping is expected to leave of them where the
    /// law holds, which would be a bias: labels of classes and of times are lopsided
    /// (docs/proofs/anchors.md, "Parameters that rows share").
    pub fn centred(
        &self,
        law: Law,
        [label, eta]: [f64; 2],
        shared: &[f64],
        clip: &Clip,
    ) -> Vec<f64> {
        let mut until = f64::INFINITY;
        let mut scores = match self.source {
            Source::Events => {
                until = self.stop(eta, clip, label.abs());
                let seen = label > 0.0 && until >= label;
                let mut scores = law.scores(if seen { label } else { -until }, eta, shared);
                if seen {
                    let event = law.hazard_scores(label, eta, shared);
                    add(&mut scores, &event, clip.share(&event) - 1.0);
                }
                scores
            }
            Source::Expected | Source::Observed => {
                let mut scores = law.scores(label, eta, shared);
                let share = clip.share(&scores);
                scores.iter_mut().for_each(|s| *s *= share);
                scores
            }
        };
        let mean = self.clipped_mean(eta, clip, until);
        add(&mut scores, &mean, -1.0);
        if self.source != Source::Events {
            let share = self.share_of_all(eta, clip, &mean);
            scores.iter_mut().for_each(|s| *s *= share);
        }
        scores
    }

    /// The share of clipped scores less their mean that no label takes beyond the clip: what would
    /// be cut of one alone would be a bias again.
    fn share_of_all(&self, eta: f64, clip: &Clip, mean: &[f64]) -> f64 {
        let (cell, share) = self.place(eta);
        let around = self.outcomes.iter().skip(cell).take(2);
        let each = around.zip([1.0 - share, share]).map(|(outcomes, weight)| {
            let least = outcomes.iter().map(|o| {
                let by = clip.share(&o.scores);
                let left: Vec<f64> = o.scores.iter().zip(mean).map(|(s, m)| by * s - m).collect();
                clip.share(&left)
            });
            weight * least.fold(1.0, f64::min)
        });
        each.sum()
    }

    /// What clipping is expected to leave of scores: `E a(s)·s` over those of the law at η, a the
    /// clip's share; of times, whose events alone are shortened, until `until`.
    fn clipped_mean(&self, eta: f64, clip: &Clip, until: f64) -> Vec<f64> {
        let mut mean = vec![0.0; self.size];
        let (cell, share) = self.place(eta);
        let around = self.outcomes.iter().skip(cell).take(2);
        for (outcomes, weight) in around.zip([1.0 - share, share]) {
            for outcome in outcomes.iter().take_while(|o| o.label <= until) {
                // Scores have the mean 0, so what is cut is the other side of what is left.
                let cut = 1.0 - clip.share(&outcome.scores);
                add(&mut mean, &outcome.scores, -cut * weight * outcome.chance);
            }
        }
        mean
    }

    /// Until when a row counts that was waited for until `time`: no longer than until what it is
    /// expected to add has the largest norm. It follows from the row's features, so what it adds
    /// until then has the mean 0 too.
    fn stop(&self, eta: f64, clip: &Clip, time: f64) -> f64 {
        let (cell, share) = self.place(eta);
        let nearest = cell + usize::from(share > 0.5);
        let mut sum = vec![0.0; self.size];
        let outcomes = self.outcomes.get(nearest).into_iter().flatten();
        for outcome in outcomes.take_while(|o| o.label < time) {
            add(&mut sum, &outcome.scores, outcome.chance);
            if clip.share(&sum) < 1.0 {
                return outcome.label;
            }
        }
        time
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

/// The part of a range of η where classes are not all but certain.
pub(super) fn uncertain(
    law: Law,
    labels: &LabelRange,
    shared: &[f64],
    [low, high]: [f64; 2],
) -> [f64; 2] {
    let points = grid(low, high, CLASS_PARTS);
    let told = |eta: &f64| {
        let outcomes = outcomes(law, labels, (false, Zero::Density), *eta, shared);
        expected(&outcomes, 1 + shared.len())[(0, 0)]
    };
    let told: Vec<f64> = points.iter().map(told).collect();
    let least = CERTAIN * largest(&told);
    let counts = |v: &f64| *v >= least;
    match (told.iter().position(counts), told.iter().rposition(counts)) {
        (Some(first), Some(last)) if first < last => [points[first], points[last]],
        _ => [low, high],
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

/// A symmetric matrix as a sum of outer products of columns.
pub struct Parts {
    /// One column after the other.
    pub columns: Vec<f64>,
    /// Whether a column's product is taken away.
    pub minus: Vec<bool>,
}

impl Parts {
    /// Of a size × size matrix.
    pub fn new(size: usize) -> Self {
        Parts {
            columns: vec![0.0; size * size],
            minus: vec![false; size],
        }
    }
}

/// What scores are shortened to.
pub struct Clip<'a> {
    /// Products of the columns that scores go with, size × size, row-major.
    pub gram: &'a [f64],
    /// Largest norm (sᵀ G s)^½.
    pub most: f64,
}

impl Clip<'_> {
    /// The share ≤ 1 of scores that is left; 1 of what is no number.
    fn share(&self, scores: &[f64]) -> f64 {
        let rows = self.gram.chunks_exact(scores.len()).zip(scores);
        let square: f64 = rows
            .map(|(row, s)| s * row.iter().zip(scores).map(|(g, s)| g * s).sum::<f64>())
            .sum();
        if square > self.most * self.most {
            self.most / square.sqrt()
        } else {
            1.0
        }
    }
}

fn add(sum: &mut [f64], other: &[f64], times: f64) {
    let both = sum.iter_mut().zip(other);
    both.for_each(|(s, o)| *s += times * o);
}

/// A label, or a few that one stands for: how often the law draws it, and what it says then.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    label: f64,
    /// Of times: of an event then, where there was none before.
    chance: f64,
    /// d log p in (η, φ); of times those of the log hazard.
    scores: Vec<f64>,
}

/// Whether a label below 0 says that there was no event until then: its likelihood is the chance of
/// all later ones.
fn tells_times(law: Law, outcomes: &[Outcome], eta: f64, shared: &[f64]) -> bool {
    let mut later = 1.0;
    !outcomes.is_empty()
        && outcomes.iter().all(|o| {
            later -= o.chance;
            let unseen = law.log_likelihood(-o.label, eta, shared).exp();
            (later + 0.5 * o.chance - unseen).abs() < UNLIKE
        })
}

/// Events by their hazards, of times that are drawn.
fn hazards(law: Law, outcomes: Vec<Outcome>, eta: f64, shared: &[f64]) -> Vec<Outcome> {
    let each = outcomes.into_iter().map(|o| Outcome {
        label: o.label,
        chance: o.chance / law.log_likelihood(-o.label, eta, shared).exp(),
        scores: law.hazard_scores(o.label, eta, shared),
    });
    each.filter(|o| o.chance.is_finite() && o.scores.iter().all(|s| s.is_finite()))
        .collect()
}

/// What the label 0 is where an expression has one of its own for it, and labels are numbers from 0
/// on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    /// One number of many.
    Density,
    /// It has a probability, as where some rows have no costs, or no rain.
    Probability,
    /// The expression does not say: with it the whole does not add up to 1, nor without.
    Unclear,
}

impl Zero {
    /// At one (η, φ).
    fn of(law: Law, labels: &LabelRange, eta: f64, shared: &[f64]) -> Self {
        let LabelRange::Numbers { low, high } = labels else {
            return Zero::Density;
        };
        let values = |ys: &[f64]| law.log_likelihoods(ys, eta, shared);
        let (nodes, unit) = numbers(values, [*low, *high], true);
        let (ys, weights): (Vec<f64>, Vec<f64>) = nodes.into_iter().unzip();
        let densities = values(&ys).into_iter().map(f64::exp);
        let others = densities.zip(weights).map(|(p, w)| p * w * unit);
        Zero::beside(
            others.filter(|p| p.is_finite()).sum(),
            values(&[0.0])[0].exp(),
        )
    }

    /// Beside the integral over all positive numbers.
    pub fn beside(others: f64, own: f64) -> Self {
        match (others - 1.0, others + own - 1.0) {
            _ if own.is_nan() || own <= NEGLIGIBLE * others => Zero::Density,
            (_, with) if with.abs() < UNLIKE => Zero::Probability,
            (without, _) if without.abs() < UNLIKE => Zero::Density,
            _ => Zero::Unclear,
        }
    }
}

/// The labels of a law at one (η, φ); their chances add up to 1.
fn outcomes(
    law: Law,
    labels: &LabelRange,
    (positive, zero): (bool, Zero),
    eta: f64,
    shared: &[f64],
) -> Vec<Outcome> {
    let nodes = match labels {
        LabelRange::Classes(all) => all.iter().map(|y| (*y, 1.0)).collect(),
        LabelRange::Counts(max) => counts(law, *max, eta, shared),
        LabelRange::Numbers { low, high } => {
            let values = |ys: &[f64]| law.log_likelihoods(ys, eta, shared);
            // What it says of other signs is another matter than a label's density.
            let positive = positive || *low >= 0.0 && law.chooses();
            let (mut nodes, unit) = numbers(values, [*low, *high], positive);
            nodes.extend((zero == Zero::Probability).then_some((0.0, 1.0 / unit)));
            nodes
        }
    };
    let (labels, weights): (Vec<f64>, Vec<f64>) = nodes.into_iter().unzip();
    let values = law.log_likelihoods(&labels, eta, shared);
    let scores = law.score_lists(&labels, eta, shared);
    let most = largest(&values);
    let (mut outcomes, mut whole) = (Vec::new(), 0.0);
    for (k, label) in labels.into_iter().enumerate() {
        let chance = weights[k] * (values[k] - most).exp();
        // Where a label's scores are no numbers the others must not count for it.
        whole += if chance > 0.0 { chance } else { 0.0 };
        let scores: Vec<f64> = scores.iter().map(|list| list[k]).collect();
        if chance > 0.0 && scores.iter().all(|s| s.is_finite()) {
            outcomes.push(Outcome {
                label,
                chance,
                scores,
            });
        }
    }
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
/// apart in the tails, with their weights, and what one of these is worth; `values`: its
/// logarithms. Where numbers below 0 have none, these are even on a log scale, and where those
/// above 1 have none either on that of log-odds.
fn numbers(
    values: impl Fn(&[f64]) -> Vec<f64>,
    [low, high]: [f64; 2],
    positive: bool,
) -> (Vec<(f64, f64)>, f64) {
    let value = |y: f64| values(&[y])[0];
    // Labels beyond the range are clamped, and the law knows nothing of that.
    let width = FAR * (high - low);
    let none = |y: f64| !value(y).is_finite();
    let scale_of = match positive || low > 0.0 && none(-width) {
        false => Scale::Plain,
        true if high < 1.0 && none(1.0 + width) && none(2.0) => Scale::Logit,
        true => Scale::Log,
    };
    let label = |t: f64| scale_of.label(t);
    let densities = |ts: &[f64]| -> Vec<f64> {
        let labels: Vec<f64> = ts.iter().map(|t| label(*t)).collect();
        let both = values(&labels).into_iter().zip(ts);
        both.map(|(v, t)| v + scale_of.slope(*t).ln()).collect()
    };
    let density = |t: f64| densities(&[t])[0];
    let [low, high] = match scale_of {
        Scale::Log => [high.ln() - LOG_REACH, high.ln() + FAR.ln()],
        // Beyond that 1 − y is no number any more.
        Scale::Logit => [-LOGIT_REACH, LOGIT_REACH],
        Scale::Plain => [low - width, high + width],
    };
    let (mut from, mut to) = (low, high);
    for _ in 0..ROUNDS {
        let points = grid(from, to, COARSE);
        let values = densities(&points);
        let most = largest(&values);
        let Some(peak) = values.iter().position(|v| *v == most) else {
            break;
        };
        let beside = [peak.saturating_sub(1), (peak + 1).min(points.len() - 1)];
        [from, to] = beside.map(|k| points[k]);
        if beside.iter().all(|k| values[*k] > most - FLAT) {
            break;
        }
    }
    let peak = 0.5 * (from + to);
    let top = density(peak);
    let mut scale = (0.25 * (to - from)).max(1e-14 * (high - low));
    while scale < high - low {
        let fallen = |t: f64| density(t).is_nan() || density(t) < top - 0.5;
        if fallen(peak - scale) || fallen(peak + scale) {
            break;
        }
        scale *= 2.0;
    }
    let place = |u: f64| peak + scale * u.sinh();
    let counts = |us: &[f64]| -> Vec<bool> {
        let ts: Vec<f64> = us.iter().map(|u| place(*u)).collect();
        let each = densities(&ts).into_iter().zip(&ts);
        each.map(|(v, t)| (low..=high).contains(t) && v.is_finite() && v >= top + NEGLIGIBLE.ln())
            .collect()
    };
    let far = ((high - low) / scale).asinh();
    let whole = grid(-far, far, 4 * NODES);
    let [first, end] = ends(&whole, counts).unwrap_or([0.0; 2]);
    let each = grid(first, end, NODES).into_iter().map(|u| {
        let t = place(u);
        (label(t), u.cosh() * scale_of.slope(t))
    });
    (each.collect(), scale * (end - first) / f64::from(NODES))
}

/// The first and the last of points in a row that count, found by looking at every fourth.
fn ends(points: &[f64], counts: impl Fn(&[f64]) -> Vec<bool>) -> Option<[f64; 2]> {
    let fourths: Vec<f64> = points.iter().step_by(4).copied().collect();
    let counted = counts(&fourths);
    let first = 4 * counted.iter().position(|c| *c)?;
    let last = 4 * counted.iter().rposition(|c| *c)?;
    let before = &points[first.saturating_sub(3)..first];
    let after = &points[last..(last + 4).min(points.len())];
    let [earlier, later] = [before, after].map(|p| (p, counts(p)));
    let earliest = earlier.1.iter().position(|c| *c).map(|k| earlier.0[k]);
    let latest = later.1.iter().rposition(|c| *c).map(|k| later.0[k]);
    Some([earliest.unwrap_or(points[first]), latest?])
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
        let values = law.log_likelihoods(&points, eta, shared);
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
