//! What an anchored run of a regression may expect of its budget, before it looks at a row: from
//! public numbers and the assumptions that are stated with them.

use serde::Serialize;

use super::Plan;
use crate::config::ConfigError;
use crate::model::{Density, Model};
use crate::privacy::{Budget, Measure};
use crate::sampler::{AnchorSettings, AnchoredProposal, Anchoring, Sampler};

/// What noise of the means is, over `unit · S · √(d/W)/μ`: what a single gradient of rows clipped
/// at twice their root mean square would show. Of seven tables (see the tests).
const CONSTANT: f64 = 4.0;
/// The same of two classes, over that: rows are bounded by the scores that they can have.
const TWO_CLASSES: f64 = 0.7;
/// Noise of the means, posterior sds, that the ε and N of a forecast are for: intervals are an
/// eighth wider for it.
const TARGET: f64 = 0.5;
/// Decisions for one effective draw of independent proposals, of which half are accepted.
pub const DECISIONS_A_DRAW: f64 = 3.0;
/// No larger ε is said to be of help: budgets end there.
const MOST_EPSILON: f64 = 1000.0;
/// What the numbers take for granted.
pub const ASSUMPTIONS: &str = "within about a factor of two on rows spread evenly over their \
    bounds; rare levels, rare labels, counts of next to zero, skewed columns, collinear columns and \
    separation make it worse (measured: up to 7 times, once 10), and so do times of which most are \
    without an event (of 95 %: 4 to 12 times) and labels far more skewed than their law (wages by \
    `gaussian` or `gamma`: 7 to 29 times)";

/// What an anchored run of a regression may expect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Noise of the coefficients' means, posterior sds, root mean square over them.
    pub noise_posterior_sds: f64,
    /// Whether the prior alone would be about as near: the noise exceeds its width.
    pub prior_is_as_near: bool,
    /// Effective draws of the chains' target; `None` where proposals make it a guess.
    pub effective_draws: Option<f64>,
    /// Noise, posterior sds, that the next two are for.
    pub target_posterior_sds: f64,
    /// ε, at the run's δ, at which the noise is expected to be that; `None` beyond 1000.
    pub epsilon_for_target: Option<f64>,
    /// Rows at which it is, at the run's own budget.
    pub rows_for_target: f64,
    /// What the numbers take for granted.
    pub assumptions: &'static str,
}

impl Forecast {
    /// Whether less noise than this is to be had for the asking.
    pub fn falls_short(&self) -> bool {
        self.noise_posterior_sds > self.target_posterior_sds
    }
}

impl Plan {
    /// What a private run with an anchored regression may expect; `None` of other samplers.
    /// `steps`: decisions that the budget holds, infinite where draws are free.
    ///
    /// # Errors
    /// [`ConfigError`] where `[run]` or `[sampler]` does not say enough.
    pub fn forecast(
        &self,
        sampler: &Sampler,
        model: &dyn Model,
        (budget, measure): (Budget, Measure),
        steps: f64,
    ) -> Result<Option<Forecast>, ConfigError> {
        let Some(walk) = sampler.walk() else {
            return Ok(None);
        };
        let Some(AnchorSettings::Expansion(settings)) = &walk.anchoring else {
            return Ok(None);
        };
        let anchoring = &settings.anchoring;
        let rho = anchoring.split.map_or(0.0, |s| s.rho());
        let limit = self.limit(budget, measure)?;
        if anchoring.slopes.predictor.is_network() || rho.is_nan() || rho <= 0.0 {
            return Ok(None);
        }
        let released = noise_of_means(anchoring, rho);
        let prior = prior_width(anchoring, &model.prior().density);
        let length = self.length()?;
        let chains = self.chains() as f64;
        let kept = length.iterations as f64 * chains;
        let effective_draws = match (walk.decides(), settings.proposal) {
            // Thinned draws are as many fewer.
            (false, _) => Some((kept / self.config.run.thin as f64).floor()),
            (true, AnchoredProposal::RandomWalk { .. }) => None,
            (true, AnchoredProposal::Autoregressive { correlation: c }) => {
                let steps = steps / mean_over_typical(anchoring.start.len());
                let made = (steps - length.warmup as f64 * chains).clamp(0.0, kept);
                Some((made / DECISIONS_A_DRAW * (1.0 - c) / (1.0 + c)).floor())
            }
        };
        // The same share of a budget that holds so much more.
        let needed = limit * (released / TARGET).powi(2);
        let epsilon = measure.epsilon(needed, budget.conversion_delta());
        Ok(Some(Forecast {
            noise_posterior_sds: released / (1.0 + (released / prior).powi(2)).sqrt(),
            prior_is_as_near: released > prior,
            effective_draws,
            target_posterior_sds: TARGET,
            epsilon_for_target: (epsilon <= MOST_EPSILON).then_some(epsilon),
            rows_for_target: (anchoring.rows as f64 * (released / TARGET).powi(2)).ceil(),
            assumptions: ASSUMPTIONS,
        }))
    }
}

