//! The two problems of Räisä, Koskela & Honkela 2021, "Differentially private Hamiltonian Monte
//! Carlo": a Gaussian mean in ten dimensions and a banana, with exact draws of their posteriors.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};

use super::ReproduceError;
use dpmc::data::Dataset;
use dpmc::diagnostics::{mean, mmd_squared, sd};
use dpmc::math::{cholesky, inverse};
use dpmc::synthetic;

/// Rows; δ = 0.1/n with them.
pub(super) const ROWS: u64 = 100_000;
/// Exact draws that samples are compared with (their code).
pub(super) const REFERENCE: usize = 1_000;
/// Pairs of draws whose median distance is the kernel's bandwidth (their code).
const PAIRS: usize = 500;

/// a, and the rows' variances, of the banana: those that the published experiments pass (the
/// paper's values).
const CURVATURE: f64 = 20.0;
const VARIANCES: [f64; 2] = [2000.0, 2500.0];
/// Column means of the rows that their code makes.
const BANANA_MEANS: [f64; 2] = [0.13332, 2.93387];
/// Prior variance 1000 in each parameter of the banana, 100² in the Gaussian's.
const BANANA_PRIOR_SD: f64 = 31.622_776_601_683_793;
const GAUSSIAN_PRIOR_SD: f64 = 100.0;
/// No row reaches so far: nothing is clipped to it.
const BANANA_NORM: f64 = 500.0;
const GAUSSIAN_NORM: f64 = 12.0;

/// Eigenvalues of Σ, ten draws of Gamma(0.5, 1). Today's JAX draws others from the seed of the
/// published code than it drew then: these are the set whose gradients are longer than 10, 12
/// and 15 as often as that code clips them (0.56, 0.38, 0.19; here 0.56, 0.38, 0.19).
const EIGENVALUES: [f64; D] = [
    0.01685, 0.02025, 0.09719, 0.1465, 0.1758, 0.2169, 0.2427, 0.4499, 0.8701, 1.034,
];
const D: usize = 10;

/// Which problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Banana,
    Gaussian,
}

/// A problem with its exact posterior.
pub(super) struct Target {
    pub kind: Kind,
    pub rows: usize,
    /// `[data]` and `[model]` of a run file.
    pub settings: String,
    /// True θ.
    truth: Vec<f64>,
    /// Independent draws of the exact posterior.
    pub exact: Vec<Vec<f64>>,
    /// The exact posterior's mean, from those draws.
    pub exact_mean: Vec<f64>,
    /// Mean over parameters of the posterior standard deviations: chains start so far from θ.
    start_sd: f64,
}

impl Target {
    /// The problem over `rows` rows.
    ///
    /// # Errors
    /// [`ReproduceError`] where rows cannot be made.
    pub fn new(kind: Kind, rows: usize) -> Result<Self, ReproduceError> {
        let data = data(kind, rows)?;
        let means = row_means(&data);
        let mut rng = ChaCha12Rng::seed_from_u64(21);
        let exact: Vec<Vec<f64>> = match kind {
            Kind::Banana => banana_draws(&means, rows, &mut rng),
            Kind::Gaussian => gaussian_draws(&means, rows, &mut rng)?,
        };
        let column = |j: usize| -> Vec<f64> { exact.iter().map(|d| d[j]).collect() };
        let d = means.len();
        let exact_mean = (0..d).map(|j| mean(&column(j))).collect();
        let start_sd = (0..d).map(|j| sd(&column(j))).sum::<f64>() / d as f64;
        Ok(Target {
            kind,
            rows,
            settings: settings(kind, rows),
            truth: truth(kind),
            exact,
            exact_mean,
            start_sd,
        })
    }

    /// Its name in tables.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Banana => "banana",
            Kind::Gaussian => "Gaussian",
        }
    }

    /// The rows, the same each time.
    pub fn data(&self) -> Result<Dataset, ReproduceError> {
        data(self.kind, self.rows)
    }

    /// Starts of four chains: N(true θ, posterior sd), like theirs.
    pub fn starts(&self, chains: usize, repeat: u64) -> Vec<Vec<f64>> {
        let mut rng = ChaCha12Rng::seed_from_u64(1000 + repeat);
        let mut near = |t: &f64| {
            let z: f64 = StandardNormal.sample(&mut rng);
            t + self.start_sd * z
        };
        (0..chains)
            .map(|_| self.truth.iter().map(&mut near).collect())
            .collect()
    }

    /// Their MMD of draws from the exact posterior: the root of the absolute unbiased estimate, at
    /// the median distance between a draw and an exact one.
    ///
    /// # Errors
    /// [`ReproduceError`] for draws that are not finite.
    pub fn mmd(&self, draws: &[Vec<f64>]) -> Result<f64, ReproduceError> {
        if draws.len() < 2 {
            return Ok(f64::NAN);
        }
        let mut rng = ChaCha12Rng::seed_from_u64(31);
        let mut distances: Vec<f64> = (0..PAIRS)
            .map(|_| {
                let (i, j) = (
                    rng.random_range(0..draws.len()),
                    rng.random_range(0..REFERENCE),
                );
                distance(&draws[i], &self.exact[j])
            })
            .collect();
        distances.sort_by(f64::total_cmp);
        let bandwidth = 0.5 * (distances[PAIRS / 2 - 1] + distances[PAIRS / 2]);
        Ok(mmd_squared(draws, &self.exact, bandwidth)?.abs().sqrt())
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum();
    square.sqrt()
}

