//! Gauss–Legendre quadrature over panels.

use std::sync::OnceLock;

const POINTS: usize = 16;

/// Nodes and weights on [−1, 1], by Newton's iteration on the Legendre polynomial.
fn rule() -> &'static [(f64, f64); POINTS] {
    static RULE: OnceLock<[(f64, f64); POINTS]> = OnceLock::new();
    RULE.get_or_init(|| {
        let n = POINTS as f64;
        std::array::from_fn(|i| {
            let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..100 {
                let (mut p0, mut p1) = (1.0, x);
                for k in 2..=POINTS {
                    let k = k as f64;
                    (p0, p1) = (p1, ((2.0 * k - 1.0) * x * p1 - (k - 1.0) * p0) / k);
                }
                slope = n * (x * p1 - p0) / (x * x - 1.0);
                let step = p1 / slope;
                x -= step;
                if step.abs() < 1e-16 {
                    break;
                }
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        })
    })
}

/// `∫ f` over [low, high], cut into panels of at most `panel`.
pub(super) fn integrate(low: f64, high: f64, panel: f64, f: impl Fn(f64) -> f64) -> f64 {
    if high <= low {
        return 0.0;
    }
    let panels = ((high - low) / panel).ceil().max(1.0);
    let half = 0.5 * (high - low) / panels;
    (0..panels as usize)
        .map(|k| {
            let centre = low + half * (2.0 * k as f64 + 1.0);
            half * rule()
                .iter()
                .map(|(x, w)| w * f(centre + half * x))
                .sum::<f64>()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrates_a_bell() {
        let sum = integrate(-9.0, 9.0, 1.0, |x| (-0.5 * x * x).exp());
        assert!((sum - (2.0 * std::f64::consts::PI).sqrt()).abs() < 1e-14);
    }
}
