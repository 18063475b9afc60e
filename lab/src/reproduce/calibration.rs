//! How far class probabilities can be trusted.

/// Bins of the calibration error.
const BINS: usize = 15;

/// Scores of N × K class probabilities, row-major, on as many labels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Calibration {
    /// Share of labels that have the largest probability.
    pub accuracy: f64,
    /// Mean negative logarithm of the labels' probabilities, nats.
    pub log_loss: f64,
    /// Mean squared distance from the label's unit vector (Brier 1950), 0 to 2.
    pub brier: f64,
    /// Expected calibration error (Guo 2017, equation 3): the mean distance of confidence from
    /// accuracy over 15 bins of the largest probability.
    pub error: f64,
}

impl Calibration {
    pub fn of(probabilities: &[f64], classes: usize, labels: &[usize]) -> Self {
        let mut sums = [[0.0f64; 3]; BINS];
        let mut brier = 0.0;
        for (p, &label) in probabilities.chunks_exact(classes).zip(labels) {
            let best = (1..classes).fold(0, |b, k| if p[k] > p[b] { k } else { b });
            let bin = ((p[best] * BINS as f64) as usize).min(BINS - 1);
            let [count, confidence, hits] = &mut sums[bin];
            *count += 1.0;
            *confidence += p[best];
            *hits += f64::from(u8::from(best == label));
            let hit = |k: usize| f64::from(u8::from(k == label));
            brier += (0..classes).map(|k| (p[k] - hit(k)).powi(2)).sum::<f64>();
        }
        let n = labels.len() as f64;
        Calibration {
            accuracy: sums.iter().map(|s| s[2]).sum::<f64>() / n,
            log_loss: dpmc::diagnostics::class_log_loss(probabilities, classes, labels),
            brier: brier / n,
            error: sums.iter().map(|s| (s[1] - s[2]).abs()).sum::<f64>() / n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four rows by hand: two of them 0.8 sure, of which one is right, two 0.6 sure and right.
    #[test]
    fn scores_by_hand() {
        let p = [0.8, 0.2, 0.2, 0.8, 0.6, 0.4, 0.4, 0.6];
        let scores = Calibration::of(&p, 2, &[0, 0, 0, 1]);
        assert_eq!(scores.accuracy, 0.75);
        let brier = 2.0 * (0.04 + 0.64 + 0.16 + 0.16) / 4.0;
        assert!((scores.brier - brier).abs() < 1e-12);
        let loss = -(0.8f64 * 0.2 * 0.6 * 0.6).ln() / 4.0;
        assert!((scores.log_loss - loss).abs() < 1e-12);
        // 0.8 against a half, 0.6 against one, each of half of the rows.
        assert!((scores.error - (0.3 + 0.4) / 2.0).abs() < 1e-12);
    }
}
