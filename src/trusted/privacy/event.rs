//! Privacy events: what was released, as data. Accountants interpret them.
//!
//! Noise, sensitivity and neighbour relation are kept apart: no event has a bare "noise
//! multiplier". Proofs and sources for each event are in `docs/proofs/accounting.md`.

use serde::{Deserialize, Serialize};

use super::accountant::flow;

/// When two data sets count as neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbours {
    /// They differ in one row's content. All samplers here.
    #[default]
    Substitution,
    /// One has a row more. The accountants only.
    AddRemove,
    /// A row of one is blank in the other, where it adds nothing to any sum; N stays the same
    /// (Kairouz 2021, Definition 1.1). Beside substitution, never in place of it.
    ZeroOut,
}

impl Neighbours {
    /// As written in files.
    pub fn name(self) -> &'static str {
        match self {
            Neighbours::Substitution => "substitution",
            Neighbours::AddRemove => "add-remove",
            Neighbours::ZeroOut => "zero-out",
        }
    }
}

/// How Heikkilä's test is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Their eq. (21).
    Published,
    /// With both variances' ratio kept to what it can be.
    Tightened,
}

/// One kind of release with its parameters. Sensitivities are under the relation stated
/// beside the events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// `f(D) + N(0, σ²I)` in real arithmetic, `‖f(D) − f(D′)‖₂ ≤ sensitivity`. All
    /// relations. Profile: Balle & Wang 2018; `D_α = αΔ²/(2σ²)`.
    Gaussian {
        /// L2 sensitivity Δ.
        sensitivity: f64,
        /// Standard deviation σ, same unit.
        sigma: f64,
    },
    /// `f(D) + N_Z(0, σ²)` on the grid `step·Z` that f lies on too. All relations.
    /// Δ²/(2σ²)-zCDP (Canonne, Kamath & Steinke 2020, Theorem 4); within `O((step/σ)²)` of the
    /// Gaussian's profile.
    DiscreteGaussian {
        /// Sensitivity Δ.
        sensitivity: f64,
        /// Scale σ, same unit.
        sigma: f64,
        /// Width of the grid, same unit.
        step: f64,
    },
    /// A sum over a Poisson sample (each row with probability `rate`) plus N(0, σ²I).
    /// Add/remove, zero-out: the change of the sum is one row, of norm ≤ sensitivity. Substitution: two
    /// rows of norm ≤ sensitivity/2 each.
    PoissonGaussian {
        /// Sampling rate q.
        rate: f64,
        /// Change of the batch sum under the stated relation.
        sensitivity: f64,
        /// Standard deviation σ, same unit.
        sigma: f64,
    },
    /// A sum over `batch` of `rows` rows drawn without replacement plus N(0, σ²I).
    /// Substitution only.
    FixedBatchGaussian {
        /// Rows drawn.
        batch: u64,
        /// Rows there are.
        rows: u64,
        /// Change of the batch sum when one of its rows is substituted.
        sensitivity: f64,
        /// Standard deviation σ, same unit.
        sigma: f64,
    },
    /// A bit whose logit moves by at most η (Barker acceptance on all rows). η-DP and
    /// η²/8-zCDP: Dong, Durfee & Rogers 2020; Cesar & Rogers 2021. All relations.
    BoundedRange {
        /// Bound η on the change of the logit, nats.
        eta: f64,
    },
    /// Barker acceptance on a Poisson minibatch, priced by its flow (`docs/proofs/guarantee.md`).
    /// Substitution; zero-out at the same price.
    PoissonBarker {
        /// Clip c of the widest row, nats.
        clip: f64,
        /// K = Λ/λ: how much the ratios' clips add to the minibatch, over what is drawn anyway.
        ratio: f64,
    },
    /// Anything ε-DP. All relations.
    Pure {
        /// ε, nats.
        epsilon: f64,
    },
    /// Heikkilä 2019's subsampled Barker test with C = 2, `|r_i| ≤ √b/N`, on `batch` of
    /// `rows` rows. Substitution; zero-out at the same price. Orders α < b/5.
    Heikkila {
        /// Rows drawn, b.
        batch: u64,
        /// Rows there are, N.
        rows: u64,
        /// Which bound.
        form: Form,
    },
    /// The noisy minibatch branch of DP-Fast MH (docs/proofs/guarantee.md). Substitution; zero-out
    /// at the same price.
    FastMhNoisy {
        /// Mean number of times a row is kept, at most `(λ+Λ)/N`.
        mean: f64,
        /// Largest weight of one occurrence, `W = log(1 + Λ/λ)`.
        sensitivity: f64,
        /// Noise σ, same unit.
        sigma: f64,
    },
    /// A release without any guarantee.
    NotPrivate,
}

