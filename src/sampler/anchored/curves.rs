//! What a curvature is expected to be of columns that are functions of one number, before their
//! products are seen (docs/proofs/anchors.md, "Columns of one number").

use nalgebra::{Cholesky, DMatrix, DVector};

use super::algebra::solve;
use super::structure::Curve;
use crate::privacy::Halt;

/// A distribution on the points of a curve need not have the rows' moments: they may be off by so
/// much of what they could be at most.
const APART: f64 = 1e-3;
/// Newton steps at most, how often one is halved, and the gain in nats at which they end.
const MOST_STEPS: usize = 60;
const MOST_HALVINGS: usize = 40;
const SETTLED: f64 = 1e-9;
/// Times that weight is added to a curve at most, and how long rows may stay, squared, over what
/// they are to be.
const MOST_RAISED: usize = 100;
const LONGER: f64 = 1.05;

/// Mean products of the constant and a curve's columns, (k + 1) × (k + 1), under the distribution
/// of the number that is as even as what was seen lets it be: the mode of θ where p ∝ exp θ·t has
/// the products t as its statistics and θ is normal with the inverse variance of what was `seen`
/// (Dudík, Phillips & Schapire 2007). `sds`: of the noise in each, 0 where there is none.
pub(super) fn products(
    curve: &Curve,
    seen: &DMatrix<f64>,
    sds: &DMatrix<f64>,
) -> Option<DMatrix<f64>> {
    let width = curve.columns.len() + 1;
    let rows: Vec<DVector<f64>> = curve.values.iter().map(|row| with_one(row)).collect();
    // (Splines that are never together have no products.)
    let pairs: Vec<(usize, usize)> = (0..width)
        .flat_map(|i| (0..=i).map(move |j| (i, j)))
        .skip(1)
        .filter(|(i, j)| rows.iter().any(|row| row[*i] * row[*j] != 0.0))
        .collect();
    let statistics = DMatrix::from_fn(rows.len(), pairs.len(), |u, a| {
        rows[u][pairs[a].0] * rows[u][pairs[a].1]
    });
    let target = DVector::from_iterator(pairs.len(), pairs.iter().map(|at| seen[*at]));
    let variance = pairs.iter().enumerate().map(|(a, at)| {
        let apart = APART * statistics.column(a).amax();
        sds[*at].powi(2) + apart * apart
    });
    let variance = DVector::from_iterator(pairs.len(), variance);
    let tilted = Tilted {
        statistics,
        target,
        variance,
    };
    let chances = tilted.mode()?;
    let means = tilted.statistics.tr_mul(&chances);
    let mut moments = DMatrix::zeros(width, width);
    moments[(0, 0)] = 1.0;
    for (mean, (i, j)) in means.iter().zip(pairs) {
        (moments[(i, j)], moments[(j, i)]) = (*mean, *mean);
    }
    Some(moments)
}

/// A matrix of coordinates in which no row is longer than one of a level of the weight `least`,
/// wherever its number lies, as far as its columns and their whole tell: where such rows are
/// longest they get as much weight as that takes, time and again.
///
/// # Errors
/// [`Halt`] of a matrix without an inverse.
pub(super) fn raised(
    mut matrix: DMatrix<f64>,
    least: f64,
    curves: &[Curve],
) -> Result<DMatrix<f64>, Halt> {
    if curves.is_empty() {
        return Ok(matrix);
    }
    // (What is added for one curve makes another's rows no longer.)
    let whole = solve(&matrix, &DMatrix::identity(matrix.nrows(), matrix.nrows()))?;
    for curve in curves {
        let all = curve.with_whole();
        let mut inverse = whole.select_rows(&all).select_columns(&all);
        for _ in 0..MOST_RAISED {
            let rows = curve.values.iter().map(|row| with_one(row));
            let square = |x: &DVector<f64>| x.dot(&(&inverse * x));
            let longest = rows.max_by(|a, b| square(a).total_cmp(&square(b)));
            let Some(x) = longest.filter(|x| square(x) * least > LONGER) else {
                break;
            };
            let weight = least - square(&x).recip();
            let image = &inverse * &x;
            let by = weight / (1.0 + weight * x.dot(&image));
            inverse -= &image * image.transpose() * by;
            for (i, x_i) in all.iter().zip(x.iter()) {
                for (j, x_j) in all.iter().zip(x.iter()) {
                    matrix[(*i, *j)] += weight * x_i * x_j;
                }
            }
        }
    }
    Ok(matrix)
}

/// A row of a curve's whole and its columns.
fn with_one(row: &[f64]) -> DVector<f64> {
    DVector::from_iterator(row.len() + 1, [1.0].into_iter().chain(row.iter().copied()))
}

/// Distributions p ∝ exp θ·t of points, a row of statistics t each, and what is known of θ.
struct Tilted {
    statistics: DMatrix<f64>,
    target: DVector<f64>,
    variance: DVector<f64>,
}

impl Tilted {
    /// What is largest at the mode, nats, and the points' chances there.
    fn value(&self, theta: &DVector<f64>) -> (f64, DVector<f64>) {
        let logs = &self.statistics * theta;
        let largest = logs.max();
        let weights = logs.map(|v| (v - largest).exp());
        let sum = weights.sum();
        let penalty = 0.5 * theta.component_mul(theta).dot(&self.variance);
        let value = theta.dot(&self.target) - sum.ln() - largest - penalty;
        (value, weights / sum)
    }

