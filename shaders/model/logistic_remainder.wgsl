// Row function of anchored logistic regression: what the log ratio leaves over beyond its
// second-order expansion at the anchor θ*, untempered.
//
// Formula: −[ρ(η*, t+δ) − ρ(η*, t)], forms = (η*, t, δ) = (x·θ*, x·(θ−θ*), x·Δθ), ρ the
// third-order remainder of softplus. The label's part is linear and has no remainder; in the
// label's place is the row's weight ω at the anchor. Of a row with ω < 1 the expansion has only
// ω/4 of the curvature's weight w, where w is more: the rest is added.
// Units: nats. Bindings: none. Twin: src/models/anchor.rs, src/trusted/engine/cpu/kernel.rs.

fn row_ratio(forms: array<f32, K>, label: f32) -> f32 {
    let a = forms[0];
    let delta = forms[2];
    let weight = 1.0 / ((1.0 + exp_accurate(-a)) * (1.0 + exp_accurate(a)));
    let cut = select(0.0, max(weight - 0.25 * label, 0.0), label < 1.0);
    let quadratic = cut * delta * fma(0.5, delta, forms[1]);
    return -label * (remainder_difference(a, forms[1], delta) + quadratic);
}
