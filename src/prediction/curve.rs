//! A function of one number that takes long, tabulated for many.

/// Pieces to begin with.
const COARSE: usize = 8;
/// A parabola stands for the function between its ends where it says what that is at a quarter and
/// at three quarters of the way, up to this part of the range of all values.
const CLOSE: f64 = 2e-5;

/// Parabolas between knots.
pub(super) struct Curve {
    pieces: Vec<Piece>,
}

/// What the function says at both ends of a part of its range and in the middle.
#[derive(Clone, Copy)]
struct Piece {
    low: f64,
    width: f64,
    values: [f64; 3],
}

impl Piece {
    fn at(&self, x: f64) -> f64 {
        let t = match self.width > 0.0 {
            true => (x - self.low) / self.width,
            false => 0.0,
        };
        let [a, b, c] = self.values;
        a + t * (4.0 * b - 3.0 * a - c + 2.0 * t * (a + c - 2.0 * b))
    }

    /// Its halves, and how far it is off in their middles.
    fn halved(&self, value: impl Fn(f64) -> f64) -> ([Piece; 2], f64) {
        let [a, b, c] = self.values;
        let half = 0.5 * self.width;
        let [p, q] = [0.25, 0.75].map(|t| value(self.low + t * self.width));
        let off =
            [(0.25, p), (0.75, q)].map(|(t, v)| (self.at(self.low + t * self.width) - v).abs());
        let halves = [(self.low, [a, p, b]), (self.low + half, [b, q, c])];
        let halves = halves.map(|(low, values)| Piece {
            low,
            width: half,
            values,
        });
        let finite = p.is_finite() && q.is_finite();
        (
            halves,
            if finite {
                off[0].max(off[1])
            } else {
                f64::INFINITY
            },
        )
    }
}

impl Curve {
    /// Of `value` on [low, high], by at most about `most` calls; `None` where these are not enough,
    /// or where it says no number.
    pub fn new(low: f64, high: f64, most: usize, value: impl Fn(f64) -> f64) -> Option<Self> {
        let step = (high - low) / (2 * COARSE) as f64;
        let values: Vec<f64> = (0..=2 * COARSE)
            .map(|k| value(low + k as f64 * step))
            .collect();
        let piece = |k: usize| Piece {
            low: low + 2.0 * k as f64 * step,
            width: 2.0 * step,
            values: [values[2 * k], values[2 * k + 1], values[2 * k + 2]],
        };
        let (mut open, mut pieces) = ((0..COARSE).map(piece).collect::<Vec<_>>(), Vec::new());
        let (mut least, mut largest) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut calls = values.len();
        while !open.is_empty() {
            let values = open.iter().flat_map(|piece| piece.values);
            if calls + 2 * open.len() > most || values.clone().any(|v| !v.is_finite()) {
                return None;
            }
            for v in values {
                (least, largest) = (least.min(v), largest.max(v));
            }
            calls += 2 * open.len();
            for piece in std::mem::take(&mut open) {
                let (halves, off) = piece.halved(&value);
                match off <= CLOSE * (largest - least) {
                    // Each is closer yet, by about eight.
                    true => pieces.extend(halves),
                    false => open.extend(halves),
                }
            }
        }
        pieces.sort_by(|a, b| a.low.total_cmp(&b.low));
        Some(Curve { pieces })
    }

    /// At a number between its ends.
    pub fn at(&self, x: f64) -> f64 {
        let above = self.pieces.partition_point(|piece| piece.low <= x);
        self.pieces[above.saturating_sub(1)].at(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A rise, one that is steep and symmetric about the middle of a piece, a bend in one point,
    /// and a line.
    #[test]
    fn parabolas_lie_close_to_what_they_stand_for() {
        let rise = |x: f64| 30.0 / (1.0 + (-x).exp());
        let steep = |x: f64| (40.0 * (x + 7.0 - 4.5 * 1.5)).tanh();
        let bend = |x: f64| (x - 0.3).max(0.0);
        let line = |x: f64| 2.0 * x - 1.0;
        let functions: [&dyn Fn(f64) -> f64; 4] = [&rise, &steep, &bend, &line];
        for value in functions {
            let calls = Cell::new(0);
            let counted = |x: f64| {
                calls.set(calls.get() + 1);
                value(x)
            };
            let curve = Curve::new(-7.0, 5.0, 2000, counted).expect("it is continuous");
            assert!(calls.get() < 300, "{}", calls.get());
            let range = value(5.0) - value(-7.0);
            for k in 0..=999 {
                let x = -7.0 + 12.0 * f64::from(k) / 999.0;
                let off = (curve.at(x) - value(x)).abs() / range;
                assert!(off < CLOSE, "{x}: {off}");
            }
        }
    }

    #[test]
    fn one_point_is_a_curve_and_a_jump_is_none() {
        let curve = Curve::new(2.0, 2.0, 100, |x| x * x).expect("a number");
        assert_eq!(curve.at(2.0), 4.0);
        assert!(Curve::new(-1.0, 1.0, 90, |x| f64::from(x > 0.01)).is_none());
        assert!(Curve::new(-1.0, 1.0, 90, f64::sqrt).is_none());
        // A hole where the first pieces are looked at for the second time.
        let hole = |x: f64| {
            if (x + 15.0 / 16.0).abs() < 0.01 {
                f64::NAN
            } else {
                x
            }
        };
        assert!(Curve::new(-1.0, 1.0, 90, hole).is_none());
    }
}
