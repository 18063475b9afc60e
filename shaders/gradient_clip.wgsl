// Shared piece of gradient passes: what they are bound to, and answers.
//
// That a row fits its bound is checked by gradient_sum.wgsl on the row's integers, by
// gradient_score.wgsl on the factor.
// params.rows is where the dispatch's rows end, params.stride the chunk's.
// Units: grid steps. Needs clip_factor.wgsl.
//
// | binding | kind       | content |
// | 0       | uniform    | params (twin: GradientParams in src/trusted/engine/gpu/gradient.rs) |
// | 1, 2    | read       | rows and labels ±1: see gradient_score and gradient_forms |
// | 3       | read       | coefficients, params.vectors a tile: likewise |
// | 4       | read-write | answers, params.answers a tile: per slot and chain dim sums, then clipped rows, each as low and high halves |

struct GradientParams {
    rows: u32,
    stride: u32,
    features: u32,
    dim: u32,
    vectors: u32,
    labelled: u32,
    slots: u32,
    answers: u32,
    shares: u32,
    first_group: u32,
    bound_high: u32,
    bound_low: u32,
    scale: f32,
    limit: f32,
    edge: f32,
}

@group(0) @binding(0) var<uniform> params: GradientParams;
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> answers: array<atomic<i32>>;

// The tile of chains that the workgroup sums.
var<private> tile: u32;

// Sets it, and says which of the tile's workgroups this is. Tiles of the same rows are side by
// side, so that rows are read from memory once.
fn take_place(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    tile = group.x;
    return params.first_group + group.z * groups.y + group.y;
}

fn add_answer(slot: u32, chain: u32, entry: u32, value: i32) {
    let entries = params.dim + 1u;
    let at = tile * params.answers + 2u * ((slot * T + chain) * entries + entry);
    atomicAdd(&answers[at], low_half(value));
    atomicAdd(&answers[at + 1u], high_half(value));
}
