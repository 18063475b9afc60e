//! The level of a factor that has no column: its rows are those that the constant has and no other
//! level; and what else is left over of a column by others (docs/proofs/anchors.md, "The level
//! without a column" and "What levels leave over").

use nalgebra::{DMatrix, DVector};

use super::structure::LeftOver;

/// A matrix of coordinates in which a level without a column has the weight of one that has it at
/// least, `least` times the mean square of its column where that has information, `far`: the
/// column of the whole is that level's and all others'.
pub(super) fn raised(
    mut matrix: DMatrix<f64>,
    least: f64,
    far: &DVector<f64>,
    left_over: &[LeftOver],
) -> DMatrix<f64> {
    for LeftOver { whole, own, .. } in left_over {
        let weight = own.dot(&(&matrix * own));
        matrix[(*whole, *whole)] += (least * far[*whole] - weight).max(0.0);
    }
    matrix
}

/// A believed curvature in which no level without a column has more weight than `most` says of what
/// was `observed` and the sd of its noise; that is `factor` times a symmetric matrix of sd `sd` on
/// the diagonal.
///
/// What noise makes of that weight is the noise of all levels together: where it has few rows it
/// may seem to have many, and the constant to be known that those rows alone tell of.
pub(super) fn held<'a>(
    mut believed: DMatrix<f64>,
    observed: &DMatrix<f64>,
    (factor, sd): (&DMatrix<f64>, f64),
    left_over: impl Iterator<Item = &'a LeftOver>,
    most: impl Fn(f64, f64) -> f64,
) -> DMatrix<f64> {
    for LeftOver { whole, own, .. } in left_over {
        let weight = |matrix: &DMatrix<f64>| own.dot(&(matrix * own));
        let noise = sd * factor.tr_mul(own).norm_squared();
        let most = most(weight(observed), noise);
        let here = weight(&believed);
        if here > most {
            // The column of the whole is that level's and all others', of which the first has less.
            let less = own * ((most / here).sqrt() - 1.0);
            let change = &believed * &less;
            let own_change = less.dot(&change);
            let row = believed.row(*whole) + change.transpose();
            believed.set_row(*whole, &row);
            let column = believed.column(*whole) + change;
            believed.set_column(*whole, &column);
            believed[(*whole, *whole)] += own_change;
        }
    }
    believed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 rows 60, 30 and 10 have the constant alone, a level, and another; a number is 1 in
    /// all. Of the first one alone was seen, with noise of 2 or of 4: one is left, or 2, with the
    /// number in these, where no more than half the noise is believed.
    #[test]
    fn a_level_without_a_column_has_what_was_seen_of_it() {
        let own = DVector::from_vec(vec![1.0, -1.0, -1.0, 0.0]);
        let left_over = [LeftOver {
            whole: 0,
            own: own.clone(),
            of_spline: false,
        }];
        let table = |rows: [f64; 3]| {
            let [none, one, other] = rows;
            let all = none + one + other;
            DMatrix::from_row_slice(
                4,
                4,
                &[
                    all, one, other, all, one, one, 0.0, one, other, 0.0, other, other, all, one,
                    other, all,
                ],
            )
        };
        let weight = |m: &DMatrix<f64>| own.dot(&(m * &own));
        let factor = DMatrix::from_diagonal_element(4, 4, 2.0);
        for (noise, left) in [(2.0, 1.0), (4.0, 2.0)] {
            let believed = table([60.0, 30.0, 10.0]);
            let seen = table([1.0, 30.0, 10.0]);
            let most = |seen: f64, noise: f64| seen.max(0.5 * noise);
            let held = held(
                believed,
                &seen,
                (&factor, noise / 12.0),
                left_over.iter(),
                most,
            );
            assert!((weight(&held) - left).abs() < 1e-9, "{held}");
            let with_number = (&held * &own)[3];
            assert!((with_number - (left * 60.0f64).sqrt()).abs() < 1e-9);
            assert_eq!(
                held.view((1, 1), (3, 3)),
                table([60.0, 30.0, 10.0]).view((1, 1), (3, 3))
            );
        }
        let few = table([1.0, 30.0, 10.0]);
        let raised = raised(few.clone(), 5.0, &DVector::from_element(4, 1.0), &left_over);
        assert!((weight(&raised) - 5.0).abs() < 1e-9);
        assert!(((raised - few).norm() - 4.0).abs() < 1e-9);
    }
}
