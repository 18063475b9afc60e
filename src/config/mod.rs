//! The run file: what it may say, and how it becomes data, model, sampler and budget.

mod build;
mod error;
mod schema;

pub use build::Plan;
pub use error::ConfigError;
pub use schema::{
    DataSection, FeatureEntry, LabelEntry, ModelSection, Numbers, PrivacySection, RunConfig,
    RunSection, SamplerSection, StartEntry, TestSection,
};
