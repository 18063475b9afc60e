//! Sequences of events: checked, read from JSON, merged and bucketed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::pair::{Pair, Parameters};
use super::pld::Counted;
use crate::privacy::event::{Event, Neighbours};

/// Largest count of one event.
const MOST: u64 = 1_000_000_000_000;
/// More distinct subsampled Gaussians than this are bucketed.
const MOST_DISTINCT: usize = 64;
/// More distinct sampling rates than this are bucketed as well.
const MOST_RATES: usize = 8;
/// Ratio of neighbouring buckets of σ/Δ, less one.
const BUCKET: f64 = 0.003;
/// Grid steps per σ from which a discrete Gaussian is compared with the Gaussian.
const FINE: f64 = 1024.0;

/// What is known of an event's privacy profile.
enum Profile {
    Dominated(Pair),
    Free,
    Unknown,
}

/// A valid sequence of events under one neighbour relation, each with its count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sequence {
    neighbours: Neighbours,
    events: Vec<(Event, u64)>,
}

/// What is wrong with a sequence: the event's index (from 0) and field.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SequenceError {
    /// An event's parameter, count or relation.
    #[error("events[{index}]: '{field}' {what}")]
    Event {
        /// Index from 0.
        index: usize,
        /// Field at fault.
        field: String,
        /// What is wrong.
        what: String,
    },
    /// The file as a whole.
    #[error("{0}")]
    File(String),
}

impl Sequence {
    /// Checks every event, count and relation.
    ///
    /// # Errors
    /// [`SequenceError`] naming the event's index and field.
    pub fn new(neighbours: Neighbours, events: Vec<(Event, u64)>) -> Result<Self, SequenceError> {
        if events.is_empty() {
            return Err(SequenceError::File(
                "'events' is empty; nothing was released".into(),
            ));
        }
        for (index, (event, count)) in events.iter().enumerate() {
            event
                .validate(neighbours)
                .map_err(|e| SequenceError::Event {
                    index,
                    field: e.field.into(),
                    what: e.what,
                })?;
            if *count == 0 || *count > MOST {
                return Err(SequenceError::Event {
                    index,
                    field: "count".into(),
                    what: format!("must lie in 1..={MOST}, not {count}"),
                });
            }
        }
        Ok(Sequence { neighbours, events })
    }

    /// Reads `{"neighbours": …, "events": [{"kind": …, …, "count": n}, …]}`.
    ///
    /// # Errors
    /// [`SequenceError`] naming the event's index and field.
    pub fn from_json(text: &str) -> Result<Self, SequenceError> {
        let file = |what: String| SequenceError::File(what);
        let value: Value = serde_json::from_str(text).map_err(|e| file(e.to_string()))?;
        let Value::Object(mut map) = value else {
            return Err(file(
                "must be an object with 'neighbours' and 'events'".into(),
            ));
        };
        let neighbours = map
            .remove("neighbours")
            .ok_or_else(|| {
                file(
                    "'neighbours' is missing: \"substitution\", \"add-remove\" or \"zero-out\""
                        .into(),
                )
            })
            .and_then(|v| {
                serde_json::from_value(v).map_err(|e| file(format!("'neighbours': {e}")))
            })?;
        let events = match map.remove("events") {
            Some(Value::Array(events)) => events,
            _ => return Err(file("'events' must be a list".into())),
        };
        if let Some(key) = map.keys().next() {
            return Err(file(format!(
                "unknown key '{key}'; there are 'neighbours' and 'events'"
            )));
        }
        let events = events
            .into_iter()
            .enumerate()
            .map(|(index, value)| event(index, value))
            .collect::<Result<_, _>>()?;
        Sequence::new(neighbours, events)
    }

    /// The relation.
    pub fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// The events with their counts.
    pub fn events(&self) -> &[(Event, u64)] {
        &self.events
    }

    /// Number of releases.
    pub(super) fn total(&self) -> f64 {
        self.events.iter().map(|(_, n)| *n as f64).sum()
    }

    /// What is known of the event's profile.
    fn profile(&self, event: Event) -> Profile {
        let gaussian = |shift| Pair::Mixture { rate: 1.0, shift };
        Profile::Dominated(match event {
            Event::Gaussian { sensitivity, sigma } => gaussian(sensitivity / sigma),
            Event::DiscreteGaussian {
                sensitivity,
                sigma,
                step,
            } if sigma / step >= FINE => gaussian(sensitivity / sigma),
            Event::PoissonGaussian { rate: 0.0, .. } => return Profile::Free,
            Event::PoissonGaussian {
                rate,
                sensitivity,
                sigma,
            } => match self.neighbours {
                Neighbours::AddRemove | Neighbours::ZeroOut => Pair::Mixture {
                    rate,
                    shift: sensitivity / sigma,
                },
                Neighbours::Substitution => Pair::TwoSided {
                    rate,
                    shift: 0.5 * sensitivity / sigma,
                },
            },
            Event::FixedBatchGaussian {
                batch,
                rows,
                sensitivity,
                sigma,
            } => {
                let shift = sensitivity / sigma;
                if batch == rows {
                    gaussian(shift)
                } else {
                    Pair::FixedBatch {
                        rate: batch as f64 / rows as f64,
                        shift,
                    }
                }
            }
            Event::BoundedRange { eta } => Pair::BoundedRange { eta, share: 1.0 },
            Event::PoissonBarker { .. } => match (event.eta(), event.rho()) {
                (Some(eta), Some(rho)) => Pair::BoundedRange {
                    eta,
                    share: (8.0 * rho / (eta * eta)).min(1.0),
                },
                _ => return Profile::Unknown,
            },
            Event::Pure { epsilon } => Pair::Pure { epsilon },
            // A lattice of σ's steps, at least 0.05·2^19 of them, is one of 2/s² more noise.
            Event::FastMhNoisy {
                mean,
                sensitivity,
                sigma,
            } => Pair::Kept {
                mean,
                shift: sensitivity / sigma * (1.0 + 1e-8),
            },
            _ => return Profile::Unknown,
        })
    }