/// A parameter that means nothing, or a relation the event does not support.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("'{field}' {what}")]
pub struct EventError {
    /// Field at fault.
    pub field: &'static str,
    /// What is wrong and what to do.
    pub what: String,
}

impl Event {
    /// Name of the kind, as in files.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::Gaussian { .. } => "gaussian",
            Event::DiscreteGaussian { .. } => "discrete_gaussian",
            Event::PoissonGaussian { .. } => "poisson_gaussian",
            Event::FixedBatchGaussian { .. } => "fixed_batch_gaussian",
            Event::BoundedRange { .. } => "bounded_range",
            Event::PoissonBarker { .. } => "poisson_barker",
            Event::Pure { .. } => "pure",
            Event::Heikkila { .. } => "heikkila",
            Event::FastMhNoisy { .. } => "fast_mh_noisy",
            Event::NotPrivate => "not_private",
        }
    }

    /// ρ where it is zCDP, nats, rounded up but for a few ulp.
    pub fn rho(&self) -> Option<f64> {
        let gaussian = |sensitivity: f64, sigma: f64| 0.5 * (sensitivity / sigma).powi(2);
        match *self {
            Event::Gaussian { sensitivity, sigma }
            | Event::DiscreteGaussian {
                sensitivity, sigma, ..
            } => Some(gaussian(sensitivity, sigma)),
            // Sampling never costs: D_α is quasi-convex.
            Event::PoissonGaussian { rate: 0.0, .. } => Some(0.0),
            Event::PoissonGaussian {
                sensitivity, sigma, ..
            }
            | Event::FixedBatchGaussian {
                sensitivity, sigma, ..
            } => Some(gaussian(sensitivity, sigma)),
            Event::BoundedRange { eta } => Some(0.125 * eta * eta),
            Event::PoissonBarker { clip, ratio } => Some(clip * clip * flow::rho(ratio)),
            Event::Pure { epsilon } => Some(0.5 * epsilon * epsilon),
            Event::Heikkila { .. } | Event::FastMhNoisy { .. } | Event::NotPrivate => None,
        }
    }

    /// The bounded range η of a decision, nats; `None` of anything else.
    pub(super) fn eta(&self) -> Option<f64> {
        match *self {
            Event::BoundedRange { eta } => Some(eta),
            Event::PoissonBarker { clip, ratio } => Some(clip * flow::range(ratio)),
            Event::Pure { epsilon } => Some(2.0 * epsilon),
            _ => None,
        }
    }

    /// Whether `neighbours` is a relation that the event's theorem covers.
    pub fn supports(&self, neighbours: Neighbours) -> bool {
        match (neighbours, self) {
            (Neighbours::Substitution, _) => true,
            // Its theorem compares a drawn row with another one, wherever the blank is: the change
            // that it needs is that of a substitution.
            (_, Event::FixedBatchGaussian { .. }) => false,
            // A blank row is one more row that substitution may bring.
            (Neighbours::ZeroOut, _) => true,
            (Neighbours::AddRemove, event) => !matches!(
                event,
                Event::PoissonBarker { .. } | Event::Heikkila { .. } | Event::FastMhNoisy { .. }
            ),
        }
    }

    /// Checks parameters and relation.
    ///
    /// # Errors
    /// [`EventError`] naming the field.
    pub fn validate(&self, neighbours: Neighbours) -> Result<(), EventError> {
        if !self.supports(neighbours) {
            return Err(EventError {
                field: "kind",
                what: format!(
                    "{} has no guarantee under {} neighbours; state its events under substitution",
                    self.kind(),
                    neighbours.name()
                ),
            });
        }
        match *self {
            Event::Gaussian { sensitivity, sigma } => noise(sensitivity, sigma),
            Event::DiscreteGaussian {
                sensitivity,
                sigma,
                step,
            } => {
                positive("step", step)?;
                noise(sensitivity, sigma)
            }
            Event::PoissonGaussian {
                rate,
                sensitivity,
                sigma,
            } => {
                if !(0.0..=1.0).contains(&rate) {
                    return refuse("rate", format!("must lie in [0, 1], not {rate}"));
                }
                if rate > 0.0 && rate < 1e-15 {
                    return refuse("rate", format!("must be 0 or at least 1e-15, not {rate}"));
                }
                noise(sensitivity, sigma)
            }
            Event::FixedBatchGaussian {
                batch,
                rows,
                sensitivity,
                sigma,
            } => {
                sample(batch, rows)?;
                noise(sensitivity, sigma)
            }
            Event::BoundedRange { eta } => moderate("eta", eta),
            Event::PoissonBarker { clip, ratio } => {
                positive("ratio", ratio)?;
                if ratio > flow::MOST_RATIO {
                    return refuse("ratio", format!("must be at most 1e9, not {ratio}"));
                }
                positive("clip", clip)?;
                let most = 100.0 / flow::range(ratio);
                if clip > most {
                    return refuse(
                        "clip",
                        format!("must be at most {most:.3e} at this ratio, not {clip}"),
                    );
                }
                Ok(())
            }
            Event::Pure { epsilon } => moderate("epsilon", epsilon),
            Event::Heikkila { batch, rows, .. } => {
                sample(batch, rows)?;
                if batch <= 10 {
                    return refuse(
                        "batch",
                        format!("must exceed 10, not {batch}: the test needs orders α < batch/5"),
                    );
                }
                Ok(())
            }
            Event::FastMhNoisy {
                mean,
                sensitivity,
                sigma,
            } => {
                positive("mean", mean)?;
                if mean < 1e-15 {
                    return refuse("mean", format!("must be at least 1e-15, not {mean}"));
                }
                if mean > 0.5 {
                    return refuse("mean", format!("must be at most 0.5, not {mean}"));
                }
                noise(sensitivity, sigma)
            }
            Event::NotPrivate => Ok(()),
        }
    }
}

