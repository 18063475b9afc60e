// Row function of the two-component mixture: log ratio of one row, untempered.
//
// Formula: forms = (log ratio of component 1, log odds s of component 2, s' − s);
// ratio = forms[0] + softplus(s') − softplus(s).
// Units: nats. Bindings: none. Twin: src/models/mixture.rs, src/trusted/engine/cpu/kernel.rs.

fn row_ratio(forms: array<f32, K>, label: f32) -> f32 {
    return forms[0] + softplus_difference(forms[1], forms[2]);
}
