// Row function of the anchored two-component mixture: what the log ratio leaves over beyond
// its Chebyshev expansion, whose sums were released, untempered.
//
// Formula: softplus(s') − softplus(s) − Σ b_k T_k(t) (Clenshaw), forms = (t = x/B, log odds s
// of component 2, s' − s), then the constants b_0 .. b_K, C of them.
// Units: nats. Bindings: none. Needs softplus.wgsl. Twin: src/models/moments.rs,
// src/trusted/engine/cpu/kernel.rs.

fn row_ratio(forms: array<f32, K + C>, label: f32) -> f32 {
    var terms = forms;
    let t = terms[0];
    var last = 0.0;
    var before = 0.0;
    for (var k = C - 1u; k > 0u; k--) {
        let next = fma(2.0 * t, last, terms[K + k] - before);
        before = last;
        last = next;
    }
    let series = fma(t, last, terms[K] - before);
    return softplus_difference(terms[1], terms[2]) - series;
}
