// Row function of anchored logistic regression: what the log ratio leaves over beyond its
// second-order expansion at the anchor θ*, untempered.
//
// Formula: −[ρ(η*, t+δ) − ρ(η*, t)], forms = (η*, t, δ) = (x·θ*, x·(θ−θ*), x·Δθ), ρ the
// third-order remainder of softplus. The label's part is linear and has no remainder.
// Units: nats. Bindings: none. Twin: src/model/anchor.rs, src/engine/cpu/kernel.rs.

fn row_ratio(forms: array<f32, K>, label: f32) -> f32 {
    return -remainder_difference(forms[0], forms[1], forms[2]);
}
