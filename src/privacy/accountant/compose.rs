//! Composition of privacy loss distributions on a common grid, by one FFT in a tilted
//! measure.
//!
//! Under `p̃(ℓ) ∝ p(ℓ)e^{sℓ}` the composed loss is centred where the answer lies, so that
//! the answer is computed to relative accuracy however small δ is, and a window of a few
//! standard deviations suffices. With M the product of the normalisers,
//! `δ(ε) = M e^{−sε} Σ_{ℓ>ε} p̃_T(ℓ) e^{−s(ℓ−ε)} (1 − e^{ε−ℓ})`, all terms positive.
//! Mass wrapped around the window is bounded by Chernoff's inequality, the FFT's rounding
//! by a bound on its relative error; both go to the answer's error.

use rayon::prelude::*;
use rustfft::{FftPlanner, num_complex::Complex};

use super::grid::Knots;

/// Log of the mass allowed outside the window, in the tilted measure.
const LOG_WINDOW: f64 = -37.0;
/// Most points of a transform.
const MOST_POINTS: usize = 1 << 25;

/// An event's two grids and how often it happens.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub upper: Knots,
    pub lower: Knots,
    pub count: u64,
}

/// A composed profile at the knots of a window, times `e^{sε}/M`.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) profile: Vec<f64>,
    /// log M.
    scale: f64,
    /// Error of each entry of `profile`, above and below.
    pub(super) error: f64,
    /// Mass at infinity.
    infinite: f64,
}

/// Bounds on a composed profile.
#[derive(Clone, Debug)]
pub(super) struct Composed {
    h: f64,
    tilt: f64,
    first: i64,
    pub(super) upper: Side,
    pub(super) lower: Side,
    /// Points of the transform.
    pub points: usize,
}

/// What a tilt makes of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tilt {
    /// The exponent s.
    pub exponent: f64,
    /// `log E e^{sL}` of the whole sequence.
    pub cgf: f64,
    /// Mean of the composed loss in the tilted measure.
    pub mean: f64,
    /// Its variance.
    pub variance: f64,
}

/// `(Σ p e^{sℓ}, Σ p e^{sℓ} ℓ, Σ p e^{sℓ} ℓ²)`.
fn moments(knots: &Knots, s: f64) -> (f64, f64, f64) {
    let ratio = (s * knots.h).exp();
    let (mut m0, mut m1, mut m2) = (0.0, 0.0, 0.0);
    // A fresh exponential every 64 knots keeps the powers exact to 64 ulp.
    for (block, chunk) in knots.p.chunks(64).enumerate() {
        let start = knots.first + 64 * block as i64;
        let mut weight = (s * start as f64 * knots.h).exp();
        for (k, p) in chunk.iter().enumerate() {
            let loss = (start + k as i64) as f64 * knots.h;
            let w = p * weight;
            m0 += w;
            m1 += w * loss;
            m2 += w * loss * loss;
            weight *= ratio;
        }
    }
    (m0, m1, m2)
}

/// The tilt by s of a composition.
pub(super) fn tilted<'a>(parts: impl Iterator<Item = (&'a Knots, u64)>, s: f64) -> Tilt {
    let mut tilt = Tilt {
        exponent: s,
        cgf: 0.0,
        mean: 0.0,
        variance: 0.0,
    };
    for (knots, count) in parts {
        let (m0, m1, m2) = moments(knots, s);
        if m0 <= 0.0 {
            continue;
        }
        let (n, mean) = (count as f64, m1 / m0);
        tilt.cgf += n * m0.ln();
        tilt.mean += n * mean;
        tilt.variance += n * (m2 / m0 - mean * mean).max(0.0);
    }
    tilt
}

/// What is asked of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// ε at this δ.
    Delta(f64),
    /// δ at this ε.
    Epsilon(f64),
}

