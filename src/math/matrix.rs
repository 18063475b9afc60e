//! Symmetric positive definite matrices, row-major.

/// Lower Cholesky factor of a symmetric positive definite matrix, d × d.
///
/// # Errors
/// What is wrong with it.
pub fn cholesky(matrix: &[f64], d: usize) -> Result<Vec<f64>, String> {
    if matrix.len() != d * d {
        return Err(format!("{} values for a {d} × {d} matrix", matrix.len()));
    }
    let mut l = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..=i {
            let (a, b) = (matrix[i * d + j], matrix[j * d + i]);
            if (a - b).abs() > 1e-9 * (a.abs() + b.abs()) {
                return Err("is not symmetric".into());
            }
            let dot: f64 = (0..j).map(|k| l[i * d + k] * l[j * d + k]).sum();
            if i == j {
                let pivot = a - dot;
                if !(pivot > 0.0 && pivot.is_finite()) {
                    return Err("is not positive definite".into());
                }
                l[i * d + i] = pivot.sqrt();
            } else {
                l[i * d + j] = (a - dot) / l[j * d + j];
            }
        }
    }
    Ok(l)
}

/// Inverse of a symmetric positive definite matrix, d × d.
///
/// # Errors
/// As for [`cholesky`].
pub fn inverse(matrix: &[f64], d: usize) -> Result<Vec<f64>, String> {
    let l = cholesky(matrix, d)?;
    let mut inverse = vec![0.0; d * d];
    for column in 0..d {
        let mut y = vec![0.0; d];
        for i in 0..d {
            let dot: f64 = (0..i).map(|k| l[i * d + k] * y[k]).sum();
            y[i] = (f64::from(u8::from(i == column)) - dot) / l[i * d + i];
        }
        for i in (0..d).rev() {
            let dot: f64 = (i + 1..d)
                .map(|k| l[k * d + i] * inverse[k * d + column])
                .sum();
            inverse[i * d + column] = (y[i] - dot) / l[i * d + i];
        }
    }
    Ok(inverse)
}
