//! Natural cubic splines on [−1, 1] with public knots, in a basis of B-splines.
//!
//! The cubic B-splines `B_0 … B_{n−1}` of the knots are at least 0 and add up to 1. A spline
//! `Σ c_i B_i` has no second derivative at −1 where `c_1` lies on the line through `c_0` and
//! `c_2` over their Greville points `ξ_i` (means of three knots), and likewise at 1. Put in,
//! `c_1 = (1−w) c_0 + w c_2` leaves the columns `B_0 + (1−w) B_1` and `B_2 + w B_1`: still at
//! least 0, still adding up to 1, so the sum of their squares is at most 1, and it is 1 at ±1.
//! The first column is left out, for an intercept is the sum of all.

/// Degree of the pieces.
const DEGREE: usize = 3;

/// The columns of a natural cubic spline.
#[derive(Clone, Debug)]
pub(crate) struct Spline {
    /// Knots in order, −1 and 1 four times each.
    knots: Vec<f64>,
    /// What the second B-spline from either end gives its inner neighbour, `w`.
    shares: [f64; 2],
}

impl Spline {
    /// A spline with these knots inside (−1, 1): one or more, in increasing order.
    pub(crate) fn new(inner: &[f64]) -> Self {
        let ends = DEGREE + 1;
        let mut knots = vec![-1.0; ends];
        knots.extend(inner);
        knots.resize(knots.len() + ends, 1.0);
        let greville = |i: usize| knots[i + 1..=i + DEGREE].iter().sum::<f64>() / DEGREE as f64;
        let share = |from: usize, middle: usize, to: usize| {
            (greville(middle) - greville(from)) / (greville(to) - greville(from))
        };
        let last = inner.len() + DEGREE;
        let shares = [share(0, 1, 2), share(last, last - 1, last - 2)];
        Spline { knots, shares }
    }

    /// The columns at `u` in [−1, 1], one more than there are knots inside.
    pub(crate) fn values(&self, u: f64) -> Vec<f64> {
        let mut b = self.b_splines(u);
        let last = b.len() - 1;
        let [low, high] = self.shares;
        // In this order also where one inner knot makes `B_2` the neighbour of both.
        let (second, before_last) = (b[1], b[last - 1]);
        b[2] += low * second;
        b[last - 2] += high * before_last;
        b[last] += (1.0 - high) * before_last;
        b.remove(last - 1);
        b.drain(..2);
        b
    }

