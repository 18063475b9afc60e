//! Worst cases: which data, moves and settings show most of what a sampler releases.

use std::sync::Arc;

use super::weighted::RowWeights;
use super::{AuditError, Subject, remainder, weighted};
use crate::data::{DataError, Dataset, Population};
use crate::engine::EngineSetup;
use crate::model::{GaussianMean, Model, Prior};
use crate::privacy::accountant::Budget;
use crate::privacy::accountant::EventKey;
use crate::privacy::accountant::{Measure, tightest_order};
use crate::privacy::accountant::{Question, Sequence, account};
use crate::privacy::curator::{Curator, CuratorError, largest_batch_clip};
use crate::privacy::event::Neighbours;
use crate::privacy::ledger::Ledger;
use crate::privacy::releases::{Acceptance, Estimator, Lambda};

/// Largest clip bound of a case on remainders, nats: what both its rows' remainders exceed.
pub const MOST_REMAINDER: f64 = 2.5;

/// One move on worst-case neighbours: one row's ratio is +c on D and −c on D'; the others are
/// flat (ratio 0), but for batches of fixed size, whose noise is least where the others' ratios
/// are +c and −c in turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Whether rows are asked for their remainders at a given anchor: c at most
    /// [`MOST_REMAINDER`] then.
    pub anchored: bool,
    /// Public bounds of single rows, where these have some: c is the clip of a row of bound 1.
    pub weights: Option<RowWeights>,
    /// Rows N of each data set, at least 2.
    pub rows: usize,
    /// Clip bound c of the move, nats.
    pub clip_bound: f64,
    /// Estimator of the log ratio.
    pub estimator: Estimator,
    /// Acceptance rule.
    pub acceptance: Acceptance,
    /// Public parts h to scan, the most promising first.
    pub public: Vec<f64>,
    /// Steps T of a run by default.
    pub steps: u32,
}

impl Case {
    /// The worst case of a subject whose only release is a decision; `None` of others.
    pub fn of(subject: Subject) -> Option<Self> {
        Some(match subject {
            // η = 1. Rare outcomes show the whole of η, common ones half of it.
            Subject::Barker => Case {
                anchored: false,
                weights: None,
                rows: 2,
                clip_bound: 0.5,
                estimator: Estimator::FullBatch,
                acceptance: Acceptance::Barker,
                public: vec![-1.0, 0.0, -2.0, 1.0],
                steps: 4,
            },
            // η = 0.44 · 2.05 = 0.90: rejections at large h show all of it.
            Subject::PoissonBarker => Case {
                anchored: false,
                weights: None,
                rows: 2,
                clip_bound: 0.44,
                estimator: Estimator::Poisson {
                    lambda: Lambda::Ratio(4.0),
                },
                acceptance: Acceptance::Barker,
                public: vec![1.0, 2.0, 0.0, -1.0],
                steps: 4,
            },
            // The same of remainders; their bounded range has no other reason.
            Subject::AnchoredBarker => Case {
                anchored: true,
                ..Self::of(Subject::PoissonBarker)?
            },
            // σ = 2cτ = 32: acceptance is all but the threshold R + ξ > σ²/2 − h, best
            // set 2.5 to 3 standard deviations out.
            Subject::DpPenalty => Case {
                anchored: false,
                weights: None,
                rows: 2,
                clip_bound: 16.0,
                estimator: Estimator::FullBatch,
                acceptance: Acceptance::Penalty { tau: 1.0 },
                public: [2.5, 3.0, 2.0, -2.5].map(|z| 512.0 - 32.0 * z).to_vec(),
                steps: 1,
            },
            // σ² = C = 3, where the correction is nearly always 0: acceptance is all but the
            // threshold R + ξ > −h, best set 2 standard deviations out.
            Subject::DpBarker => Case {
                anchored: false,
                weights: None,
                rows: 2,
                clip_bound: 0.866,
                estimator: Estimator::FullBatch,
                acceptance: Acceptance::NoisyBarker { variance: 3.0 },
                public: [-2.0, -2.5, -1.5, 2.0].map(|z| 3f64.sqrt() * z).to_vec(),
                steps: 1,
            },
            // Short weights and much noise: W = log 1.1, σ = 8W. One row is kept 0.45 or 0.495
            // times on average, nearly the most that may be charged; acceptance is all but the
            // threshold Σw + ξ > σ²/2 − h.
            Subject::DpFastMh => Case {
                anchored: false,
                weights: None,
                rows: 2,
                clip_bound: 0.045,
                estimator: Estimator::Poisson {
                    lambda: Lambda::Fixed(0.9),
                },
                acceptance: Acceptance::Penalty { tau: 4.0 },
                public: vec![0.291, 0.1],
                steps: 16,
            },
            // Every row is in the batch, and s² all but 1: the noise has its least variance, 1,
            // and the sums are 2/√b apart.
            Subject::DpBarkerSubsampled => Case {
                anchored: false,
                weights: None,
                rows: 41,
                clip_bound: largest_batch_clip(41, 41),
                estimator: Estimator::FixedBatch { batch: 41 },
                acceptance: Acceptance::NoisyBarker { variance: 2.0 },
                public: vec![0.25, -0.25, 1.0],
                steps: 16,
            },
            // See `GradientCase`.
            Subject::DpHmc
            | Subject::BarkerHmc
            | Subject::DpSgld
            | Subject::DpSghmc
            | Subject::DpSgnht
            | Subject::DpSgd
            | Subject::DpAdam
            | Subject::Dpvi => return None,
            Subject::DpFastMhAsPublished => return None,
        })
    }

