//! The correction distribution V_cor of Barker's test with Gaussian noise (Seita 2017;
//! Heikkilä 2019, section 3.1): `N(0, C) + V_cor` is close to a logistic variable.
//!
//! V_cor is a mixture of Gaussians, mirrored about 0, over a fixed grid of means and
//! standard deviations; its weights are the least-squares fit of the distribution functions
//! at 1001 points of [−10, 10]. Non-negative least squares is convex, so the fit is the
//! grid's best; a handful of components carry all the weight.

use std::f64::consts::PI;

use super::normal::below;

/// Largest Gaussian variance: that of the logistic law.
const LOGISTIC_VARIANCE: f64 = PI * PI / 3.0;
/// Points of the fit on [0, 10]; the rest follows from symmetry.
const POINTS: usize = 501;
const SCALES: [f64; 6] = [0.02, 0.3, 0.6, 1.0, 1.5, 2.0];
/// Largest components of the mixture, far above what fits need.
const MOST_COMPONENTS: usize = 40;

/// One mirrored component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Weight, of both mirror images together.
    pub weight: f64,
    /// Mean of one image.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
}

/// V_cor for one C.
#[derive(Clone, Debug, PartialEq)]
pub struct Correction {
    variance: f64,
    components: Vec<Component>,
    error: f64,
}

impl Correction {
    /// Fits V_cor for Gaussian noise of variance `variance` = C, 0 < C < π²/3.
    ///
    /// # Errors
    /// A message where C is outside.
    pub fn fit(variance: f64) -> Result<Self, String> {
        Self::check_variance(variance)?;
        let grid: Vec<Component> = (0..=32)
            .flat_map(|m| {
                SCALES.map(|sd| Component {
                    weight: 1.0,
                    mean: 0.25 * f64::from(m),
                    sd,
                })
            })
            .collect();
        let points: Vec<f64> = (0..POINTS).map(|i| 0.02 * i as f64).collect();
        let columns: Vec<Vec<f64>> = grid
            .iter()
            .map(|c| points.iter().map(|&x| c.noisy_cdf(variance, x)).collect())
            .collect();
        let target: Vec<f64> = points.iter().map(|&x| logistic(x)).collect();
        let weights = simplex_least_squares(&columns, &target);
        let components: Vec<Component> = grid
            .into_iter()
            .zip(weights)
            .filter(|(_, weight)| *weight > 0.0)
            .map(|(c, weight)| Component { weight, ..c })
            .collect();
        Ok(Self::measured(variance, components, 2e-3))
    }

    /// A message where no correction makes noise of this variance logistic.
    pub(crate) fn check_variance(variance: f64) -> Result<(), String> {
        match variance > 0.0 && variance < LOGISTIC_VARIANCE {
            true => Ok(()),
            false => Err(format!(
                "the noise variance C must lie between 0 and pi^2/3 = 3.29, not {variance}"
            )),
        }
    }

    /// With its error, found on [0, 40] by this step.
    fn measured(variance: f64, components: Vec<Component>, step: f64) -> Self {
        let mut correction = Correction {
            variance,
            components,
            error: 0.0,
        };
        let last = (40.0 / step) as u32;
        correction.error = (0..=last)
            .map(|i| step * f64::from(i))
            .map(|x| (correction.noisy_cdf(x) - logistic(x)).abs())
            .fold(0.0, f64::max);
        correction
    }

    /// C.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// The components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// `sup |S′ − S|` over z, S′ the acceptance probability with V_cor, S Barker's.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// Distribution function of `N(0, C) + V_cor`, which is S′.
    pub fn noisy_cdf(&self, x: f64) -> f64 {
        self.components
            .iter()
            .map(|c| c.weight * c.noisy_cdf(self.variance, x))
            .sum()
    }

    /// One draw of V_cor; `bits`: independent random bits at every call.
    pub(crate) fn draw(&self, mut bits: impl FnMut() -> u64) -> f64 {
        let mut u = uniform(bits());
        let last = self.components[self.components.len() - 1];
        let component = self
            .components
            .iter()
            .find(|c| {
                u -= c.weight;
                u < 0.0
            })
            .copied()
            .unwrap_or(last);
        let sign = if bits() & 1 == 1 { 1.0 } else { -1.0 };
        // Box and Muller.
        let radius = (-2.0 * (1.0 - uniform(bits())).ln()).sqrt();
        let normal = radius * (2.0 * PI * uniform(bits())).cos();
        sign * component.mean + component.sd * normal
    }
}

