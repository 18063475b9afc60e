//! Runs repeated through the private curator, each paid for.

use ndarray::Array2;

use super::bound::Histogram;
use super::{AuditError, Case};
use crate::engine::{EngineChoice, EngineSetup};
use crate::privacy::accountant::Budget;
use crate::privacy::curator::Curator;
use crate::privacy::ledger::Ledger;
use crate::privacy::releases::{Halt, Moves, Releases};

/// Most runs made in lockstep.
const MOST_CHAINS: f64 = 2048.0;

/// Curators of D and D', whose ledgers are renewed whenever they are spent: no single one
/// pays for many runs.
pub(super) struct CuratorRuns<'a> {
    case: &'a Case,
    curators: [Curator; 2],
    chains: usize,
}

impl<'a> CuratorRuns<'a> {
    /// Opens both; `seed` fixes their coins, each its own.
    pub fn open(
        case: &'a Case,
        engine: EngineChoice,
        seed: Option<u64>,
    ) -> Result<Self, AuditError> {
        let (key, coins) = case.cost()?;
        // Secret draws are paid from a share of δ that shrinks like e^−ε.
        let epsilon = match key.rho() {
            None => 10.0,
            Some(_) if coins > 0.0 => 30.0,
            Some(_) => 1000.0,
        };
        let budget = Budget::new(epsilon, 0.5).map_err(|e| Halt::Refused(e.to_string()))?;
        let measure = case.measure(key, budget, 1);
        let price = measure.price(key, budget).map_err(Halt::Refused)?;
        let by_coins = budget.coin_delta() / (coins + price.tail);
        let affords = (measure.limit(budget) / price.cost.nats()).min(by_coins);
        let chains = affords.floor().min(MOST_CHAINS) as usize;
        if chains == 0 {
            return Err(AuditError::setting(
                "algorithm",
                "one step of this case costs more than any ledger holds",
            ));
        }
        let open = |neighbour| -> Result<Curator, AuditError> {
            // Minibatch rows are asked of the engine itself: a run keeps a CPU copy for them. Rows
            // at an anchor are weighed on that.
            let setup = EngineSetup {
                listed_rows: engine != EngineChoice::Gpu || case.anchored,
                chains,
                ..engine.into()
            };
            case.curator(neighbour, setup, Ledger::counting(budget, measure), seed)
        };
        Ok(CuratorRuns {
            case,
            curators: [open(false)?, open(true)?],
            chains,
        })
    }

    /// What computes.
    pub fn engine(&self) -> String {
        self.curators[0].engine_info().kind
    }

    /// `runs` runs of `steps` moves on D or D' with public part h.
    pub fn repeat(
        &mut self,
        neighbour: bool,
        h: f64,
        steps: u32,
        runs: u64,
    ) -> Result<Histogram, AuditError> {
        let curator = &mut self.curators[usize::from(neighbour)];
        let (theta, proposal) = self.case.ends();
        let mut histogram = Histogram::new(steps);
        let mut left = runs;
        while left > 0 {
            let chains = left.min(self.chains as u64) as usize;
            let stack =
                |point: &[f64]| Array2::from_shape_fn((chains, point.len()), |(_, j)| point[j]);
            let (thetas, proposals) = (stack(&theta), stack(&proposal));
            let (public, clips) = (vec![h; chains], vec![self.case.clip_bound; chains]);
            let moves = Moves {
                thetas: thetas.view(),
                proposals: proposals.view(),
                public: &public,
                clip_bounds: Some(&clips),
            };
            let mut sums = vec![0u32; chains];
            let mut accepted = vec![false; chains];
            for _ in 0..steps {
                decide(curator, self.case, &moves, &mut accepted)?;
                for (sum, bit) in sums.iter_mut().zip(&accepted) {
                    *sum += u32::from(*bit);
                }
            }
            sums.into_iter().for_each(|s| histogram.add(s));
            left -= chains as u64;
        }
        Ok(histogram)
    }
}