fn truth(kind: Kind) -> Vec<f64> {
    match kind {
        Kind::Banana => vec![0.0, 3.0],
        Kind::Gaussian => (0..D).map(|j| if j == 1 { 3.0 } else { 0.0 }).collect(),
    }
}

/// Quick runs have fewer rows, of smaller variance by as much: their posterior is the same.
fn share(rows: usize) -> f64 {
    rows as f64 / ROWS as f64
}

fn variances(rows: usize) -> [f64; 2] {
    VARIANCES.map(|v| v * share(rows))
}

/// Σ = QΛQᵀ, row-major, Q from Gram–Schmidt on normal draws of a fixed seed.
pub(super) fn covariance(rows: usize) -> Vec<f64> {
    let mut rng = ChaCha12Rng::seed_from_u64(41);
    let mut axes: Vec<Vec<f64>> = Vec::new();
    while axes.len() < D {
        let mut v: Vec<f64> = (0..D).map(|_| StandardNormal.sample(&mut rng)).collect();
        for axis in &axes {
            let along: f64 = axis.iter().zip(&v).map(|(a, b)| a * b).sum();
            v.iter_mut().zip(axis).for_each(|(v, a)| *v -= along * a);
        }
        let norm = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        axes.push(v.iter().map(|v| v / norm).collect());
    }
    let entry = |i: usize, j: usize| -> f64 {
        let terms = axes.iter().zip(EIGENVALUES);
        share(rows) * terms.map(|(a, e)| e * a[i] * a[j]).sum::<f64>()
    };
    // The lower half twice: symmetric to the bit.
    (0..D * D)
        .map(|k| entry((k / D).max(k % D), (k / D).min(k % D)))
        .collect()
}

/// A matrix as a run file states it, every entry over `divisor`.
pub(super) fn as_toml(matrix: &[f64], divisor: f64) -> String {
    let rows: Vec<String> = matrix
        .chunks(D)
        .map(|row| {
            let cells: Vec<String> = row.iter().map(|v| format!("{:e}", v / divisor)).collect();
            format!("[{}]", cells.join(", "))
        })
        .collect();
    format!("[{}]", rows.join(", "))
}

fn settings(kind: Kind, rows: usize) -> String {
    let (norm, columns, model) = match kind {
        Kind::Banana => (
            BANANA_NORM,
            "'x0', 'x1'".into(),
            format!(
                "kind = 'banana'\ncurvature = {CURVATURE:?}\nvariances = {:?}\nprior = {{ kind = 'normal', sd = {BANANA_PRIOR_SD} }}",
                variances(rows)
            ),
        ),
        Kind::Gaussian => (
            GAUSSIAN_NORM,
            (0..D)
                .map(|j| format!("'x{j}'"))
                .collect::<Vec<_>>()
                .join(", "),
            format!(
                "kind = 'gaussian-mean'\ncovariance = {}\nprior = {{ kind = 'normal', sd = {GAUSSIAN_PRIOR_SD:?} }}",
                as_toml(&covariance(rows), 1.0)
            ),
        ),
    };
    format!(
        "[data]\nfile = 'made up'\n[[data.features]]\ncolumns = [{columns}]\nclamp = [-{norm:?}, {norm:?}]\n[model]\n{model}\n"
    )
}

fn data(kind: Kind, rows: usize) -> Result<Dataset, ReproduceError> {
    let truth = truth(kind);
    if kind == Kind::Banana {
        return banana_rows(rows, [truth[0], truth[1]]);
    }
    let root = cholesky(&covariance(rows), D).map_err(ReproduceError::Failed)?;
    let mut rng = ChaCha12Rng::seed_from_u64(23);
    let names = (0..D).map(|j| format!("x{j}")).collect();
    let mut set = Dataset::builder(names, false, GAUSSIAN_NORM)?;
    for _ in 0..rows {
        let row = add(&truth, &times(&root, &normals(&mut rng, D)));
        let row: Vec<f32> = row.iter().map(|v| *v as f32).collect();
        set.push(&row, None)?;
    }
    Ok(set.finish()?)
}

