//! Noise on the exact sums of an anchor, coordinate by coordinate on their integer grid.

use super::discrete_gaussian::discrete_gaussian;
use super::secret::Secret;
use super::secret_rng::SecretRng;
use crate::engine::{AnchorSums, MomentSums};

/// Noise of an anchor in squared integer units. A part that is `None` is not released; 0 releases
/// exactly (not private).
#[derive(Clone, Copy, Debug)]
pub(in crate::trusted::privacy) struct AnchorVariances {
    /// Of each gradient coordinate.
    pub gradient: Option<u128>,
    /// Of each **off-diagonal** curvature coordinate; diagonal ones get twice as much.
    pub curvature: Option<u128>,
    /// Of each entry of the profile.
    pub profile: Option<u128>,
}

/// Adds the noise; empties what is not released.
///
/// Privacy: discrete Gaussians on the integers, one a coordinate. The gradient costs
/// `Σ_j Δ_j²/(2σ²) ≤ Δ²/(2σ²)`; the curvature with variance 2v on the diagonal and v off it
/// costs `Σ_jj Δ²/(4v) + Σ_{j>k} Δ²/(2v) = ‖ΔC‖_F²/(4v)` (Canonne, Kamath & Steinke 2020,
/// Theorem 4, composed over coordinates).
pub(in crate::trusted::privacy) fn expansion(
    rng: &mut SecretRng,
    sums: Secret<AnchorSums>,
    noise: AnchorVariances,
) -> AnchorSums {
    let mut sums = sums.open();
    let mut blur = |sums: &mut Vec<i128>, variance: Option<u128>| match variance {
        None => sums.clear(),
        Some(0) => {}
        Some(v) => sums
            .iter_mut()
            .for_each(|s| *s += discrete_gaussian(rng, v)),
    };
    blur(&mut sums.gradient, noise.gradient);
    blur(&mut sums.profile, noise.profile);
    let Some(off_diagonal) = noise.curvature else {
        sums.curvature.clear();
        return sums;
    };
    if off_diagonal == 0 {
        return sums;
    }
    let (mut row, mut column) = (0, 0);
    for c in &mut sums.curvature {
        let variance = if row == column {
            2 * off_diagonal
        } else {
            off_diagonal
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
pub(in crate::trusted::privacy) fn moments(
    rng: &mut SecretRng,
    sums: Secret<MomentSums>,
    variance: Option<u128>,
) -> Vec<i128> {
    let MomentSums(sums) = sums.open();
    match variance {
        Some(variance) => noisy_sums(rng, Secret::seal(sums), variance),
        None => sums,
    }
}

/// Whole numbers with one discrete Gaussian each.
pub(in crate::trusted::privacy) fn noisy_sums(
    rng: &mut SecretRng,
    sums: Secret<Vec<i128>>,
    variance: u128,
) -> Vec<i128> {
    let sums = sums.open().into_iter();
    sums.map(|s| s + discrete_gaussian(rng, variance)).collect()
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
            gradient: Some(1 << 40),
            curvature: Some(1 << 50),
            profile: Some(1 << 30),
        };
        let n = 20_000;
        let mut squares = [0.0f64; 4];
        for _ in 0..n {
            let zero = AnchorSums {
                gradient: vec![0],
                curvature: vec![0; 3],
                profile: vec![0],
            };
            let out = expansion(&mut rng, Secret::seal(zero), noise);
            squares[0] += (out.gradient[0] as f64).powi(2);
            squares[1] += (out.curvature[2] as f64).powi(2);
            squares[2] += (out.curvature[1] as f64).powi(2);
            squares[3] += (out.profile[0] as f64).powi(2);
        }
        let expected = [40.0f64, 51.0, 50.0, 30.0].map(f64::exp2);
        for (sum, variance) in squares.iter().zip(expected) {
            let ratio = sum / f64::from(n) / variance;
            assert!(
                (ratio - 1.0).abs() < 6.0 * (2.0 / f64::from(n)).sqrt(),
                "{ratio}"
            );
        }
    }

    /// What is not asked for does not leave.
    #[test]
    fn parts_that_are_not_released_are_empty() {
        let mut rng = SecretRng::from_seed(5, 0);
        let sums = AnchorSums::zero(3);
        let none = AnchorVariances {
            gradient: None,
            curvature: None,
            profile: None,
        };
        let out = expansion(&mut rng, Secret::seal(sums), none);
        assert!(out.gradient.is_empty() && out.curvature.is_empty() && out.profile.is_empty());
    }
}
