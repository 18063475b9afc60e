// Score of logistic regression: derivative of a row's log likelihood in η, untempered.
//
// Formula: y σ(−yη), y = ±1. A η that is not a number never gets here.
// Units: nats. Bindings: none. Needs softplus.wgsl. Twin: src/trusted/engine/cpu/gradient.rs.

fn score(eta: f32, label: f32) -> f32 {
    return label / (1.0 + exp_accurate(label * eta));
}
