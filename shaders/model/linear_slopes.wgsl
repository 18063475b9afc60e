// Slopes of linear regression: first derivative of a row's log likelihood in η and minus the
// second, untempered and in units of the noise variance.
//
// Formula: (y − η, 1). A η that is not a number never gets here.
// Units: the label's, and 1. Bindings: none. Twin: Score::slopes in src/models/slopes.rs.

fn slopes(eta: f32, label: f32) -> vec2<f32> {
    return vec2<f32>(label - eta, 1.0);
}

// What s and w of a row shortened by `share` < 1 are multiplied by before they are clipped;
// `relative`: w over its largest.
fn influence(share: f32, relative: f32, eta: f32, unit: f32) -> vec2<f32> {
    return vec2<f32>(1.0 / share, 1.0 / share);
}
