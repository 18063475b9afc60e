//! Draws with the noise of an anchor's releases taken out again, for what is expected of a label.

use nalgebra::{Cholesky, DMatrix, DVector, SymmetricEigen};

use super::noise_aware::in_coordinates;
use crate::model::Anchor;

/// Draws that their covariance is taken over, at most.
const MOST_DRAWS: usize = 20_000;
/// Draws a parameter, at least, by which their covariance is known well enough.
const DRAWS_A_PARAMETER: usize = 4;

/// Every `stride`-th of draws that have the noise of `anchor` in them, without it: a linear map
/// about their mean leaves them about the covariance that they would have had. In a direction in
/// which nothing but noise is to be seen they end at the mean. `None` where draws and anchor do not
/// fit together, or draws are too few to tell (docs/proofs/anchors.md).
pub fn without_noise(draws: &[Vec<f64>], anchor: &Anchor, stride: usize) -> Option<Vec<Vec<f64>>> {
    let d = anchor.at.len();
    let every = draws.len().div_ceil(MOST_DRAWS).max(1);
    let used = draws.len().div_ceil(every);
    let fit = anchor.is_valid(d) && draws.iter().all(|theta| theta.len() == d);
    if !fit || anchor.spread.is_empty() || used < DRAWS_A_PARAMETER * d {
        return None;
    }
    let some = draws.iter().step_by(stride.max(1));
    if anchor.spread.iter().all(|s| *s == 0.0) {
        return Some(some.cloned().collect());
    }
    let square = |entries: &[f64]| DMatrix::from_row_slice(d, d, entries);
    let (centre, covariance) = in_coordinates(draws.iter().step_by(every).cloned(), anchor);
    let root = Cholesky::new(square(&covariance))?.l();
    let inverse = root.solve_lower_triangular(&DMatrix::identity(d, d))?;
    // In coordinates in which the draws' covariance is the identity: what is told, and what of each
    // eigenvalue's direction is kept.
    let (told, kept): (DMatrix<f64>, &dyn Fn(f64) -> f64) = match &anchor.alone {
        // Noise was added to draws: its share of their variance. What a sample of noise alone may
        // show is taken for noise.
        None => {
            let edge = (1.0 + ((d + 9) as f64 / used as f64).sqrt()).powi(-2);
            let share = &inverse * square(&anchor.spread) * inverse.transpose();
            (share, &move |noise| match noise < edge {
                true => (1.0 - noise).sqrt(),
                false => 0.0,
            })
        }
        // Draws followed the rows' information under noise: what it lacks of that without.
        Some(alone) => {
            let lacks = square(&anchor.curvature) - square(&alone.precision);
            let lacks = root.transpose() * lacks * &root;
            (lacks, &|lacks: f64| (1.0 + lacks.max(0.0)).sqrt().recip())
        }
    };
    let told = SymmetricEigen::new((&told + told.transpose()) * 0.5);
    let kept = DMatrix::from_diagonal(&told.eigenvalues.map(kept));
    let drawn_in = &told.eigenvectors * kept * told.eigenvectors.transpose();
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
    use crate::model::{Alone, Metric};
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;
    use rand_distr::{Distribution, StandardNormal};

    const DRAWS: usize = 4000;

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
        let draws: Vec<Vec<f64>> = (0..DRAWS)
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
        // What by chance goes along with the other coordinate is 9/4000 times a χ² of one degree of
        // freedom, which exceeds 30 with probability 4e-8.
        assert!(found[2] < 30.0 * 9.0 / 4000.0, "{found:?}");
    }

    /// In 40 dimensions of noise alone, of which a sample shows some directions wider than it is.
    #[test]
    fn a_sample_of_noise_alone_is_taken_for_noise() {
        let d = 40;
        let identity = |scale: f64| -> Vec<f64> {
            (0..d * d)
                .map(|k| if k % (d + 1) == 0 { scale } else { 0.0 })
                .collect()
        };
        let anchor = Anchor {
            at: vec![0.0; d],
            metric: Metric {
                factor: Lower::identity(d),
                row_bound: 1.0,
            },
            gradient: vec![0.0; d],
            curvature: identity(1.0),
            centre: vec![0.0; d],
            ..anchor(identity(1.0))
        };
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let draws: Vec<Vec<f64>> = (0..DRAWS)
            .map(|_| (0..d).map(|_| StandardNormal.sample(&mut rng)).collect())
            .collect();
        let quiet = without_noise(&draws, &anchor, 1).unwrap();
        let (_, covariance) = in_coordinates(quiet.into_iter(), &anchor);
        assert!(covariance.iter().all(|v| v.abs() < 1e-9));
    }

    /// Draws that followed the precision K under a prior of precision p are left with (p + C)⁻¹,
    /// C the curvature; in one direction C is no more than K, and there they stay as they are.
    #[test]
    fn draws_that_follow_the_noisy_information_get_what_it_lacks() {
        let (p, k, c) = (0.5, [1.5, 0.5], [7.5, 0.5]);
        let anchor = Anchor {
            curvature: vec![c[0], 0.0, 0.0, c[1]],
            alone: Some(Alone {
                precision: vec![k[0], 0.0, 0.0, k[1]],
                pull: vec![0.0; 2],
            }),
            // Of another law than the draws'.
            ..anchor(vec![9.0, 0.0, 0.0, 9.0])
        };
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let draws: Vec<Vec<f64>> = (0..DRAWS)
            .map(|_| {
                let u = k.map(|k| {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    z / (p + k).sqrt()
                });
                anchor.theta(&u)
            })
            .collect();
        let quiet = without_noise(&draws, &anchor, 1).unwrap();
        let (_, covariance) = in_coordinates(quiet.into_iter(), &anchor);
        // Six standard errors of a variance, and of a correlation of nothing.
        for (j, c) in c.into_iter().enumerate() {
            let ratio = covariance[3 * j] * (p + c);
            assert!(
                (ratio - 1.0).abs() < 6.0 * (2.0f64 / 4000.0).sqrt(),
                "{j} {ratio}"
            );
        }
        assert!(covariance[1].abs() < 6.0 * (1.0f64 / 8.0 / 4000.0).sqrt());
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
