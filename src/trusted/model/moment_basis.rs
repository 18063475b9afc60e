//! Which moments of the rows are released, and what a release holds.

use serde::{Deserialize, Serialize};

use crate::models::Anchor;

/// Weights of successive Chebyshev moments in a release fall by this factor: the log
/// likelihood's own coefficients fall faster, so that high moments may be the noisier ones.
const FALL: f64 = 0.6;
/// Highest degree.
pub const MOST_MOMENTS: usize = 30;
/// Which moments are released, of rows with norm at most `bound`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MomentBasis {
    /// 1: the columns' own sums. K > 1: `Σ T_k(x/B)`, k = 1 … K, of the one column.
    pub degree: usize,
    /// Columns of a row.
    pub features: usize,
    /// B.
    pub bound: f64,
}

impl MomentBasis {
    /// Checks that these moments exist.
    pub fn is_valid(&self) -> bool {
        let shape = match self.degree {
            0 => false,
            1 => self.features > 0,
            k => self.features == 1 && k <= MOST_MOMENTS,
        };
        shape && self.bound > 0.0 && self.bound.is_finite()
    }

    /// Number of moments m.
    pub fn len(&self) -> usize {
        match self.degree {
            1 => self.features,
            k => k,
        }
    }

    /// Never, where it is valid.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Weight w_k of each moment in the release.
    pub fn weight(&self, moment: usize) -> f64 {
        match self.degree {
            1 => 1.0,
            _ => FALL.powi(moment as i32),
        }
    }

    /// A bound R on the L2 norm of a row's weighted moments: 1 for the row itself over B,
    /// `√(Σ w_k²)` for Chebyshev polynomials, which are at most 1.
    pub fn radius(&self) -> f64 {
        match self.degree {
            1 => 1.0,
            k => (0..k).map(|k| FALL.powi(2 * k as i32)).sum::<f64>().sqrt(),
        }
    }

    /// A row's weighted moments, m values; the row beyond ±B counts as at its end.
    pub(in crate::trusted) fn of_row(&self, row: &[f64], out: &mut [f64]) {
        if self.degree == 1 {
            for (o, x) in out.iter_mut().zip(row) {
                *o = x / self.bound;
            }
            return;
        }
        let t = (row.first().copied().unwrap_or(0.0) / self.bound).clamp(-1.0, 1.0);
        let (mut before, mut now) = (1.0, t);
        for (k, o) in out.iter_mut().enumerate() {
            *o = self.weight(k) * now;
            (before, now) = (now, 2.0 * t * now - before);
        }
    }
}

/// Released moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// What they are.
    pub basis: MomentBasis,
    /// Rows N, public: the moment of order 0.
    pub rows: f64,
    /// `Σ_i x_ij/B`, or `Σ_i T_k(x_i/B)`, plus noise; m values.
    pub sums: Vec<f64>,
    /// Standard deviation of the noise in each.
    pub sds: Vec<f64>,
}

impl Moments {
    /// Whether the arrays fit together and hold numbers.
    pub fn is_valid(&self) -> bool {
        self.basis.is_valid()
            && self.sums.len() == self.basis.len()
            && self.sds.len() == self.basis.len()
            && self.rows >= 1.0
            && self.sums.iter().all(|v| v.is_finite())
            && self.sds.iter().all(|v| *v >= 0.0 && v.is_finite())
    }
}

/// What an anchored run releases before its first step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnchorRelease {
    /// Gradient and curvature at a point.
    Expansion(Anchor),
    /// Moments of the rows.
    Moments(Moments),
}

impl From<Anchor> for AnchorRelease {
    fn from(anchor: Anchor) -> Self {
        AnchorRelease::Expansion(anchor)
    }
}

impl From<Moments> for AnchorRelease {
    fn from(moments: Moments) -> Self {
        AnchorRelease::Moments(moments)
    }
}
