// Gradient rows that are a score times the row: ∇_i = s(x·θ, y)·x.
//
// Formula: t = clip(s·scale, Σ x_j²), one square for every chain; coordinates are the row's.
// Units: grid steps. Needs gradient_clip.wgsl and a model's `score`; the weights of four
// features of a chain are one vector: coefficients[first + group·T + chain].
// Twin: src/trusted/engine/cpu/gradient.rs.

// Features 4·group .. 4·group + 3 of a row, zeros beyond the last.
fn row_features(group: u32, row: u32) -> vec4<f32> {
    let j = 4u * group;
    let step = params.stride;
    var at = j * step + row;
    if j + 4u <= params.features {
        return vec4<f32>(rows[at], rows[at + step], rows[at + 2u * step], rows[at + 3u * step]);
    }
    // One to three are left.
    var x = vec4<f32>(rows[at], 0.0, 0.0, 0.0);
    if j + 1u < params.features {
        at += step;
        x.y = rows[at];
    }
    if j + 2u < params.features {
        at += step;
        x.z = rows[at];
    }
    return x;
}

fn row_factors(row: u32, lane: u32, label: f32) -> array<Factor, T> {
    var eta = array<f32, T>();
    var square = 0.0;
    for (var group = 0u; 4u * group < params.features; group++) {
        let x = row_features(group, row);
        if KEEP {
            kept[group * WORKGROUP + lane] = x;
        }
        square = add_squares(x, square);
        for (var c = 0u; c < T; c++) {
            let w = coefficients[params.coefficients + group * T + c];
            eta[c] = fma(w.w, x.w, fma(w.z, x.z, fma(w.y, x.y, fma(w.x, x.x, eta[c]))));
        }
    }
    var factors: array<Factor, T>;
    for (var c = 0u; c < T; c++) {
        // A η that is not a number makes no factor.
        let s = select(score(eta[c], label), eta[c], is_nan(eta[c]));
        factors[c] = clip_factor(s, square);
    }
    return factors;
}

// Coordinates 4·group .. 4·group + 3, the same for every chain.
fn row_coordinates(chain: u32, group: u32, row: u32, lane: u32) -> vec4<f32> {
    if KEEP {
        return kept[group * WORKGROUP + lane];
    }
    return row_features(group, row);
}
