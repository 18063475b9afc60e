//! Logarithms of factorials.

/// `log n!` of a whole number: the sum, or Stirling's series, whose error at 64 is under 1e-15.
pub fn log_factorial(n: f64) -> f64 {
    if n < 64.0 {
        return (2..=n as u64).map(|k| (k as f64).ln()).sum();
    }
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + series
}
