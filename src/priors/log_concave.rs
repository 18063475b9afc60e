//! Log-concave densities of one number: exact draws by rejection, integrals by the trapezoid rule.
//! All that is asked for is a logarithm up to a constant.

use rand::RngExt;

/// Points of an integral, and how far the logarithm has fallen at the ends.
const POINTS: usize = 120;
const FALLEN: f64 = 42.0;
/// Rounds that look for a mode or for a fall: a range of 2^60 times the first step.
const DOUBLINGS: usize = 60;
const GOLDEN: f64 = 0.618_033_988_749_894_9;
/// A mode is looked for to a ten-thousandth of the last step: hats and grids need no more.
const GOLDEN_ROUNDS: usize = 20;
/// Rejections at most: hats are at most a few times as large as what they cover.
const MOST_TRIES: usize = 100_000;

/// About where a concave function is largest; `from` is any point.
fn mode(log: &impl Fn(f64) -> f64, from: f64) -> f64 {
    // Where it goes up from `from`, and on until it falls.
    let sign = if log(from + 1e-3) >= log(from - 1e-3) {
        1.0
    } else {
        -1.0
    };
    let (mut before, mut at, mut step) = (from - sign * 1e-3, from, 0.1);
    for _ in 0..DOUBLINGS {
        let next = at + sign * step;
        if log(next) < log(at) {
            break;
        }
        (before, at, step) = (at, next, 2.0 * step);
    }
    let (mut low, mut high) = (before, at + sign * step);
    let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut log_a, mut log_b) = (log(a), log(b));
    for _ in 0..GOLDEN_ROUNDS {
        if log_a > log_b {
            (high, b, log_b) = (b, a, log_a);
            a = high - GOLDEN * (high - low);
            log_a = log(a);
        } else {
            (low, a, log_a) = (a, b, log_b);
            b = low + GOLDEN * (high - low);
            log_b = log(b);
        }
    }
    0.5 * (low + high)
}

/// A point on the side `sign` of the mode where the logarithm has fallen by between half of `by`
/// and all of it.
fn fallen(log: &impl Fn(f64) -> f64, mode: f64, sign: f64, by: f64) -> f64 {
    let top = log(mode);
    let fall = |length: f64| top - log(mode + sign * length);
    let mut length = 1e-3;
    for _ in 0..DOUBLINGS {
        if fall(length) >= 0.5 * by {
            break;
        }
        length *= 2.0;
    }
    let (mut near, mut far) = (0.0, length);
    for _ in 0..DOUBLINGS {
        let seen = fall(length);
        if (0.5 * by..=by).contains(&seen) {
            break;
        }
        match seen > by || seen.is_nan() {
            true => far = length,
            false => near = length,
        }
        length = 0.5 * (near + far);
    }
    mode + sign * length
}

/// A draw of the density whose logarithm is `log`, concave and up to a constant; `from` is any
/// point. Exact: a hat of four exponentials through three points lies above it (Gilks & Wild 1992,
/// without derivatives), and is rejected from.
pub(super) fn draw(log: &impl Fn(f64) -> f64, from: f64, rng: &mut impl rand::Rng) -> f64 {
    let middle = mode(log, from);
    let top = log(middle);
    let (left, right) = (
        fallen(log, middle, -1.0, 1.5),
        fallen(log, middle, 1.0, 1.5),
    );
    // Chords, which lie above the logarithm outside of their ends.
    let rise = (top - log(left)) / (middle - left);
    let fall = (top - log(right)) / (right - middle);
    if !(rise > 0.0 && fall > 0.0 && rise.is_finite() && fall.is_finite()) {
        return middle;
    }
    // Masses of the pieces, the logarithm at the middle being 0: up to `left`, from there to the
    // middle under the other chord, and the same mirrored.
    let outer = |slope: f64, length: f64| (-slope * length).exp() / slope;
    let inner = |slope: f64, length: f64| (slope * length).exp_m1() / slope;
    let (to_left, to_right) = (middle - left, right - middle);
    let masses = [
        outer(rise, to_left),
        inner(fall, to_left),
        inner(rise, to_right),
        outer(fall, to_right),
    ];
    let whole: f64 = masses.iter().sum();
    for _ in 0..MOST_TRIES {
        let mut place = rng.random::<f64>() * whole;
        let mut piece = 0;
        while piece < 3 && place > masses[piece] {
            place -= masses[piece];
            piece += 1;
        }
        let unit: f64 = rng.random();
        let beyond = |slope: f64| -(1.0 - unit).ln() / slope;
        let within = |slope: f64, length: f64| (unit * (slope * length).exp_m1()).ln_1p() / slope;
        let (x, hat) = match piece {
            0 => {
                let by = to_left + beyond(rise);
                (middle - by, -rise * by)
            }
            1 => {
                let by = within(fall, to_left);
                (middle - by, fall * by)
            }
            2 => {
                let by = within(rise, to_right);
                (middle + by, rise * by)
            }
            _ => {
                let by = to_right + beyond(fall);
                (middle + by, -fall * by)
            }
        };
        let coin: f64 = rng.random();
        if coin.ln() < log(x) - top - hat {
            return x;
        }
    }
    middle
}

/// Logarithm of the density's integral, and the mean of `of` under it.
pub(super) fn integral(
    log: &impl Fn(f64) -> f64,
    from: f64,
    of: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let middle = mode(log, from);
    let top = log(middle);
    let low = fallen(log, middle, -1.0, FALLEN);
    let high = fallen(log, middle, 1.0, FALLEN);
    let width = (high - low) / (POINTS - 1) as f64;
    let (mut sum, mut first) = (0.0, 0.0);
    for i in 0..POINTS {
        let x = low + i as f64 * width;
        let weight = (log(x) - top).exp();
        if weight > 0.0 {
            sum += weight;
            first += weight * of(x);
        }
    }
    let area = (sum * width).ln();
    // A peak narrower than numbers can tell.
    match area.is_finite() {
        true => (top + area, first / sum),
        false => (top, of(middle)),
    }
}
