//! What an anchor needs of a network with one output: f and its gradient in θ, a bound on that,
//! and a row's own Gauss–Newton expansion (docs/proofs/anchors.md).

use super::NetworkShape;
use crate::model::Score;

impl NetworkShape {
    /// f(x; θ) of a network with one output; `slope` (d values) becomes ∇f.
    pub(crate) fn slope(self, theta: &[f64], row: &[f64], slope: &mut [f64]) -> f64 {
        let weights = self.layers(theta);
        let (first, rest) = slope.split_at_mut(self.features * self.hidden);
        let (first_bias, rest) = rest.split_at_mut(self.hidden);
        let (second, second_bias) = rest.split_at_mut(self.hidden);
        let mut output = weights.second_bias[0];
        for h in 0..self.hidden {
            let range = h * self.features..(h + 1) * self.features;
            let by = &weights.first[range.clone()];
            let z: f64 = by.iter().zip(row).map(|(w, x)| w * x).sum();
            let a = (weights.first_bias[h] + z).tanh();
            let back = weights.second[h] * (1.0 - a * a);
            for (s, x) in first[range].iter_mut().zip(row) {
                *s = back * x;
            }
            first_bias[h] = back;
            second[h] = a;
            output += weights.second[h] * a;
        }
        second_bias[0] = 1.0;
        output
    }

    /// A true bound on ‖∇f‖ for rows of norm at most `row_norm`: `√((B² + 1)‖W₂‖² + H + 1)`.
    pub(crate) fn slope_norm(self, theta: &[f64], row_norm: f64) -> f64 {
        let second = self.layers(theta).second;
        let squares: f64 = second.iter().map(|w| w * w).sum();
        ((row_norm * row_norm + 1.0) * squares + self.hidden as f64 + 1.0).sqrt()
    }

    /// Change from θ to θ' of a row's own expansion at θ*, `s J·v − ½w(J·v)²` with v the distance
    /// from there; untempered nats, f64.
    pub(crate) fn expansion_change(
        self,
        (row, label): (&[f64], f64),
        at: &[f64],
        theta: &[f64],
        proposal: &[f64],
    ) -> f64 {
        let mut slope = vec![0.0; self.parameters()];
        let (score, weight) = Score::Logistic.slopes(self.slope(at, row, &mut slope), label);
        let along = |to: &[f64], from: &[f64]| -> f64 {
            let gaps = to.iter().zip(from).map(|(t, f)| t - f);
            slope.iter().zip(gaps).map(|(s, g)| s * g).sum()
        };
        let (offset, step) = (along(theta, at), along(proposal, theta));
        step * (score - weight * (offset + 0.5 * step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::LabelKind;
    use crate::model::{Anchor, Anchored, Metric, Mlp, Model, Prior};
    use std::sync::Arc;

    const SHAPE: NetworkShape = NetworkShape {
        features: 2,
        hidden: 3,
        outputs: 1,
    };

    fn model() -> Mlp {
        let names = ["a".to_string(), "b".to_string()];
        let prior = Prior::normal(SHAPE.parameters(), 2.0);
        Mlp::new(&names, 3, LabelKind::Binary, prior, 0.7).unwrap()
    }

    fn point(k: f64) -> Vec<f64> {
        (0..SHAPE.parameters())
            .map(|j| (1.3 * j as f64 + k).sin())
            .collect()
    }

    /// f by the log odds of the head, its gradient by central differences, and the bound: never
    /// passed, and met by a row that opens every unit.
    #[test]
    fn slopes_are_the_outputs_gradient() {
        let model = model();
        let output = |t: &[f64], row: &[f64]| {
            let p = SHAPE.probabilities(t, row)[0];
            (p / (1.0 - p)).ln()
        };
        let mut slope = vec![0.0; SHAPE.parameters()];
        for k in 0..20 {
            let (theta, turn) = (point(f64::from(k)), f64::from(k) * 0.7);
            let row = [1.5 * turn.cos(), 1.5 * turn.sin()];
            let f = SHAPE.slope(&theta, &row, &mut slope);
            assert!((f - output(&theta, &row)).abs() < 1e-12);
            for j in 0..theta.len() {
                let at = |h: f64| {
                    let mut t = theta.clone();
                    t[j] += h;
                    output(&t, &row)
                };
                let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((slope[j] - difference).abs() < 1e-8, "{k} {j}");
            }
            let norm = slope.iter().map(|s| s * s).sum::<f64>().sqrt();
            assert!(norm <= SHAPE.slope_norm(&theta, 1.5));
        }
        assert_eq!(model.dim(), slope.len());
        // Hidden units at tanh = 0, the rest of the bound is H: (B² + 1)‖W₂‖² + 1 is met.
        let mut theta = vec![0.0; SHAPE.parameters()];
        theta[9..12].fill(2.0);
        SHAPE.slope(&theta, &[1.5, 0.0], &mut slope);
        let squares: f64 = slope.iter().map(|s| s * s).sum();
        assert!((SHAPE.slope_norm(&theta, 1.5).powi(2) - squares - 3.0).abs() < 1e-12);
    }

    /// Near θ* a row's remainder is `κ s ½ (v'ᵀHv' − vᵀHv)`, H = ∇²f by differences of its
    /// gradient: second order, with this sign and size.
    #[test]
    fn the_remainder_is_the_score_times_the_networks_bend() {
        let (model, at) = (Arc::new(model()), point(0.4));
        let d = at.len();
        let anchor = Anchor {
            at: at.clone(),
            metric: Metric::identity(d, 9.0),
            gradient: vec![0.0; d],
            curvature: vec![0.0; d * d],
            gradient_sd: 0.0,
            curvature_sd: 0.0,
            centre: vec![0.0; d],
            radius: 100.0,
            spread: Vec::new(),
            doubts: Default::default(),
            alone: None,
        };
        let anchored = Anchored::new(model, anchor).unwrap();
        let (row, h) = ([0.8, -0.6], 1e-4);
        let mut slope = vec![0.0; d];
        let f = SHAPE.slope(&at, &row, &mut slope);
        for label in [1.0, -1.0] {
            let score = Score::Logistic.slopes(f, label).0;
            for k in [1.0, 2.0, 3.0] {
                let (v, end) = (point(k), point(k + 9.0));
                let place =
                    |v: &[f64]| -> Vec<f64> { at.iter().zip(v).map(|(a, v)| a + h * v).collect() };
                let bend = |v: &[f64]| -> f64 {
                    let (mut up, mut down) = (vec![0.0; d], vec![0.0; d]);
                    SHAPE.slope(&place(v), &row, &mut up);
                    let back: Vec<f64> = v.iter().map(|v| -v).collect();
                    SHAPE.slope(&place(&back), &row, &mut down);
                    let gaps = up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * h));
                    gaps.zip(v).map(|(g, v)| g * v).sum()
                };
                let leading = 0.7 * score * 0.5 * h * h * (bend(&end) - bend(&v));
                let r = anchored.log_ratio(&row, label, &place(&v), &place(&end));
                assert!(
                    (r - leading).abs() < 3e-3 * leading.abs() + 1e-11,
                    "{label} {k}: {r} against {leading}"
                );
                assert!(leading.abs() > 1e-10);
            }
        }
    }
}
