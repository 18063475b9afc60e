//! Kernel density estimate of a marginal posterior, for plots.

use super::{quantile, sd};

/// Share of the draws at each end that may lie outside the curve: a few far
/// draws must not squeeze the rest of it.
const TRIMMED: f64 = 0.001;

/// Gaussian kernel density of the draws at `points` equally spaced places, as
/// pairs (place, density), with the rule-of-thumb bandwidth of Silverman
/// (1986), "Density Estimation for Statistics and Data Analysis", equation
/// 3.31, for as many independent draws as these are worth (`effective`; all of
/// them where it is no number): with that of all draws the curve of a slow
/// chain would show its steps. Draws that are not finite are passed over; the result is empty where
/// no density exists: fewer than two draws or `points`, or constant draws.
pub fn density(draws: &[f64], points: usize, effective: f64) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = draws.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (Some(&least), Some(&greatest)) = (sorted.first(), sorted.last()) else {
        return Vec::new();
    };
    if points < 2 || least == greatest {
        return Vec::new();
    }
    let bandwidth = silverman_bandwidth(&sorted, effective);
    let low = quantile(&sorted, TRIMMED) - 3.0 * bandwidth;
    let high = quantile(&sorted, 1.0 - TRIMMED) + 3.0 * bandwidth;
    let step = (high - low) / (points - 1) as f64;
    if !(step.is_finite() && step > 0.0 && low + step > low) {
        // Draws so close, or so far apart, that f64 has no grid for them.
        return Vec::new();
    }

    // Each draw is shared by its two neighbours on the grid, and the grid is
    // smoothed: the cost does not grow with draws times points.
    let mut mass = vec![0.0; points];
    for x in &sorted {
        let position = (x - low) / step;
        if position < 0.0 || position >= (points - 1) as f64 {
            continue;
        }
        let left = position as usize;
        mass[left] += 1.0 - position.fract();
        mass[left + 1] += position.fract();
    }
    // A kernel narrower than the grid would show the grid, not the density.
    let width = bandwidth.max(step) / step;
    let kernel: Vec<f64> = (0..points)
        .map(|lag| (-0.5 * (lag as f64 / width).powi(2)).exp())
        .collect();
    let scale = 1.0 / (std::f64::consts::TAU.sqrt() * width * step * sorted.len() as f64);
    (0..points)
        .map(|i| {
            let smoothed: f64 = mass
                .iter()
                .enumerate()
                .map(|(j, m)| m * kernel[i.abs_diff(j)])
                .sum();
            (low + i as f64 * step, smoothed * scale)
        })
        .collect()
}

/// 0.9·min(sd, IQR/1.34)·n^(−1/5); the sd alone where half of the draws are
/// tied and the IQR is zero.
fn silverman_bandwidth(sorted: &[f64], effective: f64) -> f64 {
    let spread = sd(sorted);
    let iqr = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.34;
    let spread = if iqr > 0.0 { spread.min(iqr) } else { spread };
    let all = sorted.len() as f64;
    let count = if effective >= 1.0 {
        effective.min(all)
    } else {
        all
    };
    0.9 * spread * count.powf(-0.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn density_of_a_uniform_grid_integrates_to_one() {
        let draws: Vec<f64> = (0..4000).map(|i| f64::from(i) / 4000.0).collect();
        let curve = density(&draws, 200, f64::NAN);
        let step = curve[1].0 - curve[0].0;
        let integral: f64 = curve.iter().map(|(_, y)| y * step).sum();
        assert!((integral - 1.0).abs() < 0.01, "{integral}");
        assert!((curve[100].1 - 1.0).abs() < 0.01, "{}", curve[100].1);
    }

    /// Of 4,000 draws that are worth 125, half as much detail as of 4,000.
    #[test]
    fn a_slow_chain_is_smoothed_as_the_few_draws_it_is_worth() {
        let draws: Vec<f64> = (0..4000).map(|i| f64::from(i) / 4000.0).collect();
        let wide = |effective| {
            let curve = density(&draws, 400, effective);
            curve.last().unwrap().0 - 1.0
        };
        assert!((wide(125.0) / wide(4000.0) - 2.0).abs() < 0.01);
        for all in [f64::NAN, 0.0, 1e9] {
            assert_eq!(wide(all), wide(4000.0));
        }
    }

    #[test]
    fn no_density_without_spread() {
        assert!(density(&[], 100, f64::NAN).is_empty());
        assert!(density(&[1.0; 50], 100, f64::NAN).is_empty());
        assert!(density(&[f64::NAN, 1.0, f64::INFINITY], 100, f64::NAN).is_empty());
        assert!(density(&[1.0, 2.0], 1, f64::NAN).is_empty());
        assert!(density(&[-1e308, 1e308, 0.0, 1.0], 100, f64::NAN).is_empty());
    }

    #[test]
    fn ties_and_far_draws_leave_a_finite_curve() {
        let mut draws = vec![0.0; 900];
        draws.extend((0..100).map(|i| f64::from(i).exp()));
        let curve = density(&draws, 100, f64::NAN);
        assert!(curve.iter().all(|(x, y)| x.is_finite() && y.is_finite()));
    }
}