/// The tilt whose mean loss is about the answer: minimiser of `(K(s) − log δ)/s`, or
/// maximiser of `sε − K(s)`.
pub(super) fn choose_tilt(parts: &[Part], target: Target) -> Tilt {
    let all = || parts.iter().map(|p| (&p.upper, p.count));
    let reach = parts.iter().fold(1e-9f64, |r, part| {
        let k = &part.upper;
        let last = k.first + k.p.len() as i64;
        r.max(k.h * k.first.abs().max(last.abs()) as f64)
    });
    let bound = (600.0 / reach).ln();
    let cost = |x: f64| {
        let s = x.exp();
        let k = tilted(all(), s).cgf;
        match target {
            Target::Delta(delta) => (k - delta.ln()) / s,
            Target::Epsilon(epsilon) => k - s * epsilon,
        }
    };
    // Both are unimodal in log s.
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut low, mut high) = (bound - 16.0, bound);
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut fa, mut fb) = (cost(a), cost(b));
    for _ in 0..14 {
        if fa < fb {
            (high, b, fb) = (b, a, fa);
            a = high - ratio * (high - low);
            fa = cost(a);
        } else {
            (low, a, fa) = (a, b, fb);
            b = low + ratio * (high - low);
            fb = cost(b);
        }
    }
    // Towards the largest loss of all the tilted law degenerates: step back from it.
    let total: f64 = parts.iter().map(|p| p.count as f64).sum();
    let mut tilt = tilted(all(), (0.5 * (low + high)).exp());
    while tilt.variance < 1e-9 * total * reach * reach && tilt.exponent > 1e-3 {
        tilt = tilted(all(), 0.7 * tilt.exponent);
    }
    tilt
}

/// How far from its tilted mean the composed loss strays with probability `e^LOG_WINDOW`,
/// above (`sign` 1) or below (−1): Chernoff at a few exponents.
fn reach(parts: &[Part], centre: &Tilt, side: fn(&Part) -> &Knots, sign: f64) -> f64 {
    let best = (-2.0 * LOG_WINDOW / centre.variance.max(1e-300)).sqrt();
    [0.25, 0.5, 0.75, 1.0, 1.3]
        .iter()
        .map(|f| {
            let t = sign * f * best;
            let tilt = tilted(
                parts.iter().map(|p| (side(p), p.count)),
                centre.exponent + t,
            );
            ((tilt.cgf - centre.cgf - t * centre.mean) - LOG_WINDOW) / t.abs()
        })
        .filter(|w| w.is_finite())
        .fold(f64::INFINITY, f64::min)
}

/// Smallest and largest finite composed loss.
fn support(parts: &[Part], side: fn(&Part) -> &Knots) -> (f64, f64) {
    parts.iter().fold((0.0, 0.0), |(low, high), part| {
        let (k, n) = (side(part), part.count as f64);
        (
            low + n * k.first as f64 * k.h,
            high + n * (k.first + k.p.len() as i64) as f64 * k.h,
        )
    })
}

/// Composes `parts`, all on one grid, in the measure tilted by `s`. `None` where the
/// window would take too many points.
pub(super) fn compose(parts: &[Part], s: f64) -> Option<Composed> {
    let h = parts[0].upper.h;
    let sides: [fn(&Part) -> &Knots; 2] = [|p| &p.upper, |p| &p.lower];
    let tilts = sides.map(|side| tilted(parts.iter().map(|p| (side(p), p.count)), s));
    let window = |side: fn(&Part) -> &Knots, tilt: &Tilt| {
        let (start, end) = support(parts, side);
        (
            (tilt.mean - reach(parts, tilt, side, -1.0)).max(start),
            (tilt.mean + reach(parts, tilt, side, 1.0)).min(end),
        )
    };
    let (mut low, mut high) = window(sides[0], &tilts[0]);
    let other = window(sides[1], &tilts[1]);
    // On too coarse a grid the lower law lies elsewhere: then it says nothing.
    let room = 0.5 * (high - low);
    let told = tilts[1].variance > 0.0 && other.0 > low - room && other.1 < high + room;
    if told {
        (low, high) = (low.min(other.0), high.max(other.1));
    }
    let width = ((high - low) / h).ceil() + 4.0;
    if !(width < MOST_POINTS as f64) {
        return None;
    }
    let points = fast_length(width as usize);
    let first = (low / h).floor() as i64 - 1;
    let spectra = spectra(parts, s, points);
    let total: f64 = parts.iter().map(|p| p.count as f64).sum();
    // Relative error of one transformed value, and its growth under powers.
    let fft = 8.0 * (points as f64).log2() * f64::EPSILON;
    let mut sides = spectra
        .into_iter()
        .zip(&tilts)
        .map(|((wave, infinite), tilt)| {
            let spread: f64 = wave
                .iter()
                .map(|w| w.norm().powf(1.0 - 1.0 / total.max(2.0)).min(1.0))
                .sum::<f64>()
                / points as f64;
            let error = spread * fft * (total + 4.0);
            let mass = invert(wave, first, points);
            // Weights of the masses above ε sum to less than this.
            let weights = (1.0 / (h * s * (s + 1.0)) + 1.0).min(points as f64);
            Side {
                profile: profile(&mass, s, h),
                scale: tilt.cgf,
                error: error * weights + 4.0 * LOG_WINDOW.exp(),
                infinite,
            }
        });
    let (upper, mut lower) = (sides.next()?, sides.next()?);
    if !told {
        lower.error = f64::INFINITY;
    }
    Some(Composed {
        h,
        tilt: s,
        first,
        upper,
        lower,
        points,
    })
}

