// Σ clip(∇_i) over all rows of a chunk, T chains in one read of the rows.
//
// Formula: a thread takes a row. It makes the row's factors t and walks its coordinates in
// slabs: q_j = round(t v_j) into workgroup memory; there threads turn to coordinates and sum.
//
// Why a row's part stays in the ball, whatever floats did: the integers that are summed are
// the ones that were checked, each made once. A thread carries the exact `spent = Σ q_j²` of
// the slabs it has let through, in two words (units 2^20 and 1). A slab with a |q_j| ≥ 2^21,
// or with which spent would exceed bound², is zeroed before anyone reads it. So Σ q_j² ≤
// bound² holds at every slab, for NaN, infinities and any rounding; the clip factor only
// sees to it that this never happens to a row. No sum here overflows: with |q| < 2^21 a slab
// adds less than 2^26 to `top`, 2^25 to `cross`, 2^24 to `low`.
//
// Units: grid steps. T (chains), WORKGROUP (rows, a multiple of SLAB), KEEP and KEPT are
// constants put before this text. Twin: src/trusted/engine/cpu/gradient.rs.
// Bindings: gradient_clip.wgsl and gradient_forms.wgsl. The workgroups of a slot add to its
// answers, so that few come back.
// Dispatch: for each tile a workgroup for WORKGROUP rows; at most 32,767 share a slot (low halves).

const SLAB: u32 = 16u;
const PARTS: u32 = WORKGROUP / SLAB;
// Threads of one part read coordinates this far apart: PARTS more keeps them off one bank.
const PITCH: u32 = WORKGROUP + PARTS;
// 1.5·2^23: the low bits of v + ROUND are v's nearest integer.
const ROUND: f32 = 12582912.0;

var<workgroup> steps: array<i32, SLAB * PITCH>;
var<workgroup> totals: array<atomic<i32>, SLAB * T>;
var<workgroup> clipped: array<atomic<i32>, T>;

// Squares of integers a = top·2^10 + low, in parts; `largest` has every bit of any of them.
struct Squares {
    top: u32,
    cross: u32,
    low: u32,
    largest: u32,
}

fn square_integers(q: vec4<i32>, sum: Squares) -> Squares {
    let size = vec4<u32>(abs(q));
    let top = size >> vec4<u32>(10u);
    let low = size & vec4<u32>(1023u);
    return Squares(
        sum.top + dot(top, top),
        sum.cross + dot(top, low),
        sum.low + dot(low, low),
        sum.largest | size.x | size.y | size.z | size.w,
    );
}

// spent + squares; `largest` ≥ 2^21 voids the rest.
fn spend(spent: vec2<u32>, add: Squares) -> vec2<u32> {
    let rest = ((add.cross & 511u) << 11u) + add.low + spent.y;
    return vec2<u32>(spent.x + add.top + (add.cross >> 9u) + (rest >> 20u), rest & 0xfffffu);
}

fn within_bound(spent: vec2<u32>, largest: u32) -> bool {
    let high = params.bound_high;
    let small = spent.x < high || (spent.x == high && spent.y <= params.bound_low);
    return small && largest < 0x200000u;
}

@compute @workgroup_size(WORKGROUP)
fn gradient_sum(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let own_group = take_place(group, groups);
    let slot = own_group % params.slots;
    let place = own_group * WORKGROUP + lane;
    let live = place < params.rows;
    let row = min(place, params.rows - 1u);
    for (var e = lane; e < SLAB * T; e += WORKGROUP) {
        atomicStore(&totals[e], 0);
    }
    if lane < T {
        atomicStore(&clipped[lane], 0);
    }
    workgroupBarrier();

    var label = 0.0;
    if params.labelled == 1u {
        label = labels[row];
    }
    var factors = row_factors(row, lane, label);
    var spent = array<vec2<u32>, T>();
    for (var c = 0u; c < T; c++) {
        if !live {
            factors[c] = Factor(0.0, 0u);
        }
        if factors[c].clipped == 1u {
            atomicAdd(&clipped[c], 1);
        }
    }

    let coordinate = lane / PARTS;
    let part = lane % PARTS;
    for (var first = 0u; first < params.dim; first += SLAB) {
        let width = min(SLAB, params.dim - first);
        for (var c = 0u; c < T; c++) {
            var squares = Squares();
            for (var g = 0u; g < SLAB / 4u; g++) {
                if 4u * g < width {
                    let v = row_coordinates(c, first / 4u + g, row, lane);
                    let rounded = fma(v, vec4<f32>(factors[c].t), vec4<f32>(ROUND));
                    let q = bitcast<vec4<i32>>(rounded) - bitcast<vec4<i32>>(vec4<f32>(ROUND));
                    squares = square_integers(q, squares);
                    let at = 4u * g * PITCH + lane;
                    steps[at] = q.x;
                    steps[at + PITCH] = q.y;
                    steps[at + 2u * PITCH] = q.z;
                    steps[at + 3u * PITCH] = q.w;
                }
            }
            let after = spend(spent[c], squares);
            if within_bound(after, squares.largest) {
                spent[c] = after;
            } else {
                for (var j = 0u; j < SLAB; j++) {
                    steps[j * PITCH + lane] = 0;
                }
            }
            workgroupBarrier();
            if coordinate < width {
                // SLAB rows of 2^20 at most.
                var sum = 0;
                for (var i = 0u; i < SLAB; i += 4u) {
                    let at = coordinate * PITCH + i * PARTS + part;
                    sum += steps[at] + steps[at + PARTS] + steps[at + 2u * PARTS] + steps[at + 3u * PARTS];
                }
                atomicAdd(&totals[c * SLAB + coordinate], sum);
            }
            workgroupBarrier();
        }
        for (var e = lane; e < SLAB * T; e += WORKGROUP) {
            if e % SLAB < width {
                add_answer(slot, e / SLAB, first + e % SLAB, atomicLoad(&totals[e]));
            }
            atomicStore(&totals[e], 0);
        }
    }
    if lane < T {
        add_answer(slot, lane, params.dim, atomicLoad(&clipped[lane]));
    }
}
