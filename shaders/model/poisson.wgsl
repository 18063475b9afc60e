// Row function of Poisson regression: log ratio of one row, untempered.
//
// Formula: yδ − e^η expm1(δ), forms = (η, δ) = (x·θ, x·Δθ), y a count; both exponents cut
// at ±87. Units: nats. Bindings: none. Twin: src/models/regression.rs, src/math/single.rs.

fn row_ratio(forms: array<f32, K>, label: f32) -> f32 {
    let eta = forms[0];
    let delta = forms[1];
    // expm1_positive is as accurate below zero: its range reduction is symmetric.
    let growth = exp_accurate(eta) * expm1_positive(clamp(delta, -87.0, 87.0));
    // Clamping must not turn a NaN row into a finite ratio.
    return select(label * delta - growth, eta + delta, is_nan(eta) || is_nan(delta));
}
