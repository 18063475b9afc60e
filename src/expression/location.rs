//! The predictor that all labels have in common, from what rows' scores come to.

use super::{LabelRange, Law};

/// What tells where labels lie: the law of labels and the coefficient that is in every predictor.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    /// The law.
    pub law: Law,
    /// Numbers or counts.
    pub labels: LabelRange,
    /// The intercept's place in θ.
    pub column: usize,
    /// The middle of what rows add to their predictors.
    pub offset: f64,
}

/// Halvings of a range of labels.
const HALVINGS: usize = 80;
/// Where no smallest time is declared, the shortest is this share of the longest.
const SHORTEST: f64 = 1e-9;

impl Location {
    /// The predictor that fits best the one label whose score at η is `score`: that of all rows
    /// where they have such a label each, and of a law of the exponential family that of their
    /// mean. Beyond the declared range it is the range's end.
    pub fn predictor(&self, score: f64, eta: f64, shared: &[f64]) -> f64 {
        let [low, high] = match &self.labels {
            LabelRange::Numbers { low, high } if *low < 0.0 && self.law.chooses() => {
                [SHORTEST * high, *high]
            }
            LabelRange::Numbers { low, high } => [*low, *high],
            LabelRange::Counts(max) => [0.0, f64::from(*max)],
            LabelRange::Classes(_) => return eta,
        };
        // By ratios where labels are positive, which may be of any order.
        let place = |share: f64| match low > 0.0 {
            true => low * (high / low).powf(share),
            false => low + share * (high - low),
        };
        let (mut below, mut above) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (below + above);
            match self.law.slopes(place(middle), eta, shared).0 < score {
                true => below = middle,
                false => above = middle,
            }
        }
        self.law.best(place(0.5 * (below + above)), shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::family;

    fn location(name: &str, labels: LabelRange) -> Location {
        let family = family(name).expect("a family");
        let shared = family
            .parameters
            .iter()
            .map(|(name, _)| (*name).to_string());
        let shared: Vec<String> = shared.collect();
        Location {
            law: Law::new(name, family.likelihood, &shared, &[]).expect("a law"),
            labels,
            column: 0,
            offset: 0.0,
        }
    }

    /// Of laws whose scores are linear in their labels, one mean score tells all, from however far:
    /// rates are solved for, and not their logarithms' tangents.
    #[test]
    fn a_mean_score_tells_the_mean() {
        let range = LabelRange::Numbers {
            low: 0.01,
            high: 1e6,
        };
        for (name, labels) in [
            ("gamma", range.clone()),
            ("negative-binomial", LabelRange::Counts(100_000)),
        ] {
            let location = location(name, labels);
            let some = [3.0, 40.0, 7.0, 250.0];
            let mean = some.iter().sum::<f64>() / 4.0;
            for (eta, shape) in [(13.0, 0.0), (2.0, 1.5), (4.0, -1.0)] {
                let scores = some.map(|y| location.law.slopes(y, eta, &[shape]).0);
                let found = location.predictor(scores.iter().sum::<f64>() / 4.0, eta, &[shape]);
                assert!((found - mean.ln()).abs() < 1e-3, "{name} {eta}: {found}");
            }
        }
    }

    #[test]
    fn a_score_of_no_label_is_that_of_the_ranges_end() {
        let range = LabelRange::Numbers {
            low: 0.5,
            high: 200.0,
        };
        let gamma = location("gamma", range);
        for (score, end) in [(-1e9, 0.5f64), (1e9, 200.0), (f64::NAN, 0.5)] {
            let found = gamma.predictor(score, 1.0, &[0.0]);
            assert!((found - end.ln()).abs() < 1e-3, "{score}: {found}");
        }
    }
}
