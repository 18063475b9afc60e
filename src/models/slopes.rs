//! Score and weight of a row in its predictor η, with the public bounds that an anchor clips
//! them to (docs/proofs/anchors.md).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::NetworkShape;
use crate::data::LabelKind;
use crate::expression::{LabelRange, Law, Located, MOST_SDS, Reach, SUCCESSES};
use crate::math::remainder::{self, THIRD};
use crate::model::Score;

/// Sds of counts over those of a Poisson law.
const OVERDISPERSED: f64 = 2.5;

/// What η is of a row, and z, its gradient in θ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Predictor {
    /// η = x·θ and z = x.
    Linear,
    /// A network's only output f(x; θ) and z = ∇f at θ*: generalised Gauss–Newton
    /// (Schraudolph 2002), w·zzᵀ without the score's share of the Hessian.
    Network(NetworkShape),
    /// η = x·β of a law with parameters φ that rows share, θ = (β, φ): z is the Jacobian of (η, φ)
    /// in θ, and scores and weights are vectors and matrices.
    Joint(Joint),
}

/// A declared law with shared parameters, of such labels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Joint {
    /// The law.
    pub law: Law,
    /// Its labels.
    pub label: LabelKind,
}

impl Joint {
    /// φ, the end of θ.
    pub fn shared(self, theta: &[f64]) -> &[f64] {
        &theta[theta.len() - self.law.shared().len()..]
    }

    /// What rows come to at θ.
    pub fn located(self, theta: &[f64]) -> Arc<Located> {
        self.law
            .located(&label_range(self.label), self.shared(theta))
    }
}

impl Predictor {
    /// A true bound on ‖z‖ at `at` for rows of norm at most `row_norm`.
    pub fn norm(self, at: &[f64], row_norm: f64) -> f64 {
        match self {
            Predictor::Linear | Predictor::Joint(_) => row_norm,
            Predictor::Network(shape) => shape.slope_norm(at, row_norm),
        }
    }

    /// Number of parameters of θ for rows of so many features.
    pub fn dim(self, features: usize) -> usize {
        match self {
            Predictor::Linear => features,
            Predictor::Network(shape) => shape.parameters(),
            Predictor::Joint(joint) => features + joint.law.shared().len(),
        }
    }

    /// Whether z follows from θ.
    pub fn is_network(self) -> bool {
        matches!(self, Predictor::Network(_))
    }
}

/// Derivatives of a row's log likelihood in η with public bounds, in units of
/// [`crate::model::Model::unit`]. A bound that is no true one clips rows: the expansion is then
/// another, and the guarantee the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slopes {
    /// Which score.
    pub score: Score,
    /// What η is.
    pub predictor: Predictor,
    /// Scores are clipped to ± this.
    pub largest_score: f64,
    /// The largest of labels that are common, where there are two; else the same.
    pub common_score: f64,
    /// Newton steps on clipped scores that it may take to cross from η = 0 to the farthest label.
    pub crossing: f64,
    /// Weights, minus the second derivative, are clipped to between 0 and this.
    pub largest_weight: f64,
    /// k₃, the size of the third derivative that clips of remainders are made of; 0 where
    /// there is no remainder.
    pub largest_third: f64,
    /// Mean weight that is expected of a posterior, over that at η = 0.
    pub typical_weight: f64,
    /// Weight at η = 0, where warm starts usually begin.
    pub first_weight: f64,
    /// A change of η that is large, root mean square: steps to an anchor are shorter than twice
    /// that.
    pub eta_unit: f64,
    /// Whether scores are bounded together with the row's norm, |s|·‖z‖ ≤ S b (Schweppe's type of
    /// generalised M-estimator), and gradients have a row bound of their own: a long row that the
    /// model fits then says all it knows. Residuals of numbers and counts are clipped so; scores of
    /// two classes, which are lopsided, are multiplied by what does not follow the label. Other
    /// rows are weighted down as a whole (Mallows' type).
    pub clips_residuals: bool,
    /// Whether labels are two classes and scores are multiplied by what does not follow the label:
    /// long rows' scores are then not clipped.
    pub weights_scores: bool,
    /// Whether bounding scores leaves their mean zero where the model holds: they are multiplied
    /// so, or clipped ones are less what clipping is expected to leave of them.
    pub centred: bool,
    /// Whether scores of numbers end of themselves before they are clipped.
    pub ends: bool,
    /// Rows of a unit at most, whose sums are clipped together; 1 where rows are units.
    pub rows_of_unit: u32,
    /// What a row is expected to weigh, over the largest weight of rows; 1 where rows have none.
    pub mean_share: f64,
    /// Trials that a row of the largest weight has, whose label is the mean of so many: the
    /// variance of its score is its weight over that. 1 of other labels.
    pub trials: f64,
}

