//! The law of a label by numbers: exp of a log likelihood, made to add up to 1 over the declared
//! labels.

/// Cells of a search for the range in which the probability lies, and of the first grid over it.
const COARSE: usize = 256;
/// Labels whose log density lies so far under the largest one do not count.
const NEGLIGIBLE: f64 = 40.0;
/// Rounds of a search, each of which leaves at most half of the range, and of halving cells.
const ROUNDS: usize = 64;
/// Most probability of a cell, and most cells.
const HEAVY: f64 = 1.0 / 512.0;
const MOST_CELLS: usize = 1 << 13;
/// Largest step of the log density between cells that have more than this probability.
const STEEP: f64 = 0.5;
const LIGHT: f64 = 1e-6;

/// Probability of counts beyond the declared ones that is left out …
const FORGOTTEN: f64 = 1e-6;
/// … unless it lies beyond so many times the largest of these.
const FARTHEST: u32 = 32;

/// A density is added up to so many times its declared range.
const FARTHER: f64 = 1e4;

/// A law on a grid: of numbers, a density that is constant on each of many cells; of whole numbers,
/// a probability for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Numeric {
    /// Ends of the cells of numbers; none for whole numbers.
    edges: Vec<f64>,
    /// Probability of the first k + 1 cells.
    sums: Vec<f64>,
    mean: f64,
    /// Whether a negative number says that there was no event until then.
    times: bool,
}

/// A part of the range, with the log density in its middle.
#[derive(Clone, Copy)]
struct Part {
    low: f64,
    width: f64,
    log: f64,
}

impl Part {
    fn new(low: f64, width: f64, log_density: &impl Fn(f64) -> f64) -> Self {
        let log = log_density(low + 0.5 * width);
        Part { low, width, log }
    }
}

impl Numeric {
    /// Of a log density on [low, high], up to a constant. The part of the range that counts is
    /// found in rounds, each of which keeps the cells near the largest value: a peak narrower than
    /// 1/256 of the range is found where the log density leads up to it. Then cells are halved that
    /// hold much, or where the density changes much.
    pub fn of_numbers(low: f64, high: f64, log_density: impl Fn(f64) -> f64) -> Self {
        Numeric::of_cells(&cells(low, high, log_density))
    }

    /// Of numbers from 0 on, of which 0 has a probability of its own: the exponential of what
    /// `log_density` says there.
    pub fn of_zero_and_numbers(high: f64, log_density: impl Fn(f64) -> f64) -> Self {
        let (zero, cells) = (log_density(0.0).exp(), cells(0.0, high, log_density));
        let others = Numeric::of_cells(&cells);
        let zero = zero / (zero + integral(&cells));
        // A cell without width, and one without probability up to where the others begin.
        let (mut edges, mut sums) = (vec![0.0], vec![zero]);
        if others.edges[0] > 0.0 {
            edges.push(0.0);
            sums.push(zero);
        }
        edges.extend(&others.edges);
        sums.extend(others.sums.iter().map(|sum| zero + (1.0 - zero) * sum));
        Numeric {
            edges,
            sums,
            mean: (1.0 - zero) * others.mean,
            times: false,
        }
    }

    fn of_cells(cells: &[Part]) -> Self {
        let chances = masses(cells);
        let middles = cells.iter().map(|cell| cell.low + 0.5 * cell.width);
        let mean = middles.zip(&chances).map(|(y, p)| y * p).sum();
        let mut edges: Vec<f64> = cells.iter().map(|cell| cell.low).collect();
        edges.extend(cells.last().map(|cell| cell.low + cell.width));
        Numeric {
            edges,
            sums: running(&chances),
            mean,
            times: false,
        }
    }

    /// Of all whole numbers, by their log probabilities, which are no less than what makes them add
    /// up to 1: those beyond `most` while they hold more than a millionth, up to a multiple of it.
    pub fn of_all_counts(most: u32, log_probability: impl Fn(f64) -> f64) -> Self {
        let chance = |y: u32| log_probability(f64::from(y)).exp();
        let mut held: f64 = (0..=most).map(chance).sum();
        let mut end = most;
        let last = most.saturating_add(1).saturating_mul(FARTHEST);
        while held < 1.0 - FORGOTTEN && end < last {
            end += 1;
            held += chance(end);
        }
        Numeric::of_counts(end, log_probability)
    }

    /// Of whole numbers from 0 to `most`, each with its log probability, up to a constant.
    pub fn of_counts(most: u32, log_probability: impl Fn(f64) -> f64) -> Self {
        let logs = (0..=most).map(|y| log_probability(f64::from(y)));
        let chances = chances(&logs.collect::<Vec<_>>());
        let mean = chances.iter().enumerate().map(|(y, p)| y as f64 * p).sum();
        Numeric {
            edges: Vec::new(),
            sums: running(&chances),
            mean,
            times: false,
        }
    }

    /// Mean; NaN where the log likelihood is no number anywhere.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The same as the law of times, of which a negative number is one without an event.
    pub fn as_times(self) -> Self {
        Numeric {
            times: true,
            ..self
        }
    }

