// Row function of linear regression: log ratio of one row times the noise variance, untempered.
//
// Formula: δ(y − η − δ/2), forms = (η, δ) = (x·θ, x·Δθ), y a number; the query's scale holds
// 1/s². Units: nats·s². Bindings: none. Twin: src/models/regression.rs, src/trusted/engine/cpu/kernel.rs.

fn row_ratio(forms: array<f32, K>, label: f32) -> f32 {
    return forms[1] * (label - forms[0] - 0.5 * forms[1]);
}
