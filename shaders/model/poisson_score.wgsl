// Score of Poisson regression: derivative of a row's log likelihood in η, untempered.
//
// Formula: y − e^η. A η that is not a number never gets here.
// Units: counts. Bindings: none. Needs softplus.wgsl. Twin: src/trusted/engine/cpu/gradient.rs.

fn score(eta: f32, label: f32) -> f32 {
    return label - exp_accurate(eta);
}
