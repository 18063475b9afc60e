// Log ratios and clipped gradients of a network of layers, over a batch of rows: what lies between
// rows, layers and answers.
//
// Formula: a ratio is quantize((log p(y|x, θ') − log p(y|x, θ))·scale). A gradient's coordinates are
// q = round(t·v), t of clip_factor; then Σ q² is computed exactly, and a row over bound² counts as
// 0. So Σ q_j² ≤ bound² holds for NaN, infinities and any rounding.
// A thread adds its coordinate's integers of a batch, of 1,024 rows at most (|q| ≤ bound ≤ 2^20, so
// that sums stay below 2^31), then their halves to the answers.
// Units: grid steps. Needs a cells_*.wgsl, softplus.wgsl, fixed_point.wgsl, clip_factor.wgsl and
// network_layers.wgsl. THREADS and LANES are constants put before this text.
//
// | binding | kind       | content |
// | 0       | uniform    | params (twin: NetworkParams in src/trusted/engine/gpu/network.rs) |
// | 1, 2    | read       | rows[word·stride + row], and their labels |
// | 3       | read       | weights: per chain θ, and behind it θ' for ratios; from `steps` on columns' steps |
// | 4       | read       | listed rows of this chunk |
// | 5       | read-write | answers: ratios of listed rows, in their order; or from first_answer on pairs of halves: in slots of a sum and a count of saturated rows; or d sums and a count of clipped rows |
// | 6       | read-write | scratch, params.room words a row of the batch: network_layers.wgsl, and behind the notes two words of this text |
//
// Dispatch: the host runs the steps of src/trusted/engine/gpu/network.rs one after the other, a
// thread for each value of each row. Twin: src/trusted/engine/cpu/layers.rs and src/network/head.rs.

struct NetworkParams {
    // The batch.
    row_stride: u32,
    first: u32,
    items: u32,
    listed: u32,
    labelled: u32,
    steps: u32,
    weights: u32,
    first_answer: u32,
    bound_high: u32,
    bound_low: u32,
    bound: i32,
    scale: f32,
    limit: f32,
    // The network.
    room: u32,
    features: u32,
    values: u32,
    parameters: u32,
    outputs: u32,
    // The layer.
    input_at: u32,
    input_height: u32,
    input_width: u32,
    input_channels: u32,
    input_size: u32,
    output_at: u32,
    output_height: u32,
    output_width: u32,
    output_channels: u32,
    output_size: u32,
    first_weight: u32,
    kernel_height: u32,
    kernel_width: u32,
    stride: u32,
    padding: u32,
    group_channels: u32,
    notes_at: u32,
    activation: u32,
}

@group(0) @binding(0) var<uniform> params: NetworkParams;
@group(0) @binding(1) var<storage, read> rows: array<Cell>;
@group(0) @binding(2) var<storage, read> labels: array<f32>;
@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read> entries: array<u32>;
@group(0) @binding(5) var<storage, read_write> answers: array<atomic<i32>>;
@group(0) @binding(6) var<storage, read_write> scratch: array<u32>;

// 1.5·2^23: the low bits of v + ROUND are v's nearest integer.
const ROUND: f32 = 12582912.0;

// A thread's: value k of the item whose words begin at `row`.
struct Part {
    live: bool,
    item: u32,
    row: u32,
    k: u32,
}

// `count` values of each row.
fn part_of(lane: u32, group: vec3<u32>, groups: vec3<u32>, count: u32) -> Part {
    let thread = (group.z * groups.y + group.y) * THREADS + lane;
    let item = thread / count;
    return Part(item < params.items, item, item * params.room, thread % count);
}

// An item's row of this chunk.
fn row_of(item: u32) -> u32 {
    if params.listed == 1u {
        return entries[params.first + item];
    }
    return params.first + item;
}

fn label_of(item: u32) -> f32 {
    if params.labelled == 1u {
        return labels[row_of(item)];
    }
    return 0.0;
}

fn add_halves(at: u32, value: i32) {
    atomicAdd(&answers[at], low_half(value));
    atomicAdd(&answers[at + 1u], high_half(value));
}

// A row's words: its features, and zeros where another row's may be.
@compute @workgroup_size(THREADS)
fn features(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.room);
    if !part.live {
        return;
    }
    if part.k >= params.features {
        scratch[part.row + part.k] = 0u;
        return;
    }
    let word = part.k / FEATURES_A_WORD;
    let cell = rows[word * params.row_stride + row_of(part.item)];
    var step = 0.0;
    if FEATURES_A_WORD == 2u {
        step = weights[params.steps + part.k];
    }
    set_value(part.row, part.k, feature_of(cell, part.k, step));
}

fn output(row: u32, k: u32) -> f32 {
    return value(row, params.values - params.outputs + k);
}

// Sum of e^(o − top) over classes, and top.
fn weigh_classes(row: u32) -> vec2<f32> {
    var top = output(row, 0u);
    for (var k = 1u; k < params.outputs; k++) {
        top = max(top, output(row, k));
    }
    var sum = 0.0;
    for (var k = 0u; k < params.outputs; k++) {
        sum += exp_accurate(output(row, k) - top);
    }
    return vec2<f32>(sum, top);
}

// log p(y | outputs).
fn log_density(row: u32, label: f32) -> f32 {
    if params.outputs == 1u {
        return -softplus(-label * output(row, 0u));
    }
    let all = weigh_classes(row);
    return output(row, u32(label)) - all.y - log1p_accurate(max(all.x - 1.0, 0.0));
}

