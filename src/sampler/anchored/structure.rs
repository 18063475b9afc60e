//! What declarations alone say of a table's columns, and so of every curvature: columns no two of
//! which hold anything in one row have no products, and levels that add up to a column do so in
//! all sums (docs/proofs/anchors.md, "What declarations say").

use nalgebra::{DMatrix, DVector};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::StandardNormal;

use super::algebra::forward_matrix;
use super::denoise::{Noise, eigen};
use crate::privacy::Halt;

/// Solutions by conjugate gradients: steps at most, and the share of the residual that is left.
const MOST_STEPS: usize = 60;
const LEFT: f64 = 3e-3;
/// Projections on products that are zero and on sums, in turn.
const TURNS: usize = 3;
/// Draws of noise by which its spectrum's edge is found.
const DRAWS: usize = 2;

/// Public knowledge of a table's columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    /// Which columns are 0 or 1 in all rows; of those that it does not reach nothing is known.
    pub flags: Vec<bool>,
    /// A column that is 1 in all rows.
    pub constant: Option<usize>,
    /// The levels that a column is the product of, perhaps with numbers; of columns that it does
    /// not reach nothing is known. Of two columns with different levels of one factor one is 0 in
    /// every row.
    pub levels: Vec<Vec<Level>>,
    /// Columns to which others add up in every row.
    pub sums: Vec<Sum>,
}

/// One level of a factor, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The factor.
    pub factor: usize,
    /// The level.
    pub level: usize,
}

/// A column and those that add up to it in every row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The column.
    pub whole: usize,
    /// The others.
    pub parts: Vec<usize>,
}

impl Structure {
    /// Whether one of two columns is 0 in every row.
    fn excludes(&self, i: usize, j: usize) -> bool {
        let of = |j: usize| self.levels.get(j).map_or(&[][..], Vec::as_slice);
        let differ = |a: &Level, b: &Level| a.factor == b.factor && a.level != b.level;
        (of(i).iter()).any(|a| of(j).iter().any(|b| differ(a, b)))
    }
}

/// The same of second moments of d columns and parameters.
pub(super) struct Known {
    /// Which entries are zero.
    zero: DMatrix<bool>,
    /// Vectors n that moments times n are zero for.
    null: Vec<DVector<f64>>,
    /// Largest eigenvalue of what is left of noise with a standard deviation of one on the
    /// diagonal.
    edge: f64,
}

impl Known {
    /// `None` where nothing is known; `factor`: coordinates in which columns are about as long as
    /// one another.
    ///
    /// # Errors
    /// [`Halt`] of a factor without an inverse.
    pub fn new(structure: &Structure, factor: &DMatrix<f64>) -> Result<Option<Self>, Halt> {
        let d = factor.nrows();
        let zero = DMatrix::from_fn(d, d, |i, j| structure.excludes(i, j));
        let null: Vec<DVector<f64>> = (structure.sums.iter())
            .map(|sum| {
                let mut n = DVector::zeros(d);
                n[sum.whole] = 1.0;
                sum.parts.iter().for_each(|&j| n[j] = -1.0);
                n
            })
            .collect();
        if null.is_empty() && !zero.iter().any(|zero| *zero) {
            return Ok(None);
        }
        let edge = 0.0;
        let mut known = Known { zero, null, edge };
        known.edge = Whitened::new(&known, factor)?.edge();
        Ok(Some(known))
    }

    /// Twice the covariance of N m, where N is symmetric noise with a standard deviation of one on
    /// the diagonal and has none of the entries that are zero: |m|² + mmᵀ where all are there.
    /// (Whitened coordinates are taken to be about the columns themselves.)
    pub fn turned(&self, m: &DVector<f64>) -> DMatrix<f64> {
        let d = m.len();
        let mut turned = DMatrix::zeros(d, d);
        for i in 0..d {
            for j in (0..d).filter(|j| !self.zero[(i, *j)]) {
                turned[(i, i)] += m[j] * m[j];
                turned[(i, j)] += m[i] * m[j];
            }
        }
        turned
    }
}

/// The same in the coordinates of one release, whose factor is L.
pub(super) struct Whitened<'a> {
    known: &'a Known,
    /// L⁻¹D, D such that columns have the length one, and its square.
    scaled: DMatrix<f64>,
    square: DMatrix<f64>,
    /// An orthonormal basis of all Lᵀn.
    null: Vec<DVector<f64>>,
}

