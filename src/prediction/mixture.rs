//! The law of a label whose parameters are one of several draws.

use super::law::LabelLaw;

/// Equal parts of several laws: a label whose parameters are one of several draws.
#[derive(Clone, Debug)]
pub struct Mixture(pub Vec<LabelLaw>);

/// A quantile's probability is met to this.
const CLOSE: f64 = 1e-9;

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
        let Some([low, high]) = self.bracket(p, start, (least, most)) else {
            return f64::NAN;
        };
        match first.is_whole() {
            true => self.least_whole(p, low.at.floor(), high.at.ceil()),
            false => self.between(p, low, high),
        }
    }

    fn end(&self, p: f64, at: f64) -> End {
        let over = self.below(at) - p;
        End { at, over }
    }

    /// Two labels around the quantile, found by steps that double; infinite where f64 ends.
    fn bracket(
        &self,
        p: f64,
        (at, spread): (f64, f64),
        (least, most): (f64, f64),
    ) -> Option<[End; 2]> {
        let (mut low, mut step) = (self.end(p, at), spread);
        let mut high = low;
        while low.at > least && low.over >= 0.0 {
            high = low;
            low = self.end(p, (low.at - step).max(least));
            step *= 2.0;
            if low.at == f64::NEG_INFINITY {
                return None;
            }
        }
        step = spread;
        while high.at < most && high.over < 0.0 {
            low = high;
            high = self.end(p, (high.at + step).min(most));
            step *= 2.0;
        }
        (!low.over.is_nan() && !high.over.is_nan()).then_some([low, high])
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

    /// Regula falsi by the Illinois rule, by halving where that is slow.
    fn between(&self, p: f64, mut low: End, mut high: End) -> f64 {
        if !high.at.is_finite() {
            return high.at;
        }
        if low.over >= 0.0 {
            return low.at;
        }
        let mut rose = None;
        for round in 0..200 {
            let width = high.at - low.at;
            if width <= 1e-12 * low.at.abs().max(high.at.abs()) {
                break;
            }
            let middle = match round > 12 && round % 2 == 0 {
                true => low.at + 0.5 * width,
                false => low.at - low.over * width / (high.over - low.over),
            };
            let middle = self.end(p, middle.clamp(low.at, high.at));
            if middle.over.abs() < CLOSE {
                return middle.at;
            }
            let rises = middle.over < 0.0;
            // An end that stays counts half.
            let weight = if rose == Some(rises) { 0.5 } else { 1.0 };
            if rises {
                low = middle;
                high.over *= weight;
            } else {
                high = middle;
                low.over *= weight;
            }
            rose = Some(rises);
        }
        low.at + 0.5 * (high.at - low.at)
    }
}

/// A label, and how far the probability of labels up to it lies over what is asked for.
#[derive(Clone, Copy)]
struct End {
    at: f64,
    over: f64,
}
