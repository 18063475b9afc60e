//! Measurements of the privacy core: accountants, ledger, exact noise.

use crate::privacy::accountant::{Account, Question, Sequence, account};
use crate::privacy::{Budget, Event, EventKey, Ledger, Neighbours, noise_for_benchmarks};

/// 10⁴ steps of a Poisson-subsampled Gaussian, q = 0.01, σ = 1, add/remove.
pub fn subsampled() -> Option<Sequence> {
    let event = Event::PoissonGaussian {
        rate: 0.01,
        sensitivity: 1.0,
        sigma: 1.0,
    };
    Sequence::new(Neighbours::AddRemove, vec![(event, 10_000)]).ok()
}

/// A step-size schedule: 10⁴ subsampled Gaussians of distinct σ (Li 2019, MNIST).
pub fn schedule() -> Option<Sequence> {
    let events = (1..=10_000u32)
        .map(|t| {
            let event = Event::PoissonGaussian {
                rate: 60_000f64.sqrt().recip(),
                sensitivity: 1.0,
                sigma: 0.790_569_4 * f64::from(t).powf(1.0 / 6.0),
            };
            (event, 1)
        })
        .collect();
    Sequence::new(Neighbours::AddRemove, events).ok()
}

/// ε at δ = 1e-5.
pub fn epsilon(sequence: &Sequence) -> Account {
    account(sequence, Question::Epsilon { delta: 1e-5 })
}

/// Charges a ledger in memory `n` times with realised bounds that vary as a random walk's
/// do; how many were accepted.
pub fn ledger_charges(n: u64) -> u64 {
    let Ok(budget) = Budget::new(500.0, 1e-6) else {
        return 0;
    };
    let mut ledger = Ledger::in_memory(budget);
    (0..n)
        .filter(|i| {
            let eta = 1e-4 * (1.0 + (i % 97) as f64 / 50.0);
            EventKey::bounded_range(eta).is_some_and(|key| ledger.try_charge(key))
        })
        .count() as u64
}

/// `n` exact discrete Gaussians at σ = 2^20 grid steps, from a fixed seed; their sum.
pub fn discrete_gaussians(n: u64) -> i128 {
    noise_for_benchmarks(n, 1 << 40)
}
