// Gradient Σ s_i z_i and curvature Σ w_i z_i z_iᵀ of an anchor at θ*, over all rows of a chunk.
//
// Formula: η = x·θ* and the row's offset, if it has one, z = L⁻¹x in units of b/2^14, q = z rounded
// into the ball of 2^14, score s in units of its bound over 2^24, the finest that an f32 tells
// apart, weight w over 2^14. A thread makes the integers of one row; then threads turn to tiles of
// 4 × 4 sums. A row that was shortened has s and w multiplied by its model's `influence`. The score
// is kept as coordinate D with the weight 1, so that the gradient is one more row of the curvature's
// lower triangle.
//
// Why a row's part stays in the ball, whatever floats did: the integers that are summed are the
// ones that were checked, each made once. |q_j| ≤ 2^14, |s| ≤ 2^24 and 0 ≤ w ≤ 2^14 are clamps
// of integers; Σ q_j² is exact up to 2^28 + 1, where it stops growing; a row beyond 2^28 gets
// s = w = 0. So NaN, infinities, huge rows and any rounding leave the sensitivities of
// AnchorSums as they are; shrinking a row to the edge only sees to it that it is kept.
//
// Exact sums: u = w q_j (or s), |u| ≤ 2^28, is a·2^20 + b·2^10 + c with |a| ≤ 2^8 and b, c <
// 2^10, so that each part's product with q_k is below 2^24 in size and a sum over WORKGROUP ≤ 64
// rows at most 2^30. Carries go up, and the sum, at most 2^48, leaves as three limbs of 16 bits,
// the highest signed and at most 2^16 in size. At most 32,767 additions meet in one answer, so
// that none of its limbs overflows.
//
// Units: integers, see AnchorSums. D (features), OFFSET (whether an offset lies behind them),
// WORKGROUP (rows) and PARTS (parts that the rows of a workgroup are summed in) are constants put
// before this text; lines that begin with `//=` are repeated (src/trusted/engine/gpu/text.rs).
// Needs softplus.wgsl and a model's `slopes` and `influence`. Twin: src/trusted/engine/anchor.rs.
//
// | binding | kind       | content |
// | 0       | uniform    | params (twin: AnchorParams in src/trusted/engine/gpu/anchor.rs) |
// | 1       | read       | rows[word·stride + row] |
// | 2       | read       | labels |
// | 3       | read       | θ* in vectors of four; then for four rows b of M = L⁻¹ 2^14/b at a time columns 0 .. 4b + 3, zeros above the diagonal; then columns' steps, if any |
// | 4       | read-write | answers: per slot D(D+1)/2 sums of curvature, D of gradient, three limbs each |
//
// Dispatch: one workgroup for WORKGROUP rows.

struct AnchorParams {
    rows: u32,
    stride: u32,
    slots: u32,
    edge: f32,
    score_scale: f32,
    weight_scale: f32,
}

@group(0) @binding(0) var<uniform> params: AnchorParams;
@group(0) @binding(1) var<storage, read> rows: array<Cell>;
@group(0) @binding(2) var<storage, read> labels: array<f32>;
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> answers: array<atomic<i32>>;

const LIMIT: i32 = 16384;
const LIMIT_SQUARED: u32 = 0x10000000u;
const STEEPEST: i32 = 16777216;
// Fours of features, and of features and the score.
const FEATURE_QUADS: u32 = (D + 3u) / 4u;
const QUADS: u32 = D / 4u + 1u;
// Vectors of coefficients before the columns' steps.
const STEPS: u32 = FEATURE_QUADS * (2u * FEATURE_QUADS + 3u);
const TILES: u32 = QUADS * (QUADS + 1u) / 2u;
const TRIANGLE: u32 = D * (D + 1u) / 2u;
const ENTRIES: u32 = TRIANGLE + D;
// One more keeps threads that read one row at several coordinates off one bank.
const PITCH: u32 = WORKGROUP + 1u;

// Coordinates of the workgroup's rows: bits of x, then of z, then the integers q and s.
var<workgroup> cells: array<i32, 4u * QUADS * PITCH>;
var<workgroup> weights: array<i32, WORKGROUP>;

fn float_cell(j: u32, lane: u32) -> f32 {
    return bitcast<f32>(cells[j * PITCH + lane]);
}

// Finite, and far beyond any ball: NaN → 0; squares of a row's coordinates add up in f32.
fn tame(z: f32) -> f32 {
    return select(clamp(z, -1e17, 1e17), 0.0, is_nan(z));
}

// The nearest integer from low to high, NaN → 0; the clamp that counts is on integers.
fn to_units(value: f32, low: i32, high: i32) -> i32 {
    let finite = clamp(value, -33554432.0, 33554432.0);
    return select(clamp(i32(round(finite)), low, high), 0, is_nan(value));
}

// sum + q², exact up to LIMIT_SQUARED + 1.
fn add_square(sum: u32, q: i32) -> u32 {
    return min(sum + u32(q * q), LIMIT_SQUARED + 1u);
}

fn add_answer(slot: u32, entry: u32, a: i32, b: i32, c: i32) {
    // a·2^20 + b·2^10 + c with carries: 2^21 on top of 2^30 at most.
    let middle = b + (c >> 10u);
    let top = a + (middle >> 10u);
    let low = ((middle & 1023) << 10u) | (c & 1023);
    let at = 3u * (slot * ENTRIES + entry);
    atomicAdd(&answers[at], low & 0xffff);
    atomicAdd(&answers[at + 1u], ((top & 0xfff) << 4u) | (low >> 16u));
    atomicAdd(&answers[at + 2u], top >> 12u);
}

