//! How wide a posterior is, roughly, from public numbers alone: what steps without a key are made
//! of.

use crate::model::{GradientFunction, Model, Predictor};

/// What a row tells of a network's weights in their steepest direction, by experience: steps of 2/N
/// and less are stable (docs/results/reproduce.md).
const NETWORK: f64 = 0.5;

/// What of Newton's step optimisers take on a network, and on a law with parameters that rows
/// share, by experience: with more of it some runs end where the likelihood is low
/// (docs/results/reproduce.md).
const OF_NEWTON: f64 = 0.25;

/// Curvature of a posterior, per squared unit of a parameter.
pub(super) struct PublicCurvature {
    /// Of one coordinate, if rows are of half their largest squared norm, spread evenly.
    typical: f64,
    /// In any direction, at most.
    largest: f64,
}

impl PublicCurvature {
    /// From the number of rows, the bound on their norm, tempering and the prior. A row tells at
    /// most its weight times its squared norm, or a quarter of its ratio rate's square (for a score
    /// in an interval varies by at most that). Without either it is that of unit scale.
    pub(super) fn of(model: &dyn Model, rows: usize, row_norm: f64) -> Self {
        Self::known(model, rows, row_norm).unwrap_or(PublicCurvature {
            typical: 1.0,
            largest: 1.0,
        })
    }

    /// The posterior variance that optimisers step by, in the steepest direction, and never that of
    /// unit scale, for that would make steps of N. Of a law with shared parameters a row tells what
    /// labels that fill their declared range would; where nothing is known, 1 in each unit.
    pub(super) fn ascent_variance(model: &dyn Model, rows: usize, row_norm: f64) -> f64 {
        let slopes = model.slopes();
        let joint = slopes.filter(|s| matches!(s.predictor, Predictor::Joint(_)));
        let one_layer = matches!(model.gradient_function(), GradientFunction::Network(_));
        let (row, part) = match joint {
            _ if one_layer || is_network(model) => (NETWORK, OF_NEWTON),
            Some(joint) => {
                let (slopes, scales) = joint.and_scales(&model.usual_start());
                let shared: f64 = scales.iter().map(|s| s * s).sum();
                let norm = row_norm * row_norm + shared;
                (model.unit() * slopes.largest_weight * norm, OF_NEWTON)
            }
            None => match Self::known(model, rows, row_norm) {
                Some(known) => return known.steepest_variance(),
                None => (1.0, 1.0),
            },
        };
        part / (prior_precision(model) + row * rows as f64 * model.tempering())
    }

    /// The posterior variance that Langevin dynamics without privacy step by: in the steepest
    /// direction, or where that is not known what optimisers step by.
    pub(super) fn langevin_variance(model: &dyn Model, rows: usize, row_norm: f64) -> f64 {
        match Self::known(model, rows, row_norm) {
            Some(known) => known.steepest_variance(),
            None => Self::ascent_variance(model, rows, row_norm),
        }
    }

    fn known(model: &dyn Model, rows: usize, row_norm: f64) -> Option<Self> {
        let d = model.dim() as f64;
        let prior = prior_precision(model);
        let rows = rows as f64 * model.tempering();
        if is_network(model) {
            let largest = prior + NETWORK * rows;
            return Some(PublicCurvature {
                typical: largest,
                largest,
            });
        }
        let slopes = model.slopes();
        let linear = slopes.filter(|s| s.predictor == Predictor::Linear);
        let known = match (linear, model.ratio_rate()) {
            (Some(s), _) => Some(model.unit() * s.largest_weight * row_norm * row_norm),
            // A rate has the tempering in it.
            (None, Some(rate)) => Some(0.25 * (rate / model.tempering()).powi(2)),
            (None, None) => None,
        };
        let known = known.map(|row| PublicCurvature {
            typical: prior + rows * row / (2.0 * d),
            largest: prior + rows * row,
        });
        let usable = |c: &Self| c.typical > 0.0 && c.largest.is_finite();
        known.filter(usable)
    }

    /// The longest step of Langevin dynamics that public numbers allow, whatever a budget affords:
    /// the variance of a coordinate. Infinite where nothing is known.
    pub(super) fn longest_step(model: &dyn Model, rows: usize, row_norm: f64) -> f64 {
        let known = Self::known(model, rows, row_norm);
        known.map_or(f64::INFINITY, |c| 1.0 / c.typical)
    }

    /// A rough posterior standard deviation of a parameter.
    pub(super) fn scale(&self) -> f64 {
        1.0 / self.typical.sqrt()
    }

    /// A rough posterior variance that Langevin dynamics may be stepped by: small enough for the
    /// steepest direction too.
    pub(super) fn steepest_variance(&self) -> f64 {
        1.0 / self.largest
    }
}

/// The largest of a prior's precisions, of what stands in for it where it has none.
fn prior_precision(model: &dyn Model) -> f64 {
    let zero = vec![0.0; model.dim()];
    let (_, precisions) = model.prior().working(model.dim()).slopes(&zero);
    precisions.iter().fold(0.0f64, |most, p| most.max(*p))
}

/// Whether it is a network of declared layers.
pub(super) fn is_network(model: &dyn Model) -> bool {
    matches!(model.gradient_function(), GradientFunction::Layers(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Prior, Regression};

    /// Where no curvature is known Langevin dynamics step by what optimisers step by, which falls
    /// with the rows: in units of 1 they would run away.
    #[test]
    fn steps_where_nothing_is_known_fall_with_the_rows() {
        let binary = crate::data::LabelKind::Binary;
        let prior = Prior::normal(10, 1.0);
        let model = crate::model::Mlp::new(&["a".into()], 3, binary, prior, 1.0).unwrap();
        let variance = |rows| PublicCurvature::langevin_variance(&model, rows, 1.0);
        assert!(variance(1000) < 2e-3 && variance(100_000) < 2e-5);
    }

    /// N = 800 rows of norm 2 in two dimensions, a weight of a quarter: 800·¼·4 = 800 at most, a
    /// quarter of it in a coordinate; the prior adds 4; κ = 0.1 leaves a tenth of the rows' part.
    #[test]
    fn curvature_follows_from_public_numbers() {
        for (kappa, rows) in [(1.0, 800.0), (0.1, 80.0)] {
            let model =
                Regression::logistic(&["a".into(), "b".into()], 2.0, Prior::normal(2, 0.5), kappa)
                    .unwrap();
            let curvature = PublicCurvature::of(&model, 800, 2.0);
            let scale = 1.0 / (4.0f64 + rows / 4.0).sqrt();
            assert!((curvature.scale() / scale - 1.0).abs() < 1e-12);
            let steepest = 1.0 / (4.0 + rows);
            assert!((curvature.steepest_variance() / steepest - 1.0).abs() < 1e-12);
            let longest = PublicCurvature::longest_step(&model, 800, 2.0);
            assert!((longest / scale.powi(2) - 1.0).abs() < 1e-12);
        }
    }
}
