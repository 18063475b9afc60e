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
use super::tilt::{Part, Target, moments};
use super::window::{Totals, Window};

/// Most points of a transform.
const MOST_POINTS: usize = 1 << 23;

/// A composed profile at the knots of a window, times `e^{sε}/M`.
#[derive(Clone, Debug)]
struct Side {
    profile: Vec<f64>,
    /// log M.
    scale: f64,
    /// Error of each entry of `profile`, above and below.
    error: f64,
    /// Mass at infinity.
    infinite: f64,
}

/// Bounds on a composed profile.
#[derive(Clone, Debug)]
pub(super) struct Composed {
    h: f64,
    tilt: f64,
    first: i64,
    upper: Side,
    lower: Side,
    /// Points of the transform.
    pub points: usize,
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
    if width.is_nan() || width >= MOST_POINTS as f64 {
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
        // Σ over frequencies of n|z|^{n−1}; of several parts no more is known than |z| ≤ 1.
        let spread = if n == 1 {
            let power = 1.0 - 1.0 / sums.releases;
            2.0 * wave.iter().map(|w| w.norm().powf(power)).sum::<f64>() / points as f64
        } else {
            1.0
        };
        let error = spread * fft * (sums.releases + 4.0);
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
    let total = moments(knots, s).mass;
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
