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

/// Log of the mass aimed at outside the window, in the tilted measure: about 1e-6 of δ.
const LOG_WINDOW: f64 = -21.0;
/// Most points of a transform.
const MOST_POINTS: usize = 1 << 25;

/// A pair's two grids and how often each is taken: for a bucket's edge, once for the
/// bucket below and once for the one above it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub upper: (Knots, u64),
    pub lower: (Knots, u64),
}

/// One of the two grids of a part, with its count.
type Grid = fn(&Part) -> &(Knots, u64);

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
fn tilted(parts: &[Part], grid: Grid, s: f64) -> Tilt {
    let mut tilt = Tilt {
        exponent: s,
        cgf: 0.0,
        mean: 0.0,
        variance: 0.0,
    };
    for (knots, count) in parts.iter().map(grid) {
        let (m0, m1, m2) = moments(knots, s);
        if m0 <= 0.0 || *count == 0 {
            continue;
        }
        let (n, mean) = (*count as f64, m1 / m0);
        tilt.cgf += n * m0.ln();
        tilt.mean += n * mean;
        tilt.variance += n * (m2 / m0 - mean * mean).max(0.0);
    }
    tilt
}

/// Number of releases.
fn total(parts: &[Part]) -> f64 {
    parts.iter().map(|p| p.upper.1 as f64).sum()
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
    let grid: Grid = |part| &part.upper;
    let reach = parts.iter().fold(1e-9f64, |r, part| {
        let (k, _) = &part.upper;
        let last = k.first + k.p.len() as i64;
        r.max(k.h * k.first.abs().max(last.abs()) as f64)
    });
    let bound = (600.0 / reach).ln();
    let cost = |x: f64| {
        let s = x.exp();
        let k = tilted(parts, grid, s).cgf;
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
    let total = total(parts);
    let mut tilt = tilted(parts, grid, (0.5 * (low + high)).exp());
    while tilt.variance < 1e-9 * total * reach * reach && tilt.exponent > 1e-3 {
        tilt = tilted(parts, grid, 0.7 * tilt.exponent);
    }
    tilt
}

/// Factors of the exponents at which Chernoff's inequality is tried.
const EXPONENTS: [f64; 3] = [0.5, 0.8, 1.1];

/// Where a composed loss is looked for, in the measure tilted by `tilt`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub tilt: f64,
    low: f64,
    high: f64,
    /// Exponent of Chernoff's inequality, before the factors.
    chernoff: f64,
}

/// Sums over the parts, for one of their two grids.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    cgf: f64,
    mean: f64,
    variance: f64,
    /// `log E e^{(s±t)L}` at the exponents, above and below.
    beyond: [[f64; EXPONENTS.len()]; 2],
    /// Smallest and largest composed loss.
    support: (f64, f64),
    infinite: f64,
}

impl Totals {
    fn add(&mut self, (knots, count): &(Knots, u64), s: f64, chernoff: f64) {
        let (m0, m1, m2) = moments(knots, s);
        if m0 <= 0.0 || *count == 0 {
            return;
        }
        let (n, mean) = (*count as f64, m1 / m0);
        self.cgf += n * m0.ln();
        self.mean += n * mean;
        self.variance += n * (m2 / m0 - mean * mean).max(0.0);
        for (sign, beyond) in [1.0, -1.0].into_iter().zip(&mut self.beyond) {
            for (f, sum) in EXPONENTS.iter().zip(beyond) {
                *sum += n * moments(knots, s + sign * f * chernoff).0.ln();
            }
        }
        self.support.0 += n * knots.first as f64 * knots.h;
        self.support.1 += n * (knots.first + knots.p.len() as i64) as f64 * knots.h;
        self.infinite += n * knots.infinite;
    }

    fn merge(mut self, other: &Self) -> Self {
        self.cgf += other.cgf;
        self.mean += other.mean;
        self.variance += other.variance;
        for (a, b) in self
            .beyond
            .iter_mut()
            .flatten()
            .zip(other.beyond.iter().flatten())
        {
            *a += b;
        }
        self.support.0 += other.support.0;
        self.support.1 += other.support.1;
        self.infinite += other.infinite;
        self
    }

    /// Bound on the tilted mass outside `window`.
    fn outside(&self, window: &Window) -> f64 {
        let side = |reached: bool, end: f64, sums: &[f64], sign: f64| {
            if reached {
                return 0.0;
            }
            let log = EXPONENTS
                .iter()
                .zip(sums)
                .map(|(f, sum)| sum - self.cgf - sign * f * window.chernoff * end)
                .filter(|x| !x.is_nan())
                .fold(0.0, f64::min);
            log.exp()
        };
        let (low, high) = self.support;
        side(high <= window.high, window.high, &self.beyond[0], 1.0)
            + side(low >= window.low, window.low, &self.beyond[1], -1.0)
    }

    /// The window outside which at most `e^LOG_WINDOW` lies, by the same inequality.
    fn window(&self, tilt: f64, chernoff: f64) -> Window {
        let reach = |sums: &[f64], sign: f64| {
            EXPONENTS
                .iter()
                .zip(sums)
                .map(|(f, sum)| {
                    let t = f * chernoff;
                    (sum - self.cgf - sign * t * self.mean - LOG_WINDOW) / t
                })
                .filter(|w| w.is_finite())
                .fold(f64::INFINITY, f64::min)
        };
        Window {
            tilt,
            low: (self.mean - reach(&self.beyond[1], -1.0)).max(self.support.0),
            high: (self.mean + reach(&self.beyond[0], 1.0)).min(self.support.1),
            chernoff: (-2.0 * LOG_WINDOW / self.variance.max(1e-300)).sqrt(),
        }
    }
}

