// Gradient rows made from affine forms of the row, four at a time.
//
// Formula: v = row_gradient(o + W x); what is not a number, or too large to square, is 0;
// t = clip(scale, Σ v_j²).
// Units: grid steps. Needs gradient_clip.wgsl, clip_factor.wgsl and a model's `row_gradient`; a group of a
// chain is the vector of its offsets, then one of weights a feature:
// coefficients[first + (chain·groups + group)·(features + 1) + 1 + feature]. Behind those of all
// chains columns' steps follow, if there are any.
// Twin: src/trusted/engine/cpu/gradient.rs.
//
// | binding | kind | content |
// | 1       | read | rows[word·stride + row] |
// | 2       | read | labels (one vector of four when there are none) |

@group(0) @binding(1) var<storage, read> rows: array<Cell>;
@group(0) @binding(2) var<storage, read> labels: array<f32>;

// Coordinates of the workgroup's rows, where they fit: a thread's own, so without barriers.
var<workgroup> kept: array<vec4<f32>, KEPT * WORKGROUP>;

fn add_squares(v: vec4<f32>, square: f32) -> f32 {
    return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, square))));
}

fn fresh_coordinates(chain: u32, group: u32, row: u32) -> vec4<f32> {
    let groups = (params.dim + 3u) / 4u;
    var w = tile * params.vectors + (chain * groups + group) * (params.features + 1u);
    var forms = coefficients[w];
    let steps = tile * params.vectors + T * groups * (params.features + 1u);
    for (var j = 0u; j < params.features; j++) {
        w += 1u;
        let cell = rows[(j / FEATURES_A_WORD) * params.stride + row];
        let x = feature_of(cell, j, coefficients[steps + j / 4u][j % 4u]);
        forms = fma(coefficients[w], vec4<f32>(x), forms);
    }
    let v = row_gradient(forms);
    return vec4<f32>(sane(v.x), sane(v.y), sane(v.z), sane(v.w));
}

fn row_factors(row: u32, lane: u32, label: f32) -> array<Factor, T> {
    let groups = (params.dim + 3u) / 4u;
    var factors: array<Factor, T>;
    for (var c = 0u; c < T; c++) {
        var square = 0.0;
        for (var group = 0u; group < groups; group++) {
            let v = fresh_coordinates(c, group, row);
            if KEEP {
                kept[(c * groups + group) * WORKGROUP + lane] = v;
            }
            square = add_squares(v, square);
        }
        factors[c] = clip_factor(1.0, square);
    }
    return factors;
}

fn row_coordinates(chain: u32, group: u32, row: u32, lane: u32) -> vec4<f32> {
    if KEEP {
        let groups = (params.dim + 3u) / 4u;
        return kept[(chain * groups + group) * WORKGROUP + lane];
    }
    return fresh_coordinates(chain, group, row);
}
