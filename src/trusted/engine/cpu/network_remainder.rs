//! What a network with a Bernoulli head leaves over its Gauss–Newton expansion at θ*, 16 rows at
//! a time. Twin: `model::Anchored` (f64 oracle, by differences); no shader.
//!
//! With f* the output at θ*, J its gradient there, v = θ − θ* and Δ = θ' − θ, let j = J·v, k = J·Δ
//! and let g, D be what the output has beyond them: f(θ) = f* + j + g, f(θ') = f(θ) + k + D. Then
//! `r = s·D − w·(k·g + D·(j + k + g + D/2)) − R(f*, j + g, k + D)`,
//! s and w the score and weight at f*, R the change of softplus's third-order remainder. g and D
//! are sums over hidden units of second-order terms, made without a difference of first-order ones.

use super::lanes::{Lanes, exp, multiply_add, tanh};
use super::network::form;
use crate::data::TILE;
use crate::math::single_remainder::remainder_difference;
use crate::model::NetworkShape;

/// Changes of z up to here are expanded.
const SMALL: f32 = 0.5;
/// `tanh t − t` over t³: a power series in t² (within 1e-7 of itself for |t| ≤ 1/2).
const SERIES: [f32; 7] = [
    -1.0 / 3.0,
    2.0 / 15.0,
    -17.0 / 315.0,
    62.0 / 2835.0,
    -1382.0 / 155_925.0,
    21_844.0 / 6_081_075.0,
    -929_569.0 / 638_512_875.0,
];

/// `tanh(z + t) − tanh z`, and that less `(1 − tanh² z)·t`; `a` and `slope`: tanh z and 1 − a².
/// With T = tanh t the change is `slope·T/(1 + aT)`, the rest `slope·(T − t − aTt)/(1 + aT)`.
#[inline(always)]
fn tanh_parts<const FMA: bool>((z, a, slope): (f32, f32, f32), t: f32) -> (f32, f32) {
    let small = t.abs() <= SMALL;
    let (other, _) = tanh::<FMA>(if small { t } else { z + t });
    let square = t * t;
    let mut series = 0.0;
    for c in SERIES.iter().rev() {
        series = multiply_add::<FMA>(series, square, *c);
    }
    let share = slope / (1.0 + a * other);
    let near = (share * other, share * t * (series * square - a * other));
    let change = other - a;
    if small {
        near
    } else {
        (change, change - slope * t)
    }
}

/// Untempered remainders' changes of one tile; `weights`: θ*, θ − θ*, Δθ.
#[inline(always)]
pub(super) fn remainders<const FMA: bool>(
    shape: NetworkShape,
    weights: &[f32],
    tile: &[Lanes],
    labels: &Lanes,
) -> Lanes {
    let d = shape.parameters();
    let at = shape.layers(&weights[..d]);
    let offset = shape.layers(&weights[d..2 * d]);
    let step = shape.layers(&weights[2 * d..]);
    let mut output = [at.second_bias[0]; TILE];
    let mut along = [offset.second_bias[0]; TILE];
    let mut along_step = [step.second_bias[0]; TILE];
    let (mut beyond, mut beyond_step) = ([0.0; TILE], [0.0; TILE]);
    for h in 0..shape.hidden {
        let range = h * shape.features..(h + 1) * shape.features;
        let z = form::<FMA>(tile, &at.first[range.clone()], at.first_bias[h]);
        let t = form::<FMA>(tile, &offset.first[range.clone()], offset.first_bias[h]);
        let dt = form::<FMA>(tile, &step.first[range], step.first_bias[h]);
        let (w, v, dv) = (at.second[h], offset.second[h], step.second[h]);
        for i in 0..TILE {
            let (a, slope) = tanh::<FMA>(z[i]);
            let (change, bend) = tanh_parts::<FMA>((z[i], a, slope), t[i]);
            let moved = z[i] + t[i];
            let (b, moved_slope) = tanh::<FMA>(moved);
            let (next, rest) = tanh_parts::<FMA>((moved, b, moved_slope), dt[i]);
            // (1 − b²) − (1 − a²) = −(b − a)(a + b): the slope's own change along the step.
            let bend_step = rest - change * (a + b) * dt[i];
            output[i] = multiply_add::<FMA>(w, a, output[i]);
            let back = w * slope;
            along[i] += multiply_add::<FMA>(back, t[i], v * a);
            along_step[i] += multiply_add::<FMA>(back, dt[i], dv * a);
            beyond[i] += multiply_add::<FMA>(w, bend, v * change);
            beyond_step[i] += multiply_add::<FMA>(w, bend_step, dv * change) + (v + dv) * next;
        }
    }
    let mut ratios = [0.0; TILE];
    for i in 0..TILE {
        let (f, j, k) = (output[i], along[i], along_step[i]);
        let (g, more) = (beyond[i], beyond_step[i]);
        let score = labels[i] / (1.0 + exp::<FMA>(labels[i] * f));
        let p = 1.0 / (1.0 + exp::<FMA>(-f));
        let weight = p / (1.0 + exp::<FMA>(f));
        let whole = j + k + multiply_add::<FMA>(0.5, more, g);
        let quadratic = weight * multiply_add::<FMA>(k, g, more * whole);
        let rest = remainder_difference::<FMA>(f, j + g, k + more);
        ratios[i] = multiply_add::<FMA>(score, more, -quadratic) - rest;
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Against f64, in units of the second-order scale t² (the change: of t).
    fn check<const FMA: bool>(z: f32, t: f32) -> Result<(), TestCaseError> {
        let (a, slope) = tanh::<FMA>(z);
        let (change, bend) = tanh_parts::<FMA>((z, a, slope), t);
        let (z, t) = (f64::from(z), f64::from(t));
        let exact = t.sinh() / (z.cosh() * (z + t).cosh());
        let slope = 1.0 / (z.cosh() * z.cosh());
        // tanh(z+t) − tanh z − t/cosh² z by Taylor's integral, four-point Gauss–Legendre in pieces.
        let mut rest = 0.0;
        let pieces = 64;
        for n in 0..pieces {
            for (node, weight) in [
                (0.069_431_844_202_973_7, 0.173_927_422_568_726_9),
                (0.330_009_478_207_571_9, 0.326_072_577_431_273_1),
                (0.669_990_521_792_428_1, 0.326_072_577_431_273_1),
                (0.930_568_155_797_026_3, 0.173_927_422_568_726_9),
            ] {
                let s = (f64::from(n) + node) / f64::from(pieces) * t;
                let y: f64 = z + s;
                let second = -2.0 * y.tanh() / (y.cosh() * y.cosh());
                rest += weight / f64::from(pieces) * t * (t - s) * second;
            }
        }
        let rounding = if t.abs() > 0.5 { 1e-6 * t.abs() } else { 0.0 };
        let error = (f64::from(change) - exact).abs();
        prop_assert!(
            error <= 6e-6 * exact.abs() + rounding,
            "{z} {t}: {change} for {exact}"
        );
        let error = (f64::from(bend) - rest).abs();
        let allowed = 6e-6 * slope * t * t + rounding;
        prop_assert!(error <= allowed, "{z} {t}: {bend} for {rest}");
        Ok(())
    }

    proptest! {
        #[test]
        fn tanh_and_its_bend_are_accurate(z in -6f32..6.0, log in -14f32..1.5, up in any::<bool>()) {
            let t = if up { log.exp() } else { -log.exp() };
            check::<true>(z, t)?;
            check::<false>(z, t)?;
        }
    }
}