/// Where the composition of `parts` lies in the measure tilted by `tilt`.
pub(super) fn locate(parts: &[Part], tilt: &Tilt) -> Window {
    let chernoff = (-2.0 * LOG_WINDOW / tilt.variance.max(1e-300)).sqrt();
    let mut totals = Totals::default();
    for part in parts {
        totals.add(&part.upper, tilt.exponent, chernoff);
    }
    totals.window(tilt.exponent, chernoff)
}

/// What a composition came to.
pub(super) enum Outcome {
    Composed(Box<Composed>),
    /// Too much lies outside the window: this one holds it.
    Elsewhere(Window),
    /// The window would take too many points, or a part does not fit a grid.
    Impossible,
}

/// Composes `n` parts, made one at a time by `part` on one grid of width `h`.
pub(super) fn compose(
    n: usize,
    part: &(dyn Fn(usize) -> Option<Part> + Sync),
    h: f64,
    window: Window,
) -> Outcome {
    let s = window.tilt;
    let width = ((window.high - window.low) / h).ceil() + 4.0;
    if !(width < MOST_POINTS as f64) {
        return Outcome::Impossible;
    }
    let points = fast_length(width as usize);
    let first = (window.low / h).floor() as i64 - 1;
    let Some(sums) = spectra(n, part, &window, points) else {
        return Outcome::Impossible;
    };
    let outside = [0, 1].map(|k| sums.totals[k].outside(&window));
    if outside[0] > 1e-8 {
        let better = sums.totals[0].window(s, window.chernoff);
        if better.low < window.low || better.high > window.high {
            return Outcome::Elsewhere(better);
        }
    }
    // Relative error of one transformed value, and its growth under powers.
    let fft = 8.0 * (points as f64).log2() * f64::EPSILON;
    // Weights of the masses above ε sum to less than this.
    let weights = (1.0 / (h * s * (s + 1.0)) + 1.0).min(points as f64);
    let side = |wave: Vec<Complex<f64>>, k: usize| {
        let power = 1.0 - 1.0 / sums.releases.max(2.0);
        let spread: f64 = wave.iter().map(|w| w.norm().powf(power).min(1.0)).sum();
        let error = spread / points as f64 * fft * (sums.releases + 4.0);
        Side {
            profile: profile(&invert(wave, first, points), s, h),
            scale: sums.totals[k].cgf,
            error: error * weights + 2.0 * outside[k],
            infinite: sums.totals[k].infinite,
        }
    };
    let [upper, lower] = sums.waves;
    let mut lower = side(lower, 1);
    // On too coarse a grid the lower law lies elsewhere, or is nothing: it says nothing.
    if sums.totals[1].variance <= 0.0 {
        lower.error = f64::INFINITY;
    }
    Outcome::Composed(Box::new(Composed {
        h,
        tilt: s,
        first,
        upper: side(upper, 0),
        lower,
        points,
    }))
}

/// Products over the parts, upper and lower.
struct Sums {
    waves: [Vec<Complex<f64>>; 2],
    totals: [Totals; 2],
    releases: f64,
}

/// Spectra of the two composed and tilted laws, and sums over the parts. The parts are
/// not kept: a schedule's grids together would fill the memory.
fn spectra(
    n: usize,
    part: &(dyn Fn(usize) -> Option<Part> + Sync),
    window: &Window,
    points: usize,
) -> Option<Sums> {
    let half = points / 2 + 1;
    let s = window.tilt;
    let empty = || Sums {
        waves: [0, 1].map(|_| vec![Complex::new(1.0, 0.0); half]),
        totals: [Totals::default(); 2],
        releases: 0.0,
    };
    let plan = FftPlanner::new().plan_fft_forward(points);
    (0..n)
        .into_par_iter()
        .try_fold(empty, |mut sums, i| {
            let part = part(i)?;
            sums.totals[0].add(&part.upper, s, window.chernoff);
            sums.totals[1].add(&part.lower, s, window.chernoff);
            sums.releases += part.upper.1 as f64;
            // Two real sequences in one complex transform.
            let mut wave = vec![Complex::new(0.0, 0.0); points];
            fold(&part.upper.0, s, &mut wave, |w, x| w.re += x);
            fold(&part.lower.0, s, &mut wave, |w, x| w.im += x);
            plan.process(&mut wave);
            for k in 0..half {
                let (a, b) = (wave[k], wave[(points - k) % points].conj());
                sums.waves[0][k] *= power((a + b) * 0.5, part.upper.1);
                let d = a - b;
                sums.waves[1][k] *= power(Complex::new(0.5 * d.im, -0.5 * d.re), part.lower.1);
            }
            Some(sums)
        })
        .try_reduce(empty, |mut a, b| {
            for (x, y) in a.waves.iter_mut().zip(&b.waves) {
                x.iter_mut().zip(y).for_each(|(x, y)| *x *= y);
            }
            Some(Sums {
                totals: [0, 1].map(|k| a.totals[k].merge(&b.totals[k])),
                releases: a.releases + b.releases,
                waves: a.waves,
            })
        })
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
