//! Generators of synthetic tables for examples, tests and benchmarks.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, Normal, StandardNormal};

use super::{DataError, Dataset};

/// `rows` draws from ½N(0, 2) + ½N(1, 2), the mixture of Heikkilä 2019 and Zhang 2023;
/// with `truncate`, draws outside `[−t, t]` are drawn again (Zhang 2023, section 5).
///
/// # Errors
/// [`DataError`] for fewer than two rows.
pub fn mixture(rows: usize, truncate: Option<f64>, seed: u64) -> Result<Dataset, DataError> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let bound = truncate.unwrap_or(1e3);
    let mut set = Dataset::builder(vec!["x".into()], false, bound)?;
    for _ in 0..rows {
        loop {
            let shift = f64::from(u8::from(rng.random::<bool>()));
            let z: f64 = StandardNormal.sample(&mut rng);
            let x = shift + std::f64::consts::SQRT_2 * z;
            if x.abs() <= bound {
                set.push(&[x as f32], None)?;
                break;
            }
        }
    }
    set.finish()
}

/// `rows` draws of a logistic regression with `theta.len()` features: x ~ N(0, I/d)
/// (so that row norms are near 1), clipped to norm 3, labels from the model.
///
/// # Errors
/// [`DataError`] for fewer than two rows or no feature.
pub fn logistic(rows: usize, theta: &[f64], seed: u64) -> Result<Dataset, DataError> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let d = theta.len();
    let names = (0..d).map(|j| format!("x{j}")).collect();
    let mut set = Dataset::builder(names, true, 3.0)?;
    let sd = 1.0 / (d.max(1) as f64).sqrt();
    let mut row = vec![0.0f32; d];
    for _ in 0..rows {
        let mut eta = 0.0;
        for (x, t) in row.iter_mut().zip(theta) {
            let z: f64 = StandardNormal.sample(&mut rng);
            *x = (sd * z) as f32;
            eta += f64::from(*x) * t;
        }
        let y = rng.random::<f64>() < 1.0 / (1.0 + (-eta).exp());
        set.push(&row, Some(y))?;
    }
    set.finish()
}

/// `rows` independent draws from N(mean, diag(sd²)), clipped to `row_norm`.
///
/// # Errors
/// [`DataError`] for fewer than two rows, a bad norm or a bad sd.
pub fn gaussian(
    rows: usize,
    mean: &[f64],
    sd: &[f64],
    row_norm: f64,
    seed: u64,
) -> Result<Dataset, DataError> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let names = (0..mean.len()).map(|j| format!("x{j}")).collect();
    let mut set = Dataset::builder(names, false, row_norm)?;
    let laws: Vec<Normal<f64>> = mean
        .iter()
        .zip(sd)
        .map(|(&m, &s)| Normal::new(m, s))
        .collect::<Result<_, _>>()
        .map_err(|e| DataError::declaration("sd", e.to_string()))?;
    for _ in 0..rows {
        let row: Vec<f32> = laws.iter().map(|n| n.sample(&mut rng) as f32).collect();
        set.push(&row, None)?;
    }
    set.finish()
}
