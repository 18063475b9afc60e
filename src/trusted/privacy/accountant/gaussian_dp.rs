//! Gaussian DP as a filter's measure (Dong, Roth & Su 2022; Smith & Thakurta 2022): what a
//! limit on Σ μ²/2 guarantees, and what a decision by a coin costs. Proofs are in
//! `docs/proofs/guarantee.md`, "As Gaussian DP".

use std::f64::consts::FRAC_PI_2;

use super::largest;
use super::{gaussian_delta, gaussian_epsilon};

/// Part of a limit that must be left after a bit, so that it is one of many.
const RESERVE: f64 = 1.0 / 64.0;

/// A release on a lattice is one of the continuous Gaussian that its event is charged as, up to a
/// factor e^κ of every probability (`docs/proofs/accounting.md`): κ under 1e-28 a release makes
/// this much of ε and of log δ for the 2^60 releases that no run reaches.
const LATTICE: f64 = 1e-9;

/// Smallest ε at which μ²/2 = `amount` implies (ε, `delta`)-DP: the Gaussian's own profile
/// (Balle & Wang 2018, Theorem 8), rounded up.
pub(in crate::trusted::privacy) fn epsilon(amount: f64, delta: f64) -> f64 {
    let mu = mu(amount);
    gaussian_epsilon((mu, mu), delta * (1.0 - LATTICE)).1 + LATTICE
}

/// Smallest δ at which μ²/2 = `amount` implies (`epsilon`, δ)-DP, rounded up.
pub(in crate::trusted::privacy) fn delta(amount: f64, epsilon: f64) -> f64 {
    let at = (epsilon - LATTICE).max(0.0);
    (gaussian_delta(mu(amount), at).1 * (1.0 + 2.0 * LATTICE)).min(1.0)
}

/// Largest μ²/2 that implies (`epsilon`, `delta`)-DP, rounded down; 0 where none does.
pub(in crate::trusted::privacy) fn limit(epsilon: f64, delta: f64) -> f64 {
    let at = epsilon - 2.0 * LATTICE;
    let wanted = delta * (1.0 - 2.0 * LATTICE);
    largest(|amount| at > 0.0 && gaussian_delta(mu(amount), at).1 <= wanted)
}

/// What of a limit must be left after a release of bounded range.
pub(in crate::trusted::privacy) fn reserve(limit: f64) -> f64 {
    limit * RESERVE
}

/// μ²/2 of a decision of bounded range `eta` and of ρ `rho` ≤ η²/8, after which `reserve` is left:
/// π/2 of η²/8 in any case, and `ρ/(1 − ρ/reserve)` where that is less.
pub(in crate::trusted::privacy) fn decision(rho: f64, eta: f64, reserve: f64) -> f64 {
    let share = 1.0 - rho / reserve;
    let alone = FRAC_PI_2 * 0.125 * eta * eta;
    let among_many = match share >= 0.5 * rho && share > 0.0 {
        true => rho / share,
        false => alone,
    };
    among_many.min(alone) * (1.0 + 1e-12)
}

/// μ of an amount, rounded up.
fn mu(amount: f64) -> f64 {
    (2.0 * amount).sqrt() * (1.0 + 1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::normal::below;
    use crate::privacy::accountant::conversion::rho_of_budget;
    use proptest::prelude::*;

    /// Inverse of the standard normal distribution function, by bisection.
    fn quantile(p: f64) -> f64 {
        let (mut low, mut high) = (-40.0, 40.0);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            match below(middle) < p {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    /// Two laws of a bit with logits z and z − η are no farther apart than N(0, 1) and N(μ, 1)
    /// with the μ that is charged; at z = η/2 and small η that is attained.
    #[test]
    fn a_bit_of_bounded_range_is_within_its_gaussian() {
        let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());
        let mut closest = 0.0f64;
        for eta in [1e-3, 0.05, 0.5, 2.0, 8.0] {
            let charged = mu(decision(eta * eta / 8.0, eta, 0.0));
            for i in -400..=400 {
                let z = f64::from(i) * 0.05 + 0.5 * eta;
                // Of the two tails that with digits.
                let (p, q) = match z > 0.5 * eta {
                    true => (sigmoid(eta - z), sigmoid(-z)),
                    false => (sigmoid(z), sigmoid(z - eta)),
                };
                let apart = quantile(p) - quantile(q);
                assert!(
                    apart <= charged * (1.0 + 1e-9),
                    "{eta} {z}: {apart} {charged}"
                );
                closest = closest.max(apart / charged);
            }
        }
        assert!(closest > 0.999_999, "{closest}");
    }

    #[test]
    fn matches_the_gaussian_mechanism() {
        // μ = 1, δ = 1e-5, by the closed form in mpmath at 50 digits.
        let epsilon = epsilon(0.5, 1e-5);
        assert!((epsilon - 4.377_178_095_681_22).abs() < 2e-9, "{epsilon}");
    }

    proptest! {
        #[test]
        fn a_budget_is_never_overspent_and_affords_more_than_rho(
            epsilon_ in 1e-3f64..100.0,
            log_delta in -30f64..-2.0,
        ) {
            let delta = log_delta.exp();
            let amount = limit(epsilon_, delta);
            prop_assert!(epsilon(amount, delta) <= epsilon_);
            prop_assert!(epsilon(amount * 1.0001, delta) > epsilon_ * (1.0 - 1e-4));
            prop_assert!(amount >= rho_of_budget(epsilon_, delta));
        }
    }
}
