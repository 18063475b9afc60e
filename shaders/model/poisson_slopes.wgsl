// Slopes of Poisson regression: first derivative of a row's log likelihood in η and minus the
// second, untempered.
//
// Formula: (y − e^η, e^η). A η that is not a number never gets here.
// Units: counts. Bindings: none. Needs softplus.wgsl. Twin: Score::slopes in src/models/slopes.rs.

fn slopes(eta: f32, label: f32) -> vec2<f32> {
    let rate = exp_accurate(eta);
    return vec2<f32>(label - rate, rate);
}

// What s and w of a row shortened by `share` < 1 are multiplied by before they are clipped;
// `relative`: w over its largest.
fn influence(share: f32, relative: f32, eta: f32, unit: f32) -> vec2<f32> {
    return vec2<f32>(min(1.0 / relative, 1.0) / share, min(1.0 / relative, 1.0 / share));
}
