//! The few operations on symmetric matrices that reference, yardstick and peers need.
//! Matrices are d × d, row-major.

/// Lower Cholesky factor; `None` where the matrix is not positive definite.
pub fn cholesky(matrix: &[f64], d: usize) -> Option<Vec<f64>> {
    let mut l = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..=i {
            let done: f64 = (0..j).map(|k| l[i * d + k] * l[j * d + k]).sum();
            let rest = matrix[i * d + j] - done;
            if i != j {
                l[i * d + j] = rest / l[j * d + j];
            } else if rest > 0.0 && rest.is_finite() {
                l[i * d + i] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(l)
}

/// `L⁻¹ v`, in place.
pub fn solve_lower(l: &[f64], v: &mut [f64]) {
    let d = v.len();
    for i in 0..d {
        let (done, rest) = v.split_at_mut(i);
        let dot: f64 = l[i * d..][..i].iter().zip(done).map(|(a, b)| a * *b).sum();
        rest[0] = (rest[0] - dot) / l[i * d + i];
    }
}

/// `L⁻ᵀ v`, in place.
pub fn solve_upper(l: &[f64], v: &mut [f64]) {
    let d = v.len();
    for i in (0..d).rev() {
        let dot: f64 = (i + 1..d).map(|k| l[k * d + i] * v[k]).sum();
        v[i] = (v[i] - dot) / l[i * d + i];
    }
}

/// `(LLᵀ)⁻¹ v`.
pub fn solve(l: &[f64], v: &[f64]) -> Vec<f64> {
    let mut x = v.to_vec();
    solve_lower(l, &mut x);
    solve_upper(l, &mut x);
    x
}

/// `(LLᵀ)⁻¹`.
pub fn inverse(l: &[f64], d: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(d * d);
    for j in 0..d {
        let mut unit = vec![0.0; d];
        unit[j] = 1.0;
        out.extend(solve(l, &unit));
    }
    out
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Smallest eigenvalue of a positive semi-definite matrix, by inverse iteration.
pub fn smallest_eigenvalue(matrix: &[f64], d: usize) -> f64 {
    // A ridge far below any eigenvalue of use keeps singular matrices solvable.
    let ridge = 1e-9 * (0..d).map(|i| matrix[i * d + i]).sum::<f64>() / d as f64;
    let Some(l) = cholesky(&with_ridge(matrix, d, ridge), d) else {
        return 0.0;
    };
    let mut v: Vec<f64> = (0..d).map(|i| 1.0 + (i as f64).sin()).collect();
    let mut growth = 0.0;
    for _ in 0..200 {
        let length = dot(&v, &v).sqrt();
        v.iter_mut().for_each(|a| *a /= length);
        let next = solve(&l, &v);
        growth = dot(&v, &next);
        v = next;
    }
    (1.0 / growth - ridge).max(0.0)
}

/// `matrix + ridge·I`.
pub fn with_ridge(matrix: &[f64], d: usize, ridge: f64) -> Vec<f64> {
    let mut out = matrix.to_vec();
    (0..d).for_each(|i| out[i * d + i] += ridge);
    out
}
