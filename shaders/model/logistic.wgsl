// Row function of logistic regression: log ratio of one row, untempered.
//
// Formula: −[softplus(−y(η+δ)) − softplus(−yη)], forms = (η, δ) = (x·θ, x·Δθ), y = ±1.
// Units: nats. Bindings: none. Twin: src/models/regression.rs, src/trusted/engine/cpu/kernel.rs.

fn row_ratio(forms: array<f32, K>, label: f32) -> f32 {
    return -softplus_difference(-label * forms[0], -label * forms[1]);
}
