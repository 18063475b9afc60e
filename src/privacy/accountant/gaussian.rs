//! Closed form where every event is Gaussian: the composition is the Gaussian mechanism
//! with `μ² = Σ Δ²/σ²` (Sommer, Meiser & Mohammadi 2019; Dong, Roth & Su 2022, Corollary
//! 2), whose profile is that of Balle & Wang 2018, Theorem 8.

use super::normal::above;

/// Relative rounding granted to the profile.
const ROUNDING: f64 = 1e-9;

/// `δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)`.
pub(super) fn delta(mu: f64, epsilon: f64) -> f64 {
    let high = above(epsilon / mu - 0.5 * mu);
    let low = above(epsilon / mu + 0.5 * mu);
    (high - (epsilon + low.ln()).exp()).max(0.0)
}

/// (lower, upper) bounds on the smallest ε ≥ 0 with δ(ε) ≤ `wanted`.
pub(super) fn epsilon(mu: f64, wanted: f64) -> (f64, f64) {
    if wanted <= 0.0 {
        return (f64::INFINITY, f64::INFINITY);
    }
    let solve = |wanted: f64| {
        if delta(mu, 0.0) <= wanted {
            return (0.0, 0.0);
        }
        let (mut low, mut high) = (0.0, 1.0 + mu * mu);
        while delta(mu, high) > wanted {
            low = high;
            high *= 2.0;
        }
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if delta(mu, middle) > wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low, high)
    };
    (
        solve(wanted * (1.0 + ROUNDING)).0,
        solve(wanted * (1.0 - ROUNDING)).1,
    )
}