/// How a row beyond the row bound enters an expansion and its remainder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Influence {
    /// Its weight, for the shortened z.
    pub weight: f64,
    /// ω: what its curvature and remainder are multiplied by, and its score where that is not
    /// clipped more gently.
    pub omega: f64,
}

impl Slopes {
    /// Logistic regression, whose bounds are true: 1, 1/4 and 1/(6√3). (Classes of 1 : 9 have a
    /// mean weight of 0.36 quarters.)
    pub fn logistic() -> Self {
        Slopes {
            score: Score::Logistic,
            predictor: Predictor::Linear,
            largest_score: 1.0,
            common_score: 1.0,
            crossing: 1.0,
            largest_weight: 0.25,
            largest_third: THIRD,
            typical_weight: 0.4,
            first_weight: 0.25,
            eta_unit: 1.0,
            clips_residuals: true,
            weights_scores: true,
            centred: true,
            ends: false,
            rows_of_unit: 1,
            mean_share: 1.0,
            trials: 1.0,
        }
    }

    /// A network with a Bernoulli head: the logistic bounds of score and weight, which are true.
    pub fn network(shape: NetworkShape) -> Self {
        Slopes {
            predictor: Predictor::Network(shape),
            clips_residuals: false,
            weights_scores: false,
            centred: false,
            ..Slopes::logistic()
        }
    }

    /// Linear regression with noise of this variance, in units of 1/s². Residuals are clipped at
    /// the label's reach or 8s, whichever is smaller; weights are 1 and there is no remainder.
    pub fn linear(label: LabelKind, variance: f64) -> Self {
        let range = match label {
            LabelKind::Number { low, high } => high - low,
            _ => 0.0,
        };
        // At θ = 0 a residual is the label itself.
        let reach = range.max(label.bound());
        let largest_score = reach.min(MOST_SDS * variance.sqrt());
        Slopes {
            score: Score::Linear,
            predictor: Predictor::Linear,
            largest_score,
            common_score: largest_score,
            crossing: reach / largest_score,
            largest_weight: 1.0,
            largest_third: 0.0,
            typical_weight: 1.0,
            first_weight: 1.0,
            eta_unit: largest_score / MOST_SDS,
            clips_residuals: true,
            weights_scores: false,
            centred: false,
            ends: false,
            rows_of_unit: 1,
            mean_share: 1.0,
            trials: 1.0,
        }
    }

    /// Poisson regression with counts up to `max`, `largest` a bound on η if there is one. Few
    /// rates e^η exceed max/4, for their counts would be clamped: residuals are clipped at 8 of its
    /// sds, k₃ and the largest weight are max/4 (or e^largest), and rows of larger rates count
    /// less.
    pub fn poisson(max: f64, largest: Option<f64>) -> Self {
        let (rate, true_bound) = (0.25 * max, largest.map_or(f64::INFINITY, f64::exp));
        let largest_score = max.min(MOST_SDS * rate.sqrt());
        Slopes {
            score: Score::Poisson,
            predictor: Predictor::Linear,
            largest_score,
            common_score: largest_score,
            // Its warm start bounds the change of η itself.
            crossing: 1.0,
            largest_weight: true_bound.min(rate),
            largest_third: true_bound.min(rate),
            typical_weight: 1.0,
            first_weight: 1.0,
            eta_unit: 1.0,
            clips_residuals: true,
            weights_scores: false,
            centred: false,
            ends: false,
            rows_of_unit: 1,
            mean_share: 1.0,
            trials: 1.0,
        }
    }

    /// A declared likelihood of such labels, without shared parameters: what its rows usually come
    /// to where it fits them.
    pub fn declared(law: Law, label: LabelKind) -> Self {
        let reach = law.reach(&label_range(label));
        Slopes::of_reach(Predictor::Linear, law, label, reach)
    }

    /// The same of a law with shared parameters, at θ.
    pub fn joint(joint: Joint, theta: &[f64]) -> Self {
        let reach = joint.located(theta).reach;
        Slopes::of_reach(Predictor::Joint(joint), joint.law, joint.label, reach)
    }

