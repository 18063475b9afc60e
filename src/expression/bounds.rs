//! True bounds by interval arithmetic, rounded outwards.

use super::graph::{Binary, Graph, Id, Node, Unary};
use super::number::Number;

/// All numbers from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

/// What a function's rounding may be, relative and absolute: that of the least exact one here.
const ROUNDING: f64 = 1e-12;
/// Where Γ is smallest on (0, ∞), and a lower bound on its logarithm there.
const LEAST_GAMMA: (f64, f64) = (1.461_632_144_968_362_3, -0.121_486_290_535_85);

impl Range {
    /// One number.
    pub fn of(value: f64) -> Self {
        Range {
            low: value,
            high: value,
        }
    }

    /// −`bound` to `bound`.
    pub fn around_zero(bound: f64) -> Self {
        Range {
            low: -bound,
            high: bound,
        }
    }

    /// Largest size of a number in it.
    pub fn size(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// Nothing is known; also where an end is not a number.
    const ALL: Range = Range {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };

    fn outward(low: f64, high: f64) -> Range {
        if low.is_nan() || high.is_nan() {
            return Range::ALL;
        }
        let wide = |v: f64| ROUNDING * v.abs().min(f64::MAX);
        Range {
            low: (low - wide(low)).next_down(),
            high: (high + wide(high)).next_up(),
        }
    }

    /// As many parts of the same width.
    fn parts(self, count: usize) -> impl Iterator<Item = Range> {
        let step = (self.high - self.low) / count as f64;
        let end = move |k: usize| match k == count {
            true => self.high,
            false => self.low + step * k as f64,
        };
        (0..count).map(move |k| Range {
            low: end(k),
            high: end(k + 1),
        })
    }

    fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Parts that η, the label and a shared parameter are divided into: an interval knows nothing of
/// what its ends have in common, and narrow ones lose little by that.
const PREDICTOR_PARTS: usize = 128;
const LABEL_PARTS: usize = 8;
const SHARED_PARTS: usize = 4;

impl Graph {
    /// A bound on the size of `root` for labels, predictors and shared parameters in these ranges;
    /// infinite where none is found.
    pub fn bound(&self, root: Id, labels: &[Range], predictor: Range, shared: &[Range]) -> f64 {
        if !predictor.size().is_finite() || shared.iter().any(|s| !s.size().is_finite()) {
            return f64::INFINITY;
        }
        let order = self.order(root);
        let split = |range: &Range, parts| match range.low == range.high {
            true => vec![*range],
            false => range.parts(parts).collect::<Vec<_>>(),
        };
        let labels: Vec<Range> = labels.iter().flat_map(|l| split(l, LABEL_PARTS)).collect();
        let mut corners = vec![Vec::new()];
        for range in shared {
            let parts = split(range, SHARED_PARTS);
            corners = corners
                .iter()
                .flat_map(|c: &Vec<Range>| {
                    parts
                        .iter()
                        .map(move |p| c.iter().copied().chain([*p]).collect())
                })
                .collect();
        }
        let mut most = 0.0f64;
        let mut ranges = vec![Range::ALL; root + 1];
        for eta in split(&predictor, PREDICTOR_PARTS) {
            for label in &labels {
                for shared in &corners {
                    for id in &order {
                        ranges[*id] = self.range(*id, &ranges, *label, eta, shared);
                    }
                    most = most.max(ranges[root].size());
                }
            }
        }
        most
    }

    fn range(&self, id: Id, known: &[Range], label: Range, eta: Range, shared: &[Range]) -> Range {
        match self.node(id) {
            Node::Number(bits) => Range::of(f64::from_bits(bits)),
            Node::Label => label,
            Node::Predictor => eta,
            Node::Shared(k) => shared.get(k).copied().unwrap_or(Range::ALL),
            // Of a change nothing is known.
            Node::PredictorChange | Node::SharedChange(_) => Range::ALL,
            Node::Unary(function, u) => unary(function, known[u]),
            Node::Binary(operation, a, b) if a == b => match operation {
                Binary::Multiply => square(known[a]),
                _ => binary(operation, known[a], known[b]),
            },
            Node::Binary(operation, a, b) => binary(operation, known[a], known[b]),
            Node::Choose(c, a, b) => match known[c] {
                c if c.low > 0.0 => known[a],
                c if c.high <= 0.0 => known[b],
                _ => Range {
                    low: known[a].low.min(known[b].low),
                    high: known[a].high.max(known[b].high),
                },
            },
        }
    }
}

fn unary(function: Unary, u: Range) -> Range {
    let (low, high) = (u.low.apply(function), u.high.apply(function));
    match function {
        Unary::Negate => Range {
            low: high,
            high: low,
        },
        // Rising.
        Unary::Exp
        | Unary::ExpM1
        | Unary::Log
        | Unary::Log1p
        | Unary::Sqrt
        | Unary::Softplus
        | Unary::Sigmoid
        | Unary::LogNormalCdf => Range::outward(low, high),
        // Falling: the limits are not computed at the ends of all numbers.
        Unary::Mills if u.size().is_finite() => Range::outward(high, low),
        Unary::Mills => Range::ALL,
        // On (0, ∞) alone.
        Unary::LogGamma | Unary::Digamma | Unary::Trigamma if u.low <= 0.0 => Range::ALL,
        Unary::Digamma => Range::outward(low - ROUNDING, high + ROUNDING),
        Unary::Trigamma => Range::outward(high, low),
        Unary::LogGamma => {
            let least = match u.contains(LEAST_GAMMA.0) {
                true => LEAST_GAMMA.1,
                false => low.min(high),
            };
            Range::outward(least - ROUNDING, low.max(high) + ROUNDING)
        }
    }
}

fn square(u: Range) -> Range {
    let high = u.size() * u.size();
    let low = match u.contains(0.0) {
        true => 0.0,
        false => u.low.abs().min(u.high.abs()).powi(2),
    };
    let range = Range::outward(low, high);
    Range {
        low: range.low.max(0.0),
        ..range
    }
}

fn binary(operation: Binary, a: Range, b: Range) -> Range {
    // 0·∞ is 0: the infinite end stands for numbers.
    let product = |x: f64, y: f64| if x == 0.0 || y == 0.0 { 0.0 } else { x * y };
    let hull = |ends: [f64; 4]| {
        let low = ends.iter().fold(f64::INFINITY, |m, v| m.min(*v));
        let high = ends.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
        match ends.iter().any(|v| v.is_nan()) {
            true => Range::ALL,
            false => Range::outward(low, high),
        }
    };
    match operation {
        Binary::Add => Range::outward(a.low + b.low, a.high + b.high),
        Binary::Subtract => Range::outward(a.low - b.high, a.high - b.low),
        Binary::Multiply => hull([
            product(a.low, b.low),
            product(a.low, b.high),
            product(a.high, b.low),
            product(a.high, b.high),
        ]),
        Binary::Divide if b.contains(0.0) => Range::ALL,
        Binary::Divide => hull([
            a.low / b.low,
            a.low / b.high,
            a.high / b.low,
            a.high / b.high,
        ]),
        // Only of moves.
        Binary::SoftplusChange | Binary::LogGammaChange | Binary::LogNormalCdfChange => Range::ALL,
    }
}