/// Spectra of the two composed and tilted laws, with the masses at infinity.
fn spectra(parts: &[Part], s: f64, points: usize) -> [(Vec<Complex<f64>>, f64); 2] {
    let half = points / 2 + 1;
    let unit = || vec![Complex::new(1.0, 0.0); half];
    let plan = FftPlanner::new().plan_fft_forward(points);
    let (upper, lower, infinite) = parts
        .par_iter()
        .fold(
            || (unit(), unit(), 0.0),
            |(mut up, mut low, infinite), part| {
                // Two real sequences in one complex transform.
                let mut wave = vec![Complex::new(0.0, 0.0); points];
                fold(&part.upper, s, &mut wave, |w, x| w.re += x);
                fold(&part.lower, s, &mut wave, |w, x| w.im += x);
                plan.process(&mut wave);
                for k in 0..half {
                    let (a, b) = (wave[k], wave[(points - k) % points].conj());
                    up[k] *= power((a + b) * 0.5, part.count);
                    let difference = a - b;
                    low[k] *= power(
                        Complex::new(0.5 * difference.im, -0.5 * difference.re),
                        part.count,
                    );
                }
                (up, low, infinite + part.count as f64 * part.upper.infinite)
            },
        )
        .reduce(
            || (unit(), unit(), 0.0),
            |mut a, b| {
                for k in 0..half {
                    a.0[k] *= b.0[k];
                    a.1[k] *= b.1[k];
                }
                a.2 += b.2;
                a
            },
        );
    [(upper, infinite), (lower, 0.0)]
}

/// Adds the tilted, normalised masses of `knots` to `wave`, indices modulo its length.
fn fold(knots: &Knots, s: f64, wave: &mut [Complex<f64>], add: impl Fn(&mut Complex<f64>, f64)) {
    let (total, _, _) = moments(knots, s);
    if total <= 0.0 {
        return;
    }
    let ratio = (s * knots.h).exp();
    let points = wave.len();
    let mut at = knots.first.rem_euclid(points as i64) as usize;
    for (block, chunk) in knots.p.chunks(64).enumerate() {
        let start = knots.first + 64 * block as i64;
        let mut weight = (s * start as f64 * knots.h).exp() / total;
        for p in chunk {
            add(&mut wave[at], p * weight);
            weight *= ratio;
            at = if at + 1 == points { 0 } else { at + 1 };
        }
    }
}

/// `z^n` by repeated squaring; zero at once where it is below e^-90.
fn power(mut z: Complex<f64>, mut n: u64) -> Complex<f64> {
    if n == 1 {
        return z;
    }
    if 0.5 * z.norm_sqr().ln() * (n as f64) < -90.0 {
        return Complex::new(0.0, 0.0);
    }
    let mut result = Complex::new(1.0, 0.0);
    while n > 0 {
        if n & 1 == 1 {
            result *= z;
        }
        z *= z;
        n >>= 1;
    }
    result
}

/// Masses at the knots `first .. first + points`.
fn invert(half: Vec<Complex<f64>>, first: i64, points: usize) -> Vec<f64> {
    let mut wave = half;
    wave.resize(points, Complex::new(0.0, 0.0));
    for k in points / 2 + 1..points {
        wave[k] = wave[points - k].conj();
    }
    FftPlanner::new()
        .plan_fft_inverse(points)
        .process(&mut wave);
    let start = first.rem_euclid(points as i64) as usize;
    (0..points)
        .map(|k| (wave[(start + k) % points].re / points as f64).max(0.0))
        .collect()
}