/// What moves cost on average over what one of typical length does, about: a price goes with the
/// square of the clip, so with the sixth power of the length, and long moves rule the more the
/// fewer directions there are. Exact for one direction; for more, within a third of Gaussians whose
/// variances lie evenly on a log scale over a factor of 20.
fn mean_over_typical(d: usize) -> f64 {
    (1.0 + 25.0 / d as f64).min(17.0)
}

/// Expected noise of the means in posterior sds, root mean square over coefficients, of an anchor
/// released for ρ nats in all: `4 · unit · S · √(d/W)/√(2ρ)`, S the usual largest score (of two
/// classes 0.7 times that) and `W = unit · N · w̄` with the mean weight w̄ that is expected of a
/// posterior.
pub fn noise_of_means(anchoring: &Anchoring, rho: f64) -> f64 {
    let d = anchoring.start.len() as f64;
    let weight = whole_weight(anchoring);
    let spread = f64::from(anchoring.slopes.rows_of_unit).sqrt();
    let row = anchoring.unit * spread * anchoring.slopes.usual_score() * (d / weight).sqrt();
    let constant = match anchoring.slopes.weights_scores {
        true => TWO_CLASSES * CONSTANT,
        false => CONSTANT,
    };
    constant * row / (2.0 * rho).sqrt()
}

/// `Σ κw` over rows, as expected of a posterior.
fn whole_weight(anchoring: &Anchoring) -> f64 {
    let slopes = &anchoring.slopes;
    let mean = slopes.typical_weight * slopes.first_weight;
    anchoring.unit * anchoring.rows as f64 * slopes.expected_rows() * mean
}

