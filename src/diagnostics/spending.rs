//! Total privacy cost as a function of the iteration.

use crate::privacy::epsilon_of_rho;

/// ε at δ after each of the given numbers of iterations that cost `rho` each (zCDP; Canonne,
/// Kamath & Steinke 2020, Proposition 12), as pairs (iteration, ε in nats). Infinite where ρ is
/// not finite, or negative, or δ is outside (0, 1).
pub fn epsilon_by_iteration(rho: f64, delta: f64, iterations: &[u64]) -> Vec<(u64, f64)> {
    iterations
        .iter()
        .map(|&i| (i, total(rho * i as f64, delta)))
        .collect()
}

fn total(rho: f64, delta: f64) -> f64 {
    if rho >= 0.0 {
        epsilon_of_rho(rho, delta)
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ρ = 1/2 at δ = 1e-5 is 4.728387 (OpenDP 0.16.0); no step costs nothing.
    #[test]
    fn a_published_value_is_reached_in_steps() {
        let curve = epsilon_by_iteration(0.005, 1e-5, &[0, 50, 100]);
        assert_eq!(curve[0], (0, 0.0));
        assert!((curve[2].1 - 4.728_387).abs() < 2e-6, "{curve:?}");
        assert!(0.0 < curve[1].1 && curve[1].1 < curve[2].1);
        // √: half of the steps cost more than half of ε.
        assert!(curve[1].1 > 0.5 * curve[2].1);
    }

    #[test]
    fn costs_that_mean_nothing_are_infinite() {
        for rho in [f64::NAN, -1.0, f64::INFINITY] {
            assert_eq!(epsilon_by_iteration(rho, 1e-5, &[3])[0].1, f64::INFINITY);
        }
        assert_eq!(epsilon_by_iteration(0.1, 0.0, &[3])[0].1, f64::INFINITY);
    }
}
