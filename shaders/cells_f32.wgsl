// Shared piece: rows of floats, a feature a word. Twin: src/trusted/data/storage.rs.
//
// Word k of all rows is a row of the array `rows`; `step` is not used.

alias Cell = f32;
const FEATURES_A_WORD: u32 = 1u;

fn feature_of(cell: Cell, j: u32, step: f32) -> f32 {
    return cell;
}

fn four_of(cells: vec4<Cell>, j: u32, step: f32) -> vec4<f32> {
    return cells;
}
