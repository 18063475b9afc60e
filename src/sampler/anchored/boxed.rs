//! Moves inside a public box that cuts into an anchor's Gaussian, where independent draws of that
//! would nearly all land outside.

use nalgebra::{DMatrix, DVector};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, StandardNormal};

use crate::model::{Anchor, Lower, Prior, Support};

/// A box cuts in where its edge lies closer to the centre than so many sds.
const FREE_SDS: f64 = 4.5;
/// Sweeps forth and back a move: more of them forget the start better.
const SWEEPS: usize = 4;
/// Descents to the nearest place inside, at most; they end where one moves nothing by this share of
/// a bound.
const DESCENTS: usize = 1000;
const SETTLED: f64 = 1e-10;
/// Tries at one coordinate; nearly half of them are taken, or more.
const TRIES: usize = 1000;

/// Gibbs moves that leave an anchor's Gaussian, cut off at the box, invariant.
#[derive(Clone, Debug)]
pub(super) struct BoxedMoves {
    bounds: Vec<f64>,
    centre: Vec<f64>,
    /// d × d, in the parameters' own coordinates.
    precision: DMatrix<f64>,
}

impl BoxedMoves {
    /// Of the Gaussian with this centre and precision factor in the anchor's coordinates; `None`
    /// without a box, and where it is far from all that the Gaussian reaches.
    pub(super) fn new(
        anchor: &Anchor,
        prior: &Prior,
        precision: &Lower,
        centre: &[f64],
    ) -> Option<Self> {
        let Support::Box(bounds) = &prior.support else {
            return None;
        };
        let d = bounds.len();
        let root = anchor.metric.factor.compose(precision);
        let centre = anchor.theta(centre);
        let unit = |j: usize| (0..d).map(move |k| if k == j { 1.0 } else { 0.0 });
        let cuts = (0..d).any(|j| {
            // The variance is (RRᵀ)⁻¹_jj = |R⁻¹ e_j|².
            let mut column: Vec<f64> = unit(j).collect();
            root.solve(&mut column);
            let sd = column.iter().map(|v| v * v).sum::<f64>().sqrt();
            centre[j].abs() + FREE_SDS * sd > bounds[j]
        });
        let columns = (0..d).map(|j| {
            let row = root.transposed_times(&unit(j).collect::<Vec<f64>>());
            DVector::from_vec(root.times(&row))
        });
        let precision = DMatrix::from_columns(&columns.collect::<Vec<_>>());
        let usable = precision.iter().all(|v| v.is_finite());
        (cuts && usable).then(|| BoxedMoves {
            bounds: bounds.clone(),
            centre,
            precision,
        })
    }

    /// From `theta`, coordinate after coordinate forth and back: reversible, as it reads the same
    /// from its end.
    pub(super) fn step(&self, theta: &[f64], rng: &mut impl Rng) -> Vec<f64> {
        let d = self.bounds.len();
        let mut theta = theta.to_vec();
        let pairs = theta.iter().zip(&self.centre);
        let mut gap = DVector::from_iterator(d, pairs.map(|(t, c)| t - c));
        for _ in 0..SWEEPS {
            for j in (0..d).chain((0..d).rev()) {
                let own = self.precision[(j, j)];
                let others = self.precision.column(j).dot(&gap) - own * gap[j];
                let (mean, sd) = (self.centre[j] - others / own, own.sqrt().recip());
                let edges = [-self.bounds[j], self.bounds[j]].map(|edge| (edge - mean) / sd);
                let Some(z) = truncated(edges, rng) else {
                    continue;
                };
                theta[j] = (mean + sd * z).clamp(-self.bounds[j], self.bounds[j]);
                gap[j] = theta[j] - self.centre[j];
            }
        }
        theta
    }

    /// A place inside the box that has forgotten where the search for it began.
    pub(super) fn start(&self, rng: &mut impl Rng) -> Vec<f64> {
        let pairs = self.centre.iter().zip(&self.bounds);
        let mut theta: Vec<f64> = pairs.map(|(c, b)| c.clamp(-b, *b)).collect();
        for _ in 0..100 {
            theta = self.step(&theta, rng);
        }
        theta
    }
}

