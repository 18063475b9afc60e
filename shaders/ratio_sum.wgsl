// Σ clip(r_i) over all rows of a chunk, T chains in one read of the rows.
//
// Formula: for each row the K affine forms of each chain, row_ratio, quantize, exact sum.
// Units: grid steps. K (forms), C (constants of the row function, which follow the forms), T
// (chains in the tile) are constants put before this text.
//
// | binding | kind    | content |
// | 0       | uniform | params (twin: Params in src/trusted/engine/gpu/buffers.rs) |
// | 1       | read    | rows, four to a vector: rows[feature·quads + quad] |
// | 2       | read    | labels (binary ones ±1), four to a vector (one vector when there are none) |
// | 3       | read    | per tile: T scales, T bounds, K·T offsets, C·T constants, features·K·T weights |
// | 4       | write   | sums[slot·T + chain] = (low halves, high halves, saturated, 0) |
//
// Dispatch: one workgroup for `quads_per_thread · WORKGROUP` quads; 4·quads_per_thread
// ≤ 1024 rows a thread keep |sum| ≤ 2^30. Twin: src/trusted/engine/cpu/kernel.rs.

struct Params {
    rows: u32,
    quads: u32,
    features: u32,
    quads_per_thread: u32,
    first_slot: u32,
    coefficients: u32,
    labelled: u32,
    entries: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> labels: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> coefficients: array<f32>;
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<i32>>;

override WORKGROUP: u32 = 256u;

var<workgroup> low: array<atomic<i32>, T>;
var<workgroup> high: array<atomic<i32>, T>;
var<workgroup> saturated: array<atomic<i32>, T>;

@compute @workgroup_size(WORKGROUP)
fn ratio_sum(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let workgroup = group.y * groups.x + group.x;
    let weights = params.coefficients + 2u * T + (K + C) * T;
    var sum = array<i32, T>();
    var hits = array<i32, T>();

    let first = workgroup * params.quads_per_thread * WORKGROUP + lane;
    for (var step = 0u; step < params.quads_per_thread; step++) {
        let quad = first + step * WORKGROUP;
        if quad >= params.quads {
            break;
        }
        var forms: array<vec4<f32>, K * T>;
        for (var f = 0u; f < K * T; f++) {
            forms[f] = vec4<f32>(coefficients[params.coefficients + 2u * T + f]);
        }
        var w = weights;
        var at = quad;
        for (var j = 0u; j < params.features; j++) {
            let x = rows[at];
            for (var f = 0u; f < K * T; f++) {
                forms[f] = fma(vec4<f32>(coefficients[w + f]), x, forms[f]);
            }
            w += K * T;
            at += params.quads;
        }
        var label = vec4<f32>(0.0);
        if params.labelled == 1u {
            label = labels[quad];
        }
        for (var c = 0u; c < T; c++) {
            let scale = coefficients[params.coefficients + c];
            let bound = i32(coefficients[params.coefficients + T + c]);
            var row_forms: array<f32, K + C>;
            for (var k = K; k < K + C; k++) {
                row_forms[k] = coefficients[params.coefficients + (2u + k) * T + c];
            }
            for (var r = 0u; r < 4u; r++) {
                for (var k = 0u; k < K; k++) {
                    row_forms[k] = forms[k * T + c][r];
                }
                let q = quantize(row_ratio(row_forms, label[r]) * scale, bound);
                let live = 4u * quad + r < params.rows;
                sum[c] += select(0, q, live);
                hits[c] += select(0, 1, live && abs(q) == bound);
            }
        }
    }

    if lane < T {
        atomicStore(&low[lane], 0);
        atomicStore(&high[lane], 0);
        atomicStore(&saturated[lane], 0);
    }
    workgroupBarrier();
    for (var c = 0u; c < T; c++) {
        atomicAdd(&low[c], low_half(sum[c]));
        atomicAdd(&high[c], high_half(sum[c]));
        atomicAdd(&saturated[c], hits[c]);
    }
    workgroupBarrier();
    if lane < T {
        sums[(params.first_slot + workgroup) * T + lane] =
            vec4<i32>(atomicLoad(&low[lane]), atomicLoad(&high[lane]), atomicLoad(&saturated[lane]), 0);
    }
}
