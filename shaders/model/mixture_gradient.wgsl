// Row function of the two-component mixture: gradient of one row, untempered.
//
// Formula: forms = (a₁, a₂, s, 0), a_k the components' scores and s the log odds of the
// second: (a₁ + σ(s)(a₂ − a₁), σ(s) a₂, 0, 0).
// Units: nats a unit of θ. Bindings: none. Needs softplus.wgsl. Twin: src/trusted/engine/cpu/gradient.rs.

fn row_gradient(forms: vec4<f32>) -> vec4<f32> {
    let share = 1.0 / (1.0 + exp_accurate(-forms.z));
    let value = vec4<f32>(fma(share, forms.y - forms.x, forms.x), share * forms.y, 0.0, 0.0);
    return select(value, vec4<f32>(forms.z), is_nan(forms.z));
}
