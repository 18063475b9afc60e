//! Lower triangular matrices: Cholesky factors and the coordinates they define.

use serde::{Deserialize, Serialize};

use super::cholesky;

/// A lower triangular d×d matrix L with a positive diagonal, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lower {
    entries: Vec<f64>,
}

impl Lower {
    /// The identity.
    pub fn identity(d: usize) -> Self {
        let mut entries = vec![0.0; d * d];
        entries.iter_mut().step_by(d + 1).for_each(|v| *v = 1.0);
        Lower { entries }
    }

    /// From d×d entries, row-major; `None` unless triangular, finite and invertible.
    pub fn new(entries: Vec<f64>) -> Option<Self> {
        let lower = Lower { entries };
        lower.is_valid().then_some(lower)
    }

    /// The Cholesky factor of a symmetric matrix, with the smallest of 0, r, 2r, 4r, … added
    /// to its diagonal that makes it positive definite; `None` where none does.
    pub fn of_regularised(matrix: &[f64], d: usize, ridge: f64) -> Option<Self> {
        let mut added = 0.0;
        // The lower triangle rules, so that rounding cannot make it asymmetric.
        let mut symmetric = matrix.to_vec();
        for i in 0..d {
            for j in 0..i {
                symmetric[j * d + i] = symmetric[i * d + j];
            }
        }
        for _ in 0..64 {
            let mut raised = symmetric.clone();
            raised.iter_mut().step_by(d + 1).for_each(|v| *v += added);
            if let Some(lower) = cholesky(&raised, d).ok().and_then(Lower::new) {
                return Some(lower);
            }
            added = if added == 0.0 { ridge } else { 2.0 * added };
        }
        None
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.entries.len().isqrt()
    }

    /// Whether it is triangular, finite and invertible: not given of a damaged file.
    pub fn is_valid(&self) -> bool {
        let d = self.dim();
        d > 0
            && d * d == self.entries.len()
            && (0..d).all(|i| {
                let row = &self.entries[i * d..(i + 1) * d];
                row.iter().all(|v| v.is_finite())
                    && row[i] > 0.0
                    && row[i + 1..].iter().all(|v| *v == 0.0)
            })
    }

