// Slopes of logistic regression: first derivative of a row's log likelihood in η and minus
// the second, untempered.
//
// Formula: ([y > 0] − σ(η), σ(η)σ(−η)), y = ±1. A η that is not a number never gets here.
// Units: nats. Bindings: none. Needs softplus.wgsl. Twin: Score::slopes in src/models/slopes.rs.

fn slopes(eta: f32, label: f32) -> vec2<f32> {
    let p = 1.0 / (1.0 + exp_accurate(-eta));
    let weight = p / (1.0 + exp_accurate(eta));
    return vec2<f32>(select(0.0, 1.0, label > 0.0) - p, weight);
}

// What s and w of a row shortened by `share` < 1 are multiplied by; `relative`: w over its largest.
fn influence(share: f32, relative: f32, eta: f32, unit: f32) -> vec2<f32> {
    // 1 over the chance of the likelier class, so that neither score is cut.
    let least = 2.0 / (1.0 + sqrt(max(1.0 - relative, 0.0)));
    return vec2<f32>(min(1.0 / share, least), 1.0 / share);
}
