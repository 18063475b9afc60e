//! Bayesian generalised linear models: a row's likelihood is a function of its label and of its
//! linear predictor η = x·θ.

use super::{Joint, Slopes, label_range};
use crate::data::{LabelKind, Offset};
use crate::expression::{Law, Location, Range, SUCCESSES};
use crate::math::{log_factorial, normal, softplus, softplus_difference};
use crate::model::{
    Density, Forms, GradientFunction, Model, ModelError, Prior, RowFunction, Score, Support,
    check_tempering,
};

/// The law of a label given η.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Likelihood {
    /// `p(y = 1) = σ(η)`.
    Logistic,
    /// `y ~ N(η, variance)`, the variance known.
    Linear { variance: f64 },
    /// `y ~ Poisson(e^η)`. Counts are clamped to their declared bound; the likelihood is the
    /// plain Poisson's.
    Poisson,
    /// A declared law, with parameters that rows share behind the coefficients.
    Declared(Law),
}

/// The likelihood of [`Likelihood::Poisson`] as an expression.
const COUNTS: &str = "y * eta - exp(eta)";
/// Name of the feature that is 1 in every row.
const INTERCEPT: &str = "intercept";
/// Bounds of labels are far from 0 where one is at least this share of the other.
const FAR: f64 = 0.1;

/// Bayesian regression on the features of a labelled table: a coefficient a feature.
#[derive(Clone, Debug)]
pub struct Regression {
    likelihood: Likelihood,
    /// Coefficients, then shared parameters.
    parameters: Vec<String>,
    /// Number of coefficients.
    features: usize,
    /// What rows add to η beside their features.
    offset: Option<Offset>,
    label: LabelKind,
    /// Trials of a row at most, where its label is the share of successes in them.
    trials: Option<f64>,
    row_norm: f64,
    prior: Prior,
    tempering: f64,
    /// True bound on `|r| / (κ‖Δθ‖)`.
    rate: Option<f64>,
    slopes: Option<Slopes>,
}

impl Regression {
    /// Logistic regression. `features`: feature names (one coefficient each); `row_norm`: the
    /// declared bound B on ‖x‖; `tempering`: κ > 0.
    ///
    /// # Errors
    /// [`ModelError`] for a bad prior or κ.
    pub fn logistic(
        features: &[String],
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let label = LabelKind::Binary;
        Self::new(
            Likelihood::Logistic,
            features,
            label,
            row_norm,
            prior,
            tempering,
        )
    }

    /// Linear regression with known noise: `variance`: s² of it, in the label's units squared;
    /// `label`: a declared [`LabelKind::Number`]; else as [`Regression::logistic`].
    ///
    /// # Errors
    /// [`ModelError`] for another label, a bad variance, prior or κ.
    pub fn linear(
        features: &[String],
        variance: f64,
        label: LabelKind,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let LabelKind::Number { .. } = label else {
            let needs = "a numeric label: declare clamp = [low, high] or scale = [low, high]";
            return Err(wrong_label("linear", needs, label));
        };
        if !(1e-30..=1e30).contains(&variance) {
            return Err(ModelError::new(
                "model.variance",
                format!("must be positive (1e-30 to 1e30), not {variance}"),
            ));
        }
        let likelihood = Likelihood::Linear { variance };
        Self::new(likelihood, features, label, row_norm, prior, tempering)
    }

    /// Poisson regression with a log link: `label`: a declared [`LabelKind::Count`]; else as
    /// [`Regression::logistic`].
    ///
    /// # Errors
    /// [`ModelError`] for another label, a bad prior or κ.
    pub fn poisson(
        features: &[String],
        label: LabelKind,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let LabelKind::Count { .. } = label else {
            return Err(wrong_label("poisson", "counts: declare count = max", label));
        };
        Self::new(
            Likelihood::Poisson,
            features,
            label,
            row_norm,
            prior,
            tempering,
        )
    }

    /// A declared likelihood: one coefficient a feature, then its shared parameters; else as
    /// [`Regression::logistic`].
    ///
    /// # Errors
    /// [`ModelError`] for a bad prior or κ.
    pub fn declared(
        features: &[String],
        law: Law,
        label: LabelKind,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        Self::new(
            Likelihood::Declared(law),
            features,
            label,
            row_norm,
            prior,
            tempering,
        )
    }

