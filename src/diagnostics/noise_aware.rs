//! What the noise of a released anchor does to a posterior: it shifts the mean by an
//! amount whose law is public (docs/proofs/anchors.md; Bernstein & Sheldon 2018).

use super::{ess_mean, mean, sd};
use crate::math::Lower;
use crate::model::Anchor;

/// Probability of the intervals.
pub const NOISE_AWARE_LEVEL: f64 = 0.9;
/// Normal quantile of a central 90 % interval.
const Z90: f64 = 1.644_853_626_951_472_2;
/// So many draws that hold the noise reach beyond a 90 % interval, or something cuts them off: all
/// are on one side of it once in 10^7 times.
const TELLING_DRAWS: usize = 300;
/// Draws that covariances are taken over, at most.
const MOST_DRAWS: usize = 4000;

/// A parameter's intervals with the anchor's noise in them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NoiseAware {
    /// Standard deviation of the posterior mean under the anchor's noise and the chain's own.
    pub mean_sd: f64,
    /// 90 % interval of the mean of the posterior without noise.
    pub mean_interval: [f64; 2],
    /// 90 % credible interval, widened by the noise.
    pub interval: [f64; 2],
}

/// One entry a parameter. `parameters[j]`: the draws of parameter j, one vector a chain;
/// all chains of the same length. To first order the noise (n, N) of gradient and curvature
/// moves the mean by `P⁻¹(n − N m)`, P⁻¹ the draws' covariance and m their mean, both in the
/// anchor's coordinates, so its covariance is `P⁻¹(σ₁²I + σ₂²/2 (|m|²I + mmᵀ))P⁻¹`.
/// An anchor that holds a covariance of its centre's noise itself has the last word. `aware`: the
/// draws have the noise in them. `None` where draws and anchor do not fit together.
pub fn noise_aware(
    parameters: &[Vec<Vec<f64>>],
    anchor: &Anchor,
    aware: bool,
) -> Option<Vec<NoiseAware>> {
    let d = parameters.len();
    let pooled: Vec<Vec<f64>> = parameters.iter().map(|p| p.concat()).collect();
    let n = pooled.first()?.len();
    if !anchor.is_valid(d) || n < 2 || pooled.iter().any(|p| p.len() != n) {
        return None;
    }
    if !anchor.spread.is_empty() {
        // With sampled scales the spread is that of a wider working prior; draws that have the
        // noise in them vary by all of it and more.
        let pooled_prior = anchor.alone.is_some() && aware;
        let most = |j: usize| match pooled_prior {
            true => sd(&pooled[j]).powi(2),
            false => f64::INFINITY,
        };
        let variance = |j: usize| quadratic(anchor, j).min(most(j));
        return Some(widened(parameters, variance, aware));
    }
    let draws = (0..n).map(|i| pooled.iter().map(|p| p[i]).collect::<Vec<f64>>());
    let (centre, covariance) = in_coordinates(draws, anchor);
    let (first, second) = variances(anchor);
    let length: f64 = centre.iter().map(|m| m * m).sum();
    let variance = |j: usize| -> f64 {
        let a = moved(anchor, &covariance, j);
        let squares: f64 = a.iter().map(|v| v * v).sum();
        let along: f64 = a.iter().zip(&centre).map(|(a, m)| a * m).sum();
        (first + second * length) * squares + second * along * along
    };
    Some(widened(parameters, variance, false))
}

/// Variances of the noise in a coordinate of the gradient, and half of the curvature's.
fn variances(anchor: &Anchor) -> (f64, f64) {
    (
        anchor.gradient_sd.powi(2),
        anchor.curvature_sd.powi(2) / 2.0,
    )
}