/// Rows like theirs: moved by a small constant to the column means that the seed of their code
/// gives, on which alone the posterior depends.
fn banana_rows(rows: usize, theta: [f64; 2]) -> Result<Dataset, ReproduceError> {
    let drawn = synthetic::banana(rows, theta, CURVATURE, variances(rows), BANANA_NORM, 22)?;
    let shift: Vec<f64> = BANANA_MEANS
        .iter()
        .zip(row_means(&drawn))
        .map(|(wanted, found)| wanted - found)
        .collect();
    let mut set = Dataset::builder(drawn.features().to_vec(), false, BANANA_NORM)?;
    for row in drawn.as_public().rows().chunks(2) {
        let moved = [0, 1].map(|j| (f64::from(row[j]) + shift[j]) as f32);
        set.push(&moved, None)?;
    }
    Ok(set.finish()?)
}

/// Column means. The rows are made up, so that reading them costs nobody anything.
fn row_means(data: &Dataset) -> Vec<f64> {
    let d = data.features().len();
    let rows = data.as_public().rows();
    (0..d)
        .map(|j| {
            rows.iter()
                .skip(j)
                .step_by(d)
                .map(|v| f64::from(*v))
                .sum::<f64>()
        })
        .map(|sum| sum / data.rows() as f64)
        .collect()
}

/// With m = θ₂ + aθ₁² the likelihood is that of two independent means, and the prior on θ₂ is
/// `exp(−(m − aθ₁²)²/2s²) ≤ 1`: draws of the conjugate posterior of (θ₁, m) under the prior of
/// θ₁ alone, each kept with that probability.
fn banana_draws(means: &[f64], rows: usize, rng: &mut ChaCha12Rng) -> Vec<Vec<f64>> {
    let prior = BANANA_PRIOR_SD.powi(-2);
    let [first, second] = variances(rows).map(|v| rows as f64 / v);
    let precision = [first + prior, second];
    let centre = [first * means[0] / precision[0], means[1]];
    let mut draws = Vec::with_capacity(REFERENCE);
    while draws.len() < REFERENCE {
        let z = normals(rng, 2);
        let theta1 = centre[0] + z[0] / precision[0].sqrt();
        let theta2 = centre[1] + z[1] / precision[1].sqrt() - CURVATURE * theta1 * theta1;
        if rng.random::<f64>() < (-0.5 * prior * theta2 * theta2).exp() {
            draws.push(vec![theta1, theta2]);
        }
    }
    draws
}

/// N(P⁻¹nΣ⁻¹x̄, P⁻¹), P = nΣ⁻¹ + I/s².
fn gaussian_draws(
    means: &[f64],
    rows: usize,
    rng: &mut ChaCha12Rng,
) -> Result<Vec<Vec<f64>>, ReproduceError> {
    let invert = |m: &[f64]| inverse(m, D).map_err(ReproduceError::Failed);
    let mut precision = invert(&covariance(rows))?;
    precision.iter_mut().for_each(|v| *v *= rows as f64);
    let pull = times_full(&precision, means);
    for i in 0..D {
        precision[i * D + i] += GAUSSIAN_PRIOR_SD.powi(-2);
    }
    // Rounding may leave an inverse a little asymmetric; its Cholesky factor reads both halves.
    let mut posterior = invert(&precision)?;
    for i in 0..D {
        for j in 0..i {
            posterior[i * D + j] = posterior[j * D + i];
        }
    }
    let centre = times_full(&posterior, &pull);
    let root = cholesky(&posterior, D).map_err(ReproduceError::Failed)?;
    let draw = |_| add(&centre, &times(&root, &normals(rng, D)));
    Ok((0..REFERENCE).map(draw).collect())
}

fn normals(rng: &mut ChaCha12Rng, d: usize) -> Vec<f64> {
    (0..d).map(|_| StandardNormal.sample(rng)).collect()
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(x, y)| x + y).collect()
}

/// L v, L lower triangular.
fn times(l: &[f64], v: &[f64]) -> Vec<f64> {
    let d = v.len();
    (0..d)
        .map(|i| (0..=i).map(|k| l[i * d + k] * v[k]).sum())
        .collect()
}

fn times_full(m: &[f64], v: &[f64]) -> Vec<f64> {
    let d = v.len();
    (0..d)
        .map(|i| (0..d).map(|k| m[i * d + k] * v[k]).sum())
        .collect()
}
