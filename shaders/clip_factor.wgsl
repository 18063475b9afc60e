// Shared piece: what a row's gradient is multiplied by.
//
// Formula: t = raw·scale where |t|·√square ≤ limit, else ±limit/√square; 0 where that is not
// a number. This makes a row fit; that it fits is checked after it, on integers.
// Units: grid steps. Needs softplus.wgsl, and `scale` and `limit` among params; LARGEST_FACTOR is a
// constant put before this text. Twin: src/trusted/engine/cpu/gradient.rs.

struct Factor {
    t: f32,
    clipped: u32,
}

// What clips rows of one norm: the norm, and the factor of a row at the limit, or 0 for none.
struct Edge {
    norm: f32,
    factor: f32,
}

fn edge_of(square: f32) -> Edge {
    let norm = sqrt(square);
    let bits = bitcast<u32>(norm);
    // The last factor covers what root, quotient and product may be off: 6 ulp.
    let factor = min(params.limit / norm * (1.0 - 2e-6), LARGEST_FACTOR);
    // Neither infinite nor NaN; by bits, as drivers may assume there are none.
    return Edge(norm, select(0.0, factor, bits > 0u && bits < 0x7f800000u));
}

fn clip_at(raw: f32, edge: Edge) -> Factor {
    let scaled = raw * params.scale;
    let size = abs(scaled);
    let known = bitcast<u32>(edge.norm) < 0x7f800000u && !is_nan(scaled);
    let inside = known && size * edge.norm <= params.limit && size <= LARGEST_FACTOR;
    let sign = bitcast<u32>(scaled) & 0x80000000u;
    let clipped = select(0.0, bitcast<f32>(bitcast<u32>(edge.factor) | sign), known);
    return Factor(select(clipped, scaled, inside), select(1u, 0u, inside));
}

fn clip_factor(raw: f32, square: f32) -> Factor {
    return clip_at(raw, edge_of(square));
}

// What is not a number, or too large to square, is 0.
fn sane(v: f32) -> f32 {
    // 1e18, by its bits: drivers may assume that nothing is NaN.
    return select(0.0, v, (bitcast<u32>(v) & 0x7fffffffu) <= 0x5d5e0b6bu);
}