    pub fn is_of_times(&self) -> bool {
        self.times
    }

    /// Whether labels are whole numbers.
    pub fn is_whole(&self) -> bool {
        self.edges.is_empty()
    }

    /// The least and the largest label that count.
    pub fn ends(&self) -> (f64, f64) {
        match self.is_whole() {
            true => (0.0, self.sums.len() as f64 - 1.0),
            false => (self.edges[0], self.edges[self.sums.len()]),
        }
    }

    fn sum(&self, cells: usize) -> f64 {
        match cells {
            0 => 0.0,
            k => self.sums[k.min(self.sums.len()) - 1],
        }
    }

    /// Probability of a label of at most y.
    pub fn below(&self, y: f64) -> f64 {
        let (low, high) = self.ends();
        if y.is_nan() || self.mean.is_nan() {
            return f64::NAN;
        }
        if y < low {
            return 0.0;
        }
        if y >= high {
            return 1.0;
        }
        if self.is_whole() {
            return self.sum(y as usize + 1);
        }
        let k = self.edges.partition_point(|edge| *edge <= y) - 1;
        let (before, [from, to]) = (self.sum(k), [self.edges[k], self.edges[k + 1]]);
        before + (self.sum(k + 1) - before) * (y - from) / (to - from)
    }

    /// The label below which `p` of the probability lies.
    pub fn quantile(&self, p: f64) -> f64 {
        if self.mean.is_nan() {
            return f64::NAN;
        }
        let k = self.sums.partition_point(|sum| *sum < p);
        let k = k.min(self.sums.len() - 1);
        if self.is_whole() {
            return k as f64;
        }
        let (before, sum) = (self.sum(k), self.sum(k + 1));
        let part = if sum > before {
            (p - before) / (sum - before)
        } else {
            0.5
        };
        let (from, to) = (self.edges[k], self.edges[k + 1]);
        from + part.clamp(0.0, 1.0) * (to - from)
    }
}

/// Cells of a log density on [low, high].
fn cells(low: f64, high: f64, log_density: impl Fn(f64) -> f64) -> Vec<Part> {
    let (mut from, mut to) = (low, high);
    let parts = |from: f64, to: f64| -> Vec<Part> {
        let width = (to - from) / COARSE as f64;
        let part = |k| Part::new(from + k as f64 * width, width, &log_density);
        (0..COARSE).map(part).collect()
    };
    let mut cells = parts(from, to);
    for _ in 0..ROUNDS {
        let top = top(cells.iter().map(|cell| cell.log));
        let counts = |cell: &Part| cell.log > top - NEGLIGIBLE;
        let (Some(first), Some(last)) = (
            cells.iter().position(counts),
            cells.iter().rposition(counts),
        ) else {
            break;
        };
        let ends = [first.saturating_sub(1), (last + 1).min(COARSE - 1)].map(|k| cells[k]);
        let kept = [ends[0].low, ends[1].low + ends[1].width];
        if kept[1] - kept[0] >= 0.5 * (to - from) {
            break;
        }
        [from, to] = kept;
        cells = parts(from, to);
    }
    for _ in 0..ROUNDS {
        let halved = halved(&cells, &log_density);
        if halved.len() == cells.len() {
            break;
        }
        cells = halved;
    }
    cells
}

/// What a density adds up to on all positive numbers, those beyond a declared range too.
pub(super) fn integral_of(high: f64, log_density: impl Fn(f64) -> f64) -> f64 {
    integral(&cells(0.0, FARTHER * high, log_density))
}

fn integral(cells: &[Part]) -> f64 {
    let each = cells.iter().map(|cell| cell.log.exp() * cell.width);
    each.filter(|mass| mass.is_finite()).sum()
}

/// The cells, those halved that hold much or between which the density changes much.
fn halved(cells: &[Part], log_density: &impl Fn(f64) -> f64) -> Vec<Part> {
    let chances = masses(cells);
    if cells.len() > MOST_CELLS || chances.iter().any(|p| p.is_nan()) {
        return cells.to_vec();
    }
    let step = |k: usize, other: Option<&Part>| {
        // What is no number lies infinitely far down.
        other.map_or(0.0, |other| match cells[k].log.max(other.log) {
            log if log.is_finite() => (cells[k].log - other.log).abs(),
            _ => 0.0,
        })
    };
    let mut parts = Vec::new();
    for (k, cell) in cells.iter().enumerate() {
        let before = k.checked_sub(1).and_then(|k| cells.get(k));
        let steep = step(k, before).max(step(k, cells.get(k + 1))) > STEEP;
        // Doubles end somewhere.
        let wide = cell.width > 1e-13 * cell.low.abs();
        if wide && (chances[k] > HEAVY || steep && chances[k] > LIGHT) {
            let half = 0.5 * cell.width;
            parts.push(Part::new(cell.low, half, log_density));
            parts.push(Part::new(cell.low + half, half, log_density));
        } else {
            parts.push(*cell);
        }
    }
    parts
}

/// Probabilities of cells.
fn masses(cells: &[Part]) -> Vec<f64> {
    let logs = cells.iter().map(|cell| cell.log + cell.width.ln());
    chances(&logs.collect::<Vec<_>>())
}