/// Mean and covariance of draws in the anchor's coordinates.
pub(super) fn in_coordinates(
    draws: impl Iterator<Item = Vec<f64>>,
    anchor: &Anchor,
) -> (Vec<f64>, Vec<f64>) {
    let d = anchor.at.len();
    let us: Vec<Vec<f64>> = draws.map(|theta| anchor.coordinates(&theta)).collect();
    let n = us.len();
    let centre: Vec<f64> = (0..d)
        .map(|j| us.iter().map(|u| u[j]).sum::<f64>() / n as f64)
        .collect();
    let mut covariance = vec![0.0; d * d];
    for u in &us {
        for i in 0..d {
            for j in 0..d {
                covariance[i * d + j] += (u[i] - centre[i]) * (u[j] - centre[j]) / (n - 1) as f64;
            }
        }
    }
    (centre, covariance)
}

/// How θ_j moves with the noise: by row j of L⁻ᵀ, a = (covariance)(L⁻¹ e_j).
fn moved(anchor: &Anchor, covariance: &[f64], j: usize) -> Vec<f64> {
    let d = anchor.at.len();
    let mut unit = vec![0.0; d];
    unit[j] = 1.0;
    anchor.metric.factor.solve(&mut unit);
    let rows = covariance.chunks(d);
    rows.map(|row| row.iter().zip(&unit).map(|(c, e)| c * e).sum())
        .collect()
}

/// Draws of a target that takes an anchor for exact, with its noise added: each is moved by a draw
/// of the law that [`noise_aware`] takes variances from, by the public coins `rng`. `None` where
/// draws and anchor do not fit together.
pub fn with_noise(
    draws: &[Vec<f64>],
    anchor: &Anchor,
    rng: &mut impl rand::Rng,
) -> Option<Vec<Vec<f64>>> {
    use rand_distr::{Distribution, StandardNormal};
    let d = anchor.at.len();
    if !anchor.is_valid(d) || draws.len() < 2 || draws.iter().any(|theta| theta.len() != d) {
        return None;
    }
    // A matrix whose rows, times standard normal numbers, are what each θ_j moves by.
    let rows: Vec<Vec<f64>> = if anchor.spread.is_empty() {
        let every = draws.len().div_ceil(MOST_DRAWS);
        let (centre, covariance) = in_coordinates(draws.iter().step_by(every).cloned(), anchor);
        let (first, second) = variances(anchor);
        let length: f64 = centre.iter().map(|m| m * m).sum();
        let row = |j| {
            let a = moved(anchor, &covariance, j);
            let along: f64 = a.iter().zip(&centre).map(|(a, m)| a * m).sum();
            let own = a.iter().map(|v| v * (first + second * length).sqrt());
            own.chain([second.sqrt() * along]).collect()
        };
        (0..d).map(row).collect()
    } else {
        let size = (0..d).map(|j| anchor.spread[j * d + j]).fold(0.0, f64::max);
        if size <= 0.0 {
            return Some(draws.to_vec());
        }
        let root = Lower::of_regularised(&anchor.spread, d, 1e-12 * size)?;
        let row = |j: usize| {
            let mut unit = vec![0.0; d];
            unit[j] = 1.0;
            anchor.metric.factor.solve(&mut unit);
            root.transposed_times(&unit)
        };
        (0..d).map(row).collect()
    };
    let mut moved = Vec::with_capacity(draws.len());
    for theta in draws {
        let z: Vec<f64> = rows[0].iter().map(|_| StandardNormal.sample(rng)).collect();
        let by = rows
            .iter()
            .map(|row| -> f64 { row.iter().zip(&z).map(|(r, z)| r * z).sum() });
        moved.push(theta.iter().zip(by).map(|(t, by)| t + by).collect());
    }
    Some(moved)
}

/// Variance of θ_j by the covariance that the anchor holds.
fn quadratic(anchor: &Anchor, j: usize) -> f64 {
    let d = anchor.at.len();
    let mut a = vec![0.0; d];
    a[j] = 1.0;
    anchor.metric.factor.solve(&mut a);
    let rows = anchor.spread.chunks(d).zip(&a);
    rows.map(|(row, v)| v * row.iter().zip(&a).map(|(s, v)| s * v).sum::<f64>())
        .sum::<f64>()
        .max(0.0)
}

