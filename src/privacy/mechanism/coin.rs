//! Barker's coin: accept with probability σ(z), right for **both** outcomes far into
//! the tails, and the exact fixed-point logit it is given.

use super::secret_rng::SecretRng;

/// Fraction bits of a fixed-point logit.
pub(super) const LOGIT_BITS: i32 = 60;
/// |z| is clamped here: a contraction, and σ(−40) = 4e-18.
const CLAMP: i128 = 40 << LOGIT_BITS;
/// What the implementation adds to the bounded range η, nats. The two sides of the
/// coin are right to 2^-45 relative (f64 exp, one addition, one division, 2^-128 over
/// σ(−40) > 2^-58), which moves a logit by under 2^-44; rounding sums and weights to
/// 2^-60 moves it by far less. Two data sets: twice that; 2^-38 leaves a factor 32.
pub(in crate::privacy) const LOGIT_ERROR: f64 = 1.0 / (1u64 << 38) as f64;

/// `steps · 2^exponent` nats in fixed point, rounded to nearest (odd), saturating.
pub(super) fn fixed_point(steps: i64, exponent: i32) -> i128 {
    let shift = exponent + LOGIT_BITS;
    let size = i128::from(steps).abs();
    let value = if shift >= 0 {
        let limit = i128::MAX >> (shift + 3).min(126);
        if size > limit {
            i128::MAX >> 3
        } else {
            size << shift
        }
    } else {
        let down = (-shift) as u32;
        if down >= 126 {
            0
        } else {
            (size + (1i128 << (down - 1))) >> down
        }
    };
    if steps < 0 { -value } else { value }
}

/// A public f64 in nats in fixed point, saturating (an odd function).
pub(super) fn fixed_point_f64(nats: f64) -> i128 {
    let scaled = (nats * f64::powi(2.0, LOGIT_BITS)).round() as i128;
    scaled.clamp(-(i128::MAX >> 3), i128::MAX >> 3)
}

/// True with probability σ(z), z a fixed-point logit.
pub(super) fn barker_coin(rng: &mut SecretRng, logit: i128) -> bool {
    let z = logit.clamp(-CLAMP, CLAMP);
    let size = z.unsigned_abs() as f64 * f64::powi(2.0, -LOGIT_BITS);
    let tail = (-size).exp();
    let smaller = tail / (1.0 + tail);
    // 0.5·2^128 and below: the conversion is exact.
    let threshold = (smaller * f64::powi(2.0, 128)) as u128;
    let unlikely = rng.bits128() < threshold;
    unlikely != (z > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_is_exact_and_odd() {
        assert_eq!(fixed_point(3, -20), 3 << 40);
        assert_eq!(fixed_point(-3, -20), -(3 << 40));
        assert_eq!(fixed_point(1, -61), 1);
        assert_eq!(fixed_point(-1, -61), -1);
        assert_eq!(fixed_point(5, -200), 0);
        assert!(fixed_point(i64::MAX, 60) > 40 << LOGIT_BITS);
        assert_eq!(fixed_point(i64::MIN + 1, 60), -fixed_point(i64::MAX, 60));
        assert_eq!(fixed_point_f64(1.0), 1 << 60);
        assert_eq!(fixed_point_f64(-1e300), -fixed_point_f64(1e300));
    }

    /// Frequencies at moderate logits: within 6 standard errors (2e-9 each).
    #[test]
    fn the_coin_has_its_probability() {
        let mut rng = SecretRng::from_seed(5, 0);
        for z in [-4.0f64, -1.0, 0.0, 0.3, 2.0, 5.0] {
            let n = 400_000;
            let hits = (0..n)
                .filter(|_| barker_coin(&mut rng, fixed_point_f64(z)))
                .count();
            let p = 1.0 / (1.0 + (-z).exp());
            let sd = (p * (1.0 - p) * f64::from(n)).sqrt();
            assert!((hits as f64 - p * f64::from(n)).abs() < 6.0 * sd, "z = {z}");
        }
    }

    /// In the far tail the unlikely side keeps a positive probability: 1 − σ(40) in f64
    /// is zero, the threshold here is not.
    #[test]
    fn the_far_tail_is_not_zero() {
        let tail = (-40.0f64).exp();
        let threshold = (tail / (1.0 + tail) * f64::powi(2.0, 128)) as u128;
        assert!(threshold > 1 << 69);
    }
}
