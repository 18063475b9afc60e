// Shared piece: a network's layers, forward and backward, many rows side by side. A thread makes one
// value of one row, so that no loop is longer than the values it reads: Mesa's software driver ends
// a thread's loops, silently, after 65,535 turns in all.
//
// A row has params.room words of `scratch`: its values between all layers, features first; the
// derivatives in them, params.values further on; its gradient; the layers' own notes. Of value
// (y, x, c) of a volume the number is (y·width + x)·channels + c.
// Units: none. Needs softplus.wgsl and network_pass.wgsl, whose `part` says which value of which
// row is a thread's. Twin: src/network/evaluate.rs.

struct Place {
    y: u32,
    x: u32,
    c: u32,
}

fn place_of(k: u32, width: u32, channels: u32) -> Place {
    let place = k / channels;
    return Place(place / width, place % width, k % channels);
}

fn value(row: u32, i: u32) -> f32 {
    return bitcast<f32>(scratch[row + i]);
}

fn error(row: u32, i: u32) -> f32 {
    return bitcast<f32>(scratch[row + params.values + i]);
}

fn set_value(row: u32, i: u32, v: f32) {
    scratch[row + i] = bitcast<u32>(v);
}

fn set_error(row: u32, i: u32, v: f32) {
    scratch[row + params.values + i] = bitcast<u32>(v);
}

fn set_gradient(row: u32, j: u32, v: f32) {
    scratch[row + 2u * params.values + params.first_weight + j] = bitcast<u32>(v);
}

// Whether a row (or column), counted with the padding in front, lies in the input.
fn within(padded: u32, size: u32) -> bool {
    return padded >= params.padding && padded < params.padding + size;
}

const OUTSIDE: u32 = 0xffffffffu;

// Which window, along one axis, has its k-th row (or column) at `at`; OUTSIDE if none has.
fn window_at(at: u32, k: u32, windows: u32) -> u32 {
    let padded = at + params.padding;
    if padded < k || (padded - k) % params.stride != 0u {
        return OUTSIDE;
    }
    let window = (padded - k) / params.stride;
    return select(OUTSIDE, window, window < windows);
}

// The number of the k-th value of one channel's window.
fn of_window(at: Place, k: u32) -> u32 {
    let y = at.y * params.stride + k / params.kernel_width;
    let x = at.x * params.stride + k % params.kernel_width;
    return params.input_at + (y * params.input_width + x) * params.input_channels + at.c;
}

@compute @workgroup_size(THREADS)
fn sums(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.output_size);
    if !part.live {
        return;
    }
    let at = place_of(part.k, params.output_width, params.output_channels);
    let w = params.weights + params.first_weight;
    let window = params.kernel_height * params.kernel_width;
    var sum = weights[w + window * params.input_channels * params.output_channels + at.c];
    for (var ky = 0u; ky < params.kernel_height; ky++) {
        let y = at.y * params.stride + ky;
        if !within(y, params.input_height) {
            continue;
        }
        for (var kx = 0u; kx < params.kernel_width; kx++) {
            let x = at.x * params.stride + kx;
            if !within(x, params.input_width) {
                continue;
            }
            let place = (y - params.padding) * params.input_width + x - params.padding;
            let input = params.input_at + place * params.input_channels;
            let from_here = (ky * params.kernel_width + kx) * params.input_channels;
            for (var c = 0u; c < params.input_channels; c++) {
                let by = weights[w + (from_here + c) * params.output_channels + at.c];
                sum = fma(by, value(part.row, input + c), sum);
            }
        }
    }
    set_value(part.row, params.output_at + part.k, sum);
}

@compute @workgroup_size(THREADS)
fn sums_in_weights(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let window = params.kernel_height * params.kernel_width;
    let count = window * params.input_channels * params.output_channels;
    let part = part_of(lane, group, groups, count + params.output_channels);
    if !part.live {
        return;
    }
    let o = part.k % params.output_channels;
    var sum = 0.0;
    let at = place_of(part.k / params.output_channels, params.kernel_width, params.input_channels);
    for (var y = 0u; y < params.output_height; y++) {
        let row = y * params.stride + at.y;
        if part.k < count && !within(row, params.input_height) {
            continue;
        }
        for (var x = 0u; x < params.output_width; x++) {
            let e = error(part.row, params.output_at + (y * params.output_width + x) * params.output_channels + o);
            if part.k >= count {
                // The bias.
                sum += e;
                continue;
            }
            let column = x * params.stride + at.x;
            if within(column, params.input_width) {
                let place = (row - params.padding) * params.input_width + column - params.padding;
                let input = params.input_at + place * params.input_channels + at.c;
                sum = fma(e, value(part.row, input), sum);
            }
        }
    }
    set_gradient(part.row, part.k, sum);
}

