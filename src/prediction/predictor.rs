//! From one draw of a run's parameters and one row of public features to the law of its label.

use super::PredictionError;
use super::curve::Curve;
use super::law::{LabelLaw, odds};
use super::new_rows::NewRows;
use super::numeric::{Numeric, chances, integral_of};
use crate::config::Plan;
use crate::data::{LabelKind, LabelValues};
use crate::expression::{Law, Zero};
use crate::math::normal;
use crate::output::Predictive;

/// Largest count over which the probabilities of a declared likelihood are summed.
const MOST_COUNT: u32 = 1 << 14;

/// Named likelihoods of counts whose probabilities are summed too.
pub(super) const BY_NUMBERS: [&str; 3] = [
    "binomial",
    "zero-inflated-poisson",
    "zero-inflated-negative-binomial",
];

/// What predicts labels: the model of a run file.
#[derive(Clone, Debug)]
pub struct Predictor {
    predictive: Predictive,
    label: LabelKind,
    features: usize,
    /// Parameters of a named likelihood in its own order: where a draw has each, or its number.
    own: Vec<Own>,
}

/// Chances of later times that differ by less are the same.
const UNLIKE: f64 = 0.02;

#[derive(Clone, Copy, Debug)]
enum Own {
    Drawn(usize),
    Fixed(f64),
}

impl Predictor {
    /// The model of `plan` over the columns of `rows`.
    ///
    /// # Errors
    /// [`PredictionError`] where the model has no labels, or a declared likelihood too many.
    pub fn new(plan: &Plan, rows: &NewRows) -> Result<Self, PredictionError> {
        let label = plan
            .label()?
            .map(|label| match (&label.event, &label.values) {
                // The kind's bounds are those of both signs; times are predicted, be they seen or
                // not.
                (Some(_), LabelValues::Clamp { low, high }) => LabelKind::Number {
                    low: *low,
                    high: *high,
                },
                // Of one trial.
                (_, LabelValues::Successes { .. }) => LabelKind::Binary,
                _ => label.kind(),
            });
        let (Some(predictive), Some(label)) = (plan.predictive(rows.set())?, label) else {
            let what = "this kind of model has no label to predict";
            return Err(plan.refuse("model.kind", what).into());
        };
        let mut own = Vec::new();
        if let Predictive::Declared(law) = predictive {
            if let Some(family) = plan.config.model.kind.family() {
                let names = family.parameters.iter().map(|(name, _)| *name);
                let constants = &plan.config.model.constants;
                own = names
                    .map(|name| match law.shared().iter().position(|s| s == name) {
                        Some(k) => Own::Drawn(k),
                        None => Own::Fixed(constants.get(name).copied().unwrap_or(f64::NAN)),
                    })
                    .collect();
            }
            let summed = law.name() == "declared" || BY_NUMBERS.contains(&law.name());
            if let LabelKind::Count { max } = label
                && max > MOST_COUNT
                && summed
            {
                let what = format!(
                    "the probabilities of this likelihood are summed over all counts, of which there are at most {MOST_COUNT} here; predict with negative-binomial or poisson"
                );
                return Err(plan.refuse("data.label.count", what).into());
            }
        }
        Ok(Predictor {
            predictive,
            label,
            features: rows.features(),
            own,
        })
    }

    /// Refuses what compares or makes labels where a row has several outcomes.
    ///
    /// # Errors
    /// [`PredictionError`] naming the key.
    pub fn check_single_outcomes(plan: &Plan) -> Result<(), PredictionError> {
        match plan.has_trials() {
            false => Ok(()),
            true => Err(plan
                .refuse(
                    "data.label.trials",
                    "a row holds several outcomes; predict and effects say what one trial comes to, and the rest needs a run file of single outcomes, kind = \"logistic\"",
                )
                .into()),
        }
    }

    /// What the model reads of a label.
    pub fn label(&self) -> LabelKind {
        self.label
    }

    /// Number of parameters in a draw.
    pub fn parameters(&self) -> usize {
        match self.predictive {
            Predictive::Network(shape) => shape.parameters(),
            Predictive::Layers(network) => network.parameters(),
            Predictive::Declared(law) => self.features + law.shared().len(),
            _ => self.features,
        }
    }