/// The narrowest prior sd in posterior sds, at most: those of columns as large as the row norm
/// allows all of them, and of shared parameters as much as one of these changes a row. Infinite
/// where the prior has none.
fn prior_width(anchoring: &Anchoring, prior: &Density) -> f64 {
    let d = anchoring.start.len();
    let sds = match prior {
        Density::Flat => return f64::INFINITY,
        Density::Normal { sd, .. } => sd.clone(),
        Density::Laplace { scale } => scale.iter().map(|s| 2f64.sqrt() * s).collect(),
        Density::Blocks(blocks) => blocks.working(d).1,
    };
    let (_, scales) = anchoring.slopes.and_scales(&anchoring.start);
    let features = d - scales.len();
    let column = anchoring.row_norm / (features as f64).sqrt();
    let columns = std::iter::repeat_n(column, features).chain(scales);
    let least = (sds.iter().zip(columns)).map(|(sd, column)| sd * column);
    least.fold(f64::INFINITY, f64::min) * whole_weight(anchoring).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::LabelKind;
    use crate::expression::{Law, family};
    use crate::model::{Joint, Slopes};
    use crate::sampler::Structure;

    /// Noise that runs of tables had at ε = 1, 3, 6 and 10 and δ = 1e-6, posterior sds.
    struct Measured {
        name: &'static str,
        rows: usize,
        features: usize,
        noise: [f64; 4],
    }

    const EVEN: [Measured; 4] = [
        Measured {
            name: "Adult, 12 features",
            rows: 32_561,
            features: 12,
            noise: [0.73, 0.33, 0.20, 0.13],
        },
        Measured {
            name: "HMDA",
            rows: 1904,
            features: 20,
            noise: [3.65, 2.12, 1.30, 0.85],
        },
        Measured {
            name: "small",
            rows: 1900,
            features: 10,
            noise: [1.74, 0.54, 0.29, 0.19],
        },
        Measured {
            name: "skewed",
            rows: 15_216,
            features: 11,
            noise: [1.49, 0.47, 0.26, 0.21],
        },
    ];

    /// Outlying rows, and rare levels.
    const HARD: [Measured; 3] = [
        Measured {
            name: "leverage",
            rows: 20_000,
            features: 7,
            noise: [0.63, 0.50, 0.47, 0.46],
        },
        Measured {
            name: "Adult, 85 features",
            rows: 32_561,
            features: 85,
            noise: [3.89, 1.90, 0.92, 0.75],
        },
        Measured {
            name: "rare levels",
            rows: 262_000,
            features: 49,
            noise: [1.36, 0.71, 0.47, 0.35],
        },
    ];

    /// Nearly separated labels, and columns that nearly agree.
    const HARDEST: Measured = Measured {
        name: "diamonds",
        rows: 43_152,
        features: 21,
        noise: [8.65, 1.70, 0.76, 0.55],
    };

    /// Linear and Poisson regressions, whose residuals are clipped with their rows.
    fn clipped() -> [(Measured, Slopes, f64); 3] {
        let linear = |low, high| Slopes::linear(LabelKind::Number { low, high }, 0.04);
        let measured = |name, rows, features, noise| Measured {
            name,
            rows,
            features,
            noise,
        };
        [
            (
                measured("CPS1988", 28_155, 10, [0.69, 0.40, 0.29, 0.21]),
                linear(-1.0, 1.0),
                25.0,
            ),
            (
                measured("linear, rare levels", 100_000, 30, [0.46, 0.24, 0.25, 0.24]),
                linear(-3.0, 3.0),
                25.0,
            ),
            (
                measured("counts", 30_000, 8, [1.48, 0.52, 0.44, 0.31]),
                Slopes::poisson(40.0, None),
                1.0,
            ),
        ]
    }

    fn anchoring(rows: usize, features: usize, slopes: Slopes, unit: f64) -> Anchoring {
        Anchoring {
            location: None,
            start: vec![0.0; features],
            stages: 25,
            rows,
            row_norm: (features as f64).sqrt(),
            unit,
            slopes,
            structure: Structure::default(),
            clip: None,
            radius: 10.0,
            split: None,
            undecided: false,
        }
    }

    /// Measured over forecast, by ε.
    fn ratios(table: &Measured, slopes: Slopes, unit: f64) -> [f64; 4] {
        let anchoring = anchoring(table.rows, table.features, slopes, unit);
        let mut ratios = table.noise;
        for (ratio, epsilon) in ratios.iter_mut().zip([1.0, 3.0, 6.0, 10.0]) {
            let budget = Budget::new(epsilon, 1e-6).unwrap();
            let rho = Measure::Gaussian.limit(budget);
            *ratio /= noise_of_means(&anchoring, rho);
        }
        ratios
    }

    #[test]
    fn forecasts_of_even_tables_are_within_a_factor_of_two() {
        for table in EVEN {
            let ratios = ratios(&table, Slopes::logistic(), 1.0);
            assert!(
                ratios.iter().all(|r| (0.5..=2.0).contains(r)),
                "{}: {ratios:.2?}",
                table.name
            );
        }
    }

    #[test]
    fn forecasts_of_numbers_and_counts_are_within_a_factor_of_two_or_so() {
        for (table, slopes, unit) in clipped() {
            let ratios = ratios(&table, slopes, unit);
            assert!(
                ratios.iter().all(|r| (0.45..=2.1).contains(r)),
                "{}: {ratios:.2?}",
                table.name
            );
        }
    }

    /// As the assumptions say: never better than forecast by much, and up to six times worse.
    #[test]
    fn forecasts_of_hard_tables_are_too_good() {
        for table in HARD {
            let ratios = ratios(&table, Slopes::logistic(), 1.0);
            assert!(
                ratios.iter().all(|r| (0.9..=6.5).contains(r)),
                "{}: {ratios:.2?}",
                table.name
            );
        }
    }

    /// Once ten times, at ε = 1; from ε = 3 on no worse than the other hard ones.
    #[test]
    fn the_forecast_of_a_nearly_separated_table_is_the_worst() {
        let [first, rest @ ..] = ratios(&HARDEST, Slopes::logistic(), 1.0);
        assert!((9.5..=10.5).contains(&first), "{first}");
        assert!(rest.iter().all(|r| (4.5..=6.5).contains(r)), "{rest:?}");
    }

    /// Noise goes with 1/√ρ and 1/√N; a linear model's does not depend on its unit of labels.
    #[test]
    fn forecasts_scale_as_they_should() {
        let noise = |rows, rho| noise_of_means(&anchoring(rows, 9, Slopes::logistic(), 1.0), rho);
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        assert!(near(noise(1000, 0.1), 2.0 * noise(1000, 0.4)));
        assert!(near(noise(1000, 0.1), 3.0 * noise(9000, 0.1)));
        let linear = |s: f64| {
            let (low, high) = (-10.0 * s, 10.0 * s);
            let slopes = Slopes::linear(LabelKind::Number { low, high }, s * s);
            noise_of_means(&anchoring(1000, 9, slopes, 1.0 / (s * s)), 0.1)
        };
        assert!(near(linear(1.0), linear(7.0)));
    }

    /// A prior of sd 1 in 9 columns of size 1, a posterior of sd 0.1: ten posterior sds.
    #[test]
    fn priors_are_measured_in_posterior_sds() {
        let anchoring = anchoring(1000, 9, Slopes::logistic(), 1.0);
        let normal = Density::Normal {
            mean: vec![0.0; 9],
            sd: vec![1.0; 9],
        };
        assert!((prior_width(&anchoring, &normal) - 10.0).abs() < 1e-9);
        assert_eq!(prior_width(&anchoring, &Density::Flat), f64::INFINITY);
    }

    /// The same labels in units of a thousandth: forecast and prior are the same in posterior sds.
    #[test]
    fn units_of_numbers_of_unknown_variance_do_not_matter() {
        let of = |unit: f64| {
            let text = family("gaussian").unwrap().likelihood;
            let law = Law::new("gaussian", text, &["log_sigma".into()], &[]).unwrap();
            let (low, high) = (-unit, unit);
            let label = LabelKind::Number { low, high };
            let mut start = vec![0.0; 4];
            start[3] = (0.2 * unit).ln();
            let slopes = Slopes::joint(Joint { law, label }, &start);
            let mut anchoring = anchoring(3000, 4, slopes, 1.0);
            anchoring.start = start;
            let prior = Density::Normal {
                mean: vec![0.0; 4],
                sd: [2.0 * unit, 2.0 * unit, 2.0 * unit, 1.0].into(),
            };
            (
                noise_of_means(&anchoring, 0.01),
                prior_width(&anchoring, &prior),
            )
        };
        let (ours, theirs) = (of(1.0), of(1000.0));
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
        assert!(near(ours.0, theirs.0), "{ours:?} {theirs:?}");
        assert!(near(ours.1, theirs.1), "{ours:?} {theirs:?}");
        // Of log_sigma a row tells twice as much as of a predictor of its size.
        assert!((30.0..120.0).contains(&ours.1), "{ours:?}");
    }
}
