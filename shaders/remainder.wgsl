// Shared piece: changes of third-order remainders at a, from t to t+δ, in f32: of softplus and
// of the exponential.
//
// Formula: ∫ G over [t, t+δ], G(s) = σ(a+s) − σ(a) − ws = w(A − s p E)/(1 + pE), with
// E = e^s − 1, A = E − s, p = σ(a), w = p(1−p); four Gauss–Legendre points for |δ| ≤ 3/2,
// softplus(a+t+δ) − softplus(a+t) − pδ − wδ(t + δ/2) beyond. The exponential likewise with
// G(s) = A, and e^t(e^δ − 1) − δ − δ(t + δ/2) beyond; exponents are cut at ±60.
// Units: nats. Bindings: none. Needs softplus.wgsl. Twin: src/math/single_remainder.rs.

// (e^s − 1 − s, e^s − 1), |s| ≤ 60.
fn exponentials(s: f32) -> vec2<f32> {
    var series = 2.4801587e-5;
    series = fma(series, s, 1.9841270e-4);
    series = fma(series, s, 1.3888889e-3);
    series = fma(series, s, 8.3333333e-3);
    series = fma(series, s, 4.1666667e-2);
    series = fma(series, s, 1.6666667e-1);
    series = fma(series, s, 0.5);
    series = series * s * s;
    let direct = exp_accurate(s) - 1.0;
    let small = abs(s) <= 0.5;
    return vec2<f32>(select(direct - s, series, small), select(direct, series + s, small));
}

fn remainder_slope(p: f32, w: f32, unclamped: f32) -> f32 {
    let s = clamp(unclamped, -60.0, 60.0);
    let pair = exponentials(s);
    return w * (pair.x - s * p * pair.y) / fma(p, pair.y, 1.0);
}

fn remainder_difference(a: f32, t: f32, delta: f32) -> f32 {
    let p = 1.0 / (1.0 + exp_accurate(-a));
    let w = p / (1.0 + exp_accurate(a));
    var sum = 0.17392742 * remainder_slope(p, w, fma(0.069431844, delta, t));
    sum = fma(0.32607258, remainder_slope(p, w, fma(0.33000948, delta, t)), sum);
    sum = fma(0.32607258, remainder_slope(p, w, fma(0.6699905, delta, t)), sum);
    sum = fma(0.17392742, remainder_slope(p, w, fma(0.93056816, delta, t)), sum);
    let long = softplus_difference(a + t, delta) - delta * fma(w, fma(0.5, delta, t), p);
    let value = select(long, sum * delta, abs(delta) <= 1.5);
    return select(value, a + t + delta, is_nan(a) || is_nan(t) || is_nan(delta));
}

fn exponential_slope(node: f32, t: f32, delta: f32) -> f32 {
    return exponentials(clamp(fma(node, delta, t), -60.0, 60.0)).x;
}

fn exponential_difference(a: f32, t: f32, delta: f32) -> f32 {
    var sum = 0.17392742 * exponential_slope(0.069431844, t, delta);
    sum = fma(0.32607258, exponential_slope(0.33000948, t, delta), sum);
    sum = fma(0.32607258, exponential_slope(0.6699905, t, delta), sum);
    sum = fma(0.17392742, exponential_slope(0.93056816, t, delta), sum);
    // expm1_positive is as accurate below zero: its range reduction is symmetric.
    let growth = exp_accurate(clamp(t, -60.0, 60.0)) * expm1_positive(clamp(delta, -60.0, 60.0));
    let long = growth - delta * (1.0 + fma(0.5, delta, t));
    let value = exp_accurate(a) * select(long, sum * delta, abs(delta) <= 1.5);
    return select(value, a + t + delta, is_nan(a) || is_nan(t) || is_nan(delta));
}
