//! How a curvature changes where the path goes, as rows whose features are normal would have it
//! (docs/proofs/anchors.md, "The way to the mode"): rows whose weight falls stop telling of the
//! directions in which they lie.

use nalgebra::{DMatrix, DVector};

use super::denoise::{compose, eigen};
use super::structure::Structure;

/// The features' second moments, as the start's curvature tells them, and their mean.
pub(super) struct Features<'a> {
    /// E xxᵀ.
    squares: DMatrix<f64>,
    /// Column that is 1 in all rows.
    constant: Option<usize>,
    /// Columns that are 0 or 1.
    flags: &'a [bool],
}

/// The change of a curvature along a step.
pub(super) struct Carry {
    /// The symmetric T that makes T H T of a curvature H.
    pub by: DMatrix<f64>,
    /// What the mean weight is multiplied by.
    pub weight: f64,
}

/// Half the width and the number of nodes of a rule for means over a standard normal.
const WIDTH: f64 = 6.0;
const NODES: usize = 49;
/// No direction tells of more than this squared times what it told: where noise is all that is
/// known of a level, its rows seem to come and go by many orders.
const MOST: f64 = 2.0;
/// Of a matrix's eigenvalues the least over the largest.
const LEAST: f64 = 1e-9;

impl<'a> Features<'a> {
    /// From E xxᵀ, and what is declared.
    pub fn new(squares: DMatrix<f64>, structure: &'a Structure) -> Self {
        // (What a column of ones is seen to be is all others' scale.)
        let unit = structure.constant.map_or(1.0, |k| squares[(k, k)]);
        Features {
            squares: squares / unit,
            constant: structure.constant,
            flags: &structure.flags,
        }
    }

    /// What carries a curvature of weights w(η) from one point to another.
    pub fn carry(
        &self,
        from: &DVector<f64>,
        to: &DVector<f64>,
        weight: impl Fn(f64) -> f64,
    ) -> Carry {
        let (old, was) = self.weighed(from, &weight);
        let (new, is) = self.weighed(to, &weight);
        let (values, vectors) = eigen(&carries(&old, &new));
        Carry {
            by: compose(&vectors, &values.map(|v| v.min(MOST))),
            weight: is / was,
        }
    }

    /// E w(η)xxᵀ and E w(η) where η = x·θ.
    fn weighed(&self, theta: &DVector<f64>, weight: impl Fn(f64) -> f64) -> (DMatrix<f64>, f64) {
        let d = theta.len();
        let mean = match self.constant {
            Some(k) => self.squares.column(k).into_owned(),
            None => DVector::zeros(d),
        };
        let varies = &self.squares - &mean * mean.transpose();
        let along = &varies * theta;
        let (middle, variance) = (mean.dot(theta), along.dot(theta).max(0.0));
        let sd = variance.sqrt();
        // E w, E w t and E w t² of η = middle + sd t.
        let [one, first, second] = moments(|t| weight(middle + sd * t));
        let mut matrix = &self.squares * one;
        if sd > 0.0 {
            let unit = &along / sd;
            let across = &mean * unit.transpose();
            matrix += (&across + across.transpose()) * first;
            matrix += &unit * unit.transpose() * (second - one);
        }
        // A column of zeros and ones is its own square: its rows lie where its coefficient has them.
        let by = DVector::from_fn(d, |j, _| {
            let share = self.squares[(j, j)];
            let is_flag = self.flags.get(j).is_some_and(|flag| *flag);
            if !is_flag || share <= 0.0 || share >= 1.0 || matrix[(j, j)] <= 0.0 {
                return 1.0;
            }
            let there = middle + along[j] / share;
            let left = (variance - along[j] * along[j] / (share * (1.0 - share)))
                .max(0.0)
                .sqrt();
            let [own, ..] = moments(|t| weight(there + left * t));
            (share * own / matrix[(j, j)]).sqrt()
        });
        let by = DMatrix::from_diagonal(&by);
        (&by * matrix * &by, one)
    }
}

/// Means of f(t), t f(t) and t² f(t) over a standard normal t.
fn moments(f: impl Fn(f64) -> f64) -> [f64; 3] {
    let step = 2.0 * WIDTH / (NODES - 1) as f64;
    let mut sums = [0.0; 4];
    for i in 0..NODES {
        let t = -WIDTH + step * i as f64;
        let density = (-0.5 * t * t).exp();
        let value = density * f(t);
        for (sum, by) in sums
            .iter_mut()
            .zip([value, t * value, t * t * value, density])
        {
            *sum += by;
        }
    }
    [0, 1, 2].map(|k| sums[k] / sums[3])
}