@compute @workgroup_size(THREADS)
fn sums_in_input(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.input_size);
    if !part.live {
        return;
    }
    let at = place_of(part.k, params.input_width, params.input_channels);
    var sum = 0.0;
    for (var ky = 0u; ky < params.kernel_height; ky++) {
        let y = window_at(at.y, ky, params.output_height);
        if y == OUTSIDE {
            continue;
        }
        for (var kx = 0u; kx < params.kernel_width; kx++) {
            let x = window_at(at.x, kx, params.output_width);
            if x == OUTSIDE {
                continue;
            }
            let output = params.output_at + (y * params.output_width + x) * params.output_channels;
            let from_here = (ky * params.kernel_width + kx) * params.input_channels + at.c;
            let w = params.weights + params.first_weight + from_here * params.output_channels;
            for (var o = 0u; o < params.output_channels; o++) {
                sum = fma(weights[w + o], error(part.row, output + o), sum);
            }
        }
    }
    set_error(part.row, params.input_at + part.k, sum);
}

@compute @workgroup_size(THREADS)
fn largest(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.output_size);
    if !part.live {
        return;
    }
    let at = place_of(part.k, params.output_width, params.output_channels);
    var top = value(part.row, of_window(at, 0u));
    for (var i = 1u; i < params.kernel_height * params.kernel_width; i++) {
        top = max(top, value(part.row, of_window(at, i)));
    }
    set_value(part.row, params.output_at + part.k, top);
}

// The first of equal largest values has the whole derivative.
@compute @workgroup_size(THREADS)
fn largest_in_input(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.input_size);
    if !part.live {
        return;
    }
    let at = place_of(part.k, params.input_width, params.input_channels);
    let own = value(part.row, params.input_at + part.k);
    var sum = 0.0;
    for (var ky = 0u; ky < params.kernel_height; ky++) {
        let y = window_at(at.y, ky, params.output_height);
        for (var kx = 0u; kx < params.kernel_width; kx++) {
            let x = window_at(at.x, kx, params.output_width);
            if y == OUTSIDE || x == OUTSIDE {
                continue;
            }
            let out = params.output_at + (y * params.output_width + x) * params.output_channels + at.c;
            var first = own == value(part.row, out);
            for (var i = 0u; first && i < ky * params.kernel_width + kx; i++) {
                first = value(part.row, of_window(Place(y, x, at.c), i)) != own;
            }
            sum += select(0.0, error(part.row, out), first);
        }
    }
    set_error(part.row, params.input_at + part.k, sum);
}

@compute @workgroup_size(THREADS)
fn means(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.output_size);
    if !part.live {
        return;
    }
    let at = place_of(part.k, params.output_width, params.output_channels);
    let window = params.kernel_height * params.kernel_width;
    var sum = 0.0;
    for (var i = 0u; i < window; i++) {
        sum += value(part.row, of_window(at, i));
    }
    set_value(part.row, params.output_at + part.k, sum / f32(window));
}

@compute @workgroup_size(THREADS)
fn means_in_input(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.input_size);
    if !part.live {
        return;
    }
    let at = place_of(part.k, params.input_width, params.input_channels);
    var sum = 0.0;
    for (var ky = 0u; ky < params.kernel_height; ky++) {
        let y = window_at(at.y, ky, params.output_height);
        for (var kx = 0u; kx < params.kernel_width; kx++) {
            let x = window_at(at.x, kx, params.output_width);
            if y != OUTSIDE && x != OUTSIDE {
                sum += error(part.row, params.output_at + (y * params.output_width + x) * params.output_channels + at.c);
            }
        }
    }
    let window = f32(params.kernel_height * params.kernel_width);
    set_error(part.row, params.input_at + part.k, sum / window);
}

// Added to a group's variance.
const LEAST_VARIANCE: f32 = 1e-5;

// The number, within its volume, of a group's i-th value.
fn of_group(group: u32, i: u32) -> u32 {
    let place = i / params.group_channels;
    return place * params.input_channels + group * params.group_channels + i % params.group_channels;
}

fn group_of(k: u32) -> u32 {
    return (k % params.input_channels) / params.group_channels;
}

// A group's mean, 1 over its standard deviation, and of derivatives h in its unit values u the
// means of h u and of h.
fn note_at(row: u32, group: u32, note: u32) -> u32 {
    return row + params.notes_at + 4u * group + note;
}

fn note(row: u32, group: u32, which: u32) -> f32 {
    return bitcast<f32>(scratch[note_at(row, group, which)]);
}

fn unit_value(row: u32, k: u32) -> f32 {
    let group = group_of(k);
    return (value(row, params.input_at + k) - note(row, group, 0u)) * note(row, group, 1u);
}

