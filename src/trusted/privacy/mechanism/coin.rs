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
pub(in crate::trusted::privacy) const LOGIT_ERROR: f64 = 1.0 / (1u64 << 38) as f64;

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
    accepts(rng.bits128(), logit)
}

/// The coin's outcome for a 128-bit uniform: the unlikelier side takes the lowest ones.
fn accepts(uniform: u128, logit: i128) -> bool {
    let z = logit.clamp(-CLAMP, CLAMP);
    let unlikely = uniform < threshold(z);
    unlikely != (z > 0)
}

/// σ(−|z|)·2^128 for a clamped logit.
fn threshold(z: i128) -> u128 {
    let size = z.unsigned_abs() as f64 * f64::powi(2.0, -LOGIT_BITS);
    let tail = (-size).exp();
    let smaller = tail / (1.0 + tail);
    // 0.5·2^128 and below: the conversion is exact.
    (smaller * f64::powi(2.0, 128)) as u128
}

#[cfg(test)]
mod tests {
    use super::super::bernoulli_exp::exp_negative;
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

    /// The unlikely side at ±12, expected 123 times: within 6.5 standard errors, which a
    /// Poisson count of that mean leaves with probability under 1e-8.
    #[test]
    fn the_tail_has_its_frequency() {
        let mut rng = SecretRng::from_seed(6, 0);
        for z in [-12.0f64, 12.0] {
            let n = 20_000_000;
            let logit = fixed_point_f64(z);
            let rare = (0..n)
                .filter(|_| barker_coin(&mut rng, logit) != (z > 0.0))
                .count();
            let expected = f64::from(n) / (1.0 + 12f64.exp());
            assert!(
                (rare as f64 - expected).abs() < 6.5 * expected.sqrt(),
                "z = {z}: {rare} against {expected}"
            );
        }
    }

    /// Further out no number of draws is enough: the uniforms of the unlikely side are
    /// counted instead. They are those under the threshold, which is the exact probability
    /// to 2^-44; beyond the clamp it is that of ±40, and never zero.
    #[test]
    fn the_far_tail_is_exact_and_never_empty() {
        for z in [12u32, 20, 36, 37, 39, 40, 41, 1000] {
            let (e, _) = exp_negative(&z.min(40).into(), &1u32.into(), 192);
            let exact = (&e << 128u32) / ((num_bigint::BigUint::from(1u32) << 192u32) + &e);
            for logit in [i128::from(z), -i128::from(z)].map(|z| z << LOGIT_BITS) {
                let t = threshold(logit.clamp(-CLAMP, CLAMP));
                let error = if exact > t.into() {
                    &exact - t
                } else {
                    t - &exact
                };
                assert!((error << 44u32) <= exact, "z = {z}");
                let unlikely = logit < 0;
                for (uniform, outcome) in [
                    (0, unlikely),
                    (t - 1, unlikely),
                    (t, !unlikely),
                    (u128::MAX, !unlikely),
                ] {
                    assert_eq!(accepts(uniform, logit), outcome, "{uniform} at {logit}");
                }
            }
        }
        for logit in [i128::MIN, i128::MAX] {
            assert_ne!(accepts(0, logit), accepts(u128::MAX, logit));
        }
    }

    /// For logits η apart, both outcomes have probabilities within e^(η + error), where it
    /// matters most: far out, across zero and across the clamp.
    #[test]
    fn both_outcomes_are_within_eta() {
        let accepted = |logit: i128| {
            let z = logit.clamp(-CLAMP, CLAMP);
            let t = threshold(z) as f64;
            if z > 0 { f64::powi(2.0, 128) - t } else { t }
        };
        let nats = |v: f64| fixed_point_f64(v);
        for eta in [1e-6, 0.01, 0.5, 1.0, 5.0] {
            for i in -900..=900 {
                let z = nats(0.05 * f64::from(i));
                let (low, high) = (accepted(z), accepted(z + nats(eta)));
                // P(reject at z) is P(accept at −z), to the bit.
                let (more, less) = (accepted(-z), accepted(-z - nats(eta)));
                for loss in [(high / low).ln(), (more / less).ln()] {
                    assert!(
                        (-LOGIT_ERROR..=eta + LOGIT_ERROR).contains(&loss),
                        "{z} {eta}"
                    );
                }
            }
        }
    }
}
