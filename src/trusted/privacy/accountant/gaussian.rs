//! Closed form where every event is Gaussian: the composition is the Gaussian mechanism
//! with `μ² = Σ Δ²/σ²` (Sommer, Meiser & Mohammadi 2019; Dong, Roth & Su 2022, Corollary
//! 2), whose profile is that of Balle & Wang 2018, Theorem 8.

use crate::math::normal::log_above;

/// Bounds on `δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)`, its rounding included.
pub(in crate::trusted::privacy) fn delta(mu: f64, epsilon: f64) -> (f64, f64) {
    let (x, y) = (epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu);
    let (high, low) = (log_above(x), log_above(y) + epsilon);
    let p = high.exp();
    let value = -p * (low - high).min(0.0).exp_m1();
    // Relative to p: both tails, and the sum of exponents of the size of y².
    let error = (32.0 + 4.0 * y * y + 2.0 * epsilon) * f64::EPSILON * p;
    ((value - error).max(0.0), value + error)
}

/// (lower, upper) bounds on the smallest ε ≥ 0 with δ(ε) ≤ `wanted`.
pub(in crate::trusted::privacy) fn epsilon(mu: (f64, f64), wanted: f64) -> (f64, f64) {
    if wanted <= 0.0 {
        return (f64::INFINITY, f64::INFINITY);
    }
    let solve = |exceeds: &dyn Fn(f64) -> bool| {
        if !exceeds(0.0) {
            return (0.0, 0.0);
        }
        let (mut low, mut high) = (0.0, 1.0 + mu.1 * mu.1);
        while exceeds(high) && high < 1e300 {
            low = high;
            high *= 2.0;
        }
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if exceeds(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low, high)
    };
    (
        solve(&|e| delta(mu.0, e).0 > wanted).0,
        solve(&|e| delta(mu.1, e).1 > wanted).1,
    )
}
