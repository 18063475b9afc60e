// Shared piece: rows of 16-bit integers, two features a word, the one of even number in the low
// half. Twin: src/trusted/data/storage.rs (Grid::value).
//
// Formula: x = m·step in one product of f32, which gives the bits that the host's has. Word k of
// all rows is a row of the array `rows`; where features are odd, the last word's high half is 0.
// feature_of is one row's, four_of four rows'.

alias Cell = i32;
const FEATURES_A_WORD: u32 = 2u;

fn feature_of(cell: Cell, j: u32, step: f32) -> f32 {
    return f32((cell << (16u * ((j + 1u) % 2u))) >> 16u) * step;
}

fn four_of(cells: vec4<Cell>, j: u32, step: f32) -> vec4<f32> {
    return vec4<f32>((cells << vec4<u32>(16u * ((j + 1u) % 2u))) >> vec4<u32>(16u)) * step;
}
