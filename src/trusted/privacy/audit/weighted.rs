//! Worst-case neighbours for minibatches of rows with public bounds of their own: the row that
//! differs is one of the widest, or much narrower than another.

use std::sync::Arc;

use super::{AuditError, Case, Subject};
use crate::data::{DataError, Dataset, Population};
use crate::model::{Model, Prior, Regression};
use crate::privacy::curator::CuratorError;
use crate::privacy::releases::{Estimator, Lambda};

/// How far a row's ratio exceeds what its bound lets through: only the clip keeps it there.
const BEYOND: f64 = 2.0;

/// Public bounds of a case's rows, relative to the row norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowWeights {
    /// w of the row that differs, in (0, 1].
    pub differing: f64,
    /// w of every other row, in (0, 1].
    pub others: f64,
}

impl RowWeights {
    /// What a step on `rows` rows is priced by.
    pub(super) fn population(self, rows: usize) -> Population {
        // As they are stored: multiples of 2^-20.
        let [differing, others] = self.stored();
        Population {
            rows,
            total: differing + (rows - 1) as f64 * others,
            largest: differing.max(others),
        }
    }

    /// The same, had no row a wider bound than the one that differs: the price of w c, which is
    /// what its owner is promised (`docs/proofs/guarantee.md`).
    pub(super) fn own_population(self, rows: usize) -> Population {
        Population {
            largest: self.stored()[0],
            ..self.population(rows)
        }
    }

    fn stored(self) -> [f64; 2] {
        let unit = f64::powi(2.0, 20);
        [self.differing, self.others].map(|w| (w * unit).ceil() / unit)
    }
}

impl Case {
    /// Worst cases of a subject on rows with bounds of their own: the widest row differs, and a
    /// narrow one. `None` where such rows are not drawn by their bounds.
    pub fn weighted(subject: Subject) -> Option<[Self; 2]> {
        match subject {
            // η = 0.90 of the row that differs, and 3.6 of the widest.
            Subject::PoissonBarker => {
                let plain = Case::of(subject)?;
                let widest = Case {
                    weights: Some(RowWeights {
                        differing: 1.0,
                        others: 0.1,
                    }),
                    rows: 6,
                    ..plain.clone()
                };
                let narrow = Case {
                    weights: Some(RowWeights {
                        differing: 0.25,
                        others: 1.0,
                    }),
                    clip_bound: 4.0 * plain.clip_bound,
                    ..plain
                };
                Some([widest, narrow])
            }
            // Weights and noise of the plain case. The row that differs is kept as often as
            // there where it is the widest, and half as often where it is not.
            Subject::DpFastMh => {
                let case = |differing, others, rows| -> Option<Case> {
                    Some(Case {
                        weights: Some(RowWeights { differing, others }),
                        rows,
                        estimator: Estimator::Poisson {
                            lambda: Lambda::Ratio(10.0),
                        },
                        ..Case::of(subject)?
                    })
                };
                Some([case(1.0, 0.1, 6)?, case(0.5, 1.0, 2)?])
            }
            _ => None,
        }
    }
}

/// θ and θ' of a move across 0, along which `log σ(xθ') − log σ(xθ) = x(θ' − θ)/2`.
pub(super) fn ends(clip_bound: f64) -> (Vec<f64>, Vec<f64>) {
    let half = BEYOND * clip_bound;
    (vec![-half], vec![half])
}

/// D, or its neighbour D': flat rows (x = 0) and one of the whole row norm, ±1, that loading
/// shortens to its bound.
pub(super) fn data(
    weights: RowWeights,
    rows: usize,
    neighbour: bool,
) -> Result<Dataset, AuditError> {
    let build = || -> Result<Dataset, DataError> {
        let mut set = Dataset::builder(vec!["x".into()], true, 1.0)?;
        for _ in 1..rows {
            set.push_bounded(&[0.0], Some(1.0), weights.others)?;
        }
        let x = if neighbour { -1.0 } else { 1.0 };
        set.push_bounded(&[x], Some(1.0), weights.differing)?;
        set.finish()
    };
    build().map_err(|e| AuditError::setting("rows", e.to_string()))
}

/// Logistic regression on one feature.
pub(super) fn model(data: &Dataset) -> Result<Arc<dyn Model>, AuditError> {
    Regression::logistic(data.features(), 1.0, Prior::normal(1, 1.0), 1.0)
        .map(|model| Arc::new(model) as Arc<dyn Model>)
        .map_err(|e| CuratorError::Mismatch(e.to_string()).into())
}