    fn new(
        likelihood: Likelihood,
        features: &[String],
        label: LabelKind,
        row_norm: f64,
        prior: Prior,
        tempering: f64,
    ) -> Result<Self, ModelError> {
        let shared = match likelihood {
            Likelihood::Declared(law) => law.shared(),
            _ => &[],
        };
        let parameters = [features, shared].concat();
        prior.validate(parameters.len())?;
        check_tempering(tempering)?;
        let mut model = Regression {
            likelihood,
            parameters,
            features: features.len(),
            offset: None,
            label,
            trials: None,
            row_norm,
            prior,
            tempering,
            rate: None,
            slopes: None,
        };
        model.rate = model.rate();
        model.slopes = model.bounds();
        Ok(model)
    }

    /// The same where every row adds an offset to η, within these bounds.
    #[must_use]
    pub fn with_offset(mut self, offset: Offset) -> Self {
        self.offset = Some(offset);
        self.rate = self.rate();
        self.slopes = self.bounds();
        self
    }

    /// The same where labels are the shares of successes in so many trials at most, and rows weigh
    /// as their trials do.
    #[must_use]
    pub fn with_trials(mut self, most: f64) -> Self {
        self.trials = Some(most);
        self.slopes = self.bounds();
        self
    }

    /// Offsets of rows, as they may be stored: 0 where there are none.
    fn offsets(&self) -> [f64; 2] {
        self.offset.map_or([0.0; 2], Offset::stored)
    }

    /// Where linear regressions with an intercept start: at the middle of labels that are declared
    /// far from 0 for their width, such as temperatures of bodies, else at 0. (Of bounds that begin
    /// near 0, like those of incomes, most labels lie near that end.)
    fn middle_label(&self) -> Option<f64> {
        let (Likelihood::Linear { .. }, Some(_)) = (self.likelihood, self.intercept()) else {
            return None;
        };
        let LabelKind::Number { low, high } = self.label else {
            return None;
        };
        let (near, far) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
        (low * high > 0.0 && near >= FAR * far).then_some(0.5 * (low + high))
    }

    /// The intercept's place in θ.
    fn intercept(&self) -> Option<usize> {
        let mut features = self.parameters[..self.features].iter();
        features.position(|name| name == INTERCEPT)
    }

    /// η of a row as it is stored.
    fn predictor(&self, row: &[f64], theta: &[f64]) -> f64 {
        let (features, offset) = row.split_at(self.features);
        let own: f64 = features.iter().zip(theta).map(|(x, t)| x * t).sum();
        own + offset.first().copied().unwrap_or(0.0)
    }

    /// The weights of a row's stored values: of its features as given, and of its offset.
    fn weights(&self, of_features: &[f64], of_offset: f64) -> Vec<f64> {
        let offset = self.offset.map(|_| of_offset);
        of_features.iter().copied().chain(offset).collect()
    }

    /// A bound on `|r| / (κ‖Δθ‖)` over the support, if there is one: `B max |d/dη log p|`, which is
    /// B; `B (|y| + |η|)/s²` and `B max(y, e^η)` over a box of radius R, in which η is within BR of
    /// the row's offset. Shared parameters add their own slopes.
    fn rate(&self) -> Option<f64> {
        let reach = || match &self.prior.support {
            Support::Box(bounds) => {
                let squares: f64 = bounds[..self.features].iter().map(|b| b * b).sum();
                Some(self.row_norm * squares.sqrt())
            }
            Support::Unbounded => None,
        };
        let [low, high] = self.offsets();
        let farthest = low.abs().max(high.abs());
        let (score, label) = match self.likelihood {
            Likelihood::Logistic => (1.0, 0.0),
            Likelihood::Linear { variance } => {
                let residual = self.label.bound() + reach()? + farthest;
                (residual / variance, 0.0)
            }
            Likelihood::Poisson => (self.label.bound().max((reach()? + high).exp()), 0.0),
            Likelihood::Declared(law) => {
                let shared: Vec<Range> = match &self.prior.support {
                    Support::Box(b) => {
                        let own = b[self.features..].iter();
                        own.map(|b| Range::around_zero(*b)).collect()
                    }
                    Support::Unbounded => return None,
                };
                let reach = reach()?;
                let eta = Range {
                    low: low - reach,
                    high: high + reach,
                };
                let bounds = law.score_bounds(&label_ranges(self.label), eta, &shared);
                let squares = bounds[1..].iter().map(|b| b * b);
                (bounds[0], squares.sum::<f64>().sqrt())
            }
        };
        let rate = (score * self.row_norm).hypot(label);
        // e^{BR} may be beyond any number.
        rate.is_finite().then_some(rate)
    }

