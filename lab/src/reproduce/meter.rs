//! A curator whose reads are counted: the rows that each decision reads in expectation over
//! its batch, given the move.

use ndarray::{Array2, ArrayView2};
use statrs::distribution::{DiscreteCDF, Poisson};

use dpmc::data::Dataset;
use dpmc::model::{Metric, Model, Moments};
use dpmc::privacy::{
    Acceptance, AnchorNoise, Batch, Curator, Estimator, Expansion, FastMhSettings, GradientNoise,
    Halt, MomentNoise, Moves, Releases,
};

/// A curator and the expected number of rows it has read so far.
pub(super) struct Meter {
    pub curator: Curator,
    /// Expected rows read. A move that leaves the support reads none.
    pub read: f64,
    /// C = Σ c_i of published DP-Fast MH; 0 for others.
    published_rate: f64,
}

impl Meter {
    pub fn new(curator: Curator, published_rate: f64) -> Self {
        Meter {
            curator,
            read: 0.0,
            published_rate,
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
            Estimator::PublishedFastMh(settings) => {
                let gaps = moves.thetas.row(c).into_iter().zip(moves.proposals.row(c));
                let length = gaps.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
                published_rows(&settings, self.published_rate * length, rows)
            }
        }
    }
}

/// `E[B; B < K] + N Pr(B ≥ K)`, B ~ Poisson(λ + Λ).
fn published_rows(settings: &FastMhSettings, big: f64, rows: f64) -> f64 {
    let rate = settings.lambda + big;
    let Ok(batch) = Poisson::new(rate) else {
        return rows;
    };
    // The largest batch under K; E[B; B ≤ m] = rate · Pr(B ≤ m−1).
    let most = settings.batch_cap.ceil() - 1.0;
    let at_most = |m: f64| if m < 0.0 { 0.0 } else { batch.cdf(m as u64) };
    rate * at_most(most - 1.0) + rows * (1.0 - at_most(most))
}

/// C = Σ c_i, the paper's own row bounds; 0 where it states none. The rows are public here.
pub(super) fn published_rate(data: &Dataset, model: &dyn Model) -> f64 {
    let rows = data.as_public().rows();
    let rows = rows.chunks(data.features().len());
    rows.filter_map(|row| {
        let row: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
        model.published_row_rate(&row)
    })
    .sum()
}

impl Releases for Meter {
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the sum over batch sizes, at whole and broken K.
    #[test]
    fn a_published_step_reads_its_batch_or_all_rows() {
        for cap in [60.0, 59.5, 1.0, 200.0] {
            let settings = FastMhSettings {
                lambda: 10.0,
                batch_cap: cap,
                epsilon: 0.05,
                delta: 1e-5,
            };
            let (rate, rows) = (10.0 + 45.0, 5000.0f64);
            let (mut mass, mut expected) = (f64::exp(-rate), 0.0);
            for b in 0..400 {
                let size = f64::from(b);
                expected += mass * if size < cap { size } else { rows };
                mass *= rate / (size + 1.0);
            }
            let found = published_rows(&settings, 45.0, rows);
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
    }
}