impl Component {
    fn noisy_cdf(&self, variance: f64, x: f64) -> f64 {
        let scale = 1.0 / (variance + self.sd * self.sd).sqrt();
        0.5 * (below((x - self.mean) * scale) + below((x + self.mean) * scale))
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 * f64::powi(2.0, -53)
}

/// Weights ≥ 0 of sum 1 that minimise the squared distance of the columns' combination
/// from the target (Lawson & Hanson 1974; the sum as a heavy row).
fn simplex_least_squares(columns: &[Vec<f64>], target: &[f64]) -> Vec<f64> {
    const HEAVY: f64 = 1e4;
    let n = columns.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let gram: Vec<Vec<f64>> = columns
        .iter()
        .map(|a| columns.iter().map(|b| dot(a, b) + HEAVY).collect())
        .collect();
    let right: Vec<f64> = columns.iter().map(|a| dot(a, target) + HEAVY).collect();
    let mut weights = vec![0.0; n];
    let mut active: Vec<usize> = Vec::new();
    for _ in 0..10 * MOST_COMPONENTS {
        let slope = |j: usize| right[j] - dot(&gram[j], &weights);
        let next = (0..n)
            .filter(|j| !active.contains(j))
            .max_by(|&a, &b| slope(a).total_cmp(&slope(b)));
        let Some(next) = next.filter(|&j| slope(j) > 1e-10) else {
            break;
        };
        active.push(next);
        if active.len() > MOST_COMPONENTS {
            break;
        }
        // Step towards the unconstrained solution on the active set until it is inside.
        loop {
            let wanted = solve(&gram, &right, &active);
            let share = active
                .iter()
                .zip(&wanted)
                .filter(|(_, v)| **v <= 0.0)
                .map(|(&j, v)| weights[j] / (weights[j] - v))
                .fold(1.0, f64::min);
            for (&j, v) in active.iter().zip(&wanted) {
                weights[j] += share * (v - weights[j]);
            }
            if share >= 1.0 {
                break;
            }
            active.retain(|&j| {
                let stays = weights[j] > 1e-14;
                if !stays {
                    weights[j] = 0.0;
                }
                stays
            });
            if active.is_empty() {
                break;
            }
        }
    }
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

/// Solves the normal equations on `active` by elimination with pivoting, a ridge of 1e-12
/// against near-equal columns.
fn solve(gram: &[Vec<f64>], right: &[f64], active: &[usize]) -> Vec<f64> {
    let n = active.len();
    let mut rows: Vec<Vec<f64>> = active
        .iter()
        .map(|&i| {
            let mut row: Vec<f64> = active.iter().map(|&j| gram[i][j]).collect();
            row.push(right[i]);
            row
        })
        .collect();
    for (k, row) in rows.iter_mut().enumerate() {
        row[k] += 1e-12;
    }
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs()))
            .unwrap_or(k);
        rows.swap(k, pivot);
        let top = rows[k].clone();
        for row in rows.iter_mut().skip(k + 1) {
            let factor = row[k] / top[k];
            for (x, t) in row.iter_mut().zip(&top).skip(k) {
                *x -= factor * t;
            }
        }
    }
    let mut solution = vec![0.0; n];
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| rows[k][j] * solution[j]).sum();
        solution[k] = (rows[k][n] - known) / rows[k][k];
    }
    solution
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    #[test]
    fn fits_are_close_to_the_logistic_law() {
        for (variance, most) in [(1.0, 1e-5), (2.0, 8e-4), (3.0, 1.5e-2)] {
            let fit = Correction::fit(variance).unwrap();
            println!("{fit:?}");
            assert!(fit.error() < most, "C = {variance}: {}", fit.error());
            let total: f64 = fit.components().iter().map(|c| c.weight).sum();
            assert!((total - 1.0).abs() < 1e-9);
            assert!(fit.components().iter().all(|c| c.weight > 0.0));
        }
        for bad in [0.0, -1.0, 3.3, f64::NAN] {
            assert!(Correction::fit(bad).is_err());
        }
    }

    /// Draws follow the mixture: a normal of variance C added to them has the stated
    /// distribution function at five points within 6 standard errors (false alarm 1e-8).
    #[test]
    fn draws_have_the_stated_law() {
        let fit = Correction::fit(2.0).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| fit.draw(|| rng.next_u64())).collect();
        for x in [-3.0, -0.7, 0.0, 0.7, 3.0] {
            let scale = 1.0 / fit.variance().sqrt();
            let smooth = |v: &f64| below((x - v) * scale);
            let mean = draws.iter().map(smooth).sum::<f64>() / f64::from(n);
            let error = 0.5 / f64::from(n).sqrt();
            assert!((mean - fit.noisy_cdf(x)).abs() < 6.0 * error, "{x}: {mean}");
        }
    }
}
