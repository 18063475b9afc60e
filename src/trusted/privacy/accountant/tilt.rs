//! Exponential tilting of composed losses: where the answer lies.

use super::grid::Knots;

/// A pair's two grids and how often each is taken: for a bucket's edge, once for the
/// bucket below and once for the one above it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub upper: (Knots, u64),
    pub lower: (Knots, u64),
}

/// One of the two grids of a part, with its count.
type Grid = fn(&Part) -> &(Knots, u64);

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

/// Sums over knots of tilted mass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tilted {
    /// `Σ p e^{sℓ}`.
    pub mass: f64,
    /// `Σ p e^{sℓ} ℓ`.
    pub first: f64,
    /// `Σ p e^{sℓ} ℓ²`.
    pub second: f64,
}

impl Tilted {
    /// Mean loss.
    pub fn mean(self) -> f64 {
        self.first / self.mass
    }

    /// Variance of the loss.
    pub fn variance(self) -> f64 {
        let mean = self.mean();
        (self.second / self.mass - mean * mean).max(0.0)
    }
}

/// The sums of a grid tilted by s.
pub(super) fn moments(knots: &Knots, s: f64) -> Tilted {
    let ratio = (s * knots.h).exp();
    let mut sums = Tilted::default();
    // A fresh exponential every 64 knots keeps the powers exact to 64 ulp.
    for (block, chunk) in knots.p.chunks(64).enumerate() {
        let start = knots.first + 64 * block as i64;
        let mut weight = (s * start as f64 * knots.h).exp();
        for (k, p) in chunk.iter().enumerate() {
            let loss = (start + k as i64) as f64 * knots.h;
            let w = p * weight;
            sums.mass += w;
            sums.first += w * loss;
            sums.second += w * loss * loss;
            weight *= ratio;
        }
    }
    sums
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
        let sums = moments(knots, s);
        if sums.mass <= 0.0 || *count == 0 {
            continue;
        }
        let n = *count as f64;
        tilt.cgf += n * sums.mass.ln();
        tilt.mean += n * sums.mean();
        tilt.variance += n * sums.variance();
    }
    tilt
}

/// Number of releases.
pub(super) fn total(parts: &[Part]) -> f64 {
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
