// Row function of an anchored declared likelihood: what the log ratio leaves over beyond its
// second-order expansion at the anchor θ*, untempered.
//
// Formula: ω(∫ G(a) da + (w' − w) δ (t + δ/2)) over [t, t+δ], forms = (η*, t, δ) =
// (x·θ*, x·(θ−θ*), x·Δθ), then the largest weight W and a distance; G(a) = s(η*+a) − s(η*) + w a,
// w' = w within 0 and ωW; label = (ω, y). Within the distance of η* G(a) is
// a² ∫ (1−v) s''(η* + va) dv over [0, 1], by three Gauss–Jacobi points, and four Gauss–Legendre
// points make its integral; further off it is the change less its expansion, which then are not
// close.
// Units: nats. Bindings: none. Needs softplus.wgsl, expression.wgsl and the law's functions.
// Twin: Law::remainders in src/expression/law.rs (in f64).

// G(a).
fn slope_left(y: f32, eta: f32, a: f32) -> f32 {
    var mean = 0.20093191 * law_third(y, fma(0.08858796, a, eta));
    mean = fma(0.22924111, law_third(y, fma(0.40946686, a, eta)), mean);
    mean = fma(0.06982698, law_third(y, fma(0.78765946, a, eta)), mean);
    return a * a * mean;
}

fn row_ratio(forms: array<f32, K + C>, label: vec2<f32>) -> f32 {
    let eta = forms[0];
    let t = forms[1];
    let delta = forms[2];
    let weight = -law_bend(label.y, eta);
    let quadratic = delta * fma(0.5, delta, t);
    var rest = 0.0;
    if max(abs(t), abs(t + delta)) <= forms[4] {
        rest = 0.17392742 * slope_left(label.y, eta, fma(0.069431844, delta, t));
        rest = fma(0.32607258, slope_left(label.y, eta, fma(0.33000948, delta, t)), rest);
        rest = fma(0.32607258, slope_left(label.y, eta, fma(0.6699905, delta, t)), rest);
        rest = fma(0.17392742, slope_left(label.y, eta, fma(0.93056816, delta, t)), rest);
        rest *= delta;
    } else {
        let whole = law_change(label.y, eta + t, delta);
        rest = whole - law_score(label.y, eta) * delta + weight * quadratic;
    }
    let cut = clamp(weight, 0.0, label.x * forms[3]) - weight;
    let value = label.x * fma(cut, quadratic, rest);
    return select(value, eta + t + delta, is_nan(eta) || is_nan(t) || is_nan(delta));
}
