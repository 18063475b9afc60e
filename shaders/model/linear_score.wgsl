// Score of linear regression: derivative of a row's log likelihood in η, untempered and in
// units of the noise variance.
//
// Formula: y − η. A η that is not a number never gets here.
// Units: the label's. Bindings: none. Twin: src/trusted/engine/cpu/gradient.rs.

fn score(eta: f32, label: f32) -> f32 {
    return label - eta;
}