    /// Row i up to the diagonal.
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        let d = self.dim();
        &self.entries[i * d..=i * d + i]
    }

    /// `L z`.
    pub fn times(&self, z: &[f64]) -> Vec<f64> {
        (0..self.dim())
            .map(|i| self.row(i).iter().zip(z).map(|(l, z)| l * z).sum())
            .collect()
    }

    /// `Lᵀ v`.
    pub fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let mut u = vec![0.0; self.dim()];
        for (i, x) in v.iter().enumerate() {
            for (u, l) in u.iter_mut().zip(self.row(i)) {
                *u += l * x;
            }
        }
        u
    }

    /// Solves `L z = x` in place.
    pub fn solve(&self, x: &mut [f64]) {
        self.solve_each(&self.starts(), x.as_chunks_mut::<1>().0);
    }

    /// Where each row's first entry lies that is not zero.
    pub(crate) fn starts(&self) -> Vec<usize> {
        let zeros = |i| self.row(i).iter().take_while(|l| **l == 0.0).count();
        (0..self.dim()).map(zeros).collect()
    }

    /// [`Lower::solve`] for N right sides at once, each with the operations of that in its order.
    /// Rows are taken from their `starts` on, so that a diagonal matrix costs d divisions.
    #[inline(always)]
    pub(crate) fn solve_each<const N: usize>(&self, starts: &[usize], x: &mut [[f64; N]]) {
        for (i, start) in starts.iter().enumerate() {
            let (known, rest) = x.split_at_mut(i);
            // Copies stay in registers.
            let (row, mut right, mut sum) = (self.row(i), rest[0], [0.0; N]);
            for (l, z) in row[*start..].iter().zip(&known[*start..]) {
                for n in 0..N {
                    sum[n] += l * z[n];
                }
            }
            for n in 0..N {
                right[n] = (right[n] - sum[n]) / row[i];
            }
            rest[0] = right;
        }
    }

    /// Solves `Lᵀ v = u`.
    pub fn solve_transposed(&self, u: &[f64]) -> Vec<f64> {
        let mut v = u.to_vec();
        for i in (0..self.dim()).rev() {
            let row = self.row(i);
            v[i] /= row[i];
            let scale = v[i];
            for (v, l) in v.iter_mut().zip(&row[..i]) {
                *v -= l * scale;
            }
        }
        v
    }

    /// `L K`, lower triangular again.
    pub fn compose(&self, k: &Lower) -> Lower {
        let d = self.dim();
        let mut entries = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..=i {
                entries[i * d + j] = (j..=i)
                    .map(|m| self.entries[i * d + m] * k.entries[m * d + j])
                    .sum();
            }
        }
        Lower { entries }
    }

    /// `L⁻¹ diag(p) L⁻ᵀ`, d×d.
    pub fn congruent_inverse(&self, diagonal: &[f64]) -> Vec<f64> {
        let d = self.dim();
        let mut matrix = vec![0.0; d * d];
        for (k, p) in diagonal.iter().enumerate() {
            let mut column = vec![0.0; d];
            column[k] = 1.0;
            self.solve(&mut column);
            for i in 0..d {
                for j in 0..d {
                    matrix[i * d + j] += p * column[i] * column[j];
                }
            }
        }
        matrix
    }

    /// Frobenius norm of L⁻¹, at least its spectral norm.
    pub fn inverse_norm(&self) -> f64 {
        let d = self.dim();
        let squares: f64 = (0..d)
            .map(|k| {
                let mut column = vec![0.0; d];
                column[k] = 1.0;
                self.solve(&mut column);
                column.iter().map(|v| v * v).sum::<f64>()
            })
            .sum();
        squares.sqrt()
    }

    /// Lower factor of `(L Lᵀ)⁻¹`; `None` where it is too ill-conditioned.
    pub fn inverse_covariance(&self) -> Option<Lower> {
        let d = self.dim();
        let columns: Vec<Vec<f64>> = (0..d)
            .map(|k| {
                let mut column = vec![0.0; d];
                column[k] = 1.0;
                self.solve(&mut column);
                column
            })
            .collect();
        let mut matrix = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                matrix[i * d + j] = columns[i].iter().zip(&columns[j]).map(|(a, b)| a * b).sum();
            }
        }
        cholesky(&matrix, d).ok().and_then(Lower::new)
    }

    /// Its entries, row-major.
    pub fn entries(&self) -> &[f64] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_undo_each_other() {
        let l = Lower::new(vec![2.0, 0.0, 0.0, -0.5, 1.5, 0.0, 0.3, 0.2, 0.7]).unwrap();
        let v = [0.3, -1.2, 2.0];
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-13);
        assert!(close(&l.solve_transposed(&l.transposed_times(&v)), &v));
        let mut x = l.times(&v);
        l.solve(&mut x);
        assert!(close(&x, &v));
        assert!(close(&l.compose(&l).times(&v), &l.times(&l.times(&v))));
        // x·v = (L⁻¹x)·(Lᵀv).
        let x = [1.0, -2.0, 0.5];
        let mut z = x.to_vec();
        l.solve(&mut z);
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        assert!((dot(&x, &v) - dot(&z, &l.transposed_times(&v))).abs() < 1e-13);
        // (L Lᵀ)(A Aᵀ) = I.
        let a = l.inverse_covariance().unwrap();
        let back = l.times(&l.transposed_times(&a.times(&a.transposed_times(&v))));
        assert!(close(&back, &v));
        // L⁻¹ I L⁻ᵀ has trace ‖L⁻¹‖².
        let m = l.congruent_inverse(&[1.0; 3]);
        assert!((m[0] + m[4] + m[8] - l.inverse_norm().powi(2)).abs() < 1e-12);
    }

    /// Rows that begin with zeros, a whole diagonal among them.
    #[test]
    fn leading_zeros_are_passed_over() {
        let sparse = Lower::new(vec![2.0, 0.0, 0.0, 0.0, 1.5, 0.0, 0.0, 0.25, 0.5]).unwrap();
        assert_eq!(sparse.starts(), [0, 1, 1]);
        let mut x = sparse.times(&[3.0, -2.0, 4.0]);
        sparse.solve(&mut x);
        assert_eq!(x, [3.0, -2.0, 4.0]);
        let mut x = [3.0, -2.0];
        Lower::new(vec![2.0, 0.0, 0.0, 4.0]).unwrap().solve(&mut x);
        assert_eq!(x, [1.5, -0.5]);
    }

    #[test]
    fn only_triangles_with_a_positive_diagonal_are_taken() {
        assert!(Lower::new(vec![1.0, 0.5, 0.0, 1.0]).is_none());
        assert!(Lower::new(vec![1.0, 0.0, 0.0, -1.0]).is_none());
        assert!(Lower::new(vec![1.0, 0.0, f64::NAN, 1.0]).is_none());
        assert!(Lower::new(vec![]).is_none());
        let indefinite = [1.0, 2.0, 2.0, 1.0];
        let raised = Lower::of_regularised(&indefinite, 2, 0.1).unwrap();
        assert!(raised.is_valid() && raised.dim() == 2);
    }
}
