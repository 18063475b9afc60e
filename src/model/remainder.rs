//! What is left of softplus after its quadratic at a: the third-order remainder that
//! anchored estimators evaluate (mathematics, section 4.1).

use super::softplus_difference;

/// `ρ(a, t+δ) − ρ(a, t)` with `ρ(a, t) = softplus(a+t) − softplus(a) − pt − ½wt²`,
/// p = σ(a), w = p(1−p); f64, exact to about 1e-16 |δ|.
///
/// Twin of `engine/cpu/remainder.rs` and `shaders/remainder.wgsl`.
pub fn remainder_difference(a: f64, t: f64, delta: f64) -> f64 {
    let (p, w) = slopes(a);
    softplus_difference(a + t, delta) - p * delta - w * delta * (t + 0.5 * delta)
}

/// First and second derivative of softplus at a.
pub fn slopes(a: f64) -> (f64, f64) {
    let p = 1.0 / (1.0 + (-a).exp());
    let rest = 1.0 / (1.0 + a.exp());
    (p, p * rest)
}

/// Largest |third derivative| of softplus: `1/(6√3)`.
pub(crate) const THIRD: f64 = 0.096_225_044_864_937_63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_is_of_third_order_with_the_stated_bound() {
        let mut largest = 0.0f64;
        for i in -60..=60 {
            let a = f64::from(i) * 0.1;
            for (t, delta) in [(0.02, -0.03), (-0.01, 0.05), (0.3, 0.2), (-1.0, 2.5)] {
                let r = remainder_difference(a, t, delta);
                let end: f64 = t + delta;
                let bound = 0.5 * THIRD * t.abs().max(end.abs()).powi(2) * delta.abs();
                assert!(r.abs() <= bound, "{a} {t} {delta}: {r} over {bound}");
            }
            // σ''(a)/2 · t²δ to leading order.
            let (p, w) = slopes(a);
            let (t, delta) = (1e-3, 1e-4);
            let cubes = t * t * delta + t * delta * delta + delta * delta * delta / 3.0;
            let leading = 0.5 * w * (1.0 - 2.0 * p) * cubes;
            let r = remainder_difference(a, t, delta);
            assert!((r - leading).abs() < 2e-3 * 0.5 * THIRD * t * t * delta + 1e-17);
            largest = largest.max((w * (1.0 - 2.0 * p)).abs());
        }
        assert!(largest <= THIRD && largest > 0.999 * THIRD);
    }
}