    /// A point where it has prior mass, else the origin.
    fn supported(&self, point: Vec<f64>) -> Vec<f64> {
        match self.prior.contains(&point) {
            true => point,
            false => vec![0.0; point.len()],
        }
    }

    /// Score and weight with their bounds.
    fn bounds(&self) -> Option<Slopes> {
        Some(match self.likelihood {
            Likelihood::Logistic => Slopes::logistic(),
            Likelihood::Linear { variance } => {
                let middle = self.offset.map_or(0.0, Offset::middle);
                let start = self.middle_label().map_or(0.0, |label| label - middle);
                let offsets = self.offsets().map(|offset| offset + start);
                Slopes::linear(residuals(self.label, offsets), variance)
            }
            Likelihood::Poisson => {
                let [_, high] = self.offsets();
                let largest = radius(&self.prior.support).map(|r| self.row_norm * r + high);
                Slopes::poisson(self.label.bound(), largest)
            }
            Likelihood::Declared(law) if law.shared().is_empty() => {
                let slopes = Slopes::declared(law, self.label);
                self.trials.map_or(slopes, |most| slopes.of_trials(most))
            }
            Likelihood::Declared(law) => {
                let joint = Joint {
                    law,
                    label: self.label,
                };
                Slopes::joint(joint, &self.usual_start())
            }
        })
    }
}

/// Radius of the box that a support is, where it is one: `‖θ‖ ≤ R`.
fn radius(support: &Support) -> Option<f64> {
    match support {
        Support::Unbounded => None,
        Support::Box(bounds) => Some(bounds.iter().map(|b| b * b).sum::<f64>().sqrt()),
    }
}

/// A label that the model cannot read.
fn wrong_label(model: &str, needs: &str, label: LabelKind) -> ModelError {
    ModelError::new(
        "data.label",
        format!("model '{model}' needs {needs}, not {}", label.describe()),
    )
}

/// All labels of a kind.
fn label_ranges(label: LabelKind) -> Vec<Range> {
    match label {
        LabelKind::Binary => vec![Range::of(-1.0), Range::of(1.0)],
        LabelKind::Number { low, high } => vec![Range { low, high }],
        LabelKind::Count { .. } | LabelKind::Class { .. } => {
            let high = label.bound();
            vec![Range { low: 0.0, high }]
        }
    }
}

/// What is left of numbers when offsets are taken off.
fn residuals(label: LabelKind, [from, to]: [f64; 2]) -> LabelKind {
    match label {
        LabelKind::Number { low, high } => LabelKind::Number {
            low: low - to,
            high: high - from,
        },
        other => other,
    }
}