    /// Whether a quantile is predicted in place of a mean.
    pub fn is_quantile(&self) -> bool {
        matches!(self.predictive, Predictive::Declared(law) if law.name() == "quantile")
    }

    /// The law of the label of a row of features, and perhaps an offset behind them, by one draw,
    /// both of the lengths that [`Predictor::new`] saw.
    pub fn law(&self, theta: &[f64], row: &[f32]) -> LabelLaw {
        let said = match self.predictive {
            Predictive::Network(shape) => {
                let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
                Some(shape.probabilities(theta, &row))
            }
            Predictive::Layers(network) => Some(network.probabilities(theta, row)),
            _ => None,
        };
        if let Some(said) = said {
            return match said.as_slice() {
                [chance] => LabelLaw::Binary { chance: *chance },
                _ => LabelLaw::Classes(said),
            };
        }
        self.law_at(self.linear(theta, row), self.shared(theta))
    }

    /// The linear predictor of a row of features, and perhaps an offset behind them.
    fn linear(&self, theta: &[f64], row: &[f32]) -> f64 {
        let (row, offset) = row.split_at(self.features.min(row.len()));
        let eta: f64 = row.iter().zip(theta).map(|(&x, t)| f64::from(x) * t).sum();
        eta + offset.first().map_or(0.0, |o| f64::from(*o))
    }

    /// What a draw holds beside coefficients.
    fn shared<'a>(&self, theta: &'a [f64]) -> &'a [f64] {
        theta.get(self.features..).unwrap_or_default()
    }

    /// The expected label of each of `rows`, `width` values each, by one draw. Of laws by numbers,
    /// which take long, it is tabulated by the linear predictor where that needs fewer of them than
    /// half of the rows. The table is refined until it is off by at most 2e-5 of the range of all
    /// values wherever it is checked.
    pub(super) fn expected(&self, theta: &[f64], rows: &[f32], width: usize) -> Vec<f64> {
        let each = rows.chunks_exact(width);
        let one = each.clone().next().map(|row| self.law(theta, row));
        if !matches!(one, Some(LabelLaw::Numeric(_))) {
            return each.map(|row| self.law(theta, row).expected()).collect();
        }
        let shared = self.shared(theta);
        let value = |eta: f64| self.law_at(eta, shared).expected();
        let etas: Vec<f64> = each.map(|row| self.linear(theta, row)).collect();
        let (low, high) = (
            etas.iter().copied().fold(f64::INFINITY, f64::min),
            etas.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        );
        match Curve::new(low, high, etas.len() / 2, value) {
            Some(curve) => etas.into_iter().map(|eta| curve.at(eta)).collect(),
            None => etas.into_iter().map(value).collect(),
        }
    }

    /// The same by the linear predictor and what a draw holds beside coefficients.
    fn law_at(&self, eta: f64, shared: &[f64]) -> LabelLaw {
        match self.predictive {
            Predictive::Linear { variance } => LabelLaw::Normal {
                mean: eta,
                sd: variance.sqrt(),
            },
            Predictive::Poisson => LabelLaw::Poisson { mean: eta.exp() },
            Predictive::Declared(law) if law.name() == "declared" => {
                by_numbers(law, self.label, eta, shared)
            }
            Predictive::Declared(law) => self.named(law.name(), eta, shared),
            // Networks have no linear predictor and do not come here.
            Predictive::Logistic | Predictive::Network(_) | Predictive::Layers(_) => {
                LabelLaw::Binary { chance: odds(eta) }
            }
        }
    }

    /// The parameter of a named likelihood in the place `k` of its list.
    fn parameter(&self, k: usize, shared: &[f64]) -> f64 {
        match self.own.get(k) {
            Some(Own::Drawn(at)) => shared.get(*at).copied().unwrap_or(f64::NAN),
            Some(Own::Fixed(value)) => *value,
            None => f64::NAN,
        }
    }

    /// The laws that `expression::FAMILIES` names, each in the parameters listed there.
    fn named(&self, name: &str, eta: f64, shared: &[f64]) -> LabelLaw {
        let own = |k: usize| self.parameter(k, shared);
        match name {
            "probit" => LabelLaw::Binary {
                chance: normal::below(eta),
            },
            "cloglog" => LabelLaw::Binary {
                chance: -(-eta.exp()).exp_m1(),
            },
            "gaussian" => LabelLaw::Normal {
                mean: eta,
                sd: own(0).exp(),
            },
            "student-t" => LabelLaw::StudentT {
                at: eta,
                scale: own(0).exp(),
                freedom: own(1),
            },
            "log-normal" | "log-normal-survival" => LabelLaw::LogNormal {
                at: eta,
                sd: own(0).exp(),
            },
            "gamma" => LabelLaw::Gamma {
                mean: eta.exp(),
                shape: own(0).exp(),
            },
            "negative-binomial" => LabelLaw::NegativeBinomial {
                mean: eta.exp(),
                shape: own(0).exp(),
            },
            "beta" => LabelLaw::Beta {
                mean: odds(eta),
                rest: odds(-eta),
                precision: own(0).exp(),
            },
            "weibull" => LabelLaw::Weibull {
                scale: eta.exp(),
                shape: own(0).exp(),
            },
            "quantile" => LabelLaw::Quantile {
                at: eta,
                share: own(0),
                width: own(1),
                scale: own(2).exp(),
            },
            // Their probabilities add up to 1 over all counts, not over the declared ones.
            "zero-inflated-poisson" | "zero-inflated-negative-binomial" => {
                match (self.predictive, self.label) {
                    (Predictive::Declared(law), LabelKind::Count { max }) => {
                        let log = |y: f64| law.log_likelihood(y, eta, shared);
                        LabelLaw::Numeric(Numeric::of_all_counts(max, log))
                    }
                    _ => LabelLaw::Binary { chance: f64::NAN },
                }
            }
            // Ordered classes, and those of BY_NUMBERS.
            _ => match self.predictive {
                Predictive::Declared(law) => by_numbers(law, self.label, eta, shared),
                _ => LabelLaw::Binary { chance: f64::NAN },
            },
        }
    }
}

