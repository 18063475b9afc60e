// Row function of anchored Poisson regression: what the log ratio leaves over beyond its
// second-order expansion at the anchor θ*, untempered.
//
// Formula: −e^η* [e^t(e^δ − 1) − δ − δ(t + δ/2)], forms = (η*, t, δ) = (x·θ*, x·(θ−θ*), x·Δθ).
// The label's part is linear and has no remainder; in the
// label's place is the row's weight at the anchor.
// Units: nats. Bindings: none. Twin: src/models/anchor.rs, src/trusted/engine/cpu/kernel.rs.

fn row_ratio(forms: array<f32, K>, label: f32) -> f32 {
    return -label * exponential_difference(forms[0], forms[1], forms[2]);
}