/// The same for released moments, whose noise of standard deviation `sds[k]` enters the log
/// density times `slopes(θ)[k]`: to first order the mean of θ_j moves by
/// `Σ_k n_k Cov(θ_j, slopes_k)`, the covariances those of the draws.
pub fn noise_aware_moments(
    parameters: &[Vec<Vec<f64>>],
    sds: &[f64],
    slopes: impl Fn(&[f64]) -> Vec<f64>,
) -> Option<Vec<NoiseAware>> {
    let pooled: Vec<Vec<f64>> = parameters.iter().map(|p| p.concat()).collect();
    let n = pooled.first()?.len();
    if n < 2 || pooled.iter().any(|p| p.len() != n) {
        return None;
    }
    let used: Vec<usize> = (0..n).step_by(n.div_ceil(MOST_DRAWS)).collect();
    let at = |i: usize| -> Vec<f64> { pooled.iter().map(|p| p[i]).collect() };
    let rows: Vec<Vec<f64>> = used.iter().map(|&i| slopes(&at(i))).collect();
    if rows.iter().any(|r| r.len() != sds.len()) {
        return None;
    }
    let count = used.len() as f64;
    let covariance = |j: usize, k: usize| -> f64 {
        let (a, b) = (&pooled[j], &rows);
        let mean_a = used.iter().map(|&i| a[i]).sum::<f64>() / count;
        let mean_b = b.iter().map(|r| r[k]).sum::<f64>() / count;
        let pairs = used.iter().zip(b);
        pairs
            .map(|(&i, r)| (a[i] - mean_a) * (r[k] - mean_b))
            .sum::<f64>()
            / (count - 1.0)
    };
    let variance = |j: usize| -> f64 {
        let each = sds.iter().enumerate();
        each.map(|(k, sd)| (sd * covariance(j, k)).powi(2)).sum()
    };
    Some(widened(parameters, variance, false))
}