impl Model for Regression {
    fn name(&self) -> &'static str {
        match self.likelihood {
            Likelihood::Logistic => "logistic",
            Likelihood::Linear { .. } => "linear",
            Likelihood::Poisson => "poisson",
            Likelihood::Declared(law) => law.name(),
        }
    }
    fn parameters(&self) -> &[String] {
        &self.parameters
    }
    fn features(&self) -> usize {
        self.features
    }
    fn offset(&self) -> Option<Offset> {
        self.offset
    }
    fn labelled(&self) -> bool {
        true
    }
    fn label(&self) -> Option<LabelKind> {
        Some(self.label)
    }
    fn tempering(&self) -> f64 {
        self.tempering
    }
    /// 1/s² of a linear one.
    fn unit(&self) -> f64 {
        match self.likelihood {
            Likelihood::Linear { variance } => 1.0 / variance,
            _ => 1.0,
        }
    }
    fn slopes(&self) -> Option<Slopes> {
        self.slopes
    }
    /// What fits labels best that are spread evenly over their declared range: an intercept, if
    /// there is one, which takes off the middle of the offsets, and shared parameters.
    /// None of laws whose scores end, or fall again, far out: they do not tell how far off a label
    /// is.
    fn location(&self) -> Option<Location> {
        let law = match self.likelihood {
            Likelihood::Declared(law) => law,
            Likelihood::Poisson => Law::new("poisson", COUNTS, &[], &[]).ok()?,
            Likelihood::Logistic | Likelihood::Linear { .. } => return None,
        };
        let labels = label_range(self.label);
        // (Shares of trials are means of classes.)
        let classes = labels.is_classes() || law.name() == SUCCESSES.0;
        let location = Location {
            law,
            labels,
            column: self.intercept().filter(|_| !classes)?,
            offset: self.offset.map_or(0.0, Offset::middle),
            events: 1.0,
        };
        let start = self.usual_start();
        let eta = start[location.column] + location.offset;
        let told = location.is_told(eta, &start[self.features..]);
        told.then_some(location)
    }
    fn usual_start(&self) -> Vec<f64> {
        let mut start = vec![0.0; self.parameters.len()];
        let intercept = self.intercept();
        let middle = self.offset.map_or(0.0, Offset::middle);
        let Likelihood::Declared(law) = self.likelihood else {
            if let Some(k) = intercept {
                start[k] = self.middle_label().unwrap_or(0.0) - middle;
            }
            return self.supported(start);
        };
        let shared = |mean: &[f64], sd: &[f64]| {
            let pairs = mean.iter().zip(sd).skip(self.features);
            pairs.map(|(m, s)| (*m, *s)).collect()
        };
        let shared: Vec<(f64, f64)> = match &self.prior.density {
            Density::Normal { mean, sd } => shared(mean, sd),
            _ => vec![(0.0, f64::INFINITY); start.len() - self.features],
        };
        let labels = label_range(self.label);
        let (eta, shared) = law.fit_to_range(&labels, intercept.is_some(), &shared);
        start[self.features..].copy_from_slice(&shared);
        if let Some(k) = intercept {
            start[k] = eta - middle;
        }
        self.supported(start)
    }
    fn prior(&self) -> &Prior {
        &self.prior
    }
    /// `|r_i| ≤ κ|x·Δθ| max |d/dη log p|`.
    fn ratio_rate(&self) -> Option<f64> {
        self.rate.map(|rate| self.tempering * rate)
    }
    /// `|x·Δθ|` falls with ‖x‖, and the bounds of the score, with ‖x‖ in place of B, are no larger;
    /// what rows share stays.
    fn ratio_scales_with_row(&self) -> bool {
        self.parameters.len() == self.features
    }
    fn row_function(&self) -> RowFunction {
        match self.likelihood {
            Likelihood::Logistic => RowFunction::Logistic,
            Likelihood::Linear { .. } => RowFunction::Linear,
            Likelihood::Poisson => RowFunction::Poisson,
            Likelihood::Declared(law) => RowFunction::Declared(law),
        }
    }
    fn forms(&self, theta: &[f64], proposal: &[f64]) -> Forms {
        let step: Vec<f64> = proposal.iter().zip(theta).map(|(p, t)| p - t).collect();
        let (theta, shared) = theta.split_at(self.features);
        let (step, moved) = step.split_at(self.features);
        Forms {
            offsets: [&[0.0; 2], shared, moved].concat(),
            weights: [self.weights(theta, 1.0), self.weights(step, 0.0)].concat(),
        }
    }
    fn log_ratio(&self, row: &[f64], label: f64, theta: &[f64], proposal: &[f64]) -> f64 {
        let (a, b) = (self.predictor(row, theta), self.predictor(row, proposal));
        let ratio = match self.likelihood {
            Likelihood::Logistic => -softplus_difference(-label * a, -label * (b - a)),
            Likelihood::Linear { variance } => {
                ((label - a).powi(2) - (label - b).powi(2)) / (2.0 * variance)
            }
            Likelihood::Poisson => (label * b - b.exp()) - (label * a - a.exp()),
            Likelihood::Declared(law) => {
                let (from, to) = (&theta[self.features..], &proposal[self.features..]);
                law.log_likelihood(label, b, to) - law.log_likelihood(label, a, from)
            }
        };
        self.tempering * ratio
    }
    fn log_density(&self, row: &[f64], label: f64, theta: &[f64]) -> Option<f64> {
        let eta = self.predictor(row, theta);
        Some(match self.likelihood {
            Likelihood::Logistic => -softplus(-label * eta),
            Likelihood::Linear { variance } => {
                normal::log_density((label - eta) / variance.sqrt()) - 0.5 * variance.ln()
            }
            Likelihood::Poisson => label * eta - eta.exp() - log_factorial(label),
            Likelihood::Declared(law) => law.log_likelihood(label, eta, &theta[self.features..]),
        })
    }
    fn gradient_function(&self) -> GradientFunction {
        GradientFunction::Score(match self.likelihood {
            Likelihood::Logistic => Score::Logistic,
            Likelihood::Linear { .. } => Score::Linear,
            Likelihood::Poisson => Score::Poisson,
            Likelihood::Declared(law) if law.shared().is_empty() => Score::Declared(law),
            Likelihood::Declared(law) => return GradientFunction::Declared(law),
        })
    }
    fn gradient_forms(&self, theta: &[f64]) -> Forms {
        let (theta, shared) = theta.split_at(self.features);
        Forms {
            offsets: shared.to_vec(),
            weights: self.weights(theta, 1.0),
        }
    }
    fn gradient(&self, row: &[f64], label: f64, theta: &[f64]) -> Vec<f64> {
        let eta = self.predictor(row, theta);
        let scores = match self.likelihood {
            Likelihood::Logistic => vec![label / (1.0 + (label * eta).exp())],
            Likelihood::Linear { variance } => vec![(label - eta) / variance],
            Likelihood::Poisson => vec![label - eta.exp()],
            Likelihood::Declared(law) => law.scores(label, eta, &theta[self.features..]),
        };
        let coefficients = row[..self.features].iter().map(|x| scores[0] * x);
        let all = coefficients.chain(scores[1..].iter().copied());
        all.map(|v| self.tempering * v).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the path starts, and how far labels lie from there at most.
    fn start_and_reach(label: [f64; 2], offset: Option<Offset>) -> (f64, f64) {
        let names = ["a".to_string(), INTERCEPT.to_string()];
        let [low, high] = label;
        let kind = LabelKind::Number { low, high };
        let prior = Prior::normal(2, 50.0);
        let model = Regression::linear(&names, 0.09, kind, 2.0, prior, 1.0).unwrap();
        let model = match offset {
            Some(offset) => model.with_offset(offset),
            None => model,
        };
        let slopes = Model::slopes(&model).unwrap();
        (
            model.usual_start()[1],
            slopes.crossing * slopes.largest_score,
        )
    }

    /// Temperatures of bodies, also above those of rooms; marks around 0; incomes.
    #[test]
    fn linear_models_start_amid_labels_that_lie_far_from_zero() {
        let near = |found: (f64, f64), start: f64, reach: f64| {
            let off = (found.0 - start).abs() + (found.1 - reach).abs();
            assert!(off < 1e-3 * reach, "{found:?} {start} {reach}");
        };
        near(start_and_reach([35.0, 42.0], None), 38.5, 7.0);
        let rooms = Offset {
            low: 10.0,
            high: 30.0,
        };
        // Residuals from 35 − (30 + 18.5) to 42 − (10 + 18.5).
        near(start_and_reach([35.0, 42.0], Some(rooms)), 18.5, 27.0);
        near(start_and_reach([-2.0, 3.0], None), 0.0, 5.0);
        near(start_and_reach([1000.0, 500_000.0], None), 0.0, 500_000.0);
    }
}
