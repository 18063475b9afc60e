//! Adam (Kingma & Ba 2015, algorithm 1), ascending.

use serde::{Deserialize, Serialize};

/// Weight of the past in the mean of gradients.
const FIRST_DECAY: f64 = 0.9;

/// First and second moments of a gradient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Adam {
    first: Vec<f64>,
    second: Vec<f64>,
    count: i32,
}

impl Adam {
    pub(super) fn new(d: usize) -> Self {
        Adam {
            first: vec![0.0; d],
            second: vec![0.0; d],
            count: 0,
        }
    }

    /// Whether it is one of d coordinates, all of them numbers.
    pub(super) fn fits(&self, d: usize) -> bool {
        let square = |v: &f64| *v >= 0.0 && v.is_finite();
        self.first.len() == d
            && self.second.len() == d
            && self.first.iter().all(|v| v.is_finite())
            && self.second.iter().all(square)
            && self.count >= 0
    }

    /// The step of each of d coordinates, in units of the learning rate; `decay`: weight of the
    /// past in the mean of squares. A gradient that is not finite teaches nothing and moves
    /// nothing.
    pub(super) fn step(&mut self, gradient: &[f64], decay: f64) -> Vec<f64> {
        if !gradient.iter().all(|g| (g * g).is_finite()) {
            return vec![0.0; gradient.len()];
        }
        self.count = self.count.saturating_add(1);
        let corrections = [FIRST_DECAY, decay].map(|b| 1.0 - b.powi(self.count));
        let moments = self.first.iter_mut().zip(&mut self.second);
        moments
            .zip(gradient)
            .map(|((m, v), g)| {
                *m = FIRST_DECAY * *m + (1.0 - FIRST_DECAY) * g;
                *v = decay * *v + (1.0 - decay) * g * g;
                let root = (*v / corrections[1]).sqrt();
                // A flat direction has 0/0; the usual 1e-8 would fix a scale.
                if root > 0.0 {
                    *m / corrections[0] / root
                } else {
                    0.0
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps by hand; no scale; nothing learned from what is not a number.
    #[test]
    fn steps_are_adams() {
        let mut adam = Adam::new(2);
        assert_eq!(adam.step(&[3.0, 0.0], 0.99), [1.0, 0.0]);
        assert_eq!(adam.step(&[f64::NAN, 1.0], 0.99), [0.0, 0.0]);
        let m = 0.9 * 0.3 - 0.1;
        let v: f64 = 0.99 * 0.09 + 0.01;
        let expected = m / (1.0 - 0.81) / (v / (1.0 - 0.99 * 0.99)).sqrt();
        assert!((adam.step(&[-1.0, 0.0], 0.99)[0] - expected).abs() < 1e-12);
        let mut scaled = Adam::new(2);
        scaled.step(&[3e100, 0.0], 0.99);
        assert!((scaled.step(&[-1e100, 0.0], 0.99)[0] - expected).abs() < 1e-12);
    }
}
