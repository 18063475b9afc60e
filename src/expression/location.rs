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
    /// Share of rows whose event is seen, of times.
    pub events: f64,
}

/// Halvings of a range of labels.
const HALVINGS: usize = 80;
/// Parts of a range over which scores are looked at, and what they rise by in each at least, of all
/// that they do.
const PARTS: u32 = 32;
const LEAST_RISE: f64 = 1e-9;
/// Where no smallest time is declared, the shortest is this share of the longest.
const SHORTEST: f64 = 1e-9;
/// Events that are not seen may lie so many times as far as the longest time that was waited.
const LATEST: f64 = 1e3;
/// An event is early where its score is within this share of that of no time at all. As many
/// predictors are tried, half a nat apart, from the longest time on.
const EARLY: f64 = 0.05;
const TRIED: u32 = 40;

impl Location {
    /// Whether scores at η are the larger the larger a label is, over all of its range.
    pub fn is_told(&self, eta: f64, shared: &[f64]) -> bool {
        let Some([low, high]) = self.bounds() else {
            return false;
        };
        let label = |k: u32| low + (high - low) * f64::from(k) / f64::from(PARTS);
        let scores = (0..=PARTS).map(|k| self.law.slopes(label(k), eta, shared).0);
        let scores: Vec<f64> = scores.collect();
        let least = LEAST_RISE * (scores[PARTS as usize] - scores[0]);
        least > 0.0 && scores.windows(2).all(|s| s[1] - s[0] > least)
    }

    /// The least and the largest label that tell of a value; `None` of classes.
    fn bounds(&self) -> Option<[f64; 2]> {
        match &self.labels {
            LabelRange::Numbers { low, high } if *low < 0.0 && self.law.chooses() => {
                Some([SHORTEST * high, LATEST * high])
            }
            LabelRange::Numbers { low, high } => Some([*low, *high]),
            LabelRange::Counts(max) => Some([0.0, f64::from(*max)]),
            LabelRange::Classes(_) => None,
        }
    }

    /// What a label weighs whose best predictor is η, of a law without shared parameters; `None` of
    /// classes.
    pub fn weight(&self, eta: f64) -> Option<f64> {
        self.bounds()?;
        Some(self.law.slopes(self.label(0.0, eta, &[]), eta, &[]).1)
    }

    /// The label whose score at η is this, or the nearest end of the declared range.
    fn label(&self, score: f64, eta: f64, shared: &[f64]) -> f64 {
        let [low, high] = self.bounds().unwrap_or([0.0; 2]);
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
        place(0.5 * (below + above))
    }

    /// A predictor at which all events are early, and the score of an event there; `None` of labels
    /// that are no times, or where scores grow without end the later an event is expected.
    pub fn early(&self, shared: &[f64]) -> Option<(f64, f64)> {
        let LabelRange::Numbers { low, high } = &self.labels else {
            return None;
        };
        if *low >= 0.0 || !self.law.chooses() {
            return None;
        }
        let mut far = (0..TRIED).map(|k| high.ln() + 0.5 * f64::from(k));
        far.find_map(|eta| {
            let score = |label: f64| self.law.slopes(label, eta, shared).0;
            let (event, soonest, none) = (score(*high), score(SHORTEST * high), score(-high));
            let near = (event - soonest).abs() < EARLY * soonest.abs();
            (near && none.abs() < EARLY * soonest.abs()).then_some((eta, soonest))
        })
    }

    /// Scores of the least and the largest label at η.
    pub fn ends(&self, eta: f64, shared: &[f64]) -> Option<[f64; 2]> {
        let score = |label| self.law.slopes(label, eta, shared).0;
        self.bounds().map(|ends| ends.map(score))
    }

    /// The predictor that fits best the one label whose score at η is `score`: that of all rows
    /// where they have such a label each, and of a law of the exponential family that of their
    /// mean. Beyond the declared range it is the range's end.
    pub fn predictor(&self, score: f64, eta: f64, shared: &[f64]) -> f64 {
        match self.bounds() {
            Some(_) => self.law.best(self.label(score, eta, shared), shared),
            None => eta,
        }
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
            events: 1.0,
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

    /// Far out, a Weibull row has the score −k if its event was seen, and none if not. A log-normal
    /// one has the larger a score the farther out, and rows without events have none to be early.
    #[test]
    fn early_events_are_counted() {
        let times = |low| LabelRange::Numbers { low, high: 30.0 };
        let weibull = location("weibull", times(-30.0));
        for log_shape in [-1.0f64, 0.0, 1.2] {
            let shared = [log_shape];
            let (eta, score) = weibull.early(&shared).expect("a place");
            assert!(
                (score + log_shape.exp()).abs() < 1e-3 * score.abs(),
                "{score}"
            );
            for (label, expected) in [(0.01, score), (30.0, score), (-0.5, 0.0), (-30.0, 0.0)] {
                let gap = weibull.law.slopes(label, eta, &shared).0 - expected;
                assert!(gap.abs() < 0.05 * score.abs(), "{label}: {gap}");
            }
        }
        let log_normal = location("log-normal-survival", times(-30.0));
        assert!(log_normal.early(&[0.0]).is_none());
        assert!(location("weibull", times(0.1)).early(&[0.0]).is_none());
        assert!(location("gamma", times(0.1)).early(&[0.0]).is_none());
    }

    /// Of Poisson counts a label weighs its rate; classes have no such label.
    #[test]
    fn a_label_where_labels_lie_has_their_weight() {
        let law = Law::new("poisson", "y * eta - exp(eta)", &[], &[]).expect("a law");
        let mut location = Location {
            law,
            labels: LabelRange::Counts(200),
            column: 0,
            offset: 0.0,
            events: 1.0,
        };
        for eta in [-1.0, 0.5, 3.0] {
            let weight = location.weight(eta).expect("counts");
            assert!(
                (weight / f64::exp(eta) - 1.0).abs() < 1e-9,
                "{eta}: {weight}"
            );
        }
        location.labels = LabelRange::Classes(vec![0.0, 1.0]);
        assert_eq!(location.weight(0.5), None);
    }

    /// Scores of laws with heavy tails fall again, and those of quantiles end.
    #[test]
    fn laws_whose_scores_end_do_not_tell_where_labels_lie() {
        let numbers = || LabelRange::Numbers {
            low: 0.01,
            high: 1e7,
        };
        let told = |name: &str, labels: LabelRange, shared: &[f64]| {
            location(name, labels).is_told(9.0, shared)
        };
        assert!(told("gamma", numbers(), &[0.5]) && told("log-normal", numbers(), &[0.0]));
        assert!(told("weibull", numbers(), &[1.0]));
        assert!(told("negative-binomial", LabelRange::Counts(9_000), &[0.0]));
        // A zero may be of any rate.
        let inflated = "zero-inflated-poisson";
        assert!(!told(inflated, LabelRange::Counts(9_000), &[-1.0]));
        assert!(!told("student-t", numbers(), &[2.0, 4.0]));
        assert!(!told("quantile", numbers(), &[0.5, 1.0, 2.0]));
        let own = Law::new("declared", "-eta - y * exp(-eta)", &[], &[]).expect("a law");
        let labels = numbers();
        let (column, offset) = (0, 0.0);
        let own = Location {
            law: own,
            labels,
            column,
            offset,
            events: 1.0,
        };
        assert!(own.is_told(16.0, &[]));
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