/// Intervals widened by a variance of the mean, one a parameter. `aware`: draws have it in them.
fn widened(
    parameters: &[Vec<Vec<f64>>],
    variance: impl Fn(usize) -> f64,
    aware: bool,
) -> Vec<NoiseAware> {
    parameters
        .iter()
        .enumerate()
        .map(|(j, chains)| {
            let pooled = chains.concat();
            let (m, s) = (mean(&pooled), sd(&pooled));
            let noise = (variance(j) + s * s / ess_mean(chains).max(1.0)).sqrt();
            let wide = if aware { s } else { s.hypot(noise) };
            // Where a prior's box cuts draws off, intervals end there too.
            let (low, high) = match aware && pooled.len() >= TELLING_DRAWS {
                true => (
                    pooled.iter().copied().fold(f64::INFINITY, f64::min),
                    pooled.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ),
                false => (f64::NEG_INFINITY, f64::INFINITY),
            };
            let around = |sd: f64| [(m - Z90 * sd).max(low), (m + Z90 * sd).min(high)];
            NoiseAware {
                mean_sd: noise,
                mean_interval: around(noise),
                interval: around(wide),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Metric;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    /// In one dimension with L = l: P⁻¹ = l²s², so the mean moves by l s² n, and by
    /// l s² N m for the curvature.
    #[test]
    fn one_parameter_by_hand() {
        let (l, s, shift) = (2.0, 0.3, 0.1);
        let draws: Vec<f64> = (0..4000)
            .map(|i| 1.0 + shift + s * 2f64.sqrt() * (f64::from(i) * 2.399_963).sin())
            .collect();
        let anchor = Anchor {
            at: vec![1.0],
            metric: Metric {
                factor: Lower::new(vec![l]).unwrap(),
                row_bound: 1.0,
            },
            gradient: vec![0.0],
            curvature: vec![1.0],
            gradient_sd: 0.5,
            curvature_sd: 0.2,
            centre: vec![0.0; 1],
            radius: 100.0,
            spread: Vec::new(),
            doubts: Default::default(),
            alone: None,
        };
        let sample = sd(&draws);
        let ess = ess_mean(std::slice::from_ref(&draws));
        let out = noise_aware(&[vec![draws]], &anchor, false).unwrap();
        let u = l * shift;
        let variance = (l * sample * sample).powi(2) * (0.25 + 0.04 * u * u);
        let expected = (variance + sample * sample / ess).sqrt();
        assert!(
            (out[0].mean_sd / expected - 1.0).abs() < 1e-3,
            "{out:?} {expected}"
        );
        assert!(out[0].interval[1] > out[0].mean_interval[1]);
        assert!(noise_aware(&[], &anchor, false).is_none());
    }

    /// In two dimensions, by both formulas: draws that are all but constant are left with the
    /// covariance of the noise, within 0.06 of itself for 40,000 (six standard deviations and
    /// more).
    #[test]
    fn noise_is_added_with_its_covariance() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let mut anchor = Anchor {
            at: vec![0.0, 0.0],
            metric: Metric {
                factor: Lower::new(vec![2.0, 0.0, 1.0, 0.5]).unwrap(),
                row_bound: 1.0,
            },
            gradient: vec![0.0; 2],
            curvature: vec![1.0, 0.0, 0.0, 1.0],
            gradient_sd: 0.5,
            curvature_sd: 0.2,
            centre: vec![0.0; 2],
            radius: 100.0,
            spread: vec![0.5, 0.2, 0.2, 0.4],
            doubts: Default::default(),
            alone: None,
        };
        let t = |i: u32| f64::from(i) * 2.399_963;
        let draws: Vec<Vec<f64>> = (0..40_000)
            .map(|i| vec![1.0 + 1e-2 * t(i).sin(), 1e-2 * (1.7 * t(i)).cos()])
            .collect();
        let chains: Vec<Vec<Vec<f64>>> = (0..2)
            .map(|j| vec![draws.iter().map(|d| d[j]).collect()])
            .collect();
        for spread in [anchor.spread.clone(), Vec::new()] {
            // Where there is none the noise is of the draws' own covariance: make it larger.
            let larger = if spread.is_empty() { 1e3 } else { 1.0 };
            anchor.gradient_sd = 0.5 * larger;
            anchor.spread = spread;
            let told = noise_aware(&chains, &anchor, false).unwrap();
            let moved = with_noise(&draws, &anchor, &mut rng).unwrap();
            for j in 0..2 {
                let of = |draws: &[Vec<f64>]| sd(&draws.iter().map(|d| d[j]).collect::<Vec<_>>());
                let added = (of(&moved).powi(2) - of(&draws).powi(2)).sqrt();
                let expected = told[j].mean_sd;
                assert!(
                    (added / expected - 1.0).abs() < 0.03,
                    "{j}: {added} {expected}"
                );
            }
            if !anchor.spread.is_empty() {
                // L⁻ᵀ S L⁻¹ by hand.
                let pairs = moved.iter().zip(&draws);
                let products = pairs.map(|(m, d)| (m[0] - d[0]) * (m[1] - d[1]));
                let covariance = products.sum::<f64>() / draws.len() as f64;
                let expected = 0.2 / (2.0 * 0.5) - 0.4 * 1.0 / (2.0 * 0.25);
                assert!(
                    (covariance / expected - 1.0).abs() < 0.06,
                    "{covariance} {expected}"
                );
            }
        }
        assert!(with_noise(&draws[..1], &anchor, &mut rng).is_none());
    }

    /// A slope of cθ moves the mean by `c s² n`; a constant slope does nothing.
    #[test]
    fn moments_by_hand() {
        let s = 0.3;
        let draws: Vec<f64> = (0..9000)
            .map(|i| 1.0 + s * 2f64.sqrt() * (f64::from(i) * 2.399_963).sin())
            .collect();
        let chains = vec![vec![draws]];
        let rows = noise_aware_moments(&chains, &[0.5, 9.0], |t| vec![4.0 * t[0], 7.0]).unwrap();
        let error = s * s / ess_mean(&chains[0]);
        let expected = ((4.0 * s * s * 0.5f64).powi(2) + error).sqrt();
        assert!(
            (rows[0].mean_sd / expected - 1.0).abs() < 0.01,
            "{}",
            rows[0].mean_sd
        );
        assert!(noise_aware_moments(&chains, &[0.5], |_| vec![]).is_none());
    }
}