/// `d_k = Σ_{j>k} p̃_j e^{−s(j−k)h}(1 − e^{−(j−k)h})`.
fn profile(mass: &[f64], s: f64, h: f64) -> Vec<f64> {
    let (decay, inner, step) = ((-s * h).exp(), (-(s + 1.0) * h).exp(), -(-h).exp_m1());
    let mut d = vec![0.0; mass.len()];
    let mut tail = 0.0;
    for k in (0..mass.len().saturating_sub(1)).rev() {
        let above = tail + mass[k + 1];
        d[k] = decay * (d[k + 1] + step * above);
        tail = inner * above;
    }
    d
}

/// Smallest length ≥ n of the form 2^a·{1, 3, 5, 9, 15}/… that the FFT is fast at.
fn fast_length(n: usize) -> usize {
    let power = n.max(16).next_power_of_two();
    [9, 10, 12, 15, 16]
        .iter()
        .map(|f| power / 16 * f)
        .find(|&m| m >= n)
        .unwrap_or(power)
}

impl Composed {
    /// Bounds (lower, upper) on δ at knot k of the window.
    fn delta_at(&self, side: &Side, k: usize, sign: f64) -> f64 {
        let loss = (self.first + k as i64) as f64 * self.h;
        let value = (side.profile[k] + sign * side.error).max(0.0);
        (side.scale - self.tilt * loss).exp() * value + side.infinite
    }

    fn bound(&self, side: &Side, sign: f64, target: Target) -> f64 {
        let last = side.profile.len() - 1;
        let delta = |k: usize| self.delta_at(side, k, sign);
        let loss = |k: usize| (self.first + k as i64) as f64 * self.h;
        match target {
            Target::Delta(wanted) => {
                let start = (-self.first).clamp(0, last as i64) as usize;
                let (low, high) = if sign > 0.0 {
                    // Decreasing in ε, its error included: the first knot at or below.
                    if delta(last) > wanted {
                        return f64::INFINITY;
                    }
                    if delta(start) <= wanted {
                        return loss(start).max(0.0);
                    }
                    let (mut low, mut high) = (start, last);
                    while high - low > 1 {
                        let middle = usize::midpoint(low, high);
                        if delta(middle) > wanted {
                            low = middle;
                        } else {
                            high = middle;
                        }
                    }
                    (low, high)
                } else {
                    // Far from the tilted mean the error swamps the value: the last knot above.
                    match (start..=last).rev().find(|&k| delta(k) > wanted) {
                        None => return 0.0,
                        Some(low) if low == last => return loss(last),
                        Some(low) => (low, low + 1),
                    }
                };
                // δ is linear in e^ε between knots.
                let (a, b) = (delta(low), delta(high));
                let share = ((a - wanted) / (a - b)).clamp(0.0, 1.0);
                loss(low) + (share * self.h.exp_m1()).ln_1p()
            }
            Target::Epsilon(epsilon) => {
                let at = epsilon / self.h - self.first as f64;
                if at < 0.0 {
                    return if sign > 0.0 { 1.0 } else { delta(0) };
                }
                if at >= last as f64 {
                    return if sign > 0.0 { delta(last) } else { 0.0 };
                }
                let k = at as usize;
                let share = ((at - k as f64) * self.h).exp_m1() / self.h.exp_m1();
                delta(k) + share * (delta(k + 1) - delta(k))
            }
        }
    }

    /// (lower, upper) bounds on what is asked. Losses were evaluated to a relative 1e-14:
    /// `rounding` (nats) is what the composition makes of it.
    pub(super) fn answer(&self, target: Target, rounding: f64) -> (f64, f64) {
        match target {
            Target::Delta(_) => (
                (self.bound(&self.lower, -1.0, target) - rounding).max(0.0),
                self.bound(&self.upper, 1.0, target) + rounding,
            ),
            Target::Epsilon(epsilon) => (
                self.bound(&self.lower, -1.0, Target::Epsilon(epsilon + rounding)),
                self.bound(
                    &self.upper,
                    1.0,
                    Target::Epsilon((epsilon - rounding).max(0.0)),
                )
                .min(1.0),
            ),
        }
    }
}
