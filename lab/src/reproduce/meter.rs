//! A curator whose reads are counted: the rows that each decision reads in expectation over
//! its batch, given the move.

use ndarray::{Array2, ArrayView2};

use dpmc::model::{Metric, Moments};
use dpmc::privacy::{
    Acceptance, AnchorNoise, Batch, Curator, Estimator, Expansion, GradientNoise, Halt,
    MomentNoise, Moves, Releases,
};

use crate::published::PublishedFastMh;

/// A curator and the expected number of rows it has read so far.
pub(super) struct Meter {
    pub curator: Curator,
    /// Expected rows read. A move that leaves the support reads none.
    pub read: f64,
    /// What decides in the curator's place, where a method is DP-Fast MH as published.
    published: Option<PublishedFastMh>,
}

impl Meter {
    pub fn new(curator: Curator, published: Option<PublishedFastMh>) -> Self {
        Meter {
            curator,
            read: 0.0,
            published,
        }
    }

    /// Rows that move `c` reads in expectation.
    fn rows_of(&self, moves: &Moves<'_>, c: usize, estimator: Estimator) -> f64 {
        let rows = self.curator.rows() as f64;
        match estimator {
            Estimator::FullBatch => rows,
            Estimator::Poisson { lambda } => {
                let big = rows * moves.clip_bounds.map_or(0.0, |clips| clips[c]);
                lambda.value(big) + big
            }
            Estimator::FixedBatch { batch } => batch as f64,
        }
    }
}

impl Releases for Meter {
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        if let Some(published) = &mut self.published {
            published.decide(moves, estimator, rule, accepted)?;
            self.read = published.rows_read();
            return Ok(());
        }
        self.curator.decide(moves, estimator, rule, accepted)?;
        let live = (0..moves.public.len()).filter(|&c| moves.public[c] > f64::NEG_INFINITY);
        self.read += live.map(|c| self.rows_of(moves, c, estimator)).sum::<f64>();
        Ok(())
    }

    fn anchor(
        &mut self,
        at: &[f64],
        metric: &Metric,
        noise: AnchorNoise,
    ) -> Result<Expansion, Halt> {
        let expansion = self.curator.anchor(at, metric, noise)?;
        self.read += self.curator.rows() as f64;
        Ok(expansion)
    }

    fn moments(&mut self, degree: usize, noise: Option<MomentNoise>) -> Result<Moments, Halt> {
        let moments = self.curator.moments(degree, noise)?;
        self.read += self.curator.rows() as f64;
        Ok(moments)
    }

    fn gradients(
        &mut self,
        thetas: ArrayView2<'_, f64>,
        noise: GradientNoise,
    ) -> Result<Array2<f64>, Halt> {
        let sums = self.curator.gradients(thetas, noise)?;
        let rate = match noise.batch {
            Batch::All => 1.0,
            Batch::Poisson { rate } => rate,
        };
        self.read += rate * self.curator.rows() as f64 * thetas.nrows() as f64;
        Ok(sums)
    }
}