    /// What these are at θ: another matter where parameters are shared.
    pub fn at(&self, theta: &[f64]) -> Self {
        self.and_scales(theta).0
    }

    /// The same, with the [scales](Located::scales) of shared parameters.
    pub fn and_scales(&self, theta: &[f64]) -> (Self, Vec<f64>) {
        let Predictor::Joint(joint) = self.predictor else {
            return (*self, Vec::new());
        };
        let located = joint.located(theta);
        let predictor = Predictor::Joint(joint);
        let slopes = Slopes::of_reach(predictor, joint.law, joint.label, located.reach);
        let slopes = slopes.of_units(self.rows_of_unit);
        (slopes.of_weights(self.mean_share), located.scales.clone())
    }

    fn of_reach(predictor: Predictor, law: Law, label: LabelKind, reach: Reach) -> Self {
        // (Shares of trials are means of classes.)
        let trials = law.name() == SUCCESSES.0;
        let classes = label_range(label).is_classes() || trials;
        let joint = matches!(predictor, Predictor::Joint(_));
        let weights_scores = label == LabelKind::Binary && !joint;
        Slopes {
            score: Score::Declared(law),
            predictor,
            largest_score: reach.score,
            common_score: reach.common_score,
            crossing: reach.crossing,
            largest_weight: reach.weight,
            largest_third: reach.third,
            typical_weight: match (classes, reach.centred) {
                (true, false) => 0.4,
                // The first weight is that of usual classes already.
                (true, true) | (false, false) => 1.0,
                // Of times one event in three is seen.
                (false, true) => 0.3,
            },
            first_weight: reach.first_weight,
            eta_unit: reach.eta_unit,
            clips_residuals: !classes || joint || weights_scores || trials,
            weights_scores,
            centred: reach.centred || weights_scores,
            ends: reach.ends,
            rows_of_unit: 1,
            mean_share: 1.0,
            trials: 1.0,
        }
    }

    /// The same where so many rows of a unit are summed and clipped together.
    #[must_use]
    pub fn of_units(self, rows_of_unit: u32) -> Self {
        Slopes {
            rows_of_unit,
            ..self
        }
    }

    /// The same where weights are clipped at this, if it is a number above 0 and less.
    #[must_use]
    pub fn lighter(self, largest_weight: Option<f64>) -> Self {
        let most = largest_weight.filter(|w| *w > 0.0).unwrap_or(f64::INFINITY);
        Slopes {
            largest_weight: self.largest_weight.min(most),
            ..self
        }
    }

    /// The same where rows are expected to have this share of the largest weight.
    #[must_use]
    pub fn of_weights(self, mean_share: f64) -> Self {
        Slopes { mean_share, ..self }
    }

    /// The same where labels are the shares of successes in so many trials at most.
    #[must_use]
    pub fn of_trials(self, trials: f64) -> Self {
        // A share of n has an sd of 1/(2√n) at most.
        let most = self.largest_score.min(MOST_SDS * 0.5 / trials.sqrt());
        Slopes {
            trials,
            largest_score: most,
            common_score: most,
            ..self
        }
    }

    /// What a unit's gradient is clipped to, over the row bound: √k times the largest score of its
    /// k rows. Where the model holds, scores of a unit add up like noise.
    pub fn unit_score(&self) -> f64 {
        self.largest_score * f64::from(self.rows_of_unit).sqrt()
    }

    /// What a unit's weights are clipped to: half of what k rows can come to, and no less than √k
    /// times the largest weight. Weights add up, but few are the largest.
    pub fn unit_weight(&self) -> f64 {
        let k = f64::from(self.rows_of_unit);
        self.largest_weight * k.sqrt().max(0.5 * k)
    }

    /// Bound on a unit's weights in a profile: all that k rows can come to, for their sum says how
    /// many rows there are.
    pub fn profile_weight(&self) -> f64 {
        self.largest_weight * f64::from(self.rows_of_unit)
    }

    /// Rows of a unit that are expected, before anything is seen of them.
    pub fn expected_rows(&self) -> f64 {
        0.5 * (1.0 + f64::from(self.rows_of_unit))
    }

    /// Whether the log likelihood is its own quadratic: remainders are zero.
    pub fn is_quadratic(&self) -> bool {
        self.largest_third == 0.0
    }

    /// Whether labels are numbers or counts, and no classes.
    pub fn of_numbers(&self) -> bool {
        match self.predictor {
            Predictor::Linear => self.clips_residuals && !self.weights_scores,
            Predictor::Network(_) => false,
            Predictor::Joint(joint) => !label_range(joint.label).is_classes(),
        }
    }