/// The symmetric T with T A T = B.
fn carries(a: &DMatrix<f64>, b: &DMatrix<f64>) -> DMatrix<f64> {
    let (values, vectors) = eigen(a);
    let least = LEAST * values.max();
    let root = |power: f64| compose(&vectors, &values.map(|v| v.max(least).powf(power)));
    let (up, down) = (root(0.5), root(-0.5));
    let (values, vectors) = eigen(&(&up * b * &up));
    let least = LEAST * values.max();
    let middle = compose(&vectors, &values.map(|v| v.max(least).sqrt()));
    &down * middle * down
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha20Rng;
    use rand_distr::StandardNormal;

    fn weight(eta: f64) -> f64 {
        let p = 1.0 / (1.0 + (-eta).exp());
        p * (1.0 - p)
    }

    /// Of normal features the formula is exact: 400,000 rows agree to their own error.
    #[test]
    fn weighed_moments_are_those_of_normal_rows() {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let theta = DVector::from_vec(vec![-2.5, 1.2, -0.7, 0.4]);
        let rows = 400_000;
        let (mut plain, mut weighed) = (DMatrix::zeros(4, 4), DMatrix::zeros(4, 4));
        for _ in 0..rows {
            let mut normal = || -> f64 { rng.sample(StandardNormal) };
            let (a, b, c) = (normal(), normal(), normal());
            let x = DVector::from_vec(vec![1.0, 0.3 + a, 0.5 * a + b, c - 1.0]);
            let square = &x * x.transpose() / f64::from(rows);
            weighed += &square * weight(x.dot(&theta));
            plain += square;
        }
        let structure = Structure {
            constant: Some(0),
            ..Structure::default()
        };
        let (found, mean) = Features::new(plain.clone(), &structure).weighed(&theta, weight);
        let off = (&found - &weighed).amax();
        assert!(off < 2e-3, "{off}");
        assert!((mean - weighed[(0, 0)]).abs() < 1e-3, "{mean}");
        // Scaled alone it would be another matrix.
        let scaled = (&plain * mean - &weighed).amax();
        assert!(scaled > 10.0 * off, "{scaled} {off}");
    }

    /// Rows whose risk falls to 2 % keep a tenth of their weight, and the curvature goes with them,
    /// to and not from.
    #[test]
    fn a_curvature_is_carried_to_where_a_step_ends() {
        let squares = DMatrix::from_row_slice(2, 2, &[1.0, 0.2, 0.2, 0.5]);
        let structure = Structure {
            constant: Some(0),
            ..Structure::default()
        };
        let features = Features::new(squares, &structure);
        let from = DVector::from_vec(vec![0.0, 0.0]);
        let to = DVector::from_vec(vec![-4.0, 1.0]);
        let carry = features.carry(&from, &to, weight);
        let (old, _) = features.weighed(&from, weight);
        let (new, mean) = features.weighed(&to, weight);
        assert!((&carry.by * old * &carry.by - &new).amax() < 1e-9);
        assert!((carry.weight - mean / weight(0.0)).abs() < 1e-9);
        assert!((0.05..0.15).contains(&carry.weight), "{}", carry.weight);
    }

    /// The few rows of a level have the weight that its own coefficient gives them.
    #[test]
    fn rows_of_a_level_lie_where_its_coefficient_has_them() {
        let (share, own) = (0.02, 3.0);
        let squares = DMatrix::from_row_slice(2, 2, &[1.0, share, share, share]);
        let structure = Structure {
            flags: vec![true, true],
            constant: Some(0),
            ..Structure::default()
        };
        let theta = DVector::from_vec(vec![-3.0, own]);
        let (found, _) = Features::new(squares, &structure).weighed(&theta, weight);
        let expected = share * weight(0.0);
        assert!((found[(1, 1)] / expected - 1.0).abs() < 0.05, "{found}");
    }

    /// A level that is seen in noise alone, whose products are larger than its own square: where
    /// the number that they go with turns, its rows would be said to come back a million times.
    #[test]
    fn a_level_in_noise_does_not_come_and_go() {
        let squares = [1.0, 0.0, 0.001, 0.0, 0.5, 0.02, 0.001, 0.02, 0.001];
        let squares = DMatrix::from_row_slice(3, 3, &squares);
        let structure = Structure {
            flags: vec![true, false, true],
            constant: Some(0),
            ..Structure::default()
        };
        let features = Features::new(squares, &structure);
        let there = DVector::from_vec(vec![0.0, -0.9, 0.0]);
        let back = DVector::from_vec(vec![0.0, -0.2, 0.0]);
        let (from, _) = features.weighed(&there, weight);
        let (to, _) = features.weighed(&back, weight);
        assert!(eigen(&carries(&from, &to)).0.max() > 100.0);
        let carry = features.carry(&there, &back, weight);
        assert!(eigen(&carry.by).0.max() <= MOST + 1e-9);
    }

    #[test]
    fn one_matrix_is_carried_to_another() {
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let mut draw = || {
            let root = DMatrix::from_fn(5, 5, |_, _| -> f64 { rng.sample(StandardNormal) });
            &root * root.transpose() + DMatrix::identity(5, 5) * 0.1
        };
        let (a, b) = (draw(), draw());
        let by = carries(&a, &b);
        assert!((&by * &a * &by - &b).amax() < 1e-9 * b.amax());
        assert!((&by - by.transpose()).amax() < 1e-9 * by.amax());
    }
}
