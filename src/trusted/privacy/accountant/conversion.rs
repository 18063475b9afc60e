//! From zCDP to (ε, δ) and back.
//!
//! Every α > 1 gives a valid bound, so a search that stops early costs tightness, never
//! soundness.

/// Smallest ε such that ρ-zCDP implies (ε, δ)-DP by the improved bound of Canonne,
/// Kamath & Steinke 2020, Prop. 12 (Balle et al. 2020):
/// `ε = αρ + log((α−1)/α) − (log δ + log α)/(α−1)`, minimised over α.
pub fn epsilon_of_rho(rho: f64, delta: f64) -> f64 {
    if rho <= 0.0 {
        return 0.0;
    }
    if !(delta > 0.0 && delta < 1.0 && rho.is_finite()) {
        return f64::INFINITY;
    }
    let at = |x: f64| {
        let m = x.exp(); // α − 1
        let alpha = 1.0 + m;
        alpha * rho - (1.0 / m).ln_1p() - (delta.ln() + alpha.ln()) / m
    };
    minimum(at).max(0.0)
}

/// The classic conversion `ρ + 2√(ρ log 1/δ)` (Bun & Steinke 2016), for comparison.
pub fn epsilon_of_rho_classic(rho: f64, delta: f64) -> f64 {
    rho + 2.0 * (rho * -delta.ln()).sqrt()
}

/// Smallest δ such that ρ-zCDP implies (ε, δ)-DP by the same bound.
pub fn delta_of_rho(rho: f64, epsilon: f64) -> f64 {
    if rho <= 0.0 {
        return 0.0;
    }
    let at = |x: f64| {
        let m = x.exp();
        let alpha = 1.0 + m;
        m * (alpha * rho - epsilon) - m.ln() - alpha * (1.0 / m).ln_1p()
    };
    minimum(at).exp().min(1.0)
}

/// Largest ρ whose ε at δ does not exceed `epsilon`; verified before it is returned.
pub fn rho_of_budget(epsilon: f64, delta: f64) -> f64 {
    largest(|rho| epsilon_of_rho(rho, delta) <= epsilon)
}

/// Largest amount that fits a budget, as all smaller ones do; 0 where none does.
pub(super) fn largest(fits: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while fits(high) && high < 1e12 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    // Far more than the rounding of what decides.
    low * (1.0 - 1e-9)
}

/// Minimum over x = log(α−1): a coarse grid, then golden section.
fn minimum(at: impl Fn(f64) -> f64) -> f64 {
    let grid = |i: i32| -12.0 + 0.25 * f64::from(i);
    let best = (0..160)
        .min_by(|&a, &b| at(grid(a)).total_cmp(&at(grid(b))))
        .unwrap_or(0);
    let (mut low, mut high) = (grid(best - 1), grid(best + 1));
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let mut value = at(grid(best));
    for _ in 0..80 {
        let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
        let (fa, fb) = (at(a), at(b));
        value = value.min(fa).min(fb);
        if fa < fb {
            high = b;
        } else {
            low = a;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn matches_a_published_value() {
        // OpenDP 0.16.0's zCDP conversion of the Gaussian with Δ/σ = 1 (ρ = 1/2) at
        // δ = 1e-5, and of ρ = 3.125.
        assert!((epsilon_of_rho(0.5, 1e-5) - 4.728_386_985).abs() < 2e-6);
        assert!((epsilon_of_rho(3.125, 1e-5) - 14.130_545_5).abs() < 2e-5);
    }

    proptest! {
        #[test]
        fn is_monotone_and_under_the_classic_bound(log_rho in -18f64..4.0, log_delta in -30f64..-1.0) {
            let (rho, delta) = (log_rho.exp(), log_delta.exp());
            let eps = epsilon_of_rho(rho, delta);
            prop_assert!(eps <= epsilon_of_rho_classic(rho, delta) + 1e-12);
            prop_assert!(eps <= epsilon_of_rho(rho * 1.01, delta) + 1e-12);
            prop_assert!(eps >= epsilon_of_rho(rho, delta * 1.1) - 1e-12);
        }

        #[test]
        fn delta_inverts_epsilon(log_rho in -6f64..2.0, log_delta in -25f64..-3.0) {
            let (rho, delta) = (log_rho.exp(), log_delta.exp());
            let eps = epsilon_of_rho(rho, delta);
            prop_assume!(eps > 0.0);
            prop_assert!((delta_of_rho(rho, eps).ln() - log_delta).abs() < 1e-3);
        }

        #[test]
        fn a_budget_is_never_overspent(epsilon in 1e-3f64..100.0, log_delta in -30f64..-2.0) {
            let delta = log_delta.exp();
            let rho = rho_of_budget(epsilon, delta);
            prop_assert!(epsilon_of_rho(rho, delta) <= epsilon);
            prop_assert!(epsilon_of_rho(rho * 1.0001, delta) > epsilon * (1.0 - 1e-6));
        }
    }
}
