//! What a curvature is expected to be, before its products are seen, where a factor's level without
//! a column has few rows or a number has several columns (docs/proofs/anchors.md, "The level
//! without a column" and "Columns of one number").

use std::f64::consts::FRAC_1_SQRT_2;

use nalgebra::{Cholesky, DMatrix, DVector};

use super::curves;
use super::path::LONGEST_LEVEL;
use super::structure::{Curve, Structure};

/// A level without a column has few rows where it seems to have less than this share.
const RARE: f64 = 0.1;
/// Of a number's square its mean's is at most this share.
const MOST: f64 = 0.9;

/// Σ κw xxᵀ from the `squares`, its diagonal, where levels of such factors, numbers and the
/// constant do not depend on one another, but for levels of one factor, which exclude each other,
/// and columns of one number; other levels have no products, nor numbers where no level is rare.
/// Means of numbers are those of a `plain` curvature, whose entry i, j has noise of the sd sᵢsⱼ/√2.
/// `None` where there is neither such a factor nor such a number, or where declarations and what
/// was seen contradict each other.
///
/// A level's product with the constant is its square. If all of these were zero, the rows without
/// such a level would be all rows, and it takes long until noise shows that they are few.
pub(super) fn moments(
    structure: &Structure,
    squares: &DVector<f64>,
    plain: &DMatrix<f64>,
    sds: &DVector<f64>,
) -> Option<DMatrix<f64>> {
    let d = squares.len();
    let constant = structure.constant?;
    let whole = squares[constant];
    let share = |levels: &[usize]| levels.iter().map(|j| squares[*j] / whole).sum::<f64>();
    let (rare, others): (Vec<_>, Vec<_>) = (structure.factors_with_reference().into_iter())
        .partition(|levels| share(levels) > 1.0 - RARE);
    if rare.is_empty() && structure.curves.is_empty() {
        return None;
    }
    // For the level without a column as much is left as coordinates are raised to for rare levels.
    let least = 1.0 / (LONGEST_LEVEL * LONGEST_LEVEL * d as f64);
    let mut squares = squares.clone();
    for levels in &rare {
        let by = ((1.0 - least) / share(levels)).min(1.0);
        levels.iter().for_each(|j| squares[*j] *= by);
    }
    let mean_of_number = |j: usize| {
        let (seen, sd) = (plain[(constant, j)], sds[constant] * sds[j]);
        let heard = seen * (1.0 - 0.5 * sd * sd / (seen * seen)).max(0.0) / whole;
        let most = (MOST * squares[j] / whole).sqrt();
        heard.clamp(-most, most)
    };
    let mut means = DVector::from_fn(d, |j, _| mean_of_number(j));
    means[constant] = 1.0;
    rare.iter()
        .flatten()
        .for_each(|&j| means[j] = squares[j] / whole);
    others.iter().flatten().for_each(|&j| means[j] = 0.0);
    if rare.is_empty() {
        means.fill(0.0);
        means[constant] = 1.0;
    }
    let mut together = DMatrix::zeros(d, d);
    let mut curve_of = vec![None; d];
    for curve in structure.curves.iter().filter(|c| c.whole == constant) {
        let Some(found) = of_curve(curve, &squares, plain, sds) else {
            continue;
        };
        for (a, &i) in curve.columns.iter().enumerate() {
            means[i] = found[(0, a + 1)];
            curve_of[i] = Some(curve.columns[0]);
            for (b, &j) in curve.columns.iter().enumerate() {
                together[(i, j)] = whole * found[(a + 1, b + 1)];
            }
        }
    }
    let product = |i: usize, j: usize| match i == j {
        _ if curve_of[i].is_some() && curve_of[i] == curve_of[j] => together[(i, j)],
        true => squares[i],
        false if structure.excludes(i, j) => 0.0,
        false => whole * means[i] * means[j],
    };
    let matrix = DMatrix::from_fn(d, d, product);
    Cholesky::new(matrix.clone()).map(|_| matrix)
}

/// Mean products of the constant and a curve's columns, by what was seen of them.
fn of_curve(
    curve: &Curve,
    squares: &DVector<f64>,
    plain: &DMatrix<f64>,
    sds: &DVector<f64>,
) -> Option<DMatrix<f64>> {
    let all = curve.with_whole();
    let whole = squares[curve.whole];
    let pick = |of: &dyn Fn(usize, usize) -> f64| {
        DMatrix::from_fn(all.len(), all.len(), |a, b| of(all[a], all[b]) / whole)
    };
    let seen = pick(&|i, j| if i == j { squares[i] } else { plain[(i, j)] });
    let noise = pick(&|i, j| sds[i] * sds[j] * if i == j { 1.0 } else { FRAC_1_SQRT_2 });
    curves::products(curve, &seen, &noise)
}

#[cfg(test)]
mod tests {
    use super::super::structure::Level;
    use super::*;

    /// A constant, two levels of one factor, one of another, and a number.
    fn structure() -> Structure {
        let level = |factor, level| vec![Level { factor, level }];
        Structure {
            flags: vec![true, true, true, true, false],
            constant: Some(0),
            levels: vec![vec![], level(1, 0), level(1, 1), level(2, 0), vec![]],
            ..Structure::default()
        }
    }

    /// Of 1000 rows 975 seem to have one of two levels, and a seventh is left for the third; a
    /// number is 0.5 in the mean.
    #[test]
    fn levels_have_the_products_that_declarations_say() {
        let squares = DVector::from_vec(vec![1000.0, 650.0, 325.0, 200.0, 400.0]);
        let mut plain = DMatrix::zeros(5, 5);
        plain[(0, 4)] = 500.0;
        let found = moments(&structure(), &squares, &plain, &DVector::zeros(5)).unwrap();
        let left = 1.0 / (1.44 * 5.0);
        let [one, other] = [2.0, 1.0].map(|share| 1000.0 * (1.0 - left) * share / 3.0);
        #[rustfmt::skip]
        let expected = DMatrix::from_row_slice(5, 5, &[
            1000.0, one, other, 0.0, 500.0,
            one, one, 0.0, 0.0, 0.5 * one,
            other, 0.0, other, 0.0, 0.5 * other,
            0.0, 0.0, 0.0, 200.0, 0.0,
            500.0, 0.5 * one, 0.5 * other, 0.0, 400.0,
        ]);
        assert!((found - expected).amax() < 1e-9);
        // Noise of that size leaves nothing of the mean.
        let sds = DVector::from_element(5, 30.0);
        let found = moments(&structure(), &squares, &plain, &sds).unwrap();
        assert_eq!(found[(0, 4)], 0.0);
    }

    #[test]
    fn where_no_level_is_rare_nothing_is_said() {
        let nothing = DMatrix::zeros(5, 5);
        let squares = DVector::from_vec(vec![1000.0, 500.0, 300.0, 200.0, 400.0]);
        assert!(moments(&structure(), &squares, &nothing, &DVector::zeros(5)).is_none());
    }
}
