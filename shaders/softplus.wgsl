// Shared piece: softplus(a+δ) − softplus(a) in f32, without cancellation.
//
// Formula: sign(δ) · log1p( σ(min(a, a+δ)) · expm1(|δ|) ), |δ| cut at 60.
// WGSL has neither log1p nor expm1, and built-in log is off by 1e-5 on some drivers, so
// both are polynomials after range reduction. Relative error ≤ 4e-6.
// Units: nats. Bindings: none. Twin: src/math/single.rs.

// e^x − 1 = p·2^n + (2^n − 1) with x = n ln 2 + f; returns (p, 2^n). |x| ≤ 87.
fn split_exp(x: f32) -> vec2<f32> {
    // The sum's low bits are n: fewer instructions than to round and to convert.
    let i = bitcast<i32>(fma(x, 1.44269504, 12582912.0)) - bitcast<i32>(12582912.0);
    let n = f32(i);
    let f = fma(n, -1.4286068e-6, fma(n, -0.69314575, x));
    var p = 1.9841270e-4;
    p = fma(p, f, 1.3888889e-3);
    p = fma(p, f, 8.3333333e-3);
    p = fma(p, f, 4.1666667e-2);
    p = fma(p, f, 1.6666667e-1);
    p = fma(p, f, 0.5);
    p = fma(p * f, f, f);
    return vec2<f32>(p, bitcast<f32>(u32(i + 127) << 23u));
}

fn exp_accurate(x: f32) -> f32 {
    let s = split_exp(clamp(x, -87.0, 87.0));
    return fma(s.x, s.y, s.y);
}

// x ≥ 0.
fn expm1_positive(x: f32) -> f32 {
    let s = split_exp(x);
    return fma(s.x, s.y, s.y - 1.0);
}

// n ln 2 + log(1 + f) = n ln 2 + 2 artanh(f/(2+f)), |f| ≤ 1/2.
fn log_reduced(n: f32, f: f32) -> f32 {
    let s = f / (2.0 + f);
    let s2 = s * s;
    var p = 0.09090909;
    p = fma(p, s2, 0.11111111);
    p = fma(p, s2, 0.14285714);
    p = fma(p, s2, 0.2);
    p = fma(p, s2, 0.33333333);
    let series = fma(2.0 * s * s2, p, 2.0 * s);
    return fma(n, 0.69314575, fma(n, 1.4286068e-6, series));
}

// log(1 + x), x > −1.
fn log1p_accurate(x: f32) -> f32 {
    let n = (bitcast<i32>(1.0 + x) - 0x3f400000) >> 23u;
    let scale = bitcast<f32>(u32(127 - n) << 23u);
    // (1 + x)·2^-n − 1 without the rounding of 1 + x.
    return log_reduced(f32(n), fma(x, scale, scale - 1.0));
}

// NaN is recognised by its bits: drivers may fold x != x to false.
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// log(1 + expm1(x)/odds), 0 ≤ x ≤ 1/4 and odds ≥ 1: no range reduction and one quotient.
fn log1p_small(x: f32, odds: f32) -> f32 {
    var p = 1.3888889e-3;
    p = fma(p, x, 8.3333333e-3);
    p = fma(p, x, 4.1666667e-2);
    p = fma(p, x, 1.6666667e-1);
    p = fma(p, x, 0.5);
    let grown = fma(p * x, x, x);
    let s = grown / fma(2.0, odds, grown);
    let s2 = s * s;
    var q = 0.14285714;
    q = fma(q, s2, 0.2);
    q = fma(q, s2, 0.33333333);
    return fma(2.0 * s * s2, q, 2.0 * s);
}

fn softplus_difference(a: f32, delta: f32) -> f32 {
    let low = min(a, a + delta);
    let size = min(abs(delta), 60.0);
    let odds = 1.0 + exp_accurate(-low);
    // Most moves of most rows are small.
    var value = 0.0;
    if size <= 0.25 {
        value = log1p_small(size, odds);
    } else {
        value = log1p_accurate(expm1_positive(size) / odds);
    }
    let signed = bitcast<f32>(bitcast<u32>(value) ^ (bitcast<u32>(delta) & 0x80000000u));
    // 0/0-free NaN: hand the NaN itself on.
    return select(signed, a + delta, is_nan(a) || is_nan(delta));
}