    /// Dominating pairs, equal ones merged. Many distinct ones are bucketed by their
    /// scale: a bucket's events count at its upper edge for the upper bound and at its lower
    /// edge for the lower one (profiles grow in the scale: more noise is post-processing).
    pub(super) fn pairs(&self) -> Option<Vec<Counted>> {
        let mut merged: BTreeMap<[u64; 3], (Pair, u64)> = BTreeMap::new();
        for (event, count) in &self.events {
            let pair = match self.profile(*event) {
                Profile::Dominated(pair) => pair,
                Profile::Free => continue,
                Profile::Unknown => return None,
            };
            let Parameters { kind, rate, scale } = pair.parameters();
            let key = [u64::from(kind), rate.to_bits(), scale.to_bits()];
            merged.entry(key).or_insert((pair, 0)).1 += count;
        }
        if merged.len() <= MOST_DISTINCT {
            let exact = |(pair, count)| Counted {
                pair,
                upper: count,
                lower: count,
            };
            return Some(merged.into_values().map(exact).collect());
        }
        let rates: BTreeSet<u64> = merged.keys().map(|key| key[1]).collect();
        let round_rates = rates.len() > MOST_RATES;
        let mut edges: BTreeMap<(u8, u64, i64), Counted> = BTreeMap::new();
        for (pair, count) in merged.into_values() {
            let Parameters { kind, rate, scale } = pair.parameters();
            // Profiles grow in the rate too: a smaller one mixes (P, Q) with (Q, Q).
            let rates = if round_rates && rate < 1.0 {
                let k = (rate.ln() / BUCKET).floor();
                ((BUCKET * k).exp(), (BUCKET * (k + 1.0)).exp().min(1.0))
            } else {
                (rate, rate)
            };
            let bucket = (scale.ln() / BUCKET).floor() as i64;
            for (rate, k, upper, lower) in
                [(rates.1, bucket + 1, count, 0), (rates.0, bucket, 0, count)]
            {
                let edge = edges
                    .entry((kind, rate.to_bits(), k))
                    .or_insert_with(|| Counted {
                        pair: pair.at(rate, (k as f64 * BUCKET).exp()),
                        upper: 0,
                        lower: 0,
                    });
                edge.upper += upper;
                edge.lower += lower;
            }
        }
        Some(edges.into_values().collect())
    }

    /// Bounds on μ, `μ² = Σ Δ²/σ²`, where every event is Gaussian.
    pub(super) fn gaussian(&self) -> Option<(f64, f64)> {
        let mut sum = 0.0;
        for (event, count) in &self.events {
            match self.profile(*event) {
                Profile::Free => {}
                Profile::Dominated(Pair::Mixture { rate: 1.0, shift }) => {
                    sum += *count as f64 * shift * shift;
                }
                Profile::Dominated(Pair::TwoSided { rate: 1.0, shift }) => {
                    sum += *count as f64 * 4.0 * shift * shift;
                }
                _ => return None,
            }
        }
        let mu = sum.sqrt();
        Some((mu * (1.0 - 1e-12), mu * (1.0 + 1e-12)))
    }

    /// What the grids of discrete Gaussians add to the Gaussian's profile: a shift of ε
    /// (also a factor `e^shift` on δ) and an addition to δ. On a grid of `s = σ/step` steps
    /// the ratio of a lattice point to its cell is `exp(±κ)`, `κ = (R² + 1)/(8s²)`, within
    /// R = 12 + Δ/σ standard deviations.
    pub(super) fn lattice(&self) -> (f64, f64) {
        self.events.iter().fold((0.0, 0.0), |sum, (event, count)| {
            if let Event::DiscreteGaussian {
                sensitivity,
                sigma,
                step,
            } = *event
            {
                let (r, s) = (12.0 + sensitivity / sigma, sigma / step);
                let shift = 2.0 * (r * r + 1.0) / (8.0 * s * s);
                let n = *count as f64;
                (sum.0 + n * shift, sum.1 + n * 4e-33)
            } else {
                sum
            }
        })
    }
}

/// One element of `events`.
fn event(index: usize, value: Value) -> Result<(Event, u64), SequenceError> {
    let fail = |field: &str, what: String| SequenceError::Event {
        index,
        field: field.into(),
        what,
    };
    let Value::Object(mut map) = value else {
        return Err(fail("kind", "must be given in an object".into()));
    };
    let count = match map.remove("count") {
        None => 1,
        Some(v) => v
            .as_u64()
            .ok_or_else(|| fail("count", format!("must be a whole number, not {v}")))?,
    };
    // serde names the field or the kinds there are; where it cannot, the kind stands.
    let kind = map
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or("kind")
        .to_string();
    let event: Event = serde_json::from_value(Value::Object(map))
        .map_err(|e| fail(&kind, format!("cannot be read: {e}")))?;
    Ok((event, count))
}