/// The place inside `|x_j| ≤ bounds_j` where the quadratic of this precision about `to` is highest,
/// coordinate after coordinate.
pub(super) fn nearest(to: &DVector<f64>, precision: &DMatrix<f64>, bounds: &[f64]) -> DVector<f64> {
    let d = bounds.len();
    let mut at = DVector::from_fn(d, |j, _| to[j].clamp(-bounds[j], bounds[j]));
    for _ in 0..DESCENTS {
        let mut moved = false;
        for j in 0..d {
            let pull = precision.column(j).dot(&(to - &at));
            let next = (at[j] + pull / precision[(j, j)]).clamp(-bounds[j], bounds[j]);
            moved |= (next - at[j]).abs() > SETTLED * bounds[j];
            at[j] = next;
        }
        if !moved {
            break;
        }
    }
    at
}

/// A standard normal number between two edges, by rejection (Robert 1995); `None` where the edges
/// are no numbers in order.
fn truncated([low, high]: [f64; 2], rng: &mut impl Rng) -> Option<f64> {
    let ordered = low < high && low < f64::INFINITY && high > f64::NEG_INFINITY;
    if !ordered {
        return None;
    }
    if high < 0.0 {
        return truncated([-high, -low], rng).map(|z| -z);
    }
    let near = low.max(0.0);
    let root = (near * near + 4.0).sqrt();
    // The rate of the exponential law that fits the tail best.
    let rate = 0.5 * (near + root);
    // Whether even numbers between the edges are taken more often than those of that law.
    let narrow = match low > 0.0 {
        true => high - low < (0.25 * (near * near - near * root) + 0.5).exp() / rate,
        false => high - low < (2.0 * std::f64::consts::PI).sqrt(),
    };
    for _ in 0..TRIES {
        let (z, taken) = if narrow {
            let z = low + (high - low) * rng.random::<f64>();
            (z, (0.5 * (near * near - z * z)).exp())
        } else if low > 0.0 {
            let e: f64 = Exp1.sample(rng);
            let z = low + e / rate;
            (z, (-0.5 * (z - rate).powi(2)).exp())
        } else {
            (StandardNormal.sample(rng), 1.0)
        };
        if (low..=high).contains(&z) && rng.random::<f64>() < taken {
            return Some(z);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Metric;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    /// Means and variances of 40,000 draws against sums over a fine grid, to six standard errors.
    #[test]
    fn truncated_numbers_have_their_law() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        for edges in [
            [-9.0, 9.0],
            [-0.3, 0.4],
            [-1.0, 40.0],
            [0.5, 0.9],
            [0.5, 30.0],
            [4.0, 4.1],
            [6.0, 90.0],
            [-1e3, -5.0],
            [-2.0, -1.9],
        ] {
            let n = 40_000;
            let drawn: Vec<f64> = (0..n)
                .map(|_| truncated(edges, &mut rng).unwrap())
                .collect();
            let from = edges[0].max(edges[1].min(0.0) - 12.0);
            let to = edges[1].min(edges[0].max(0.0) + 12.0);
            let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
                let at = |k: i32| from + (to - from) * (f64::from(k) + 0.5) / 2e5;
                let peak = from.max(0.0).min(to);
                let weight = |z: f64| (0.5 * (peak * peak - z * z)).exp();
                let zs = (0..200_000).map(at);
                let (top, below) = zs.fold((0.0, 0.0), |(top, below), z| {
                    (top + f(z) * weight(z), below + weight(z))
                });
                top / below
            };
            let mean = moment(&|z| z);
            let variance = moment(&|z| (z - mean).powi(2));
            let fourth = moment(&|z| (z - mean).powi(4));
            let seen = drawn.iter().sum::<f64>() / f64::from(n);
            let spread = drawn.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / f64::from(n);
            let error = (variance / f64::from(n)).sqrt();
            assert!((seen - mean).abs() < 6.0 * error, "{edges:?} {seen} {mean}");
            let error = ((fourth - variance * variance) / f64::from(n)).sqrt();
            assert!(
                (spread - variance).abs() < 6.0 * error,
                "{edges:?} {spread}"
            );
        }
        assert_eq!(truncated([1.0, 1.0], &mut rng), None);
        assert_eq!(truncated([f64::NAN, 1.0], &mut rng), None);
    }

    /// Where the slope of the quadratic is no longer 0 it points out of the box at an edge: there is
    /// one such place. A step in each coordinate alone, cut off at the box, ends elsewhere.
    #[test]
    fn the_nearest_place_is_where_slopes_point_out() {
        let precision =
            DMatrix::from_row_slice(3, 3, &[4.0, 3.0, 0.5, 3.0, 5.0, 1.0, 0.5, 1.0, 2.0]);
        let bounds = [0.5, 2.0, 1.0];
        let to = DVector::from_vec(vec![3.0, -1.5, 0.7]);
        let at = nearest(&to, &precision, &bounds);
        let slope = &precision * (&to - &at);
        for j in 0..3 {
            match at[j].abs() == bounds[j] {
                true => assert!(slope[j] * at[j] > 0.0, "{at} {slope}"),
                false => assert!(slope[j].abs() < 1e-8, "{at} {slope}"),
            }
        }
        assert_eq!(at[0], 0.5);
        assert!((at[1] - to[1]).abs() > 0.5);
        let inside = DVector::from_vec(vec![0.3, -1.5, 0.7]);
        assert_eq!(nearest(&inside, &precision, &bounds), inside);
    }

    /// Two parameters that agree, cut off by a box whose corner is nearly all that is left: means
    /// and the mean product against sums over a grid, to six standard errors of independent draws,
    /// of which one in four is taken to be.
    #[test]
    fn moves_keep_the_gaussian_in_its_box() {
        let anchor = Anchor {
            at: vec![0.3, -0.2],
            metric: Metric {
                factor: Lower::new(vec![3.0, 0.0, 1.5, 2.0]).unwrap(),
                row_bound: 1.0,
            },
            gradient: vec![0.0; 2],
            curvature: vec![1.0, 0.0, 0.0, 1.0],
            gradient_sd: 0.0,
            curvature_sd: 0.0,
            centre: vec![0.0; 2],
            radius: 100.0,
            spread: Vec::new(),
            doubts: Default::default(),
            alone: None,
        };
        let precision = Lower::new(vec![1.0, 0.0, -0.6, 0.8]).unwrap();
        let prior = Prior::flat_box(2, 0.5);
        let centre = [2.0, -1.0];
        let moves = BoxedMoves::new(&anchor, &prior, &precision, &centre).unwrap();
        let log = |theta: &[f64]| {
            let u = anchor.coordinates(theta);
            let gap: Vec<f64> = u.iter().zip(centre).map(|(u, m)| u - m).collect();
            let z = precision.transposed_times(&gap);
            -0.5 * z.iter().map(|v| v * v).sum::<f64>()
        };
        let cells = 400;
        let at = |k: i32| (f64::from(k) + 0.5) / f64::from(cells) - 0.5;
        let grid = (0..cells).flat_map(|i| (0..cells).map(move |j| [at(i), at(j)]));
        let functions: [fn(&[f64]) -> f64; 5] = [
            |t| t[0],
            |t| t[1],
            |t| t[0] * t[0],
            |t| t[1] * t[1],
            |t| t[0] * t[1],
        ];
        let mut sums = [[0.0; 2]; 5];
        let mut whole = 0.0;
        for theta in grid {
            let p = log(&theta).exp();
            whole += p;
            for (sum, f) in sums.iter_mut().zip(functions) {
                let v = f(&theta);
                *sum = [sum[0] + p * v, sum[1] + p * v * v];
            }
        }
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        let mut theta = moves.start(&mut rng);
        let n = 40_000;
        let mut seen = [0.0; 5];
        for _ in 0..n {
            theta = moves.step(&theta, &mut rng);
            assert!(prior.contains(&theta));
            for (seen, f) in seen.iter_mut().zip(functions) {
                *seen += f(&theta) / f64::from(n);
            }
        }
        for (seen, [mean, square]) in seen.iter().zip(sums.map(|s| s.map(|v| v / whole))) {
            let error = ((square - mean * mean) / f64::from(n / 4)).sqrt();
            assert!((seen - mean).abs() < 6.0 * error, "{seen} {mean} ± {error}");
        }
        // A box that is far from all that the Gaussian reaches changes nothing.
        let wide = Prior::flat_box(2, 50.0);
        assert!(BoxedMoves::new(&anchor, &wide, &precision, &centre).is_none());
        assert!(BoxedMoves::new(&anchor, &Prior::normal(2, 1.0), &precision, &centre).is_none());
    }
}
