// Row function of models whose gradient is affine in the row (Gaussian mean).
//
// Formula: the forms are the gradient, four coordinates at a time.
// Units: nats a unit of θ. Bindings: none. Twin: src/trusted/engine/cpu/gradient.rs.

fn row_gradient(forms: vec4<f32>) -> vec4<f32> {
    return forms;
}
