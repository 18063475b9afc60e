// Shared piece of gradient passes: what they are bound to, and a row's clip factor.
//
// Formula: t = raw·scale where |t|·√square ≤ limit, else ±limit/√square; 0 where that is not
// a number. This makes a row fit; that it fits is checked on its integers (gradient_sum.wgsl).
// Units: grid steps. Needs softplus.wgsl. Twin: src/trusted/engine/cpu/gradient.rs.
//
// | binding | kind       | content |
// | 0       | uniform    | params (twin: GradientParams in src/trusted/engine/gpu/gradient.rs) |
// | 1       | read       | rows[feature·stride + row] |
// | 2       | read       | labels ±1 (one vector of four when there are none) |
// | 3       | read       | coefficients of the tile, see gradient_score and gradient_forms |
// | 4       | read-write | answers, pairs of halves, see gradient_sum |

struct GradientParams {
    rows: u32,
    stride: u32,
    features: u32,
    dim: u32,
    coefficients: u32,
    labelled: u32,
    slots: u32,
    first_answer: u32,
    bound_high: u32,
    bound_low: u32,
    scale: f32,
    limit: f32,
}

@group(0) @binding(0) var<uniform> params: GradientParams;
@group(0) @binding(1) var<storage, read> rows: array<f32>;
@group(0) @binding(2) var<storage, read> labels: array<f32>;
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> answers: array<atomic<i32>>;

// Coordinates of the workgroup's rows, where they fit: a thread's own, so without barriers.
var<workgroup> kept: array<vec4<f32>, KEPT * WORKGROUP>;

struct Factor {
    t: f32,
    clipped: u32,
}

fn add_squares(v: vec4<f32>, square: f32) -> f32 {
    return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, square))));
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
