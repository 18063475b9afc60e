// clip(r_i) of listed rows of a chunk: one invocation an entry.
//
// Formula: the K affine forms of the entry's row and chain, row_ratio, quantize.
// Units: grid steps. K (forms) and C (constants, which follow the forms) are constants put
// before this text; T = 1 in the coefficients.
//
// | binding | kind    | content |
// | 0       | uniform | params (twin: Params in src/trusted/engine/gpu/buffers.rs) |
// | 1       | read    | rows, four to a vector: rows[word·quads + quad] |
// | 2       | read    | labels (binary ones ±1), four to a vector (one vector when there are none); or weights at an anchor, and behind all of them labels |
// | 3       | read    | per chain: scale, bound, K offsets, C constants, features·K weights; from `coefficients` on columns' steps |
// | 4       | read    | entries (row in this chunk, chain, place of the answer, 0) |
// | 5       | write   | answers, one i32 an entry |
//
// Dispatch: ⌈entries / WORKGROUP⌉ workgroups. Twin: src/trusted/engine/cpu/kernel.rs.

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
@group(0) @binding(1) var<storage, read> rows: array<vec4<Cell>>;
@group(0) @binding(2) var<storage, read> labels: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> coefficients: array<f32>;
@group(0) @binding(4) var<storage, read> entries: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> answers: array<i32>;

override WORKGROUP: u32 = 256u;

@compute @workgroup_size(WORKGROUP)
fn ratio_rows(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = (group.z * groups.y + group.y) * WORKGROUP + lane;
    if index >= params.entries {
        return;
    }
    let entry = entries[params.first_slot + index];
    let quad = entry.x / 4u;
    let r = entry.x % 4u;
    let base = entry.y * (2u + K + C + params.features * K);
    var forms: array<f32, K + C>;
    for (var k = 0u; k < K + C; k++) {
        forms[k] = coefficients[base + 2u + k];
    }
    for (var j = 0u; j < params.features; j++) {
        let cell = rows[(j / FEATURES_A_WORD) * params.quads + quad][r];
        let x = feature_of(cell, j, coefficients[params.coefficients + j]);
        for (var k = 0u; k < K; k++) {
            forms[k] = fma(coefficients[base + 2u + K + C + j * K + k], x, forms[k]);
        }
    }
    var label = 0.0;
    var second = 0.0;
    if params.labelled == 1u {
        label = labels[quad][r];
    }
    if LABELS == 2u {
        second = labels[params.quads + quad][r];
    }
    let steps = row_ratio(forms, label_of(label, second)) * coefficients[base];
    answers[entry.z] = quantize(steps, i32(coefficients[base + 1u]));
}