    /// θ and θ' of the move.
    pub(super) fn ends(&self) -> (Vec<f64>, Vec<f64>) {
        if self.anchored {
            let at = remainder::AT.to_vec();
            return (at.clone(), vec![at[0], at[1] + 1.0]);
        }
        if self.weights.is_some() {
            return weighted::ends(self.clip_bound);
        }
        let half = 0.5 * self.clip_bound;
        (vec![-half], vec![half])
    }

    /// D, or its neighbour D'.
    pub(super) fn data(&self, neighbour: bool) -> Result<Dataset, AuditError> {
        if self.anchored {
            return remainder::data(self.rows, neighbour);
        }
        if let Some(weights) = self.weights {
            return weighted::data(weights, self.rows, neighbour);
        }
        let alternating = matches!(self.estimator, Estimator::FixedBatch { .. });
        let build = || -> Result<Dataset, DataError> {
            let mut set = Dataset::builder(vec!["x".into()], false, 1.0)?;
            for i in 1..self.rows {
                let sign = if i % 2 == 0 { -1.0 } else { 1.0 };
                set.push(&[if alternating { sign } else { 0.0 }], None)?;
            }
            set.push(&[if neighbour { -1.0 } else { 1.0 }], None)?;
            set.finish()
        };
        build().map_err(|e| AuditError::setting("rows", e.to_string()))
    }

    /// x ~ N(θ, 1): a row's ratio is x·(θ'−θ) for a move across 0, ±c for x = ±1. Logistic
    /// where rows are anchored or have bounds of their own.
    pub(super) fn model(&self, data: &Dataset) -> Result<Arc<dyn Model>, AuditError> {
        if self.anchored {
            return remainder::model(data);
        }
        if self.weights.is_some() {
            return weighted::model(data);
        }
        GaussianMean::new(data.features(), &[1.0], 1.0, Prior::normal(1, 1.0), 1.0)
            .map(|model| Arc::new(model) as Arc<dyn Model>)
            .map_err(|e| CuratorError::Mismatch(e.to_string()).into())
    }