    /// The largest score that a row of usual norm comes to: less than the largest where rows are
    /// clipped with their residuals, for the row bound then follows from what that loses.
    pub fn usual_score(&self) -> f64 {
        match self.clips_residuals && !self.weights_scores {
            true => 0.4 * self.common_score,
            false => self.common_score,
        }
    }

    /// What scores are clipped to over what they usually come to, root mean square, of rows whose
    /// mean weight is `mean`.
    pub fn largest_residual(&self, mean: f64) -> f64 {
        // Rows whose event was not seen have no weight, and scores as large as others.
        let mean = match self.waits() {
            true => mean.max(self.first_weight),
            false => mean,
        };
        match self.score {
            Score::Linear => MOST_SDS,
            _ => self.largest_score / (self.overdispersion() * (mean / self.trials).sqrt()),
        }
    }

    /// Whether labels are times of events, some of which were not seen.
    pub fn waits(&self) -> bool {
        match self.predictor {
            Predictor::Joint(joint) => self.centred && !label_range(joint.label).is_classes(),
            Predictor::Linear | Predictor::Network(_) => false,
        }
    }

    /// Sds of labels over those of their law: counts of people vary more than it says, classes
    /// cannot.
    fn overdispersion(&self) -> f64 {
        match self.centred {
            true => 1.0,
            false => OVERDISPERSED,
        }
    }

    /// How a row whose z is shortened by `share` ≤ 1 to the row bound (NaN counts as 1) enters an
    /// expansion; `weight`: its w ≥ 0. For logistic, linear and declared regression ω is the share
    /// itself; a weight w/share, of the shortened z, is cut at the largest weight. A remainder
    /// takes what is cut; a linear model has none. In the other models ω falls until nothing is
    /// cut.
    pub fn influence(&self, share: f64, weight: f64) -> Influence {
        // What bends the other way counts as straight; so does NaN.
        let (share, weight) = (share.min(1.0), weight.max(0.0));
        let over = self.over(share, weight);
        Influence {
            weight: (weight * over / share).min(self.largest_weight),
            omega: over * share,
        }
    }

    /// ω = min(share, W share²/w), over the share, which the shortened z brings along.
    fn over(&self, share: f64, weight: f64) -> f64 {
        match (self.score, self.predictor) {
            (Score::Logistic | Score::Linear | Score::Declared(_), _)
                if !self.predictor.is_network() =>
            {
                1.0
            }
            _ => (self.largest_weight * share / weight).min(1.0),
        }
    }

    /// What the score of such a row at η is multiplied by, before it is clipped and beside the
    /// shortening of z.
    pub fn score_share(&self, share: f64, weight: f64, eta: f64) -> f64 {
        let (share, weight) = (share.min(1.0), weight.max(0.0));
        match (self.clips_residuals, self.score) {
            (false, _) => self.over(share, weight),
            // So that the larger of the two scores that a row can have is not cut.
            _ if self.weights_scores => (1.0 / share).min(1.0 / self.larger(eta, weight)),
            // A weight depends on the label, and is cut where the score says most.
            (true, Score::Declared(_)) => 1.0 / share,
            // Newton's step of a row is s/w: a weight that is cut cuts the score.
            (true, _) => (self.largest_weight / weight).min(1.0) / share,
        }
    }

    /// The larger of the two scores that a row can have at η, over the largest, where scores are
    /// multiplied by what does not follow the label; else 1. A row is as long in a profile as its
    /// norm times that, for so much must its score be shortened by.
    pub fn larger_score(&self, eta: f64) -> f64 {
        match self.weights_scores {
            true => self.larger(eta, self.score.slopes(eta, 1.0).1),
            false => 1.0,
        }
    }

    /// The same of a row of two classes; `weight`: its w, from which a logistic row's follows.
    fn larger(&self, eta: f64, weight: f64) -> f64 {
        if self.score == Score::Logistic {
            return likelier(weight);
        }
        let scores = [1.0, -1.0].map(|label| self.score.slopes(eta, label).0.abs());
        scores[0].max(scores[1]) / self.largest_score
    }