// 1 + the scale of a value's channel.
fn scale_of(k: u32) -> f32 {
    return 1.0 + weights[params.weights + params.first_weight + k % params.input_channels];
}

@compute @workgroup_size(THREADS)
fn group_moments(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.input_channels / params.group_channels);
    if !part.live {
        return;
    }
    let count = params.input_height * params.input_width * params.group_channels;
    var sum = 0.0;
    for (var i = 0u; i < count; i++) {
        sum += value(part.row, params.input_at + of_group(part.k, i));
    }
    let mean = sum / f32(count);
    var square = 0.0;
    for (var i = 0u; i < count; i++) {
        let off = value(part.row, params.input_at + of_group(part.k, i)) - mean;
        square = fma(off, off, square);
    }
    scratch[note_at(part.row, part.k, 0u)] = bitcast<u32>(mean);
    scratch[note_at(part.row, part.k, 1u)] = bitcast<u32>(1.0 / sqrt(square / f32(count) + LEAST_VARIANCE));
}

@compute @workgroup_size(THREADS)
fn group_values(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.output_size);
    if !part.live {
        return;
    }
    let channel = part.k % params.input_channels;
    let shift = weights[params.weights + params.first_weight + params.input_channels + channel];
    let unit = unit_value(part.row, part.k);
    set_value(part.row, params.output_at + part.k, fma(unit, scale_of(part.k), shift));
}

// Derivatives in scales, then in shifts.
@compute @workgroup_size(THREADS)
fn group_in_weights(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.input_channels);
    if !part.live {
        return;
    }
    var sums = vec2<f32>(0.0);
    for (var k = part.k; k < params.input_size; k += params.input_channels) {
        let e = error(part.row, params.output_at + k);
        sums = vec2<f32>(fma(unit_value(part.row, k), e, sums.x), sums.y + e);
    }
    set_gradient(part.row, part.k, sums.x);
    set_gradient(part.row, params.input_channels + part.k, sums.y);
}

@compute @workgroup_size(THREADS)
fn group_levels(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.input_channels / params.group_channels);
    if !part.live {
        return;
    }
    let count = params.input_height * params.input_width * params.group_channels;
    var sums = vec2<f32>(0.0);
    for (var i = 0u; i < count; i++) {
        let k = of_group(part.k, i);
        let h = scale_of(k) * error(part.row, params.output_at + k);
        sums = vec2<f32>(fma(unit_value(part.row, k), h, sums.x), sums.y + h);
    }
    scratch[note_at(part.row, part.k, 2u)] = bitcast<u32>(sums.x / f32(count));
    scratch[note_at(part.row, part.k, 3u)] = bitcast<u32>(sums.y / f32(count));
}

// (h − mean h − u·mean(h u))/sd.
@compute @workgroup_size(THREADS)
fn group_in_input(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.input_size);
    if !part.live {
        return;
    }
    let own = group_of(part.k);
    let h = scale_of(part.k) * error(part.row, params.output_at + part.k);
    let along = unit_value(part.row, part.k) * note(part.row, own, 2u);
    let rest = h - note(part.row, own, 3u) - along;
    set_error(part.row, params.input_at + part.k, rest * note(part.row, own, 1u));
}

const TANH: u32 = 0u;
const RELU: u32 = 1u;
const SOFTPLUS: u32 = 2u;

fn softplus(v: f32) -> f32 {
    return max(v, 0.0) + log1p_positive(exp_accurate(-abs(v)));
}

@compute @workgroup_size(THREADS)
fn activations(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.output_size);
    if !part.live {
        return;
    }
    let v = value(part.row, params.input_at + part.k);
    var a = max(v, 0.0);
    if params.activation == TANH {
        // (e^2|v| − 1)/(e^2|v| + 1) with v's sign; beyond 20 it is 1 to the last bit.
        let grown = expm1_positive(2.0 * min(abs(v), 20.0));
        let share = grown / (grown + 2.0);
        a = select(share, -share, v < 0.0);
    } else if params.activation == SOFTPLUS {
        a = softplus(v);
    }
    set_value(part.row, params.output_at + part.k, a);
}

@compute @workgroup_size(THREADS)
fn activations_in_input(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(lane, group, groups, params.input_size);
    if !part.live {
        return;
    }
    let a = value(part.row, params.output_at + part.k);
    var slope = select(0.0, 1.0, a > 0.0);
    if params.activation == TANH {
        slope = 1.0 - a * a;
    } else if params.activation == SOFTPLUS {
        // 1 − e^−a; beyond 40 it is 1 to the last bit.
        let grown = expm1_positive(min(a, 40.0));
        slope = grown / (1.0 + grown);
    }
    set_error(part.row, params.input_at + part.k, slope * error(part.row, params.output_at + part.k));
}