impl<'a> Whitened<'a> {
    /// # Errors
    /// [`Halt`] of a factor without an inverse.
    pub fn new(known: &'a Known, factor: &DMatrix<f64>) -> Result<Self, Halt> {
        let d = factor.nrows();
        let mut scaled = forward_matrix(factor, &DMatrix::identity(d, d))?;
        for mut column in scaled.column_iter_mut() {
            column /= column.norm();
        }
        let square = scaled.tr_mul(&scaled);
        let mut null: Vec<DVector<f64>> = Vec::new();
        for n in &known.null {
            let mut own = factor.tr_mul(n);
            let length = own.norm();
            for before in &null {
                own -= before * before.dot(&own);
            }
            // (Sums may follow from one another.)
            if own.norm() > 1e-6 * length {
                null.push(own.normalize());
            }
        }
        Ok(Whitened {
            known,
            scaled,
            square,
            null,
        })
    }

    /// What is left of noise of this standard deviation in a matrix that was projected.
    pub fn noise(&self, sd: f64) -> Noise {
        let d = self.square.nrows();
        let entries = (0..d).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let free = entries.filter(|at| !self.known.zero[*at]).count();
        Noise {
            sd,
            freedom: free.saturating_sub(d * self.null.len()).max(d) as f64,
            edge: sd * self.known.edge,
        }
    }

    /// The nearest matrix of which all is true that is known.
    pub fn project(&self, matrix: &DMatrix<f64>) -> DMatrix<f64> {
        let mut now = self.without_null(matrix.clone());
        if !self.known.zero.iter().any(|zero| *zero) {
            return now;
        }
        // In turn, of what the turn before left.
        let mut held: DMatrix<f64> = DMatrix::zeros(now.nrows(), now.nrows());
        let left = LEFT * now.norm();
        for _ in 0..TURNS {
            held += self.without_products(&(&now - &held), left);
            now = self.without_null(held.clone());
            if self.null.is_empty() {
                break;
            }
        }
        now
    }

    /// The nearest matrix whose product with null directions is zero.
    pub fn without_null(&self, mut matrix: DMatrix<f64>) -> DMatrix<f64> {
        for u in &self.null {
            let right = &matrix * u;
            matrix -= &right * u.transpose();
            let left = matrix.tr_mul(u);
            matrix -= u * left.transpose();
        }
        matrix
    }

    /// The nearest GNGᵀ, G the scaled inverse factor, where N has no entries that are zero: least
    /// squares, until residuals are `left`.
    fn without_products(&self, matrix: &DMatrix<f64>, left: f64) -> DMatrix<f64> {
        let masked = |mut m: DMatrix<f64>| {
            m.zip_apply(&self.known.zero, |v, zero| {
                if zero {
                    *v = 0.0;
                }
            });
            m
        };
        let mut residual = masked(self.scaled.tr_mul(&(matrix * &self.scaled)));
        let mut direction = residual.clone();
        let mut n = DMatrix::zeros(matrix.nrows(), matrix.nrows());
        let mut size = residual.norm_squared();
        for _ in 0..MOST_STEPS {
            if size <= left * left {
                break;
            }
            let image = masked(&self.square * &direction * &self.square);
            let by = size / direction.dot(&image);
            n += &direction * by;
            residual -= &image * by;
            let next = residual.norm_squared();
            direction = &residual + &direction * (next / size);
            size = next;
        }
        &self.scaled * n * self.scaled.transpose()
    }

    /// The largest eigenvalue of projected noise with a standard deviation of one on the diagonal.
    fn edge(&self) -> f64 {
        let d = self.square.nrows();
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let each = (0..DRAWS).map(|_| {
            let noise = symmetric_noise(d, &mut rng);
            eigen(&self.project(&noise)).0.amax()
        });
        each.sum::<f64>() / DRAWS as f64
    }
}