    /// The private curator of D or D', anchored where the case is.
    pub(super) fn curator(
        &self,
        neighbour: bool,
        setup: EngineSetup,
        ledger: Ledger,
        seed: Option<u64>,
    ) -> Result<Curator, AuditError> {
        if self.anchored && self.clip_bound > MOST_REMAINDER {
            return Err(AuditError::setting(
                "clip_bound",
                format!("remainders of an audit reach {MOST_REMAINDER} nats; use at most that"),
            ));
        }
        let data = self.data(neighbour)?;
        let model = self.model(&data)?;
        let seed = seed.map(|s| s ^ (u64::from(neighbour) << 63));
        let mut curator = Curator::private(data, model, setup, ledger, seed)?;
        if self.anchored {
            curator.set_anchor(remainder::anchor())?;
        }
        Ok(curator)
    }

    /// The event that a step is charged as, and the δ of its coins.
    pub(super) fn cost(&self) -> Result<(EventKey, f64), AuditError> {
        let population = match self.weights {
            Some(weights) => weights.population(self.rows),
            None => self.rows.into(),
        };
        self.cost_over(population)
    }

    /// The event that the substituted row's own bound makes of a step: what is charged but for
    /// a row that is not among the widest.
    pub(super) fn own_cost(&self) -> Result<EventKey, AuditError> {
        match self.weights {
            Some(weights) => self.cost_over(weights.own_population(self.rows)),
            None => self.cost(),
        }
        .map(|(key, _)| key)
    }

    fn cost_over(&self, population: Population) -> Result<(EventKey, f64), AuditError> {
        Curator::cost(population, self.clip_bound, self.estimator, self.acceptance)?
            .ok_or_else(|| AuditError::setting("algorithm", "is not private: nothing to audit"))
    }

    /// What a ledger of `steps` such steps counts: as a run's own does, at the order that
    /// shows the smallest ε where it needs one.
    pub(super) fn measure(&self, key: EventKey, budget: Budget, steps: u64) -> Measure {
        Measure::without_order([key]).unwrap_or_else(|| Measure::Renyi {
            order: tightest_order(key, steps, budget),
        })
    }

    /// ε of a run of `steps` steps at `delta`: by a ledger that paid for them, and by the
    /// accountants on the ledger's events.
    pub(super) fn claims(&self, steps: u32, delta: f64) -> Result<(f64, f64), AuditError> {
        // The conversion's δ leaves the coins their share.
        let key = self.own_cost()?;
        let steps = u64::from(steps);
        claims(&[(key, steps)], delta, |budget| {
            self.measure(key, budget, steps)
        })
    }
}

/// ε of these events at `delta`: by a ledger of that measure which paid for them, and by the
/// accountants on the ledger's events.
pub(super) fn claims(
    keys: &[(EventKey, u64)],
    delta: f64,
    measure: impl Fn(Budget) -> Measure,
) -> Result<(f64, f64), AuditError> {
    let sequence = |events| {
        Sequence::new(Neighbours::Substitution, events)
            .map_err(|e| AuditError::setting("steps", e.to_string()))
    };
    // No ledger has δ = 0.
    if Budget::new(1.0, delta).is_err() {
        let events = sequence(keys.iter().map(|(key, n)| (key.event(), *n)).collect())?;
        let account = account(&events, Question::Epsilon { delta });
        return Ok((f64::INFINITY, account.upper));
    }
    // The share of δ for multiplicities shrinks like e^−ε: there a ledger just large enough.
    let sizes: &[f64] = match keys.iter().all(|(key, _)| key.rho().is_some()) {
        true => &[1000.0],
        false => &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
    };
    let paid = sizes.iter().find_map(|&epsilon| {
        let budget = Budget::new(epsilon, delta).ok()?;
        let mut ledger = Ledger::counting(budget, measure(budget));
        let charged = ledger.charge(keys, 0.0);
        charged.is_ok().then_some((budget, ledger))
    });
    let Some((budget, ledger)) = paid else {
        return Err(AuditError::setting(
            "steps",
            "a run of so many steps costs more than any ledger holds; use fewer",
        ));
    };
    let question = Question::Epsilon {
        delta: budget.conversion_delta(),
    };
    let account = account(&sequence(ledger.events())?, question);
    Ok((ledger.epsilon_spent(), account.upper))
}
