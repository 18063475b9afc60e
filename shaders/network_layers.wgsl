// Shared piece: a network's layers, forward and backward, many rows side by side. A thread makes one
// value of one row, or four that are summed alike, so that no loop is longer than the values it
// reads: Mesa's software driver ends a thread's loops, silently, after 65,535 turns in all.
//
// A row has params.room words of `scratch`: its values between all layers, features first; the
// derivatives in them, params.values further on; its gradient; the layers' own notes. Of value
// (y, x, c) of a volume the number is (y·width + x)·channels + c.
// Units: none. Needs softplus.wgsl and network_pass.wgsl, whose `part_of` says which value of which
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

// A row's i-th word. Layers reach no other row's, whatever they were told of their places: one row's
// answer is not another's to change (docs/proofs/guarantee.md, "Gradients").
fn word(row: u32, i: u32) -> u32 {
    return row + min(i, params.room - 1u);
}

fn value(row: u32, i: u32) -> f32 {
    return bitcast<f32>(scratch[word(row, i)]);
}

fn error(row: u32, i: u32) -> f32 {
    return bitcast<f32>(scratch[word(row, params.values + i)]);
}

fn set_value(row: u32, i: u32, v: f32) {
    scratch[word(row, i)] = bitcast<u32>(v);
}

fn set_error(row: u32, i: u32, v: f32) {
    scratch[word(row, params.values + i)] = bitcast<u32>(v);
}

fn set_gradient(row: u32, j: u32, v: f32) {
    scratch[word(row, 2u * params.values + params.first_weight + j)] = bitcast<u32>(v);
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

// Four weights of channels out that follow each other. Past the last channel they are others', and
// what is made with them is left.
fn four_weights(w: u32) -> vec4<f32> {
    return vec4<f32>(weights[w], weights[w + 1u], weights[w + 2u], weights[w + 3u]);
}

fn four_errors(row: u32, i: u32) -> vec4<f32> {
    return vec4<f32>(error(row, i), error(row, i + 1u), error(row, i + 2u), error(row, i + 3u));
}

fn quads(channels: u32) -> u32 {
    return (channels + 3u) / 4u;
}

// A thread makes four channels at one place.
@compute @workgroup_size(THREADS)
fn sums(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let channels = params.output_channels;
    let part = part_of(lane, group, groups, params.output_height * params.output_width * quads(channels));
    if !part.live {
        return;
    }
    let at = place_of(part.k, params.output_width, quads(channels));
    let o = 4u * at.c;
    let w = params.weights + params.first_weight + o;
    let window = params.kernel_height * params.kernel_width;
    var sum = four_weights(w + window * params.input_channels * channels);
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
            var by = w + (ky * params.kernel_width + kx) * params.input_channels * channels;
            for (var c = 0u; c < params.input_channels; c++) {
                sum = fma(four_weights(by), vec4<f32>(value(part.row, input + c)), sum);
                by += channels;
            }
        }
    }
    let out = params.output_at + (at.y * params.output_width + at.x) * channels + o;
    for (var i = 0u; i < min(4u, channels - o); i++) {
        set_value(part.row, out + i, sum[i]);
    }
}

// A thread makes the weights of one value of the window to four channels, or four biases.
@compute @workgroup_size(THREADS)
fn sums_in_weights(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let channels = params.output_channels;
    let count = params.kernel_height * params.kernel_width * params.input_channels;
    let part = part_of(lane, group, groups, (count + 1u) * quads(channels));
    if !part.live {
        return;
    }
    let k = part.k / quads(channels);
    let o = 4u * (part.k % quads(channels));
    let bias = k == count;
    let at = place_of(k, params.kernel_width, params.input_channels);
    var sum = vec4<f32>(0.0);
    for (var y = 0u; y < params.output_height; y++) {
        let row = y * params.stride + at.y;
        if !bias && !within(row, params.input_height) {
            continue;
        }
        for (var x = 0u; x < params.output_width; x++) {
            let column = x * params.stride + at.x;
            var v = 1.0;
            if !bias {
                if !within(column, params.input_width) {
                    continue;
                }
                let place = (row - params.padding) * params.input_width + column - params.padding;
                v = value(part.row, params.input_at + place * params.input_channels + at.c);
            }
            let e = params.output_at + (y * params.output_width + x) * channels + o;
            sum = fma(four_errors(part.row, e), vec4<f32>(v), sum);
        }
    }
    for (var i = 0u; i < min(4u, channels - o); i++) {
        set_gradient(part.row, k * channels + o + i, sum[i]);
    }
}

// A thread makes four channels in at one place.
@compute @workgroup_size(THREADS)
fn sums_in_input(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let channels = params.input_channels;
    let part = part_of(lane, group, groups, params.input_height * params.input_width * quads(channels));
    if !part.live {
        return;
    }
    let at = place_of(part.k, params.input_width, quads(channels));
    let c = 4u * at.c;
    let next = params.output_channels;
    var sum = vec4<f32>(0.0);
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
            let output = params.output_at + (y * params.output_width + x) * next;
            let from_here = (ky * params.kernel_width + kx) * channels + c;
            let first = params.weights + params.first_weight + from_here * next;
            for (var o = 0u; o < next; o++) {
                let w = first + o;
                let by = vec4<f32>(weights[w], weights[w + next], weights[w + 2u * next], weights[w + 3u * next]);
                sum = fma(by, vec4<f32>(error(part.row, output + o)), sum);
            }
        }
    }
    let back = params.input_at + (at.y * params.input_width + at.x) * channels + c;
    for (var i = 0u; i < min(4u, channels - c); i++) {
        set_error(part.row, back + i, sum[i]);
    }
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
    return word(row, params.notes_at + 4u * group + note);
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
    return max(v, 0.0) + log1p_accurate(exp_accurate(-abs(v)));
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
