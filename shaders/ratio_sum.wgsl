// Σ clip(r_i) over some rows of a chunk, several tiles of T chains.
//
// Formula: for each row the K affine forms of each chain, row_ratio, quantize, exact sum.
// Units: grid steps. K (forms), C (constants of the row function, which follow the forms), T
// (chains in a tile), BLOCKS (blocks of features), ROWS_A_TURN (one or two), TILE_VECTORS and
// WEIGHTS (vectors of a tile's coefficients, and those before its weights) are constants put before
// this text. The lines that begin with `//=` are replaced by straight text for these numbers of
// chains and features (src/trusted/engine/gpu/text.rs): a loop over chains would index registers
// and guard each turn.
//
// | binding | kind    | content |
// | 0       | uniform | params (twin: SumParams in src/trusted/engine/gpu/ratio.rs) |
// | 1       | read    | rows, four to a vector: rows[word·quads + quad] |
// | 2       | read    | labels (binary ones ±1), four to a vector (one vector when there are none); or weights at an anchor, and behind all of them labels |
// | 3       | read    | per tile: T scales, T bounds, K·T offsets, C·T constants; per feature its column's step, if any, and K·T weights |
// | 4       | read-write | answers: per slot, tile and chain low half, high half and saturated rows |
//
// Dispatch: a workgroup for each tile and `quads_per_thread · WORKGROUP` quads, the tiles of the
// same quads side by side, so that they read rows once; 4·quads_per_thread ≤ 1024 rows a thread
// keep |sum| ≤ 2^30. The workgroups of a slot add to its answers, so that few come back: at most
// 128,000/WORKGROUP of them, so that no half overflows. Twin: src/trusted/engine/cpu/kernel.rs.

struct SumParams {
    rows: u32,
    quads: u32,
    first_quad: u32,
    end_quad: u32,
    quads_per_thread: u32,
    slots: u32,
    tiles: u32,
    labelled: u32,
}

@group(0) @binding(0) var<uniform> params: SumParams;
@group(0) @binding(1) var<storage, read> rows: array<vec4<Cell>>;
@group(0) @binding(2) var<storage, read> labels: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> answers: array<atomic<i32>>;

override WORKGROUP: u32 = 256u;

var<workgroup> low: array<atomic<i32>, T>;
var<workgroup> high: array<atomic<i32>, T>;
var<workgroup> saturated: array<atomic<i32>, T>;

// A number of a tile before its weights.
fn number(head: u32, i: u32) -> f32 {
    return coefficients[head + i / 4u][i % 4u];
}

// The next rows first.
fn moved(v: vec4<f32>) -> vec4<f32> {
    if ROWS_A_TURN == 1u {
        return v.yzww;
    }
    return v.zwzw;
}

// Adds a row's ratio to a chain's sum, and whether it is at the bound, which is at least 1.
fn add_ratio(
    sum: vec2<i32>,
    forms: array<f32, K + C>,
    label: Label,
    scale: f32,
    bound: i32,
    live: bool,
) -> vec2<i32> {
    let q = select(0, quantize(row_ratio(forms, label) * scale, bound), live);
    return sum + vec2<i32>(q, i32(abs(q) == bound));
}

@compute @workgroup_size(WORKGROUP)
fn ratio_sum(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    // By the axis alone: so a compiler knows that a workgroup reads the same coefficients.
    let tile = group.x;
    let workgroup = group.z * groups.y + group.y;
    let head = tile * TILE_VECTORS;
    let quads = params.quads;
    let first = params.first_quad
        + workgroup * params.quads_per_thread * WORKGROUP + lane;
    //= c: var sum{c} = vec2<i32>();
    //= c: let scale{c} = number(head, {c}u);
    //= c: let bound{c} = i32(number(head, T + {c}u));
    for (var step = 0u; step < params.quads_per_thread; step++) {
        let quad = first + step * WORKGROUP;
        if quad >= params.end_quad {
            break;
        }
        var at = quad;
        var w = head + WEIGHTS;
        //= kc: var f{k}_{c} = vec4<f32>(number(head, (2u + {k}u) * T + {c}u));
        //= first features
        for (var block = 0u; block < BLOCKS; block++) {
            //= features
        }
        //= last features
        var label = vec4<f32>(0.0);
        var second = vec4<f32>(0.0);
        if params.labelled == 1u {
            label = labels[quad];
        }
        if LABELS == 2u {
            second = labels[quads + quad];
        }
        // The vectors move on: a component that a loop picks would keep them out of registers.
        for (var r = 0u; r < 4u; r += ROWS_A_TURN) {
            //= cr: var forms{c}_{r}: array<f32, K + C>;
            //= kcr: forms{c}_{r}[{k}u] = f{k}_{c}[{r}];
            //= icr: forms{c}_{r}[K + {i}u] = number(head, (2u + K + {i}u) * T + {c}u);
            //= r: let label{r} = label_of(label[{r}], second[{r}]);
            //= r: let live{r} = 4u * quad + r + {r}u < params.rows;
            //= rc: sum{c} = add_ratio(sum{c}, forms{c}_{r}, label{r}, scale{c}, bound{c}, live{r});
            //= kc: f{k}_{c} = moved(f{k}_{c});
            label = moved(label);
            second = moved(second);
        }
    }

    if lane < T {
        atomicStore(&low[lane], 0);
        atomicStore(&high[lane], 0);
        atomicStore(&saturated[lane], 0);
    }
    workgroupBarrier();
    //= c: atomicAdd(&low[{c}], low_half(sum{c}.x));
    //= c: atomicAdd(&high[{c}], high_half(sum{c}.x));
    //= c: atomicAdd(&saturated[{c}], sum{c}.y);
    workgroupBarrier();
    if lane < T {
        let slot = workgroup % params.slots;
        let at = 3u * ((slot * params.tiles + tile) * T + lane);
        let sum = atomicLoad(&low[lane]);
        atomicAdd(&answers[at], low_half(sum));
        atomicAdd(&answers[at + 1u], atomicLoad(&high[lane]) + high_half(sum));
        atomicAdd(&answers[at + 2u], atomicLoad(&saturated[lane]));
    }
}