    /// Score and weight of a row that is shortened by `share`, within their bounds; NaN stays.
    /// `root`: the root of the row's own weight over the largest, which its score is multiplied by.
    pub fn score_and_weight(&self, root: f64, share: f64, eta: f64, label: f64) -> (f64, f64) {
        let (score, weight) = self.score.slopes(eta, label);
        let most = self.largest_score;
        let score = root * score * self.score_share(share, weight, eta);
        let weight = self.influence(share, weight).weight;
        (score.clamp(-most, most), weight.min(self.largest_weight))
    }

    /// Power k of the distance from θ* in the size `max(‖u‖,‖u'‖)^k ‖u'−u‖` of a remainder: 2,
    /// or 1 where a network's second derivative is left over.
    pub fn remainder_power(&self) -> i32 {
        match self.predictor {
            Predictor::Linear | Predictor::Joint(_) => 2,
            Predictor::Network(_) => 1,
        }
    }

    /// What clips of remainders are a share of, over `max(‖u‖,‖u'‖)^k ‖u'−u‖`; `unit`: κ times the
    /// model's unit. The bound `κ (k₃/2) b³` of rows with ‖L⁻¹x‖ ≤ b whose third derivative is at
    /// most k₃ (docs/proofs/anchors.md); of a network, which has none, `κb²/d`: a score of one
    /// and a network that bends as much as the square of its slope, in general position.
    pub fn remainder_rate(&self, unit: f64, row_bound: f64) -> f64 {
        match self.predictor {
            Predictor::Linear | Predictor::Joint(_) => {
                unit * 0.5 * self.largest_third * row_bound.powi(3)
            }
            Predictor::Network(shape) => unit * row_bound.powi(2) / shape.parameters() as f64,
        }
    }
}

/// The chance of the likelier of two classes, from p(1 − p).
fn likelier(weight: f64) -> f64 {
    0.5 + (0.25 - weight.clamp(0.0, 0.25)).sqrt()
}

/// The labels of a kind, for expectations and bounds.
pub(crate) fn label_range(label: LabelKind) -> LabelRange {
    match label {
        LabelKind::Binary => LabelRange::Classes(vec![-1.0, 1.0]),
        LabelKind::Number { low, high } => LabelRange::Numbers { low, high },
        LabelKind::Count { max } => LabelRange::Counts(max),
        LabelKind::Class { classes } => LabelRange::Classes((0..classes).map(f64::from).collect()),
    }
}

