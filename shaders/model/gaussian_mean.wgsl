// Row function of models whose log ratio is affine in the row (Gaussian mean).
//
// Formula: forms[0] = (x − (θ+θ')/2)ᵀ Σ⁻¹ (θ'−θ), already the ratio.
// Units: nats. Bindings: none. Twin: src/models/gaussian_mean.rs, src/trusted/engine/cpu/kernel.rs.

fn row_ratio(forms: array<f32, K>, label: f32) -> f32 {
    return forms[0];
}
