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

fn clip_factor(raw: f32, square: f32) -> Factor {
    let norm = sqrt(square);
    let bits = bitcast<u32>(norm);
    let scaled = raw * params.scale;
    let size = abs(scaled);
    // Neither infinite nor NaN; by bits, as drivers may assume there are none.
    let known = bits < 0x7f800000u && !is_nan(scaled);
    let inside = known && size * norm <= params.limit && size <= LARGEST_FACTOR;
    // The last factor covers what root, quotient and product may be off: 6 ulp.
    let edge = min(params.limit / norm * (1.0 - 2e-6), LARGEST_FACTOR);
    let signed_edge = select(0.0, select(edge, -edge, scaled < 0.0), known && bits > 0u);
    return Factor(select(signed_edge, scaled, inside), select(1u, 0u, inside));
}

// What is not a number, or too large to square, is 0.
fn sane(v: f32) -> f32 {
    // 1e18, by its bits: drivers may assume that nothing is NaN.
    return select(0.0, v, (bitcast<u32>(v) & 0x7fffffffu) <= 0x5d5e0b6bu);
}
