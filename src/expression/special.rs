//! Special functions that likelihoods name, for any [`Number`]: no branches.

use super::number::Number;
use crate::math::normal;

/// Arguments are shifted to from here on, where asymptotic series hold.
const SHIFT: f64 = 10.0;
/// Shifts of one that it takes from 0.
const SHIFTS: usize = 10;

/// Goes from u > 0 to the first u + n ≥ [`SHIFT`]; `visit`: of every place left behind, and whether
/// it counts (positive).
#[inline(always)]
fn shift<T: Number>(u: T, mut visit: impl FnMut(T, T)) -> T {
    let mut at = u;
    for _ in 0..SHIFTS {
        let below = T::of(SHIFT).subtract(at);
        visit(at, below);
        at = below.choose(at.add(T::of(1.0)), at);
    }
    at
}

/// Σ_k `series[k]` x^k.
#[inline(always)]
fn polynomial<T: Number>(series: &[f64], x: T) -> T {
    let mut sum = T::of(0.0);
    for a in series.iter().rev() {
        sum = sum.multiply(x).add(T::of(*a));
    }
    sum
}

/// Stirling's series beyond its first two terms, times v⁵, in 1/v².
const STIRLING: [f64; 3] = [1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0];

/// Terms of Stirling's series of log Γ(v) from 1/v⁵ on.
#[inline(always)]
fn stirling_rest<T: Number>(v: T) -> T {
    let inverse = T::of(1.0).divide(v);
    let square = inverse.multiply(inverse);
    polynomial(&STIRLING, square).multiply(square.multiply(square).multiply(inverse))
}

/// log Γ(u), u > 0.
#[inline(always)]
pub(super) fn ln_gamma<T: Number>(u: T) -> T {
    let mut product = T::of(1.0);
    let v = shift(u, |at, counts| {
        product = counts.choose(product.multiply(at), product);
    });
    let inverse = T::of(1.0).divide(v);
    let square = inverse.multiply(inverse);
    let first = polynomial(&[1.0 / 12.0, -1.0 / 360.0], square).multiply(inverse);
    const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
    v.subtract(T::of(0.5))
        .multiply(v.ln())
        .subtract(v)
        .add(T::of(HALF_LN_TWO_PI))
        .add(first)
        .add(stirling_rest(v))
        .subtract(product.ln())
}

/// log Γ(u + δ) − log Γ(u), u and u + δ > 0, without cancellation.
#[inline(always)]
pub(super) fn ln_gamma_change<T: Number>(u: T, delta: T) -> T {
    // Both ends take as many steps; Π (1 + δ/(u + k)) − 1.
    let low = delta.choose(u, u.add(delta));
    let mut growth = T::of(0.0);
    let moved = shift(low, |at, counts| {
        let place = u.add(at.subtract(low));
        let share = delta.divide(place);
        growth = counts.choose(growth.add(share).add(growth.multiply(share)), growth);
    });
    let v = u.add(moved.subtract(low));
    let w = v.add(delta);
    let (vw, one) = (v.multiply(w), T::of(1.0));
    // Δ(1/v) and Δ(1/v³).
    let inverse = T::of(0.0).subtract(delta.divide(vw));
    let squares = v.multiply(v).add(vw).add(w.multiply(w));
    let cube = inverse.multiply(squares).divide(vw.multiply(vw));
    let series = inverse
        .multiply(T::of(1.0 / 12.0))
        .subtract(cube.multiply(T::of(1.0 / 360.0)))
        .add(stirling_rest(w).subtract(stirling_rest(v)));
    v.subtract(T::of(0.5))
        .multiply(delta.divide(v).ln_1p())
        .add(delta.multiply(w.ln().subtract(one)))
        .add(series)
        .subtract(growth.ln_1p())
}

/// Γ'/Γ.
#[inline(always)]
pub(super) fn digamma<T: Number>(u: T) -> T {
    let mut sum = T::of(0.0);
    let v = shift(u, |at, counts| {
        sum = counts.choose(sum.add(T::of(1.0).divide(at)), sum);
    });
    let inverse = T::of(1.0).divide(v);
    let square = inverse.multiply(inverse);
    const SERIES: [f64; 5] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
    ];
    v.ln()
        .subtract(inverse.multiply(T::of(0.5)))
        .subtract(polynomial(&SERIES, square).multiply(square))
        .subtract(sum)
}

/// (Γ'/Γ)'.
#[inline(always)]
pub(super) fn trigamma<T: Number>(u: T) -> T {
    let mut sum = T::of(0.0);
    let v = shift(u, |at, counts| {
        sum = counts.choose(sum.add(T::of(1.0).divide(at.multiply(at))), sum);
    });
    let inverse = T::of(1.0).divide(v);
    let square = inverse.multiply(inverse);
    const SERIES: [f64; 5] = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0];
    inverse
        .add(square.multiply(T::of(0.5)))
        .add(
            polynomial(&SERIES, square)
                .multiply(square)
                .multiply(inverse),
        )
        .add(sum)
}

/// log Φ(u + δ) − log Φ(u): the derivative's integral by Gauss–Legendre where δ is small.
#[inline(always)]
pub(super) fn ln_normal_cdf_change<T: Number>(u: T, delta: T) -> T {
    // Nodes on [0, 1] and weights.
    const RULE: [(f64, f64); 5] = [
        (0.046_910_077_030_668, 0.118_463_442_528_094_5),
        (0.230_765_344_947_158_5, 0.239_314_335_249_683_2),
        (0.5, 0.284_444_444_444_444_4),
        (0.769_234_655_052_841_5, 0.239_314_335_249_683_2),
        (0.953_089_922_969_332, 0.118_463_442_528_094_5),
    ];
    let mut mean = T::of(0.0);
    for (place, weight) in RULE {
        let slope = u.add(delta.multiply(T::of(place))).mills();
        mean = mean.add(slope.multiply(T::of(weight)));
    }
    let near = T::of(0.25).subtract(delta.multiply(delta));
    let far = u.add(delta).ln_normal_cdf().subtract(u.ln_normal_cdf());
    near.choose(mean.multiply(delta), far)
}

/// log Φ(u).
pub(super) fn ln_normal_cdf(u: f64) -> f64 {
    match u > 0.0 {
        true => (-normal::above(u)).ln_1p(),
        false => normal::log_above(-u),
    }
}

/// φ(u)/Φ(u).
pub(super) fn mills(u: f64) -> f64 {
    (normal::log_density(u) - ln_normal_cdf(u)).exp()
}
