//! Curvature along the path from the gradients that were released on it: free, and where the path
//! went it tells more than a release of the curvature does.

use nalgebra::{DMatrix, DVector};

use super::algebra::forward;
use crate::privacy::Halt;

/// Pairs of neighbouring gradients that are looked at, the last ones.
const PAIRS: usize = 3;
/// A difference of gradients is off by so much of itself since the curvature bends between them …
const BENT: f64 = 0.15;
/// … and by so much for each nat that Σ κw has changed since.
const CHANGED: f64 = 0.5;
/// Rounds of the least squares; each is one pass over the pairs.
const ROUNDS: usize = 30;

/// A gradient that was released, in plain coordinates and without the prior's.
pub(super) struct Observation {
    pub at: DVector<f64>,
    pub gradient: DVector<f64>,
    /// Its noise is `factor` times independent normals of this standard deviation.
    pub factor: DMatrix<f64>,
    pub sd: f64,
    /// Share of the budget.
    pub share: f64,
    /// Σ κw there.
    pub weight: f64,
}

/// One pair: H s = y was seen, with noise of variance `ratio` times an entry's.
struct Secant {
    s: DVector<f64>,
    /// y − A s.
    residual: DVector<f64>,
    ratio: f64,
    multiplier: DVector<f64>,
}

impl Secant {
    /// Its part of the change of A.
    fn change(&self) -> DMatrix<f64> {
        let half = &self.multiplier * self.s.transpose() / (2.0 * self.ratio);
        &half + half.transpose()
    }

    /// The multiplier that solves its own equations, the others' change given.
    fn solve(&mut self, others: &DMatrix<f64>) {
        let r = &self.residual - others * &self.s;
        let length = self.s.norm_squared() / self.ratio;
        let along = self.s.dot(&r) / (1.0 + length);
        self.multiplier = (r - &self.s * (along / (2.0 * self.ratio))) / (1.0 + 0.5 * length);
    }
}

/// The change of a curvature `A` (coordinates of `factor`, entries uncertain by `sd`) that explains
/// the differences of neighbouring gradients best: it minimises ‖Δ‖²/sd² + Σ |y − (A + Δ)s|²/σ²
/// over symmetric Δ of the `first` coordinates alone, by block descent on the dual. `weight`: Σ κw
/// where A is.
pub(super) fn change(
    a: &DMatrix<f64>,
    factor: &DMatrix<f64>,
    sd: f64,
    weight: f64,
    observations: &[Observation],
    first: usize,
) -> Result<DMatrix<f64>, Halt> {
    let own = |v: DVector<f64>| v.rows(0, first).into_owned();
    let mut secants = Vec::new();
    let start = observations.len().saturating_sub(PAIRS + 1);
    for pair in observations[start..].windows(2) {
        let [from, to] = [&pair[0], &pair[1]];
        let s = factor.tr_mul(&(&to.at - &from.at));
        let between = 0.5 * (from.weight + to.weight);
        let scale = (weight / between).min(1.0);
        let y = forward(factor, &(&from.gradient - &to.gradient))? * scale;
        let mut noise = 0.0;
        for o in [from, to] {
            let root = super::algebra::forward_matrix(factor, &o.factor)?;
            noise += root.rows(0, first).norm_squared() * (o.sd * scale).powi(2);
        }
        let residual = own(&y - a * &s);
        let (y, s) = (own(y), own(s));
        if s.norm_squared() <= 0.0 {
            continue;
        }
        let off = BENT + CHANGED * (weight / between).ln().abs();
        let variance = (noise + off * off * y.norm_squared()) / first as f64;
        secants.push(Secant {
            residual,
            s,
            ratio: variance / (sd * sd),
            multiplier: DVector::zeros(first),
        });
    }
    let mut change = DMatrix::zeros(first, first);
    for _ in 0..ROUNDS {
        for secant in &mut secants {
            change -= secant.change();
            secant.solve(&change);
            change += secant.change();
        }
    }
    let d = a.nrows();
    Ok(change.resize(d, d, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn observation(
        at: DVector<f64>,
        h: &DMatrix<f64>,
        sd: f64,
        noise: DVector<f64>,
    ) -> Observation {
        let d = at.len();
        Observation {
            gradient: -(h * &at) + noise * sd,
            at,
            factor: DMatrix::identity(d, d),
            sd,
            share: 1.0,
            weight: 1.0,
        }
    }

    /// Exact gradients of a quadratic give its curvature along the path, but for what bending is
    /// allowed for; where gradients are all noise nothing changes, and the change is symmetric.
    #[test]
    fn gradients_tell_the_curvature_along_the_path() {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let d = 12;
        let mut normal = |scale: f64| {
            DVector::from_fn(d, |_, _| {
                let z: f64 = StandardNormal.sample(&mut rng);
                scale * z
            })
        };
        let h = DMatrix::from_diagonal(&DVector::from_fn(d, |j, _| 0.05 + 0.1 * j as f64));
        let a = DMatrix::identity(d, d);
        for (sd, believed) in [(1e-6, true), (1e6, false)] {
            let path: Vec<DVector<f64>> = (0..4).map(|_| normal(10.0)).collect();
            let seen: Vec<Observation> = path
                .iter()
                .map(|at| observation(at.clone(), &h, sd, normal(1.0)))
                .collect();
            let change = change(&a, &DMatrix::identity(d, d), 0.3, 1.0, &seen, d).unwrap();
            assert!((&change - change.transpose()).norm() < 1e-9);
            for pair in path.windows(2) {
                let s = &pair[1] - &pair[0];
                let gap = (&h - &a) * &s;
                let left = (&gap - &change * &s).norm() / gap.norm();
                assert_eq!(left < 0.1, believed, "{sd}: {left}");
                assert!(believed || left > 0.99, "{sd}: {left}");
            }
        }
    }

    /// Noise in the other coordinates does not hide what gradients tell of the first.
    #[test]
    fn the_first_coordinates_are_told_beside_noise() {
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let (d, few) = (40, 3);
        let mut normal = |scale: f64| {
            DVector::from_fn(d, |_, _| {
                let z: f64 = StandardNormal.sample(&mut rng);
                scale * z
            })
        };
        let h: DMatrix<f64> = DMatrix::identity(d, d) * 2.0;
        let a = DMatrix::identity(d, d);
        let factor = DMatrix::from_fn(d, d, |i, j| {
            f64::from(u8::from(i == j)) * [0.1, 30.0][usize::from(i >= few)]
        });
        let seen: Vec<Observation> = (0..4)
            .map(|_| {
                let noise = &factor * normal(1.0);
                let seen = observation(normal(3.0), &h, 1.0, noise);
                Observation {
                    factor: factor.clone(),
                    ..seen
                }
            })
            .collect();
        let told = |first| {
            let change = change(&a, &DMatrix::identity(d, d), 0.5, 1.0, &seen, first).unwrap();
            assert_eq!(change[(d - 1, d - 1)] == 0.0, first < d);
            change.view((0, 0), (few, few)).trace() / few as f64
        };
        let [alone, together] = [few, d].map(told);
        assert!(
            (0.8..1.1).contains(&alone) && together < 0.3,
            "{alone} {together}"
        );
    }
}
