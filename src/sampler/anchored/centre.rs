//! What is believed of a posterior's centre from a noisy gradient, a noisy curvature and the prior.
//! All are in the coordinates of one release.

use nalgebra::{DMatrix, DVector};

use super::algebra::{factor, forward, solve, solve_vector, whiten};
use super::denoise::{compose, eigen, floored};
use crate::privacy::Halt;

/// The prior is followed up to so many sds of what it and the noise together allow for.
const BELIEVED_PRIOR: f64 = 3.0;

/// The posterior's centre from the likelihood's gradient and curvature `h`, a gradient's noise and
/// the prior, and what variance [`spread`] lacks where the prior could not be followed.
pub(super) fn centre_of(
    h: &DMatrix<f64>,
    noise: &DMatrix<f64>,
    prior: &DMatrix<f64>,
    gradient: &DVector<f64>,
    prior_pull: &DVector<f64>,
) -> Result<(DVector<f64>, DMatrix<f64>), Halt> {
    let precision = h + prior;
    let noisy = solve_vector(&precision, &(gradient + prior_pull))?;
    let believed = believed_centre(h, noise, prior, gradient, prior_pull)?;
    let apart = conflict(&noisy, &believed, &precision, prior, noise)?;
    Ok((believed + apart.back, apart.variance))
}

/// The posterior's centre given a gradient with this noise: where that drowns the curvature, the
/// prior's.
fn believed_centre(
    h: &DMatrix<f64>,
    noise: &DMatrix<f64>,
    prior: &DMatrix<f64>,
    gradient: &DVector<f64>,
    prior_pull: &DVector<f64>,
) -> Result<DVector<f64>, Halt> {
    let seen = h + noise;
    let known = h * solve(&seen, h)?;
    let tiny = DMatrix::identity(h.nrows(), h.nrows()) * 1e-12;
    let pull = h * solve_vector(&seen, gradient)? + prior_pull;
    solve_vector(&((&known + known.transpose()) * 0.5 + prior + tiny), &pull)
}

/// Covariance of what the releases leave unknown of the centre, in the anchor's coordinates.
pub(super) fn spread(
    h: &DMatrix<f64>,
    precision: &DMatrix<f64>,
    prior: &DMatrix<f64>,
    noise: &DMatrix<f64>,
) -> Result<DMatrix<f64>, Halt> {
    let one = DMatrix::identity(prior.nrows(), prior.nrows());
    // A centre known by H alone with noise Σ has the precision H(H + Σ)⁻¹H (and the prior's): where
    // curvature drowns, that is the prior's.
    let known = h * solve(&(h + noise), h)?;
    let known = (&known + known.transpose()) * 0.5;
    let tiny = &one * 1e-9;
    let whole = solve(&(known + prior + &tiny), &one)?;
    // What draws of the anchor's own Gaussian show of it already.
    let own = solve(&(precision + &tiny), &one)?;
    Ok(floored(&(whole - own), 0.0))
}

/// What the prior was followed too far.
struct Conflict {
    /// The way back, to be added to the believed centre.
    back: DVector<f64>,
    /// Variance that the prior can no longer take away.
    variance: DMatrix<f64>,
}

/// Where noise is large `believed_centre` leaves the noisy centre for the prior's. Where the noisy
/// centre lies farther off than the prior and the noise allow for, the prior is what is wrong, and
/// it is followed the less the farther off that is (limited translation: Efron & Morris 1971).
///
/// The noisy centre c₀ has noise of covariance N = A⁻¹ΣA⁻¹, A the posterior's precision; a priori
/// the centre without noise varies by C = Λ⁻¹ − A⁻¹, Λ the prior's. Directions are those in which
/// N is one and C diagonal, γ: there the prior takes b = 1/(1+γ) of c₀, which is √(1+γ) times a
/// standard normal.
fn conflict(
    noisy: &DVector<f64>,
    believed: &DVector<f64>,
    precision: &DMatrix<f64>,
    prior: &DMatrix<f64>,
    noise: &DMatrix<f64>,
) -> Result<Conflict, Halt> {
    let d = noisy.len();
    let one = DMatrix::identity(d, d);
    let tiny = &one * 1e-9;
    let inverse = |matrix: &DMatrix<f64>| solve(&(matrix + &tiny), &one);
    let allowed = inverse(prior)? - inverse(precision)?;
    // N = W Wᵀ with W = A⁻¹L, Σ = LLᵀ.
    let l = factor(noise)?;
    let w = solve(precision, &l)?;
    let (gamma, directions) = eigen(&whiten(&l, &(precision * allowed * precision))?);
    let taken = gamma.map(|g| 1.0 / (1.0 + g.max(0.0)));
    let moved = directions.tr_mul(&forward(&l, &(precision * (believed - noisy)))?);
    let followed = moved.zip_map(&taken, |moved, taken| {
        let sds = moved.abs() / taken.sqrt();
        (BELIEVED_PRIOR / sds.max(1e-300)).powi(2).min(1.0)
    });
    let back = -moved.zip_map(&followed, |moved, f| moved * (1.0 - f));
    let variance = taken.zip_map(&followed, |taken, f| taken * (1.0 - f));
    Ok(Conflict {
        back: &w * (&directions * back),
        variance: &w * compose(&directions, &variance) * w.transpose(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One coordinate by hand: A = 4 of which the prior has 1, noise of sd 4 in the gradient, so 1
    /// in the centre; without noise the centre varies by 3/4 a priori.
    #[test]
    fn a_prior_far_from_the_rows_is_not_followed() {
        let m = |v: f64| DMatrix::from_element(1, 1, v);
        let v = |v: f64| DVector::from_element(1, v);
        let centre = |noisy: f64| {
            let gradient = v(4.0 * noisy);
            let believed = believed_centre(&m(3.0), &m(16.0), &m(1.0), &gradient, &v(0.0)).unwrap();
            assert!((believed[0] - noisy * 3.0 / 7.0).abs() < 1e-6, "{believed}");
            let apart = conflict(&v(noisy), &believed, &m(4.0), &m(1.0), &m(16.0)).unwrap();
            ((believed + apart.back)[0], apart.variance[(0, 0)])
        };
        // 3 sds of what is allowed for, √(1 + 3/4), are followed, …
        let most = 3.0 * 1.75f64.sqrt();
        for noisy in [0.0, 1.0, -0.99 * most] {
            let (at, variance) = centre(noisy);
            assert!((at - noisy * 3.0 / 7.0).abs() < 1e-6 && variance.abs() < 1e-9);
        }
        // … twice that by a quarter, and far off none.
        let (at, variance) = centre(2.0 * most);
        assert!(
            (at - 2.0 * most * (1.0 - 0.25 * 4.0 / 7.0)).abs() < 1e-6,
            "{at}"
        );
        assert!((variance - 0.75 * 4.0 / 7.0).abs() < 1e-6, "{variance}");
        let (at, variance) = centre(-100.0 * most);
        assert!((at / (100.0 * most) + 1.0).abs() < 1e-4);
        assert!((variance - 4.0 / 7.0).abs() < 1e-3, "{variance}");
    }
}
