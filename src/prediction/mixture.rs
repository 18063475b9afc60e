//! The law of a label whose parameters are one of several draws.

use super::law::LabelLaw;

/// Equal parts of several laws: a label whose parameters are one of several draws.
#[derive(Clone, Debug)]
pub struct Mixture(pub Vec<LabelLaw>);

/// A quantile's probability is met to this.
const CLOSE: f64 = 1e-10;

impl Mixture {
    /// Probability of a label of at most y.
    pub fn below(&self, y: f64) -> f64 {
        self.0.iter().map(|law| law.below(y)).sum::<f64>() / self.0.len() as f64
    }

    /// Probability of a label under y.
    pub fn under(&self, y: f64) -> f64 {
        self.0.iter().map(|law| law.under(y)).sum::<f64>() / self.0.len() as f64
    }

    /// The least label (of whole numbers), or the label, below which `p` of the probability lies,
    /// 0 < p < 1. NaN without laws, or where one of them is none.
    pub fn quantile(&self, p: f64) -> f64 {
        let Some(first) = self.0.first() else {
            return f64::NAN;
        };
        let [least, most] = [
            self.0
                .iter()
                .fold(f64::INFINITY, |m, law| m.min(law.least())),
            self.0
                .iter()
                .fold(f64::NEG_INFINITY, |m, law| m.max(law.most())),
        ];
        let (at, spread) = first.about();
        let spread = if spread > 0.0 { spread } else { 1.0 };
        // The quantile of a logistic law is about that of a normal one.
        let start = at + spread * (p / (1.0 - p)).ln() / 1.7;
        let start = (start.clamp(least, most), 0.2 * spread);
        let Some((low, high)) = self.bracket(p, start, (least, most)) else {
            return f64::NAN;
        };
        match first.is_whole() {
            true => self.least_whole(p, low.floor(), high.ceil()),
            false => self.between(p, low, high),
        }
    }

    /// Two labels around the quantile, found by steps that double; infinite where f64 ends.
    fn bracket(
        &self,
        p: f64,
        (at, spread): (f64, f64),
        (least, most): (f64, f64),
    ) -> Option<(f64, f64)> {
        let (mut low, mut high, mut step) = (at, at, spread);
        while low > least && self.below(low) >= p {
            high = low;
            low = (low - step).max(least);
            step *= 2.0;
            // A law of all positive numbers comes close to 0 at once.
            if low == least && least == f64::NEG_INFINITY {
                return None;
            }
        }
        step = spread;
        while high < most && self.below(high) < p {
            low = high;
            high = (high + step).min(most);
            step *= 2.0;
        }
        let ends = [self.below(low), self.below(high)];
        (!ends.iter().any(|f| f.is_nan())).then_some((low, high))
    }

    fn least_whole(&self, p: f64, low: f64, high: f64) -> f64 {
        let (mut low, mut high) = (low.max(0.0) - 1.0, high);
        if !high.is_finite() {
            return high;
        }
        // Rounding of a sum must not pass over a label.
        let enough = p * (1.0 - 1e-12);
        while high - low > 1.0 {
            let middle = (low + 0.5 * (high - low)).floor();
            // Beyond 2^53 there is no whole number in between.
            if middle <= low || middle >= high {
                break;
            }
            match self.below(middle) >= enough {
                true => high = middle,
                false => low = middle,
            }
        }
        high
    }

    /// Regula falsi by the Illinois rule, a halving where it is slow.
    fn between(&self, p: f64, mut low: f64, mut high: f64) -> f64 {
        if !high.is_finite() {
            return high;
        }
        let (mut f_low, mut f_high) = (self.below(low) - p, self.below(high) - p);
        if f_low >= 0.0 {
            return low;
        }
        for round in 0..200 {
            let width = high - low;
            if width <= 1e-12 * low.abs().max(high.abs()) {
                break;
            }
            let middle = match round % 3 {
                2 => low + 0.5 * width,
                _ => (low - f_low * width / (f_high - f_low)).clamp(low, high),
            };
            let f = self.below(middle) - p;
            if f.abs() < CLOSE {
                return middle;
            }
            if f < 0.0 {
                (low, f_low) = (middle, f);
                f_high *= 0.5;
            } else {
                (high, f_high) = (middle, f);
                f_low *= 0.5;
            }
        }
        low + 0.5 * (high - low)
    }
}
