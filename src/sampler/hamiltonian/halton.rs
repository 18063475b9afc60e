//! Step-size jitter: the randomised Halton sequence in base 2 (van der Corput 1935; Cranley &
//! Patterson 1976), which spreads over its range faster than independent uniforms.

/// Element `index` of the sequence in base 2, shifted by `shift` ∈ [0, 1): in [0, 1).
pub(super) fn shifted_halton(index: u64, shift: f64) -> f64 {
    // The bits mirrored at the point; the upper 53 of them, so that 1 is never reached.
    let mirrored = (index.reverse_bits() >> 11) as f64 * f64::powi(2.0, -53);
    (mirrored + shift).fract()
}

/// The jitter of a step size: `low + (high − low)u`, so that trajectories of one length cannot
/// fall in step with a period of the target.
pub(super) fn jitter([low, high]: [f64; 2], index: u64, shift: f64) -> f64 {
    low + (high - low) * shifted_halton(index, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_is_van_der_corputs_and_fills_the_interval_evenly() {
        let first: Vec<f64> = (1..8).map(|i| shifted_halton(i, 0.0)).collect();
        assert_eq!(first, [0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875]);
        assert!((shifted_halton(3, 0.5) - 0.25).abs() < 1e-15);
        // Any 2^k in a row hit every interval of length 2^-k once, whatever the shift.
        let mut hits = [0; 64];
        for i in 1000..1064 {
            hits[(64.0 * shifted_halton(i, 0.25)) as usize] += 1;
        }
        assert_eq!(hits, [1; 64]);
        assert!((0..1000).all(|i| (0.9..1.1).contains(&jitter([0.9, 1.1], i, 0.37))));
        let mean = (0..1024).map(|i| jitter([0.0, 1.0], i, 0.37)).sum::<f64>() / 1024.0;
        assert!((mean - 0.5).abs() < 1e-3, "{mean}");
        assert!(shifted_halton(u64::MAX, 1.0 - f64::EPSILON / 2.0) < 1.0);
    }
}
