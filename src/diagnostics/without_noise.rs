//! Draws with the noise of an anchor's releases taken out again, for what is expected of a label.

use nalgebra::{Cholesky, DMatrix, DVector, SymmetricEigen};

use super::noise_aware::{MOST_DRAWS, in_coordinates};
use crate::model::Anchor;

/// Draws a parameter, at least, by which their covariance is known well enough.
const DRAWS_A_PARAMETER: usize = 4;

/// Every `stride`-th of draws that have the noise of `anchor` in them, without it: a linear map
/// about their mean leaves them the covariance that the chain had before noise was added. In a
/// direction in which there is nothing but noise they end at the mean. `None` where draws and
/// anchor do not fit together, or draws are too few to tell.
pub fn without_noise(draws: &[Vec<f64>], anchor: &Anchor, stride: usize) -> Option<Vec<Vec<f64>>> {
    let d = anchor.at.len();
    let fit = anchor.is_valid(d) && draws.iter().all(|theta| theta.len() == d);
    if !fit || anchor.spread.is_empty() || draws.len() < DRAWS_A_PARAMETER * d {
        return None;
    }
    let some = draws.iter().step_by(stride.max(1));
    if anchor.spread.iter().all(|s| *s == 0.0) {
        return Some(some.cloned().collect());
    }
    let every = draws.len().div_ceil(MOST_DRAWS);
    let (centre, covariance) = in_coordinates(draws.iter().step_by(every).cloned(), anchor);
    let covariance = DMatrix::from_row_slice(d, d, &covariance);
    let noise = DMatrix::from_row_slice(d, d, &anchor.spread);
    let root = Cholesky::new(covariance)?.l();
    // The noise's share of the variance of draws, in coordinates in which that is the identity.
    let half = root.solve_lower_triangular(&noise)?;
    let share = root.solve_lower_triangular(&half.transpose())?;
    let share = SymmetricEigen::new((&share + share.transpose()) * 0.5);
    let kept = share.eigenvalues.map(|noise| (1.0 - noise).max(0.0).sqrt());
    let vectors = &share.eigenvectors;
    let drawn_in = vectors * DMatrix::from_diagonal(&kept) * vectors.transpose();
    let inverse = root.solve_lower_triangular(&DMatrix::identity(d, d))?;
    let (map, centre) = (root * drawn_in * inverse, DVector::from_vec(centre));
    let quiet = |theta: &Vec<f64>| {
        let u = DVector::from_vec(anchor.coordinates(theta)) - &centre;
        anchor.theta((&map * u + &centre).as_slice())
    };
    Some(some.map(quiet).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::Lower;
    use crate::model::Metric;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn anchor(spread: Vec<f64>) -> Anchor {
        Anchor {
            at: vec![1.0, -1.0],
            metric: Metric {
                factor: Lower::new(vec![2.0, 0.0, 1.0, 0.5]).unwrap(),
                row_bound: 1.0,
            },
            gradient: vec![0.0; 2],
            curvature: vec![1.0, 0.0, 0.0, 1.0],
            gradient_sd: 0.5,
            curvature_sd: 0.2,
            centre: vec![0.0; 2],
            radius: 100.0,
            spread,
            doubts: Default::default(),
            alone: None,
        }
    }

    /// Draws of a law with covariance C, with noise S, in an anchor's coordinates, and the
    /// covariance of what is left of 4,000 of them.
    fn left(c: [f64; 3], s: [f64; 3], seed: u64) -> [f64; 3] {
        let anchor = anchor(vec![s[0], s[1], s[1], s[2]]);
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut normal = |[a, b, c]: [f64; 3]| {
            let [z, w]: [f64; 2] = [0, 0].map(|_| StandardNormal.sample(&mut rng));
            let first = a.sqrt();
            [
                first * z,
                b / first * z + (c - b * b / a).max(0.0).sqrt() * w,
            ]
        };
        let draws: Vec<Vec<f64>> = (0..MOST_DRAWS)
            .map(|_| {
                let (own, noise) = (normal(c), normal(s));
                anchor.theta(&[3.0 + own[0] + noise[0], own[1] + noise[1]])
            })
            .collect();
        let quiet = without_noise(&draws, &anchor, 1).unwrap();
        let (centre, covariance) = in_coordinates(quiet.into_iter(), &anchor);
        let (middle, _) = in_coordinates(draws.into_iter(), &anchor);
        assert!((centre[0] - middle[0]).abs() < 1e-9 && (centre[1] - middle[1]).abs() < 1e-9);
        [covariance[0], covariance[1], covariance[3]]
    }

    /// Entries of a covariance from 4,000 draws are off by (C + S)√(2/4000) or less: the tolerance
    /// is eight times that.
    #[test]
    fn the_chains_own_covariance_is_left() {
        let (c, s) = ([1.0, 0.6, 2.0], [0.5, -0.4, 1.5]);
        for seed in 0..4 {
            let found = left(c, s, seed);
            for (found, expected) in found.iter().zip(c) {
                assert!((found - expected).abs() < 8.0 * 3.5 * (2.0f64 / 4000.0).sqrt());
            }
            // Not what was there before.
            assert!(found[1] > 0.3, "{found:?}");
        }
    }

    #[test]
    fn where_noise_is_all_draws_end_at_their_mean() {
        let found = left([1.0, 0.0, 1e-6], [1e-6, 0.0, 9.0], 1);
        assert!((found[0] - 1.0).abs() < 0.2, "{found:?}");
        // 9√(2/4000) is 0.2.
        assert!(found[2] < 8.0 * 0.2, "{found:?}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let draws = vec![vec![0.0, 0.0]; 20];
        let fits = anchor(vec![0.1, 0.0, 0.0, 0.1]);
        assert!(without_noise(&draws[..7], &fits, 1).is_none());
        // All the same.
        assert!(without_noise(&draws, &fits, 1).is_none());
        assert!(without_noise(&vec![vec![0.0]; 20], &fits, 1).is_none());
        assert!(without_noise(&draws, &anchor(Vec::new()), 1).is_none());
    }
}
