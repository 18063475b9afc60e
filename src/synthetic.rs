//! Generators of synthetic tables for examples, tests and benchmarks.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, Normal, StandardNormal};

use crate::data::{DataError, Dataset, LabelKind};

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
        .map_err(|e| DataError::Declaration {
            key: "sd".into(),
            what: e.to_string(),
        })?;
    for _ in 0..rows {
        let row: Vec<f32> = laws.iter().map(|n| n.sample(&mut rng) as f32).collect();
        set.push(&row, None)?;
    }
    set.finish()
}

/// `rows` draws of the banana of [`crate::model::Banana`] at `theta`, clipped to `row_norm`.
///
/// # Errors
/// [`DataError`] for fewer than two rows, a bad norm or a bad variance.
pub fn banana(
    rows: usize,
    theta: [f64; 2],
    curvature: f64,
    variances: [f64; 2],
    row_norm: f64,
    seed: u64,
) -> Result<Dataset, DataError> {
    let mean = [theta[0], theta[1] + curvature * theta[0] * theta[0]];
    gaussian(rows, &mean, &variances.map(f64::sqrt), row_norm, seed)
}

/// `rows` draws of a linear regression with noise of standard deviation `sd`: x ~ N(0, I/d),
/// clipped to norm 3, labels clamped to ±`bound`.
///
/// # Errors
/// [`DataError`] for fewer than two rows, no feature or a bad bound.
pub fn linear(
    rows: usize,
    theta: &[f64],
    sd: f64,
    bound: f64,
    seed: u64,
) -> Result<Dataset, DataError> {
    let label = LabelKind::Number {
        low: -bound,
        high: bound,
    };
    regression(rows, theta, label, seed, |eta, rng| {
        let z: f64 = StandardNormal.sample(rng);
        eta + sd * z
    })
}

/// `rows` draws of a Poisson regression with a log link: x ~ N(0, I/d), clipped to norm 3,
/// counts clamped to `max`.
///
/// # Errors
/// [`DataError`] for fewer than two rows, no feature or a bad bound.
pub fn poisson(rows: usize, theta: &[f64], max: u32, seed: u64) -> Result<Dataset, DataError> {
    regression(rows, theta, LabelKind::Count { max }, seed, |eta, rng| {
        // A rate of nearly 0 or infinity is no rate of the library's.
        let law = rand_distr::Poisson::new(eta.exp().clamp(1e-300, 1e15));
        law.map_or(0.0, |law| law.sample(rng))
    })
}

/// `rows` rows x ~ N(0, I/d), clipped to norm 3, in classes by steps of x·θ plus standard
/// normal noise: class 0 below −1, the last from 1 on, the others of equal width between.
///
/// # Errors
/// [`DataError`] for fewer than two rows, no feature or fewer than two classes.
pub fn classes(rows: usize, theta: &[f64], classes: u32, seed: u64) -> Result<Dataset, DataError> {
    let label = LabelKind::Class { classes };
    regression(rows, theta, label, seed, |eta, rng| {
        let z: f64 = StandardNormal.sample(rng);
        let inner = f64::from(classes) - 2.0;
        let step = (0.5 * (eta + z + 1.0) * inner.max(1e-9)).floor() + 1.0;
        step.clamp(0.0, inner + 1.0)
    })
}

/// Rows x ~ N(0, I/d) with a label drawn at η = x·θ.
fn regression(
    rows: usize,
    theta: &[f64],
    label: LabelKind,
    seed: u64,
    draw: impl Fn(f64, &mut ChaCha12Rng) -> f64,
) -> Result<Dataset, DataError> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let d = theta.len();
    let names = (0..d).map(|j| format!("x{j}")).collect();
    let mut set = Dataset::builder_with(names, Some(label), 3.0)?;
    let sd = 1.0 / (d.max(1) as f64).sqrt();
    let mut row = vec![0.0f32; d];
    for _ in 0..rows {
        let mut eta = 0.0;
        for (x, t) in row.iter_mut().zip(theta) {
            let z: f64 = StandardNormal.sample(&mut rng);
            *x = (sd * z) as f32;
            eta += f64::from(*x) * t;
        }
        let y = draw(eta, &mut rng);
        set.push_value(&row, Some(y))?;
    }
    set.finish()
}