    /// All B-splines at `u`, by the recursion of Cox and de Boor.
    fn b_splines(&self, u: f64) -> Vec<f64> {
        let t = &self.knots;
        let count = t.len() - DEGREE - 1;
        // The piece of `u`; the last one holds 1.
        let piece = t[..count].partition_point(|&k| k <= u).max(DEGREE + 1) - 1;
        let mut local = [1.0, 0.0, 0.0, 0.0];
        for degree in 1..=DEGREE {
            let mut saved = 0.0;
            for r in 0..degree {
                let (left, right) = (t[piece + 1 + r - degree], t[piece + 1 + r]);
                let share = (u - left) / (right - left);
                let value = local[r];
                local[r] = saved + (1.0 - share) * value;
                saved = share * value;
            }
            local[degree] = saved;
        }
        let mut all = vec![0.0; count];
        all[piece - DEGREE..=piece].copy_from_slice(&local);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOTS: [&[f64]; 4] = [
        &[0.0],
        &[-0.7],
        &[-0.5, 0.1, 0.6],
        &[-0.99, -0.98, 0.0, 0.9],
    ];

    fn grid() -> impl Iterator<Item = f64> {
        (0..=400).map(|i| f64::from(i) / 200.0 - 1.0)
    }

    /// Coefficients of `target` in `basis`, from its values at the knots and ends.
    fn solve(
        inner: &[f64],
        basis: impl Fn(f64) -> Vec<f64>,
        target: impl Fn(f64) -> f64,
    ) -> Vec<f64> {
        let n = inner.len() + 2;
        let at = |i: usize| [&[-1.0], inner, &[1.0]].concat()[i];
        let mut rows: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                let mut row = basis(at(i));
                row.push(target(at(i)));
                row
            })
            .collect();
        for k in 0..n {
            let best = (k..n).max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs()));
            rows.swap(k, best.unwrap());
            let pivot = rows[k].clone();
            for row in rows.iter_mut().skip(k + 1) {
                let f = row[k] / pivot[k];
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= f * p);
            }
        }
        let mut c = vec![0.0; n];
        for k in (0..n).rev() {
            let rest: f64 = (k + 1..n).map(|j| rows[k][j] * c[j]).sum();
            c[k] = (rows[k][n] - rest) / rows[k][k];
        }
        c
    }

    /// Harrell's restricted cubic splines: truncated powers, linear beyond the end knots.
    fn restricted(inner: &[f64], x: f64) -> Vec<f64> {
        let mut t = vec![-1.0];
        t.extend(inner);
        t.push(1.0);
        let k = t.len();
        let cube = |v: f64| v.max(0.0).powi(3);
        let mut basis = vec![1.0, x];
        for j in 0..k - 2 {
            let (a, b) = (t[k - 1] - t[j], t[k - 1] - t[k - 2]);
            let c = t[k - 2] - t[j];
            basis.push(cube(x - t[j]) - cube(x - t[k - 2]) * a / b + cube(x - t[k - 1]) * c / b);
        }
        basis
    }

    #[test]
    fn columns_are_those_of_an_independent_construction() {
        for inner in KNOTS {
            let spline = Spline::new(inner);
            assert_eq!(spline.values(0.3).len(), inner.len() + 1);
            for j in 0..=inner.len() {
                let c = solve(inner, |x| restricted(inner, x), |x| spline.values(x)[j]);
                for x in grid() {
                    let other: f64 = restricted(inner, x)
                        .iter()
                        .zip(&c)
                        .map(|(b, c)| b * c)
                        .sum();
                    let here = spline.values(x)[j];
                    assert!(
                        (other - here).abs() < 1e-6,
                        "{inner:?} {j} {x}: {other} {here}"
                    );
                }
            }
        }
    }

    #[test]
    fn linear_functions_are_reproduced() {
        for inner in KNOTS {
            let spline = Spline::new(inner);
            let with_one = |x: f64| [vec![1.0], spline.values(x)].concat();
            let c = solve(inner, with_one, |x| 3.0 - 2.0 * x);
            for x in grid() {
                let value: f64 = with_one(x).iter().zip(&c).map(|(b, c)| b * c).sum();
                assert!(
                    (value - 3.0 + 2.0 * x).abs() < 1e-9,
                    "{inner:?} {x}: {value}"
                );
            }
        }
    }

    #[test]
    fn the_ends_are_natural() {
        for inner in KNOTS {
            let spline = Spline::new(inner);
            let h = 1e-4;
            for j in 0..=inner.len() {
                for (end, inward) in [(-1.0, h), (1.0, -h)] {
                    let at = |k: f64| spline.values(end + k * inward)[j];
                    // Exact for cubics: f''(0) from four points.
                    let second =
                        (2.0 * at(0.0) - 5.0 * at(1.0) + 4.0 * at(2.0) - at(3.0)) / (h * h);
                    assert!(second.abs() < 1e-5, "{inner:?} {j} at {end}: {second}");
                }
            }
            assert_eq!(spline.values(-1.0), vec![0.0; inner.len() + 1]);
            assert_eq!(spline.values(1.0).last(), Some(&1.0));
        }
    }

    #[test]
    fn columns_are_shares_of_one() {
        for inner in KNOTS {
            let spline = Spline::new(inner);
            for x in grid() {
                let values = spline.values(x);
                assert!(
                    values.iter().all(|v| (0.0..=1.0).contains(v)),
                    "{x}: {values:?}"
                );
                assert!(values.iter().sum::<f64>() <= 1.0 + 1e-14, "{x}: {values:?}");
            }
        }
    }
}
