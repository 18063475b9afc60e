//! What is left of softplus and of the exponential after their quadratics at a: the
//! third-order remainders that anchored estimators evaluate (docs/proofs/anchors.md).

use super::softplus_difference;

/// `ρ(a, t+δ) − ρ(a, t)` with `ρ(a, t) = softplus(a+t) − softplus(a) − pt − ½wt²`,
/// p = σ(a), w = p(1−p); f64, exact to about 1e-16 |δ|.
///
/// Twin of `math/single_remainder.rs` and `shaders/remainder.wgsl`.
pub fn remainder_difference(a: f64, t: f64, delta: f64) -> f64 {
    let (p, w) = slopes(a);
    softplus_difference(a + t, delta) - p * delta - w * delta * (t + 0.5 * delta)
}

/// `ρ(a, t+δ) − ρ(a, t)` with `ρ(a, t) = e^a (e^t − 1 − t − ½t²)`, f64: the integral of
/// `e^a (e^s − 1 − s)` from t to t+δ, by Gauss–Legendre where the difference would cancel.
///
/// Twin of `math/single_remainder.rs` and `shaders/remainder.wgsl`.
pub fn exponential_difference(a: f64, t: f64, delta: f64) -> f64 {
    if delta.abs() > 1.0 {
        return a.exp() * (t.exp() * delta.exp_m1() - delta - delta * (t + 0.5 * delta));
    }
    let sum: f64 = GAUSS
        .iter()
        .map(|&(node, weight)| {
            let (low, high) = (0.5 * (1.0 - node), 0.5 * (1.0 + node));
            0.5 * weight * (excess(t + low * delta) + excess(t + high * delta))
        })
        .sum();
    a.exp() * sum * delta
}

/// `e^s − 1 − s`, by its series where that would cancel.
fn excess(s: f64) -> f64 {
    if s.abs() > 1.0 {
        return s.exp_m1() - s;
    }
    // ½s² (1 + s/3 (1 + s/4 (…))).
    (3..=20)
        .rev()
        .fold(1.0, |tail, k| 1.0 + tail * s / f64::from(k))
        * 0.5
        * s
        * s
}

/// Positive nodes and weights of the eight-point rule on [−1, 1].
const GAUSS: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// First and second derivative of softplus at a.
pub(crate) fn slopes(a: f64) -> (f64, f64) {
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

    /// Against `δ³/6 + tδ²/2 + …`, the Taylor series of both ends' remainders in one sum.
    #[test]
    fn the_exponentials_remainder_is_its_series() {
        for a in [-4.0, 0.0, 2.5] {
            for (t, delta) in [
                (0.0, 0.3),
                (1e-3, -2e-3),
                (0.02, -0.03),
                (-1.0, 2.0),
                (0.7, 1.0),
                (-2.0, -0.999),
                (1.5, -1.001),
            ] {
                let end: f64 = t + delta;
                // Σ_{k≥3} ((t+δ)^k − t^k)/k!, each difference by its factors.
                let (mut series, mut factorial) = (0.0, 2.0);
                for k in 3..=40 {
                    factorial *= f64::from(k);
                    let factors: f64 = (0..k).map(|j| end.powi(j) * t.powi(k - 1 - j)).sum();
                    series += delta * factors / factorial;
                }
                let r = exponential_difference(a, t, delta);
                let exact = a.exp() * series;
                let reach: f64 = t.abs().max(end.abs());
                let scale = a.exp() * reach * reach * delta.abs();
                assert!(
                    (r - exact).abs() < 1e-14 * scale,
                    "{a} {t} {delta}: {r} {exact}"
                );
                let bound = 0.5 * (a + t.max(end).max(0.0)).exp() * reach * reach * delta.abs();
                assert!(r.abs() <= bound, "{r} over {bound}");
            }
        }
    }
}
