//! The window of losses that a composition is computed in, and a bound on what lies
//! outside it (Chernoff's inequality in the tilted measure).

use super::grid::Knots;
use super::tilt::{Part, Tilt, moments};

/// Log of the mass aimed at outside the window, in the tilted measure: about 1e-6 of δ.
const LOG_WINDOW: f64 = -21.0;
/// Factors of the exponents at which Chernoff's inequality is tried.
const FACTORS: [f64; 3] = [0.5, 0.8, 1.1];
/// Largest exponents below, as shares of the tilt s: `E e^{(s−t)L}` is sure to be finite
/// for t ≤ s.
const SHARES: [f64; 3] = [0.4, 0.7, 0.95];

/// Exponents t > 0 above (`sign` 1) or below (−1).
fn exponents(tilt: f64, chernoff: f64, sign: f64) -> [f64; FACTORS.len()] {
    std::array::from_fn(|i| {
        let t = FACTORS[i] * chernoff;
        if sign > 0.0 {
            t
        } else {
            t.min(SHARES[i] * tilt)
        }
    })
}

/// Where a composed loss is looked for, in the measure tilted by `tilt`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub tilt: f64,
    pub low: f64,
    pub high: f64,
    /// Exponent of Chernoff's inequality, before the factors.
    pub chernoff: f64,
}

/// Sums over the parts, for one of their two grids.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub cgf: f64,
    mean: f64,
    pub variance: f64,
    /// `log E e^{(s±t)L}` at the exponents, above and below.
    beyond: [[f64; FACTORS.len()]; 2],
    /// Smallest and largest composed loss.
    support: (f64, f64),
    pub infinite: f64,
}

impl Totals {
    pub fn add(&mut self, (knots, count): &(Knots, u64), s: f64, chernoff: f64) {
        let sums = moments(knots, s);
        if sums.mass <= 0.0 || *count == 0 {
            return;
        }
        let (n, mean) = (*count as f64, sums.mean());
        self.cgf += n * sums.mass.ln();
        self.mean += n * mean;
        self.variance += n * sums.variance();
        for (sign, beyond) in [1.0, -1.0].into_iter().zip(&mut self.beyond) {
            for (t, sum) in exponents(s, chernoff, sign).into_iter().zip(beyond) {
                *sum += n * moments(knots, s + sign * t).mass.ln();
            }
        }
        self.support.0 += n * knots.first as f64 * knots.h;
        self.support.1 += n * (knots.first + knots.p.len() as i64) as f64 * knots.h;
        self.infinite += n * knots.infinite;
    }

    pub fn merge(mut self, other: &Self) -> Self {
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
    pub fn outside(&self, window: &Window) -> f64 {
        let side = |reached: bool, end: f64, sums: &[f64], sign: f64| {
            if reached {
                return 0.0;
            }
            let log = exponents(window.tilt, window.chernoff, sign)
                .into_iter()
                .zip(sums)
                .map(|(t, sum)| sum - self.cgf - sign * t * end)
                .filter(|x| !x.is_nan())
                .fold(0.0, f64::min);
            log.exp()
        };
        let (low, high) = self.support;
        side(high <= window.high, window.high, &self.beyond[0], 1.0)
            + side(low >= window.low, window.low, &self.beyond[1], -1.0)
    }

    /// The window outside which at most `e^LOG_WINDOW` lies, by the same inequality.
    pub fn window(&self, tilt: f64, chernoff: f64) -> Window {
        let reach = |sums: &[f64], sign: f64| {
            exponents(tilt, chernoff, sign)
                .into_iter()
                .zip(sums)
                .map(|(t, sum)| (sum - self.cgf - sign * t * self.mean - LOG_WINDOW) / t)
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