fn refuse(field: &'static str, what: String) -> Result<(), EventError> {
    Err(EventError { field, what })
}

fn positive(field: &'static str, value: f64) -> Result<(), EventError> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        refuse(field, format!("must be positive and finite, not {value}"))
    }
}

/// Positive, and no more than anyone would call private.
fn moderate(field: &'static str, value: f64) -> Result<(), EventError> {
    positive(field, value)?;
    if value <= 100.0 {
        Ok(())
    } else {
        refuse(field, format!("must be at most 100, not {value}"))
    }
}

/// Δ and σ positive, and their ratio within what f64 can account for.
fn noise(sensitivity: f64, sigma: f64) -> Result<(), EventError> {
    positive("sensitivity", sensitivity)?;
    positive("sigma", sigma)?;
    let ratio = sigma / sensitivity;
    if (0.05..=1e9).contains(&ratio) {
        Ok(())
    } else {
        refuse(
            "sigma",
            format!("over the sensitivity must lie between 0.05 and 1e9, not {ratio:e}"),
        )
    }
}

fn sample(batch: u64, rows: u64) -> Result<(), EventError> {
    if batch == 0 || batch > rows {
        return refuse(
            "batch",
            format!("must lie in 1..={rows} (rows), not {batch}"),
        );
    }
    Ok(())
}
