//! Linear algebra on what was released: a matrix that cannot be used ends the path with a reason.

use nalgebra::{Cholesky, DMatrix, DVector};

use crate::model::Lower;
use crate::privacy::Halt;

fn unusable() -> Halt {
    Halt::Failed("the released curvature cannot be inverted; what it cost is spent".into())
}

/// A d × d matrix from its entries.
pub(super) fn square(entries: &[f64], d: usize) -> DMatrix<f64> {
    DMatrix::from_row_slice(d, d, entries)
}

/// The Cholesky factor; a ridge of rounding's size is added where it takes one.
pub(super) fn factor(matrix: &DMatrix<f64>) -> Result<DMatrix<f64>, Halt> {
    let symmetric = (matrix + matrix.transpose()) * 0.5;
    let size = symmetric.diagonal().amax();
    let d = symmetric.nrows();
    let mut ridge = 0.0;
    for _ in 0..40 {
        let raised = &symmetric + DMatrix::identity(d, d) * ridge;
        if let Some(cholesky) = Cholesky::new(raised) {
            return Ok(cholesky.l());
        }
        ridge = (2.0 * ridge).max(1e-13 * size);
    }
    Err(unusable())
}

pub(super) fn solve(matrix: &DMatrix<f64>, right: &DMatrix<f64>) -> Result<DMatrix<f64>, Halt> {
    let l = factor(matrix)?;
    let half = forward_matrix(&l, right)?;
    l.tr_solve_lower_triangular(&half).ok_or_else(unusable)
}

pub(super) fn solve_vector(
    matrix: &DMatrix<f64>,
    right: &DVector<f64>,
) -> Result<DVector<f64>, Halt> {
    let l = factor(matrix)?;
    let half = forward(&l, right)?;
    backward(&l, &half)
}

pub(super) fn forward(l: &DMatrix<f64>, right: &DVector<f64>) -> Result<DVector<f64>, Halt> {
    l.solve_lower_triangular(right).ok_or_else(unusable)
}

pub(super) fn backward(l: &DMatrix<f64>, right: &DVector<f64>) -> Result<DVector<f64>, Halt> {
    l.tr_solve_lower_triangular(right).ok_or_else(unusable)
}

pub(super) fn forward_matrix(l: &DMatrix<f64>, right: &DMatrix<f64>) -> Result<DMatrix<f64>, Halt> {
    l.solve_lower_triangular(right).ok_or_else(unusable)
}

/// `L⁻¹ M L⁻ᵀ`.
pub(super) fn whiten(l: &DMatrix<f64>, matrix: &DMatrix<f64>) -> Result<DMatrix<f64>, Halt> {
    let half = forward_matrix(l, matrix)?;
    forward_matrix(l, &half.transpose())
}

pub(super) fn lower(factor: &DMatrix<f64>) -> Result<Lower, Halt> {
    let entries = factor.transpose().iter().copied().collect();
    Lower::new(entries).ok_or_else(unusable)
}