impl Score {
    /// First derivative of a row's log likelihood in η and minus the second, unclipped, in units
    /// of [`crate::model::Model::unit`]; `label` as stored.
    pub fn slopes(self, eta: f64, label: f64) -> (f64, f64) {
        match self {
            Score::Logistic => {
                let (p, w) = remainder::slopes(eta);
                (f64::from(u8::from(label > 0.0)) - p, w)
            }
            Score::Linear => (label - eta, 1.0),
            Score::Poisson => {
                let rate = eta.exp();
                (label - rate, rate)
            }
            Score::Declared(law) => law.slopes(label, eta, &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against differences of the log densities, normalising constants left out.
    #[test]
    fn slopes_are_derivatives() {
        let log_density = |score: Score, eta: f64, y: f64| match score {
            Score::Logistic => -(1.0 + (-y * eta).exp()).ln(),
            Score::Linear => -0.5 * (y - eta).powi(2),
            Score::Poisson => y * eta - eta.exp(),
            Score::Declared(law) => law.log_likelihood(y, eta, &[]),
        };
        for (score, y) in [
            (Score::Logistic, 1.0),
            (Score::Logistic, -1.0),
            (Score::Linear, -2.5),
            (Score::Poisson, 3.0),
        ] {
            for eta in [-1.5, 0.0, 0.4, 2.0] {
                let h = 1e-4;
                let f = |t: f64| log_density(score, t, y);
                let first = (f(eta + h) - f(eta - h)) / (2.0 * h);
                let second = -(f(eta + h) - 2.0 * f(eta) + f(eta - h)) / (h * h);
                let (s, w) = score.slopes(eta, y);
                assert!((s - first).abs() < 1e-6, "{score:?} {eta}");
                assert!((w - second).abs() < 1e-6, "{score:?} {eta}");
            }
        }
    }

    /// A logistic row's shortened score has the mean 0 whatever its length, is within the bound for
    /// either label, and comes to it for the less likely one once the row is long enough.
    #[test]
    fn a_long_logistic_row_keeps_its_mean_and_its_bound() {
        let slopes = Slopes::logistic();
        for eta in [-8.0f64, -2.0, -0.3, 0.0, 1.0, 5.0] {
            let p = 1.0 / (1.0 + (-eta).exp());
            let likelier = p.max(1.0 - p);
            for share in [1.0, 0.9, 0.6, 0.3, 0.01] {
                // Over the row bound, as the row's z is shortened to it.
                let [up, down] = [1.0, -1.0].map(|y| slopes.score_and_weight(1.0, share, eta, y).0);
                assert!((p * up + (1.0 - p) * down).abs() < 1e-12, "{eta} {share}");
                assert!((slopes.larger_score(eta) - likelier).abs() < 1e-12, "{eta}");
                let largest = up.abs().max(down.abs());
                assert!(largest <= 1.0 + 1e-12, "{eta} {share}: {largest}");
                // What is left of the score, of a row 1/share times as long as the bound.
                let left = largest * share / likelier;
                let expected = (share / likelier).min(1.0);
                assert!((left - expected).abs() < 1e-12, "{eta} {share}: {left}");
            }
        }
    }

    /// The same of other laws of two classes, whose scores have no bound: at the predictors where
    /// one is above S as well.
    #[test]
    fn long_rows_of_two_classes_keep_their_mean_and_their_bound() {
        let law = |name: &str, text: &str| Law::new(name, text, &[], &[]).unwrap();
        let named = |name: &str| law(name, crate::expression::family(name).unwrap().likelihood);
        let own = law("own", "-log1p_exp(-y * (eta + 0.2 * eta^3))");
        for law in [named("probit"), named("cloglog"), own] {
            let slopes = Slopes::declared(law, LabelKind::Binary);
            let (mut above, mut cut) = (false, false);
            for eta in [-6.0f64, -2.5, -0.7, 0.0, 0.4, 2.5] {
                let scores = [1.0, -1.0].map(|y| slopes.score.slopes(eta, y).0);
                let chances = [1.0, -1.0].map(|y| law.log_likelihood(y, eta, &[]).exp());
                let larger = scores.map(f64::abs).into_iter().fold(0.0, f64::max);
                above |= larger > slopes.largest_score;
                for share in [1.0, 0.6, 0.1] {
                    let kept = [1.0, -1.0].map(|y| slopes.score_and_weight(1.0, share, eta, y).0);
                    let mean = chances[0] * kept[0] + chances[1] * kept[1];
                    assert!(mean.abs() < 1e-9 * larger, "{law:?} {eta} {share}: {mean}");
                    let most = kept.map(f64::abs).into_iter().fold(0.0, f64::max);
                    let expected = (larger / share).min(slopes.largest_score);
                    assert!(
                        (most - expected).abs() < 1e-9 * expected,
                        "{law:?} {eta} {share}"
                    );
                    let length = slopes.larger_score(eta);
                    let known = larger / slopes.largest_score;
                    assert!((length - known).abs() < 1e-9 * known, "{law:?} {eta}");
                    cut |= length / share > 1.0;
                }
            }
            assert!(above && cut, "{law:?}");
        }
    }

    #[test]
    fn bounds_follow_the_declarations() {
        let label = LabelKind::Number {
            low: 90.0,
            high: 100.0,
        };
        // Clipped at 8s, or where no label can be further off.
        assert_eq!(Slopes::linear(label, 4.0).largest_score, 16.0);
        assert_eq!(Slopes::linear(label, 1e6).largest_score, 100.0);
        assert_eq!(Slopes::linear(label, 4.0).crossing, 6.25);
        assert_eq!(Slopes::linear(label, 1e6).crossing, 1.0);
        let wide = Slopes::poisson(400.0, None);
        assert_eq!((wide.largest_score, wide.largest_weight), (80.0, 100.0));
        assert_eq!(wide.largest_third, 100.0);
        let boxed = Slopes::poisson(20.0, Some(2f64.ln()));
        assert!((boxed.largest_weight - 2.0).abs() < 1e-12);
        assert_eq!(boxed.largest_third, boxed.largest_weight);
        // A rate beyond the largest weight counts for what it may: its curvature is W.
        let far = wide.influence(1.0, 800.0);
        assert_eq!((far.weight, far.omega), (100.0, 0.125));
        assert_eq!(wide.score_share(1.0, 800.0, 6.7), 0.125);
        assert_eq!(wide.influence(f64::NAN, 3.0).omega, 1.0);
        assert_eq!(Slopes::poisson(4.0, None).largest_score, 4.0);
        assert_eq!(Slopes::logistic().first_weight, 0.25);
        assert_eq!(Slopes::poisson(3.0, None).first_weight, 1.0);
    }
}
