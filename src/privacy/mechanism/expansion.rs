//! Noise on the exact sums of an anchor, coordinate by coordinate on their integer grid.

use super::discrete_gaussian::discrete_gaussian;
use super::secret::Secret;
use super::secret_rng::SecretRng;
use crate::engine::{AnchorSums, MomentSums};

/// Noise of an anchor in squared integer units; `None` releases exactly (not private).
#[derive(Clone, Copy, Debug)]
pub(in crate::privacy) struct AnchorVariances {
    /// Of each gradient coordinate.
    pub gradient: u128,
    /// Of each **off-diagonal** curvature coordinate; diagonal ones get twice as much.
    pub curvature: u128,
}

/// Adds the noise.
///
/// Privacy: discrete Gaussians on the integers, one a coordinate. The gradient costs
/// `Σ_j Δ_j²/(2σ²) ≤ Δ²/(2σ²)`; the curvature with variance 2v on the diagonal and v off it
/// costs `Σ_jj Δ²/(4v) + Σ_{j>k} Δ²/(2v) = ‖ΔC‖_F²/(4v)` (Canonne, Kamath & Steinke 2020,
/// Theorem 4, composed over coordinates).
pub(in crate::privacy) fn expansion(
    rng: &mut SecretRng,
    sums: Secret<AnchorSums>,
    noise: Option<AnchorVariances>,
) -> AnchorSums {
    let mut sums = sums.open();
    let Some(noise) = noise else {
        return sums;
    };
    for g in &mut sums.gradient {
        *g += discrete_gaussian(rng, noise.gradient);
    }
    let (mut row, mut column) = (0, 0);
    for c in &mut sums.curvature {
        let variance = if row == column {
            2 * noise.curvature
        } else {
            noise.curvature
        };
        *c += discrete_gaussian(rng, variance);
        column += 1;
        if column > row {
            (row, column) = (row + 1, 0);
        }
    }
    sums
}

/// The same for moments: one discrete Gaussian a moment, `Σ_k Δ_k²/(2σ²) ≤ Δ²/(2σ²)`.
pub(in crate::privacy) fn moments(
    rng: &mut SecretRng,
    sums: Secret<MomentSums>,
    variance: Option<u128>,
) -> Vec<i128> {
    let MomentSums(mut sums) = sums.open();
    if let Some(variance) = variance {
        for s in &mut sums {
            *s += discrete_gaussian(rng, variance);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each coordinate's noise has the stated variance: 20,000 squares a kind, within 6
    /// standard errors (√(2/n) each; false alarm 2e-9).
    #[test]
    fn noise_has_the_stated_variance() {
        let mut rng = SecretRng::from_seed(5, 0);
        let noise = AnchorVariances {
            gradient: 1 << 40,
            curvature: 1 << 50,
        };
        let n = 20_000;
        let mut squares = [0.0f64; 3];
        for _ in 0..n {
            let zero = AnchorSums {
                gradient: vec![0],
                curvature: vec![0; 3],
            };
            let out = expansion(&mut rng, Secret::seal(zero), Some(noise));
            squares[0] += (out.gradient[0] as f64).powi(2);
            squares[1] += (out.curvature[2] as f64).powi(2);
            squares[2] += (out.curvature[1] as f64).powi(2);
        }
        let expected = [40.0f64.exp2(), 51.0f64.exp2(), 50.0f64.exp2()];
        for (sum, variance) in squares.iter().zip(expected) {
            let ratio = sum / f64::from(n) / variance;
            assert!(
                (ratio - 1.0).abs() < 6.0 * (2.0 / f64::from(n)).sqrt(),
                "{ratio}"
            );
        }
    }
}
