//! The logistic law's `log(1 + e^a)` in f64.

/// `log(1 + e^a)`.
pub fn softplus(a: f64) -> f64 {
    a.max(0.0) + (-a.abs()).exp().ln_1p()
}

/// `softplus(a+δ) − softplus(a)` without cancellation, f64.
///
/// Twin of the f32 form in `single.rs` and of `shaders/softplus.wgsl`.
pub fn softplus_difference(a: f64, delta: f64) -> f64 {
    let low = a.min(a + delta);
    let size = delta.abs();
    let value = if size > 700.0 {
        // The exponential overflows; the two ends are too far apart to cancel.
        softplus(low + size) - softplus(low)
    } else {
        (size.exp_m1() / (1.0 + (-low).exp())).ln_1p()
    };
    value.copysign(delta)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softplus_difference_matches_the_plain_form() {
        for a in [-40.0, -3.0, -0.1, 0.0, 0.7, 5.0, 60.0] {
            for d in [-900.0, -30.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 20.0, 900.0] {
                let plain = softplus(a + d) - softplus(a);
                let ours = softplus_difference(a, d);
                assert!(
                    (plain - ours).abs() < 1e-12 * (1.0 + plain.abs()),
                    "{a} {d}"
                );
            }
        }
    }
}
