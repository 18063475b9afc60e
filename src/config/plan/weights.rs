//! `[data.weights]`: how often rows count.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::WeightsEntry;
use crate::data::RowWeights;
use crate::model::Model;

/// The largest weight in rows, at most.
const MOST: f64 = 1e6;

impl Plan {
    /// What is declared of the rows' weights, by themselves or as the trials of a label, with the
    /// key.
    pub fn weights_entry(&self) -> Option<(&'static str, &WeightsEntry)> {
        let data = &self.config.data;
        let trials = data.label.as_ref().and_then(|l| l.trials.as_ref());
        let trials = trials.map(|t| ("data.label.trials", t));
        trials.or(data.weights.as_ref().map(|w| ("data.weights", w)))
    }

    /// The column of the rows' weights and the largest of them, checked.
    pub(super) fn row_weights(&self) -> Result<Option<RowWeights>, ConfigError> {
        let data = &self.config.data;
        let Some((section, entry)) = self.weights_entry() else {
            return Ok(None);
        };
        let key = |key: &str| format!("{section}.{key}");
        if section != "data.weights" && data.weights.is_some() {
            let what = "rows count as many times as they have trials; drop [data.weights]";
            return Err(self.refuse("data.weights", what));
        }
        let weights = RowWeights {
            column: entry.column.clone(),
            most: entry.most,
        };
        let refuse = |what| self.refuse(&key("most"), what);
        weights.validate().map_err(refuse)?;
        let label = data.label.as_ref().and_then(|l| l.column.as_ref());
        if label == Some(&entry.column) {
            let what = "is the label's column; name another";
            return Err(self.refuse(&key("column"), what));
        }
        if let Some(one) = entry.one {
            let what = match (section, one > 0.0 && one.is_finite()) {
                ("data.weights", true) => None,
                (_, true) => Some("a trial counts as one row; drop it".to_string()),
                (_, false) => Some(format!("must be a positive number, not {one}")),
            };
            what.map_or(Ok(()), |what| Err(self.refuse(&key("one"), what)))?;
        }
        let one = entry.one.unwrap_or(1.0);
        if !(one..=MOST * one).contains(&entry.most) {
            let what = format!(
                "must lie between what counts as one row ({one}) and {MOST:e} times that, not {}; it is in the column's units",
                entry.most
            );
            return Err(self.refuse(&key("most"), what));
        }
        if let Some(mean) = entry.mean
            && !(mean >= entry.most / MOST && mean <= entry.most)
        {
            let what = format!(
                "must be positive and at most 'most' = {}, not {mean}",
                entry.most
            );
            return Err(self.refuse(&key("mean"), what));
        }
        if data.unit.as_ref() == Some(&entry.column) {
            let what =
                "is the column of data.unit, which says whose a row is; name that of the weights";
            return Err(self.refuse(&key("column"), what));
        }
        let bounds = data.bounds.as_ref().and_then(|b| b.column.as_ref());
        if bounds == Some(&entry.column) {
            let what = "is the column of [data.bounds], which is public, and weights are protected; a bound must not follow from a weight";
            return Err(self.refuse(&key("column"), what));
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
        self.row_weights()?;
        let largest = |(_, w): (_, &WeightsEntry)| w.most / w.one.unwrap_or(1.0);
        Ok(kappa * self.weights_entry().map_or(1.0, largest))
    }

    /// The mean weight that is expected, over the largest.
    pub(super) fn mean_share(&self) -> f64 {
        self.weights_entry().map_or(1.0, |(section, w)| {
            let usual = match section {
                "data.weights" => w.one.unwrap_or(1.0).min(w.most),
                _ => 0.5 * w.most,
            };
            w.mean.unwrap_or(usual) / w.most
        })
    }

    /// Trials of a row at most, where labels are shares of successes.
    pub(super) fn most_trials(&self) -> Option<f64> {
        let trials = self.config.data.label.as_ref()?.trials.as_ref()?;
        Some(trials.most)
    }

    /// So many rows of the largest weight are expected to tell what `rows` rows do.
    pub(super) fn weighed(&self, rows: usize) -> usize {
        (rows as f64 * self.mean_share()).ceil() as usize
    }

    /// The same where `rows` are units with as many rows as may count.
    pub(super) fn rows_at_most(&self, rows: usize) -> usize {
        self.weighed(rows) * self.rows_of_unit()
    }

    fn rows_of_unit(&self) -> usize {
        self.config.data.rows_per_unit.map_or(1, |k| k as usize)
    }

    /// A true bound on log ratios of a row, or of a unit's rows together, over ‖θ'−θ‖, if there is
    /// one.
    pub(crate) fn ratio_rate(&self, model: &dyn Model) -> Option<f64> {
        let rate = model.ratio_rate()?;
        Some(rate * self.rows_of_unit() as f64)
    }
}
