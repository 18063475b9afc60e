// Shared piece of gradient passes: what they are bound to, a row's clip factor, and answers.
//
// Formula: t = raw·scale where |t|·√square ≤ limit, else ±limit/√square; 0 where that is not
// a number. This makes a row fit; that it fits is checked after it (gradient_sum.wgsl on the row's
// integers, gradient_score.wgsl on the factor).
// Units: grid steps. Needs softplus.wgsl. Twin: src/trusted/engine/cpu/gradient.rs.
//
// | binding | kind       | content |
// | 0       | uniform    | params (twin: GradientParams in src/trusted/engine/gpu/gradient.rs) |
// | 1, 2    | read       | rows and labels ±1: see gradient_score and gradient_forms |
// | 3       | read       | coefficients of the tile: likewise |
// | 4       | read-write | answers: per slot and chain dim sums, then clipped rows, each as low and high halves |

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
    edge: f32,
}

@group(0) @binding(0) var<uniform> params: GradientParams;
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> answers: array<atomic<i32>>;

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

fn add_answer(slot: u32, chain: u32, entry: u32, value: i32) {
    let entries = params.dim + 1u;
    let at = params.first_answer + 2u * ((slot * T + chain) * entries + entry);
    atomicAdd(&answers[at], low_half(value));
    atomicAdd(&answers[at + 1u], high_half(value));
}
