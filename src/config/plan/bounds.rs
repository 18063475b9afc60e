//! `[data.bounds]`: public bounds of single rows.

use super::Plan;
use crate::config::ConfigError;
use crate::data::BoundsSource;
use crate::model::Model;
use crate::privacy::unscaled;

impl Plan {
    /// Where the rows' own bounds are declared, checked.
    pub(super) fn bounds(&self) -> Result<Option<BoundsSource>, ConfigError> {
        let data = &self.config.data;
        let Some(entry) = &data.bounds else {
            return Ok(None);
        };
        if !entry.public {
            return Err(self.refuse(
                "data.bounds.public",
                "a row's own bound is published by how rows are drawn; set public = true if every row's may be revealed and none was computed from private cells, or drop [data.bounds]",
            ));
        }
        let column = match (&entry.column, &entry.file) {
            (Some(column), None) => column,
            (None, Some(file)) => return Ok(Some(BoundsSource::File(self.locate(file)))),
            _ => {
                return Err(self.refuse(
                    "data.bounds",
                    "give the 'column' of the bounds, or an NPY 'file' of them, one of the two",
                ));
            }
        };
        if self.declared()?.columns().any(|c| c == column) {
            return Err(self.refuse(
                "data.bounds.column",
                format!("column '{column}' is a feature or the label, which are protected; a bound is public and must be a column of its own"),
            ));
        }
        Ok(Some(BoundsSource::Column(column.clone())))
    }

    /// Bounds of rows say nothing of the ratios of some models.
    pub(super) fn check_bounds(&self, model: &dyn Model) -> Result<(), ConfigError> {
        if self.config.data.bounds.is_none() || model.ratio_scales_with_row() {
            return Ok(());
        }
        Err(self.refuse("data.bounds", unscaled(model)))
    }

    /// Nor do they of remainders at an anchor.
    pub(super) fn check_anchor_bounds(&self) -> Result<(), ConfigError> {
        if self.config.data.bounds.is_none() {
            return Ok(());
        }
        Err(self.refuse(
            "data.bounds",
            "an anchored sampler clips rows in the anchor's own coordinates, where a row's bound says nothing; drop [data.bounds], or use poisson-barker",
        ))
    }
}