/// The law that an expression says, over the declared labels.
pub(super) fn by_numbers(law: Law, label: LabelKind, eta: f64, shared: &[f64]) -> LabelLaw {
    let log = |y: f64| law.log_likelihood(y, eta, shared);
    match label {
        LabelKind::Binary => LabelLaw::Binary {
            chance: chances(&[log(-1.0), log(1.0)])[1],
        },
        LabelKind::Class { classes } => {
            let logs: Vec<f64> = (0..classes).map(|k| log(f64::from(k))).collect();
            LabelLaw::Classes(chances(&logs))
        }
        LabelKind::Count { max } => LabelLaw::Numeric(Numeric::of_counts(max, log)),
        LabelKind::Number { low, high } => {
            let times = Some(high).filter(|high| low < 0.0 && *high > 0.0);
            let times = times.and_then(|high| times_of(high, log));
            let zero = || low == 0.0 && law.chooses() && has_zero(high, log);
            LabelLaw::Numeric(match times {
                Some(times) => times,
                None if zero() => Numeric::of_zero_and_numbers(high, log),
                None => Numeric::of_numbers(low, high, log),
            })
        }
    }
}

/// Whether 0 has a probability, or may have: then its likelihood says which, beside what is written
/// of the others.
fn has_zero(high: f64, log: impl Fn(f64) -> f64) -> bool {
    Zero::beside(integral_of(high, &log), log(0.0).exp()) != Zero::Density
}

/// The law of times up to `high` by an expression whose negative labels are times without an event:
/// there it says the chance of all later ones. `None` where it says something else.
fn times_of(high: f64, log: impl Fn(f64) -> f64) -> Option<Numeric> {
    // Before all times that chance is 1. Of few other laws it is, and the rest takes longer.
    if log(-1e-9 * high).abs() > UNLIKE {
        return None;
    }
    let times = Numeric::of_numbers(0.0, high, &log);
    let seen = 1.0 - log(-high).exp();
    let agrees = [0.2, 0.4, 0.6, 0.8].iter().all(|share| {
        let y = times.quantile(*share);
        (log(-y).exp() - (1.0 - seen * times.below(y))).abs() < UNLIKE
    });
    agrees.then(|| times.as_times())
}
