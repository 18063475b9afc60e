use crate::model::ModelError;

/// A setting that a sampler cannot be made with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct SettingError {
    /// Key of the run file at fault.
    pub key: String,
    /// What is wrong and what to do next.
    pub what: String,
}

impl SettingError {
    pub(super) fn new(key: &str, what: impl Into<String>) -> Self {
        SettingError {
            key: key.into(),
            what: what.into(),
        }
    }
}

impl From<ModelError> for SettingError {
    fn from(e: ModelError) -> Self {
        SettingError::new(&e.key, e.what)
    }
}