// The sum of coordinates j and k, unless it lies above the diagonal or behind the last.
fn add_entry(slot: u32, j: u32, k: u32, a: i32, b: i32, c: i32) {
    if j <= D && k <= j && k < D {
        add_answer(slot, j * (j + 1u) / 2u + k, a, b, c);
    }
}

// The row's q and s into cells and its w into weights.
fn make_integers(row: u32, live: bool, lane: u32) {
    var eta = 0.0;
    if OFFSET {
        // First, as adding it could be fused with the product that it is made of.
        let cell = rows[(D / FEATURES_A_WORD) * params.stride + row];
        eta = feature_of(cell, D, coefficients[STEPS + D / 4u][D % 4u]);
    }
    for (var j = 0u; j < 4u * QUADS; j++) {
        var x = 0.0;
        if j < D {
            let cell = rows[(j / FEATURES_A_WORD) * params.stride + row];
            x = feature_of(cell, j, coefficients[STEPS + j / 4u][j % 4u]);
            eta = fma(coefficients[j / 4u][j % 4u], x, eta);
        }
        cells[j * PITCH + lane] = bitcast<i32>(x);
    }
    // From the last coordinates: z_j needs x_0 .. x_j alone, so z takes the place of x.
    var square = 0.0;
    for (var b = FEATURE_QUADS; b > 0u; b--) {
        let first = 4u * (b - 1u);
        let matrix = FEATURE_QUADS + 2u * (b - 1u) * b;
        var sum = vec4<f32>();
        for (var k = 0u; k < first + 4u; k++) {
            sum = fma(coefficients[matrix + k], vec4<f32>(float_cell(k, lane)), sum);
        }
        let z = vec4<f32>(tame(sum.x), tame(sum.y), tame(sum.z), tame(sum.w));
        square += dot(z, z);
        let at = first * PITCH + lane;
        cells[at] = bitcast<i32>(z.x);
        cells[at + PITCH] = bitcast<i32>(z.y);
        cells[at + 2u * PITCH] = bitcast<i32>(z.z);
        cells[at + 3u * PITCH] = bitcast<i32>(z.w);
    }
    var squares = 0u;
    for (var j = 0u; j < D; j++) {
        squares = add_square(squares, to_units(float_cell(j, lane), -LIMIT, LIMIT));
    }
    // Beyond the ball: shrunk to its edge (less what the norm may be off by) and truncated.
    let inside = squares <= LIMIT_SQUARED;
    let shrink = min(params.edge / sqrt(square), 1.0);
    squares = 0u;
    for (var j = 0u; j < D; j++) {
        let z = float_cell(j, lane);
        let q = to_units(select(trunc(z * shrink), z, inside), -LIMIT, LIMIT);
        squares = add_square(squares, q);
        cells[j * PITCH + lane] = q;
    }
    let kept = live && squares <= LIMIT_SQUARED && !is_nan(eta);
    let pair = slopes(eta, labels[row]);
    // A row beyond the ball or of too large a weight: its influence is bounded (Slopes::influence).
    let share = min(f32(LIMIT) / sqrt(square), 1.0);
    let unit = params.score_scale / f32(STEEPEST);
    let factors = influence(share, pair.y * params.weight_scale / f32(LIMIT), eta, unit);
    let s = to_units(pair.x * params.score_scale * factors.x, -STEEPEST, STEEPEST);
    let w = to_units(pair.y * params.weight_scale * factors.y, 0, LIMIT);
    cells[D * PITCH + lane] = select(0, s, kept);
    weights[lane] = select(0, w, kept);
}

// Sums of 4 × 4 entries over the rows part, part + PARTS, …
fn sum_tile(slot: u32, tile: u32, part: u32) {
    var high = 0u;
    var low = tile;
    while low > high {
        high += 1u;
        low -= high;
    }
    let first = 4u * high;
    //= r: var a{r} = vec4<i32>();
    //= r: var b{r} = vec4<i32>();
    //= r: var c{r} = vec4<i32>();
    for (var i = part; i < WORKGROUP; i += PARTS) {
        let at = 4u * low * PITCH + i;
        let q = vec4<i32>(cells[at], cells[at + PITCH], cells[at + 2u * PITCH], cells[at + 3u * PITCH]);
        let w = weights[i];
        //= r: let u{r} = cells[(first + {r}u) * PITCH + i] * select(w, 1, first + {r}u == D);
        //= r: a{r} += vec4<i32>(u{r} >> 20u) * q;
        //= r: b{r} += vec4<i32>((u{r} >> 10u) & 1023) * q;
        //= r: c{r} += vec4<i32>(u{r} & 1023) * q;
    }
    //= rs: add_entry(slot, first + {r}u, 4u * low + {s}u, a{r}[{s}u], b{r}[{s}u], c{r}[{s}u]);
}

@compute @workgroup_size(WORKGROUP)
fn anchor_sum(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let workgroup = group.z * groups.y + group.y;
    let place = workgroup * WORKGROUP + lane;
    make_integers(min(place, params.rows - 1u), place < params.rows, lane);
    workgroupBarrier();
    for (var item = lane; item < TILES * PARTS; item += WORKGROUP) {
        sum_tile(workgroup % params.slots, item % TILES, item / TILES);
    }
}
