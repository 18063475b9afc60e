//! A released curvature whose noise was drawn in: what steps follow, and what intervals believe.

use nalgebra::{DMatrix, DVector};

use super::denoise::{Noise, compose, eigen};

/// Eigenvalues of a curvature are at least this share of the edge of the noise that was kept, and
/// at least this share of the edge of all noise, or the second number where that is less …
const EDGE_SHARE: f64 = 0.75;
const LEAST_CURVATURE: f64 = 0.03;
/// … and of those that are not, this share is believed in intervals, and no less than this.
const BELIEVED: f64 = 0.6;
pub(super) const LEAST_BELIEVED: f64 = 1e-6;

/// In the coordinates of its release.
pub(super) struct Drawn {
    values: DVector<f64>,
    vectors: DMatrix<f64>,
    /// Least eigenvalue that steps may follow.
    floor: f64,
    /// Share of the noise that was kept.
    pub kept: f64,
    /// Noise that was let in on the diagonal.
    pub sd: f64,
}

impl Drawn {
    /// Of a matrix that was seen with such noise, of which a share was kept.
    pub fn new(guess: &DMatrix<f64>, kept: f64, noise: &Noise) -> Self {
        // Of a told target more is left, √kept: a floor by that gave errors 3 % larger.
        // Without noise the curvature is what it is.
        let floor = match noise.sd > 0.0 {
            true => {
                let edge = EDGE_SHARE * noise.edge;
                (kept * edge).max(LEAST_CURVATURE.min(edge))
            }
            false => 1e-12,
        };
        let (values, vectors) = eigen(guess);
        Drawn {
            values,
            vectors,
            floor,
            kept,
            sd: kept * noise.sd,
        }
    }

    /// With eigenvalues at the floor at least: for steps.
    pub fn raised(&self) -> DMatrix<f64> {
        compose(&self.vectors, &self.values.map(|v| v.max(self.floor)))
    }

    /// Without the floor: for intervals.
    pub fn believed(&self) -> DMatrix<f64> {
        let believed = self.values.map(|v| match v < self.floor {
            true => (BELIEVED * v).max(LEAST_BELIEVED),
            false => v,
        });
        compose(&self.vectors, &believed)
    }

    /// Eigenvalues below the floor.
    pub fn lost(&self) -> usize {
        self.values.iter().filter(|v| **v < self.floor).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The floor of an eigenvalue of 0.005, with noise of 0.0005 and of 0.1, all of which was kept,
    /// or a hundredth: what stands out of all noise is as it was seen.
    #[test]
    fn what_stands_out_of_noise_is_not_raised() {
        let guess = DMatrix::from_diagonal(&DVector::from_vec(vec![1.0, 0.005]));
        let raised = |sd: f64, kept: f64| {
            let drawn = Drawn::new(&guess, kept, &Noise::whole(2, sd));
            (drawn.raised()[(1, 1)], drawn.lost())
        };
        for kept in [1.0, 0.01] {
            assert_eq!(raised(0.0005, kept), (0.005, 0));
        }
        assert_eq!(raised(0.1, 0.01), (LEAST_CURVATURE, 1));
        let (edge, lost) = raised(0.1, 1.0);
        assert!((edge - 0.15).abs() < 1e-12 && lost == 1, "{edge}");
    }
}
