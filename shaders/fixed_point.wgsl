// Shared piece: the fixed-point grid and exact sums.
//
// Formula: q = clamp(round_ties_even(ratio · scale), ±bound), NaN → 0; the clamp that
// counts is on integers, so the sensitivity holds whatever the arithmetic before did.
// A sum of i32 is split into halves, value = high·2^16 + low with 0 ≤ low < 2^16; 256
// halves fit an i32 each, and integer atomics give the same bits in any order.
// Units: grid steps. Bindings: none. Twin: src/trusted/engine/grid.rs, src/trusted/engine/gpu/mod.rs.

fn quantize(steps: f32, bound: i32) -> i32 {
    let finite = clamp(steps, -1048577.0, 1048577.0);
    // The sum's low bits are the integer: fewer instructions than to round and to convert.
    let rounded = bitcast<i32>(finite + 12582912.0) - bitcast<i32>(12582912.0);
    let q = clamp(rounded, -bound, bound);
    return select(q, 0, (bitcast<u32>(steps) & 0x7fffffffu) > 0x7f800000u);
}

fn low_half(value: i32) -> i32 {
    return value & 0xffff;
}

fn high_half(value: i32) -> i32 {
    return value >> 16u;
}