    /// The points' chances at the mode; `None` where no step can be made.
    fn mode(&self) -> Option<DVector<f64>> {
        let mut theta = DVector::zeros(self.target.len());
        let (mut value, mut chances) = self.value(&theta);
        for _ in 0..MOST_STEPS {
            let means = self.statistics.tr_mul(&chances);
            let slope = &self.target - &means - self.variance.component_mul(&theta);
            let weighted = DMatrix::from_fn(chances.len(), means.len(), |u, a| {
                chances[u] * (self.statistics[(u, a)] - means[a])
            });
            let bend = self.statistics.tr_mul(&weighted) + DMatrix::from_diagonal(&self.variance);
            let step = Cholesky::new(bend)?.solve(&slope);
            let mut by = 1.0;
            let next = (0..MOST_HALVINGS).find_map(|_| {
                let to = &theta + &step * by;
                let (there, chances) = self.value(&to);
                by *= 0.5;
                (there >= value).then_some((to, there, chances))
            });
            let Some((to, there, moved)) = next else {
                break;
            };
            let gained = there - value;
            (theta, value, chances) = (to, there, moved);
            if gained < SETTLED {
                break;
            }
        }
        Some(chances)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::algebra::solve_vector;
    use super::*;

    /// A hat at −½, one at ½ and a square, at 41 points of [−1, 1].
    fn curve() -> Curve {
        let hat = |u: f64, at: f64| (1.0 - 2.0 * (u - at).abs()).max(0.0);
        let row = |i: usize| {
            let u = i as f64 / 20.0 - 1.0;
            vec![hat(u, -0.5), hat(u, 0.5), u * u]
        };
        Curve {
            whole: 1,
            columns: vec![2, 3, 0],
            values: Arc::new((0..41).map(row).collect()),
        }
    }

    fn products_under(curve: &Curve, chance: impl Fn(usize) -> f64) -> DMatrix<f64> {
        let all: f64 = (0..curve.values.len()).map(&chance).sum();
        let mut sum = DMatrix::zeros(4, 4);
        for (i, row) in curve.values.iter().enumerate() {
            let x = with_one(row);
            sum += &x * x.transpose() * (chance(i) / all);
        }
        sum
    }

    /// Most rows lie about −0.2, few beyond 0.5. Without noise their products are found, and where
    /// all is noise those of an even number. With noise of 0.03 the least eigenvalue is found, of
    /// which hardly anything is left in what was seen.
    #[test]
    fn products_are_those_of_a_number() {
        let curve = curve();
        let bell = |i: usize| (-0.5 * ((i as f64 - 16.0) / 5.0).powi(2)).exp();
        let truth = products_under(&curve, bell);
        let noise = |sd| DMatrix::from_element(4, 4, sd);
        let exact = products(&curve, &truth, &noise(0.0)).unwrap();
        assert!((&exact - &truth).amax() < 0.005, "{exact}");
        let lost = products(&curve, &truth, &noise(1e3)).unwrap();
        assert!((lost - products_under(&curve, |_| 1.0)).amax() < 1e-3);
        let seen = DMatrix::from_fn(4, 4, |i, j| {
            truth[(i, j)] + 0.03 * (7.0 * (i + j) as f64).sin()
        });
        let least = |m: &DMatrix<f64>| m.clone().symmetric_eigenvalues().min();
        assert!(least(&seen) < 0.3 * least(&truth));
        let drawn = products(&curve, &seen, &noise(0.03)).unwrap();
        assert!((&drawn - &truth).amax() < 0.05, "{drawn}");
        assert!((least(&drawn) / least(&truth)).ln().abs() < 0.5);
    }

    /// Rows that are far longer than others, at −1 where neither hat is, are as long as a level of
    /// the weight that is asked for, and others no longer than they were.
    #[test]
    fn no_row_is_longer_than_a_rare_levels() {
        let curve = curve();
        let bell = |i: usize| (-0.5 * ((i as f64 - 20.0) / 3.0).powi(2)).exp();
        let own = products_under(&curve, bell) * 1000.0;
        let order = [3, 0, 1, 2];
        let matrix = DMatrix::from_fn(4, 4, |i, j| own[(order[i], order[j])]);
        let raised = raised(matrix.clone(), 20.0, std::slice::from_ref(&curve)).unwrap();
        let length = |m: &DMatrix<f64>, row: &Vec<f64>| {
            let x = DVector::from_vec(vec![row[2], 1.0, row[0], row[1]]);
            x.dot(&solve_vector(m, &x).unwrap())
        };
        let longest = |m: &DMatrix<f64>| {
            let all = curve.values.iter().map(|row| length(m, row));
            all.fold(0.0, f64::max)
        };
        assert!(longest(&matrix) > 10.0 / 20.0);
        assert!((0.95 / 20.0..=LONGER / 20.0 + 1e-9).contains(&longest(&raised)));
        for row in curve.values.iter() {
            assert!(length(&raised, row) <= length(&matrix, row) + 1e-9);
        }
        let added = raised - matrix;
        assert!(added.symmetric_eigenvalues().min() > -1e-6);
    }
}