// A row's own two words: its log density at θ; the sum over its classes and the largest of them;
// whether its integers count, and whether it was clipped.
fn own_at(row: u32) -> u32 {
    return row + params.room - 2u;
}

@compute @workgroup_size(THREADS)
fn density(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, 1u);
    if part.live {
        scratch[own_at(part.row)] = bitcast<u32>(log_density(part.row, label_of(part.item)));
    }
}

@compute @workgroup_size(THREADS)
fn ratio(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, 1u);
    if !part.live {
        return;
    }
    let before = bitcast<f32>(scratch[own_at(part.row)]);
    let steps = (log_density(part.row, label_of(part.item)) - before) * params.scale;
    let q = quantize(steps, params.bound);
    if params.listed == 1u {
        atomicStore(&answers[params.first + part.item], q);
        return;
    }
    let at = params.first_answer + 4u * (part.item % SLOTS);
    add_halves(at, q);
    add_halves(at + 2u, select(0, 1, abs(q) == params.bound));
}

@compute @workgroup_size(THREADS)
fn weigh(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, 1u);
    if part.live {
        let all = weigh_classes(part.row);
        scratch[own_at(part.row)] = bitcast<u32>(all.x);
        scratch[own_at(part.row) + 1u] = bitcast<u32>(all.y);
    }
}

// Derivatives of log p(y | outputs) in the outputs, which `weigh` weighed.
@compute @workgroup_size(THREADS)
fn head_errors(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.outputs);
    if !part.live {
        return;
    }
    let label = label_of(part.item);
    let at = params.values - params.outputs + part.k;
    if params.outputs == 1u {
        set_error(part.row, at, label / (1.0 + exp_accurate(label * output(part.row, 0u))));
        return;
    }
    let own = own_at(part.row);
    let all = bitcast<vec2<f32>>(vec2<u32>(scratch[own], scratch[own + 1u]));
    if part.k != u32(label) {
        set_error(part.row, at, -(exp_accurate(output(part.row, part.k) - all.y) / all.x));
        return;
    }
    // 1 − p_y as the sum of the others: no cancellation.
    var others = 0.0;
    for (var j = 0u; j < params.outputs; j++) {
        let share = exp_accurate(output(part.row, j) - all.y) / all.x;
        others += select(share, 0.0, j == part.k);
    }
    set_error(part.row, at, others);
}

var<workgroup> lanes: array<f32, LANES>;
// What the threads have of a row's Σ q²: units of 2^20, the rest, and every bit of any |q|.
var<workgroup> squares: array<vec3<u32>, LANES>;

// spent + q², in units of 2^20 and the rest; no more than 2^24 units are counted.
fn spend(spent: vec2<u32>, q: i32) -> vec2<u32> {
    let size = u32(abs(q));
    let top = size >> 10u;
    let low = size & 1023u;
    let cross = top * low;
    let rest = ((cross & 511u) << 11u) + low * low + spent.y;
    let units = spent.x + top * top + (cross >> 9u) + (rest >> 20u);
    return vec2<u32>(min(units, 0x1000000u), rest & 0xfffffu);
}

// Whether the squares of all threads are within bound²; an integer of 2^21 or more is not.
fn within_bound() -> bool {
    var sum = vec3<u32>(0u);
    for (var i = 0u; i < LANES; i++) {
        sum = vec3<u32>(sum.xy + squares[i].xy, sum.z | squares[i].z);
    }
    let units = sum.x + (sum.y >> 20u);
    let rest = sum.y & 0xfffffu;
    let high = params.bound_high;
    return (units < high || (units == high && rest <= params.bound_low)) && sum.z < 0x200000u;
}

// Gradients become integers, a workgroup a row.
@compute @workgroup_size(LANES)
fn clip(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let item = group.z * groups.y + group.y;
    let row = item * params.room;
    let gradient = row + 2u * params.values;
    var square = 0.0;
    for (var j = lane; j < params.parameters; j += LANES) {
        let v = sane(bitcast<f32>(scratch[gradient + j]));
        square = fma(v, v, square);
    }
    lanes[lane] = square;
    workgroupBarrier();
    square = 0.0;
    for (var i = 0u; i < LANES; i++) {
        square += lanes[i];
    }
    let factor = clip_factor(1.0, square);
    var spent = vec2<u32>(0u);
    var bits = 0u;
    for (var j = lane; j < params.parameters; j += LANES) {
        let v = sane(bitcast<f32>(scratch[gradient + j]));
        let q = bitcast<i32>(fma(v, factor.t, ROUND)) - bitcast<i32>(ROUND);
        scratch[gradient + j] = bitcast<u32>(q);
        spent = spend(spent, q);
        bits |= u32(abs(q));
    }
    squares[lane] = vec3<u32>(spent, bits);
    workgroupBarrier();
    if lane == 0u {
        scratch[own_at(row)] = select(0u, 1u, within_bound());
        scratch[own_at(row) + 1u] = factor.clipped;
    }
}

// A coordinate of all rows, and behind the last the rows that were clipped.
@compute @workgroup_size(THREADS)
fn add_up(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let j = (group.z * groups.y + group.y) * THREADS + lane;
    if j > params.parameters {
        return;
    }
    var sum = 0;
    for (var item = 0u; item < params.items; item++) {
        let row = item * params.room;
        if j == params.parameters {
            sum += i32(scratch[own_at(row) + 1u]);
        } else if scratch[own_at(row)] == 1u {
            sum += bitcast<i32>(scratch[row + 2u * params.values + j]);
        }
    }
    add_halves(params.first_answer + 2u * j, sum);
}
