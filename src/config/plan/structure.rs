//! What the declared features say of a regression's columns, whatever the rows hold.

use super::Plan;
use crate::config::ConfigError;
use crate::data::FeatureKind;
use crate::sampler::Structure;

impl Plan {
    /// Which columns are 0 or 1, and which is 1 in all rows, in the order of the table; none is
    /// known to be where rows are shortened.
    pub(super) fn structure(&self) -> Result<Structure, ConfigError> {
        let data = &self.config.data;
        if data.row_norm.is_some() {
            return Ok(Structure::default());
        }
        let source = self.source(&data.file, data.label_file.as_ref())?;
        let (mut constant, mut columns) = (None, 0);
        for feature in &source.features {
            if matches!(feature.kind, FeatureKind::Intercept) {
                constant = Some(columns);
            }
            columns += feature.names().len();
        }
        Ok(Structure {
            flags: source.flags(),
            constant,
        })
    }
}
