// Shared piece: the functions that expressions name, in f32.
//
// What each is, and to how many digits, its twin says: src/expression/number.rs (Fast) and
// src/expression/special.rs. Built-in log and exp are off by 1e-5 on some drivers, so that none is
// used. No function fails: outside of its range the answer is a number that clips as any other.
// Units: none. Bindings: none. Needs softplus.wgsl.

fn exp_m1(u: f32) -> f32 {
    // As accurate below zero: its range reduction is symmetric.
    return expm1_positive(clamp(u, -87.0, 87.0));
}

// log u; below 1e-37 as there.
fn ln(u: f32) -> f32 {
    let x = max(u, 1e-37);
    let n = (bitcast<i32>(x) - 0x3f400000) >> 23u;
    let scale = bitcast<f32>(u32(127 - n) << 23u);
    return log_reduced(f32(n), fma(x, scale, -1.0));
}

// log(1 + u); −1 itself has no logarithm.
fn ln_1p(u: f32) -> f32 {
    return log1p_accurate(max(u, -0.9999999));
}

fn softplus(u: f32) -> f32 {
    return max(u, 0.0) + log1p_accurate(exp_accurate(-abs(u)));
}

fn sigmoid(u: f32) -> f32 {
    return 1.0 / (1.0 + exp_accurate(-u));
}

// Arguments of the gamma functions are shifted to from here on, by at most so many ones.
const SHIFT: f32 = 10.0;
const SHIFTS: u32 = 10u;

// Terms of Stirling's series of log Γ(v) from 1/v⁵ on.
fn stirling_rest(v: f32) -> f32 {
    let inverse = 1.0 / v;
    let square = inverse * inverse;
    let series = fma(fma(8.417508e-4, square, -5.952381e-4), square, 7.936508e-4);
    return series * (square * square * inverse);
}

// log Γ(u), u > 0.
fn ln_gamma(u: f32) -> f32 {
    var product = 1.0;
    var v = u;
    for (var k = 0u; k < SHIFTS; k++) {
        product = select(product, product * v, v < SHIFT);
        v = select(v, v + 1.0, v < SHIFT);
    }
    let inverse = 1.0 / v;
    let first = fma(-2.7777778e-3, inverse * inverse, 8.3333333e-2) * inverse;
    return (v - 0.5) * ln(v) - v + 0.9189385 + first + stirling_rest(v) - ln(product);
}

// log Γ(u + δ) − log Γ(u), u and u + δ > 0: both ends are shifted by as many ones.
fn ln_gamma_change(u: f32, delta: f32) -> f32 {
    let low = select(u + delta, u, delta > 0.0);
    var growth = 0.0;
    var at = low;
    for (var k = 0u; k < SHIFTS; k++) {
        let share = delta / (u + (at - low));
        growth = select(growth, growth + share + growth * share, at < SHIFT);
        at = select(at, at + 1.0, at < SHIFT);
    }
    let v = u + (at - low);
    let w = v + delta;
    let inverse = -delta / (v * w);
    let cube = inverse * (v * v + v * w + w * w) / (v * w * (v * w));
    let series = inverse * 8.3333333e-2 - cube * 2.7777778e-3 + (stirling_rest(w) - stirling_rest(v));
    return (v - 0.5) * ln_1p(delta / v) + delta * (ln(w) - 1.0) + series - ln_1p(growth);
}

// Γ'/Γ.
fn digamma(u: f32) -> f32 {
    var sum = 0.0;
    var v = u;
    for (var k = 0u; k < SHIFTS; k++) {
        sum = select(sum, sum + 1.0 / v, v < SHIFT);
        v = select(v, v + 1.0, v < SHIFT);
    }
    let inverse = 1.0 / v;
    let square = inverse * inverse;
    var series = fma(7.5757576e-3, square, -4.1666667e-3);
    series = fma(series, square, 3.968254e-3);
    series = fma(series, square, -8.3333333e-3);
    series = fma(series, square, 8.3333333e-2);
    return ln(v) - inverse * 0.5 - series * square - sum;
}

// (Γ'/Γ)'.
fn trigamma(u: f32) -> f32 {
    var sum = 0.0;
    var v = u;
    for (var k = 0u; k < SHIFTS; k++) {
        sum = select(sum, sum + 1.0 / (v * v), v < SHIFT);
        v = select(v, v + 1.0, v < SHIFT);
    }
    let inverse = 1.0 / v;
    let square = inverse * inverse;
    var series = fma(7.5757576e-2, square, -3.3333333e-2);
    series = fma(series, square, 2.3809524e-2);
    series = fma(series, square, -3.3333333e-2);
    series = fma(series, square, 1.6666667e-1);
    return inverse + square * 0.5 + series * square * inverse + sum;
}

// (log(½ erfc(z) e^{z²}), z²) at z = |u|/√2.
fn ln_scaled_erfc(u: f32) -> vec2<f32> {
    let t = 1.0 / fma(0.5, abs(u) * 0.70710678, 1.0);
    var sum = 0.17087277;
    sum = fma(sum, t, -0.82215223);
    sum = fma(sum, t, 1.4885159);
    sum = fma(sum, t, -1.135204);
    sum = fma(sum, t, 0.27886807);
    sum = fma(sum, t, -0.18628806);
    sum = fma(sum, t, 0.09678418);
    sum = fma(sum, t, 0.37409196);
    sum = fma(sum, t, 1.0000237);
    sum = fma(sum, t, -1.2655122);
    return vec2<f32>(sum + ln(0.5 * t), 0.5 * u * u);
}

// log Φ(u).
fn ln_normal_cdf(u: f32) -> f32 {
    let share = ln_scaled_erfc(u);
    let low = share.x - share.y;
    return select(low, ln_1p(-exp_accurate(low)), u > 0.0);
}

// φ(u)/Φ(u), with e^−u²/2 cancelled on the left.
fn mills(u: f32) -> f32 {
    let share = ln_scaled_erfc(u);
    let high = 0.3989423 * exp_accurate(-share.y) / (1.0 - exp_accurate(share.x - share.y));
    return select(0.3989423 * exp_accurate(-share.x), high, u > 0.0);
}

// log Φ(u + δ) − log Φ(u): the derivative's integral by Gauss–Legendre where δ is small.
fn ln_normal_cdf_change(u: f32, delta: f32) -> f32 {
    var mean = mills(fma(delta, 0.046910077, u)) * 0.118463443;
    mean += mills(fma(delta, 0.23076534, u)) * 0.23931434;
    mean += mills(fma(delta, 0.5, u)) * 0.28444444;
    mean += mills(fma(delta, 0.76923466, u)) * 0.23931434;
    mean += mills(fma(delta, 0.95308992, u)) * 0.118463443;
    let far = ln_normal_cdf(u + delta) - ln_normal_cdf(u);
    return select(far, mean * delta, delta * delta < 0.25);
}
