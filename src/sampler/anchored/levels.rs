//! Levels of which noise hides whether they have any rows (docs/proofs/anchors.md, "Levels without
//! rows").

use nalgebra::{DMatrix, DVector};

use super::structure::Structure;

/// A level is lost where its curvature is below so many sds of the noise.
const LOST: f64 = 2.0;
/// Levels are set apart as long as all of them may hold no more of the rows than this.
const MOST: f64 = 0.05;

/// The curvature without what noise alone says of the products of lost levels with other columns,
/// and `None` where no level is set apart. `sds`: of the noise on the diagonal; `whole`: Σ κw.
///
/// A level's products are no larger than its square, for it is 0 or 1: where the square is lost, so
/// are they. Left in, they turn the direction in which nothing is known into other columns, and as
/// far as a prior lets the level go these go too.
pub(super) fn apart(
    curvature: &DMatrix<f64>,
    sds: &DVector<f64>,
    whole: f64,
    structure: &Structure,
) -> Option<DMatrix<f64>> {
    let is_level = |j: &usize| {
        let is_flag = structure.flags.get(*j).is_some_and(|flag| *flag);
        is_flag && structure.constant != Some(*j)
    };
    let square = |j: usize| curvature[(j, j)];
    let mut lost: Vec<usize> = (0..curvature.nrows())
        .filter(is_level)
        .filter(|j| square(*j) < LOST * sds[*j])
        .collect();
    lost.sort_by(|a, b| square(*a).total_cmp(&square(*b)));
    let mut held = 0.0;
    let few = lost.into_iter().take_while(|j| {
        held += square(*j).max(0.0) + sds[*j];
        held <= MOST * whole
    });
    let mut left = curvature.clone();
    let mut any = false;
    for j in few {
        let own = square(j);
        left.row_mut(j).fill(0.0);
        left.column_mut(j).fill(0.0);
        left[(j, j)] = own;
        any = true;
    }
    any.then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure() -> Structure {
        Structure {
            flags: vec![true, true, true, false],
            constant: Some(0),
            ..Structure::default()
        }
    }

    /// Of a constant, a level that is seen, one that is not and a number, the third alone is set
    /// apart; and not where noise lets it hold a tenth of the rows.
    #[test]
    fn levels_that_noise_hides_are_set_apart() {
        let mut curvature = DMatrix::from_element(4, 4, 3.0);
        for (j, square) in [1000.0, 300.0, 5.0, 4.0].into_iter().enumerate() {
            curvature[(j, j)] = square;
        }
        let sds = DVector::from_element(4, 4.0);
        let left = apart(&curvature, &sds, 1000.0, &structure()).unwrap();
        for i in 0..4 {
            for j in 0..4 {
                let expected = match i != j && (i == 2 || j == 2) {
                    true => 0.0,
                    false => curvature[(i, j)],
                };
                assert_eq!(left[(i, j)], expected, "{i} {j}");
            }
        }
        assert_eq!(apart(&curvature, &sds, 100.0, &structure()), None);
        assert_eq!(apart(&curvature, &(sds * 0.5), 1000.0, &structure()), None);
        assert_eq!(
            apart(&curvature, &DVector::zeros(4), 1e3, &structure()),
            None
        );
    }

    /// Of many levels those of which least is seen, until they may hold a twentieth of the rows.
    #[test]
    fn many_lost_levels_are_not_all_set_apart() {
        let squares = [1000.0, 30.0, -10.0, 10.0, 20.0];
        let mut curvature = DMatrix::from_element(5, 5, 1.0);
        for (j, square) in squares.into_iter().enumerate() {
            curvature[(j, j)] = square;
        }
        let structure = Structure {
            flags: vec![true; 5],
            constant: Some(0),
            ..Structure::default()
        };
        let sds = DVector::from_element(5, 16.0);
        let left = apart(&curvature, &sds, 1000.0, &structure).unwrap();
        let kept = |j: usize| left[(0, j)] != 0.0;
        assert_eq!([1, 2, 3, 4].map(kept), [true, false, false, true]);
    }
}
