// Σ clip(∇_i) over all rows of a chunk where ∇_i = s(x·θ, y)·x, T chains in one read of the rows.
//
// Formula: a thread takes four rows and makes their factors t = clip(s·scale, Σ x_j²), T each, in
// workgroup memory. Then a thread takes four features and a part of the rows and sums the integers
// q_j = round(t x_j) of all chains in registers: a product and a sum each, as in fma(t, x, ROUND)
// the low bits are q_j.
//
// Why a row's part stays in the ball (docs/proofs/guarantee.md): t²·Σ x_j² ≤ limit² is checked of
// the t that is used, whatever score, root and quotient did; NaN and infinities fail. From there
// on products and sums of f32 count alone, each off by less than a unit in its last place.
//
// Units: grid steps. T (chains), WORKGROUP (threads), FEATURES, BLOCKS (blocks of features), PARTS
// (parts of the rows), TURNS (of a part), STRAIGHT (quads a turn) and EXCESS (bits of ROUND in a
// part's sum over one share of the rows) are constants put before this text; lines that begin with
// `//=` are replaced by straight text (src/trusted/engine/gpu/text.rs). Needs a piece of cells,
// gradient_clip.wgsl and a model's `score`. Twin: src/trusted/engine/cpu/gradient.rs.
//
// | binding | kind | content |
// | 1       | read | rows, four to a vector: rows[word·quads + quad] |
// | 2       | read | labels, four to a vector (one vector when there are none) |
// | 3       | read | per tile and feature: its column's step, if any, then T weights |
//
// Dispatch: for each tile a workgroup for params.shares times 4·WORKGROUP rows, so that there are
// few additions to answers: 4·WORKGROUP/PARTS·shares ≤ 1024 rows of a part keep |sum| ≤ 2^30;
// shares is 1 where threads take several fours of features. A part adds to an answer at most once a
// workgroup, and at most 32,767 meet in one (low halves). What lies behind a chunk's rows is
// finite, and its factors are 0.

@group(0) @binding(1) var<storage, read> rows: array<vec4<Cell>>;
@group(0) @binding(2) var<storage, read> labels: array<vec4<f32>>;

const ROUND: vec4<f32> = vec4<f32>(12582912.0);

var<workgroup> factors: array<array<vec4<f32>, WORKGROUP>, T>;
var<workgroup> clipped: array<atomic<i32>, T>;

// t where it keeps the row in the ball, else 0; by bits, as drivers may assume there is no NaN.
fn hold(t: f32, square: f32) -> f32 {
    let reach = bitcast<u32>(t * square * t) & 0x7fffffffu;
    let size = bitcast<u32>(t) & 0x7fffffffu;
    let held = reach <= bitcast<u32>(params.edge) && size <= bitcast<u32>(LARGEST_FACTOR);
    return select(0.0, t, held);
}

fn row_factor(eta: f32, label: f32, square: f32, edge: Edge, live: bool) -> Factor {
    // A η that is not a number makes no factor.
    let s = select(score(eta, label), eta, is_nan(eta));
    let factor = clip_at(s, edge);
    return Factor(select(0.0, hold(factor.t, square), live), select(0u, factor.clipped, live));
}

// The integers of four rows, and the bits of ROUND as often.
fn integers(x: vec4<f32>, t: vec4<f32>) -> i32 {
    let q = bitcast<vec4<i32>>(fma(x, t, ROUND));
    return q.x + q.y + q.z + q.w;
}

// Adds those of four features.
fn add_integers(sum: vec4<i32>, x: array<vec4<f32>, 4>, t: vec4<f32>) -> vec4<i32> {
    return sum
        + vec4<i32>(integers(x[0], t), integers(x[1], t), integers(x[2], t), integers(x[3], t));
}

// The step of feature j's column, where there is one.
fn step_of(j: u32) -> f32 {
    let number = j * (T + FEATURES_A_WORD - 1u);
    return coefficients[tile * params.vectors + number / 4u][number % 4u];
}

@compute @workgroup_size(WORKGROUP)
fn gradient_sum(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let own_group = take_place(group, groups);
    let slot = own_group % params.slots;
    let quads = params.stride / 4u;
    let part = lane % PARTS;
    if lane < T {
        atomicStore(&clipped[lane], 0);
    }
    workgroupBarrier();

    //= c: var sum{c} = vec4<i32>();
    //= c: var clips{c} = 0;
    for (var share = 0u; share < params.shares; share++) {
        let first = (own_group * params.shares + share) * WORKGROUP;
        if 4u * first >= params.rows {
            break;
        }
        var at = first + lane;
        var w = tile * params.vectors;
        var square = vec4<f32>();
        //= c: var f0_{c} = vec4<f32>();
        //= first features
        for (var block = 0u; block < BLOCKS; block++) {
            //= features
        }
        //= last features
        var label = vec4<f32>();
        if params.labelled == 1u {
            label = labels[first + lane];
        }
        // The vectors move on: a component that a loop picks would keep them out of registers.
        for (var r = 0u; r < 4u; r++) {
            let live = 4u * (first + lane) + r < params.rows;
            let edge = edge_of(square.x);
            //= c: let factor{c} = row_factor(f0_{c}.x, label.x, square.x, edge, live);
            //= c: factors[{c}][lane][r] = factor{c}.t;
            //= c: clips{c} += i32(factor{c}.clipped);
            //= c: f0_{c} = f0_{c}.yzww;
            label = label.yzww;
            square = square.yzww;
        }
        workgroupBarrier();

        let last = share + 1u == params.shares || 4u * (first + WORKGROUP) >= params.rows;
        for (var four = lane / PARTS; 4u * four < FEATURES; four += WORKGROUP / PARTS) {
            let j = 4u * four;
            //= k: let step{k} = step_of(j + {k}u);
            at = j / FEATURES_A_WORD * quads + first + part;
            var place = part;
            for (var turn = 0u; turn < TURNS; turn++) {
                //= ik: let z{i}_{k} = rows[at + {i}u * PARTS + {k}u / FEATURES_A_WORD * quads];
                //= ik: let x{i}_{k} = four_of(z{i}_{k}, {k}u, step{k});
                //= i: let x{i} = array<vec4<f32>, 4>(x{i}_0, x{i}_1, x{i}_2, x{i}_3);
                //= ic: sum{c} = add_integers(sum{c}, x{i}, factors[{c}][place + {i}u * PARTS]);
                at += STRAIGHT * PARTS;
                place += STRAIGHT * PARTS;
            }
            if last {
                let excess = EXCESS * i32(share + 1u);
                //= kc: if j + {k}u < FEATURES { add_answer(slot, {c}u, j + {k}u, sum{c}[{k}] - excess); }
                //= c: sum{c} = vec4<i32>();
            }
        }
        workgroupBarrier();
    }
    //= c: atomicAdd(&clipped[{c}], clips{c});
    workgroupBarrier();
    if lane < T {
        add_answer(slot, lane, FEATURES, atomicLoad(&clipped[lane]));
    }
}
