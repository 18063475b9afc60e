//! `[data.weights]`: how often rows count.

use super::Plan;
use crate::config::ConfigError;
use crate::data::RowWeights;

impl Plan {
    /// The column of the rows' weights and the largest of them, checked.
    pub(super) fn row_weights(&self) -> Result<Option<RowWeights>, ConfigError> {
        let data = &self.config.data;
        let Some(entry) = &data.weights else {
            return Ok(None);
        };
        let weights = RowWeights {
            column: entry.column.clone(),
            most: entry.most,
        };
        let refuse = |what| self.refuse("data.weights.most", what);
        weights.validate().map_err(refuse)?;
        if let Some(mean) = entry.mean
            && !(mean > 0.0 && mean <= entry.most)
        {
            let what = format!(
                "must be positive and at most 'most' = {}, not {mean}",
                entry.most
            );
            return Err(self.refuse("data.weights.mean", what));
        }
        if data.unit.as_ref() == Some(&entry.column) {
            let what =
                "is the column of data.unit, which says whose a row is; name that of the weights";
            return Err(self.refuse("data.weights.column", what));
        }
        let bounds = data.bounds.as_ref().and_then(|b| b.column.as_ref());
        if bounds == Some(&entry.column) {
            let what = "is the column of [data.bounds], which is public, and weights are protected; a bound must not follow from a weight";
            return Err(self.refuse("data.weights.column", what));
        }
        Ok(Some(weights))
    }

    /// The power of a likelihood whose rows have the largest weight: what samplers know of weights.
    pub(super) fn tempering(&self) -> Result<f64, ConfigError> {
        let kappa = self.config.model.tempering;
        if !(kappa > 0.0 && kappa <= 1.0) {
            return Err(self.refuse(
                "model.tempering",
                format!("must lie in (0, 1], not {kappa}"),
            ));
        }
        Ok(kappa * self.row_weights()?.map_or(1.0, |weights| weights.most))
    }

    /// The mean weight that is expected, over the largest.
    pub(super) fn mean_share(&self) -> f64 {
        let weights = self.config.data.weights.as_ref();
        weights.map_or(1.0, |w| w.mean.unwrap_or(w.most.min(1.0)) / w.most)
    }

    /// So many rows of the largest weight are expected to tell what `rows` rows do.
    pub(super) fn weighed(&self, rows: usize) -> usize {
        (rows as f64 * self.mean_share()).ceil() as usize
    }
}
