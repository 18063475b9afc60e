//! The curator of non-private work, whose exact sums may be read.

use std::sync::Arc;

use ndarray::{Array2, ArrayView2};

use super::{Curator, CuratorError};
use crate::data::Dataset;
use crate::engine::{EngineError, EngineInfo, EngineSetup, RatioQuery};
use crate::model::{AnchorRelease, Metric, Model, Moments};
use crate::privacy::releases::{
    Acceptance, AnchorNoise, DrawRequest, Estimator, Expansion, GradientNoise, Halt, MomentNoise,
    Moves, Releases,
};

/// A curator without privacy: exact answers may be read.
pub struct OpenCurator(Curator);

impl Curator {
    /// A curator without privacy, for references, tests and benchmarks.
    ///
    /// # Errors
    /// As [`Curator::private`].
    pub fn not_private(
        data: Dataset,
        model: Arc<dyn Model>,
        engine: impl Into<EngineSetup>,
        seed: u64,
    ) -> Result<OpenCurator, CuratorError> {
        Self::build(data, model, engine.into(), None, Some(seed)).map(OpenCurator)
    }
}

impl OpenCurator {
    /// Exact clipped sums `Σ clip(r_i)` in nats, with the number of clipped rows, for C
    /// pairs (θ, θ').
    ///
    /// # Errors
    /// [`EngineError`], also where the slices are of different lengths.
    pub fn exact_log_ratios(
        &mut self,
        thetas: &[&[f64]],
        proposals: &[&[f64]],
        clip_bounds: &[f64],
    ) -> Result<Vec<(f64, u64)>, EngineError> {
        let query = RatioQuery::new(&*self.0.model, thetas, proposals, clip_bounds)?;
        let sums = self.0.engine.ratio_sums(&query)?;
        Ok(sums
            .iter()
            .enumerate()
            .map(|(k, s)| (s.steps as f64 * query.grid(k).step(), s.saturated))
            .collect())
    }

    /// As [`Curator::set_anchor`].
    ///
    /// # Errors
    /// [`Halt::Refused`] where model and anchor do not fit.
    pub fn set_anchor(&mut self, anchor: impl Into<AnchorRelease>) -> Result<(), Halt> {
        self.0.set_anchor(anchor)
    }

    /// The model, with its anchor where one was set.
    pub fn model(&self) -> &Arc<dyn Model> {
        self.0.model()
    }

    /// What computes.
    pub fn engine_info(&self) -> EngineInfo {
        self.0.engine.info()
    }

    /// The curator, for a non-private run.
    pub fn into_curator(self) -> Curator {
        self.0
    }
}

impl Releases for OpenCurator {
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        self.0.decide(moves, estimator, rule, accepted)
    }

    fn anchor(
        &mut self,
        at: &[f64],
        metric: &Metric,
        noise: AnchorNoise,
    ) -> Result<Expansion, Halt> {
        self.0.anchor(at, metric, noise)
    }

    fn moments(&mut self, degree: usize, noise: Option<MomentNoise>) -> Result<Moments, Halt> {
        self.0.moments(degree, noise)
    }

    fn gradients(
        &mut self,
        thetas: ArrayView2<'_, f64>,
        noise: GradientNoise,
    ) -> Result<Array2<f64>, Halt> {
        self.0.gradients(thetas, noise)
    }

    fn posterior_draw(&mut self, start: &[f64], request: &DrawRequest) -> Result<Vec<f64>, Halt> {
        self.0.posterior_draw(start, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineChoice;
    use crate::model::{Prior, Regression};
    use crate::synthetic;

    #[test]
    fn pairs_and_clips_that_do_not_fit_together_are_refused() {
        let data = synthetic::logistic(50, &[1.0, -1.0], 1).unwrap();
        let prior = Prior::normal(2, 1.0);
        let model = Regression::logistic(data.features(), data.row_norm(), prior, 1.0).unwrap();
        let model = Arc::new(model);
        let mut open = Curator::not_private(data, model, EngineChoice::Cpu, 1).unwrap();
        let (a, b, short): (&[f64], &[f64], &[f64]) = (&[0.0, 0.0], &[0.1, 0.2], &[0.1]);
        assert_eq!(
            open.exact_log_ratios(&[a, b], &[b, a], &[1.0; 2])
                .unwrap()
                .len(),
            2
        );
        for (thetas, proposals, clips) in [
            (vec![a, a], vec![b], vec![1.0, 1.0]),
            (vec![a], vec![b, b], vec![1.0, 1.0]),
            (vec![a, a], vec![b, b], vec![1.0]),
            (vec![short], vec![b], vec![1.0]),
            (vec![a], vec![short], vec![1.0]),
        ] {
            let answer = open.exact_log_ratios(&thetas, &proposals, &clips);
            assert!(matches!(answer, Err(EngineError::Query(_))), "{answer:?}");
        }
    }
}