/// Decides, on a fresh ledger where the last one is spent (nothing was charged then).
fn decide(
    curator: &mut Curator,
    case: &Case,
    moves: &Moves<'_>,
    accepted: &mut [bool],
) -> Result<(), Halt> {
    match curator.decide(moves, case.estimator, case.acceptance, accepted) {
        Err(Halt::BudgetSpent(_)) => {
            if let Some(ledger) = curator.ledger_mut() {
                *ledger = ledger.renewed();
            }
            curator.decide(moves, case.estimator, case.acceptance, accepted)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::audit::{Subject, remainder};
    use crate::privacy::event::Event;
    use crate::privacy::releases::Estimator;

    /// The row's ratio is the whole clip on D and its negation on D', and the curator
    /// charges the event that the claim is made of.
    #[test]
    fn cases_are_worst_cases_and_their_cost_is_what_the_curator_charges() {
        for subject in Subject::ALL {
            let Some(case) = Case::of(subject) else {
                continue;
            };
            let (theta, proposal) = case.ends();
            for (neighbour, sign) in [(false, 1.0), (true, -1.0)] {
                let data = case.data(neighbour).unwrap();
                let model = case.model(&data).unwrap();
                let mut open = Curator::not_private(data, model, EngineChoice::Cpu, 1).unwrap();
                if case.anchored {
                    open.set_anchor(remainder::anchor()).unwrap();
                }
                let sums = open
                    .exact_log_ratios(&[&theta], &[&proposal], &[case.clip_bound])
                    .unwrap();
                assert!((sums[0].0 - sign * case.clip_bound).abs() < 2e-6 * case.clip_bound);
                // The others of a fixed batch do too, in turns of either sign.
                let others = match case.estimator {
                    Estimator::FixedBatch { .. } => case.rows as u64 - 1,
                    _ => 0,
                };
                assert_eq!(sums[0].1, 1 + others, "the row saturates the clip");
            }
            let mut runs = CuratorRuns::open(&case, EngineChoice::Cpu, Some(1)).unwrap();
            runs.repeat(true, case.public[0], 3, 1).unwrap();
            let events: Vec<(Event, u64)> = runs.curators[1].ledger().unwrap().events();
            assert_eq!(events, [(case.cost().unwrap().0.event(), 3)]);
        }
    }

    /// The row's true ratio is twice what its bound lets through, ±2wc, once loading has
    /// shortened it: the curator's own clip is put to the test. A widest row's claim is the
    /// charge, a narrow one's is smaller.
    #[test]
    fn weighted_cases_exceed_their_own_clips() {
        for subject in [Subject::PoissonBarker, Subject::DpFastMh] {
            for case in Case::weighted(subject).unwrap() {
                let (w, c) = (case.weights.unwrap().differing, case.clip_bound);
                let (theta, proposal) = case.ends();
                for (neighbour, sign) in [(false, 1.0), (true, -1.0)] {
                    let data = case.data(neighbour).unwrap();
                    let model = case.model(&data).unwrap();
                    let mut open = Curator::not_private(data, model, EngineChoice::Cpu, 1).unwrap();
                    let sums = open
                        .exact_log_ratios(&[&theta], &[&proposal], &[4.0 * c])
                        .unwrap();
                    assert!((sums[0].0 / (sign * 2.0 * w * c) - 1.0).abs() < 1e-5);
                }
                let mut runs = CuratorRuns::open(&case, EngineChoice::Cpu, Some(1)).unwrap();
                runs.repeat(true, case.public[0], 3, 1).unwrap();
                let events: Vec<(Event, u64)> = runs.curators[1].ledger().unwrap().events();
                let charged = case.cost().unwrap().0;
                assert_eq!(events, [(charged.event(), 3)]);
                assert_eq!(case.own_cost().unwrap() == charged, w == 1.0);
            }
        }
    }
}
