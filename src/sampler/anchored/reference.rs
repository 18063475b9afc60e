//! The level of a factor that has no column: its rows are those that the constant has and no other
//! level (docs/proofs/anchors.md, "The level without a column").

use nalgebra::{DMatrix, DVector};

use super::structure::Structure;

/// A level without a column is believed to have no more weight than was seen at the end, or than so
/// many sds of its noise.
const LEAST: f64 = 0.5;

/// The direction in θ along which no other level's rows change.
fn direction(constant: usize, levels: &[usize], d: usize) -> DVector<f64> {
    let mut own = DVector::zeros(d);
    own[constant] = 1.0;
    levels.iter().for_each(|j| own[*j] = -1.0);
    own
}

/// A matrix of coordinates in which a level without a column has this weight at least, as rare
/// levels have that have one: the constant's column is that level's and all others'.
pub(super) fn raised(mut matrix: DMatrix<f64>, least: f64, structure: &Structure) -> DMatrix<f64> {
    let Some(constant) = structure.constant else {
        return matrix;
    };
    for levels in structure.factors_with_reference() {
        let own = direction(constant, &levels, matrix.nrows());
        let weight = own.dot(&(&matrix * &own));
        matrix[(constant, constant)] += (least - weight).max(0.0);
    }
    matrix
}

/// A believed curvature in which no level without a column has more weight than was `observed`; the
/// noise of that is `factor` times a symmetric matrix of sd `sd` on the diagonal.
///
/// What noise makes of that weight is the noise of all levels together: where it has few rows it
/// may seem to have many, and the constant to be known that those rows alone tell of.
pub(super) fn held(
    mut believed: DMatrix<f64>,
    observed: &DMatrix<f64>,
    (factor, sd): (&DMatrix<f64>, f64),
    structure: &Structure,
) -> DMatrix<f64> {
    let Some(constant) = structure.constant else {
        return believed;
    };
    let d = believed.nrows();
    for levels in structure.factors_with_reference() {
        let own = direction(constant, &levels, d);
        let weight = |matrix: &DMatrix<f64>| own.dot(&(matrix * &own));
        let noise = sd * factor.tr_mul(&own).norm_squared();
        let most = weight(observed).max(LEAST * noise);
        let here = weight(&believed);
        if here > most {
            // The constant is that level and all others, of which the first has less.
            let mut by = DMatrix::identity(d, d);
            let less = own.transpose() * ((most / here).sqrt() - 1.0);
            let row = by.row(constant) + less;
            by.set_row(constant, &row);
            believed = &by * believed * by.transpose();
        }
    }
    believed
}

#[cfg(test)]
mod tests {
    use super::super::structure::{Level, Structure};
    use super::*;

    /// Of 100 rows 60, 30 and 10 have the constant alone, a level, and another; a number is 1 in
    /// all. Of the first one alone was seen, with noise of 2 or of 4: one is left, or 2, with the
    /// number in these.
    #[test]
    fn a_level_without_a_column_has_what_was_seen_of_it() {
        let structure = Structure {
            flags: vec![true, true, true, false],
            constant: Some(0),
            levels: vec![
                vec![],
                vec![Level {
                    factor: 1,
                    level: 0,
                }],
                vec![Level {
                    factor: 1,
                    level: 1,
                }],
                vec![],
            ],
            ..Structure::default()
        };
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
        let own = DVector::from_vec(vec![1.0, -1.0, -1.0, 0.0]);
        let weight = |m: &DMatrix<f64>| own.dot(&(m * &own));
        let factor = DMatrix::from_diagonal_element(4, 4, 2.0);
        for (noise, left) in [(2.0, 1.0), (4.0, 2.0)] {
            let believed = table([60.0, 30.0, 10.0]);
            let seen = table([1.0, 30.0, 10.0]);
            let held = held(believed, &seen, (&factor, noise / 12.0), &structure);
            assert!((weight(&held) - left).abs() < 1e-9, "{held}");
            let with_number = (&held * &own)[3];
            assert!((with_number - (left * 60.0f64).sqrt()).abs() < 1e-9);
            assert_eq!(
                held.view((1, 1), (3, 3)),
                table([60.0, 30.0, 10.0]).view((1, 1), (3, 3))
            );
        }
        let few = table([1.0, 30.0, 10.0]);
        let raised = raised(few.clone(), 5.0, &structure);
        assert!((weight(&raised) - 5.0).abs() < 1e-9);
        assert!(((raised - few).norm() - 4.0).abs() < 1e-9);
    }
}
