//! Mean, standard deviation and quantiles of a sample.

/// Arithmetic mean; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation with divisor n − 1; NaN for fewer than two values.
pub fn sd(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|x| (x - centre).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

/// The p-quantile of values in ascending order by linear interpolation between
/// order statistics (type 7 of Hyndman and Fan 1996, "Sample quantiles in
/// statistical packages"; the default of R and NumPy). NaN for no values or a
/// `p` outside [0, 1].
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let position = (sorted.len() - 1) as f64 * p;
    let lower = sorted[position.floor() as usize];
    let upper = sorted[position.ceil() as usize];
    if lower == upper {
        // Exact among ties, infinite ones included: callers compare draws
        // with it.
        return lower;
    }
    lower + position.fract() * (upper - lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_sd() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), 5.0);
        assert!((sd(&values) - (32.0_f64 / 7.0).sqrt()).abs() < 1e-15);
        assert!(mean(&[]).is_nan());
        assert!(sd(&[1.0]).is_nan());
    }

    #[test]
    fn quantile_is_type_7() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(quantile(&sorted, 0.0), 1.0);
        assert_eq!(quantile(&sorted, 1.0), 8.0);
        assert_eq!(quantile(&sorted, 0.5), 3.0);
        // numpy.quantile([1, 2, 4, 8], 0.9) == 6.8
        assert!((quantile(&sorted, 0.9) - 6.8).abs() < 1e-14);
        assert!(quantile(&[], 0.5).is_nan());
        assert!(quantile(&sorted, f64::NAN).is_nan());
        assert!(quantile(&sorted, 1.5).is_nan());
    }
}