/// Symmetric noise with a standard deviation of one on the diagonal.
fn symmetric_noise(d: usize, rng: &mut ChaCha20Rng) -> DMatrix<f64> {
    let mut draw = || -> f64 { rng.sample(StandardNormal) };
    let all = DMatrix::from_fn(d, d, |_, _| draw());
    (&all + all.transpose()) * 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: usize = 14;

    /// A constant, a number, a complete factor of eight levels and one of five with a reference.
    fn structure() -> Structure {
        let levels = (0..D).map(|j| match j {
            0 | 1 => vec![],
            2..10 => vec![Level {
                factor: 0,
                level: j,
            }],
            _ => vec![Level {
                factor: 1,
                level: j,
            }],
        });
        Structure {
            flags: Vec::new(),
            constant: Some(0),
            levels: levels.collect(),
            sums: vec![Sum {
                whole: 0,
                parts: (2..10).collect(),
            }],
        }
    }

    /// Second moments of such rows, with weights.
    fn moments(rng: &mut ChaCha20Rng) -> DMatrix<f64> {
        let mut sum = DMatrix::zeros(D, D);
        for _ in 0..500 {
            let mut x = DVector::zeros(D);
            x[0] = 1.0;
            x[1] = rng.random_range(-1.0..1.0);
            x[2 + rng.random_range(0..8)] = 1.0;
            let level = rng.random_range(0..5);
            if level > 0 {
                x[9 + level] = 1.0;
            }
            sum += &x * x.transpose() * rng.random_range(0.1..1.0);
        }
        sum / 500.0
    }

    /// What is true stays, in coordinates that mix all columns; what is not is taken away, and of
    /// noise so much is left as is said, to a part in thirty.
    #[test]
    fn projections_keep_what_is_true_and_its_share_of_the_noise() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let truth = moments(&mut rng);
        let prior = DMatrix::from_diagonal_element(D, D, 0.02);
        let factor = super::super::algebra::factor(&(moments(&mut rng) + prior)).unwrap();
        let known = Known::new(&structure(), &factor).unwrap().unwrap();
        let whitened = Whitened::new(&known, &factor).unwrap();
        let there = super::super::algebra::whiten(&factor, &truth).unwrap();
        let off = (whitened.project(&there) - &there).norm();
        assert!(off < 0.01 * there.norm(), "{off}");

        let noise = whitened.noise(1.0);
        // The factors' own pairs, 28 and 6, and a row of those with what adds up.
        assert_eq!(noise.freedom, (105 - 28 - 6 - 14) as f64);
        let (mut squares, mut edge, draws) = (0.0, 0.0, 300);
        for _ in 0..draws {
            let left = whitened.project(&symmetric_noise(D, &mut rng));
            squares += left.norm_squared() / f64::from(draws);
            edge += eigen(&left).0.amax() / f64::from(draws);
            let back = &factor * &left * factor.transpose();
            let size = back.amax();
            for n in &known.null {
                assert!((&back * n).amax() < 1e-9 * size);
            }
            for at in (0..D).flat_map(|i| (0..D).map(move |j| (i, j))) {
                let excluded = known.zero[at];
                assert!(!excluded || back[at].abs() < 0.05 * size, "{at:?}");
            }
        }
        assert!((squares / noise.freedom - 1.0).abs() < 0.1, "{squares}");
        assert!((noise.edge / edge - 1.0).abs() < 0.25, "{edge}");
        assert!(noise.edge < 0.9 * Noise::whole(D, 1.0).edge);
    }

    /// Against draws of the noise; without structure it is the closed form.
    #[test]
    fn what_noise_turns_is_its_covariance() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let one = DMatrix::identity(D, D);
        let known = Known::new(&structure(), &one).unwrap().unwrap();
        let m = DVector::from_fn(D, |j, _| 1.0 + (j as f64).sin());
        let draws = 40_000;
        let mut seen = DMatrix::zeros(D, D);
        for _ in 0..draws {
            let mut noise = symmetric_noise(D, &mut rng);
            noise.zip_apply(&known.zero, |v, zero| *v *= f64::from(u8::from(!zero)));
            let image = noise * &m;
            seen += &image * image.transpose() * (2.0 / f64::from(draws));
        }
        let expected = known.turned(&m);
        let off = (&seen - &expected).amax();
        assert!(off < 0.06 * expected.amax(), "{off}");
        let none = Known {
            zero: DMatrix::from_element(D, D, false),
            ..known
        };
        let whole = &one * m.norm_squared() + &m * m.transpose();
        assert!((none.turned(&m) - whole).amax() < 1e-12);
    }

    #[test]
    fn of_columns_that_are_not_declared_nothing_is_known() {
        let one = DMatrix::identity(3, 3);
        assert!(Known::new(&Structure::default(), &one).unwrap().is_none());
        let structure = structure();
        assert!(structure.excludes(2, 9) && !structure.excludes(2, 10));
        assert!(!structure.excludes(0, 2) && !structure.excludes(2, 40));
    }
}
