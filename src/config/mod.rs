//! The run file: what it may say, and how it becomes data, model, sampler and budget.

mod declared_notes;
mod error;
mod files;
mod formula;
mod hints;
mod partition;
mod plan;
#[cfg(test)]
mod reference_tests;
mod schema;

pub use error::ConfigError;
pub use files::{existing_part, table_files, table_header};
pub use formula::{formula_name, toml_key};
pub use plan::DECISIONS_A_DRAW;
pub use plan::{Forecast, FormulaTerms, Hierarchy, Plan, Term, Validation, noise_of_means};
pub use schema::{
    BoundsEntry, ColumnEntry, DataSection, DrawsName, FeatureEntry, InteractionEntry, LabelEntry,
    ModelSection, Numbers, OffsetEntry, PrivacySection, RunConfig, RunSection, SamplerSection,
    StartEntry, TestSection, ValidateSection, WeightsEntry,
};
pub use schema::{Key, quoted};