fn running(chances: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let sums = chances.iter().map(|p| {
        sum += p;
        sum
    });
    sums.collect()
}

/// Largest of them that is a number.
fn top(logs: impl Iterator<Item = f64>) -> f64 {
    let finite = logs.filter(|log| log.is_finite());
    finite.fold(f64::NEG_INFINITY, f64::max)
}

/// Log weights as probabilities; what is no number has none. All NaN where nothing is a number.
pub(super) fn chances(logs: &[f64]) -> Vec<f64> {
    let top = top(logs.iter().copied());
    let weight = |log: &f64| {
        if log.is_finite() {
            (log - top).exp()
        } else {
            0.0
        }
    };
    let weights: Vec<f64> = logs.iter().map(weight).collect();
    let sum: f64 = weights.iter().sum();
    // 0/0 is NaN, as it should be.
    weights.iter().map(|w| w / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peak of a hundred-thousandth of the range, and two far apart.
    #[test]
    fn narrow_peaks_are_found() {
        let narrow = Numeric::of_numbers(0.0, 1e5, |y| -0.5 * ((y - 77.7) / 0.3).powi(2));
        assert!((narrow.mean() - 77.7).abs() < 1e-3, "{}", narrow.mean());
        let sd = 0.5 * (narrow.quantile(0.841_344_7) - narrow.quantile(0.158_655_3));
        assert!((sd - 0.3).abs() < 1e-3, "{sd}");
        let two = Numeric::of_numbers(-50.0, 50.0, |y| {
            let log = |at: f64| -0.5 * (y - at).powi(2);
            log(-20.0).max(log(20.0))
        });
        assert!((two.below(0.0) - 0.5).abs() < 1e-6 && two.mean().abs() < 1e-6);
    }

    /// No costs in 0.7 of the rows, exponential ones of mean 2 in the others.
    #[test]
    fn zero_may_have_a_probability() {
        let log = |y: f64| match y > 0.0 {
            true => 0.3f64.ln() - 2f64.ln() - y / 2.0,
            false => 0.7f64.ln(),
        };
        assert!((integral_of(60.0, log) - 0.3).abs() < 1e-3);
        let costs = Numeric::of_zero_and_numbers(60.0, log);
        assert!((costs.mean() - 0.6).abs() < 1e-3, "{}", costs.mean());
        assert_eq!((costs.quantile(0.1), costs.quantile(0.69)), (0.0, 0.0));
        assert_eq!(costs.ends().0, 0.0);
        assert!((costs.below(0.0) - 0.7).abs() < 1e-3 && costs.below(-1e-9) == 0.0);
        let known = 0.7 + 0.3 * (1.0 - (-1.0f64).exp());
        assert!((costs.below(2.0) - known).abs() < 1e-3);
        assert!((costs.quantile(known) - 2.0).abs() < 1e-2);
        // Others that begin far from 0 leave it alone.
        let far = |y: f64| match y > 0.0 {
            true => 0.5f64.ln() - 0.5 * ((y - 30.0) / 0.1).powi(2) - (0.1 * 2.506_628f64).ln(),
            false => 0.5f64.ln(),
        };
        let costs = Numeric::of_zero_and_numbers(60.0, far);
        assert!((costs.mean() - 15.0).abs() < 0.01 && (costs.below(20.0) - 0.5).abs() < 1e-3);
    }

    /// A Poisson law of mean 6 whose counts were declared up to 4: beyond these it goes on.
    #[test]
    fn counts_go_on_beyond_the_declared_ones() {
        let factorial = |y: f64| (1..=y as u32).map(|k| f64::from(k).ln()).sum::<f64>();
        let log = |y: f64| y * 6f64.ln() - 6.0 - factorial(y);
        let all = Numeric::of_all_counts(4, log);
        assert!((all.mean() - 6.0).abs() < 1e-4, "{}", all.mean());
        assert!((all.below(0.0) - (-6f64).exp()).abs() < 1e-8);
        assert!(Numeric::of_counts(4, log).mean() < 4.0);
        // It ends where the law never does.
        let endless = Numeric::of_all_counts(4, |y| -2.0 * (y + 2.0).ln());
        assert_eq!(endless.ends(), (0.0, 160.0));
    }

    /// What an expression cannot answer for has no probability; where it answers nowhere there is
    /// no law.
    #[test]
    fn what_is_no_number_has_no_probability() {
        let half = Numeric::of_numbers(-1.0, 1.0, |y| if y > 0.0 { 0.0 } else { f64::NAN });
        assert!((half.mean() - 0.5).abs() < 1e-3 && half.below(0.0) < 1e-6);
        let none = Numeric::of_numbers(-1.0, 1.0, |_| f64::NAN);
        assert!(none.mean().is_nan() && none.quantile(0.5).is_nan() && none.below(0.0).is_nan());
        let counts = Numeric::of_counts(3, |y| if y == 2.0 { 0.0 } else { f64::NEG_INFINITY });
        assert_eq!((counts.mean(), counts.quantile(0.5)), (2.0, 2.0));
    }
}
