// Gradient rows that are a score times the row's features, and behind them the scores of S shared
// parameters; or of rows with an offset, S = 0.
//
// Formula: s = scores(x·θ, y, φ) where x ends with the row's offset, if it has one, whose weight is
// 1; v = (s_0 x_1, …, s_0 x_{dim−S}, s_1, …, s_S); what is not a number, or too large to square,
// is 0; t = clip(scale, Σ v_j²).
// Units: grid steps. S and T (chains) are constants put before this text; lines that begin with
// `//=` are repeated for the chains (src/trusted/engine/gpu/text.rs). Needs gradient_clip.wgsl,
// clip_factor.wgsl and a model's `scores`. Twin: src/trusted/engine/cpu/gradient.rs.
//
// | binding | kind | content |
// | 1       | read | rows[word·stride + row] |
// | 2       | read | labels |
// | 3       | read | per chain: S shared parameters, a weight a feature; behind all chains columns' steps, if any |

@group(0) @binding(1) var<storage, read> rows: array<Cell>;
@group(0) @binding(2) var<storage, read> labels: array<f32>;

// Scores of the workgroup's rows: a thread's own, so without barriers.
var<workgroup> own_scores: array<f32, T * (S + 1u) * WORKGROUP>;

fn number(i: u32) -> f32 {
    let at = tile * params.vectors * 4u + i;
    return coefficients[at / 4u][at % 4u];
}

fn feature(j: u32, row: u32) -> f32 {
    let cell = rows[(j / FEATURES_A_WORD) * params.stride + row];
    return feature_of(cell, j, number(T * (S + params.features) + j));
}

fn score_at(chain: u32, k: u32, lane: u32) -> u32 {
    return (chain * (S + 1u) + k) * WORKGROUP + lane;
}

fn row_factors(row: u32, lane: u32, label: f32) -> array<Factor, T> {
    //= c: var eta{c} = 0.0;
    var size = 0.0;
    for (var j = 0u; j < params.features; j++) {
        let x = feature(j, row);
        // What lies behind the features is an offset.
        size = fma(x, select(0.0, x, j < params.dim - S), size);
        //= c: eta{c} = fma(number({c}u * (S + params.features) + S + j), x, eta{c});
    }
    var eta: array<f32, T>;
    //= c: eta[{c}u] = eta{c};
    var factors: array<Factor, T>;
    for (var c = 0u; c < T; c++) {
        var parameters: array<f32, S + 1u>;
        for (var k = 0u; k < S; k++) {
            parameters[k] = number(c * (S + params.features) + k);
        }
        var s = scores(eta[c], label, parameters);
        var square = 0.0;
        for (var k = 0u; k <= S; k++) {
            // A η that is not a number makes no score.
            let score = select(sane(s[k]), 0.0, is_nan(eta[c]));
            square = fma(score * score, select(1.0, size, k == 0u), square);
            own_scores[score_at(c, k, lane)] = score;
        }
        factors[c] = clip_factor(1.0, square);
    }
    return factors;
}

fn row_coordinate(chain: u32, j: u32, row: u32, lane: u32) -> f32 {
    let features = params.dim - S;
    if j < features {
        return sane(own_scores[score_at(chain, 0u, lane)] * feature(j, row));
    }
    if j < params.dim {
        return own_scores[score_at(chain, j - features + 1u, lane)];
    }
    return 0.0;
}

fn row_coordinates(chain: u32, group: u32, row: u32, lane: u32) -> vec4<f32> {
    let j = 4u * group;
    return vec4<f32>(
        row_coordinate(chain, j, row, lane),
        row_coordinate(chain, j + 1u, row, lane),
        row_coordinate(chain, j + 2u, row, lane),
        row_coordinate(chain, j + 3u, row, lane),
    );
}
